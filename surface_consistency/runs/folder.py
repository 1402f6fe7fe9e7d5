"""The files of a run: each stage writes files with fixed names, which can be replaced."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import pandas as pd
import pyarrow as pa
from pydantic import Field, JsonValue, ValidationError

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.reading import file_digest, within
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.runs.answers import answer_frame
from surface_consistency.runs.files import (
    claim_files,
    output_folder,
    reject_foreign,
    report_files,
    staged,
    subfolder,
    unguard_cell,
    write_csv,
    write_parquet,
    write_text,
)
from surface_consistency.runs.frames import check_rows, shared_lists
from surface_consistency.runs.log import lock_log, log_owner, read_answers
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.runs.planned import PairRow, TargetRow, check_targets
from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.schemas.verdicts import Verdict

_WRITTEN = frozenset(
    {
        *("prompts.jsonl", "targets.parquet", "pairs.parquet", "plan.json", "shard.json"),
        *("asked.json", "verdicts.parquet", "verdicts-repeat.parquet", "outcomes.parquet"),
        *("scoring.json", "checks", "highlights"),
    }
)
"""Files of a run in addition to its manifest, its logs and the tables of its study."""

_STRINGS = pa.list_(pa.string())
_LARGE_STRINGS = pa.list_(pa.large_string())

R = TypeVar("R", bound=Record)


class Scoring(Record):
    """How the answers of a run were scored: the file `scoring.json`."""

    judged_by: NonEmpty
    """The rule and the part that it reads, or the LLM judge or "human"."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """All scoring settings of the study."""

    checks: tuple[str, ...] = Field(default=(), strict=False)
    """Names of the tables that scoring wrote to `checks/`."""

    command: str | None = None
    """The command line of the scoring, None from Python."""

    n_prompts: int = 0
    """Number of prompts whose answers were scored."""

    n_unanswered: int = 0
    """Number of prompts without an answer: not sent, failed, or cut off within reasoning."""

    made_from: dict[str, str] = Field(default_factory=dict)
    """SHA-256 by name of the files that were scored: plan and run logs."""

    files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 by path of the files that scoring wrote, which belong together."""


class PlanRecord(Record):
    """Content of the plan of a run: the file `plan.json`."""

    rows: dict[str, int]
    """Rows of `targets.parquet` and `pairs.parquet`, by name of the file."""

    files: dict[str, str]
    """SHA-256 of these files, by name."""


