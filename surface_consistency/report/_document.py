"""The frame of every report page: one HTML document without script or outside file."""

import base64
from collections.abc import Mapping

from surface_consistency.report._markup import Html, tag
from surface_consistency.report._style import STYLE

__all__ = ["document", "picture", "section"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, sections: Mapping[str, tuple[str, Html]]) -> str:
    """Put the sections into a page with a table of contents."""
    links = (tag("li", tag("a", name, href=f"#{key}")) for key, (name, _) in sections.items())
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", title)),
        tag("nav", tag("ul", *links), aria_label="Contents"),
        tag("main", *(section(key, name, part) for key, (name, part) in sections.items())),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def section(anchor: str, title: str, *parts: str) -> Html:
    """Build a section with its heading."""
    return tag("section", tag("h2", title, id=anchor), *parts, aria_labelledby=anchor)


def picture(svg: str, *, alt: str, label: str, caption: str) -> Html:
    """Put a drawing into the page, to be scrolled where it is wider than the window."""
    code = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    image = tag("img", src=f"data:image/svg+xml;base64,{code}", alt=alt)
    return tag(
        "figure",
        tag("div", image, class_="scroll", tabindex="0", role="region", aria_label=label),
        tag("figcaption", caption),
    )
