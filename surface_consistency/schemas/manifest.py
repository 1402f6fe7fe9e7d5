"""What made a run: enough to repeat it, and to refuse to continue it with other settings."""

from typing import Literal

from pydantic import Field, JsonValue

from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.prompts import GenerationParams

__all__ = ["DataSource", "PromptSettings", "RunManifest"]

_NOT_COMPARED = frozenset({"created_at", "package_version"})


class DataSource(Record):
    """Which rows were asked."""

    id: NonEmpty
    """Hub repository, file or folder that the rows came from."""

    revision: str | None
    """Commit of the repository; None for local sources."""

    digest: NonEmpty
    """SHA-256 of the questions and answers used: equal digests are equal data."""

    n_questions: int = Field(ge=0)
    """Questions used."""


class PromptSettings(Record):
    """How questions became prompts."""

    shots: int = Field(ge=0)
    """Demonstrations before each question."""

    seed: int
    """Seed of their choice."""

    demonstrations: Literal["per_relation", "per_fact"]
    """Whether the facts of a relation share their demonstrations or each draws its own."""

    style: Literal["completion", "chat"]
    """Whether prompts are plain text or turns for the model's chat template."""

    templates: Items[str]
    """Question templates in use."""

    truncate: bool = False
    """Whether demonstrations were dropped where a prompt did not fit the model."""


class RunManifest(Record):
    """The settings of one run, written beside its log."""

    schema_version: Literal[1] = 1
    """Version of this file format."""

    study: NonEmpty
    """Name of the study."""

    model: NonEmpty
    """Label of the model or run in tables."""

    data: DataSource
    """The rows."""

    prompts: PromptSettings | None
    """The prompts; None when the predictions were made elsewhere."""

    params: GenerationParams | None
    """The decoding; None when the predictions were made elsewhere."""

    runner: dict[str, JsonValue]
    """The runner's own fingerprint: model, revision, dtype, quantisation, batch policy."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """What the study settles besides, by name."""

    package_version: NonEmpty
    """Version of this package; recorded, not compared."""

    created_at: NonEmpty
    """UTC time of the first start, ISO 8601; recorded, not compared."""

    def differences(self, other: "RunManifest") -> dict[str, tuple[JsonValue, JsonValue]]:
        """Name the settings in which another run differs.

        Args:
            other: The run to compare with.

        Returns:
            Dotted field name to (own value, other value), empty when the runs agree. The time and
            the package version do not count.
        """
        mine, theirs = (
            _flatten(self.model_dump(mode="json")),
            _flatten(other.model_dump(mode="json")),
        )
        return {
            name: (mine.get(name), theirs.get(name))
            for name in sorted(mine.keys() | theirs.keys())
            if name not in _NOT_COMPARED and mine.get(name) != theirs.get(name)
        }

    @property
    def signature(self) -> str:
        """The run in one line, for the foot of a table."""
        parts = {
            "study": self.study,
            "data": f"{self.data.id}@{self.data.revision or self.data.digest[:12]}",
            "n": self.data.n_questions,
            "model": self.model,
        }
        if self.prompts is not None:
            parts["templates"] = "+".join(self.prompts.templates)
            parts["shots"] = self.prompts.shots
            parts["seed"] = self.prompts.seed
            parts["demonstrations"] = self.prompts.demonstrations
            parts["style"] = self.prompts.style
            parts["truncate"] = str(self.prompts.truncate).lower()
        if self.params is not None:
            parts["max_new_tokens"] = self.params.max_new_tokens
            parts["stop"] = repr("".join(self.params.stop)) if self.params.stop else "none"
            parts["temperature"] = self.params.temperature
            if self.params.temperature > 0:
                parts["sampling_seed"] = str(self.params.seed)
        for named in (self.settings, self.runner):
            parts.update({name: str(value) for name, value in sorted(named.items())})
        parts["surface-consistency"] = self.package_version
        return "|".join(f"{name}:{value}" for name, value in parts.items())


def _flatten(value: JsonValue, prefix: str = "") -> dict[str, JsonValue]:
    """Name every leaf of a nested object by its dotted path."""
    if not isinstance(value, dict):
        return {prefix: value}
    return {
        name: leaf
        for key, item in value.items()
        for name, leaf in _flatten(item, f"{prefix}.{key}" if prefix else key).items()
    }
