"""A model that is asked beside a run: a judge, a chooser of senses, a writer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from surface_consistency.models.registry import load_runner
from surface_consistency.models.runner import Runner
from surface_consistency.schemas.settings import values_of_items

__all__ = ["SideModel"]

_NEED_A_MODEL: Final = ("openai", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """Who is asked, as settings name it: `<prefix>_model`, `<prefix>_runner`, `<prefix>_option`."""

    prefix: str
    """What the names of its settings begin with, such as "judge"."""

    model: str | None
    """Hub id, folder or server's id; None for runners without a model."""

    runner: str = "openai"
    """Name of its runner."""

    option: Mapping[str, str] = field(default_factory=dict)
    """Keyword arguments of the runner, their values JSON or text."""

    label: str | None = None
    """Name of the model in tables; None for that of the model, or of the runner."""

    @classmethod
    def of(cls, settings: BaseModel, prefix: str) -> "SideModel":
        """Read off settings who is asked.

        Args:
            settings: The settings, with fields that begin with the prefix.
            prefix: The beginning, such as "judge".

        Returns:
            The model.
        """
        names = ("model", "runner", "option", "label")
        known = {
            name: f"{prefix}_{name}" for name in names if hasattr(settings, f"{prefix}_{name}")
        }
        return cls(prefix=prefix, **{name: getattr(settings, long) for name, long in known.items()})

    @property
    def lacks_model(self) -> bool:
        """Whether the runner needs a model and none is named."""
        return self.model is None and self.runner in _NEED_A_MODEL

    def load(self) -> Runner:
        """Load the runner.

        Returns:
            The runner.

        Raises:
            RunnerError: If it cannot be loaded.
            RecordError: If an option is JSON beyond bounds.
        """
        options = values_of_items(self.option, f"{self.prefix}_option")
        return load_runner(self.runner, model=self.model, options=options)

    def name(self, runner: Runner) -> str:
        """Name the model in tables and logs.

        Args:
            runner: What `load` returned.

        Returns:
            The label, else the model, else the runner's name.
        """
        return self.label or self.model or runner.name
