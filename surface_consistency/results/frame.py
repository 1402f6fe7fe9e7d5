"""Any result files as one long frame: the reader that comparing, judging and studies share."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.reading import SCORE_BYTES, UnpackedSize, first_names, shown
from surface_consistency.results.archives import is_archive, packed_rows
from surface_consistency.results.checks import Read, checked, constant, joined, shortened
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.epochs import reducer_of, superseded
from surface_consistency.results.failures import with_common_answers
from surface_consistency.results.inputs import Input, ResultSource, inputs_of, memory_rows
from surface_consistency.results.layouts import flat_rows, layout_of
from surface_consistency.results.logs import LEFT_OUT, samples_part
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
from surface_consistency.results.tools import directions_beside
from surface_consistency.rows.readers import Row

UNSCORED: Final = "answers without scores, which a rule or judge can give"
"""A note on a file."""

RUNS: Final = "surface-consistency"
"""The tool of run folders of this package."""

_TABLE: Final = "a table"
_KEPT: Final = ("", "(not kept)")
"""What is kept of blank and of other answers if the answers are not needed."""
_BLANK: Final = hashes(pd.Series([""]))[0]
_TYPED: Final = (".parquet", ".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Scores and answers of any tools, one row a score."""

    frame: pd.DataFrame
    """One row a score. Always there, in this order: `task`, `model`, `item`, `form` ("" where there
    is one), `repeat` (0 where there is one), `metric` ("" where the file holds answers alone),
    `score` (in the metric's own scale; NaN where it is missing), `prediction`, `references` (a
    tuple), `question`, `error` (None unless there is no answer for its sake), `content` (a uint64
    hash of what was asked; 0 where the file does not say) and `file`. Further columns of the rows
    follow by their own names, with "row." before one that is called as one of these. Columns of few
    values (task, model, form, metric, file) and those that group items are categories."""

    items: npt.NDArray[np.int64]
    """The number of each row's task and item, from 0 in the order of the rows."""

    pairs: npt.NDArray[np.int64]
    """The number of each row's task, item and form, likewise."""

    clusters: tuple[str, ...]
    """Columns that group items, as far as it is known of a layout or a usual name; the finest
    first."""

    is_same_questions: bool
    """Whether every row tells what was asked, and in the way of all others, so that an item is the
    same thing for all models."""

    tool: Mapping[str, str]
    """Who wrote each file."""

    higher_is_better: Mapping[str, bool]
    """Whether higher scores of a metric are better, as far as files of a tool say."""

    notes: tuple[str, ...]
    """What was left out, collapsed or taken for something, a sentence each."""

    nested: tuple[str, ...] = ()
    """Columns that are excluded because they contain objects or long lists."""

    reducers: Mapping[str, str] = field(default_factory=dict)
    """By file, how its log reduces the repeats of an item, other than by their mean."""


def read_results(
    sources: ResultSource, columns: ResultColumns | None = None, *, has_answers: bool = True
) -> Results:
    """Read result files of any tool as one long frame.

    The layout is told by what is in a file and not by its name: see `layouts.LAYOUTS`. Tables are
    long, one row a score or with a column for each metric, or wide, with a column for each model.
    CSV, TSV and Parquet are read by columns; all else row by row.

    Args:
        sources: A file, a folder of them; a frame, a `datasets.Dataset`, rows, or an `EvalLog` of
            inspect_ai; a list of these, or a mapping of names of models to them.
        columns: Names of columns where a file does not say what they are; None for the usual ones.
        has_answers: Whether the frame holds the answers, which take most of the memory; if not,
            `prediction` is "" for blank answers and "(not kept)" for others.

    Returns:
        The frame, in the order of the files. A model that no file names is called as its file or
        folder, by what tells those apart.

    Raises:
        SourceNotFoundError: If a file is not there.
        ColumnNotFoundError: If a named column is not there, or none names the items.
        RecordError: If a row is broken, or a score is none; names file and row.
        DataError: If a file holds no results, or several columns could be meant; if one item is
            two things in two files, or a sample stands twice and differs; if a metric or filter
            that is asked for is not there.

    Examples:
        >>> read_results([{"item": "q1", "model": "a", "correct": 1}]).frame["score"].tolist()
        [1.0]
    """
    given = columns or ResultColumns()
    return read_inputs(inputs_of(sources, given), given, has_answers=has_answers)


