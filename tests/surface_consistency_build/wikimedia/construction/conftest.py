import json
from pathlib import Path

import pytest
from surface_consistency_build.wikimedia.construction import build_redirectqa, find_dumps

from tests.surface_consistency_build.wikimedia import mini_ja

duckdb = pytest.importorskip("duckdb")

COLUMNS = {
    "pages": "page_id BIGINT, title VARCHAR, surface VARCHAR, is_redirect BOOLEAN",
    "redirects": "page_id BIGINT, target VARCHAR, target_namespace BIGINT, is_interwiki BOOLEAN, "
    "is_section BOOLEAN",
    "page_props": "page_id BIGINT, entity BIGINT, is_disambiguation BOOLEAN",
    "categories": "page_id BIGINT, label VARCHAR",
    "entities": "id BIGINT, label VARCHAR, title VARCHAR",
    "aliases": "id BIGINT, alias VARCHAR",
    "claims": "subject BIGINT, property BIGINT, object BIGINT",
    "facts": "subject BIGINT, property BIGINT, object BIGINT",
    "page_views": "title VARCHAR, views BIGINT",
    "articles": "entity BIGINT, title VARCHAR, surface VARCHAR, label VARCHAR, views BIGINT",
    "candidates": "triplet_id BIGINT, subject BIGINT, property BIGINT, object BIGINT",
    "sample": "triplet_id BIGINT, subject BIGINT, property BIGINT, object BIGINT",
    "resolved": "page_id BIGINT, title VARCHAR, surface VARCHAR, entity BIGINT, hops INTEGER",
    "surfaces": "page_id BIGINT, title VARCHAR, surface VARCHAR, entity BIGINT, labels VARCHAR[]",
    "instances": "triplet_id BIGINT, page_id BIGINT, title VARCHAR, labels VARCHAR[]",
    "balanced": "triplet_id BIGINT, page_id BIGINT",
}


class Tables:
    """A database with given tables."""

    def __init__(self, connection):
        self.connection = connection

    def fill(self, **tables):
        """Make tables, each from its rows."""
        for name, rows in tables.items():
            self.connection.execute(f"CREATE OR REPLACE TABLE {name} ({COLUMNS[name]})")
            if rows:
                row = f"({', '.join('?' * len(rows[0]))})"
                self.connection.execute(
                    f"INSERT INTO {name} VALUES {', '.join([row] * len(rows))}",
                    [value for cells in rows for value in cells],
                )

    def rows(self, table, columns="*"):
        """Read a table, sorted."""
        found = self.connection.execute(f"SELECT {columns} FROM {table}").fetchall()
        return sorted(found, key=repr)


@pytest.fixture
def tables():
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        yield Tables(connection)


@pytest.fixture(scope="session")
def mini():
    """Dumps of a wiki of sixty invented entities."""
    return Path(__file__).resolve().parents[1] / "mini"


@pytest.fixture(scope="session")
def dumps(mini):
    return find_dumps(mini, "enwiki").files


@pytest.fixture(scope="session")
def built(dumps, tmp_path_factory):
    return build_redirectqa(dumps, tmp_path_factory.mktemp("work"), config="enwiki", threads=1)


@pytest.fixture
def lost():
    """Return the numbers of removed rows by reason."""
    return lambda counts: {count.reason: count.removed for count in counts if count.reason}


def write_table(folder, name, rows):
    """Write a small SQL dump, with one INSERT per row."""
    lines = [f"CREATE TABLE `{name}` ({mini_ja.COLUMNS[name]});\n".encode()]
    lines += (
        b"INSERT INTO `%b` VALUES %b;\n" % (name.encode(), mini_ja.values(row)) for row in rows
    )
    (folder / f"enwiki-20260101-{name}.sql").write_bytes(b"".join(lines))


def entity(number, label, title=None, born=()):
    """Return an item with its places of birth."""
    return mini_ja.item(number, "en", label, title, {"P19": born} if born else {})


class TinyWiki:
    """Dumps of a few pages about Ann Lee, born in Lyon, with the redirect "AL".

    Each part can be replaced.
    """

    entity = staticmethod(entity)
    pages = ((1, 0, "Ann_Lee", 0), (2, 0, "Lyon", 0), (3, 0, "AL", 1))
    redirects = ((3, 0, "Ann_Lee", None, ""),)
    page_props = ()
    links = ((3, 1),)
    entities = (entity(10, "Ann Lee", "Ann Lee", (20,)), entity(20, "Lyon", "Lyon"))

    def __init__(self, folder):
        self.folder = folder

    def write(self, **parts):
        """Write the dumps."""
        self.folder.mkdir(exist_ok=True)
        part = {name: parts.get(name, getattr(TinyWiki, name)) for name in TinyWiki.__dict__}
        write_table(self.folder, "page", part["pages"])
        write_table(self.folder, "redirect", part["redirects"])
        write_table(self.folder, "page_props", part["page_props"])
        write_table(self.folder, "linktarget", [(1, 14, "Redirects_from_short_names")])
        links = [(page, "page", target) for page, target in part["links"]]
        write_table(self.folder, "categorylinks", links)
        lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in part["entities"])
        (self.folder / "wikidata-20260101-all.json").write_text(f"[\n{lines}\n]\n", "utf-8")
        views = [
            f"en.wikipedia {title} {page} desktop 5 A5\n" for page, _, title, _ in part["pages"]
        ]
        (self.folder / "pageviews-202401-user").write_text("".join(views), "utf-8")

    def build(self, **options):
        """Build from the existing files."""
        plan = find_dumps(self.folder, "enwiki")
        work = self.folder.with_name("work")
        return build_redirectqa(plan.files, work, config=plan.config, threads=1, **options)

    def surfaces(self, **parts):
        """Write, build, and return the surfaces and answers of the questions."""
        self.write(**parts)
        return [
            (row.subject_surface, row.object_aliases)
            for row in self.build().rows()
            if row.template == "original"
        ]


@pytest.fixture
def tiny(tmp_path):
    return TinyWiki(tmp_path / "dumps")
