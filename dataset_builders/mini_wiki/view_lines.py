"""The views of the wiki's pages, as the complete pageview files count them by month."""

from collections.abc import Iterator

from dataset_builders.mini_wiki.tables import Entity, Tables

__all__ = ["view_dump"]

_NEVER_NAMED = frozenset({"Karl_Storm", "Faint_Echo"})
_WITHOUT_ID = frozenset({"Ghost_Quay"})


def view_dump(tables: Tables, month: int) -> bytes:
    """Write the file of one month.

    Args:
        tables: The wiki.
        month: 0 for November, 1 for December.

    Returns:
        The uncompressed lines: project, title, page id, access, views, views by day.
    """
    lines = [
        "commons.wikimedia File:Velmora.jpg 77 desktop 3 A3",
        "de.wikipedia Maren_Oskeld 1022 desktop 900000 A900000",
        *(line for entity in tables.entities for line in _lines(entity, month)),
        *(
            f"en.wikipedia {redirect.title} {redirect.page_id} desktop 2 A1B1"
            for redirect in tables.redirects
            if redirect.namespace == 0 and not redirect.interwiki
        ),
        "en.wikipedia Special:Search null desktop 5000 A5000",
        "en.wikipedia - null mobile-app 12 B12",
        "en.wikipedia.m Olin_Marsh 1031 mobile-web 55 A55",
        "en.wikibooks Olin_Marsh 1031 desktop 44 A44",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(entity: Entity, month: int) -> Iterator[str]:
    """Split the views of one article over the ways of access."""
    title, views = entity.title, entity.views[month]
    if title is None or entity.page_id is None or title in _NEVER_NAMED:
        return
    number = "null" if title in _WITHOUT_ID else str(entity.page_id)
    desktop = views - views // 3
    if views == 0 and entity.views != (0, 0):
        return
    yield f"en.wikipedia {title} {number} desktop {desktop} A{desktop}"
    if views // 3:
        yield f"en.wikipedia {title} {number} mobile-web {views // 3} B{views // 3}"
