"""Sum the scores of large flat Parquet files over clusters, without a frame of their rows.

Only required columns are read. Files that list their items in ascending order are read in parallel,
a few rows at a time; other files are matched in memory. Tables with repeats, forms, several tasks
or metrics, different questions of one item or missing ids are read by `read_results`, which also
raises all errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.analysis.clusters import ITEMS_ALONE, ClusterChoice, choose_cluster
from surface_consistency.errors import DataError
from surface_consistency.metrics.comparison.totals import (
    ModelScores,
    ScoreTotals,
    joined_totals,
    score_totals,
)
from surface_consistency.reading import find_column
from surface_consistency.results.columns import ResultColumns, table_columns
from surface_consistency.results.failures import FEW, MANY, has_failed_answers
from surface_consistency.results.inputs import Input
from surface_consistency.results.layouts import layout_of
from surface_consistency.results.names import DIRECTIONS, cluster_names, is_context
from surface_consistency.results.tables import COLUMNS, plain_metric
from surface_consistency.rows.columnar import open_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_Numbers: TypeAlias = npt.NDArray[np.int64]
_ROWS: Final = 131_072
_DENSE: Final = 4
_SAMPLE: Final = 500
_TEXTS: Final = ("question", "references")
_READ: Final = {"score", "model", "prediction", *_TEXTS}


class FlatTotals(NamedTuple):
    """Sums of flat tables."""

    totals: ScoreTotals
    """Sums over the items for which all models have a score."""
    metric: str
    n_missing: _Numbers
    """Number of items without a score, by model."""
    n_items_of_any: int
    cluster: ClusterChoice
    """Choice of the clustering column."""
    labels: Mapping[str, ScoreTotals]
    """Sums by each column of `cluster.labels`."""
    n_clusters_of_any: int
    """Number of clusters of the items for which any model has a row."""
    is_same_questions: bool


class _NotFlat(Exception):
    """The tables cannot be summed and must be read by rows."""


class _Unordered(Exception):
    """A table does not list its items in ascending order."""


class _Columns(NamedTuple):
    """Columns that are read from each table."""

    item: str
    score: str
    model: str | None
    texts: tuple[str, ...]
    groups: tuple[str, ...]
    prediction: str | None

    def names(self) -> list[str]:
        """List the distinct names."""
        all_ = (self.item, self.score, self.model, *self.texts, *self.groups, self.prediction)
        return list(dict.fromkeys(filter(None, all_)))


def flat_totals(
    inputs: Sequence[Input], given: ResultColumns, *, has_cells: bool
) -> FlatTotals | None:
    """Sum the scores of flat Parquet files over clusters.

    Args:
        inputs: The files, one per model.
        given: Columns that the user names.
        has_cells: Whether paired tables of clusters are needed.

    Returns:
        The sums; None if the tables must be read by rows.
    """
    import pyarrow as pa

    paths = [one.content for one in inputs if str(one.content).lower().endswith(".parquet")]
    is_simple = not (given.metrics or given.metric or given.filter or len(given.cluster) > 1)
    if not paths or len(paths) < len(inputs) or any(one.is_optional for one in inputs):
        return None
    if not is_simple:
        return None
    try:
        files = [open_parquet(Path(path)) for path in map(str, paths)]
        columns = [
            _columns(file.schema_arrow, given, one.name)
            for file, one in zip(files, inputs, strict=True)
        ]
        if len({*columns}) > 1:
            return None
        summing = _Summing(inputs, files, columns[0], has_cells=has_cells)
        try:
            return summing.sum(summing.windows(), given, is_ordered=True)
        except _Unordered:
            return summing.sum(summing.whole(), given, is_ordered=False)
    except (_NotFlat, DataError, OSError, pa.ArrowException):
        return None


def _columns(schema: "pa.Schema", given: ResultColumns, source: str) -> _Columns:
    """Find the columns of a table that can be summed."""
    names = schema.names
    if len({*names}) < len(names) or DIRECTIONS & {*names} or layout_of(names) is not None:
        raise _NotFlat
    if any(find_column(name, names) for name in ("finish_reason", "prompt_hash")):
        raise _NotFlat  # Only the reader of rows supports these columns.
    columns = table_columns(names, given, source)
    roles = columns.roles
    if len(columns.items) > 1 or not {*roles} <= _READ or roles.get("score") in columns.items:
        raise _NotFlat
    item = columns.items[0]
    texts = tuple(roles[role] for role in _TEXTS if role in roles)
    if any(not _is_text(schema.field(name).type) for name in texts):
        raise _NotFlat
    frame = schema.empty_table().to_pandas()
    score = plain_metric(frame, columns, given, source)
    if score is None or not _is_id(schema.field(item).type):
        raise _NotFlat
    further = [name for name in names if name not in {*roles.values(), item}]
    may_group = cluster_names(further)
    groups = [name for name in may_group if is_context(name)]
    groups = groups or ["", *(one for one in may_group if _is_id(schema.field(one).type))]
    if given.cluster:
        groups = [name for name in further if name in given.cluster and name not in COLUMNS]
        groups = [item] if given.cluster == ("item",) else groups
        if not groups:
            raise _NotFlat
    if any(not _is_id(schema.field(name).type) for name in filter(None, groups)):
        raise _NotFlat
    prediction = roles.get("prediction")
    if prediction is not None and not _is_text(schema.field(prediction).type):
        raise _NotFlat
    return _Columns(item, score, roles.get("model"), texts, tuple(groups), prediction)


def _is_id(kind: "pa.DataType") -> bool:
    """Return whether a column contains integers or texts."""
    import pyarrow as pa

    return pa.types.is_integer(kind) or _is_text(kind)


def _is_text(kind: "pa.DataType") -> bool:
    """Return whether a column contains texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class _Sums(NamedTuple):
    """Sums of a part of the items by one column of clusters."""

    totals: ScoreTotals | None
    """Sums over the items for which all models have a score."""
    rows: _Numbers
    """Number of the cluster of each row of `totals`."""
    names: "pa.Array"
    """Names of the clusters, by number."""
    sizes: _Numbers
    """Number of items of each cluster for which any model has a row."""


