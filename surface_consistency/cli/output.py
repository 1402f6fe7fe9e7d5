"""Output of commands."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.tables.numbers import json_value, table_text
from surface_consistency.text import one_line

if TYPE_CHECKING:
    from surface_consistency.engine.report import Reported

UNANSWERED: Final = 3
"""Exit code of success if prompts have no answer."""

WORSE: Final = 4
"""Exit code of `compare --fail-if` if a model is worse."""


def finish(reported: "Reported", out: Path, *, as_json: bool) -> int:
    """Print the finding, the main table, the first table of each analysis, and paths of files.

    Args:
        reported: The page and its tables.
        out: Folder of the results.
        as_json: Whether to print one JSON object with all tables; undefined numbers are null.

    Returns:
        The exit code of a command that runs or scores: `UNANSWERED` if prompts of the runs have
        no answer, else 0.
    """
    n_unanswered = sum(run.scoring.n_unanswered for run in reported.runs if run.scoring is not None)
    code = UNANSWERED if n_unanswered else 0
    page = None if reported.page is None else str(reported.page)
    if as_json:
        tables = {
            name: [
                {key: json_value(value) for key, value in row.items()}
                for row in table.frame.to_dict(orient="records")
            ]
            for name, table in reported.tables.items()
        }
        summary = {"out": str(out), "report": page, "tables": tables}
        print(json.dumps(summary, ensure_ascii=False))
        return code
    if reported.finding:
        print(f"{one_line(reported.finding)}\n")
    print(table_text(reported.tables["overall"]))
    for anchor, table in reported.leading.items():
        print(f"\n{table_text(table, brief=True)}")
        if page:
            print(f"complete table: {page}#{anchor}")
    for note in reported.notes:
        print(f"note: {note}")
    print(f"\nreport: {page}" if page else "")
    print(f"tables: {out / 'tables'}")
    return code
