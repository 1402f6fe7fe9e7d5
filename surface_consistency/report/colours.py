"""Colours of pages and figures: agreement is calm, flips saturated, models marker and hue."""

from collections.abc import Mapping
from typing import Final

__all__ = ["DARK", "LIGHT", "MARKERS", "MODEL_COLOURS", "contrast", "heat_colours", "model_style"]

LIGHT: Final[Mapping[str, str]] = {
    "page": "#ffffff",
    "ink": "#191b1f",
    "soft": "#555b64",
    "line": "#dcdad4",
    "edge": "#85888e",
    "field": "#f5f4f0",
    "link": "#1b5a9e",
    "both": "#b7d3cc",
    "both-text": "#14302a",
    "neither": "#eae8e2",
    "neither-text": "#35342f",
    "first": "#b8431a",
    "first-line": "#99340f",
    "second": "#2a64a5",
    "second-line": "#1d4f88",
    "flip-text": "#ffffff",
    "lost": "#a63a13",
    "fine": "#2d6a3c",
    "look": "#8f4a00",
    "mark": "#fbe6a2",
    "mark-text": "#191b1f",
    "floor-1": "#e3e1da",
    "floor-2": "#efede8",
    "model-0": "#403c98",
    "model-1": "#a07400",
    "model-2": "#0f9187",
    "model-3": "#7d1a48",
}
"""The light scheme by role; printed pages and figures take it too."""

DARK: Final[Mapping[str, str]] = {
    "page": "#14161a",
    "ink": "#e9e7e2",
    "soft": "#a9adb5",
    "line": "#33363b",
    "edge": "#767a82",
    "field": "#1d2025",
    "link": "#8bbcf2",
    "both": "#2c4d46",
    "both-text": "#dcefe9",
    "neither": "#33363b",
    "neither-text": "#d8d7d3",
    "first": "#bd4d22",
    "first-line": "#a03a12",
    "second": "#3a74b5",
    "second-line": "#2a5f9b",
    "flip-text": "#ffffff",
    "lost": "#f2946a",
    "fine": "#86c795",
    "look": "#f0b25c",
    "mark": "#5c4a12",
    "mark-text": "#f4efe0",
    "floor-1": "#33373e",
    "floor-2": "#24272d",
    "model-0": "#aaa6f5",
    "model-1": "#e2b23c",
    "model-2": "#3fae9f",
    "model-3": "#f7b3d2",
}
"""The dark scheme by role."""

MARKERS: Final = ("circle", "diamond", "square", "triangle")
"""Shapes of the models, which repeat their hues."""

MODEL_COLOURS: Final = 4
"""Hues of models; from the fifth model on they come again with another shape."""


def model_style(index: int) -> tuple[int, str]:
    """Choose hue and shape of a model.

    Args:
        index: Index of the model on its page, at least 0.

    Returns:
        Index of the hue, below `MODEL_COLOURS`, and one of `MARKERS`; sixteen models differ in one
        of the two, then they repeat.

    Examples:
        >>> model_style(1), model_style(5)
        ((1, 'diamond'), (1, 'square'))
    """
    turn, hue = divmod(index, MODEL_COLOURS)
    return hue, MARKERS[(hue + turn) % len(MARKERS)]


def heat_colours(colours: Mapping[str, str]) -> dict[str, str]:
    """Mix the steps of a heat map from the page to the colours of flips.

    Args:
        colours: The scheme.

    Returns:
        "heat-0", which is the page, to "heat-5", the colour of first-only pairs; and "cold-0" to
        "cold-5", that of second-only pairs, for shares below nothing.
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


def contrast(one: str, other: str) -> float:
    """Compute how well a colour is read on another.

    Args:
        one: A colour such as "#191b1f".
        other: Another one.

    Returns:
        The ratio of their luminances, from 1 (equal) to 21 (black on white).

    References:
        Web Content Accessibility Guidelines 2.2, "contrast ratio".

    Examples:
        >>> round(contrast("#000000", "#ffffff"), 3)
        21.0
    """
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    """Compute the relative luminance of a colour."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
