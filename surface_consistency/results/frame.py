"""Read result files of any tool as one long frame, for comparisons, scoring and studies."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.reading import SCORE_BYTES, UnpackedSize, find_column, first_names, shown
from surface_consistency.results.archives import is_archive, packed_rows
from surface_consistency.results.checks import Read, checked, constant, joined, shortened
from surface_consistency.results.columns import SOURCE, UNSURE, ResultColumns
from surface_consistency.results.epochs import reducer_of, superseded
from surface_consistency.results.failures import with_common_answers
from surface_consistency.results.inputs import Input, ResultSource, inputs_of, memory_rows
from surface_consistency.results.layouts import flat_rows, layout_of
from surface_consistency.results.logs import EXCLUDED_ENDING, samples_part
from surface_consistency.results.names import direction
from surface_consistency.results.promptfoo import is_table
from surface_consistency.results.rows import Cells, at, readable
from surface_consistency.results.run_folders import is_run, run_part
from surface_consistency.results.tables import (
    UNREAD,
    Part,
    frame_of,
    hashes,
    read_table,
    table_part,
    wanted_scores,
)
from surface_consistency.results.tools import directions_next_to
from surface_consistency.rows.readers import Row

UNSCORED: Final = "answers without scores; score them with a rule or an LLM judge"
"""A note on a file."""

RUNS: Final = "surface-consistency"
"""The tool of run folders of this package."""

_TABLE: Final = "a table"
_KEPT: Final = ("", "(not kept)")
"""Placeholders for blank answers and for other answers, if answers are not needed."""
_BLANK: Final = hashes(pd.Series([""]))[0]
_TYPED: Final = (".parquet", ".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Scores and answers of any tools, one row per score."""

    frame: pd.DataFrame
    """One row per score. Columns, in this order: `task`, `model`, `item`, `form` ("" if there is
    only one), `repeat` (0 if there is only one), `metric` ("" if the file contains only answers),
    `score` (in the metric's own scale; NaN if it is missing), `prediction`, `references` (a tuple),
    `question`, `error` (the reason for a missing answer, otherwise None), `content` (a uint64 hash
    of the question; 0 if the file does not contain it) and `file`. Further columns of the rows
    follow under their own names, with the prefix "row." if the name is one of these. Columns with
    few values (task, model, form, metric, file) and those that group items are categorical."""

    items: npt.NDArray[np.int64]
    """The number of each row's task and item, from 0 in the order of the rows."""

    pairs: npt.NDArray[np.int64]
    """The number of each row's task, item and form, in the same way."""

    clusters: tuple[str, ...]
    """Columns that group items, if known from a layout or a usual name; the finest first."""

    is_same_questions: bool
    """Whether every row contains the question, in the same format, so that the questions of an item
    were compared between models."""

    tool: Mapping[str, str]
    """The tool that wrote each file."""

    higher_is_better: Mapping[str, bool]
    """Whether higher scores are better, for each metric whose direction is in the files."""

    notes: tuple[str, ...]
    """Sentences on excluded, merged and assumed values."""

    nested: tuple[str, ...] = ()
    """Columns that are excluded because they contain objects or long lists."""

    reducers: Mapping[str, str] = field(default_factory=dict)
    """Reducer of the repeats of an item by file, for files whose log does not average them."""

    roles: Mapping[str, str] = field(default_factory=dict)
    """Role of each column of a plain table that has one: the column of `frame` that contains it."""


def read_results(
    sources: ResultSource, columns: ResultColumns | None = None, *, has_answers: bool = True
) -> Results:
    """Read result files of any tool as one long frame.

    The layout is detected from the content of a file, not from its name: see `layouts.LAYOUTS`.
    Tables are long, with one row per score or one column per metric, or wide, with one column per
    model. CSV, TSV and Parquet are read by columns; other formats row by row.

    Args:
        sources: A file, a folder of them; a frame, a `datasets.Dataset`, rows, or an `EvalLog` of
            inspect_ai; a list of these, or a mapping of names of models to them.
        columns: Names of columns that are not detected from the file; None for the usual ones.
        has_answers: Whether the frame contains the answers, which use most of the memory. Otherwise
            `prediction` is "" for blank answers and "(not kept)" for others.

    Returns:
        The frame, in the order of the files. The name of a model that is not named is the part of
        its file or folder name that distinguishes it.

    Raises:
        SourceNotFoundError: If a file is missing.
        ColumnNotFoundError: If a named column is missing, or no column names the items.
        RecordError: If a row cannot be read, or a score is not valid; the message names file and
            row.
        DataError: If a file contains no results; if several columns could have one role; if one
            item has two questions in two files, or two rows of a sample differ; or if a requested
            metric or filter is missing.

    Examples:
        >>> read_results([{"item": "q1", "model": "a", "correct": 1}]).frame["score"].tolist()
        [1.0]
    """
    given = columns or ResultColumns()
    return read_inputs(inputs_of(sources, given), given, has_answers=has_answers)


