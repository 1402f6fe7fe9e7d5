from .audit_styles import audit_prompts as audit_prompts
from .audit_styles import style_writers as style_writers
from .few_shot import (
    Demonstration as Demonstration,
)
from .few_shot import (
    DemonstrationPool as DemonstrationPool,
)
from .few_shot import (
    build_prompts as build_prompts,
)
from .few_shot import (
    render_chat as render_chat,
)
from .few_shot import (
    render_completion as render_completion,
)
from .slaq import slaq_prompts as slaq_prompts
from .slaq_writer import writer_prompt as writer_prompt
