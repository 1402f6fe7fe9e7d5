"""Each dump read once, into Parquet tables that the steps join."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import SourceNotFoundError, TruncatedDumpWarning
from surface_consistency.taxonomy import RELATIONS
from surface_consistency.wikimedia.construction._arrow import (
    TABLES,
    TableWriter,
    Tally,
    batch_of,
    import_arrow,
    table_schema,
)
from surface_consistency.wikimedia.construction._staged_rows import (
    categorylinks_rows,
    entity_rows,
    linktarget_rows,
    page_rows,
    props_rows,
    redirect_page_rows,
    redirect_rows,
    view_rows,
)
from surface_consistency.wikimedia.construction._work_folder import (
    Checkpoints,
    Marker,
    digest_of,
    file_digest,
)
from surface_consistency.wikimedia.construction.dump_files import DumpFiles, dump_name
from surface_consistency.wikimedia.construction.progress import BuildHook, StepCount, Tracker
from surface_consistency.wikimedia.streams import ReadProgress
from surface_consistency.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DumpReader", "StagedTables", "stage"]

_VERSION = 2
_TO_THE_END = "dumps read to their end"


class DumpReader:
    """Reads the dumps of one build into tables, and remembers what became of each.

    Args:
        folder: Where the tables go.
        config: The wiki.
        tracker: What to tell.
        allow_truncated: Whether a dump that ends early counts as far as it goes.
        threads: Threads for unpacking; as many as there are processors when None.
    """

    def __init__(
        self,
        folder: Path,
        config: WikiConfig,
        tracker: Tracker,
        *,
        allow_truncated: bool,
        threads: int | None,
    ) -> None:
        self.config = config
        """The wiki."""
        self._checkpoints = Checkpoints(folder)
        self._tracker = tracker
        self.options: dict[str, Any] = {
            "allow_truncated": allow_truncated,
            "progress": tracker.read,
            "threads": threads,
        }
        """Options of every reader of dumps."""
        self.files: dict[str, list[Path]] = {table: [] for table in TABLES}
        """Files by table."""
        self.digests: dict[str, list[str]] = {table: [] for table in TABLES}
        """Digests by table."""
        self.markers: dict[str, Marker] = {}
        """What was read, by name."""

    def take(
        self,
        path: Path,
        name: str,
        tables: Sequence[str],
        work: Callable[[dict[str, TableWriter], Tally], None],
        *,
        unit: str,
        settings: Mapping[str, object] | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        """Read one dump into tables, unless an earlier start did.

        Args:
            path: The dump.
            name: Name of its results.
            tables: Tables that it gives.
            work: Reads it into the writers of those tables.
            unit: What its rows are.
            settings: Settings that its results depend on.
            inputs: Digests of other tables that its results depend on.
        """
        digest = digest_of(f"{name} v{_VERSION}", settings or {}, [file_digest(path), *inputs])
        results = {table: f"{name}.{table}" for table in tables}
        marker = self._finished(path, name, digest)
        if marker is None:
            self._tracker.begin(f"read {name}", path)
            run = partial(self._write_tables, path, results, work, step=f"read {name}", unit=unit)
            marker = self._checkpoints.make(name, digest, list(results.values()), run)
            self._tracker.finish(path)
        else:
            self._tracker.skip(path)
        self.markers[f"read {name}"] = marker
        for table, result in results.items():
            self.files[table].append(self._checkpoints.path(result))
            self.digests[table].append(digest)

    def sql(self, path: Path, columns: tuple[str, ...]) -> "Iterator[pa.RecordBatch]":
        """Read columns of an SQL dump."""
        from surface_consistency.wikimedia.sql import read_sql

        return read_sql(path, columns, **self.options)

    def _finished(self, path: Path, name: str, digest: str) -> Marker | None:
        """Find what an earlier start made of a dump; of one that ended early, only if allowed."""
        marker = self._checkpoints.find(name, digest)
        cuts = [count for count in marker.counts if count.unit == _TO_THE_END] if marker else []
        if not cuts:
            return marker
        if not self.options["allow_truncated"]:
            return None
        message = f"{path}: {cuts[0].reason}, when an earlier start read it"
        warnings.warn(message, TruncatedDumpWarning, stacklevel=2)
        return marker

    def _write_tables(
        self,
        path: Path,
        results: Mapping[str, str],
        work: Callable[[dict[str, TableWriter], Tally], None],
        parts: Mapping[str, Path],
        *,
        step: str,
        unit: str,
    ) -> list[StepCount]:
        """Open the writers of a dump's tables, let it be read, and count."""
        tally = Tally()
        with ExitStack() as stack:
            writers = {
                table: stack.enter_context(TableWriter(parts[result], table_schema(table)))
                for table, result in results.items()
            }
            work(writers, tally)
        counts = _counts_of(tally, step, unit)
        cut = self._tracker.truncated.get(path)
        return counts if cut is None else [*counts, _cut_off(step, cut)]


def _counts_of(tally: Tally, step: str, unit: str) -> list[StepCount]:
    """Turn what was counted into lines of the attrition table."""
    removed: list[tuple[str | None, int]] = [
        (reason, count) for reason, count in sorted(tally.removed.items()) if count
    ]
    return [
        StepCount(
            step=step,
            unit=unit,
            rows_in=tally.n_in,
            rows_out=tally.n_out,
            reason=reason,
            removed=count,
        )
        for reason, count in removed or [(None, 0)]
    ]


def _cut_off(step: str, state: ReadProgress) -> StepCount:
    """Count a dump that was not read to its end, and say where it ended."""
    reason = (
        f"{state.path.name} is cut off or damaged near byte {state.read_bytes:,} of "
        f"{state.total_bytes:,}; what came before is kept"
    )
    return StepCount(step=step, unit=_TO_THE_END, rows_in=1, rows_out=0, reason=reason, removed=1)


