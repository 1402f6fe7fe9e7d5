"""The wiki as dumps that need no database: XML pages, Wikidata's items, lines of views."""

import hashlib
import json
from xml.sax.saxutils import escape

_NEVER_NAMED = frozenset({"Karl_Storm", "Faint_Echo"})
_WITHOUT_ID = frozenset({"Ghost_Quay"})
_NAMES = (
    "|Talk|User|User talk|Wikipedia|Wikipedia talk|Template|Template talk|Category|Category talk"
)
_NAMESPACES = dict(zip((0, 1, 2, 3, 4, 5, 10, 11, 14, 15), _NAMES.split("|"), strict=True))
_SCHEMA = "http://www.mediawiki.org/xml/export-0.11/"


def xml_parts(tables):
    """Write the export in three parts, which the dumps compress one by one."""
    pages = list(_pages(tables))
    half = len(pages) // 2
    parts = (_head() + "".join(pages[:half]), "".join(pages[half:]), "</mediawiki>\n")
    return [part.encode() for part in parts]


def _head():
    """Open the document and name the wiki's namespaces."""
    names = "".join(
        f'      <namespace key="{key}" case="first-letter"'
        + (f">{name}</namespace>\n" if name else " />\n")
        for key, name in _NAMESPACES.items()
    )
    return (
        f'<mediawiki xmlns="{_SCHEMA}" version="0.11" xml:lang="en">\n'
        "  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n"
        "    <base>https://en.wikipedia.org/wiki/Main_Page</base>\n"
        "    <generator>MediaWiki 1.46.0-wmf.7</generator>\n    <case>first-letter</case>\n"
        f"    <namespaces>\n{names}    </namespaces>\n  </siteinfo>\n"
    )


def _pages(tables):
    """Write articles, redirects and other pages by page id."""
    for entity in tables.entities:
        if entity.title is not None and entity.page_id is not None:
            text = (
                f"'''{entity.label}''' is an invention.\n\n{{{{R from birth name}}}} says a note.\n"
            )
            yield _page(entity.page_id, 0, entity.title, text, None)
    for redirect in tables.redirects:
        place = (redirect.page_id, redirect.namespace, redirect.title)
        yield _page(*place, _redirect_text(redirect, tables), _target(redirect))
    for page in tables.pages:
        text = "{{Disambiguation}}\n" if page.page_prop == "disambiguation" else "A page.\n"
        yield _page(page.page_id, page.namespace, page.title, text, None)


def _redirect_text(redirect, tables):
    """Write a redirect's wikitext: the command in one of its spellings, then the templates."""
    command = ("#REDIRECT ", "#redirect", "#Redirect: ")[redirect.page_id % 3]
    fragment = f"#{redirect.fragment}" if redirect.fragment else ""
    templates = redirect.wikitext or "\n".join(
        f"{{{{{tables.templates[name]}}}}}" for name in redirect.categories
    )
    return f"{command}[[{_target(redirect)}{fragment}]]\n\n{templates}".rstrip() + "\n"


def _target(redirect):
    """Name the target as a link does, without its section."""
    if redirect.interwiki:
        return f"{redirect.interwiki}:{redirect.target}".replace("_", " ")
    return _full_title(redirect.target_namespace, redirect.target)


def _full_title(namespace, title):
    """Put the namespace before a title, with spaces."""
    prefix = _NAMESPACES[namespace]
    return (f"{prefix}:{title}" if prefix else title).replace("_", " ")


def _page(page_id, namespace, title, text, target):
    """Write one page with its one revision."""
    redirect = "" if target is None else f'    <redirect title="{_quoted(target)}" />\n'
    content = text.encode()
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()[:31]
    return (
        f"  <page>\n    <title>{_quoted(_full_title(namespace, title))}</title>\n"
        f"    <ns>{namespace}</ns>\n    <id>{page_id}</id>\n{redirect}"
        f"    <revision>\n      <id>{900000 + page_id}</id>\n"
        "      <timestamp>2025-12-31T23:59:59Z</timestamp>\n"
        "      <contributor>\n        <username>Lamp</username>\n        <id>5</id>\n"
        "      </contributor>\n"
        f"      <comment>about [[{_quoted(title)}]]</comment>\n"
        f"      <origin>{900000 + page_id}</origin>\n"
        "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text bytes="{len(content)}" sha1="{digest}" xml:space="preserve">'
        f"{_quoted(text)}</text>\n"
        f"      <sha1>{digest}</sha1>\n    </revision>\n  </page>\n"
    )


