from .demonstrations import (
    Demonstration as Demonstration,
    DemonstrationPool as DemonstrationPool,
    GivenDemonstrations as GivenDemonstrations,
)
from .instances import (
    entity_id as entity_id,
    instance_rows as instance_rows,
    surface_id as surface_id,
)
from .prompts import (
    FRAMES as FRAMES,
    build_prompts as build_prompts,
    render_chat as render_chat,
    render_completion as render_completion,
    resolve_frame as resolve_frame,
)
from .study import (
    RedirectOutcome as RedirectOutcome,
    RedirectQAStudy as RedirectQAStudy,
    score_predictions as score_predictions,
)
