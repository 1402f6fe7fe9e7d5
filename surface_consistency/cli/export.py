"""`export`: scored runs in the formats of others."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from surface_consistency.cli.options import RUNS, run_folders
from surface_consistency.engine.export import (
    export_dataset,
    export_eval_results,
    export_model_index,
)

__all__ = ["make_export"]


def make_export(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command `export`.

    Args:
        argv: Arguments after it; they do not matter.

    Returns:
        The command.
    """
    return _export


def _export(
    *runs: Annotated[Path, Parameter(help=f"{RUNS} All of one study.")],
    to: Annotated[
        Literal["dataset", "model-index", "eval-results"],
        Parameter(
            help="The outcomes as a data set with its card, the results as the model-index of a "
            "model card, or as .eval_results of a model's repository."
        ),
    ],
    out: Annotated[Path, Parameter(help="Folder of what is written.")],
    source_url: Annotated[
        str | None, Parameter(help="Where the evaluation can be seen, for eval-results.")
    ] = None,
) -> None:
    """Write scored runs in the formats of the hub; nothing is uploaded."""
    if source_url is not None and to != "eval-results":
        raise ValueError("--source-url is for --to eval-results")
    if not runs:
        raise ValueError("give the folders of scored runs")
    folders = run_folders(runs)
    if to == "dataset":
        written = export_dataset(folders, out)
    elif to == "model-index":
        written = export_model_index(folders, out)
    else:
        written = export_eval_results(folders, out, source_url=source_url)
    print("\n".join(map(str, written)))
