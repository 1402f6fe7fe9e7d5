"""SQL scripts that load the tables of the wiki into a database."""

import hashlib
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_STAMP = b"20251231235959"
_CATEGORY = 14
_ODD_SORT_KEY = b"'),(\\'\n\r\t\x00\x1a\xff\xfe\xc3(\xe2\x82"


def load_script(tables):
    """Write the script that fills a database with the schema of 2025 and later."""
    names = {name: None for redirect in tables.redirects for name in redirect.categories}
    targets = {name: 5000 + 3 * place for place, name in enumerate((*names, "Hidden_categories"))}
    links = [
        (page, sort_key, "2025-12-31 23:59:59", prefix, kind, 1, targets[category])
        for page, category, sort_key, prefix, kind in _links(tables)
    ]
    # Targets of other namespaces have the titles of categories.
    others = [(4001, 0, "Velmora"), (4002, 4, "Redirects_from_birth_names")]
    others += [(4003, 10, "R_from_birth_name")]
    numbered = [(number, _CATEGORY, name) for name, number in targets.items()]
    statements = [
        _insert("page", _page_rows(tables)),
        _insert("redirect", _redirect_rows(tables)),
        _insert("page_props", _prop_rows(tables)),
        _insert("linktarget", [*others, *numbered]),
        _insert("categorylinks", links),
    ]
    return (_FOLDER / "schema.sql").read_bytes() + b"\n" + b"".join(statements)


def older_load_script(tables):
    """Write the script for only the categories, in the schema before 2025."""
    rows = (
        (page, category, sort_key, "2025-12-31 23:59:59", prefix, b"uca-default-u-kn", kind)
        for page, category, sort_key, prefix, kind in _links(tables)
    )
    schema = (_FOLDER / "schema_older.sql").read_bytes()
    return schema + b"\n" + _insert("categorylinks", rows)


def _page_rows(tables):
    """List articles, redirects and other pages; some columns are NULL in some rows."""
    articles = ((e.page_id, 0, e.title, 0) for e in tables.entities if e.page_id is not None)
    others = ((p.page_id, p.namespace, p.title, 0) for p in tables.pages)
    redirects = ((r.page_id, r.namespace, r.title, 1) for r in tables.redirects)
    for number, namespace, title, is_redirect in (*articles, *others, *redirects):
        updated = None if number % 3 == 0 else _STAMP
        model = None if number % 7 == 0 else b"wikitext"
        random = round((number * 0.618033988749895) % 1, 12)
        yield (
            *(number, namespace, title, is_redirect, 0, random),
            *(_STAMP, updated, 900000 + number, 40 + number % 50, model, None),
        )


def _redirect_rows(tables):
    """List targets; a missing prefix or fragment is NULL and the empty string in turn."""
    for redirect in tables.redirects:
        absent = None if redirect.page_id % 2 else ""
        target = (redirect.page_id, redirect.target_namespace, redirect.target)
        yield *target, redirect.interwiki or absent, redirect.fragment or absent
    yield 2999, 0, "Velmora", None, None


def _prop_rows(tables):
    """List the items of pages, and properties that are not items."""
    pages = {(page.namespace, page.title): page.page_id for page in tables.pages}
    for entity in tables.entities:
        number = entity.page_id
        if number is None and (entity.title or "").startswith("Category:"):
            number = pages[_CATEGORY, (entity.title or "").removeprefix("Category:")]
        if number is not None:
            yield number, "wikibase_item", entity.qid, None
            if number % 5 == 0:
                yield number, "defaultsort", (entity.title or "").replace("_", " "), None
                yield number, "page_image_free", "It's_a_\\_(map),_1.png", None
    for page in tables.pages:
        if page.page_prop is not None:
            yield page.page_id, page.page_prop, "", None
    yield 1001, "wikibase-badge-Q17437796", "1", 1.0


def _links(tables):
    """List page, category, sort key, prefix and type of page; some keys are not UTF-8."""
    for redirect in tables.redirects:
        title, number = redirect.title.encode(), redirect.page_id
        key = hashlib.sha256(title).digest()[: 8 + number % 24]
        key = _ODD_SORT_KEY + title[:100] if number % 10 == 1 else key
        prefix = b"O'sk\xc3" if number % 10 == 4 else b""
        for name in redirect.categories:
            yield number, name, key, prefix, "page"
    yield 3007, "Hidden_categories", b"REDIRECTS FROM BIRTH NAMES", b"", "subcat"
    yield 3005, "Redirects_from_birth_names", _ODD_SORT_KEY[::-1], b"", "page"


def _insert(table, rows):
    """Return one INSERT statement."""
    lines = ",\n".join(f"({','.join(map(_literal, row))})" for row in rows)
    return f"INSERT INTO `{table}` VALUES\n{lines};\n".encode()


def _literal(cell):
    """Return one value as an SQL literal; texts are written as bytes."""
    if cell is None:
        return "NULL"
    if isinstance(cell, int | float):
        return repr(cell)
    content = cell.encode() if isinstance(cell, str) else cell
    return f"x'{content.hex()}'"
