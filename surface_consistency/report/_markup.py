"""HTML from Python values; what is not marked as markup is escaped."""

import re
from collections.abc import Iterable
from html import escape

__all__ = ["Html", "data_text", "join", "tag"]

_VOID = frozenset({"img", "meta"})
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LONGEST = 300


class Html(str):
    """Markup that goes into the page as it is; any other string is escaped."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """Build an element; `class_` is the class, other underscores in names become hyphens."""
    settings = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_safe(value)}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{settings}>")
    return Html(f"<{name}{settings}>{join(children)}</{name}>")


def join(parts: Iterable[str], separator: str = "") -> Html:
    """Put markup and escaped text one after the other."""
    return Html(separator.join(part if isinstance(part, Html) else _safe(part) for part in parts))


def data_text(value: object) -> Html:
    """Show text from data or a model: isolated in direction, cut when long, "none" when absent.

    Lines may break after a slash, as in the name of a model.
    """
    if _is_absent(value):
        return tag("span", "none", class_="none")
    text = str(value)
    if not text:
        return tag("span", "empty", class_="none")
    if len(text) <= _LONGEST:
        return tag("bdi", join(re.split("(?<=/)", text), Html("<wbr>")))
    note = f" … {len(text) - _LONGEST:,} more characters"
    return join([tag("bdi", text[:_LONGEST]), tag("span", note, class_="none")])


def _is_absent(value: object) -> bool:
    """Tell None, NaN and pandas.NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, float) and value != value


def _safe(text: str) -> str:
    """Escape text, and show characters that HTML forbids as the replacement character."""
    return escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)
