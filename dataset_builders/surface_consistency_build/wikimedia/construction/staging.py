"""Read each dump once into Parquet tables that the steps join."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError
from surface_consistency.taxonomy import RELATIONS
from surface_consistency_build.wikimedia.construction._work_folder import (
    Checkpoints,
    Marker,
    digest_of,
    file_digest,
)
from surface_consistency_build.wikimedia.construction.database import (
    TABLES,
    TableWriter,
    Tally,
    batch_of,
    surfaces_of,
    table_schema,
    text_column,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpFiles, dump_name
from surface_consistency_build.wikimedia.construction.progress import (
    BuildHook,
    StepCount,
    Tracker,
    step_counts,
)
from surface_consistency_build.wikimedia.pages_xml import RedirectPage, read_redirects
from surface_consistency_build.wikimedia.pageviews import read_pageviews
from surface_consistency_build.wikimedia.rcat_templates import categories_of_templates
from surface_consistency_build.wikimedia.sql import read_create_table, read_sql
from surface_consistency_build.wikimedia.streams import MarkedReadOptions, ReadOptions
from surface_consistency_build.wikimedia.wikidata import read_entity_batches
from surface_consistency_build.wikimedia.wikis import WikiConfig

TableBatches = Mapping[str, pa.RecordBatch]

_PROPERTIES = tuple(sorted(relation.property_id for relation in RELATIONS.values()))
_VERSION = 2
_TO_THE_END = "dumps read to their end"
END_MARKED = "dumps whose end is marked"
"""Unit of the attrition line of an uncompressed dump without an end marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTables:
    """The tables that the steps read."""

    files: Mapping[str, tuple[Path, ...]]
    """Table to its Parquet files; empty for a table that is in no dump."""

    has_articles: bool
    """Whether `pages` contains articles; if not, they are taken from Wikidata's links."""

    digests: Mapping[str, str]
    """Table to the digest of its inputs."""

    counts: tuple[StepCount, ...]
    """Rows of each dump, read and kept."""

    seconds: Mapping[str, float]
    """Seconds for reading each dump."""


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

    At most a few hundred thousand rows are in memory at a time. A dump is not read again if results
    of the same content and settings exist.

    Args:
        dumps: The files.
        folder: Folder of the tables, which need about a tenth of the dumps' size.
        config: The wiki.
        allow_truncated: Whether a dump that ends early is read up to that place, with a warning.
        require_end_mark: Whether an uncompressed dump without an end marker is rejected.
        threads: Number of threads for decompression; None for the number of processors.
        progress: Called as the dumps are read.
        tracker: Tracker of `build_redirectqa`; replaces `progress`.

    Returns:
        The tables.

    Raises:
        SourceNotFoundError: If a dump is missing.
        DataError: If a dump is damaged or contains another table.
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
    """Reads the dumps of one build into tables, and records the results."""

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
        """Options of all readers of dumps."""
        self.marked: MarkedReadOptions = {**self.options, "require_end_mark": require_end_mark}
        """Options of the readers of dumps that may have no end marker; XML has one."""
        self.files: dict[str, list[Path]] = {table: [] for table in TABLES}
        """Files by table."""
        self.digests: dict[str, list[str]] = {table: [] for table in TABLES}
        """Digests by table."""
        self.markers: dict[str, Marker] = {}
        """Markers of the dumps that were read, by name."""
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
        """Read one dump's rows into tables, unless an earlier start did this.

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
        """Read columns of an SQL dump; reject a column whose type is not that of MediaWiki."""
        for batch in read_sql(path, columns, **self.marked):
            for name in columns:
                if (name in _NUMBERS) != pa.types.is_integer(batch[name].type):
                    raise DataError(
                        f"{path}: column {name} has the type {batch[name].type}, which is not "
                        "that of MediaWiki; use the unchanged dump from dumps.wikimedia.org"
                    )
            yield batch

    def _finished(self, path: Path, name: str, digest: str) -> Marker | None:
        """Find the results of an earlier start; those of truncated dumps only if allowed."""
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
        warnings.warn(message, DataWarning, stacklevel=2)
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
        """Write a dump's rows to its tables, count them, and record where it was cut off."""
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
                f"{path.name} is not compressed and has no end marker, so a cut between two lines "
                "or statements cannot be detected"
            )
            counts += step_counts(step, END_MARKED, 1, 0, {reason: 1})
        cut = self._tracker.truncated.get(path)
        if cut is None:
            return counts
        reason = (
            f"{path.name} is cut off or damaged near byte {cut.read_bytes:,} of "
            f"{cut.total_bytes:,}; the data before it is kept"
        )
        return counts + step_counts(step, _TO_THE_END, 1, 0, {reason: 1})


