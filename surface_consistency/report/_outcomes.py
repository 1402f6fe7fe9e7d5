"""The outcomes of a run, read from their file and checked."""

from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.schemas.outcomes import RedirectOutcome

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_outcomes"]

_COLUMNS = tuple(RedirectOutcome.model_fields)
_LISTS = ("categories", "types")
_VERDICTS = ("first_correct", "second_correct")
_NULLABLE = frozenset({*_VERDICTS, "subject_id", "first_prediction", "second_prediction"})


def read_outcomes(path: Path, model: str) -> "pd.DataFrame":
    """Read the pairs and check what the metrics rely on."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise DataError(
            f"{path}: cannot be read as Parquet ({error}); "
            "make it again with `surface-consistency score`"
        ) from error
    missing = [column for column in _COLUMNS if column not in frame]
    if missing:
        raise ColumnNotFoundError(
            f"{path}: no column {', '.join(map(repr, missing))} of RedirectOutcome; it has "
            f"{', '.join(map(repr, frame.columns))}; make it again with `surface-consistency score`"
        )
    if frame.empty:
        raise DataError(
            f"{path}: holds no pair, so there is nothing to report; score the run again with "
            "`surface-consistency score`, or ask more questions with a higher --limit"
        )
    _check_values(frame, path, model)
    typed = {column: _as_verdicts(frame[column], path) for column in _VERDICTS}
    return frame.assign(**typed, **{column: frame[column].map(list) for column in _LISTS})


def _check_values(frame: "pd.DataFrame", path: Path, model: str) -> None:
    """Refuse empty keys, foreign models, repeated pairs and labels that are no lists."""
    from pandas.api.types import is_list_like

    for column in _LISTS:
        strange = ~frame[column].map(is_list_like).astype(bool)
        if strange.any():
            value = frame.loc[strange, column].iloc[0]
            raise DataError(f"{path}: column {column!r} must hold lists of labels, got {value!r}")
    for column in sorted({*_COLUMNS} - _NULLABLE):
        if frame[column].isna().any():
            row = int(frame[column].isna().to_numpy().argmax())
            raise DataError(f"{path}: column {column!r} is empty in row {row}; each pair needs it")
    models = frame["model"].unique().tolist()
    if models != [model]:
        raise DataError(
            f"{path}: column 'model' holds {', '.join(map(repr, models))}, but manifest.json is of "
            f"{model!r}; a run folder holds one model, so give each its own"
        )
    repeated = frame["pair_id"].duplicated()
    if repeated.any():
        pair = frame.loc[repeated, "pair_id"].iloc[0]
        raise DataError(
            f"{path}: column 'pair_id' holds {pair!r} more than once; it would count twice, so "
            "make the file again with `surface-consistency score`"
        )


def _as_verdicts(column: "pd.Series[bool]", path: Path) -> "pd.Series[bool]":
    """Turn verdicts with gaps into nullable booleans."""
    try:
        return column.astype("boolean")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{path}: column {column.name!r} must hold true, false or null ({error})"
        ) from error
