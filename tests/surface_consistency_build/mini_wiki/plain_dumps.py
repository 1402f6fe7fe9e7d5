"""Dumps of the wiki that need no database: XML pages, Wikidata items and pageviews."""

import hashlib
import json
from xml.sax.saxutils import escape

_NEVER_NAMED = {"Karl_Storm", "Faint_Echo"}
_WITHOUT_ID = {"Ghost_Quay"}
_NAMESPACES = {0: "", 1: "Talk", 2: "User", 3: "User talk", 4: "Wikipedia", 5: "Wikipedia talk"}
_NAMESPACES |= {10: "Template", 11: "Template talk", 14: "Category", 15: "Category talk"}
_HEAD = """\
<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>enwiki</dbname>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <generator>MediaWiki 1.46.0-wmf.7</generator>
    <case>first-letter</case>
    <namespaces>
{names}    </namespaces>
  </siteinfo>
"""
_PAGE = """\
  <page>
    <title>{full_title}</title>
    <ns>{namespace}</ns>
    <id>{page_id}</id>
{redirect}    <revision>
      <id>{revision}</id>
      <timestamp>2025-12-31T23:59:59Z</timestamp>
      <contributor>
        <username>Lamp</username>
        <id>5</id>
      </contributor>
      <comment>about [[{title}]]</comment>
      <origin>{revision}</origin>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text bytes="{n_bytes}" sha1="{digest}" xml:space="preserve">{text}</text>
      <sha1>{digest}</sha1>
    </revision>
  </page>
"""


def xml_parts(tables):
    """Write the export in three parts, which are compressed separately."""
    ends = {key: f">{name}</namespace>" if name else " />" for key, name in _NAMESPACES.items()}
    names = (f'      <namespace key="{k}" case="first-letter"{end}\n' for k, end in ends.items())
    pages = list(_pages(tables))
    half = len(pages) // 2
    head = _HEAD.format(names="".join(names))
    parts = (head + "".join(pages[:half]), "".join(pages[half:]), "</mediawiki>\n")
    return [part.encode() for part in parts]


def _pages(tables):
    """Write articles, redirects and other pages by page id."""
    for entity in tables.entities:
        if entity.title is not None and entity.page_id is not None:
            note = "is an invention.\n\n{{R from birth name}} says a note.\n"
            yield _page(entity, f"'''{entity.label}''' {note}")
    for redirect in tables.redirects:
        target = _full_title(redirect.target_namespace, redirect.target)
        if redirect.interwiki:
            target = f"{redirect.interwiki}:{redirect.target}".replace("_", " ")
        command = ("#REDIRECT ", "#redirect", "#Redirect: ")[redirect.page_id % 3]
        fragment = f"#{redirect.fragment}" if redirect.fragment else ""
        templates = redirect.wikitext or "\n".join(
            f"{{{{{tables.templates[name]}}}}}" for name in redirect.categories
        )
        text = f"{command}[[{target}{fragment}]]\n\n{templates}".rstrip() + "\n"
        yield _page(redirect, text, f'    <redirect title="{_quoted(target)}" />\n')
    for page in tables.pages:
        is_choice = page.page_prop == "disambiguation"
        yield _page(page, "{{Disambiguation}}\n" if is_choice else "A page.\n")


def _full_title(namespace, title):
    """Return a title with its namespace and with spaces."""
    prefix = _NAMESPACES[namespace]
    return (f"{prefix}:{title}" if prefix else title).replace("_", " ")


def _page(page, text, redirect=""):
    """Write one page with one revision."""
    namespace = getattr(page, "namespace", 0)
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:31]
    full_title, title = _quoted(_full_title(namespace, page.title)), _quoted(page.title)
    place = {"namespace": namespace, "page_id": page.page_id, "revision": 900000 + page.page_id}
    place |= {"full_title": full_title, "title": title, "n_bytes": len(text.encode())}
    return _PAGE.format(redirect=redirect, digest=digest, text=_quoted(text), **place)


def _quoted(text):
    """Escape a text, including quotes, in the same way as MediaWiki."""
    return escape(text, {'"': "&quot;"})


