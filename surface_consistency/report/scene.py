"""A picture as marks in its own units, which pages render as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle."""

    css: str
    """Its classes, which `style.css` gives colours, such as "c-both"."""

    x: float
    """Left edge."""

    y: float
    """Upper edge; it grows downwards."""

    width: float
    """Width."""

    height: float
    """Height."""

    title: str = ""
    """What it shows when pointed at; none by default."""

    go: str = ""
    """The selection of answers that it leads to; none by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A line or an outline."""

    css: str
    """Its classes."""

    path: str
    """Its course in SVG's words: M, L, C and Z, all absolute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A level line."""

    css: str
    """Its classes."""

    x: float
    """Where it begins."""

    to_x: float
    """Where it ends."""

    y: float
    """Its height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A marker."""

    css: str
    """Its classes."""

    shape: str
    """One of `colours.MARKERS`, or "left" or "right", an arrow's head."""

    x: float
    """Its centre."""

    y: float
    """Its centre."""

    title: str
    """What it shows when pointed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A line of text."""

    text: str
    """The text."""

    x: float
    """Where it is anchored."""

    y: float
    """Its base line."""

    css: str = ""
    """Its classes."""

    indent: float = 0.0
    """How far right of x it begins, where x is a share of the width."""

    anchor: Literal["start", "middle", "end"] = "start"
    """Which of its points stands at x."""


Mark = Box | Stroke | Span | Symbol | Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A picture."""

    width: float
    """Width, in units in which its letters are 13 or 14 high."""

    height: float
    """Height."""

    marks: Sequence[Mark]
    """What is drawn, in this order."""

    alt: str
    """What it shows, in words."""


def straight(x: float, y: float, to_x: float, to_y: float) -> str:
    """Write a straight line.

    Args:
        x: Where it begins.
        y: Where it begins.
        to_x: Where it ends.
        to_y: Where it ends.

    Returns:
        A `Stroke.path`.
    """
    return f"M{px(x)} {px(y)}L{px(to_x)} {px(to_y)}"


def px(length: float) -> str:
    """Write a length with as few digits as it needs.

    Args:
        length: In units of a picture.

    Returns:
        At most two decimals.
    """
    return f"{length:.2f}".rstrip("0").rstrip(".")
