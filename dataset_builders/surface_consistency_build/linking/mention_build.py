"""What names link to in a dump of a wiki: `build mentions`."""

import os
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from surface_consistency.errors import (
    DataError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)
from surface_consistency.runs.files import staged, write_json, write_parquet
from surface_consistency.runs.job import Job, file_stamp
from surface_consistency.schemas.settings import Settings
from surface_consistency.text import counted_name
from surface_consistency_build.counting.runs import CorpusSettings, CountRun
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.tasks import NameSettings, NameTask, State
from surface_consistency_build.counting.texts import offsets_of
from surface_consistency_build.linking.linkers import LINKED_FROM
from surface_consistency_build.linking.mentions import MENTION_FILE
from surface_consistency_build.wikimedia.anchors import LinkedPage, read_linked_pages
from surface_consistency_build.wikimedia.construction.database import open_database, quoted
from surface_consistency_build.wikimedia.sql import read_sql
from surface_consistency_build.wikimedia.streams import ProgressHook

if TYPE_CHECKING:
    import duckdb

_PART_ROWS: Final = 500_000
_PART_BYTES: Final = 64 << 20
_TEXTS_A_GROUP: Final = 2_000
_PLANNED: Final = {"min_links", "boundary", "partial", "allow_truncated"}


class MentionSettings(Settings):
    """How the mention table is made."""

    page_props: Path | None = None
    """The page_props table (SQL) of the same dump, for Wikidata items and disambiguation pages;
    without it entities are known by their titles, and disambiguation pages count as entities."""

    min_links: int = Field(default=1, ge=1)
    """Links that a name must have to an entity; titles and redirects always stay."""

    boundary: str = "word"
    """What may stand beside a name where pages that hold it are counted: word, longest, script or
    substring."""

    partial: bool = False
    """Whether pages that the dump lacks count as entities, for a part or sample of a dump."""

    allow_truncated: bool = False
    """Whether a dump that ends early counts as far as it goes."""

    memory_limit: str = "2GB"
    """Memory for DuckDB; beyond it spills to disk."""

    workers: int | None = Field(default=None, ge=1)
    """Processes that count names at most; one a core by default."""

    keep_texts: bool = False
    """Whether the pages' plain text (reading/texts) is kept, a corpus of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionsBuilt:
    """What `build_mentions` wrote."""

    folder: Path
    """The folder; `MentionTable.read` reads it."""

    counted: Mapping[str, int]
    """Pages, links, names and entities."""


def build_mentions(
    dumps: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    settings: MentionSettings | None = None,
    *,
    progress: ProgressHook | None = None,
) -> MentionsBuilt:
    """Make the mention table of a wiki: what its names link to, and how often they are links.

    The dumps are read once, links and plain text are set down as Parquet, the pages that hold each
    name are counted by `CountRun`, and DuckDB adds it all up; a stopped build goes on from what is
    finished.

    Args:
        dumps: A `pages-articles` export, packed or not; all its files where it has several.
        out: The folder to write.
        settings: How; the defaults by default.
        progress: Called as a dump is read.

    Returns:
        What was written: mentions.parquet (surface, entity_id, title, n_links, is_title,
        is_redirect, and of the name n_link_documents and n_surface_documents), and the pages that
        link to each entity, for `CoherenceLinker`. An entity's id is its Wikidata item, or
        "name:TITLE".

    Raises:
        SourceNotFoundError: If a file is not there.
        DataError: If the dump is damaged or no export.
        RunError: If the folder was begun with another dump or other settings.
        DataError: If the folder holds other things, or the dump holds no article with a link.
        MissingDependencyError: If duckdb is not installed.
    """
    chosen = settings or MentionSettings()
    job = MentionJob.begin(out, "mentions", lambda _: _make_plan([*map(Path, dumps)], chosen))
    folder = job.folder
    with job.locked(folder / ".mentions.lock"):
        # Another process may have finished it meanwhile.
        job = MentionJob.open(folder)
        if job.manifest["result"] is None:
            reading = folder / "reading"
            if not (reading / "done.json").is_file():
                _read_dumps([*map(Path, dumps)], reading, chosen, progress)
            _count_pages(folder, chosen)
            job.finish(_join(folder, chosen))
        if (folder / "reading" / "done.json").is_file():
            _tidy(folder, keep_texts=chosen.keep_texts)
    return MentionsBuilt(folder=folder, counted=job.manifest["result"])


class MentionJob(Job):
    """A build of a mention table; its steps leave files by which a stopped one goes on."""

    noun = "mention table"
    kinds = ("mentions",)
    own_names = ("reading", "counts", "spill", ".mentions.lock", MENTION_FILE, *LINKED_FROM)
    begun_by = "`surface-consistency build mentions DUMP --out DIR`"


def _make_plan(dumps: Sequence[Path], settings: MentionSettings) -> dict[str, Any]:
    """Write down what the table depends on."""
    if not dumps:
        raise DataError("give at least one dump: a pages-articles export")
    files = {f"dump {number}": path for number, path in enumerate(dumps, start=1)}
    if settings.page_props is not None:
        files["page_props"] = settings.page_props
    for name, path in files.items():
        if not path.is_file():
            raise SourceNotFoundError(f"there is no file {path} ({name})")
    stamps = {name: file_stamp(path) for name, path in files.items()}
    return stamps | settings.model_dump(mode="json", include=_PLANNED)


def _tidy(folder: Path, *, keep_texts: bool) -> None:
    """Remove what was only needed on the way; the mark of the reading goes last."""
    reading, mark = folder / "reading", folder / "reading" / "done.json"
    for place in (folder / "counts", *reading.iterdir()):
        if place.is_dir() and not (place.name == "texts" and keep_texts):
            shutil.rmtree(place, ignore_errors=True)
        elif place.is_file() and place != mark:
            place.unlink()
    mark.unlink()
    if not keep_texts:
        reading.rmdir()


@dataclass(slots=True)
class _Columns:
    """Rows that wait to be written, a part at a time."""

    folder: Path
    names: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    n_bytes: int = 0
    n_parts: int = 0

    def flush(self, *, group: int = 65_536) -> None:
        """Write the rows that wait."""
        if not self.rows:
            return
        columns = dict(zip(self.names, map(list, zip(*self.rows, strict=True)), strict=True))
        path = self.folder / f"{self.n_parts:05}.parquet"
        write_parquet(path, pa.table(columns), row_group_size=group)
        self.rows, self.n_bytes, self.n_parts = [], 0, self.n_parts + 1


def _read_dumps(
    dumps: Sequence[Path], reading: Path, settings: MentionSettings, progress: ProgressHook | None
) -> None:
    """Set down pages, redirects, links and plain text of a dump."""
    shutil.rmtree(reading, ignore_errors=True)
    places = {name: reading / name for name in ("pages", "redirects", "links", "texts")}
    for place in places.values():
        place.mkdir(parents=True)
    pages = _Columns(places["pages"], ("page_id", "title"))
    redirects = _Columns(places["redirects"], ("title", "target"))
    links = _Columns(places["links"], ("page_id", "surface", "target", "n"))
    texts = _Columns(places["texts"], ("page_id", "text"))
    n_links = 0
    for page in chain.from_iterable(
        read_linked_pages(dump, allow_truncated=settings.allow_truncated, progress=progress)
        for dump in dumps
    ):
        if page.redirect is not None:
            redirects.rows.append((page.title, page.redirect))
        else:
            pages.rows.append((page.page_id, page.title))
            texts.rows.append((page.page_id, page.text))
            texts.n_bytes += len(page.text)
            counted = _links_of(page)
            n_links += sum(counted.values())
            links.rows += [(page.page_id, *pair, n) for pair, n in counted.items()]
        for columns in (pages, redirects, links):
            if len(columns.rows) >= _PART_ROWS:
                columns.flush()
        if texts.n_bytes >= _PART_BYTES:
            texts.flush(group=_TEXTS_A_GROUP)
    texts.flush(group=_TEXTS_A_GROUP)
    for columns in (pages, redirects, links):
        columns.flush()
    if not n_links:
        raise DataError(
            f"{dumps[0]} holds no article with a link; give a pages-articles export of a wiki"
        )
    write_json(reading / "done.json", {"links": n_links})


def _links_of(page: LinkedPage) -> Counter[tuple[str, str]]:
    """Count the links of a page by name and target."""
    counted: Counter[tuple[str, str]] = Counter()
    for start, stop, target in page.links:
        name = _name(page.text[start:stop])
        if name is not None:
            counted[name, target] += 1
    return counted


def _name(text: str) -> str | None:
    """Bring a name into the form that is counted; None for what cannot be."""
    name = counted_name(text)
    return name if name and name.isprintable() else None


class _PageTask(NameTask):
    """Names whose pages are counted, without the tables of a study."""

    def write(self, folder: Path, totals: State) -> dict[str, Any]:
        """Write how many pages hold each name."""
        names = {"surface": self.table.keys.to_arrow().cast("string"), "n": totals["n_documents"]}
        write_parquet(folder / "names.parquet", pa.table(names))
        return {"n_names": self.table.n_keys}


def _count_pages(folder: Path, settings: MentionSettings) -> None:
    """Count the pages that hold each name."""
    counts = folder / "counts"
    if (counts / "names.parquet").is_file():
        return
    reading = folder / "reading"
    names = reading / "names.parquet"
    with open_database(folder, memory_limit=settings.memory_limit) as database:
        _open_tables(database, reading)
        database.execute(
            "COPY (SELECT DISTINCT surface, 'name' AS entity_id FROM (SELECT surface FROM links "
            "UNION ALL SELECT surface FROM title_names UNION ALL SELECT surface FROM "
            f"redirect_names) ORDER BY surface) TO {quoted(str(names))} (FORMAT parquet)"
        )
    table = SurfaceTable.read(names)
    chosen = NameSettings.model_validate({"boundary": settings.boundary})
    corpus = CorpusSettings(corpus=(str(reading / "texts"),))
    run = CountRun.plan(counts, _PageTask(table, chosen), corpus)
    run.run_all(n_workers=settings.workers)
    run.merge()


def _open_tables(database: "duckdb.DuckDBPyConnection", reading: Path) -> None:
    """Name what was read off the dump."""
    empty = {
        "pages": "0::BIGINT AS page_id, '' AS title",
        "redirects": "'' AS title, '' AS target",
        "links": "0::BIGINT AS page_id, '' AS surface, '' AS target, 0::BIGINT AS n",
    }
    for name, columns in empty.items():
        parts = reading / name
        source = (
            f"read_parquet({quoted(str(parts / '*.parquet'))})"
            if any(parts.iterdir())
            else f"(SELECT {columns}) WHERE false"
        )
        database.execute(f"CREATE OR REPLACE VIEW {name} AS FROM {source}")
    for name, table in (("title_names", "pages"), ("redirect_names", "redirects")):
        rows = database.execute(f"SELECT title FROM {table}").fetchall()
        kept = [(title, key) for (title,) in rows if (key := _name(title)) is not None]
        made = pa.table(
            {
                "title": pa.array([title for title, _ in kept], pa.string()),
                "surface": pa.array([key for _, key in kept], pa.string()),
            }
        )
        database.register(f"{name}_rows", made)
        database.execute(f"CREATE OR REPLACE TABLE {name} AS FROM {name}_rows")
        database.unregister(f"{name}_rows")


_JOIN: Final = """
CREATE TABLE wanted AS
SELECT DISTINCT target AS title FROM (SELECT target FROM links UNION ALL SELECT target FROM
    redirects) WHERE target NOT IN (SELECT title FROM pages)
    AND target NOT IN (SELECT title FROM redirects);
