"""A private MariaDB server for the tests of SQL dumps."""

import pytest

from dataset_builders.mini_wiki.mariadb_server import find_programs, running_mariadb


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory):
    """A running server; tests that need it skip where MariaDB is not installed."""
    if find_programs() is None:
        pytest.skip("MariaDB is not installed; on Debian: apt-get install mariadb-server")
    with running_mariadb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server
