"""Anyone's verdicts, in a frame or in rows, as the outcomes frame that the metrics read."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, DataWarning, SurfaceConsistencyWarning
from surface_consistency.metrics._groups import column_names
from surface_consistency.metrics._inputs import is_missing
from surface_consistency.reading import first_names
from surface_consistency.text import did_you_mean

_NAMES_A_FACT: Final = re.compile(
    r"(?i)(?!(?:n|num|number[_ -]of|max|min|is|has)[_ -])(\w+[_ -])?"
    r"(fact|triplet|triple|item|question|subject|entity|topic|doc|document|instance|example|prompt)"
    r"s?[_ -]?(id|uri|key|number|index)?"
)
"""Columns that name what several rows may be about; counts and flags of such things do not."""

_WORDS: Final = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def to_verdict(value: object) -> bool | None:
    """Read one cell as a verdict.

    Args:
        value: True or False, 1 or 0, their text in any case ("true", "False", "1", "0.0"), or what
            stands for no verdict: None, NaN, `pandas.NA` or an empty cell.

    Returns:
        True for right, False for wrong, None for no verdict.

    Raises:
        ValueError: For anything else, "NA" and "null" among it: a cell that was meant to be empty
            must be empty.

    Notes:
        White space around text is ignored. Numbers other than 0 and 1, such as a token F1, are
        refused: turn them into verdicts by a threshold of your choice.

    References:
        RFC 4180 for the cells of CSV files, which are all text.

    Examples:
        >>> [to_verdict(cell) for cell in ("1", "False", "", None, 1.0)]
        [True, False, None, None, True]
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        word = value.strip().casefold()
        if not word:
            return None
        if word in _WORDS:
            return _WORDS[word]
    elif isinstance(value, _NUMBERS) and (value == 0 or value == 1):
        return bool(value)
    raise ValueError(
        f"{value!r} is no verdict: give 1 or 0, true or false, or leave the cell empty where the "
        "answer was not scored"
    )


def _need_column(frame: pd.DataFrame, column: str, role: str) -> None:
    """Make sure that a column is there, once."""
    seen = list(frame.columns)
    if column not in seen:
        raise ColumnNotFoundError(
            f"{role}={column!r} is not among the columns, which are {seen}: name the right one"
        )
    if seen.count(column) > 1:
        raise ValueError(f"column {column!r} stands {seen.count(column)} times")


def _verdict_column(frame: pd.DataFrame, column: str) -> "pd.Series[Any]":
    if isinstance(frame[column].dtype, pd.BooleanDtype):
        return frame[column]
    cells, codes = frame[column].array, np.arange(len(frame))
    if frame[column].dtype != object:
        codes, cells = pd.factorize(frame[column], use_na_sentinel=False)
    # One more, which is none: where pandas 2 has the code -1 for a gap all the same.
    verdicts = np.empty(len(cells) + 1, dtype=object)
    for number, value in enumerate(cells):
        try:
            verdicts[number] = to_verdict(value)
        except ValueError as error:
            row = int(np.argmax(codes == number)) + 1
            raise ValueError(f"row {row}, column {column!r}: {error}") from None
    return _as_booleans(verdicts[codes], index=frame.index)


def _as_booleans(
    values: Sequence[bool | None] | npt.NDArray[np.object_], index: "pd.Index[Any] | None" = None
) -> "pd.Series[Any]":
    """Return verdicts as nullable booleans."""
    series: pd.Series[Any] = pd.Series(values, index=index, dtype="boolean")
    return series


def _identifiers(frame: pd.DataFrame, column: str) -> list[str]:
    """Return a column of identifiers as text."""
    _need_column(frame, column, "column")
    texts = _text_list(frame[column])
    if "" in texts:
        raise ValueError(
            f"column {column!r} is empty in row {texts.index('') + 1}: every row needs one"
        )
    return texts


def _text_list(column: "pd.Series[Any]") -> list[str]:
    """Return a column as texts, whatever its type, an empty cell as empty text."""
    if isinstance(column.dtype, pd.StringDtype):
        return column.fillna("").tolist()
    return [_as_text(value) for value in column.tolist()]


