"""The page of a table of estimates: sentences, a forest plot and the table."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surface_consistency.errors import DataError
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Dot, Finding, ForestPlot, Page, Section
from surface_consistency.runs.files import output_folder, staged_report, write_csv
from surface_consistency.runs.folder import RunFolder
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.table import Column, Table


def write_estimates(
    folder: str | os.PathLike[str],
    *,
    name: str,
    table: Table,
    names: Sequence[str],
    main: Column,
    unit: str,
    sentences: Sequence[str],
    claims: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """Write the page of a table and the table as CSV, all together or not at all.

    Args:
        folder: Folder of `report.html` and `tables/`; created if it does not exist.
        name: Name of the table, for the file.
        table: The table, with a column `n_clusters`.
        names: Names of its rows.
        main: The estimate of the figure, with its bounds.
        unit: Unit of its column `n`, in the plural.
        sentences: The finding, then further sentences.
        claims: Records of the numbers that the sentences report.

    Returns:
        The page.

    Raises:
        DataError: If the folder contains a run, a file that was not written by a report would be
            replaced, or a file cannot be written.
    """
    home = output_folder(folder)
    run = RunFolder(home)
    if run.targets.exists() or run.prompts.exists():
        raise DataError(f"{home} contains a run; choose another folder for the page")
    finding, *others = sentences or ("There is no estimate.",)
    page = Page(
        title=table.caption,
        study=name.replace("_", " ").capitalize(),
        question=table.caption,
        models=["all"],
        finding=Finding(sentence=[finding], summary=[" ".join(others)]),
        sections=[
            Section(
                anchor="estimates",
                title="Estimates",
                blocks=[_forest(name, table, names, main, unit)],
            ),
            Section(anchor="numbers", title="Numbers", blocks=[table]),
        ],
        claims=claims,
    )
    with staged_report(home) as part:
        write_csv(part / "tables" / f"{name}.csv", table.frame)
        write_page(page, part / "report.html")
    return home / "report.html"


def _forest(name: str, table: Table, names: Sequence[str], main: Column, unit: str) -> ForestPlot:
    """Draw the main estimate of the rows that have one."""
    kind = main.kind if main.kind in ("difference", "number", "decimal") else "rate"
    rows = []
    for label, row in zip(names, table.frame.to_dict("records"), strict=True):
        value = interval_value(row, main.key, kind=kind)
        if not math.isnan(value.value):
            n_clusters = int(row["n_clusters"])
            n = int(row.get("n", n_clusters))
            dot = Dot(model=0, value=value, n=n, n_clusters=n_clusters, unit=unit)
            rows.append((label, 0, [dot]))
    axis = f"{main.title}, {main.unit}" if main.unit else main.title
    return ForestPlot(
        name=name, title=main.title, axis=axis, rows=rows, clusters="clusters", certain=""
    )
