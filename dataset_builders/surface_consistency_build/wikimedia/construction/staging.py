"""Each dump read once, into Parquet tables that the steps join."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.errors import SourceNotFoundError, TruncatedDumpWarning
from surface_consistency.taxonomy import RELATIONS
from surface_consistency_build.wikimedia.construction import _staged_rows as staged
from surface_consistency_build.wikimedia.construction._arrow import (
    TABLES,
    TableWriter,
    Tally,
    batch_of,
    table_schema,
)
from surface_consistency_build.wikimedia.construction._work_folder import (
    Checkpoints,
    Marker,
    digest_of,
    file_digest,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpFiles, dump_name
from surface_consistency_build.wikimedia.construction.progress import (
    BuildHook,
    StepCount,
    Tracker,
    step_counts,
)
from surface_consistency_build.wikimedia.pages_xml import read_redirects
from surface_consistency_build.wikimedia.pageviews import read_pageviews
from surface_consistency_build.wikimedia.sql import read_create_table, read_sql
from surface_consistency_build.wikimedia.streams import MarkedReadOptions, ReadOptions
from surface_consistency_build.wikimedia.wikidata import read_entity_batches
from surface_consistency_build.wikimedia.wikis import WikiConfig

TableBatches = Mapping[str, pa.RecordBatch]

_PROPERTIES = tuple(sorted(relation.property_id for relation in RELATIONS.values()))
_VERSION = 2
_TO_THE_END = "dumps read to their end"
END_MARKED = "dumps whose end is marked"
"""Unit of the attrition line of a plain dump of which nothing tells whether it is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTables:
    """What the steps read."""

    files: Mapping[str, tuple[Path, ...]]
    """Table to its Parquet files; a table that no dump gave has none."""

    has_articles: bool
    """Whether `pages` holds articles; if not, Wikidata's links tell them."""

    digests: Mapping[str, str]
    """Table to what it was made from."""

    counts: tuple[StepCount, ...]
    """Rows that each dump held and that were kept."""

    seconds: Mapping[str, float]
    """Seconds that reading each dump took."""


def stage(
    dumps: DumpFiles,
    folder: str | os.PathLike[str],
    config: WikiConfig,
    *,
    allow_truncated: bool = False,
    require_end_mark: bool = False,
    threads: int | None = None,
    progress: BuildHook | None = None,
    tracker: Tracker | None = None,
) -> StagedTables:
    """Read each dump once; keep the wanted rows and columns as Parquet.

    Memory holds a few hundred thousand rows at a time. A dump whose results are there already,
    made from the same content with the same settings, is not read again.

    Args:
        dumps: The files.
        folder: Where the tables go; about a tenth of the dumps' size.
        config: The wiki.
        allow_truncated: Whether a dump that ends early counts as far as it goes, with a warning.
        require_end_mark: Whether a plain dump of which nothing tells that it is whole is refused.
        threads: Threads for unpacking; as many as there are processors when None.
        progress: Called as the dumps are read.
        tracker: What `build_redirectqa` counts with; replaces `progress`.

    Returns:
        The tables.

    Raises:
        SourceNotFoundError: If a dump is not there.
        DumpError: If a dump is broken, or not the table it should be.
    """
    dumps.check_paths()
    reader = _DumpReader(
        Path(folder),
        config,
        tracker or Tracker(progress, dumps.paths, n_steps=0),
        allow_truncated=allow_truncated,
        require_end_mark=require_end_mark,
        threads=threads,
    )
    _stage_tables(reader, dumps)
    for path in dumps.pages_articles:
        _stage_xml(reader, path, with_pages=dumps.page is None)
    for path in dumps.pageviews:
        _stage_views(reader, path)
    if dumps.wikidata is not None:
        _stage_wikidata(reader, dumps.wikidata)
    return StagedTables(
        files={table: tuple(files) for table, files in reader.files.items()},
        has_articles=dumps.page is not None,
        digests={table: digest_of(table, {}, made) for table, made in reader.digests.items()},
        counts=tuple(count for marker in reader.markers.values() for count in marker.counts),
        seconds={name: marker.seconds for name, marker in reader.markers.items()},
    )


