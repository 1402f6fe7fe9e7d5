from .audit_styles import audit_prompts as audit_prompts, style_writers as style_writers
from .few_shot import (
    FRAMES as FRAMES,
    Demonstration as Demonstration,
    DemonstrationPool as DemonstrationPool,
    GivenDemonstrations as GivenDemonstrations,
    build_prompts as build_prompts,
    render_chat as render_chat,
    render_completion as render_completion,
    resolve_frame as resolve_frame,
)
from .slaq import slaq_prompts as slaq_prompts
from .slaq_writer import writer_prompt as writer_prompt
