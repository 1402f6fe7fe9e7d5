"""Truncated or damaged Wikimedia dumps are read correctly or raise an error that names the file."""

import bz2
import gzip
import re
import traceback
import warnings
from pathlib import Path

from tests.faults.inputs import Family, damaged

MINI = Path(__file__).resolve().parents[1] / "surface_consistency_build" / "wikimedia" / "mini"


class _Dump(Family):
    """Dumps of one format.

    A truncated dump raises an error, or it has the rows of the complete dump if only blank lines
    or comments are missing. If the format has no end mark, the reader returns the rows before the
    cut and reports that it cannot detect a truncation. A damaged dump is read or raises an error.
    """

    file = ""
    end_mark = b""
    """End mark of the format; empty if it has none."""

    def __init__(self, home):
        super().__init__(home)
        path = MINI / self.file
        self.data = (gzip if path.suffix == ".gz" else bz2).decompress(path.read_bytes())
        self.ends = [found.end() for found in re.finditer(rb"[\n;>]", self.data)][:-1]
        self.rows, _ = self.outcome(path)
        assert self.rows

    def read(self, path, **options):
        """Read a part of the content of a file."""
        raise NotImplementedError

    def outcome(self, path):
        """Return the rows of a file, and whether the reader reports that the end is unmarked."""
        seen = []
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            rows = self.read(path, threads=1, progress=seen.append)
        return rows, any(state.is_end_unmarked for state in seen)

    def attempt(self, rng):
        from surface_consistency.errors import DataError

        cut, pack = rng.random() < 0.7, rng.choice((None, None, gzip.compress, bz2.compress))
        place = rng.choice((rng.choice(self.ends), *(rng.randrange(len(self.data)),) * 2))
        data = self.data[:place] if cut else damaged(self.data, rng)
        if pack is not None:
            data = pack(data)
            if rng.random() < 0.5:
                cut, data = False, damaged(data, rng)
        path = self.home / Path(self.file).with_suffix("").name
        path.write_bytes(data)
        try:
            rows, is_reported = self.outcome(path)
        except DataError as error:
            return None if path.name in str(error) else f"no file is named: {error}"
        except Exception:
            return traceback.format_exc()[-700:]
        if not cut or rows == self.rows or is_reported:
            return None
        if pack is not None and not self.end_mark:
            return None  # A truncated text that is then compressed is a complete file.
        return f"cut to {place} bytes: {len(rows)} of {len(self.rows)} rows"


class Sql(_Dump):
    """A table of MediaWiki."""

    file, end_mark = "enwiki-20260101-page.sql.gz", b"-- Dump completed"

    def read(self, path, **options):
        from surface_consistency_build.wikimedia.sql import read_sql

        batches = read_sql(path, ["page_id", "page_title"], **options)
        return [row for batch in batches for row in batch.to_pylist()]


class Pageviews(_Dump):
    """Pageviews of a month, in a format without an end mark."""

    file = "pageviews-202511-user.bz2"

    def read(self, path, **options):
        from surface_consistency_build.wikimedia.pageviews import read_pageviews

        batches = read_pageviews(path, project="en.wikipedia", **options)
        return [row for batch in batches for row in batch.to_pylist()]


class Pages(_Dump):
    """Pages with their texts, in XML."""

    file, end_mark = "enwiki-20260101-pages-articles.xml.bz2", b"</mediawiki>"

    def read(self, path, **options):
        from surface_consistency_build.wikimedia.pages_xml import read_pages

        return [(page.title, page.text) for page in read_pages(path, namespaces=None, **options)]


class Entities(_Dump):
    """Entities of Wikidata: a JSON array with one entity per line."""

    file, end_mark = "wikidata-20260101-all.json.gz", b"\n]"

    def read(self, path, **options):
        from surface_consistency_build.wikimedia.wikidata import read_entity_batches

        query = {"properties": ["P31"], "language": "en", "wiki": "enwiki", "batch_size": 1}
        batches = read_entity_batches(path, fallback_languages=(), **query, **options)
        tables = ((one.entities, one.aliases, one.claims) for one in batches)
        return [[table.to_pydict() for table in item] for item in tables]