class _Summing:
    """Sums files over clusters, part by part."""

    def __init__(
        self,
        inputs: Sequence[Input],
        files: "Sequence[pq.ParquetFile]",
        columns: _Columns,
        *,
        has_cells: bool,
    ) -> None:
        schemas = [file.schema_arrow for file in files]
        for name in columns.names():
            if name != columns.score and len({schema.field(name).type for schema in schemas}) > 1:
                raise _NotFlat
        self.columns, self._files, self._has_cells = columns, files, has_cells
        self._inputs = inputs
        self._reset()

    def _reset(self) -> None:
        """Discard the sums of earlier parts."""
        self._named: dict[int, str] = {}
        self._sums: dict[str, list[_Sums]] = {name: [] for name in self.columns.groups}
        self._n_missing = np.zeros(len(self._inputs), dtype=np.int64)
        self._is_share = np.ones(len(self._inputs), dtype=bool)
        self._n_items = 0
        self._n_blank, self._n_null = np.zeros((2, len(self._inputs)))

    def windows(self) -> "Iterator[list[pa.Table]]":
        """Yield parts of the files with the same range of items.

        Raises:
            _Unordered: If items are not in strictly ascending order.
        """
        readers = [_Reader(file, self.columns) for file in self._files]
        while ends := [reader.last for reader in readers if reader.fill()]:
            cut = min(ends)
            yield [reader.take(cut) for reader in readers]

    def whole(self) -> "Iterator[list[pa.Table]]":
        """Yield the files as one part."""
        yield [file.read(self.columns.names(), use_threads=False) for file in self._files]

    def sum(
        self, parts: "Iterator[list[pa.Table]]", given: ResultColumns, *, is_ordered: bool
    ) -> FlatTotals:
        """Sum all parts, and choose the clusters."""
        self._reset()
        for tables in parts:
            self._add(tables, is_ordered=is_ordered)
        names = [
            one.label or self._named.get(place) or str(one.fallback)
            for place, one in enumerate(self._inputs)
        ]
        if not self._n_items or len({*names}) < len(names) or len({*self._is_share}) > 1:
            raise _NotFlat
        n_rows = np.array([file.metadata.num_rows for file in self._files])
        n_blank = self._n_blank + np.where(self._n_null < n_rows, self._n_null, 0.0)
        if (n_blank > MANY * n_rows).any():
            raise _NotFlat
        joined = {name: _joined(sums, is_item=not name) for name, sums in self._sums.items()}
        sizes = {name: [one] for name, (_, one) in joined.items() if name}
        cluster = choose_cluster(sizes, self._n_items, ITEMS_ALONE, {})
        if given.cluster:
            (name,) = joined
            cluster = ClusterChoice((name,), f"{name}, as named")
        (chosen,) = cluster.names or ("",)
        if chosen not in joined:
            raise _NotFlat
        totals, of_clusters = joined[chosen]
        return FlatTotals(
            totals=totals._replace(models=names),
            metric=self.columns.score,
            n_missing=self._n_missing,
            n_items_of_any=self._n_items,
            cluster=cluster,
            labels={name: joined[name][0]._replace(models=names) for name in cluster.labels},
            n_clusters_of_any=len(of_clusters),
            is_same_questions=bool(self.columns.texts),
        )

    def _add(self, tables: "list[pa.Table]", *, is_ordered: bool) -> None:
        """Add the sums of a part; items of ordered parts are distinct."""
        import pyarrow as pa
        import pyarrow.compute as pc

        item = self.columns.item
        for place, table in enumerate(tables):
            self._check(table, place)
        ids = [table[item] for table in tables]
        is_alike = is_ordered and all(one.equals(ids[0]) for one in ids[1:])
        codes, n_items = ([], len(ids[0])) if is_alike else _codes(ids)
        values = np.full((n_items, len(tables)), np.nan)
        for place, table in enumerate(tables):
            scores = table[self.columns.score].cast(pa.float64()).to_numpy()
            if (scores == -1).any() or np.isinf(scores).any():
                raise _NotFlat
            values[codes[place] if codes else slice(None), place] = scores
        unknown = np.isnan(values)
        self._n_missing += unknown.sum(axis=0)
        self._n_items += n_items
        with np.errstate(invalid="ignore"):
            self._is_share &= ~((values < 0.0) | (values > 1.0)).any(axis=0)
        is_known = ~unknown.any(axis=1)
        if not is_alike and self.columns.texts:
            raise _NotFlat
        for name in self.columns.texts:
            first = tables[0][name]
            if not all(table[name].equals(first) for table in tables[1:]):
                raise _NotFlat
            if (
                first.null_count
                or pc.any(pc.or_(pc.equal(first, ""), pc.starts_with(first, "["))).as_py()
            ):
                raise _NotFlat
        for name, sums in self._sums.items():
            if name:
                numbers, names = _cluster_numbers([table[name] for table in tables], codes, n_items)
            else:
                numbers, names = np.arange(n_items), pa.nulls(0)
            known = numbers if is_known.all() else numbers[is_known]
            totals = None
            if len(known):
                scores = ModelScores(
                    values=values if is_known.all() else values[is_known],
                    tasks=np.zeros(len(known), dtype=np.int64),
                    clusters=known,
                    models=[""] * len(tables),
                    task_names=["all"],
                    labels=pd.DataFrame(),
                )
                totals = score_totals(scores, has_cells=self._has_cells)
            rows = np.flatnonzero(np.bincount(known))
            sums.append(_Sums(totals, rows, names, np.bincount(numbers, minlength=len(names))))

    def _check(self, table: "pa.Table", place: int) -> None:
        """Raise an error if a part has missing or blank labels, or a second model."""
        import pyarrow.compute as pc

        for name in filter(None, (self.columns.item, *self.columns.groups)):
            column = table[name]
            if column.null_count:
                raise _NotFlat
            if _is_text(column.type) and pc.any(pc.equal(column, "")).as_py():
                raise _NotFlat
        if self.columns.prediction is not None:
            answers = table[self.columns.prediction]
            if has_failed_answers(answers):
                raise _NotFlat
            is_blank = pc.or_(pc.utf8_is_space(answers), pc.equal(answers, ""))
            self._n_blank[place] += pc.sum(is_blank, min_count=0).as_py()
            self._n_null[place] += answers.null_count
            if _has_common_answer(answers, table[self.columns.score]):
                raise _NotFlat
        if self.columns.model and len(table):
            found = pc.unique(table[self.columns.model]).to_pylist()
            known = self._named.setdefault(place, str(found[0]))
            if len(found) > 1 or found[0] is None or known != str(found[0]):
                raise _NotFlat