CREATE TABLE known AS
SELECT page_id, title FROM pages UNION ALL
SELECT -row_number() OVER (ORDER BY title), title FROM wanted WHERE $partial;
CREATE TABLE ends AS
WITH RECURSIVE hops AS (
    SELECT title, target, 1 AS n FROM redirects
    UNION
    SELECT hops.title, redirects.target, n + 1 FROM hops JOIN redirects ON redirects.title =
        hops.target WHERE n < 4
)
SELECT hops.title, known.page_id FROM hops JOIN known ON known.title = hops.target;
CREATE TABLE articles AS
SELECT page_id, title, coalesce('Q' || item, 'name:' || title) AS entity_id,
    row_number() OVER (ORDER BY page_id) - 1 AS number
FROM known LEFT JOIN items USING (page_id) WHERE NOT coalesce(is_disambiguation, false);
CREATE TABLE resolved AS
SELECT links.page_id AS source, surface, n, coalesce(own.page_id, ends.page_id) AS page_id
FROM links LEFT JOIN known own ON own.title = links.target
    LEFT JOIN ends ON ends.title = links.target
WHERE links.page_id NOT IN (SELECT page_id FROM items WHERE is_disambiguation);
CREATE TABLE linked AS
SELECT surface, page_id, sum(n)::BIGINT AS n_links FROM resolved
WHERE page_id IN (SELECT page_id FROM articles) GROUP BY ALL;
CREATE TABLE per_name AS
SELECT surface, count(DISTINCT source)::BIGINT AS n_link_documents FROM resolved GROUP BY surface;
CREATE TABLE named AS
SELECT surface, page_id, bool_or(is_title) AS is_title, bool_or(is_redirect) AS is_redirect FROM (
    SELECT surface, page_id, true AS is_title, false AS is_redirect
    FROM title_names JOIN known USING (title)
    UNION ALL
    SELECT surface, page_id, false, true FROM redirect_names JOIN ends USING (title)
) WHERE page_id IN (SELECT page_id FROM articles) GROUP BY ALL;
CREATE TABLE mentions AS
SELECT surface, entity_id, title, coalesce(n_links, 0) AS n_links,
    coalesce(is_title, false) AS is_title, coalesce(is_redirect, false) AS is_redirect,
    coalesce(n_link_documents, 0) AS n_link_documents,
    greatest(coalesce(counted.n, 0), coalesce(n_link_documents, 0)) AS n_surface_documents