_PROPERTIES = tuple(sorted(relation.property_id for relation in RELATIONS.values()))


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
        threads: Threads for unpacking; as many as there are processors when None.
        progress: Called as the dumps are read.
        tracker: What `build_redirectqa` counts with; replaces `progress`.

    Returns:
        The tables.

    Raises:
        SourceNotFoundError: If a dump is not there.
        DumpError: If a dump is broken, or not the table it should be.
        MissingDependencyError: If an extra of the dumps is not installed.
    """
    import_arrow()
    dumps.check_paths()
    reader = DumpReader(
        Path(folder),
        config,
        tracker or Tracker(progress, dumps.paths, n_steps=0),
        allow_truncated=allow_truncated,
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


def _stage_tables(reader: DumpReader, dumps: DumpFiles) -> None:
    """Read the SQL tables that are there."""
    plain = (
        (dumps.page, "page", "pages", page_rows, "pages"),
        (dumps.page_props, "page_props", "page_props", props_rows, "properties"),
        (dumps.redirect, "redirect", "redirects", redirect_rows, "redirect pages"),
    )
    for path, name, table, rows, unit in plain:
        if path is not None:
            work = partial(_write_rows, path, table, partial(rows, path, reader.sql))
            reader.take(path, name, (table,), work, unit=unit)
    if not reader.config.categories:
        return
    wanted = reader.config.categories
    if dumps.linktarget is not None:
        table = "category_targets"
        rows_of = partial(linktarget_rows, dumps.linktarget, reader.sql, categories=wanted)
        reader.take(
            dumps.linktarget,
            "linktarget",
            (table,),
            partial(_write_rows, dumps.linktarget, table, rows_of),
            unit="link targets",
            settings={"categories": wanted},
        )
    if dumps.categorylinks is not None:
        _stage_categorylinks(reader, dumps.categorylinks)


def _stage_categorylinks(reader: DumpReader, path: Path) -> None:
    """Read the members of categories."""
    from surface_consistency.wikimedia.sql import read_create_table

    pa = import_arrow()
    columns = read_create_table(path).names
    if "cl_to" not in columns and not reader.files["category_targets"]:
        raise SourceNotFoundError(
            f"{path} names its categories by numbers (dumps of 2025 and later); give the "
            "linktarget dump of the same date too"
        )
    targets: dict[int, str] = {}
    for file in reader.files["category_targets"]:
        found = pa.parquet.read_table(file).to_pydict()
        targets.update(zip(found["target_id"], found["label"], strict=True))
    rows_of = partial(
        categorylinks_rows,
        path,
        reader.sql,
        columns=columns,
        categories=reader.config.categories,
        targets=targets,
    )
    reader.take(
        path,
        "categorylinks",
        ("categories",),
        partial(_write_rows, path, "categories", rows_of),
        unit="category links",
        settings={"categories": reader.config.categories},
        inputs=reader.digests["category_targets"],
    )


def _write_rows(
    path: Path,
    table: str,
    rows: "Callable[[Tally], Iterator[pa.RecordBatch]]",
    writers: Mapping[str, TableWriter],
    tally: Tally,
) -> None:
    """Write the rows of a dump that gives one table."""
    for batch in rows(tally):
        writers[table].write(batch)


def _stage_xml(reader: DumpReader, path: Path, *, with_pages: bool) -> None:
    """Read redirects off the pages' text."""
    from surface_consistency.wikimedia.pages_xml import read_redirects

    def work(writers: Mapping[str, TableWriter], tally: Tally) -> None:
        """Read the export."""
        pages = read_redirects(path, **reader.options)
        for tables in redirect_page_rows(pages, reader.config, tally):
            for table, writer in writers.items():
                writer.write(tables[table])

    tables = ("pages", "redirects", "categories") if with_pages else ("redirects", "categories")
    settings = {
        "categories": reader.config.categories,
        "templates": reader.config.templates,
        "tables": list(tables),
    }
    reader.take(path, dump_name(path), tables, work, unit="redirect pages", settings=settings)


def _stage_views(reader: DumpReader, path: Path) -> None:
    """Read the pageviews of the wiki."""
    from surface_consistency.wikimedia.pageviews import read_pageviews

    project = reader.config.project

    def work(writers: Mapping[str, TableWriter], tally: Tally) -> None:
        """Read the lines of one project."""
        batches = read_pageviews(path, project=project, **reader.options)
        for batch in view_rows(batches, tally):
            writers["views"].write(batch)

    settings = {"project": project}
    unit = "lines of the wiki"
    reader.take(path, dump_name(path), ("views",), work, unit=unit, settings=settings)


def _stage_wikidata(reader: DumpReader, path: Path) -> None:
    """Read labels, aliases and claims."""
    from surface_consistency.wikimedia.wikidata import read_entity_batches

    config = reader.config

    def work(writers: Mapping[str, TableWriter], tally: Tally) -> None:
        """Read the entities; claims of all relations, so that a choice among them costs nothing."""
        for batch in read_entity_batches(
            path,
            properties=_PROPERTIES,
            language=config.language,
            wiki=config.wiki,
            **reader.options,
        ):
            writers["entities"].write(entity_rows(batch.entities, tally))
            for table, rows in (("aliases", batch.aliases), ("claims", batch.claims)):
                columns = dict(zip(rows.schema.names, rows.columns, strict=True))
                writers[table].write(batch_of(columns, table_schema(table)))

    reader.take(
        path,
        "wikidata",
        ("entities", "aliases", "claims"),
        work,
        unit="entities",
        settings={
            "language": config.language,
            "wiki": config.wiki,
            "properties": list(_PROPERTIES),
        },
    )