def _has_common_answer(answers: "pa.ChunkedArray", scores: "pa.ChunkedArray") -> bool:
    """Return whether a sample has a text that is often the answer and never correct."""
    rows = np.arange(0, len(answers), 1 + len(answers) // _SAMPLE)
    texts = answers.take(rows).to_pandas()
    counts = texts.value_counts()
    often = {*counts.index[(counts >= FEW) & (counts > MANY / 2.0 * len(rows))]}
    return bool(often and often.difference(texts[scores.take(rows).to_pandas() > 0]))


class _Reader:
    """A file that lists its items in ascending order, read a few rows at a time."""

    def __init__(self, file: "pq.ParquetFile", columns: _Columns) -> None:
        self._item = columns.item
        self._batches = file.iter_batches(_ROWS, columns=columns.names(), use_threads=False)
        self._empty = file.schema_arrow.empty_table().select(columns.names())
        self.rows: pa.Table | None = None
        self.last: Any = None

    def fill(self) -> bool:
        """Read the next rows if all were taken; return whether there are rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        while self.rows is None or not len(self.rows):
            batch = next(self._batches, None)
            if batch is None:
                self.rows = None
                return False
            ids = batch.column(self._item)
            if not len(ids):
                continue
            is_ascending = ids.null_count == 0 and pc.all(pc.less(ids[:-1], ids[1:])).as_py()
            if not is_ascending or (self.last is not None and not self.last < ids[0].as_py()):
                raise _Unordered
            self.rows, self.last = pa.Table.from_batches([batch]), ids[-1].as_py()
        return True

    def take(self, cut: Any) -> "pa.Table":  # noqa: ANN401
        """Take the rows up to an item."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.rows is None:
            return self._empty
        n = len(self.rows)
        if self.last > cut:
            n = pc.sum(pc.less_equal(self.rows[self._item], pa.scalar(cut))).as_py() or 0
        taken, self.rows = self.rows.slice(0, n), self.rows.slice(n)
        return taken


def _codes(ids: "list[pa.ChunkedArray]") -> tuple[list[_Numbers], int]:
    """Number the items of all tables; each table must list an item once."""
    import pyarrow as pa

    joined = pa.chunked_array([chunk for one in ids for chunk in one.chunks], type=ids[0].type)
    codes = None
    if pa.types.is_integer(joined.type) and len(joined):
        numbers = joined.to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < _DENSE * len(numbers):
            codes = numbers - low
            is_there = np.zeros(high - low + 1, dtype=bool)
            is_there[codes] = True
            n_items = int(np.count_nonzero(is_there))
            if n_items < len(is_there):
                codes = (np.cumsum(is_there) - 1)[codes]
    if codes is None:
        encoded = joined.combine_chunks().dictionary_encode()
        codes, n_items = encoded.indices.to_numpy(), len(encoded.dictionary)
    parts = np.split(codes, np.cumsum([len(one) for one in ids])[:-1])
    for part in parts:
        if np.bincount(part, minlength=1).max() > 1:
            raise _NotFlat
    return parts, n_items


def _cluster_numbers(
    columns: "list[pa.ChunkedArray]", codes: Sequence[_Numbers], n_items: int
) -> "tuple[_Numbers, pa.Array]":
    """Number the cluster of each item, which must be identical in all tables."""
    import pyarrow as pa

    if not codes:
        if not all(column.equals(columns[0]) for column in columns[1:]):
            raise _NotFlat
        encoded = columns[0].combine_chunks().dictionary_encode()
        return encoded.indices.to_numpy(), encoded.dictionary
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, type=columns[0].type).combine_chunks().dictionary_encode()
    parts = np.split(encoded.indices.to_numpy(), np.cumsum([len(one) for one in columns])[:-1])
    of_item = np.zeros(n_items, dtype=np.int64)
    for places, numbers in zip(codes, parts, strict=True):
        of_item[places] = numbers
    if any((of_item[a] != b).any() for a, b in zip(codes, parts, strict=True)):
        raise _NotFlat
    return of_item, encoded.dictionary


def _joined(sums: Sequence[_Sums], *, is_item: bool) -> tuple[ScoreTotals, _Numbers]:
    """Join the sums of all parts; return them and the number of items of each cluster."""
    import pyarrow as pa

    totals = [one.totals for one in sums if one.totals is not None]
    if not totals:
        raise _NotFlat
    if is_item:
        n_rows = sum(len(one.sizes) for one in totals)
        sizes = np.ones(sum(len(one.sizes) for one in sums), dtype=np.int64)
        return joined_totals(totals, np.arange(n_rows)), sizes
    names = pa.chunked_array([one.names for one in sums]).combine_chunks()
    codes = names.dictionary_encode().indices.to_numpy().astype(np.int64)
    sizes = np.bincount(codes, np.concatenate([one.sizes for one in sums]))
    starts = np.cumsum([0, *(len(one.names) for one in sums)])
    rows = [
        codes[start:][one.rows]
        for one, start in zip(sums, starts, strict=False)
        if one.totals is not None
    ]
    return joined_totals(totals, np.concatenate(rows)), sizes
