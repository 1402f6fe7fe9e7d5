"""The files of a run: each stage's product under a fixed name, readable and replaceable."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from surface_consistency.errors import DataError, RunMismatchError, SourceNotFoundError
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import RunManifest

__all__ = ["RunFolder"]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder that holds one run of a study."""

    path: Path
    """The folder."""

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """Make the folder, or take it as it is.

        Args:
            path: Where; parents are made too.

        Returns:
            The run folder.

        Raises:
            DataError: If a file stands there.
        """
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file; give --out a folder")
        for part in (folder, folder / "checks", folder / "highlights"):
            part.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the folder of a run that was started.

        Args:
            path: The folder.

        Returns:
            The run folder.

        Raises:
            SourceNotFoundError: If the folder or its manifest is missing.
        """
        folder = cls(Path(path))
        if not folder.manifest.is_file():
            within = [found.parent.name for found in sorted(folder.path.glob("*/manifest.json"))]
            if within:
                raise SourceNotFoundError(
                    f"{folder.path} is not a run folder, but holds several: give "
                    f"{', '.join(str(folder.path / name) for name in within)}"
                )
            raise SourceNotFoundError(
                f"{folder.path} is not a run folder: {folder.manifest.name} is missing; "
                "make one with `surface-consistency run STUDY --out DIR` or "
                "`surface-consistency score --predictions FILE --out DIR`"
            )
        return folder

    @property
    def manifest(self) -> Path:
        """Settings of the run: one `RunManifest`."""
        return self.path / "manifest.json"

    @property
    def questions(self) -> Path:
        """What was asked: lines of `QuestionRealization`."""
        return self.path / "questions.jsonl"

    @property
    def prompts(self) -> Path:
        """How it was asked: lines of `Prompt`."""
        return self.path / "prompts.jsonl"

    @property
    def generations(self) -> Path:
        """The run log: lines of `Generation`."""
        return self.path / "generations.jsonl"

    @property
    def repeat(self) -> Path:
        """The run log of the repeated prompts, under another batch composition."""
        return self.path / "generations-repeat.jsonl"

    @property
    def repeat_manifest(self) -> Path:
        """Settings of the repetition."""
        return self.path / "manifest-repeat.json"

    @property
    def verdicts(self) -> Path:
        """The judgements: lines of `Verdict`."""
        return self.path / "verdicts.jsonl"

    @property
    def outcomes(self) -> Path:
        """The outcomes frame: Parquet rows of the study's outcome record."""
        return self.path / "outcomes.parquet"

    @property
    def checks(self) -> Path:
        """Small tables about the run itself: noise floor, rules, regions."""
        return self.path / "checks"

    @property
    def highlights(self) -> Path:
        """Tables that the report shows first."""
        return self.path / "highlights"

    def read_manifest(self) -> RunManifest:
        """Read the settings.

        Returns:
            The manifest.

        Raises:
            RecordError: If the file is not a manifest.
        """
        from surface_consistency.schemas.jsonl import parse_line

        return parse_line(
            self.manifest.read_bytes(), RunManifest, source=str(self.manifest), number=1
        )

    def agree_on(self, manifest: RunManifest) -> None:
        """Write the settings of a new run, or hold those of an older one against them.

        Args:
            manifest: The settings asked for now.

        Raises:
            RunMismatchError: If the folder holds a run with other settings; names them.
        """
        if not self.manifest.is_file():
            self.write_manifest(manifest)
            return
        found = self.read_manifest().differences(manifest)
        if found:
            named = "; ".join(
                f"{name} is {old!r} there and {new!r} now" for name, (old, new) in found.items()
            )
            raise RunMismatchError(
                f"{self.path} holds a run with other settings: {named}. Use the same settings to "
                "continue it, or choose another --out"
            )

    def write_manifest(self, manifest: RunManifest) -> None:
        """Write the settings.

        Args:
            manifest: The manifest; an older one is replaced.
        """
        write_text(self.manifest, manifest.model_dump_json(indent=2) + "\n")
