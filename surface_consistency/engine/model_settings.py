"""Options of the model backend, and how a model is found and loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pydantic import Field, model_validator

from surface_consistency.engine.published import Difference, differences
from surface_consistency.engine.settings import PublishedSettings, StudyRecords
from surface_consistency.models.registry import load_runner
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Rare, Settings, values_of_items

if TYPE_CHECKING:
    from surface_consistency.engine.study import Study
    from surface_consistency.models.runner import Runner


_OF_REVISIONS: Final = (None, "transformers")
"""Runners whose models have revisions."""


class ModelSettings(Settings):
    """The model backend."""

    model: str | None = None
    """Hub id, folder or GGUF file, or the name of the model at the runner; "toy_model" trains a
    small model first, if the study has one."""

    label: str | None = None
    """Name of the model in tables; the last part of `model` by default."""

    runner: str | None = None
    """Registered runner, package:name or module:attribute; by default that of the study."""

    runner_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the runner; its value is JSON or text."""

    model_revision: str | None = None
    """Commit, tag or branch of the model."""

    dtype: str | None = None
    """Torch dtype: auto, float32, bfloat16 or float16."""

    device: str | None = None
    """Device: cpu, cuda, cuda:1, mps; by default the best available one."""

    int8: bool = False
    """Load weights in 8-bit, as in both papers on RedirectQA."""

    int4: Rare[bool] = False
    """Load weights in 4-bit."""

    batch_size: Rare[int | None] = Field(default=None, ge=1)
    """Maximum batch size."""

    @model_validator(mode="after")
    def _agrees(self) -> "ModelSettings":
        """Raise an error for options that exclude each other."""
        if self.int8 and self.int4:
            raise ValueError("`int8` and `int4` exclude each other; use one of them")
        return self

    @property
    def options(self) -> dict[str, object]:
        """Keyword arguments of the runner: those of `runner_option`, then the named options."""
        named = {
            "revision": self.model_revision,
            "dtype": self.dtype,
            "device": self.device,
            "quantization": "int8" if self.int8 else "int4" if self.int4 else None,
            "batch_size": self.batch_size,
        }
        given = values_of_items(self.runner_option, "runner_option")
        return given | {name: value for name, value in named.items() if value is not None}

    def as_published(self, records: StudyRecords, settings: Mapping[str, object]) -> Self:
        """Set the loading options of the paper of a study, if the run is as published.

        Args:
            records: The records of the study.
            settings: The study's settings, as the manifest contains them.

        Returns:
            The settings; unchanged for a toy model, and for a runner that does not load weights.

        Raises:
            ValueError: If another value was given.
        """
        is_loaded = (self.runner or records.runner) == _OF_REVISIONS[1]
        if not is_loaded or self.model == "toy_model":
            return self
        return records.as_published(self, "model", settings)

    def load(self, study: "Study") -> "Runner":
        """Load the model backend.

        Args:
            study: The study, whose runner is the default.

        Returns:
            The runner, or the object that `Plan.prepare` wraps into a runner.

        Raises:
            RunnerError: If it cannot be loaded, or needs a model and no model is named.
        """
        name = self.runner or study.records.runner
        return load_runner(name, model=self.model, options=self.options)

    def name(self, runner: "Runner | None") -> str:
        """Name the model in tables.

        Args:
            runner: The model backend.

        Returns:
            The label, else the name of the model without its folder, else the name of the runner.
        """
        if self.label is not None:
            return self.label
        if self.model is None:
            return str(getattr(runner, "name", None))
        path = Path(self.model)
        return path.resolve().name if path.exists() else self.model


def paper_differences(records: StudyRecords) -> dict[str, list[Difference]]:
    """List the defaults of a study that differ from its papers, or that these do not state.

    Args:
        records: The records of the study.

    Returns:
        The differences by the name of the paper, followed by the option that chooses a further
        protocol; empty for a study that does not implement a paper.
    """
    if not issubclass(records.settings, PublishedSettings):
        return {}
    tables: dict[str, type[Settings]] = {
        "settings": records.settings,
        "scoring": records.scoring,
        "model": ModelSettings,
    }
    found = {}
    for number, protocol in enumerate(records.settings.protocols()):
        paper = records.settings.paper({"protocol": protocol})
        option = f" (protocol={protocol})" if number else ""
        found[paper["paper"] + option] = list(differences(paper, tables))
    return found


class ModelsSettings(ModelSettings):
    """The models and how they are run."""

    model: Items[str] = ()  # type: ignore[assignment]
    """Hub ids, folders or GGUF files, or names of models at the runner; MODEL@REVISION names a
    revision. Several models share all other options. "toy_model" trains a small model first, if
    the study has one."""

    def each(self) -> list[ModelSettings]:
        """Return the settings of each model.

        Returns:
            One record per model; a single record without a model if no model is named.

        Raises:
            ValueError: If the label or the revision of one model is given with several models, or
                a model has two revisions.
        """
        if len(self.model) > 1 and self.label is not None:
            raise ValueError("`label` names one model; omit it with several")
        if len(self.model) > 1 and self.model_revision is not None:
            raise ValueError(
                "`model_revision` is for one model; with several write MODEL@REVISION as `model`"
            )
        shared = {name: getattr(self, name) for name in self.model_fields_set - {"model"}}
        made = []
        for named in self.model:
            name, at, revision = named.rpartition("@")
            has_revision = name and at and self.runner in _OF_REVISIONS and not Path(named).exists()
            if not has_revision:
                made.append(ModelSettings(**shared, model=named))
                continue
            if self.model_revision is not None:
                raise ValueError(
                    f"`model={named}` and `model_revision={self.model_revision}` both name a "
                    "revision; omit one"
                )
            one = ModelSettings(**shared | {"model": name, "model_revision": revision})
            label = one.label or f"{one.name(None)}@{revision}"
            made.append(one.model_copy(update={"label": label}))
        return made or [ModelSettings(**shared)]
