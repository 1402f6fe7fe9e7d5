"""The files of a SLAQ run."""

from dataclasses import dataclass
from pathlib import Path

from surface_consistency.schemas.slaq import SlaqForm
from surface_consistency.studies.run_folder import RunFolder

__all__ = ["SlaqFolder"]


@dataclass(frozen=True, slots=True)
class SlaqFolder(RunFolder):
    """A run folder with the products of SLAQ; each form has a run log of its own."""

    @property
    def topics(self) -> Path:
        """What was asked: lines of `SlaqTopic`."""
        return self.path / "topics.jsonl"

    @property
    def details(self) -> Path:
        """What each prompt asks for: lines of `SlaqPrompt`, beside those of `prompts`."""
        return self.path / "details.jsonl"

    @property
    def judgements(self) -> Path:
        """What the judge said: lines of `Judgement`."""
        return self.path / "judgements.jsonl"

    @property
    def repeat_judgements(self) -> Path:
        """What the judge said of the prompts that were asked again: lines of `Judgement`."""
        return self.path / "judgements-repeat.jsonl"

    @property
    def labels(self) -> Path:
        """What people said of some answers, where they did: see `read_labels`."""
        return self.path / "labels.csv"

    def log(self, form: SlaqForm, *, repeat: bool = False) -> Path:
        """Name the run log of a form.

        Args:
            form: The form.
            repeat: Whether that of the prompts that are asked again.

        Returns:
            The file: lines of `Generation`.
        """
        return self.path / f"generations-{form}{'-repeat' if repeat else ''}.jsonl"

    def log_manifest(self, form: SlaqForm, *, repeat: bool = False) -> Path:
        """Name the settings of a form's run log.

        Args:
            form: The form.
            repeat: Whether those of the prompts that are asked again.

        Returns:
            The file: one `RunManifest`.
        """
        return self.path / f"manifest-{form}{'-repeat' if repeat else ''}.json"
