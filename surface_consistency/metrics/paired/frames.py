"""Anyone's verdicts, in a frame or in rows, as the outcomes frame that the metrics read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.metrics._shared.frames import column_names
from surface_consistency.metrics.paired._long_pairs import pair_rows
from surface_consistency.metrics.paired._source_cells import (
    identifiers,
    need_column,
    verdict_column,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["outcomes_frame"]


def outcomes_frame(
    source: "pd.DataFrame | Mapping[str, Any] | Iterable[Any]",
    *,
    first: str,
    second: str,
    condition: str | None = None,
    correct: str = "correct",
    fact: str | Sequence[str] = "fact_id",
    cluster: str | None = None,
    pair_id: str | None = None,
    within: str | Sequence[str] | None = (),
) -> "pd.DataFrame":
    """Turn verdicts into the outcomes frame: one row a pair, ready for `paired_by`.

    Without `condition` each row is a pair, and `first` and `second` name its two columns of
    verdicts. With `condition` each row is one fact under one condition: `first` and `second` are
    values of that column, and the rows of one fact are paired, its one `first` row with each of its
    `second` rows.

    Args:
        source: A DataFrame; a mapping from column to values; or rows, each a mapping or a record
            such as `PairedOutcome`.
        first: Column, or value of `condition`, of the first condition.
        second: Column, or value of `condition`, of the second condition.
        condition: Column that tells the condition of a row.
        correct: With `condition`: column of verdicts.
        fact: With `condition`: column, or columns together, that name the fact.
        cluster: Column of what intervals should resample as a whole; None takes `fact_id` where
            the source has it, then the fact, then each pair for itself.
        pair_id: Column of pair ids; None takes `pair_id` where the source has it, then numbers.
        within: Columns, such as the model, within which a pair id is unique; None skips the check.

    Returns:
        The frame, with pair_id and fact_id (the cluster) as text, first_condition and
        second_condition, first_correct and second_correct as nullable booleans, and the other
        columns of the source as they are; with `condition`, those of the `second` row.

    Raises:
        ColumnNotFoundError: When a named column is not in the source; the message lists those seen.
        TypeError: When `source` is none of the above.
        ValueError: When there are no rows, a cell is no verdict (row and value are named), a pair
            id stands twice, an id is empty, a fact has several `first` rows, no fact has both
            conditions, or a column of the source has a name that the frame needs.

    Notes:
        Verdicts may be text as in CSV files (`parse_verdict`); an empty cell is a missing verdict.
        Rows are numbered from 1. Rows of other conditions are left out; facts that lack one of the
        two are left out and counted in an `IncompletePairWarning`.

    References:
        H. Wickham, Tidy Data, Journal of Statistical Software 59, 2014.

    Examples:
        >>> rows = [
        ...     {"form": "canonical", "fact_id": "Q1", "correct": "1"},
        ...     {"form": "redirect", "fact_id": "Q1", "correct": "0"},
        ...     {"form": "redirect", "fact_id": "Q1", "correct": "1"}]
        >>> frame = outcomes_frame(rows, first="canonical", second="redirect", condition="form")
        >>> frame[["pair_id", "first_correct", "second_correct"]].values.tolist()
        [['Q1/1', True, False], ['Q1/2', True, True]]
    """
    frame = _as_frame(source)
    if first == second:
        raise ValueError(f"first and second must differ; both are {first!r}")
    if frame.empty:
        raise ValueError("the source has no rows")
    if condition is None:
        pairs = _wide(frame, first, second)
        default_id = [str(number) for number in range(1, len(pairs) + 1)]
        default_fact = None
    else:
        facts = column_names(fact)
        pairs, default_fact = pair_rows(frame, first, second, condition, correct, facts)
        counts = default_fact.groupby(default_fact, sort=False).cumcount() + 1
        default_id = [f"{f}/{n}" for f, n in zip(default_fact, counts, strict=True)]
    if pair_id is not None or "pair_id" in pairs:
        ids = identifiers(pairs, pair_id or "pair_id")
    else:
        ids = default_id
    if cluster is not None or "fact_id" in pairs:
        clusters = identifiers(pairs, cluster or "fact_id")
    else:
        clusters = ids if default_fact is None else list(default_fact)
    _keep(pairs, {"pair_id": pair_id, "fact_id": cluster})
    names = {"first_condition": first, "second_condition": second}
    new = {name: value for name, value in names.items() if name not in pairs}
    pairs = pairs.assign(pair_id=ids, fact_id=clusters, **new)
    _check_unique(pairs, within)
    return _ordered(pairs)


def _as_frame(source: object) -> "pd.DataFrame":
    """Return the source as a frame of its own."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if isinstance(source, Mapping):
        columns = {name: list(values) for name, values in source.items()}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns must be equally long; got {lengths}")
        return pd.DataFrame({n: pd.Series(v, dtype=object) for n, v in columns.items()})
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise TypeError(
            "source must be a DataFrame, a mapping of columns, or rows; got "
            f"{type(source).__name__}: read a file first, for instance with pandas.read_csv"
        )
    rows = [_as_row(row, number) for number, row in enumerate(source, start=1)]
    names = dict.fromkeys(name for row in rows for name in row)
    cells = {name: [row.get(name) for row in rows] for name in names}
    return pd.DataFrame({name: pd.Series(cells[name], dtype=object) for name in names})


def _as_row(row: object, number: int) -> Mapping[str, Any]:
    """Return one row as a mapping."""
    if isinstance(row, Mapping):
        return row
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        fields: Mapping[str, Any] = dump()
        return fields
    raise TypeError(f"row {number} must be a mapping or a record; got {type(row).__name__}")


def _wide(frame: "pd.DataFrame", first: str, second: str) -> "pd.DataFrame":
    """Read the two columns of verdicts of pairs."""
    for role, column in (("first", first), ("second", second)):
        need_column(frame, column, role)
    pairs = frame.drop(columns=[first, second])
    for column in ("first_correct", "second_correct"):
        if column in pairs:
            raise ValueError(
                f"the source has a column {column!r} besides {first!r} and {second!r}, whose "
                "verdicts would take its name: rename or drop one of them"
            )
    return pairs.assign(
        first_correct=verdict_column(frame, first), second_correct=verdict_column(frame, second)
    )


def _keep(pairs: "pd.DataFrame", named: Mapping[str, str | None]) -> None:
    """Refuse to write over a column that is something else."""
    for own, column in named.items():
        if column is not None and column != own and own in pairs:
            raise ValueError(
                f"the source has a column {own!r} besides {column!r}, which would take its name: "
                f"rename or drop one of them"
            )


def _check_unique(pairs: "pd.DataFrame", within: str | Sequence[str] | None) -> None:
    """Refuse a pair id that stands twice."""
    if within is None:
        return
    keys = column_names(within)
    for column in keys:
        need_column(pairs, column, "within")
    repeated = pairs[pairs.duplicated([*keys, "pair_id"])]
    if len(repeated):
        raise ValueError(
            f"pair id {repeated['pair_id'].iloc[0]!r} stands more than once ({len(repeated)} rows "
            "repeat one): drop the duplicates, or name through within what tells them apart"
        )


def _ordered(pairs: "pd.DataFrame") -> "pd.DataFrame":
    """Put the columns of every outcomes frame first."""
    own = ["pair_id", "fact_id", "first_condition", "second_condition"]
    own += ["first_correct", "second_correct"]
    return pairs[[*own, *(column for column in pairs.columns if column not in own)]]
