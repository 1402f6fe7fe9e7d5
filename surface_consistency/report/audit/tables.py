"""The tables of one or several audits, one below the other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.report.audit.run import AuditRun

__all__ = ["audit_run_tables"]

_CHECK: Final = "check_"


def audit_run_tables(runs: "Sequence[AuditRun]") -> "dict[str, pd.DataFrame]":
    """Put the tables of runs one below the other.

    Args:
        runs: The runs, their labels distinct.

    Returns:
        By name: the tables that the study wrote, such as "overall", "by_variant", "attribution"
        and "states_by_style", each with the column `model`; "check_<name>", the checks of the runs,
        such as "check_closure"; and with several runs "settings", one row a run with the settings
        in which they differ.

    Raises:
        ValueError: If there are no runs.
    """
    import pandas as pd

    if not runs:
        raise ValueError("runs is empty; give at least one audit")
    found: dict[str, list[pd.DataFrame]] = {}
    for run in runs:
        for name, table in run.tables.items():
            found.setdefault(name, []).append(table)
        for name, table in run.checks.items():
            rest = [column for column in table.columns if column != "model"]
            named = table.assign(model=run.label)[["model", *rest]]
            found.setdefault(f"{_CHECK}{name}", []).append(named)
    tables = {
        name: pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
        for name, parts in found.items()
    }
    if len(runs) > 1:
        tables["settings"] = pd.DataFrame(
            [
                {"model": run.label, "folder": run.home.name}
                | {
                    name: "none" if value is None else str(value)
                    for name, value in run.varying.items()
                }
                for run in runs
            ]
        )
    return tables
