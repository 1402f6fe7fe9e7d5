"""Exports, and a private MariaDB server for the tests of SQL dumps."""

import pytest

from tests.surface_consistency_build.mini_wiki.mariadb_server import find_programs, running_mariadb
from tests.surface_consistency_build.wikimedia.made_exports import export_xml, page_xml


@pytest.fixture
def write_export(tmp_path):
    """A function that writes pages, given as `page_xml` arguments, to an export."""

    def write(*pages, **options):
        path = tmp_path / "testwiki-pages-articles.xml"
        texts = (page_xml(**page) for page in pages)
        path.write_text(export_xml(*texts, **options), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory):
    """A running server; tests that require it are skipped if MariaDB is not installed."""
    if find_programs() is None:
        pytest.skip("MariaDB is not installed; on Debian: apt-get install mariadb-server")
    with running_mariadb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server
