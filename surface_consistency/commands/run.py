"""`run`: a study end to end on a model."""

from surface_consistency.commands import run_redirectqa, run_slaq
from surface_consistency.commands.options import Commands

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Describe `run` and its studies."""
    run = commands.add_parser("run", help="run a study end to end on a model")
    studies = run.add_subparsers(title="studies", required=True, metavar="STUDY", dest="study")
    run_redirectqa.add(studies)
    run_slaq.add(studies)
