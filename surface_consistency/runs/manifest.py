"""The manifest of a run: the settings to repeat it, and to detect other settings on resume."""

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.schemas.questions import DataSource
from surface_consistency.schemas.run_format import RUN_FORMAT, check_run_format

_NOT_COMPARED = ("created_at", "package_version", "source", "command", "replies")


class RunManifest(Record):
    """The settings of one run, stored in the folder of its log."""

    schema_version: Literal[4] = RUN_FORMAT
    """Version of the file format that the run was written in."""

    study: NonEmpty
    """Name of the study."""

    model: NonEmpty
    """Label of the model or run in tables."""

    data: DataSource
    """The rows."""

    source: dict[str, JsonValue] = Field(default_factory=dict)
    """Source of the data, as given by the user; recorded, but not compared, unlike `data`."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """All settings of the study; empty if the predictions were made elsewhere."""

    design: dict[str, JsonValue] | None = None
    """How the conditions of imported labels are compared; None if the study defines it."""

    decoding: dict[str, JsonValue] = Field(default_factory=dict)
    """`GenerationParams` by group of prompts; empty if the predictions were made elsewhere."""

    runner: dict[str, JsonValue]
    """The fingerprint of the runner: model, revision, dtype, quantisation, batch policy."""

    package_version: NonEmpty
    """Version of this package; recorded, not compared."""

    created_at: NonEmpty
    """UTC time of the first start, ISO 8601; recorded, not compared."""

    command: str | None = None
    """The command line of the first start, None from Python; recorded, not compared."""

    replies: dict[str, int] = Field(default_factory=dict)
    """Number of replies of each kind, and of replies with reasoning by its source ("reasoning:
    <think>"), at the last completion of the run; recorded, not compared."""

    @model_validator(mode="before")
    @classmethod
    def _is_of_this_version(cls, value: object) -> object:
        """Raise an error for manifests of older and newer versions."""
        if isinstance(value, dict):
            check_run_format(value.get("schema_version"))
        return value

    def differences(self, other: "RunManifest") -> dict[str, tuple[JsonValue, JsonValue]]:
        """Return the settings in which another run differs.

        Args:
            other: The run to compare with.

        Returns:
            Dotted field name to (own value, other value), empty if the runs agree. The time and
            the package version are ignored.
        """
        mine, theirs = (
            _flatten(self.model_dump(mode="json")),
            _flatten(other.model_dump(mode="json")),
        )
        return {
            name: (mine.get(name), theirs.get(name))
            for name in sorted(mine.keys() | theirs.keys())
            if name.split(".")[0] not in _NOT_COMPARED and mine.get(name) != theirs.get(name)
        }

    @property
    def signature(self) -> str:
        """Description of the run in one line, for the notes of tables."""
        parts: dict[str, object] = {
            "study": self.study,
            "data": f"{self.data.id}@{self.data.revision or self.data.digest[:12]}",
            "n": self.data.n_questions,
            "model": self.model,
        }
        for named in (self.settings, self.decoding, self.runner):
            parts.update(
                {name: value for name, value in sorted(_flatten(dict(named)).items()) if name}
            )
        parts["surface-consistency"] = self.package_version
        return "|".join(f"{name}:{_shown(value)}" for name, value in parts.items())


def _flatten(value: JsonValue, prefix: str = "") -> dict[str, JsonValue]:
    """Return the leaves of a nested object by dotted path."""
    if not isinstance(value, dict):
        return {prefix: value}
    return {
        name: leaf
        for key, item in value.items()
        for name, leaf in _flatten(item, f"{prefix}.{key}" if prefix else key).items()
    }


def _shown(value: object) -> str:
    """Format a setting on one line."""
    if isinstance(value, list):
        return "+".join(map(_shown, value)) or "none"
    return repr(value) if isinstance(value, str) and not value.isprintable() else str(value)