def read_inputs(
    inputs: Sequence[Input], given: ResultColumns, *, has_answers: bool = True
) -> Results:
    """Read the inputs that `inputs_of` lists.

    Args:
        inputs: Files, frames and rows.
        given: Names of columns that are not detected from the file.
        has_answers: As for `read_results`.

    Returns:
        As `read_results`.

    Raises:
        DataError: As `read_results`.
    """
    reading = _Reading(given, has_answers=has_answers)
    frames: list[tuple[str, pd.DataFrame]] = []
    problems: list[str] = []
    for one in inputs:
        try:
            with _boundary(one):
                frames.append((one.name, reading.frame(one)))
        except DataError as error:
            is_left_out = one.is_optional and not isinstance(error, SourceNotFoundError)
            if not (is_left_out or isinstance(error, _NoMetric)):
                raise
            problems.append(str(error))
    replaced = superseded(reading.logs)
    of_replaced = tuple(f"{file}: " for file in replaced)
    reading.notes = [note for note in reading.notes if not note.startswith(of_replaced)]
    reading.notes += [
        f"{file}: {newest} is a later attempt of the same task and replaces it"
        for file, newest in replaced.items()
    ]
    kept = [frame for name, frame in frames if name not in replaced]
    frame = joined(kept, problems, reading.notes)
    del frames, kept
    if given.names and not frame["model"].isin(given.names).any():
        raise DataError(
            f"{len(given.names)} labels, {', '.join(given.names)}, are neither one per file nor "
            f"columns of a table; the models are named {first_names(frame['model'].unique())}; "
            "omit `names`"
        )
    checks = checked(frame, reading.read, given, reading.notes)
    notes = shortened(reading.notes, list(reading.tool))
    frame = checks.frame
    if not has_answers:
        hashed = frame["prediction"].fillna(0).to_numpy()
        codes = np.where(hashed == 0, -1, hashed != _BLANK).astype(np.int8)
        blank = pd.Categorical.from_codes(codes, pd.Index(_KEPT, dtype="str"))
        frame = frame.assign(prediction=blank)
    reducers = {name: reducer_of(log) for name, log in reading.logs.items()}
    named = {name: reducer for name, reducer in reducers.items() if reducer}
    nested = tuple(dict.fromkeys(name for one in reading.read.values() for name in one.nested))
    columns = dict.fromkeys(name for one in reading.read.values() for name in one.columns)
    frame.attrs[SOURCE] = list(columns)
    return Results(
        frame, *checks[1:], reading.tool, reading.higher_is_better, notes, nested, named,
        reading.roles,
    )  # fmt: skip


def read_answers(one: Input, columns: ResultColumns, notes: list[str]) -> Part:
    """Read the answers of one input, one row per sample, unchanged.

    Rows are not compared with other rows or files, and scores are not read. Rows need not name an
    item, because the caller has the questions.

    Args:
        one: A file, a folder written by `datasets.Dataset.save_to_disk`, or a frame or rows.
        columns: Names of columns that are not detected from the file, and the filter of
            lm-evaluation-harness whose text is the answer (by default the text before any filter).
        notes: List to which sentences on samples with an uncertain answer are added.

    Returns:
        The samples: item ("" if it is not named), and if they exist, prediction, question, prompt,
        references, task and further columns.

    Raises:
        ColumnNotFoundError: If a named column is missing.
        RecordError: If a row cannot be read; the message names file and line.
        DataError: If the file contains no rows, or no rows with the requested filter.
    """
    with _boundary(one):
        return _part(one, columns, notes, for_judging=True)[1]


def _boundary(one: Input) -> AbstractContextManager[None]:
    """Add the name of the file to errors of reading a value, if the row is not known."""
    is_file = isinstance(one.content, Path)
    return readable(one.name, "a table of results") if is_file else nullcontext()


class _NoMetric(DataError):
    """A file has none of the requested metrics, which another file may have."""


