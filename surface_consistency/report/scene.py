"""Figures as lists of marks, which pages render as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle."""

    css: str
    """Its CSS classes, such as "c-both"; `style.css` defines their colours."""

    x: float
    """Left edge."""

    y: float
    """Upper edge; y increases downwards."""

    width: float
    """Width."""

    height: float
    """Height."""

    title: str = ""
    """Text of its tooltip; none by default."""

    go: str = ""
    """Selection of answers to which it links; none by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A line or an outline."""

    css: str
    """Its classes."""

    path: str
    """Its path in SVG syntax: absolute M, L, C and Z."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A horizontal line."""

    css: str
    """Its classes."""

    x: float
    """Start."""

    to_x: float
    """End."""

    y: float
    """Vertical position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A marker."""

    css: str
    """Its classes."""

    shape: str
    """One of `colours.MARKERS`, or "left" or "right", an arrow head."""

    x: float
    """Horizontal position of its centre."""

    y: float
    """Vertical position of its centre."""

    title: str
    """Text of its tooltip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A line of text."""

    text: str
    """The text."""

    x: float
    """Horizontal position of its anchor."""

    y: float
    """Baseline."""

    css: str = ""
    """Its classes."""

    indent: float = 0.0
    """Distance to the right of x in pixels, if x is a fraction of the width."""

    anchor: Literal["start", "middle", "end"] = "start"
    """The part of the text that is at x."""


Mark = Box | Stroke | Span | Symbol | Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A figure."""

    width: float
    """Width, in units in which the font size is 13 or 14."""

    height: float
    """Height."""

    marks: Sequence[Mark]
    """The marks, in drawing order."""

    alt: str
    """Text alternative."""


def straight(x: float, y: float, to_x: float, to_y: float) -> str:
    """Write a straight line.

    Args:
        x: Horizontal position of the start.
        y: Vertical position of the start.
        to_x: Horizontal position of the end.
        to_y: Vertical position of the end.

    Returns:
        A `Stroke.path`.
    """
    return f"M{px(x)} {px(y)}L{px(to_x)} {px(to_y)}"


def px(length: float) -> str:
    """Write a length without trailing zeros.

    Args:
        length: Length in units of the figure.

    Returns:
        At most two decimals.
    """
    return f"{length:.2f}".rstrip("0").rstrip(".")
