"""The readable source tables of the miniature wiki.

All are tab-separated UTF-8 with one header line and without quoting; a cell with several
values separates them with " | ". The last column states the special case of a line.

- `entities.tsv`: Wikidata items with their label, page, aliases and views in two months.
- `claims.tsv`: statements, with their rank; an object is an item, "somevalue" or "novalue"; a
  "numeric" one has a number instead of an id, as in old dumps.
- `redirects.tsv`: redirect pages, their targets and their categories.
- `pages.tsv`: pages that are neither articles of entities nor redirects.
- `templates.tsv`: the template that puts a page into each category.
"""

from types import SimpleNamespace

from scripts.redirectqa_sample.tsv import read_lines, split_values


def read_tables(folder):
    """Read the tables of a folder; each row is a dictionary by column name, in file order."""
    files = ("entities", "claims", "redirects", "pages", "templates")
    lines = {name: read_lines(folder / f"{name}.tsv") for name in files}
    return SimpleNamespace(
        entities=tuple(map(_entity, lines["entities"])),
        claims=tuple(SimpleNamespace(**row) for row in lines["claims"]),
        redirects=tuple(map(_redirect, lines["redirects"])),
        pages=tuple(map(_page, lines["pages"])),
        templates={row["category"]: row["template"] for row in lines["templates"]},
    )


def _entity(row):
    given = {name: row[name] or None for name in ("label", "title", "label_ja", "label_mul")}
    made = {
        "page_id": int(row["page_id"]) if row["page_id"] else None,
        "aliases": split_values(row["aliases"]),
        "views": (int(row["views_november"]), int(row["views_december"])),
    }
    return SimpleNamespace(**(row | given | made))


def _redirect(row):
    numbers = {name: int(row[name]) for name in ("page_id", "namespace", "target_namespace")}
    made = {
        "categories": tuple(map(_category_title, split_values(row["categories"]))),
        "wikitext": row["wikitext"].replace("\\n", "\n") or None,
    }
    return SimpleNamespace(**(row | numbers | made))


def _page(row):
    numbers = {name: int(row[name]) for name in ("page_id", "namespace")}
    return SimpleNamespace(**(row | numbers | {"page_prop": row["page_prop"] or None}))


def _category_title(name):
    """Return the page title of a category; names such as "from birth names" are short forms."""
    full = f"Redirects {name}" if name.startswith(("from ", "to ")) else name
    return full.replace(" ", "_")
