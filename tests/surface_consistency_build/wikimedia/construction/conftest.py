import json
from pathlib import Path

import pytest
from surface_consistency_build.wikimedia.construction import build_redirectqa, find_dumps

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
    """A database with tables made by hand."""

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


def lost(counts):
    """Rows that went, by reason."""
    return {count.reason: count.removed for count in counts if count.reason}


@pytest.fixture(name="lost")
def lost_fixture():
    return lost


COLUMNS_OF_DUMPS = {
    "page": "`page_id` int(8) unsigned,`page_namespace` int(11),`page_title` varbinary(255),"
    "`page_is_redirect` tinyint(1)",
    "redirect": "`rd_from` int(8) unsigned,`rd_namespace` int(11),`rd_title` varbinary(255),"
    "`rd_interwiki` varbinary(32),`rd_fragment` varbinary(255)",
    "page_props": "`pp_page` int(8),`pp_propname` varbinary(60),`pp_value` blob",
    "linktarget": "`lt_id` bigint(20) unsigned,`lt_namespace` int(11),`lt_title` varbinary(255)",
    "categorylinks": "`cl_from` int(8) unsigned,`cl_target_id` bigint(20) unsigned",
}


def _literal(value):
    if value is None or isinstance(value, int):
        return "NULL" if value is None else str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_table(folder, name, rows):
    """Write a small SQL dump, one INSERT a row."""
    inserts = (f"INSERT INTO `{name}` VALUES ({','.join(map(_literal, row))});\n" for row in rows)
    text = f"CREATE TABLE `{name}` ({COLUMNS_OF_DUMPS[name]});\n{''.join(inserts)}"
    (folder / f"enwiki-20260101-{name}.sql").write_text(text, encoding="utf-8")


def entity(number, label, title=None, born=()):
    """An item, and where it was born."""
    claims = [
        {
            "mainsnak": {"snaktype": "value", "datavalue": {"value": {"id": f"Q{place}"}}},
            "rank": "normal",
        }
        for place in born
    ]
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {} if label is None else {"en": {"language": "en", "value": label}},
        "claims": {"P19": claims} if claims else [],
        "sitelinks": {"enwiki": {"site": "enwiki", "title": title}} if title else {},
    }


class TinyWiki:
    """Dumps of a few pages: Ann Lee, born in Lyon, with the redirect "AL"; each part may differ."""

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
        write_table(self.folder, "categorylinks", part["links"])
        lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in part["entities"])
        (self.folder / "wikidata-20260101-all.json").write_text(f"[\n{lines}\n]\n", "utf-8")
        views = (
            f"en.wikipedia {title} {page} desktop 5 A5\n" for page, _, title, _ in part["pages"]
        )
        (self.folder / "pageviews-202401-user").write_text("".join(views), "utf-8")

    def build(self, **options):
        """Build from what is there."""
        plan = find_dumps(self.folder, "enwiki")
        work = self.folder.with_name("work")
        return build_redirectqa(plan.files, work, config=plan.config, threads=1, **options)

    def surfaces(self, **parts):
        """Write, build, and read which surface is asked for which answers."""
        self.write(**parts)
        return [
            (row.subject_surface, row.object_aliases)
            for row in self.build().rows()
            if row.template == "original"
        ]


@pytest.fixture
def tiny(tmp_path):
    return TinyWiki(tmp_path / "dumps")