def _as_text(value: object) -> str:
    """Return an identifier as text, whole floats, which gaps make, as integers."""
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _pair_rows(
    frame: pd.DataFrame, first: str, second: str, condition: str, score: str, facts: list[str]
) -> tuple[pd.DataFrame, "pd.Series[Any]"]:
    """Pair the rows of each fact; return the pairs and the name of their facts."""
    _need_column(frame, condition, "condition")
    conditions = pd.Series(_text_list(frame[condition]), index=frame.index, dtype=object)
    parts = [conditions == value for value in (first, second)]
    for role, value, part in zip(("first", "second"), (first, second), parts, strict=True):
        if not part.any():
            known = sorted({*conditions})
            raise ValueError(
                f"{role}={value!r} is no value of column {condition!r}"
                f"{did_you_mean(value, known)}; there are {first_names(known)}"
            )
    for role, column in (("score", score), *(("item", column) for column in facts)):
        _need_column(frame, column, role)
    verdicts = _verdict_column(frame, score)
    names = _fact_names(frame, facts)
    of_fact = dict(zip(names[parts[0]], verdicts[parts[0]], strict=True))
    repeated = names[parts[0]][names[parts[0]].duplicated()]
    if len(repeated):
        raise ValueError(
            f"the fact {repeated.iloc[0]!r} has several rows under {first!r} ({len(repeated)} too "
            "many): name what tells them apart through `item` besides, such as the seed or the "
            f"model; and if these are repeated measures of one item, name {' and '.join(facts)} "
            "through `cluster`, so that they are resampled together and not taken for independent"
        )
    paired = parts[1] & names.isin(list(of_fact))
    _warn_incomplete(set(of_fact), set(names[parts[1]]))
    pairs = frame[paired].drop(columns=[condition, score])
    pairs = pairs.assign(
        first_correct=_as_booleans([of_fact[name] for name in names[paired]], pairs.index),
        second_correct=verdicts[paired],
    )
    return pairs.reset_index(drop=True), names[paired].reset_index(drop=True)


def _fact_names(frame: pd.DataFrame, facts: list[str]) -> "pd.Series[Any]":
    """Name the fact of each row, no two facts alike."""
    columns = [_identifiers(frame, column) for column in facts]
    if len(columns) > 1:
        columns = [
            [text.replace("%", "%25").replace("/", "%2F") for text in texts] for texts in columns
        ]
    names: pd.Series[Any] = pd.Series(map("/".join, zip(*columns, strict=True)), index=frame.index)
    return names


def _refuse_unused(facts: list[str], score: str) -> None:
    """Refuse names of columns that nothing reads where each row is a pair."""
    for role, column, default in (("item", "/".join(facts), "item"), ("score", score, "correct")):
        if column != default:
            raise ValueError(
                f"{role}={column!r} is for rows of one condition each, and without `condition` "
                "every row is a pair: leave it out, or name the column of conditions through "
                "`condition`; what belongs together, such as repeated measures, is named through "
                "`cluster`"
            )


def _warn_repeated(pairs: pd.DataFrame, facts: list[str], names: "pd.Series[Any]") -> None:
    """Say where facts that share a value of a column are taken for independent of each other."""
    n_facts = names.nunique()
    counts = {column: len(set(_identifiers(pairs, column))) for column in facts}
    column = max(facts, key=counts.__getitem__)
    if len(facts) > 1 and counts[column] < n_facts:
        warnings.warn(
            f"{n_facts} facts, named by {' and '.join(facts)}, count as {n_facts} independent "
            f"clusters, though they share {counts[column]} values of {column!r}: if the rows of "
            f"one {column} are repeated measures, name it: `cluster={column}`",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )


def _warn_shared(pairs: pd.DataFrame) -> None:
    """Say where rows share what looks like the name of a fact and count as independent."""
    for column in pairs.columns:
        if not _NAMES_A_FACT.fullmatch(str(column)):
            continue
        names = [name for name in _text_list(pairs[column]) if name]
        n_names = len(set(names))
        if 1 < n_names < len(names):
            warnings.warn(
                f"{len(pairs)} rows count as {len(pairs)} independent pairs, though they share "
                f"{n_names} values of {column!r}: pairs of one {column} go together, and intervals "
                f"that take them apart are too narrow; name it: "
                f"`cluster={column}`",
                SurfaceConsistencyWarning,
                stacklevel=3,
            )
            return


def _warn_incomplete(first: set[str], second: set[str]) -> None:
    """Say how many facts lack a condition."""
    if not first & second:
        raise ValueError(
            "no fact stands under both conditions: check that column fact names the same facts, "
            f"such as {sorted(first)[0]!r} and {sorted(second)[0]!r}"
        )
    alone = len(first ^ second)
    if alone:
        warnings.warn(
            f"{alone} of {len(first | second)} facts stand under one of the two conditions only "
            "and were left out",
            DataWarning,
            stacklevel=4,
        )