FROM linked FULL JOIN named USING (surface, page_id) JOIN articles USING (page_id)
    LEFT JOIN per_name USING (surface) LEFT JOIN counted USING (surface)
WHERE coalesce(n_links, 0) >= $least OR is_title OR is_redirect;
"""


def _join(folder: Path, settings: MentionSettings) -> dict[str, int]:
    """Add everything up and write the tables."""
    reading = folder / "reading"
    with open_database(folder, memory_limit=settings.memory_limit) as database:
        _open_tables(database, reading)
        database.execute(
            "CREATE TABLE items (page_id BIGINT, item VARCHAR, is_disambiguation BOOLEAN)"
        )
        if settings.page_props is not None:
            for rows in _items(settings.page_props, allow_truncated=settings.allow_truncated):
                database.register("read_rows", rows)
                database.execute("INSERT INTO items FROM read_rows")
                database.unregister("read_rows")
            database.execute(
                "CREATE OR REPLACE TABLE items AS SELECT page_id, min(item) AS item, "
                "bool_or(is_disambiguation) AS is_disambiguation FROM items GROUP BY page_id"
            )
        counted = quoted(str(folder / "counts" / "names.parquet"))
        database.execute(f"CREATE VIEW counted AS FROM read_parquet({counted})")
        for statement in filter(None, map(str.strip, _JOIN.split(";"))):
            values = {"least": settings.min_links, "partial": settings.partial}
            given = {name: value for name, value in values.items() if f"${name}" in statement}
            database.execute(statement, given or None)
        counts = {
            name: database.execute(f"SELECT {what} FROM {table}").fetchone()[0]  # type: ignore[index]
            for name, what, table in (
                ("n_pages", "count(*)", "pages"),
                ("n_redirects", "count(*)", "redirects"),
                ("n_links", "coalesce(sum(n), 0)::BIGINT", "resolved"),
                (
                    "n_links_to_no_article",
                    "coalesce(sum(n), 0)::BIGINT",
                    "resolved WHERE page_id "
                    "IS NULL OR page_id NOT IN (SELECT page_id FROM articles)",
                ),
                ("n_names", "count(DISTINCT surface)", "mentions"),
                ("n_entities", "count(DISTINCT entity_id)", "mentions"),
                ("n_rows", "count(*)", "mentions"),
            )
        }
        with staged(folder, last=MENTION_FILE) as part:
            database.execute(
                "COPY (FROM mentions ORDER BY surface, n_links DESC, entity_id) TO "
                f"{quoted(str(part / MENTION_FILE))} (FORMAT parquet, COMPRESSION zstd)"
            )
            found = database.execute(
                "SELECT DISTINCT number, source FROM resolved JOIN articles USING (page_id) "
                "ORDER BY ALL"
            ).fetchnumpy()
            ids = database.execute("SELECT entity_id FROM articles ORDER BY number").fetchall()
            write_parquet(
                part / LINKED_FROM[0],
                pa.table({"entity_id": pa.array([entity for (entity,) in ids], pa.string())}),
            )
            offsets = offsets_of(np.bincount(found["number"], minlength=len(ids)))
            np.save(part / LINKED_FROM[1], offsets)
            np.save(part / LINKED_FROM[2], np.asarray(found["source"], dtype=np.int32))
    if settings.page_props is None:
        warnings.warn(
            f"{folder}: without --page-props entities are known by their titles, and "
            "disambiguation pages count as entities",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
    return {name: int(value) for name, value in counts.items()}


def _items(path: Path, *, allow_truncated: bool) -> Iterator[pa.Table]:
    """Read Wikidata items and disambiguation marks off the page_props table."""
    wanted = pa.array([b"wikibase_item", b"disambiguation"], pa.binary())
    columns = ("pp_page", "pp_propname", "pp_value")
    with read_sql(path, columns, allow_truncated=allow_truncated) as rows:
        for batch in rows:
            kept = batch.filter(pc.is_in(batch["pp_propname"].cast(pa.binary()), wanted))
            is_item = pc.equal(kept["pp_propname"].cast(pa.binary()), b"wikibase_item")
            numbers = [
                value.decode("ascii", "replace").lstrip("Qq") if known else None
                for value, known in zip(
                    kept["pp_value"].to_pylist(), is_item.to_pylist(), strict=True
                )
            ]
            yield pa.table(
                {
                    "page_id": kept["pp_page"].cast(pa.int64()),
                    "item": pa.array(numbers, pa.string()),
                    "is_disambiguation": pc.invert(is_item),
                }
            )
