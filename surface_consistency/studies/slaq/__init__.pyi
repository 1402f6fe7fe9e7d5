from .labels import (
    load_labelled_answers as load_labelled_answers,
)
from .prompts import (
    slaq_prompts as slaq_prompts,
)
from .records import (
    SlaqOutcome as SlaqOutcome,
    SlaqVerdict as SlaqVerdict,
)
