"""Records to prompts: what is asked of the model, and in which company."""

from surface_consistency._lazy import attach

_HOMES = {
    "Demonstration": "few_shot",
    "DemonstrationPool": "few_shot",
    "audit_prompts": "audit_styles",
    "build_prompts": "few_shot",
    "render_chat": "few_shot",
    "render_completion": "few_shot",
    "slaq_prompts": "slaq",
    "style_writers": "audit_styles",
    "writer_prompt": "slaq_writer",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = attach(__name__, _HOMES)