class _DumpReader:
    """Reads the dumps of one build into tables, and remembers what became of each."""

    def __init__(
        self,
        folder: Path,
        config: WikiConfig,
        tracker: Tracker,
        *,
        allow_truncated: bool,
        require_end_mark: bool,
        threads: int | None,
    ) -> None:
        self.config = config
        self.options: ReadOptions = {
            "allow_truncated": allow_truncated,
            "progress": tracker.read,
            "threads": threads,
        }
        """Options of every reader of dumps."""
        self.marked: MarkedReadOptions = {**self.options, "require_end_mark": require_end_mark}
        """Options of the readers of dumps that may lack the mark of an end; XML has one."""
        self.files: dict[str, list[Path]] = {table: [] for table in TABLES}
        """Files by table."""
        self.digests: dict[str, list[str]] = {table: [] for table in TABLES}
        """Digests by table."""
        self.markers: dict[str, Marker] = {}
        """What was read, by name."""
        self._checkpoints = Checkpoints(folder)
        self._tracker = tracker

    def take(
        self,
        path: Path,
        name: str,
        tables: Sequence[str],
        rows: Callable[[Tally], Iterator[TableBatches]],
        *,
        unit: str,
        settings: Mapping[str, object] | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        """Read one dump's rows into tables, unless an earlier start did.

        Its results depend on the dump, the digests of other tables (`inputs`) and the settings.
        """
        digest = digest_of(f"{name} v{_VERSION}", settings or {}, [file_digest(path), *inputs])
        results = {table: f"{name}.{table}" for table in tables}
        marker = self._finished(path, name, digest)
        if marker is None:
            step = f"read {name}"
            self._tracker.begin(step, path)
            work = partial(self._write, path, results, rows, step, unit)
            marker = self._checkpoints.make(name, digest, list(results.values()), work)
            self._tracker.finish(path)
        else:
            self._tracker.skip(path)
        self.markers[f"read {name}"] = marker
        for table, result in results.items():
            self.files[table].append(self._checkpoints.path(result))
            self.digests[table].append(digest)

    def sql(self, path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Read columns of an SQL dump."""
        return read_sql(path, columns, **self.marked)

    def _finished(self, path: Path, name: str, digest: str) -> Marker | None:
        """Find what an earlier start made of a dump; of one that ended early, only if allowed."""
        marker = self._checkpoints.find(name, digest)
        units = {count.unit for count in marker.counts} if marker else set()
        if END_MARKED in units and self.marked["require_end_mark"]:
            return None
        cuts = [count for count in marker.counts if count.unit == _TO_THE_END] if marker else []
        if not cuts:
            return marker
        if not self.options["allow_truncated"]:
            return None
        message = f"{path}: {cuts[0].reason}, when an earlier start read it"
        warnings.warn(message, TruncatedDumpWarning, stacklevel=2)
        return marker

    def _write(
        self,
        path: Path,
        results: Mapping[str, str],
        rows: Callable[[Tally], Iterator[TableBatches]],
        step: str,
        unit: str,
        parts: Mapping[str, Path],
    ) -> list[StepCount]:
        """Write a dump's rows to its tables, count them, and say where it was cut off."""
        tally = Tally()
        with ExitStack() as stack:
            writers = {
                table: stack.enter_context(TableWriter(parts[result], table_schema(table)))
                for table, result in results.items()
            }
            for batches in rows(tally):
                for table, writer in writers.items():
                    writer.write(batches[table])
        removed = dict(sorted(tally.removed.items()))
        counts = step_counts(step, unit, tally.n_in, tally.n_out, removed)
        if path in self._tracker.unmarked:
            reason = (
                f"{path.name} is not packed and has no mark at its end, so that a cut between two "
                "lines or statements cannot be told"
            )
            counts += step_counts(step, END_MARKED, 1, 0, {reason: 1})
        cut = self._tracker.truncated.get(path)
        if cut is None:
            return counts
        reason = (
            f"{path.name} is cut off or damaged near byte {cut.read_bytes:,} of "
            f"{cut.total_bytes:,}; what came before is kept"
        )
        return counts + step_counts(step, _TO_THE_END, 1, 0, {reason: 1})


def _stage_tables(reader: _DumpReader, dumps: DumpFiles) -> None:
    """Read the SQL tables that are there."""
    plain = (
        (dumps.page, "page", "pages", staged.page_rows, "pages"),
        (dumps.page_props, "page_props", "page_props", staged.props_rows, "properties"),
        (dumps.redirect, "redirect", "redirects", staged.redirect_rows, "redirect pages"),
    )
    for path, name, table, rows, unit in plain:
        if path is not None:
            reader.take(path, name, (table,), _only(table, rows, path, reader.sql), unit=unit)
    wanted = reader.config.categories
    if wanted and dumps.linktarget is not None:
        table = "category_targets"
        path = dumps.linktarget
        rows_of = _only(table, staged.linktarget_rows, path, reader.sql, categories=wanted)
        settings = {"categories": wanted}
        reader.take(path, "linktarget", (table,), rows_of, unit="link targets", settings=settings)
    if wanted and dumps.categorylinks is not None:
        _stage_categorylinks(reader, dumps.categorylinks)


def _only(
    table: str, rows: Callable[..., Iterator[pa.RecordBatch]], *arguments: object, **named: object
) -> Callable[[Tally], Iterator[TableBatches]]:
    """Make a reader of one table a reader of tables."""
    return lambda tally: ({table: batch} for batch in rows(*arguments, tally, **named))


def _stage_categorylinks(reader: _DumpReader, path: Path) -> None:
    """Read the members of categories."""
    columns = read_create_table(path).names
    if "cl_to" not in columns and not reader.files["category_targets"]:
        raise SourceNotFoundError(
            f"{path} names its categories by numbers (dumps of 2025 and later); give the "
            "linktarget dump of the same date too"
        )
    targets: dict[int, str] = {}
    for file in reader.files["category_targets"]:
        labels = pq.read_table(file).to_pydict()
        targets.update(zip(labels["target_id"], labels["label"], strict=True))
    wanted = reader.config.categories
    more = {"columns": columns, "categories": wanted, "targets": targets}
    reader.take(
        path,
        "categorylinks",
        ("categories",),
        _only("categories", staged.categorylinks_rows, path, reader.sql, **more),
        unit="category links",
        inputs=reader.digests["category_targets"],
        settings={"categories": wanted},
    )


def _stage_xml(reader: _DumpReader, path: Path, *, with_pages: bool) -> None:
    """Read redirects off the pages' text."""
    config = reader.config
    tables = ("pages", "redirects", "categories") if with_pages else ("redirects", "categories")
    settings = {
        "categories": config.categories,
        "templates": config.templates,
        "tables": list(tables),
    }
    reader.take(
        path,
        dump_name(path),
        tables,
        lambda tally: staged.redirect_page_rows(
            read_redirects(path, **reader.options), config, tally
        ),
        unit="redirect pages",
        settings=settings,
    )


def _stage_views(reader: _DumpReader, path: Path) -> None:
    """Read the pageviews of the wiki."""
    project = reader.config.project

    def rows(tally: Tally) -> Iterator[TableBatches]:
        """Read the lines of one project."""
        batches = read_pageviews(path, project=project, **reader.marked)
        return ({"views": batch} for batch in staged.view_rows(batches, tally))

    unit = "lines of the wiki"
    reader.take(path, dump_name(path), ("views",), rows, unit=unit, settings={"project": project})


def _stage_wikidata(reader: _DumpReader, path: Path) -> None:
    """Read labels, aliases and claims; of all relations, so that a choice among them is free."""
    config = reader.config
    settings = {"language": config.language, "wiki": config.wiki, "properties": list(_PROPERTIES)}

    def rows(tally: Tally) -> Iterator[TableBatches]:
        """Read the entities."""
        for batch in read_entity_batches(
            path,
            properties=_PROPERTIES,
            language=config.language,
            wiki=config.wiki,
            **reader.marked,
        ):
            tables = {"entities": staged.entity_rows(batch.entities, tally)}
            for table, part in (("aliases", batch.aliases), ("claims", batch.claims)):
                columns = dict(zip(part.schema.names, part.columns, strict=True))
                tables[table] = batch_of(columns, table_schema(table))
            yield tables

    tables = ("entities", "aliases", "claims")
    reader.take(path, "wikidata", tables, rows, unit="entities", settings=settings)
