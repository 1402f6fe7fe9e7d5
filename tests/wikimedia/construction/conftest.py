from collections.abc import Callable
from pathlib import Path

import pytest

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
    "views": "title VARCHAR, views BIGINT",
    "page_views": "title VARCHAR, views BIGINT",
    "articles": "entity BIGINT, title VARCHAR, surface VARCHAR, label VARCHAR, views BIGINT",
    "shared_names": "name VARCHAR",
    "candidates": "triplet_id BIGINT, subject BIGINT, property BIGINT, object BIGINT",
    "sample": "triplet_id BIGINT, subject BIGINT, property BIGINT, object BIGINT",
    "resolved": "page_id BIGINT, title VARCHAR, surface VARCHAR, entity BIGINT, hops INTEGER",
    "kinds": "page_id BIGINT, title VARCHAR, surface VARCHAR, entity BIGINT, labels VARCHAR[]",
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
                marks = ", ".join("?" * len(rows[0]))
                self.connection.executemany(
                    f"INSERT INTO {name} VALUES ({marks})", [list(row) for row in rows]
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
def mini() -> Path:
    """Dumps of a wiki of sixty invented entities."""
    folder = Path(__file__).resolve().parents[1] / "mini"
    if not (folder / "enwiki-20260101-page.sql.gz").is_file():
        pytest.skip("the dumps of the mini wiki are not there")
    return folder


def lost(counts) -> dict[str, int]:
    """Rows that went, by reason."""
    return {count.reason: count.removed for count in counts if count.reason}


@pytest.fixture(name="lost")
def lost_fixture() -> Callable:
    return lost
