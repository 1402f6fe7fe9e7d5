"""The committed dumps equal those generated from the tables."""

import bz2
import gzip
import re

import pytest

from tests.surface_consistency_build.mini_wiki.make_mini_wiki import (
    TABLES_FOLDER,
    main,
    render_dumps,
)
from tests.surface_consistency_build.mini_wiki.mariadb_server import find_programs
from tests.surface_consistency_build.mini_wiki.tables import read_tables

_SERVER = re.compile(rb"^-- (?:MariaDB dump|Server version).*$", re.MULTILINE)


def unpacked(name, content):
    return bz2.decompress(content) if name.endswith("bz2") else gzip.decompress(content)


def test_dumps_without_a_database_equal_those_of_the_tables(dumps):
    """The generated files are not edited manually."""
    rendered = dict(render_dumps(read_tables(TABLES_FOLDER)))

    assert len(rendered) == 4
    for name, content in rendered.items():
        assert unpacked(name, (dumps / name).read_bytes()) == unpacked(name, content)


def test_sql_dumps_equal_those_of_mariadb(dumps, tmp_path):
    """Load the tables and dump them again; the bytes are equal if the server is the same."""
    if find_programs() is None:
        pytest.skip("MariaDB is not installed")
    main(["--out", str(tmp_path)])

    paths = sorted(tmp_path.rglob("*.sql.gz"))
    assert len(paths) == 6
    for path in paths:
        kept_path = dumps / path.relative_to(tmp_path)
        fresh, kept = (gzip.decompress(file.read_bytes()) for file in (path, kept_path))
        if _SERVER.findall(fresh) != _SERVER.findall(kept):
            pytest.skip("another version of MariaDB, whose dumps may have another layout")
        assert fresh == kept


def test_dumps_contain_values_that_naive_readers_reject(dumps):
    """Quotes, backslashes, `),(`, line feeds and invalid UTF-8, as written by a server."""
    page = gzip.decompress((dumps / "enwiki-20260101-page.sql.gz").read_bytes())
    links = gzip.decompress((dumps / "enwiki-20260101-categorylinks.sql.gz").read_bytes())

    assert b"'Grel\\'s_\\\"Last\\\"_Lamp'" in page
    assert b"'Back\\\\slash_Lane'" in page
    assert b"'Ode_(1),(2)_and_3'" in page
    assert page.count(b"INSERT INTO") > 1
    assert b",NULL)" in page
    assert b"\\'),(\\\\\\'\\n\\r\t\\0\\Z\xff\xfe\xc3(\xe2\x82" in links
    with pytest.raises(UnicodeDecodeError, match="utf-8"):
        links.decode()
