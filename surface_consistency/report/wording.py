"""Sentences of a page from a template beside its study: what it says stands in one file of prose.

A template has a block for each thing that is said. Words stand in it as they are read, numbers by
three filters: `row|interval("flip_rate")` is a number with its interval, `number|value("count")`
one without, and `number|p` a p-value. `row|shown("difference", p)` tells which direction may be
claimed, and is none where there is no interval: then the number is not quoted; `row|unseen(
"difference")` tells what would have been found. `row|compared("slope", "rises by {}", "falls by
{}", "is not shown to rise or fall")` makes a sentence by both. Blank lines part paragraphs. A line
such as "## warning: Few facts (#numbers)" begins a check with its title and the anchor of its
evidence. Where a block comes out empty, nothing is said.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import jinja2
from markupsafe import Markup

from surface_consistency.report.page import Check, Part, Value
from surface_consistency.tables.numbers import (
    interval_value,
    least_found,
    shown_sign,
    value_text,
)

_MARK: Final = re.compile("\x02([0-9]+)\x03")
_CHECK: Final = re.compile(r"^ *## (.+?): (.+?)(?: \(#([\w-]+)\))? *$", re.MULTILINE)


class Wording:
    """The template of a study.

    Args:
        package: The package that holds it.
        name: Its file.
        default: Where the blocks stand that it lacks; None for nowhere.
    """

    def __init__(
        self, package: str, name: str = "page.md.jinja", *, default: "Wording | None" = None
    ) -> None:
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader(package, ""),
            autoescape=True,
            finalize=_kept_apart,
            undefined=jinja2.StrictUndefined,
        )
        environment.filters |= {
            "compared": compared,
            "interval": interval_value,
            "shown": shown_sign,
            "unseen": unseen,
            "p": lambda number: Value(value=float(number), kind="p_value"),
            "value": _value,
        }
        self._template = environment.get_template(name)
        self._default = default

    def paragraphs(self, block: str, **facts: object) -> list[list[Part]]:
        """Set a block.

        Args:
            block: Its name in the template.
            facts: What its sentences are made of.

        Returns:
            Its paragraphs, each of words and numbers; texts among `facts` stand as they are, and
                lists of words and numbers too.
        """
        text, values = self._set(block, facts)
        return [_parts(one, values) for one in re.split(r"\n\s*\n", text) if one.strip()]

    def sentence(self, block: str, **facts: object) -> list[Part]:
        """Set a block as one paragraph.

        Args:
            block: Its name.
            facts: What it is made of.

        Returns:
            Words and numbers; none where there is nothing to say.
        """
        text, values = self._set(block, facts)
        return _parts(text, values)

    def checks(self, block: str, **facts: object) -> list[Check]:
        """Set the checks of a block.

        Args:
            block: Its name.
            facts: What they are made of.

        Returns:
            One check for each line such as "## warning: Few facts (#numbers)", with its title and
            the anchor of its evidence, and what follows that line as its text.
        """
        text, values = self._set(block, facts)
        _, *checks = _CHECK.split(text)
        return [
            Check(
                level=_words(level, values),  # type: ignore[arg-type]
                title=_words(title, values),
                anchor=anchor,
                text=_parts(body, values),
            )
            for level, title, anchor, body in zip(*[iter(checks)] * 4, strict=True)
        ]

    def _set(self, block: str, facts: Mapping[str, object]) -> tuple[str, list[Any]]:
        """Render a block; what is put into it stands apart, so that nothing of it is markup."""
        if self._default is not None and block not in self._template.blocks:
            return self._default._set(block, facts)
        values: list[Any] = []
        context = self._template.new_context({**facts, "_values": values})
        return "".join(self._template.blocks[block](context)), values


def compared(
    row: Mapping[Any, Any],
    name: str,
    above: str,
    below: str,
    unclear: str,
    *,
    null: float = 0.0,
    kind: Literal["rate", "difference", "number"] = "difference",
) -> list[Part]:
    """Say on which side of a value a number lies, where its interval shows that.

    Args:
        row: A row of a table: `<name>`, `<name>_low` and `<name>_high`.
        name: Name of the number.
        above: What is said where the interval lies above `null`; "{}" stands for the number.
        below: What is said where it lies below.
        unclear: What is said where the interval holds `null`, before the number.
        null: The value that says nothing: 0 for differences, 0.5 for an area under a curve.
        kind: How the number is set; a difference has no sign in `above` and `below`, which tell it.

    Returns:
        Words and numbers, by `shown_sign`. `unclear` is followed, in brackets, by the number, its
        interval and `unseen`. Nothing where a bound is undefined, so that nothing can be inferred.

    Examples:
        >>> row = {"slope": -0.02, "slope_low": -0.035, "slope_high": -0.005}
        >>> compared(row, "slope", "rises by {}", "falls by {}", "may be level")[0]
        'falls by '
    """
    value = interval_value(row, name, kind=kind)
    sign = shown_sign(row, name, null=null)
    if sign is None or value.low is None or value.high is None:
        return []
    if not sign:
        return [f"{unclear} (", value, "; ", *unseen(row, name, null=null, kind=kind), ")"]
    if kind == "difference":
        bounds = (value.low, value.high) if sign > 0 else (-value.high, -value.low)
        value = Value(
            value=sign * value.value, low=bounds[0], high=bounds[1], kind=kind, tone="lost"
        )
    before, _, after = (above if sign > 0 else below).partition("{}")
    return [before, value, after]


def unseen(
    row: Mapping[Any, Any],
    name: str,
    *,
    null: float = 0.0,
    kind: Literal["rate", "difference", "number"] = "difference",
) -> list[Part]:
    """Say what would have been found where no difference is shown.

    Args:
        row: A row of a table: `<name>_low` and `<name>_high`.
        name: Name of the number.
        null: The value that says nothing.
        kind: How the number is set.

    Returns:
        Such as "8.2 points would be found 4 times in 5", as of `least_found`; that it is too few to
        find any where even a number of 1 would not be.
    """
    least = null + least_found(row[f"{name}_low"], row[f"{name}_high"])
    if not least < 1.0:
        return ["too few to find any"]
    shown = value_text(Value(value=least, kind=kind, tone="lost"))
    return [f"{shown} would be found 4 times in 5"]


def _value(
    number: float,
    kind: Literal["rate", "difference", "number", "count"] = "rate",
    *,
    tone: Literal["plain", "lost", "strong"] = "plain",
) -> Part:
    """Take a number without an interval; counts are words."""
    return f"{number:,}" if kind == "count" else Value(value=float(number), kind=kind, tone=tone)


@jinja2.pass_context
def _kept_apart(context: jinja2.runtime.Context, value: object) -> object:
    """Put a value aside and a mark in its place."""
    if isinstance(value, Markup):
        return value
    values: list[object] = context["_values"]
    values.append(value)
    return Markup(f"\x02{len(values) - 1}\x03")


def _parts(text: str, values: list[Any]) -> list[Part]:
    """Split a text at its marks, and join the words between numbers."""
    parts: list[Part] = []
    for piece in _pieces(text, values):
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        elif piece != "":
            parts.append(piece)
    return parts


def _words(text: str, values: list[Any]) -> str:
    """Read a text without numbers."""
    return "".join(str(part) for part in _parts(text, values))


def _pieces(text: str, values: list[Any]) -> Iterator[Part]:
    """Yield words, and what stands for each mark."""
    for place, piece in enumerate(_MARK.split(re.sub(r"[ \n]+", " ", text).strip())):
        if place % 2:
            value = values[int(piece)]
            if isinstance(value, list):
                yield from value
            else:
                yield value if isinstance(value, Value) else str(value)
        else:
            yield piece
