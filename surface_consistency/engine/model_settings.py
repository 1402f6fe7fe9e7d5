"""Who answers: the options of a model, and how it is found and loaded."""

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
    """Who answers."""

    model: str | None = None
    """Hub id, folder or GGUF file, or the name of the model at the runner; "toy_model" trains a
    small model first, if the study has one."""

    label: str | None = None
    """Name of the model in tables; the last part of `model` by default."""

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
    """Whether weights are of 8 bits, as in both papers on RedirectQA."""

    int4: Rare[bool] = False
    """Whether weights are of 4 bits."""

    batch_size: Rare[int | None] = Field(default=None, ge=1)
    """Most prompts in a batch."""

    @model_validator(mode="after")
    def _agrees(self) -> "ModelSettings":
        """Refuse what excludes each other."""
        if self.int8 and self.int4:
            raise ValueError("`int8` and `int4` exclude each other; take one of them")
        return self

    @property
    def options(self) -> dict[str, object]:
        """The runner's keyword arguments: those given by name, then the named flags."""
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
        """Set how the paper of a study loads a model, if the run is as published.

        Args:
            records: The records of the study.
            settings: The study's settings, as the manifest contains them.

        Returns:
            The settings; these for a toy model, and for a runner that does not load weights here.

        Raises:
            ValueError: If another value was given.
        """
        is_loaded = (self.runner or records.runner) == _OF_REVISIONS[1]
        if not is_loaded or self.model == "toy_model":
            return self
        return records.as_published(self, "model", settings)

    def load(self, study: "Study") -> "Runner":
        """Load who answers.

        Args:
            study: The study, whose runner is taken unless another is named.

        Returns:
            The runner, or what `Plan.prepare` makes one of.

        Raises:
            RunnerError: If it cannot be loaded, or needs a model and none is named.
        """
        name = self.runner or study.records.runner
        return load_runner(name, model=self.model, options=self.options)

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


def paper_differences(records: StudyRecords) -> dict[str, list[Difference]]:
    """List what a study does by default otherwise than its papers, or where these are silent.

    Args:
        records: The records of the study.

    Returns:
        The differences by the name of the paper, followed by the option that chooses a further
        protocol; none for a study that implements no paper.
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
            One record per model; a single one without a model if none is named.

        Raises:
            ValueError: If the label or the revision of one model is given with several models, or
                a model has two revisions.
        """
        if len(self.model) > 1 and self.label is not None:
            raise ValueError("`label` names one model; leave it out with several")
        if len(self.model) > 1 and self.model_revision is not None:
            raise ValueError(
                "`model_revision` is of one model; with several write MODEL@REVISION as `model`"
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
                    "revision; leave one out"
                )
            one = ModelSettings(**shared | {"model": name, "model_revision": revision})
            label = one.label or f"{one.name(None)}@{revision}"
            made.append(one.model_copy(update={"label": label}))
        return made or [ModelSettings(**shared)]