def wikidata_dump(tables):
    """Write the dump as a JSON array with one entity per line."""
    entities = [_item(entity, tables) for entity in tables.entities]
    # A property is not an item; it has the label of an item.
    kind = {"type": "property", "datatype": "wikibase-item", "id": "P17"}
    kind |= {"labels": {"en": {"language": "en", "value": "Lune"}}}
    entities.insert(30, kind | {"descriptions": [], "aliases": [], "claims": [], "lastrevid": 1})
    lines = [
        json.dumps(entity, ensure_ascii=number % 2 == 0, separators=(",", ":"))
        for number, entity in enumerate(entities)
    ]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _item(entity, tables):
    """Write one item; empty maps are written as empty arrays, as in PHP."""
    labels = {"en": entity.label, "ja": entity.label_ja, "mul": entity.label_mul}
    labels = {key: {"language": key, "value": text} for key, text in labels.items() if text}
    aliases = [{"language": "en", "value": alias} for alias in entity.aliases]
    titles = {"enwiki": (entity.title or "").replace("_", " "), "jawiki": entity.label_ja}
    links = {
        key: {"site": key, "title": text, "badges": []} for key, text in titles.items() if text
    }
    item = {"type": "item", "id": entity.qid, "labels": labels or [], "descriptions": []}
    item |= {"aliases": {"en": aliases} if aliases else []}
    item |= {"claims": _statements(entity, tables) or [], "sitelinks": links or []}
    return item | {"lastrevid": 1}


def _statements(entity, tables):
    """Group the statements of an item by property; some items have a date."""
    grouped = {}
    claims = [claim for claim in tables.claims if claim.subject == entity.qid]
    for number, claim in enumerate(claims):
        snak = {"snaktype": "value", "property": claim.property}
        if claim.object in {"somevalue", "novalue"}:
            snak["snaktype"] = claim.object
        else:
            value = {"entity-type": "item", "numeric-id": int(claim.object[1:])}
            value |= {} if claim.form == "numeric" else {"id": claim.object}
            snak["datavalue"] = {"value": value, "type": "wikibase-entityid"}
        name = f"{entity.qid}$00000000-0000-4000-8000-{number:012d}"
        statement = _statement(snak | {"datatype": "wikibase-item"}, name, claim.rank)
        grouped.setdefault(claim.property, []).append(statement)
    if entity.qid.endswith("6"):
        time = {"time": "+1970-01-01T00:00:00Z", "precision": 11, "timezone": 0}
        snak = {"snaktype": "value", "property": "P569"}
        snak |= {"datavalue": {"value": time, "type": "time"}, "datatype": "time"}
        grouped["P569"] = [_statement(snak, f"{entity.qid}$t", "normal")]
    return grouped


def _statement(snak, name, rank):
    """Write one statement."""
    return {"mainsnak": snak, "type": "statement", "id": name, "rank": rank}


def view_dump(tables, month):
    """Write the file of one month; the views of an article are split by access method."""
    lines = ["commons.wikimedia File:Velmora.jpg 77 desktop 3 A3"]
    lines += ["de.wikipedia Maren_Oskeld 1022 desktop 900000 A900000"]
    for entity in tables.entities:
        title, views = entity.title, entity.views[month]
        is_named = title is not None and entity.page_id is not None and title not in _NEVER_NAMED
        if not is_named or (views == 0 and entity.views != (0, 0)):
            continue
        number = "null" if title in _WITHOUT_ID else entity.page_id
        desktop, mobile = views - views // 3, views // 3
        lines += [f"en.wikipedia {title} {number} desktop {desktop} A{desktop}"]
        lines += [f"en.wikipedia {title} {number} mobile-web {mobile} B{mobile}"] * (mobile > 0)
    for redirect in tables.redirects:
        if redirect.namespace == 0 and not redirect.interwiki:
            lines += [f"en.wikipedia {redirect.title} {redirect.page_id} desktop 2 A1B1"]
    lines += ["en.wikipedia Special:Search null desktop 5000 A5000"]
    lines += ["en.wikipedia - null mobile-app 12 B12"]
    lines += ["en.wikipedia.m Olin_Marsh 1031 mobile-web 55 A55"]
    lines += ["en.wikibooks Olin_Marsh 1031 desktop 44 A44"]
    return "".join(f"{line}\n" for line in lines).encode()
