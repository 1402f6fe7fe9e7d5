"""The published audit, recomputed from its own tables (arXiv 2607.00605).

Three of its thirteen databases were answered from the index of another one, because the index was
cached under a file name and a number of entries. The guards find them by their FULL state, which is
near zero or equals DEL-ON in every prompt style.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.metrics import (
    PairedTable,
    contamination_by,
    decomposition_residual,
    mcnemar,
    recover_table,
)
from surface_consistency.studies.audit.cells import cell_label
from surface_consistency.studies.audit.published_rows import (
    CROSS_STATE_COLUMNS,
    PER_STATE_COLUMNS,
)
from surface_consistency.studies.audit.settings import STATES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["published_tables"]

_CELLS: Final = ("a", "b", "c", "d")
_COUNTS: Final = (
    "n",
    *_CELLS,
    "full_correct",
    "del_on_correct",
    "del_off_correct",
    "artifacts",
)
_SLICES: Final = {"all": (), "variant": ("variant",), "domain": ("domain",), "style": ("style",)}


def published_tables(
    per_state_csv: str | os.PathLike[str],
    cross_state_csv: str | os.PathLike[str],
    *,
    near_zero: float = 0.05,
) -> "dict[str, pd.DataFrame]":
    """Recompute the numbers of an audit from its two tables of means.

    Args:
        per_state_csv: `per_state_metrics.csv`.
        cross_state_csv: `cross_state_metrics.csv` of the same audit.
        near_zero: Largest FULL accuracy that counts as near zero.

    Returns:
        "cells": the paired counts of each prompt file (n, a, b, c, d, full_correct, del_on_correct,
        del_off_correct, artifacts) and whether its database is contaminated. "contamination": one
        row a database, as of `metrics.contamination_by`. "headline": rows by `slice` ("all",
        "variant", "domain", "style"), `label` and `subset` ("published" for all databases, "clean"
        without the contaminated ones): the counts, n_databases, full_accuracy, leakage,
        retrieval_mediated, interference, del_on_accuracy, artifact_rate, leakage_plus_mediated,
        identity_residual, McNemar's test. "states": exact match and token F1, weighted by facts, by
        slice, label, subset and state.

    Raises:
        SourceNotFoundError: If a file is missing.
        DataError: If a column is missing, the files are not of the same cells, or the rates of a
            cell cannot come from whole counts.
    """
    import pandas as pd

    per_state = _read(per_state_csv, PER_STATE_COLUMNS)
    cross_state = _read(cross_state_csv, CROSS_STATE_COLUMNS)
    cells = pd.DataFrame(_cell_rows(per_state, cross_state))
    contamination = contamination_by(
        cells, by=["database", "domain", "variant"], near_zero=near_zero
    )
    flagged = set(contamination.loc[contamination["is_contaminated"], "database"])
    cells["is_contaminated"] = cells["database"].isin(flagged)
    labels = cells[["prompt_file", "database", "domain", "variant", "style", "is_contaminated"]]
    states = per_state.merge(labels, on="prompt_file", validate="many_to_one")
    headline, by_state = [], []
    for name, columns in _SLICES.items():
        for subset, kept in (("published", cells), ("clean", cells[~cells["is_contaminated"]])):
            for label, part in _parts(kept, columns):
                place = {"slice": name, "label": label, "subset": subset}
                headline.append(place | _headline(part))
                chosen = states[states["prompt_file"].isin(part["prompt_file"])]
                by_state += [place | row for row in _state_rows(chosen)]
    return {
        "cells": cells,
        "contamination": contamination,
        "headline": pd.DataFrame(headline),
        "states": pd.DataFrame(by_state),
    }


def _read(path: str | os.PathLike[str], columns: Sequence[str]) -> "pd.DataFrame":
    """Read a table that holds some columns."""
    import pandas as pd

    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"no table {file}; check the path")
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    if missing := [column for column in columns if column not in table]:
        raise DataError(f"{file} has no column {', '.join(missing)}; it holds {list(table)}")
    return table


def _cell_rows(per_state: "pd.DataFrame", cross_state: "pd.DataFrame") -> list[dict[str, Any]]:
    """Recover the counts of every cell."""
    keys = list(zip(per_state["prompt_file"], per_state["state"], strict=True))
    exact = dict(zip(keys, per_state["exact_match"], strict=True))
    if len(exact) < len(keys) or not cross_state["prompt_file"].is_unique:
        raise DataError("a cell stands twice in the tables; pass those of one audit")
    rows = []
    for cell in cross_state.to_dict(orient="records"):
        file, n = str(cell["prompt_file"]), int(cell["paired_count"])
        label = cell_label(file)
        right = {}
        for state in STATES:
            if (file, state) not in exact:
                raise DataError(f"{file} has no state {state}; the tables are of different audits")
            right[state] = float(exact[file, state])
        try:
            table = recover_table(
                n=n,
                del_on=right["DEL-ON"],
                leakage=cell["parametric_leakage"],
                retrieval_mediated=cell["retrieval_mediated_correctness"],
            )
        except ValueError as error:
            raise DataError(f"{file}: {error}") from error
        rows.append(
            {
                "prompt_file": file,
                "database": label.database,
                "domain": label.domain,
                "variant": label.variant,
                "style": label.style,
                "n": n,
                **dict(zip(_CELLS, table.counts, strict=True)),
                "full_correct": round(right["FULL"] * n),
                "del_on_correct": round(right["DEL-ON"] * n),
                "del_off_correct": round(right["DEL-OFF"] * n),
                "artifacts": round(cell["retrieval_artifact_rate"] * n),
            }
        )
    return rows


def _parts(cells: "pd.DataFrame", columns: tuple[str, ...]) -> "list[tuple[str, pd.DataFrame]]":
    """Part the cells by a column, or take them as one."""
    if not columns:
        return [("all", cells)]
    return [(str(label), part) for label, part in cells.groupby(columns[0], sort=False)]


def _headline(cells: "pd.DataFrame") -> dict[str, Any]:
    """Add up cells, and derive the rates and the test."""
    counts = {name: int(cells[name].sum()) for name in _COUNTS}
    n = counts["n"]
    test = mcnemar(
        PairedTable(
            both=counts["a"],
            first_only=counts["b"],
            second_only=counts["c"],
            neither=counts["d"],
        )
    )
    rates = {
        "full_accuracy": counts["full_correct"] / n,
        "leakage": (counts["a"] + counts["c"]) / n,
        "retrieval_mediated": counts["b"] / n,
        "interference": counts["c"] / n,
        "del_on_accuracy": (counts["a"] + counts["b"]) / n,
        "artifact_rate": counts["artifacts"] / n,
    }
    return {
        "n_databases": cells["database"].nunique(),
        **counts,
        **rates,
        "leakage_plus_mediated": rates["leakage"] + rates["retrieval_mediated"],
        "identity_residual": decomposition_residual(
            del_on=rates["del_on_accuracy"],
            leakage=rates["leakage"],
            retrieval_mediated=rates["retrieval_mediated"],
            interference=rates["interference"],
        ),
        "mcnemar_statistic": test.statistic,
        "mcnemar_p_value": test.p_value,
        "mcnemar_method": test.method,
    }


def _state_rows(cells: "pd.DataFrame") -> list[dict[str, Any]]:
    """Average exact match and F1 of cells by state, weighted by their facts."""
    rows = []
    for state in STATES:
        part = cells[cells["state"] == state]
        n = int(part["count"].sum())
        if n:
            rows.append(
                {
                    "state": state,
                    "n": n,
                    "exact_match": float((part["exact_match"] * part["count"]).sum()) / n,
                    "f1": float((part["f1"] * part["count"]).sum()) / n,
                }
            )
    return rows
