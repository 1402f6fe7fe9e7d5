"""The columns of SLAQ, as figure 6 of the paper has them."""

from typing import Final

__all__ = ["INDICES", "SLAQ_COLUMNS", "SLAQ_REQUIRED"]

INDICES: Final = (1, 2, 3, 4, 5)
"""Numbers of the facts of a topic."""

SLAQ_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "category": ("Category",),
    "topic": ("Topic", "Title"),
    "url": ("URL", "Link"),
    **{f"question{k}": (f"ShortQ{k}", f"ShortQuestion{k}") for k in INDICES},
    **{f"answer{k}": (f"ShortA{k}", f"ShortAnswer{k}") for k in INDICES},
    "long_question": ("LongQ", "LongQuestion"),
    "long_answer": ("LongA", "LongAnswer"),
    "pageviews": ("Pageviews", "Views"),
    **{f"entity{k}": (f"ShortQ{k}_Entity", f"ShortA{k}_Entity") for k in INDICES},
}
"""Fields of SLAQ, and the columns that may hold them."""

SLAQ_REQUIRED: Final = tuple(
    name
    for name in SLAQ_COLUMNS
    if name not in {"url", "pageviews"} and not name.startswith("entity")
)
"""Fields that a source must have."""
