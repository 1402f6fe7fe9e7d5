"""`build`: data sets made from their sources."""

from surface_consistency.commands import build_audit, build_redirectqa
from surface_consistency.commands.options import Commands

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Describe `build` and its data sets."""
    build = commands.add_parser("build", help="build a data set from its sources")
    data_sets = build.add_subparsers(
        title="data sets", required=True, metavar="DATASET", dest="dataset"
    )
    build_audit.add(data_sets)
    build_redirectqa.add(data_sets)
