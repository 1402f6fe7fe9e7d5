"""Colours of pages and figures: pale for agreement, saturated for flips, one hue per model."""

from collections.abc import Mapping
from typing import Final

_ROLES: Final = {
    "page": ("#ffffff", "#14161a"),
    "ink": ("#191b1f", "#e9e7e2"),
    "soft": ("#555b64", "#a9adb5"),
    "line": ("#dcdad4", "#33363b"),
    "edge": ("#85888e", "#767a82"),
    "field": ("#f5f4f0", "#1d2025"),
    "link": ("#1b5a9e", "#8bbcf2"),
    "both": ("#b7d3cc", "#2c4d46"),
    "both-text": ("#14302a", "#dcefe9"),
    "neither": ("#eae8e2", "#33363b"),
    "neither-text": ("#35342f", "#d8d7d3"),
    "first": ("#b8431a", "#bd4d22"),
    "first-line": ("#99340f", "#a03a12"),
    "second": ("#2a64a5", "#3a74b5"),
    "second-line": ("#1d4f88", "#2a5f9b"),
    "flip-text": ("#ffffff", "#ffffff"),
    "lost": ("#a63a13", "#f2946a"),
    "fine": ("#2d6a3c", "#86c795"),
    "look": ("#8f4a00", "#f0b25c"),
    "floor-1": ("#e3e1da", "#33373e"),
    "floor-2": ("#efede8", "#24272d"),
    "model-0": ("#403c98", "#aaa6f5"),
    "model-1": ("#a07400", "#e2b23c"),
    "model-2": ("#0f9187", "#3fae9f"),
    "model-3": ("#7d1a48", "#f7b3d2"),
}
"""Colours by role, in the light and in the dark scheme."""

LIGHT: Final[Mapping[str, str]] = {role: colours[0] for role, colours in _ROLES.items()}
"""The light scheme by role, which printed pages and figures also use."""

DARK: Final[Mapping[str, str]] = {role: colours[1] for role, colours in _ROLES.items()}
"""The dark scheme by role."""

MARKERS: Final = ("circle", "diamond", "square", "triangle")
"""Marker shapes of the models, in addition to their hues."""

MODEL_COLOURS: Final = 4
"""Number of hues; from the fifth model on, hues repeat with another shape."""


def model_style(index: int) -> tuple[int, str]:
    """Choose the hue and the shape of a model.

    Args:
        index: Index of the model on its page, at least 0.

    Returns:
        Index of the hue, below `MODEL_COLOURS`, and one of `MARKERS`. The pairs repeat after
        sixteen models.

    Examples:
        >>> model_style(1), model_style(5)
        ((1, 'diamond'), (1, 'square'))
    """
    turn, hue = divmod(index, MODEL_COLOURS)
    return hue, MARKERS[(hue + turn) % len(MARKERS)]


def heat_colours(colours: Mapping[str, str]) -> dict[str, str]:
    """Compute the colours of a heat map, from the colour of the page to the colours of flips.

    Args:
        colours: The scheme.

    Returns:
        "heat-0", the colour of the page, to "heat-5", towards that of first-only pairs; and
        "cold-0" to "cold-5", towards that of second-only pairs, for negative numbers.
    """
    page, first, second = (
        [int(colours[name][place : place + 2], 16) for place in (1, 3, 5)]
        for name in ("page", "first", "second")
    )
    steps = (0.0, 0.12, 0.24, 0.36, 0.48, 0.6)
    return {
        f"{name}-{number}": "#"
        + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(page, end, strict=True))
        for name, end in (("heat", first), ("cold", second))
        for number, share in enumerate(steps)
    }