def _stage_tables(reader: _DumpReader, dumps: DumpFiles) -> None:
    """Read the SQL tables that exist."""
    plain = (
        (dumps.page, "page", "pages", page_rows, "pages"),
        (dumps.page_props, "page_props", "page_props", props_rows, "properties"),
        (dumps.redirect, "redirect", "redirects", redirect_rows, "redirect pages"),
    )
    for path, name, table, rows, unit in plain:
        if path is not None:
            reader.take(path, name, (table,), _only(table, rows, path, reader.sql), unit=unit)
    wanted = reader.config.categories
    if wanted and dumps.linktarget is not None:
        table = "category_targets"
        path = dumps.linktarget
        rows_of = _only(table, linktarget_rows, path, reader.sql, categories=wanted)
        settings = {"categories": wanted}
        reader.take(path, "linktarget", (table,), rows_of, unit="link targets", settings=settings)
    if wanted and dumps.categorylinks is not None:
        _stage_categorylinks(reader, dumps.categorylinks)


def _only(
    table: str, rows: Callable[..., Iterator[pa.RecordBatch]], *arguments: object, **named: object
) -> Callable[[Tally], Iterator[TableBatches]]:
    """Convert a reader of one table to a reader of tables."""
    return lambda tally: ({table: batch} for batch in rows(*arguments, tally, **named))


def _stage_categorylinks(reader: _DumpReader, path: Path) -> None:
    """Read the members of categories."""
    columns = read_create_table(path).names
    if "cl_to" not in columns and not reader.files["category_targets"]:
        raise SourceNotFoundError(
            f"{path} names its categories by numbers (dumps of 2025 and later); also give the "
            "linktarget dump of the same date"
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
        _only("categories", categorylinks_rows, path, reader.sql, **more),
        unit="category links",
        inputs=reader.digests["category_targets"],
        settings={"categories": wanted},
    )


def _stage_xml(reader: _DumpReader, path: Path, *, with_pages: bool) -> None:
    """Read redirects from the pages' text."""
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
        lambda tally: redirect_page_rows(read_redirects(path, **reader.options), config, tally),
        unit="redirect pages",
        settings=settings,
    )


def _stage_views(reader: _DumpReader, path: Path) -> None:
    """Read the pageviews of the wiki."""
    project = reader.config.project

    def rows(tally: Tally) -> Iterator[TableBatches]:
        """Read the lines of one project."""
        batches = read_pageviews(path, project=project, **reader.marked)
        return ({"views": batch} for batch in view_rows(batches, tally))

    unit = "lines of the wiki"
    reader.take(path, dump_name(path), ("views",), rows, unit=unit, settings={"project": project})


def _stage_wikidata(reader: _DumpReader, path: Path) -> None:
    """Read labels, aliases and the claims of all relations, which are selected later."""
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
            tables = {"entities": entity_rows(batch.entities, tally)}
            for table, part in (("aliases", batch.aliases), ("claims", batch.claims)):
                columns = dict(zip(part.schema.names, part.columns, strict=True))
                tables[table] = batch_of(columns, table_schema(table))
            yield tables

    tables = ("entities", "aliases", "claims")
    reader.take(path, "wikidata", tables, rows, unit="entities", settings=settings)


Batches = Iterator[pa.RecordBatch]
ReadColumns = Callable[[Path, tuple[str, ...]], Batches]

_NUMBERS = (
    *("page_id", "page_namespace", "page_is_redirect", "rd_from", "rd_namespace", "pp_page"),
    *("lt_id", "lt_namespace", "cl_from", "cl_target_id"),
)
"""Columns of numbers; the others are texts."""

_ARTICLES = 0
_CATEGORIES = 14
_OTHER_NAMESPACE = "outside the article namespace"
_XML_ROWS = 50_000