class _Reading:
    """State of reading files one after the other."""

    def __init__(self, given: ResultColumns, *, has_answers: bool) -> None:
        self.given = given
        self._has_answers = has_answers
        self.notes: list[str] = []
        self.tool: dict[str, str] = {}
        self.read: dict[str, Read] = {}
        self.higher_is_better: dict[str, bool] = {}
        self.logs: dict[str, Cells] = {}
        self.roles: dict[str, str] = {}
        self._texts: dict[Hashable, Hashable] = {}
        self._ids: dict[str, Input] = {}

    def frame(self, one: Input) -> pd.DataFrame:
        """Read one input."""
        tool, part = _part(one, self.given, self.notes)
        self._check_id_types(one, part)
        scores = wanted_scores(part.scores, self.given)
        if not self.given.metrics and direction(self.given.score or "") != "cost":
            costs = [name for name in scores if direction(name) == "cost"]
            scores = {name: scores[name] for name in scores if name not in costs}
            self.notes += [
                f"{one.name}: {name} is a cost, which is read as a score only if `metrics` names "
                f"it{EXCLUDED_ENDING}"
                for name in costs
            ]
        elif part.scores and not scores:
            raise _NoMetric(
                f"{one.name} has no metric {' or '.join(map(shown, self.given.metrics))}; name one "
                f"of {first_names(part.scores)} by `metrics`"
            )
        frame = _long(part._replace(scores=scores), one, self.notes)
        # Run folders already record their failures.
        frame = frame if tool == RUNS else with_common_answers(frame)
        for name in ("question", "references"):
            if _has(frame, name):
                # Texts that occur in many files are stored in memory once.
                texts = [self._texts.setdefault(text, text) for text in frame[name]]
                frame[name] = pd.Series(texts, dtype=object)
        if not self._has_answers:
            frame["prediction"] = _hashed_answers(frame)
        if part.log is not None:
            self.logs[one.name] = {**part.log, "label": one.label}
        self.tool[one.name] = tool
        if isinstance(one.content, Path):
            self.higher_is_better |= directions_next_to(one.content)
        tried = [name for name in ("item", "form", "repeat") if getattr(self.given, name)]
        run = str(at(part.log, "eval.eval_id") or "")
        self.roles |= {part.item: "item", **{name: role for role, name in part.roles.items()}}
        kind = f"{tool}: {_asked_by(part, frame)}"
        self.read[one.name] = Read(kind, part.item, part.columns, tried, run, part.nested)
        return frame

    def _check_id_types(self, one: Input, part: Part) -> None:
        """Reject ids that are numbers in one table and texts in another; ids of CSV can be both."""
        is_text_file = isinstance(one.content, Path) and not one.name.endswith(_TYPED)
        if is_text_file or not part.ids:
            return
        self._ids.setdefault(part.ids, one)
        if len(self._ids) > 1:
            named = " and ".join(f"{kind} in {at.name}" for kind, at in self._ids.items())
            raise DataError(
                f"ids of items ({part.item}) are {named}, so that 1 and '1' could be one item or "
                f"two; convert them to one type, such as frame[{shown(part.item)}].astype(str)"
            )


def _part(
    one: Input, given: ResultColumns, notes: list[str], *, for_judging: bool = False
) -> tuple[str, Part]:
    """Read the samples of one input; return the tool that wrote it and the samples."""
    if isinstance(one.content, Path) and is_run(one.content):
        return RUNS, run_part(one.content)
    table, rows = table_or_rows(one)
    if table is None:
        layout, flats = flat_rows(rows, Path(one.name), notes, given)
        if layout is not None:
            named = {} if layout.named is None else layout.named(Path(one.name))
            return layout.tool, samples_part(
                flats, layout, named, given, one.name, notes, for_judging=for_judging
            )
        table = frame_of([flat.row() for flat in flats], one.name)
    if not len(table):
        raise DataError(f"{one.name} contains no rows, so no results; check how it was written")
    if given.filter is not None:
        raise DataError(
            f"{one.name} is a plain table; `filter` is for samples of lm-evaluation-harness"
        )
    return _TABLE, table_part(table, given, one.name, notes, for_judging=for_judging)


def table_or_rows(one: Input) -> tuple[pd.DataFrame | None, Iterator[Row]]:
    """Read an input by columns if it is a plain table, else by rows.

    Args:
        one: The input.

    Returns:
        The table, or None; and the rows, read when they are needed.
    """
    content, table = one.content, None
    if isinstance(content, Path):
        rows = packed_rows(content)
        if not (content.is_dir() or is_archive(content) or is_table(content)):
            table = read_table(content)
    elif isinstance(content, pd.DataFrame):
        table, rows = content, memory_rows(_frame_rows(content), one.name)
    else:
        rows = memory_rows(content, one.name)
    if table is not None and layout_of(map(str, table.columns)) is not None:
        table = None
    return table, rows


def _frame_rows(frame: pd.DataFrame) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a frame of a tool, missing cells as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    names = list(map(str, plain.columns))
    for cells in plain.itertuples(index=False, name=None):
        yield dict(zip(names, cells, strict=True))


