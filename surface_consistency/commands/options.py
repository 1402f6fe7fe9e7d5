"""Options that several commands share: who answers, and where results go."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from surface_consistency.studies.model_settings import ModelSettings

__all__ = ["Json", "ModelSettings", "Out"]

Out = Annotated[Path, Parameter(help="Folder of the results.")]
"""The option --out."""

Json = Annotated[bool, Parameter(help="Print JSON for machines.", negative=())]
"""The option --json."""
