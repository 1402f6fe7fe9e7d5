"""Truncated or damaged dumps of Wikimedia: correct rows, or an error that names the file."""

import bz2
import gzip
import re
import traceback
import warnings
from pathlib import Path

from tests.faults.inputs import Family, damaged

MINI = Path(__file__).resolve().parents[1] / "surface_consistency_build" / "wikimedia" / "mini"


class _Dump(Family):
    """Files of one kind.

    A cut file is refused, or its rows are those of the whole. Where only blank lines or comments
    are missing it is whole. Where a format marks no end, rows before the cut are read and the
    caller gets an error. Damaged files are read correctly or rejected.
    """

    file = ""
    whole_after = b""
    """What must be left of a file that may be read as whole."""

    def __init__(self, home):
        super().__init__(home)
        path = MINI / self.file
        self.data = (gzip if path.suffix == ".gz" else bz2).decompress(path.read_bytes())
        self.ends = [found.end() for found in re.finditer(rb"[\n;>]", self.data)][:-1]
        self.rows, _ = self.outcome(path)
        assert self.rows

    def read(self, path, **options):
        """Read some of what the file holds."""
        raise NotImplementedError

    def outcome(self, path):
        """Read a file: its rows, and whether it is told that nobody can tell its end."""
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
            rows, is_told = self.outcome(path)
        except DataError as error:
            return None if path.name in str(error) else f"no file is named: {error}"
        except Exception:
            return traceback.format_exc()[-700:]
        if not cut or rows == self.rows or is_told:
            return None
        if pack is not None and not self.whole_after:
            return None  # Whoever packs half a file whose format marks no end makes a whole one.
        return f"cut to {place} bytes: {len(rows)} of {len(self.rows)} rows"


class Sql(_Dump):
    """A table of MediaWiki."""

    file, whole_after = "enwiki-20260101-page.sql.gz", b"-- Dump completed"

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

    file, whole_after = "enwiki-20260101-pages-articles.xml.bz2", b"</mediawiki>"

    def read(self, path, **options):
        from surface_consistency_build.wikimedia.pages_xml import read_pages

        return [(page.title, page.text) for page in read_pages(path, namespaces=None, **options)]


class Entities(_Dump):
    """Entities of Wikidata, an array with one per line."""

    file, whole_after = "wikidata-20260101-all.json.gz", b"\n]"

    def read(self, path, **options):
        from surface_consistency_build.wikimedia.wikidata import read_entity_batches

        asked = {"properties": ["P31"], "language": "en", "wiki": "enwiki", "batch_size": 1}
        batches = read_entity_batches(path, fallback_languages=(), **asked, **options)
        tables = ((one.entities, one.aliases, one.claims) for one in batches)
        return [[table.to_pydict() for table in item] for item in tables]