def _asked_by(part: Part, frame: pd.DataFrame) -> str:
    """Return the kind of content that identifies the questions of a file."""
    if part.has_hashes:
        return "hashes"
    has = [name for name in ("question", "references") if _has(frame, name)]
    return " and ".join(has) or "nothing"


def _has(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column exists and has a cell that is not empty."""
    return name in frame and any(cell is not None and cell != () for cell in frame[name])


def _hashed_answers(frame: pd.DataFrame) -> np.ndarray:
    """Hash the answers to compare duplicate rows: blank ones are equal, and a missing one is 0."""
    if "prediction" not in frame:
        return np.zeros(len(frame), dtype=np.uint8)
    hashed = np.zeros(len(frame), dtype=np.uint64)
    is_there = frame["prediction"].notna().to_numpy()
    texts = frame.loc[is_there, "prediction"]
    is_blank = [not text or text.isspace() for text in texts]
    hashed[is_there] = np.where(is_blank, _BLANK, hashes(texts))
    return hashed


def _long(part: Part, one: Input, notes: list[str]) -> pd.DataFrame:
    """Return the scores of samples in long format, one row per score."""
    samples, scores = part.samples, dict(part.scores)
    if not scores:
        answer_columns = [name for name in ("prediction", "error", UNREAD) if name in samples]
        if samples[answer_columns].isna().all(axis=None):
            own = [
                note
                for note in notes
                if note.startswith(one.name) and note.endswith(EXCLUDED_ENDING)
            ]
            unsure = [name for name in map(str, part.columns) if find_column(name, UNSURE)]
            scored = "`references=COLUMN` and `rule=popqa` (in Python, by compare)"
            named = f"={unsure[0]}`, with {scored}" if unsure else "`"
            raise DataError(
                f"{one.name} contains neither scores nor answers; name the column of scores by "
                f"`score`, or a column of answers (not all empty) by `prediction{named}. Columns: "
                f"{first_names(part.columns or list(samples))}{'; '.join(['', *own])}"
            )
        notes.append(f"{one.name}: {UNSCORED}")
        scores = {"": (np.arange(len(samples)), np.full(len(samples), np.nan))}
    rows = np.concatenate([index for index, _ in scores.values()])
    if isinstance(one.content, Path) and one.content.is_file():
        UnpackedSize(one.content, SCORE_BYTES).add(0, len(rows))
    frame = samples if len(scores) == 1 and len(rows) == len(samples) else samples.iloc[rows]
    frame = frame.reset_index(drop=True)
    counts = [len(index) for index, _ in scores.values()]
    frame = frame.assign(
        metric=pd.Categorical.from_codes(
            np.repeat(np.arange(len(counts)), counts), pd.Index(list(scores), dtype="str")
        ),
        score=np.concatenate([values for _, values in scores.values()]),
        file=constant(one.name, len(frame)),
    )
    if part.failures and "error" not in frame:
        frame["error"] = None
    for name, failures in part.failures.items():
        failed = np.isin(rows, list(failures)) & (frame["metric"] == name).to_numpy()
        frame.loc[failed, "error"] = [failures[row] for row in rows[failed]]
    frame = _with_model(frame, one, rows)
    if len(scores) > 1:
        frame = frame.iloc[np.argsort(rows, kind="stable")].reset_index(drop=True)
    return frame


def _with_model(frame: pd.DataFrame, one: Input, rows: np.ndarray) -> pd.DataFrame:
    """Add the name of the model; convert columns of few values to categories."""
    named = frame["model"].fillna("") if "model" in frame else pd.Series("", index=frame.index)
    is_named = (named != "").to_numpy()
    if one.label is not None:
        models = named[is_named].unique()
        if len(models) > 1:
            raise DataError(
                f"{one.name} contains {len(models)} models ({first_names(models)}), but `names` "
                f"gives one label, {shown(one.label)}; omit `names`"
            )
        frame["model"] = constant(one.label, len(frame))
    elif is_named.any() and not is_named.all():
        raise RecordError(
            f"{one.name}: row {rows[~is_named].min() + 1:,} has no model, but other rows have "
            "one; fill it in, or pass `names` if all rows are of one model"
        )
    elif one.fallback is None and not is_named.all():
        raise DataError(
            f"{one.name}: no column contains the model of each row; pass `names`, one per "
            "result, or a mapping of names to results, or name the column by `model`"
        )
    elif not is_named.any():
        frame["model"] = constant(str(one.fallback), len(frame))
    else:
        frame["model"] = named.astype("str").astype("category")
    for name in ("task", "form"):
        if name in frame:
            frame[name] = frame[name].astype("category")
    return frame
