from .data import (
    SLAQ_SAMPLE_PATH as SLAQ_SAMPLE_PATH,
    Slaq as Slaq,
    load_slaq as load_slaq,
    load_slaq_sample as load_slaq_sample,
    popularity_halves as popularity_halves,
)
from .labels import (
    LabelledAnswer as LabelledAnswer,
    load_labelled_answers as load_labelled_answers,
)
from .prompts import (
    slaq_prompts as slaq_prompts,
)
from .records import (
    PromptTarget as PromptTarget,
    SlaqArticle as SlaqArticle,
    SlaqOutcome as SlaqOutcome,
    SlaqQuestion as SlaqQuestion,
    SlaqTopic as SlaqTopic,
    SlaqVerdict as SlaqVerdict,
)
from .rows import (
    SLAQ_COLUMNS as SLAQ_COLUMNS,
    SlaqRow as SlaqRow,
    to_slaq_rows as to_slaq_rows,
    write_slaq_csv as write_slaq_csv,
)
