"""Write data with a model: rounds of requests, a log to resume from, and a review sheet.

`paraphrases` and `slaq_topics` are the two tasks.
"""

import csv
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

from pydantic import Field

from surface_consistency.engine.judging.judges import generate_cached, logged_answers
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.models.runner import Runner
from surface_consistency.reading import csv_rows, shown
from surface_consistency.rows.readers import Place, read_rows
from surface_consistency.runs.files import claim_files, guard_cell, unguard_cell, write_text
from surface_consistency.runs.log import read_manifest
from surface_consistency.schemas import DataSource, Generation, GenerationParams, Prompt
from surface_consistency.schemas.settings import Settings

Cells = Mapping[str, str]
"""The cells of a row of a review sheet, by column."""

_LOG: Final = "writer.jsonl"
_MANIFEST: Final = "writer.manifest.json"
_MARKS: Final = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true"), True),
    **dict.fromkeys(("0", "0.0", "no", "n", "false"), False),
    "": None,
}


class WriterSettings(Settings):
    """Settings for queries of a model."""

    attempts: int = Field(default=2, ge=1)
    """Maximum number of requests per subject, including the first."""

    max_new_tokens: int = Field(default=2048, ge=1)
    """Maximum number of new tokens per answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingSummary:
    """Result of writing data, or of applying a review."""

    counts: Mapping[str, int]
    """Number of subjects, texts and rows, by name."""

    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of texts that are not used, by reason."""

    left_out: Mapping[str, str]
    """Subjects that are missing in the data, completely or in part, and the reason."""


class Draft(ABC):
    """One subject, such as an article, with the texts written so far."""

    @abstractmethod
    def request(self, attempt: int) -> Prompt | None:
        """Return the request with a number, from 1; None if nothing is missing."""

    @abstractmethod
    def take(self, text: str) -> None:
        """Read the answer of the model to the last request."""

    @abstractmethod
    def rows(self) -> Iterable[Sequence[str]]:
        """List the rows of the review sheet: the cells of `ReviewSheet.shown`."""

    @abstractmethod
    def review(self, rows: Sequence[tuple[Place, Cells]]) -> None:
        """Apply the rows that a reviewer completed, in the order of `rows`.

        Raises:
            RecordError: If a correction breaks a rule; the message contains file and line.
            DataError: If a row lacks a mark.
        """


DraftT = TypeVar("DraftT", bound=Draft)
SettingsT = TypeVar("SettingsT", bound=WriterSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSheet:
    """The columns of a table that a reviewer completes in any spreadsheet."""

    shown: tuple[str, ...]
    """Columns that are written for the reviewer, in order."""

    filled: tuple[str, ...]
    """Columns that the reviewer completes, written empty after the others."""

    key: tuple[str, ...]
    """Columns that identify a row."""

    marks: tuple[str, ...]
    """Columns, of either kind, that contain yes, no or an empty cell; the reviewer may change
    them."""

    unread: tuple[str, ...] = ()
    """Columns that may be missing when the sheet is read."""

    def write(self, path: Path, rows: Iterable[Sequence[str]]) -> None:
        """Write the sheet as CSV.

        Args:
            path: The file; its folder must exist.
            rows: Values of `shown`, row by row. An apostrophe is added before a cell that a
                spreadsheet would read as a formula.

        Raises:
            DataError: If the sheet exists and a reviewer has edited it.
        """
        if path.is_file() and self._is_filled(path):
            raise DataError(f"{path} contains notes of a reviewer; move it, then repeat")
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.shown, *self.filled])
        writer.writerows([*map(guard_cell, row), *[""] * len(self.filled)] for row in rows)
        write_text(path, text.getvalue())

    def read(self, path: Path) -> Iterator[tuple[Place, Cells]]:
        """Read the sheet as a spreadsheet saved it: CSV, TSV, ...

        Args:
            path: The file.

        Yields:
            The place of each row, and its cells by column.

        Raises:
            SourceNotFoundError: If the file does not exist.
            ColumnNotFoundError: If a column of the sheet is missing.
            RecordError: If a mark is not yes or no; the message contains file and line.
        """
        needed = [name for name in (*self.shown, *self.filled) if name not in self.unread]
        for place, row in read_rows(path):
            if missing := [name for name in needed if name not in row]:
                raise ColumnNotFoundError(
                    f"{place}: the review sheet lacks {', '.join(missing)}; keep all of its columns"
                )
            cells = {name: str(unguard_cell(row[name] or "")).strip() for name in needed}
            for name in self.marks:
                if cells[name].lower() not in _MARKS:
                    raise RecordError(
                        f"{place}: column {shown(name)} must be yes, no or empty, got "
                        f"{shown(cells[name])}"
                    )
            yield place, cells

    def key_of(self, cells: Cells) -> str:
        """Return the key of a row; a number that a spreadsheet saved as 1.0 is 1."""
        return "/".join(cells[name].removesuffix(".0") for name in self.key)

    def changed(self, written: Cells, cells: Cells) -> str | None:
        """Return the first read-only column that the reviewer changed; None if unchanged."""
        return next(
            (
                name
                for name in self.shown
                if name not in (*self.marks, *self.unread)
                and cells[name].removesuffix(".0") != written[name].strip().removesuffix(".0")
            ),
            None,
        )

    def _is_filled(self, path: Path) -> bool:
        """Check whether a reviewer has edited a sheet, or a program saved it in another form."""
        rows = csv_rows(path, is_strict=False)
        if next(rows, (0, []))[1] != [*self.shown, *self.filled]:
            return True
        return any(cell.strip() for _, cells in rows for cell in cells[len(self.shown) :])


