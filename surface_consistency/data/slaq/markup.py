"""HTML in texts that should have none: found, and taken out on request."""

import html
import re
from typing import Final

__all__ = ["has_markup", "without_markup"]

_TAGS: Final = (
    "a|abbr|b|big|blockquote|br|center|cite|code|dd|del|dfn|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|"
    "kbd|li|math|mark|ol|p|pre|q|ref|s|samp|script|small|span|strike|strong|style|sub|sup|table|"
    "tbody|td|th|thead|tr|tt|u|ul|var|wbr"
)
_TAG: Final = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_DROPPED: Final = re.compile(
    r"<(script|style|ref)\b[^<>]*(?<!/)>.*?</\1\s*>", re.IGNORECASE | re.DOTALL
)
_ENTITY: Final = re.compile(r"&(?:[a-z]{2,8}\d{0,2}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_POWER: Final = re.compile(r"<sup(?:\s[^<>]*)?>(.*?)</sup\s*>", re.IGNORECASE | re.DOTALL)
_BREAK: Final = re.compile(r"</?(?:br|p|div|li|tr|td|th|h[1-6]|hr)(?:\s[^<>]*)?/?>", re.IGNORECASE)


def has_markup(text: str) -> bool:
    """Tell whether a text holds HTML tags or character references.

    Args:
        text: Any text. "a < b" and "x<y>z" hold none: only the names of HTML's tags count.

    Returns:
        Whether it does.

    Examples:
        >>> has_markup("H<sub>2</sub>O"), has_markup("Rock &amp; roll"), has_markup("if a<b, b>c")
        (True, True, False)
    """
    return bool(_TAG.search(text) or _ENTITY.search(text))


def without_markup(text: str) -> str:
    """Turn HTML into the text that a reader sees, on one line.

    Args:
        text: Any text; one without markup comes back as it is.

    Returns:
        The text: exponents are written with "^", scripts, styles and references go.

    Examples:
        >>> without_markup("<i>E</i> = <b>mc<sup>2</sup></b> &amp; so on<br/>more")
        'E = mc^2 & so on more'
    """
    if not has_markup(text):
        return text
    plain = _BREAK.sub(" ", _POWER.sub(r"^\1", _DROPPED.sub("", text)))
    return " ".join(html.unescape(_TAG.sub("", plain)).split())