def read_inputs(
    inputs: Sequence[Input], given: ResultColumns, *, has_answers: bool = True
) -> Results:
    """Read what `inputs_of` lists.

    Args:
        inputs: Files, frames and rows.
        given: Names of columns where a file does not say what they are.
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
            f"{len(given.names)} labels, {', '.join(given.names)}, name neither one file each nor "
            f"columns of a table; the models are called {first_names(frame['model'].unique())}; "
            "omit `names`"
        )
    held = checked(frame, reading.read, given, reading.notes)
    notes = shortened(reading.notes, list(reading.tool))
    frame = held.frame
    if not has_answers:
        hashed = frame["prediction"].fillna(0).to_numpy()
        codes = np.where(hashed == 0, -1, hashed != _BLANK).astype(np.int8)
        blank = pd.Categorical.from_codes(codes, pd.Index(_KEPT, dtype="str"))
        frame = frame.assign(prediction=blank)
    reducers = {name: reducer_of(log) for name, log in reading.logs.items()}
    named = {name: reducer for name, reducer in reducers.items() if reducer}
    nested = tuple(dict.fromkeys(name for one in reading.read.values() for name in one.nested))
    return Results(frame, *held[1:], reading.tool, reading.higher_is_better, notes, nested, named)


def read_answers(one: Input, columns: ResultColumns, notes: list[str]) -> Part:
    """Read the answers of one input, one row per sample, unchanged.

    Nothing is held against what other rows or files say, no score is read, and rows need not name
    an item: who judges the answers knows the questions.

    Args:
        one: A file, what `datasets.Dataset.save_to_disk` wrote, or a frame or rows.
        columns: Names of columns where a file does not say what they are; and the filter of
            lm-evaluation-harness whose text is the answer, else the answer before any filter.
        notes: Takes sentences on samples whose answer is uncertain.

    Returns:
        The samples: item ("" where none is named), and as far as they are there, prediction,
        question, prompt, references, task and further columns.

    Raises:
        ColumnNotFoundError: If a named column is not there.
        RecordError: If a row is broken; names file and line.
        DataError: If the file holds no rows, or none of the filter.
    """
    with _boundary(one):
        return _part(one, columns, notes, for_judging=True)[1]


def _boundary(one: Input) -> AbstractContextManager[None]:
    """Name the file of any error of reading a value, as far as no row is known."""
    is_file = isinstance(one.content, Path)
    return readable(one.name, "a table of results") if is_file else nullcontext()


class _NoMetric(DataError):
    """A file has none of the metrics that are asked for, which another file may have."""


class _Reading:
    """What is gathered while files are read one after the other."""

    def __init__(self, given: ResultColumns, *, has_answers: bool) -> None:
        self.given = given
        self._has_answers = has_answers
        self.notes: list[str] = []
        self.tool: dict[str, str] = {}
        self.read: dict[str, Read] = {}
        self.higher_is_better: dict[str, bool] = {}
        self.logs: dict[str, Cells] = {}
        self._texts: dict[Hashable, Hashable] = {}
        self._ids: dict[str, Input] = {}

    def frame(self, one: Input) -> pd.DataFrame:
        """Read one input."""
        tool, part = _part(one, self.given, self.notes)
        self._refuse_other_ids(one, part)
        scores = wanted_scores(part.scores, self.given)
        if not self.given.metrics and direction(self.given.score or "") != "cost":
            costs = [name for name in scores if direction(name) == "cost"]
            scores = {name: scores[name] for name in scores if name not in costs}
            self.notes += [
                f"{one.name}: {name} is a cost, which is a score only if `metrics` names it"
                f"{LEFT_OUT}"
                for name in costs
            ]
        elif part.scores and not scores:
            raise _NoMetric(
                f"{one.name} has no metric {' or '.join(map(shown, self.given.metrics))}; name one "
                f"of {first_names(part.scores)} by `metrics`"
            )
        frame = _long(part._replace(scores=scores), one, self.notes)
        # Runs record their failures.
        frame = frame if tool == RUNS else with_common_answers(frame)
        for name in ("question", "references"):
            if _has(frame, name):
                # What a hundred files repeat is held in memory once.
                texts = [self._texts.setdefault(text, text) for text in frame[name]]
                frame[name] = pd.Series(texts, dtype=object)
        if not self._has_answers:
            frame["prediction"] = _hashed_answers(frame)
        if part.log is not None:
            self.logs[one.name] = {**part.log, "label": one.label}
        self.tool[one.name] = tool
        if isinstance(one.content, Path):
            self.higher_is_better |= directions_beside(one.content)
        tried = [name for name in ("item", "form", "repeat") if getattr(self.given, name)]
        run = str(at(part.log, "eval.eval_id") or "")
        kind = f"{tool}: {_asked_by(part, frame)}"
        self.read[one.name] = Read(kind, part.item, part.columns, tried, run, part.nested)
        return frame

    def _refuse_other_ids(self, one: Input, part: Part) -> None:
        """Refuse ids that are numbers in one table and texts in another; those of CSV are both."""
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
    """Read the samples of one input, and tell who wrote it."""
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
        raise DataError(f"{one.name} holds no rows, so no results; check how it was written")
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
    """Name what a file tells of what was asked."""
    if part.has_hashes:
        return "hashes"
    has = [name for name in ("question", "references") if _has(frame, name)]
    return " and ".join(has) or "nothing"


def _has(frame: pd.DataFrame, name: str) -> bool:
    """Tell whether a column says anything."""
    return name in frame and any(cell is not None and cell != () for cell in frame[name])


def _hashed_answers(frame: pd.DataFrame) -> np.ndarray:
    """Hash the answers, to compare doubled rows: blank ones are equal, and 0 is a missing one."""
    if "prediction" not in frame:
        return np.zeros(len(frame), dtype=np.uint8)
    hashed = np.zeros(len(frame), dtype=np.uint64)
    is_there = frame["prediction"].notna().to_numpy()
    texts = frame.loc[is_there, "prediction"]
    is_blank = [not text or text.isspace() for text in texts]
    hashed[is_there] = np.where(is_blank, _BLANK, hashes(texts))
    return hashed


def _long(part: Part, one: Input, notes: list[str]) -> pd.DataFrame:
    """Put the scores of samples below each other, one row a score."""
    samples, scores = part.samples, dict(part.scores)
    if not scores:
        told = [name for name in ("prediction", "error", UNREAD) if name in samples]
        if samples[told].isna().all(axis=None):
            own = [note for note in notes if note.startswith(one.name) and note.endswith(LEFT_OUT)]
            raise DataError(
                f"{one.name} holds neither scores nor answers; name the column of scores by "
                "`score`, or one of answers that are not empty by `prediction`; saw "
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
    """Add the name of the model; make columns of few values categories."""
    named = frame["model"].fillna("") if "model" in frame else pd.Series("", index=frame.index)
    is_named = (named != "").to_numpy()
    if one.label is not None:
        models = named[is_named].unique()
        if len(models) > 1:
            raise DataError(
                f"{one.name} holds {len(models)} models ({first_names(models)}), which one label, "
                f"{shown(one.label)}, cannot name; omit `names`"
            )
        frame["model"] = constant(one.label, len(frame))
    elif is_named.any() and not is_named.all():
        raise RecordError(
            f"{one.name}: row {rows[~is_named].min() + 1:,} names no model, and other rows do; "
            "fill it in, or give `names` if all rows are of one model"
        )
    elif one.fallback is None and not is_named.all():
        raise DataError(
            f"{one.name}: no column names the model of every row; give `names`, one for each of "
            "the results, or a mapping of names to results, or name the column by `model`"
        )
    elif not is_named.any():
        frame["model"] = constant(str(one.fallback), len(frame))
    else:
        frame["model"] = named.astype("str").astype("category")
    for name in ("task", "form"):
        if name in frame:
            frame[name] = frame[name].astype("category")
    return frame