def _quoted(text):
    """Escape a text as MediaWiki does, quotes included."""
    return escape(text, {'"': "&quot;"})


def wikidata_dump(tables):
    """Write the dump: one entity a line, in the framing of a JSON array."""
    lines = [
        json.dumps(entity, ensure_ascii=number % 2 == 0, separators=(",", ":"))
        for number, entity in enumerate(_entities(tables))
    ]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _entities(tables):
    """Yield the items, and one property among them."""
    claims = {}
    for claim in tables.claims:
        claims.setdefault(claim.subject, []).append(claim)
    for number, entity in enumerate(tables.entities):
        if number == 30:
            yield _property()
        yield _item(entity, claims.get(entity.qid, []))


def _item(entity, claims):
    """Write one item; what is empty is an empty array, as PHP writes it."""
    labels = {"en": entity.label, "ja": entity.label_ja, "mul": entity.label_mul}
    aliases = [{"language": "en", "value": alias} for alias in entity.aliases]
    sitelinks = {}
    if entity.title is not None:
        title = entity.title.replace("_", " ")
        sitelinks["enwiki"] = {"site": "enwiki", "title": title, "badges": []}
    if entity.label_ja is not None:
        sitelinks["jawiki"] = {"site": "jawiki", "title": entity.label_ja, "badges": []}
    return {
        "type": "item",
        "id": entity.qid,
        "labels": {key: {"language": key, "value": text} for key, text in labels.items() if text}
        or [],
        "descriptions": [],
        "aliases": {"en": aliases} if aliases else [],
        "claims": _statements(entity, claims) or [],
        "sitelinks": sitelinks or [],
        "lastrevid": 1,
    }


def _statements(entity, claims):
    """Group the statements of an item by property; a date stands among them."""
    grouped = {}
    for number, claim in enumerate(claims):
        name = f"{entity.qid}$00000000-0000-4000-8000-{number:012d}"
        statement = {"mainsnak": _snak(claim), "type": "statement", "id": name, "rank": claim.rank}
        grouped.setdefault(claim.property, []).append(statement)
    if entity.qid.endswith("6"):
        time = {"time": "+1970-01-01T00:00:00Z", "precision": 11, "timezone": 0}
        snak = {"snaktype": "value", "property": "P569"}
        snak |= {"datavalue": {"value": time, "type": "time"}, "datatype": "time"}
        grouped["P569"] = [
            {"mainsnak": snak, "type": "statement", "id": f"{entity.qid}$t", "rank": "normal"}
        ]
    return grouped


def _snak(claim):
    """Write what a statement says."""
    snak = {"snaktype": "value", "property": claim.property}
    if claim.object in {"somevalue", "novalue"}:
        snak["snaktype"] = claim.object
    else:
        value = {"entity-type": "item", "numeric-id": int(claim.object[1:])}
        if claim.form != "numeric":
            value["id"] = claim.object
        snak["datavalue"] = {"value": value, "type": "wikibase-entityid"}
    return snak | {"datatype": "wikibase-item"}


def _property():
    """Write a property, which is no item; its label is that of an item here."""
    labels = {"en": {"language": "en", "value": "Lune"}}
    kind = {"type": "property", "datatype": "wikibase-item", "id": "P17", "labels": labels}
    return kind | {"descriptions": [], "aliases": [], "claims": [], "lastrevid": 1}


def view_dump(tables, month):
    """Write the file of one month."""
    lines = [
        "commons.wikimedia File:Velmora.jpg 77 desktop 3 A3",
        "de.wikipedia Maren_Oskeld 1022 desktop 900000 A900000",
        *(line for entity in tables.entities for line in _view_lines(entity, month)),
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


def _view_lines(entity, month):
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
