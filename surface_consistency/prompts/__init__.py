"""Records to prompts: what is asked of the model, and in which company."""

from surface_consistency.prompts.demonstrations import Demonstration, DemonstrationPool
from surface_consistency.prompts.few_shot import build_prompts, render_chat, render_completion

__all__ = [
    "Demonstration",
    "DemonstrationPool",
    "build_prompts",
    "render_chat",
    "render_completion",
]