class _File:
    """The path of a file of a run, by its name; see `reading.within`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: "RunFolder", owner: type) -> Path:
        return within(folder.path, self.name)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder that contains one run of a study."""

    path: Path
    """The folder."""

    manifest = _File("manifest.json")
    """Settings of the run: one `RunManifest`."""

    prompts = _File("prompts.jsonl")
    """The prompts: lines of `Prompt`; absent if the predictions were made elsewhere."""

    targets = _File("targets.parquet")
    """The items to score: Parquet, one row per target; see `Plan.items`."""

    pairs = _File("pairs.parquet")
    """The pairs to compare: Parquet, one row per pair; see `Plan.pairs`."""

    plan = _File("plan.json")
    """Row counts and digests of the two files above, written after them: one `PlanRecord`."""

    verdicts = _File("verdicts.parquet")
    """The correctness labels: Parquet rows of the label record of the study."""

    repeat_verdicts = _File("verdicts-repeat.parquet")
    """The correctness labels of the repeated prompts."""

    outcomes = _File("outcomes.parquet")
    """The outcomes frame: Parquet rows of the study's outcome record."""

    scoring = _File("scoring.json")
    """How the answers were scored: one `Scoring`."""

    labels = _File("labels.csv")
    """Human labels of some answers, if there are any."""

    checks = _File("checks")
    """Folder of small tables about the quality of the run, such as the noise floor."""

    highlights = _File("highlights")
    """Folder of tables that the report shows first."""

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """Create the folder if it does not exist.

        Args:
            path: Its path; parents are also created.

        Returns:
            The run folder.

        Raises:
            ValueError: If the name is empty.
            DataError: If it is a file, or the folder contains no run, but a file with the name of a
                file of a run or its report.
        """
        folder = cls(output_folder(path))
        if not folder.manifest.is_file():
            tables = (f"tables/{path.name}" for path in folder.path.glob("tables/*.csv"))
            reject_foreign(
                folder.path, [*_WRITTEN, "report.html", *tables], report_files(folder.path)
            )
        return folder

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the folder of a run that was started.

        Args:
            path: The folder.

        Returns:
            The run folder.

        Raises:
            SourceNotFoundError: If the folder or its manifest does not exist.
        """
        folder = cls(Path(path))
        if folder.manifest.is_file():
            return folder
        if not folder.path.is_dir():
            is_there = folder.path.exists()
            raise SourceNotFoundError(
                f"{folder.path} is a file; give the folder of a run"
                if is_there
                else f"folder {folder.path} not found (in {Path.cwd()}); check the path"
            )
        if within := folder.runs_within():
            raise SourceNotFoundError(
                f"{folder.path} is not a run folder, but contains several: give "
                f"{', '.join(map(str, within))}"
            )
        raise SourceNotFoundError(
            f"{folder.path} is not a run folder: {folder.manifest.name} is missing; make one with "
            "`surface-consistency run STUDY --out DIR` or `surface-consistency score "
            "--predictions FILE --out DIR`"
        )

    def runs_within(self) -> list[Path]:
        """List the run folders directly below this one.

        Returns:
            The folders, sorted: of a sweep, of several models, or of several files of predictions.
        """
        return [manifest.parent for manifest in sorted(self.path.glob("*/manifest.json"))]

    def log(self, group: str = "", *, repeat: bool = False) -> Path:
        """Return the path of the run log of a group of prompts.

        Args:
            group: The group; "" if all prompts have the same decoding parameters.
            repeat: Whether to return the log of the repeated prompts.

        Returns:
            The file: lines of `Generation`.

        Raises:
            ValueError: If the group cannot be part of a file name, or ends in "repeat", which is
                the end of the names of logs of repeated prompts.
        """
        if not re.fullmatch(r"[\w.-]*", group) or group.rpartition("-")[2] == "repeat":
            raise ValueError(
                f"a group of prompts has the name {group!r}; use letters, digits, '_', '.' and "
                "'-', and an end other than 'repeat', which is the end of logs of repeated prompts"
            )
        middle = f"-{group}" if group else ""
        return within(self.path, f"generations{middle}{'-repeat' if repeat else ''}.jsonl")

    def read_manifest(self) -> RunManifest:
        """Read the settings.

        Returns:
            The manifest.

        Raises:
            RecordError: If the file is not a manifest, or of a newer version.
        """
        return self._read_record(self.manifest, RunManifest)

    def read_scoring(self) -> Scoring | None:
        """Read how the answers were scored.

        Returns:
            The scoring; None if the run is not scored, or was scored by an earlier version.

        Raises:
            RecordError: If the file is invalid.
        """
        return self._read_record(self.scoring, Scoring) if self.scoring.is_file() else None

    def write_plan(self, targets: pd.DataFrame, pairs: pd.DataFrame) -> None:
        """Write targets and pairs, and then `plan.json`.

        Args:
            targets: One row per target.
            pairs: One row per pair.
        """
        write_parquet(self.targets, targets)
        write_parquet(self.pairs, pairs)
        record = PlanRecord(
            rows={self.targets.name: len(targets), self.pairs.name: len(pairs)},
            files=self._digests((self.targets, self.pairs)),
        )
        write_text(self.plan, record.model_dump_json(indent=2) + "\n")

    def read_plan(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read targets and pairs.

        Returns:
            Targets and pairs.

        Raises:
            SourceNotFoundError: If a file is missing.
            DataError: If a file is invalid, was changed since it was planned, lacks a column of its
                record or has another type in it, or a pair names an unknown target.
        """
        targets = self._read_frame(self.targets, TargetRow)
        pairs = self._read_frame(self.pairs, PairRow)
        if not self.plan.is_file():
            raise SourceNotFoundError(
                f"{self.path} has no {self.plan.name}: planning was not finished, or was done by "
                f"an earlier version of this package; {self.rerun_hint()}"
            )
        planned = self._read_record(self.plan, PlanRecord)
        for path, frame in ((self.targets, targets), (self.pairs, pairs)):
            n_planned = planned.rows.get(path.name, 0)
            if planned.files.get(path.name) != file_digest(path) or n_planned != len(frame):
                raise DataError(
                    f"{path} is not the file that was planned ({len(frame):,} rows instead of "
                    f"{n_planned:,}), or its entry in {self.plan.name} was edited; restore them, "
                    "or repeat the command of the run, which writes both again without sending "
                    "prompts twice"
                )
        check_targets(targets, pairs, str(self.pairs))
        return targets, pairs

    def read_answers(self, groups: Iterable[str], *, repeat: bool = False) -> pd.DataFrame:
        """Read the run logs of some groups of prompts.

        Args:
            groups: The groups; those without a log are skipped.
            repeat: Whether to read the answers to the repeated prompts.

        Returns:
            One row per distinct prompt: the columns `ANSWERS`, with prompt_key None for predictions
            made elsewhere, and group.

        Raises:
            RunError: If a line is corrupt or of another format; names file and line.
        """
        parts = [
            read_answers(path).assign(group=group)
            for group in groups
            if (path := self.log(group, repeat=repeat)).is_file()
        ]
        if not parts:
            return answer_frame().assign(group=pd.Series(dtype=object))
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]

    def check_verdicts(self) -> int:
        """Check the columns that every study has in the correctness labels, also of repeats.

        Returns:
            The number of correctness labels; 0 without the file.

        Raises:
            DataError: If a file is invalid, a column is missing or has another type, or a target
                has two labels; names file and column.
        """
        tables = [
            self._read_table(path, Verdict, only=True)
            for path in (self.verdicts, self.repeat_verdicts)
            if path.is_file()
        ]
        return len(tables[0]) if tables else 0

    def write_checks(self, tables: Mapping[str, pd.DataFrame]) -> None:
        """Write tables about the run.

        Args:
            tables: Tables by name; empty ones are not written.
        """
        home = subfolder(self.path, self.checks.name)
        for name, table in tables.items():
            if not table.empty:
                write_csv(home / f"{name}.csv", table)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run, so that no other process runs or scores it.

        Raises:
            RunError: If another process writes to the run, or scores it.
        """
        with ExitStack() as locks:
            for path in self.logs() or [self.log()]:
                locks.enter_context(lock_log(path))
            yield

    def logs(self) -> list[Path]:
        """List the run logs.

        Returns:
            Those of all groups, and of the repeated prompts.
        """
        found = sorted(self.path.glob("generations*.jsonl"))
        logs = [within(self.path, log.name) for log in found if log.is_file() or log.is_symlink()]
        return [log for log in logs if log.is_file()]

    @contextmanager
    def replacing_scores(self, scoring: Scoring) -> Iterator["RunFolder"]:
        """Write the files of a scoring to a temporary folder, and move them together.

        `scoring.json` is moved last and contains the digests of all other files. If the process is
        killed in between, `check_scores` raises an error, so two scorings are never mixed.

        Args:
            scoring: How the answers were scored.

        Yields:
            A folder for correctness labels, outcomes, checks and exports, under their usual names.
        """
        made_from = self._digests((self.targets, self.pairs, *self.logs()))
        before = self._earlier_files()
        with staged(self.path, last=self.scoring.name) as part:
            yield RunFolder(part)
            # Labelling may continue: the file of labels belongs to the run, not to one scoring.
            written = sorted(
                p for p in part.rglob("*") if p.is_file() and p != part / self.labels.name
            )
            files = {path.relative_to(part).as_posix(): str(file_digest(path)) for path in written}
            made = scoring.model_copy(update={"made_from": made_from, "files": files})
            write_text(part / self.scoring.name, made.model_dump_json(indent=2) + "\n")
            own = {*before, *_WRITTEN, self.manifest.name}
            new = {name for name in files if name not in own and not name.startswith("checks/")}
            labels = RunFolder(part).labels
            if labels.exists() and file_digest(labels) != file_digest(self.labels):
                new.add(labels.name)
            claim_files(self.path, new)
            for name in before.keys() - files.keys():
                # Another file that was edited since is not deleted.
                path = self.path / name
                if name.startswith("checks/") or file_digest(path) == before[name]:
                    path.unlink(missing_ok=True)

    def check_scores(self) -> Scoring:
        """Check the digests of correctness labels, outcomes, checks, and the scored answers.

        Returns:
            How the answers were scored.

        Raises:
            DataError: If files are of different scorings or edited, or the answers have changed.
            SourceNotFoundError: If one of the files was deleted.
            RecordError: If `scoring.json` is invalid.
        """
        scoring = self.read_scoring()
        can_be_scored = self.targets.is_file() and self.pairs.is_file() and self.logs()
        again = (
            f"score them again with `surface-consistency score {self.path}`"
            if can_be_scored
            else self.rerun_hint()
        )
        if scoring is None or not scoring.files:
            raise DataError(
                f"{self.path} has no record of how it was scored ({self.scoring.name} is missing, "
                f"or of an earlier version), perhaps because scoring was stopped; {again}"
            )
        for name, digest in scoring.files.items():
            if not within(self.path, name).is_file():
                raise SourceNotFoundError(
                    f"{self.path / name} is missing, but is listed in {self.scoring.name} (scored "
                    f"by {scoring.judged_by}); {again}"
                )
            if file_digest(self.path / name) != digest:
                raise DataError(
                    f"{self.path / name} is not the file listed in {self.scoring.name} (scored "
                    f"by {scoring.judged_by}): scoring was stopped, or the file was edited; {again}"
                )
        now = self._digests((self.targets, self.pairs, *self.logs())) if scoring.made_from else {}
        changed = sorted(
            n for n in scoring.made_from | now if scoring.made_from.get(n) != now.get(n)
        )
        if gone := [name for name in changed if name not in now]:
            raise SourceNotFoundError(
                f"{self.path / gone[0]} was deleted after its answers were scored, so the numbers "
                f"cannot be traced; restore it, or {self.rerun_hint()}"
            )
        if changed:
            owner = next(filter(None, map(log_owner, self.logs())), None)
            why = f"{owner} writes to the run" if owner else "the run was resumed, or it was edited"
            when = ", once it has ended" if owner else ""
            raise DataError(
                f"{self.path / changed[0]} has changed since its answers were scored ({why}; "
                f"{self.scoring.name} has another digest), so the numbers would be of other "
                f"answers; {again}{when}"
            )
        return scoring

    def rerun_hint(self) -> str:
        """Return advice on how to repeat the run, for messages.

        Returns:
            A clause: repeat the command, or score the existing answers. The command of the manifest
            is not quoted, because the folder may come from an untrusted source.
        """
        scored = ", or score its generations with `predictions`" if self.logs() else ""
        return (
            f"repeat the command that made it (`command` in {self.manifest.name}), with "
            f"another `out` if it raises an error{scored}"
        )

    def _earlier_files(self) -> dict[str, str]:
        """Return the digests by name of the files of an earlier scoring."""
        try:
            scoring = self.read_scoring()
        except RecordError:
            return {}
        if scoring is None:
            return {}
        home = self.path.resolve()
        of_run = (self.manifest, self.plan, self.targets, self.pairs, self.labels, *self.logs())
        own = {home / path.name for path in of_run} | {home / "prompts.jsonl"}
        checks = {f"checks/{check}.csv": "" for check in scoring.checks}
        named, places = {**checks, **scoring.files}, {}
        for name in named:
            with suppress(DataError):
                places[name] = within(home, name).resolve()
        return {
            name: named[name]
            for name, place in places.items()
            if place not in own and not place.is_dir()
        }

    def _digests(self, files: Iterable[Path]) -> dict[str, str]:
        """Compute the SHA-256 of files of the folder by name; missing files are skipped."""
        digests = {path.name: file_digest(path) for path in files}
        return {name: digest for name, digest in digests.items() if digest is not None}

    def _read_record(self, path: Path, record: type[R]) -> R:
        """Read a file that contains one record."""
        try:
            return record.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise RecordError(
                f"{path}: not a {record.__name__}: {describe_validation_error(error)}; restore the "
                "file, or make the run again"
            ) from error

    def _read_frame(self, path: Path, record: type[Record]) -> pd.DataFrame:
        """Read a frame of the plan."""
        if not path.is_file():
            raise SourceNotFoundError(
                f"{self.path} has no {path.name}: planning was not finished, or the file was "
                f"deleted; restore it, or {self.rerun_hint()}"
            )
        table = self._read_table(path, record)
        names = table.schema.names
        lists = [n for n in names if table.schema.field(n).type in (_STRINGS, _LARGE_STRINGS)]
        frame: Any = table.drop_columns(lists).to_pandas()
        for name in lists:
            frame[name] = pd.Series(shared_lists(table[name]), index=frame.index, dtype=object)
        return pd.DataFrame(frame[names])

    def _read_table(self, path: Path, record: type[Record], *, only: bool = False) -> pa.Table:
        """Read a Parquet file of rows of a record; with `only`, further columns are not read."""
        try:
            with open_parquet(path) as file:
                there = file.schema_arrow.names
                names = [name for name in there if name in record.model_fields]
                table = file.read(columns=names if only else None)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{path}: cannot be read as Parquet ({error}); repeat the command of the run"
            ) from error
        check_rows(table, record, str(path))
        return table


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Read the CSV files of a folder by their stems; empty files and missing folders are skipped.

    Args:
        folder: The folder.

    Returns:
        The tables, sorted by name.

    Raises:
        DataError: If a file cannot be read as CSV; names it.
    """
    tables = {}
    for path in (within(folder, file.name) for file in sorted(folder.glob("*.csv"))):
        if path.stat().st_size < 2:
            continue
        try:
            # A label such as "500" is a name, not a number.
            table = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"model": str})
        except ValueError as error:
            raise DataError(
                f"{path}: cannot be read as a CSV table ({error}); make it again or remove it"
            ) from error
        tables[path.stem] = table.rename(columns=unguard_cell).map(unguard_cell, na_action="ignore")
    return tables
