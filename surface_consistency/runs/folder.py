"""The files of a run: each stage's product under a fixed name, readable and replaceable."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, JsonValue, ValidationError

from surface_consistency.errors import (
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.runs.files import write_csv, write_parquet
from surface_consistency.runs.frames import shared_lists
from surface_consistency.runs.log import ANSWER_COLUMNS, read_answers
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.schemas.jsonl import describe_validation_error

_STRINGS = pa.list_(pa.string())
_LARGE_STRINGS = pa.list_(pa.large_string())

__all__ = ["RunFolder", "Scoring", "read_tables"]


R = TypeVar("R", bound=Record)


class Scoring(Record):
    """How the answers of a run were judged: the file `scoring.json`."""

    judged_by: NonEmpty
    """The rule and the part that it read, or the judge."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """The scoring settings of the study, whole."""

    checks: tuple[str, ...] = Field(default=(), strict=False)
    """Names of the tables that scoring left in `checks/`."""

    command: str | None = None
    """The command line that judged them, None from Python."""


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
        folder.mkdir(parents=True, exist_ok=True)
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
        if folder.manifest.is_file():
            return folder
        within = [found.parent for found in sorted(folder.path.glob("*/manifest.json"))]
        if within:
            raise SourceNotFoundError(
                f"{folder.path} is not a run folder, but holds several: give "
                f"{', '.join(map(str, within))}"
            )
        raise SourceNotFoundError(
            f"{folder.path} is not a run folder: {folder.manifest.name} is missing; make one with "
            "`surface-consistency run STUDY --out DIR` or `surface-consistency score "
            "--predictions FILE --out DIR`"
        )

    @property
    def manifest(self) -> Path:
        """Settings of the run: one `RunManifest`."""
        return self.path / "manifest.json"

    @property
    def prompts(self) -> Path:
        """What was sent: lines of `Prompt`; absent when the predictions were made elsewhere."""
        return self.path / "prompts.jsonl"

    @property
    def targets(self) -> Path:
        """What is judged: Parquet, one row a target; see `Plan.targets`."""
        return self.path / "targets.parquet"

    @property
    def pairs(self) -> Path:
        """What is compared: Parquet, one row a pair; see `Plan.pairs`."""
        return self.path / "pairs.parquet"

    @property
    def verdicts(self) -> Path:
        """The judgements: Parquet rows of the study's verdict record."""
        return self.path / "verdicts.parquet"

    @property
    def repeat_verdicts(self) -> Path:
        """The judgements of the prompts that were asked a second time."""
        return self.path / "verdicts-repeat.parquet"

    @property
    def outcomes(self) -> Path:
        """The outcomes frame: Parquet rows of the study's outcome record."""
        return self.path / "outcomes.parquet"

    @property
    def scoring(self) -> Path:
        """How the answers were judged: one `Scoring`."""
        return self.path / "scoring.json"

    @property
    def labels(self) -> Path:
        """What people said of some answers, where they did."""
        return self.path / "labels.csv"

    @property
    def checks(self) -> Path:
        """Folder of small tables about the run itself, such as the noise floor."""
        return self.path / "checks"

    @property
    def highlights(self) -> Path:
        """Folder of tables that the report shows first."""
        return self.path / "highlights"

    def log(self, group: str = "", *, repeat: bool = False) -> Path:
        """Name the run log of a group of prompts.

        Args:
            group: The group; "" where all prompts are decoded alike.
            repeat: Whether that of the prompts that are asked a second time.

        Returns:
            The file: lines of `Generation`.
        """
        middle = f"-{group}" if group else ""
        return self.path / f"generations{middle}{'-repeat' if repeat else ''}.jsonl"

    def read_manifest(self) -> RunManifest:
        """Read the settings.

        Returns:
            The manifest.

        Raises:
            RecordError: If the file is not a manifest, or of a newer version.
        """
        return self._read_record(self.manifest, RunManifest)

    def read_scoring(self) -> Scoring | None:
        """Read how the answers were judged.

        Returns:
            The scoring; None when the run is not scored, or was by an earlier version.

        Raises:
            RecordError: If the file is broken.
        """
        return self._read_record(self.scoring, Scoring) if self.scoring.is_file() else None

    def write_plan(self, targets: pd.DataFrame, pairs: pd.DataFrame) -> None:
        """Write what is judged and what is compared.

        Args:
            targets: One row a target.
            pairs: One row a pair.
        """
        write_parquet(self.targets, targets)
        write_parquet(self.pairs, pairs)

    def read_plan(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read what is judged and what is compared.

        Returns:
            Targets and pairs.

        Raises:
            SourceNotFoundError: If a file is missing.
            DataError: If a file is broken.
        """
        return self._read_frame(self.targets), self._read_frame(self.pairs)

    def read_answers(self, groups: Iterable[str], *, repeat: bool = False) -> pd.DataFrame:
        """Read the run logs of some groups of prompts.

        Args:
            groups: The groups; those without a log are passed over.
            repeat: Whether the answers of the second time.

        Returns:
            One row a distinct prompt: group, key (of the prompt's content, or its id in
            predictions made elsewhere), text, finish_reason, error, lookups, scores, thought,
            thought_source.

        Raises:
            RunLogError: If a line is corrupt or of another kind; names file and line.
        """
        parts = [
            read_answers(path).assign(group=group)
            for group in groups
            if (path := self.log(group, repeat=repeat)).is_file()
        ]
        if not parts:
            columns = ("group", *ANSWER_COLUMNS)
            return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]

    def write_checks(self, tables: Mapping[str, pd.DataFrame]) -> None:
        """Write tables about the run.

        Args:
            tables: By name; empty ones are left out.
        """
        self.checks.mkdir(exist_ok=True)
        for name, table in tables.items():
            if not table.empty:
                write_csv(self.checks / f"{name}.csv", table)

    def _read_record(self, path: Path, record: type[R]) -> R:
        """Read a file that holds one record."""
        try:
            return record.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise RecordError(
                f"{path}: not a {record.__name__}: {describe_validation_error(error)}; restore the "
                "file, or make the run again"
            ) from error

    def _read_frame(self, path: Path) -> pd.DataFrame:
        """Read a frame of the plan."""
        if not path.is_file():
            raise SourceNotFoundError(
                f"{self.path} has no {path.name}; it was not planned to its end, or by an earlier "
                "version of this package: give the same `run` command again with another --out, or "
                "score its generations with --predictions"
            )
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{path}: cannot be read as Parquet ({error}); give the same `run` command again"
            ) from error
        names = table.schema.names
        lists = [n for n in names if table.schema.field(n).type in (_STRINGS, _LARGE_STRINGS)]
        frame: Any = table.drop_columns(lists).to_pandas()
        for name in lists:
            frame[name] = pd.Series(shared_lists(table[name]), index=frame.index, dtype=object)
        return pd.DataFrame(frame[names])


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Read the CSV files of a folder by their stems; empty ones, and no folder, are no tables.

    Args:
        folder: The folder.

    Returns:
        The tables, sorted by name.

    Raises:
        DataError: If a file cannot be read as CSV; names it.
    """
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stat().st_size < 2:
            continue
        try:
            # A label such as "500" is a name, not a number.
            tables[path.stem] = pd.read_csv(
                path, keep_default_na=False, na_values=[""], dtype={"model": str}
            )
        except ValueError as error:
            raise DataError(
                f"{path}: cannot be read as a CSV table ({error}); make it again or remove it"
            ) from error
    return tables
