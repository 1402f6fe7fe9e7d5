"""SLAQ's prompts: short, long in counter-balanced orders, free form, and the question writer's."""

from surface_consistency.prompts.slaq.instructions import DEFAULT_INSTRUCTIONS, SlaqInstructions
from surface_consistency.prompts.slaq.orders import latin_square_orders
from surface_consistency.prompts.slaq.queries import TopicQuery, free_query, topic_query
from surface_consistency.prompts.slaq.questions import (
    SlaqPrompts,
    free_prompts,
    long_prompts,
    short_prompts,
    slaq_prompts,
)
from surface_consistency.prompts.slaq.writer import writer_prompt

__all__ = [
    "DEFAULT_INSTRUCTIONS",
    "SlaqInstructions",
    "SlaqPrompts",
    "TopicQuery",
    "free_prompts",
    "free_query",
    "latin_square_orders",
    "long_prompts",
    "short_prompts",
    "slaq_prompts",
    "topic_query",
    "writer_prompt",
]