def outcomes_frame(
    source: pd.DataFrame | Mapping[str, Any] | Iterable[Any],
    *,
    first: str,
    second: str,
    condition: str | None = None,
    score: str = "correct",
    item: str | Sequence[str] = "item",
    cluster: str | None = None,
    pair: str | None = None,
    within: str | Sequence[str] | None = (),
) -> pd.DataFrame:
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
        score: With `condition`: column of verdicts.
        item: With `condition`: column, or columns together, that name the fact.
        cluster: Column of what intervals should resample as a whole; None takes `item` where
            the source has it, then the fact, then each pair for itself.
        pair: Column of pair ids; None takes `pair` where the source has it, then numbers.
        within: Columns, such as the model, within which a pair id is unique; None skips the check.

    Returns:
        The frame, with pair and item (the cluster) as text, first_condition and
        second_condition, first_correct and second_correct as nullable booleans, and the other
        columns of the source as they are; with `condition`, those of the `second` row.

    Raises:
        ColumnNotFoundError: When a named column is not in the source; the message lists those seen.
        TypeError: When `source` is none of the above.
        ValueError: When there are no rows, a cell is no verdict (row and value are named), a pair
            id stands twice, an id is empty, a fact has several `first` rows, no fact has both
            conditions, a column of the source has a name that the frame needs, or `item` or
            `score` is given without `condition`.

    Warns:
        DataWarning: When facts lack a condition.
        SurfaceConsistencyWarning: When several columns name the facts, none of them alone tells
            the facts apart, and no cluster is named: repeated measures would count as independent.
            Likewise when each row is a pair, and rows share a value of a column that is called as
            facts are, such as "triplet_id" or "subject".

    Notes:
        Verdicts may be text as in CSV files (`to_verdict`); an empty cell is a missing verdict.
        Rows are numbered from 1. Rows of other conditions are left out; facts that lack one of the
        two are left out and counted in an `DataWarning`.

    References:
        H. Wickham, Tidy Data, Journal of Statistical Software 59, 2014.

    Examples:
        >>> rows = [
        ...     {"form": "canonical", "item": "Q1", "correct": "1"},
        ...     {"form": "redirect", "item": "Q1", "correct": "0"},
        ...     {"form": "redirect", "item": "Q1", "correct": "1"}]
        >>> frame = outcomes_frame(rows, first="canonical", second="redirect", condition="form")
        >>> frame[["pair", "first_correct", "second_correct"]].values.tolist()
        [['Q1/1', True, False], ['Q1/2', True, True]]
    """
    frame = _as_frame(source)
    if first == second:
        raise ValueError(f"first and second must differ; both are {first!r}")
    if frame.empty:
        raise ValueError("the source has no rows")
    facts = column_names(item)
    if condition is None:
        _refuse_unused(facts, score)
        for role, column in (("first", first), ("second", second)):
            _need_column(frame, column, role)
        pairs = frame.drop(columns=[first, second])
        for column in ("first_correct", "second_correct"):
            if column in pairs:
                raise ValueError(
                    f"the source has a column {column!r} besides {first!r} and {second!r}, whose "
                    "verdicts would take its name: rename or drop one of them"
                )
        pairs = pairs.assign(
            first_correct=_verdict_column(frame, first),
            second_correct=_verdict_column(frame, second),
        )
        default_id = [str(number) for number in range(1, len(pairs) + 1)]
        default_fact = None
    else:
        pairs, default_fact = _pair_rows(frame, first, second, condition, score, facts)
        counts = default_fact.groupby(default_fact, sort=False).cumcount() + 1
        default_id = [f"{f}/{n}" for f, n in zip(default_fact, counts, strict=True)]
    ids = _identifiers(pairs, pair or "pair") if pair is not None or "pair" in pairs else default_id
    if cluster is not None or "item" in pairs:
        clusters = _identifiers(pairs, cluster or "item")
    else:
        clusters = ids if default_fact is None else list(default_fact)
        if default_fact is not None:
            _warn_repeated(pairs, facts, default_fact)
        else:
            _warn_shared(pairs)
    _keep(pairs, {"pair": pair, "item": cluster})
    names = {"first_condition": first, "second_condition": second}
    new = {name: value for name, value in names.items() if name not in pairs}
    pairs = pairs.assign(pair=ids, item=clusters, **new)
    _check_unique(pairs, within)
    own = ["pair", "item", "first_condition", "second_condition"]
    own += ["first_correct", "second_correct"]
    return pairs[[*own, *(column for column in pairs.columns if column not in own)]]


def _as_frame(source: object) -> pd.DataFrame:
    """Return the source as a frame of its own."""
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
    if isinstance(row, Mapping):
        return row
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        fields: Mapping[str, Any] = dump()
        return fields
    raise TypeError(f"row {number} must be a mapping or a record; got {type(row).__name__}")


def _keep(pairs: pd.DataFrame, named: Mapping[str, str | None]) -> None:
    """Refuse to write over a column that is something else."""
    for own, column in named.items():
        if column is not None and column != own and own in pairs:
            raise ValueError(
                f"the source has a column {own!r} besides {column!r}, which would take its name: "
                f"rename or drop one of them"
            )


def _check_unique(pairs: pd.DataFrame, within: str | Sequence[str] | None) -> None:
    """Refuse a pair id that stands twice."""
    if within is None:
        return
    keys = column_names(within)
    for column in keys:
        _need_column(pairs, column, "within")
    repeated = pairs[pairs.duplicated([*keys, "pair"])]
    if len(repeated):
        raise ValueError(
            f"pair id {repeated['pair'].iloc[0]!r} stands more than once ({len(repeated)} rows "
            "repeat one): drop the duplicates, or name through within what tells them apart"
        )
