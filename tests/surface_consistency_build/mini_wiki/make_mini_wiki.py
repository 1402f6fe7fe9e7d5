"""Write the miniature wiki as dumps, with a MariaDB server.

This requires Debian's `mariadb-server`, which is started in a temporary folder and stopped at the
end. Run it from the root of the repository after every change of a table:

    python -m tests.surface_consistency_build.mini_wiki.make_mini_wiki

The output has the same bytes for the same tables and the same version of MariaDB.
"""

import argparse
import bz2
import gzip
import tempfile
from pathlib import Path

from tests.surface_consistency_build.mini_wiki.mariadb_server import running_mariadb
from tests.surface_consistency_build.mini_wiki.plain_dumps import (
    view_dump,
    wikidata_dump,
    xml_parts,
)
from tests.surface_consistency_build.mini_wiki.sql_rows import load_script, older_load_script
from tests.surface_consistency_build.mini_wiki.tables import read_tables

TABLES_FOLDER = Path(__file__).resolve().parent
"""Folder of the tables."""

DUMPS_FOLDER = TABLES_FOLDER.parent / "wikimedia" / "mini"
"""Folder of the dumps."""

DATE = "20260101"
"""Date in the names of the dumps."""

OLDER_DATE = "20240101"
"""Date in the name of the dump of categories in the schema before 2025."""

_TABLES = ("page", "redirect", "page_props", "linktarget", "categorylinks")
_DUMP_OPTIONS = ("--skip-dump-date", "--net-buffer-length=4096")


def render_dumps(tables):
    """Write the files that do not require a database."""
    parts = map(bz2.compress, xml_parts(tables))
    yield f"enwiki-{DATE}-pages-articles.xml.bz2", b"".join(parts)
    yield f"wikidata-{DATE}-all.json.gz", _gzip(wikidata_dump(tables))
    for place, month in enumerate(("202511", "202512")):
        yield f"pageviews-{month}-user.bz2", bz2.compress(view_dump(tables, place))


def render_sql_dumps(tables, server):
    """Load the tables into a database and dump them, in both schemas of the categories."""
    scripts = {"enwiki": load_script(tables), "olderwiki": older_load_script(tables)}
    for database, script in scripts.items():
        start = f"CREATE DATABASE {database}; USE {database}; SET time_zone='+00:00';\n"
        server.run(start.encode() + script)
    for table in _TABLES:
        yield f"enwiki-{DATE}-{table}.sql.gz", _gzip(server.dump("enwiki", table, *_DUMP_OPTIONS))
    older = server.dump("olderwiki", "categorylinks", *_DUMP_OPTIONS)
    older = older.replace(b"olderwiki", b"enwiki")
    yield f"older/enwiki-{OLDER_DATE}-categorylinks.sql.gz", _gzip(older)


def main(arguments=None):
    """Write the dumps."""
    parser = argparse.ArgumentParser(description="Write the miniature wiki as dumps.")
    parser.add_argument("--out", type=Path, default=DUMPS_FOLDER, help="folder of the dumps")
    options = parser.parse_args(arguments)
    tables = read_tables(TABLES_FOLDER)
    with tempfile.TemporaryDirectory() as folder, running_mariadb(Path(folder)) as server:
        files = [*render_dumps(tables), *render_sql_dumps(tables, server)]
    for name, content in files:
        path = options.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _gzip(content):
    """Compress without a time stamp."""
    return gzip.compress(content, mtime=0)


if __name__ == "__main__":
    main()