def page_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read articles and redirect pages from the `page` table."""
    columns = ("page_id", "page_namespace", "page_title", "page_is_redirect")
    for batch in read(path, columns):
        tally.n_in += batch.num_rows
        articles = _filter(
            batch, pc.equal(batch["page_namespace"], _ARTICLES), _OTHER_NAMESPACE, tally
        )
        articles, titles = text_column(articles, "page_title", tally)
        yield _counted(
            {
                "page_id": articles["page_id"],
                "title": titles,
                "surface": surfaces_of(titles),
                "is_redirect": pc.not_equal(articles["page_is_redirect"], 0),
            },
            "pages",
            tally,
        )


def redirect_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read all redirects; a later step excludes those that lead to another wiki or a section."""
    columns = ("rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment")
    for batch in read(path, columns):
        tally.n_in += batch.num_rows
        readable, titles = text_column(batch, "rd_title", tally)
        yield _counted(
            {
                "page_id": readable["rd_from"],
                "target": titles,
                "target_namespace": readable["rd_namespace"],
                "is_interwiki": _is_given(readable["rd_interwiki"]),
                "is_section": _is_given(readable["rd_fragment"]),
            },
            "redirects",
            tally,
        )


def props_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read Wikidata items and disambiguation marks from the `page_props` table."""
    wanted = pa.array([b"wikibase_item", b"disambiguation"], pa.binary())
    for batch in read(path, ("pp_page", "pp_propname", "pp_value")):
        tally.n_in += batch.num_rows
        names = batch["pp_propname"].cast(pa.binary())
        properties = _filter(batch, pc.is_in(names, wanted), "another property", tally)
        names = properties["pp_propname"].cast(pa.binary())
        is_item = pc.equal(names, b"wikibase_item")
        items = [
            _item_number(value) if of_item else None
            for value, of_item in zip(
                properties["pp_value"].to_pylist(), is_item.to_pylist(), strict=True
            )
        ]
        yield _counted(
            {
                "page_id": properties["pp_page"],
                "entity": pa.array(items, pa.int64()),
                "is_disambiguation": pc.invert(is_item),
            },
            "page_props",
            tally,
        )


def linktarget_rows(
    path: Path, read: ReadColumns, tally: Tally, *, categories: Mapping[str, str]
) -> Batches:
    """Read the numbers of the wanted categories from the `linktarget` table."""
    labels = {title.encode("utf-8"): label for title, label in categories.items()}
    wanted = pa.array(sorted(labels), pa.binary())
    for batch in read(path, ("lt_id", "lt_namespace", "lt_title")):
        tally.n_in += batch.num_rows
        titles = batch["lt_title"].cast(pa.binary())
        mask = pc.and_(pc.equal(batch["lt_namespace"], _CATEGORIES), pc.is_in(titles, wanted))
        members = _filter(batch, mask, "no wanted category", tally)
        names = [labels[title] for title in members["lt_title"].cast(pa.binary()).to_pylist()]
        yield _counted(
            {"target_id": members["lt_id"], "label": pa.array(names, pa.string())},
            "category_targets",
            tally,
        )


def categorylinks_rows(
    path: Path,
    read: ReadColumns,
    tally: Tally,
    *,
    columns: tuple[str, ...],
    categories: Mapping[str, str],
    targets: Mapping[int, str],
) -> Batches:
    """Read the members of the wanted categories from a `categorylinks` table of any schema.

    Categories are named by their titles (`cl_to`), or by the numbers of `targets` (`cl_target_id`).
    """
    by_title = {title.encode("utf-8"): label for title, label in categories.items()}
    ways: list[tuple[str, Any, dict[Any, str]]] = []
    if "cl_to" in columns:
        ways.append(("cl_to", pa.binary(), by_title))
    if "cl_target_id" in columns:
        ways.append(("cl_target_id", pa.int64(), dict(targets)))
    if not ways:
        raise DataError(
            f"{path}: its table has neither cl_to nor cl_target_id, but {', '.join(columns)}; "
            "give a dump of the categorylinks table"
        )
    for batch in read(path, ("cl_from", *(name for name, _, _ in ways))):
        tally.n_in += batch.num_rows
        labels = _labels(batch, ways)
        is_wanted = labels.is_valid()
        tally.drop("no wanted category", batch.num_rows - pc.sum(is_wanted).as_py())
        yield _counted(
            {"page_id": batch["cl_from"].filter(is_wanted), "label": labels.filter(is_wanted)},
            "categories",
            tally,
        )


def _labels(batch: pa.RecordBatch, ways: list[tuple[str, Any, dict[Any, str]]]) -> pa.Array:
    """Look up the category of each row by its title, or else by its number."""
    categories = pa.nulls(batch.num_rows, pa.string())
    for name, kind, known in ways:
        keys = pa.array(list(known), kind)
        labels = pa.array(list(known.values()), pa.string())
        places = pc.index_in(batch[name].cast(kind), keys)
        categories = pc.coalesce(categories, labels.take(places))
    return categories


def _filter(batch: pa.RecordBatch, mask: pa.Array, reason: str, tally: Tally) -> pa.RecordBatch:
    """Keep the rows that the mask selects."""
    rows = batch.filter(mask)
    tally.drop(reason, batch.num_rows - rows.num_rows)
    return rows


def _counted(columns: Mapping[str, Any], table: str, tally: Tally) -> pa.RecordBatch:
    """Return the kept rows as a batch, and count them."""
    batch = batch_of(columns, table_schema(table))
    tally.n_out += batch.num_rows
    return batch


def _is_given(column: pa.Array) -> pa.Array:
    """Return a mask of texts that are neither NULL nor empty."""
    return pc.fill_null(pc.greater(pc.binary_length(column), 0), False)


def _item_number(value: bytes | None) -> int | None:
    """Read the number of a Wikidata item; None for anything else."""
    digits = (value or b"")[1:]
    return int(digits) if digits.isdigit() and value and value[:1] in b"Qq" else None


def view_rows(batches: Iterable[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
    """Sum the views of a title over the kinds of access within a batch."""
    for batch in batches:
        tally.n_in += batch.num_rows
        readable, titles = text_column(batch, "title", tally)
        summed = (
            pa.table({"title": titles, "views": readable["views"]})
            .group_by("title", use_threads=False)
            .aggregate([("views", "sum")])
            .combine_chunks()
        )
        tally.n_out += readable.num_rows
        for part in summed.select(["title", "views_sum"]).to_batches():
            yield batch_of({"title": part[0], "views": part[1]}, table_schema("views"))


def entity_rows(entities: pa.RecordBatch, tally: Tally) -> pa.RecordBatch:
    """Keep entities that have a label or a page; spaces in page titles become underscores."""
    tally.n_in += entities.num_rows
    labels = entities["label"].cast(pa.string())
    titles = pc.replace_substring(entities["title"].cast(pa.string()), " ", "_")
    has_name = pc.or_(labels.is_valid(), titles.is_valid())
    titles = titles.filter(has_name)
    tally.n_out += len(titles)
    tally.drop("neither label nor page", len(has_name) - len(titles))
    return batch_of(
        {
            "id": entities["id"].filter(has_name),
            "label": labels.filter(has_name),
            "title": titles,
            "surface": surfaces_of(titles),
        },
        table_schema("entities"),
    )


def redirect_page_rows(
    pages: "Iterable[RedirectPage]", config: "WikiConfig", tally: Tally
) -> Iterator[Mapping[str, pa.RecordBatch]]:
    """Convert redirect pages of the XML export to rows of three tables."""
    rows = iter(pages)
    while taken := list(islice(rows, _XML_ROWS)):
        tally.n_in += len(taken)
        tally.n_out += len(taken)
        yield _three_tables(taken, config)


def _three_tables(
    pages: "list[RedirectPage]", config: "WikiConfig"
) -> Mapping[str, pa.RecordBatch]:
    """Return the tables of redirect pages, their targets and their categories."""
    titles = pa.array([page.title.replace(" ", "_") for page in pages], pa.string())
    numbers = pa.array([page.page_id for page in pages], pa.int64())
    labels = [(page.page_id, label) for page in pages for label in _page_labels(page, config)]
    columns: dict[str, dict[str, Any]] = {
        "pages": {
            "page_id": numbers,
            "title": titles,
            "surface": surfaces_of(titles),
            "is_redirect": pa.array([True] * len(pages)),
        },
        "redirects": {
            "page_id": numbers,
            "target": pa.array([page.target.replace(" ", "_") for page in pages], pa.string()),
            "target_namespace": pa.array(
                [page.target_namespace or 0 for page in pages], pa.int64()
            ),
            "is_interwiki": pa.array([page.is_interwiki for page in pages], pa.bool_()),
            "is_section": pa.array([bool(page.fragment) for page in pages], pa.bool_()),
        },
        "categories": {
            "page_id": pa.array([number for number, _ in labels], pa.int64()),
            "label": pa.array([label for _, label in labels], pa.string()),
        },
    }
    return {name: batch_of(table, table_schema(name)) for name, table in columns.items()}


def _page_labels(page: "RedirectPage", config: "WikiConfig") -> set[str]:
    """Return the labels of a redirect page from its templates and the categories in its text."""
    written = (category.strip().replace(" ", "_") for category in page.categories)
    known = {config.categories[title] for title in written if title in config.categories}
    return known.union(categories_of_templates(page.templates, config.templates))