class Writing(ABC, Generic[DraftT, SettingsT]):
    """A task of writing data with a model."""

    study: ClassVar[str]
    """Name of the task, for the manifest of the log."""

    sheet: ClassVar[ReviewSheet]
    """Its review sheet."""

    drafts: Sequence[DraftT]
    """Its subjects, with distinct identifiers."""

    source: DataSource
    """The data from which the requests are made."""

    settings: SettingsT
    """Its settings."""

    @abstractmethod
    def finish(self, folder: Path, *, is_reviewed: bool) -> WritingSummary:
        """Write the data of the drafts in their current state.

        Args:
            folder: The folder; created if it does not exist.
            is_reviewed: Whether a review was applied.

        Returns:
            The summary.

        Raises:
            DataError: If no data remain.
        """

    def write(
        self, runner: Runner, out: str | os.PathLike[str], *, model: str, progress: bool = False
    ) -> WritingSummary:
        """Query a model until nothing is missing or no attempts remain, and write the files.

        Answers are appended to a log. A second call with the same arguments sends only requests
        without an answer in the log.

        Args:
            runner: The runner of the writing model.
            out: Folder of the data, `review.csv` and `writer.jsonl`.
            model: Label of the model.
            progress: Whether to show a progress bar on a terminal.

        Returns:
            The summary.

        Raises:
            RunError: If the folder contains a log of other settings, data or another model.
            RunnerError: If the model cannot be queried.
            DataError: If no usable text was written, or a reviewer has edited the `review.csv` of
                an earlier call.
        """
        folder = Path(out)
        claim_files(folder, ["README.md", "review.csv"])
        for attempt in range(1, self.settings.attempts + 1):
            requests = self._requests(attempt)
            answers = generate_cached(
                runner,
                list(requests.values()),
                GenerationParams(max_new_tokens=self.settings.max_new_tokens, stop=()),
                folder / _LOG,
                manifest_path=folder / _MANIFEST,
                model=model,
                data=self.source,
                study=self.study,
                settings=self.settings.model_dump(mode="json"),
                progress=progress,
            )
            self._take(requests, answers)
        self.sheet.write(folder / "review.csv", (row for one in self.drafts for row in one.rows()))
        return self.finish(folder, is_reviewed=False)

    def apply(
        self,
        sheet: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        written: str | os.PathLike[str] | None = None,
    ) -> WritingSummary:
        """Write the data that a reviewer accepted or corrected.

        Args:
            sheet: The completed review sheet.
            out: Folder of the data.
            written: Folder that `write` wrote; None for the folder of the sheet.

        Returns:
            The summary.

        Raises:
            SourceNotFoundError: If the sheet or the log does not exist.
            ColumnNotFoundError: If a column of the sheet is missing.
            RecordError: If a row was not written by `write`, occurs twice, or was changed outside
                the columns for the reviewer; if a mark is not yes or no, or a correction breaks a
                rule. The message contains file and line.
            RunError: If the log or its manifest is damaged.
            DataError: If the log is of another task, data or settings, rows are missing or not
                reviewed, or no data remain.
        """
        path = Path(sheet)
        self._replay(path.parent if written is None else Path(written))
        names = self.sheet.shown
        rows = {
            self.sheet.key_of(cells): cells
            for draft in self.drafts
            for cells in (dict(zip(names, row, strict=True)) for row in draft.rows())
        }
        given: dict[str, tuple[Place, Cells]] = {}
        for place, cells in self.sheet.read(path):
            key = self.sheet.key_of(cells)
            if key not in rows:
                raise RecordError(
                    f"{place}: row {shown(key)} not found; do not change "
                    f"{' and '.join(self.sheet.key)}"
                )
            if key in given:
                raise RecordError(f"{place}: row {shown(key)} occurs twice; keep only one")
            if (name := self.sheet.changed(rows[key], cells)) is not None:
                raise RecordError(
                    f"{place}: column {shown(name)} of {shown(key)} was changed from "
                    f"{shown(rows[key][name])} to {shown(cells[name])}; restore it, and write a "
                    "better text as a correction"
                )
            given[key] = (place, cells)
        if lost := [key for key in rows if key not in given]:
            raise DataError(
                f"{path}: {len(lost)} rows are missing, such as {shown(lost[0])}; restore them, "
                "and write no to reject a row"
            )
        reviewed = iter(given[key] for key in rows)
        for draft in self.drafts:
            draft.review([next(reviewed) for _ in draft.rows()])
        done = self.finish(Path(out), is_reviewed=True)
        corrections = [name for name in self.sheet.filled if name.startswith("corrected")]
        n = sum(any(cells[name] for name in corrections) for _, cells in given.values())
        return WritingSummary(
            counts={**done.counts, "corrected": n}, dropped=done.dropped, left_out=done.left_out
        )

    def _requests(self, attempt: int) -> dict[int, Prompt]:
        """Return the requests of a round, by index of the draft."""
        prompts = ((place, one.request(attempt)) for place, one in enumerate(self.drafts))
        return {place: prompt for place, prompt in prompts if prompt is not None}

    def _take(self, requests: Mapping[int, Prompt], answers: Mapping[str, Generation]) -> bool:
        """Pass the answers to the drafts; return whether there was an answer."""
        texts = {place: answers[p.key].text for place, p in requests.items() if p.key in answers}
        for place, text in texts.items():
            if text is not None:
                self.drafts[place].take(text)
        return bool(texts)

    def _replay(self, folder: Path) -> None:
        """Fill the drafts from the log of a folder, without a model."""
        log, manifest_path = folder / _LOG, folder / _MANIFEST
        if not (log.is_file() and manifest_path.is_file()):
            raise SourceNotFoundError(
                f"{folder} contains no {_LOG} with its manifest; pass the folder of the written "
                "data as `written`"
            )
        manifest = read_manifest(manifest_path)
        for name, then, now in (
            ("task", manifest.study, self.study),
            ("data", manifest.data.digest, self.source.digest),
            ("settings", manifest.settings, self.settings.model_dump(mode="json")),
        ):
            if then != now:
                raise DataError(
                    f"{folder} was written with other {name} ({then}, now {now}); give the data "
                    "and options of the command that wrote it"
                )
        is_answered = False
        for attempt in range(1, self.settings.attempts + 1):
            requests = self._requests(attempt)
            is_answered |= self._take(requests, logged_answers(log, requests.values()))
        if not is_answered:
            raise DataError(
                f"{log} contains no answer to the requests of this version of the package; it was "
                f"written by {manifest.package_version}. Repeat the command that wrote it, or use "
                "that version"
            )


def mark_of(cell: str) -> bool | None:
    """Read a cell that contains yes or no, or is empty.

    Args:
        cell: A cell of a column of `ReviewSheet.marks`.

    Returns:
        The mark; None if the cell is empty.

    Examples:
        >>> mark_of("Yes"), mark_of("0"), mark_of("")
        (True, False, None)
    """
    return _MARKS[cell.lower()]
