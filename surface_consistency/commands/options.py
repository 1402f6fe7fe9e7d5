"""Options that several commands share: who answers, and where results go."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from pydantic import Field

from surface_consistency.settings_options import Settings, values_of_items

__all__ = ["Json", "ModelSettings", "Out"]

Out = Annotated[Path, Parameter(help="Folder of the results.")]
"""The option --out."""

Json = Annotated[bool, Parameter(help="Print JSON for machines.", negative=())]
"""The option --json."""


class ModelSettings(Settings):
    """Who answers."""

    model: str | None = None
    """Hub id or folder; what the runner calls its model. "organism" trains a small one first, if
    the study has one."""

    label: str | None = None
    """Name of the model in tables; the last part of --model by default."""

    runner: str | None = None
    """Registered runner, package:name or module:attribute; the study's own by default."""

    runner_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the runner, its value JSON or text."""

    model_revision: str | None = None
    """Commit, tag or branch of the model."""

    dtype: str | None = None
    """Number format: auto, float32, bfloat16 or float16."""

    device: str | None = None
    """Where the model runs: cpu, cuda, cuda:1, mps; the best there is by default."""

    int8: bool = False
    """Whether weights are of 8 bits, as in the papers."""

    batch_size: int | None = Field(default=None, ge=1)
    """Most prompts in a batch."""

    @property
    def options(self) -> dict[str, object]:
        """The runner's keyword arguments: those given by name, then the named flags."""
        named = {
            "revision": self.model_revision,
            "dtype": self.dtype,
            "device": self.device,
            "quantization": "int8" if self.int8 else None,
            "batch_size": self.batch_size,
        }
        given = values_of_items(self.runner_option, "runner_option")
        return given | {name: value for name, value in named.items() if value is not None}

    def name(self, runner: Any) -> str:  # noqa: ANN401 - a runner, or what makes one
        """Name the model in tables.

        Args:
            runner: Who answers.

        Returns:
            The label, else the model's name without its folder, else the runner's name.
        """
        if self.label is not None:
            return self.label
        if self.model is None:
            return str(runner.name)
        path = Path(self.model)
        return path.resolve().name if path.exists() else self.model
