"""The rows of RedirectQA that `run redirectqa` asks and `score` judges."""

import argparse
from typing import TYPE_CHECKING

from surface_consistency.commands.options import SAMPLE, pairs

if TYPE_CHECKING:
    from surface_consistency.data.redirectqa import RedirectQA

__all__ = ["load_rows"]


def load_rows(arguments: argparse.Namespace) -> "RedirectQA":
    """Load the rows."""
    from surface_consistency.data.redirectqa import load_redirectqa, load_sample

    columns = pairs(arguments.column, "--column") or None
    if arguments.source == SAMPLE:
        if columns is not None:
            raise ValueError("--column belongs to data of your own; the sample's are known")
        return load_sample()
    return load_redirectqa(
        arguments.source,
        revision=arguments.revision,
        split=arguments.split,
        columns=columns,
    )
