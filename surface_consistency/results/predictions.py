"""Read the answers that a run scores, and match them with their questions.

A file is read without the questions; `Predictions.match` then finds the row of each question. If
two columns match a role, an error is raised. Prompts, blank cells and columns with a similar name
are never used as answers without a warning.
"""

import hashlib
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from surface_consistency import errors
from surface_consistency.reading import existing_file, find_column, first_names, shown
from surface_consistency.results.columns import (
    FACTS,
    UNSURE,
    USUAL,
    PredictionSettings,
    ResultColumns,
)
from surface_consistency.results.frame import read_answers
from surface_consistency.results.inputs import Input, ResultSource, inputs_of
from surface_consistency.results.rows import question_of
from surface_consistency.results.tables import COLUMNS, Part, as_text
from surface_consistency.rows.columns import POPQA_COLUMNS, REDIRECTQA_COLUMNS
from surface_consistency.schemas.generations import ANSWER_FIELDS

_ECHO_SHARE: Final = 0.1
_SPECIAL: Final = re.compile(r"\A(?:\s|<[^<>\s]{1,20}>)+")
_ANSWER_MARK: Final = re.compile(r"\s*(?:A|Answer):")
_LONGEST_LEAD: Final = 60
_REFERENCE_SHARE: Final = 0.95
_FEW: Final = 5
_VERDICTS: Final = frozenset(
    {
        *("correct", "incorrect", "right", "wrong", "true", "false", "pass", "fail"),
        *("passed", "failed", "0", "1", "0.0", "1.0"),
    }
)
_NUMBER: Final = "doc_id"
_SURE: Final = USUAL["prediction"][:2]
_WORD: Final = re.compile(r"(?:\A|\s)[^\W\d_]{2,}(?:[\s.,!?]|\Z)")
_NO_OUTPUTS: Final = frozenset(
    name.casefold()
    for name in (
        *(name for usual in USUAL.values() for name in usual),
        *(name for names in REDIRECTQA_COLUMNS.values() for name in names),
        *(*ANSWER_FIELDS, *POPQA_COLUMNS, *COLUMNS),
        *("relation", "category", "topic", "group", "prompt_key"),
    )
)


class QuestionIndex(NamedTuple):
    """The prompts of a study; each list has one entry per prompt."""

    ids: Sequence[str]
    """Ids of the prompts, each once."""

    questions: Sequence[str | None] | None = None
    """Texts of the questions; None for a prompt with several questions."""

    facts: Sequence[str] | None = None
    """Ids of the facts."""

    answers: Sequence[Iterable[str]] | None = None
    """Accepted answers."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """The rows of a file of predictions."""

    path: Path
    """The file."""

    settings: PredictionSettings
    """Settings with which it was read."""

    samples: pd.DataFrame
    """Its rows; see `read_answers`."""

    columns: tuple[str, ...]
    """Its columns, if it is a plain table."""

    texts: list[str | None]
    """Text of each row; None if there is none."""

    names: list[tuple[str, ...]]
    """Names of the question in each row, the most reliable first."""

    facts: list[str] | None
    """Fact of each row, if a column names it."""

    numbers: list[str] | None
    """`doc_id` of each row, if a column has it."""

    is_cut: list[bool]
    """Whether the text of a row began with its prompt, which `strip_prompt` removes."""

    unsure: str | None = None
    """Column of the texts, if only its name indicates that it contains answers."""

    rivals: tuple[str, ...] = ()
    """Other columns of free text."""

    is_in_memory: bool = False
    """Whether the rows come from a frame or list instead of a file."""

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.texts)

    def place(self, row: int) -> str:
        """Name a row for a message."""
        return f"{self.path}: row {row + 1:,}"

    def by_name(self) -> dict[str, str | None]:
        """Return the texts by each name of their questions, if the questions are not known.

        Returns:
            Text by name; None for a name whose rows differ.

        Raises:
            ColumnNotFoundError: If no column names the questions.
        """
        if not any(self.names):
            raise errors.ColumnNotFoundError(self._nameless())
        texts: dict[str, str | None] = {}
        for part in (slice(0, 1), slice(1, None)):
            best = frozenset(texts)
            for names, text in zip(self.names, self.texts, strict=True):
                for name in names[part] if text is not None else ():
                    if name not in best and texts.setdefault(name, text) != text:
                        texts[name] = None
        return texts

    def match(self, index: QuestionIndex) -> list[str | None]:
        """Return the prediction of each prompt.

        A row is matched by the id of a prompt, otherwise by the text of the question. If several
        questions, or several different predictions, have the same text, the row is matched by the
        id of its fact or by its accepted answers; otherwise by `doc_id` or its position, if this
        gives every row of the file a question with the same text.

        Args:
            index: The questions.

        Returns:
            One text per prompt, None if there is none.

        Raises:
            ColumnNotFoundError: If no column names the questions.
            RecordError: If two rows of one question have different predictions.
            DataError: If no row matches a question, or different rows match the same questions.

        Warns:
            UnscoredWarning: If rows do not match any question.
            SurfaceConsistencyWarning: If rows of one question have the same text.
        """
        rows = self._in_order(index) if self.settings.in_order else self._by_names(index)
        if self.unsure is not None and index.answers is not None:
            self._check_references(rows, index.answers)
        n_cut = sum(self.is_cut[row] for row in rows if row >= 0)
        if n_cut > _ECHO_SHARE * len(rows) and not self.settings.strip_prompt:
            raise _echo_error(n_cut, len(rows), str(self.path))
        return [None if row < 0 else self.texts[row] for row in rows]

    def _check_references(self, rows: list[int], answers: Sequence[Iterable[str]]) -> None:
        """Raise an error if the texts are the references, or correctness labels."""
        compared = [
            (text.strip(), {answer.strip() for answer in accepted})
            for row, accepted in zip(rows, answers, strict=True)
            if row >= 0 and (text := self.texts[row]) is not None
        ]
        if len(compared) < _FEW:
            return
        n_equal = sum(text in accepted for text, accepted in compared)
        may_be_reference = find_column(self.unsure or "", UNSURE) is not None or (
            bool(self.rivals) and find_column(self.unsure or "", _SURE) is None
        )
        if all(text.casefold() in _VERDICTS for text, _ in compared) and not n_equal:
            what = "are only correctness labels, such as " + shown(compared[0][0])
        elif n_equal >= _REFERENCE_SHARE * len(compared) and may_be_reference:
            what = f"equal a reference in {n_equal:,} of {len(compared):,} questions"
        else:
            return
        raise errors.DataError(
            f"{self.path}: the texts of column {shown(self.unsure)} {what}, so they are probably "
            f"not the output of the model. Columns: {first_names(self.columns)}. Name the column "
            "of the output by `prediction`, even if it is this one"
        )

    def _in_order(self, index: QuestionIndex) -> list[int]:
        """Return the rows in the order of the questions, if their digest is correct."""
        digest = questions_digest(index.questions or index.ids)
        if self.settings.in_order != digest:
            raise errors.DataError(
                f"in_order={self.settings.in_order!r} is not the digest of these "
                f"{len(index.ids):,} questions, which is {digest!r}: the predictions are for other "
                "questions, or in another order"
            )
        if len(self) != len(index.ids):
            raise errors.DataError(
                f"{self.path}: {len(self):,} rows for {len(index.ids):,} questions; with in_order "
                "each question has one row"
            )
        return list(range(len(self)))

    def _by_names(self, index: QuestionIndex) -> list[int]:
        """Return the row of each question; -1 if there is none."""
        all_names = self.names if any(self.names) else self._other_names(index)
        of_id = {name: place for place, name in enumerate(index.ids)}
        of_text: dict[str, list[int]] = {}
        for place, question in enumerate(index.questions or ()):
            if question is not None:
                of_text.setdefault(question.strip(), []).append(place)
        by_id: dict[int, list[int]] = {}
        by_text: dict[int, list[int]] = {}
        shared: set[int] = set()
        foreign: list[int] = []
        own_places = self._own_places(index)
        for row, names in enumerate(all_names):
            own = next((of_id[name] for name in names if name in of_id), None)
            text = next((name for name in names if name in of_text), None)
            if own is not None:
                by_id.setdefault(own, []).append(row)
                continue
            places = [] if text is None else self._fitting(row, of_text[text], index)
            if len(places) > 1:
                places = [p for p in places if own_places is None or p == own_places[row]]
                shared.update([row] if len(places) > 1 else ())
            for place in places:
                by_text.setdefault(place, []).append(row)
            foreign.extend(() if places else (row,))
        if len(foreign) == len(self):
            task = next(filter(None, self.samples.get("task", ())), None)
            log = f", the log of the task {shown(task)}," if task else ""
            raise errors.DataError(
                f"no prediction belongs to a question: {self.path}{log} names questions such as "
                f"{shown(next(filter(None, all_names))[0])}, but the ids are such as "
                f"{shown(index.ids[0])}; name {'another' if self.settings.item else 'the'} column "
                "that contains ids or texts of questions by `item`"
            )
        if foreign:
            warnings.warn(
                f"{len(foreign)} of {len(self)} predictions belong to no question of the data and "
                f"were excluded, the first under {shown(all_names[foreign[0]][:1])} "
                f"({self.place(foreign[0])})",
                errors.UnscoredWarning,
                stacklevel=5,
            )
        rows_of, doubled = [-1] * len(index.ids), set[int]()
        for place, rows in (by_text | by_id).items():
            answered = [row for row in rows if self.texts[row] is not None] or rows
            other = next((r for r in answered if self.texts[r] != self.texts[answered[0]]), None)
            if other is not None:
                self._raise_several(answered[0], other, shared, index, place)
            rows_of[place] = answered[0]
            doubled.update(answered[1:])
        # Samples of a tool repeat the answer for each filter.
        if self.columns and (doubled := doubled.difference(rows_of, shared)):
            warnings.warn(
                f"{len(doubled)} of {len(self)} predictions repeat the text of another row for the "
                f"same question and are dropped, the first at {self.place(min(doubled))}",
                errors.SurfaceConsistencyWarning,
                stacklevel=5,
            )
        return rows_of

    def _raise_several(
        self, first: int, other: int, shared: set[int], index: QuestionIndex, place: int
    ) -> None:
        """Raise the error for two different rows of one question."""
        if not shared.isdisjoint((first, other)):
            question = (index.questions or ())[place]
            raise errors.DataError(
                f"{self.place(first)}, {self.place(other)}: several questions of the data are "
                f"{shown(question)}, and the predictions under it differ; give the rows the ids of "
                f"the questions, such as {shown(index.ids[0])}, in a column `id`, or the ids of "
                "their facts in a column `triplet_id`, or their accepted answers in a column "
                f"`possible_answers`{self._order_remedy(index)}"
            )
        raise errors.RecordError(
            f"{self.place(other)}: a second prediction for {shown(index.ids[place])}, which "
            f"differs from that of {self.place(first)}; keep one of them, name the column of the "
            "questions' ids by `item`, or one of several filters by `filter`"
        )

    def _other_names(self, index: QuestionIndex) -> list[tuple[str, ...]]:
        """Return names of rows, from the only column in which all values name questions."""
        known = {*index.ids, *(text.strip() for text in index.questions or () if text)}
        values = {
            name: as_text(self.samples[name]).str.strip()
            for name in self.samples
            if name not in COLUMNS
        }
        fitting = [
            name for name, cells in values.items() if cells.is_unique and known.issuperset(cells)
        ]
        if len(fitting) > 1:
            raise errors.ColumnNotFoundError(
                f"{self.path}: columns {', '.join(map(shown, fitting))} could each name the "
                "questions; name the one that does by `item`"
            )
        if not fitting:
            raise errors.ColumnNotFoundError(self._nameless(index))
        return [(value,) for value in values[fitting[0]]]

    def _fitting(self, row: int, places: Sequence[int], index: QuestionIndex) -> list[int]:
        """Select the questions of one text that have the fact id, or the answers, of a row."""
        if len(places) == 1:
            return list(places)
        if self.facts is not None and self.facts[row] and index.facts is not None:
            return [place for place in places if index.facts[place] == self.facts[row]]
        cell: Any = self.samples["references"].iat[row] if "references" in self.samples else ()
        accepted = {text.strip() for text in cell if text.strip()}
        if accepted and index.answers is not None:
            answers = index.answers
            return [p for p in places if accepted & {answer.strip() for answer in answers[p]}]
        return list(places)

    def _own_places(self, index: QuestionIndex) -> list[int] | None:
        """Return the places of all rows by `doc_id`, else by their order, if the texts agree."""
        questions = [None if text is None else text.strip() for text in index.questions or ()]
        numbers = [int(text) for text in self.numbers or () if text.isascii() and text.isdigit()]
        for places in (numbers, list(range(len(questions)))):
            if len(places) == len(self) and all(
                place < len(questions) and questions[place] in names
                for place, names in zip(places, self.names, strict=True)
            ):
                return places
        return None

    def _nameless(self, index: QuestionIndex | None = None) -> str:
        """Describe a file in which no column names the questions."""
        return (
            f"{self.path}: no column identifies the questions; searched for "
            f"{', '.join(USUAL['item'])}; name it by `item`{self._order_remedy(index)}. Columns: "
            f"{first_names(self.columns)}"
        )

    def _order_remedy(self, index: QuestionIndex | None) -> str:
        """Suggest the order of the rows, if there are as many rows as questions."""
        if index is None or len(self) != len(index.ids):
            return ""
        if self.is_in_memory:
            return "; or, if the rows are in this order, pass the texts alone with in_order=True"
        return (
            f"; or, if the {len(self):,} rows are in the order of the questions, confirm it with "
            f"in_order={questions_digest(index.questions or index.ids)!r}, the digest of these "
            "questions"
        )


def questions_digest(questions: Iterable[str | None]) -> str:
    """Return a digest of questions in their order, to check predictions without names of questions.

    Args:
        questions: Texts of the questions, in order; None is treated as an empty text.

    Returns:
        The first 16 hexadecimal digits of the SHA-256 of the texts, a line feed after each.

    Examples:
        >>> questions_digest(["Who?", "What?"])
        '3ed7ca6ef4e3819d'
    """
    digest = hashlib.sha256()
    for question in questions:
        digest.update(f"{question or ''}\n".encode("utf-8", "replace"))
    return digest.hexdigest()[:16]


def answers_only(
    texts: Sequence[str | None],
    questions: Sequence[str | None] | None,
    settings: PredictionSettings,
) -> list[str | None]:
    """Return answers: outputs without prompts (removed on request, otherwise rejected).

    Args:
        texts: Outputs, one per prompt; None if there is none.
        questions: Texts of the questions; None if they are not known.
        settings: How prompts and missing outputs are treated.

    Returns:
        The answers, None for blank outputs. If blank outputs count as incorrect, blank and missing
        ones are "".

    Raises:
        DataError: If a tenth of the outputs or more begin with their question and `strip_prompt` is
            False; if an output is blank or None and `missing` is "raise".

    Warns:
        UnscoredWarning: If outputs are blank or None.
    """
    ends = [
        None if text is None or question is None else _echo_end(text, question)
        for text, question in zip(texts, questions or [None] * len(texts), strict=True)
    ]
    n_echoes, n_texts = sum(end is not None for end in ends), sum(t is not None for t in texts)
    if settings.strip_prompt:
        texts = [t if t is None or e is None else t[e:] for t, e in zip(texts, ends, strict=True)]
    elif n_echoes and n_echoes >= _ECHO_SHARE * n_texts:
        raise _echo_error(n_echoes, n_texts, "the predictions")
    n_blank = sum(text is not None and not text.strip() for text in texts)
    n_absent = len(texts) - n_texts
    if settings.missing == "raise" and n_blank + n_absent:
        raise errors.DataError(
            f"of {len(texts):,} prompts {n_absent:,} have no prediction and {n_blank:,} a blank "
            "one, but `missing` is raise; add them, or set `missing` to drop or wrong"
        )
    counted = (
        "they are excluded as missing; to count them as incorrect, set `missing` to wrong"
        if settings.missing == "drop"
        else "they count as incorrect"
    )
    blank = f"{n_blank:,} of {n_texts:,} predictions are blank"
    absent = f"{n_absent:,} of {len(texts):,} prompts have no prediction"
    for n, what in ((n_blank, blank), (n_absent, absent)):
        if n:
            warnings.warn(f"{what}; {counted}", errors.UnscoredWarning, stacklevel=5)
    if settings.missing == "wrong":
        return [text or "" for text in texts]
    return [text if text is None or text.strip() else None for text in texts]


def read_predictions(
    source: ResultSource, settings: PredictionSettings | None = None
) -> Predictions:
    """Read predictions from a file or rows that `read_results` reads.

    A plain table needs a column that names the question and one with the text, under their usual
    names in any spelling (`columns.USUAL`). Without a usual name of the question, the only column
    with distinct ids or texts of questions is used. `prediction` and `pred` are the text regardless
    of other columns, as in the files of PopQA's script, whose `generation` also contains the
    prompt. Of the other usual names only one may occur. Samples of lm-evaluation-harness are
    matched by `id`, `question_id` or `question` of their document, else by the prompt itself; the
    text is the first response before any filter, or after `filter`. Results of OpenAI's batches are
    matched by their `custom_id`. Lone surrogates of a text, which UTF-8 cannot encode, become "?".

    Args:
        source: The file; the folder of a saved `datasets.Dataset`; or a frame, a
            `datasets.Dataset` or rows.
        settings: Columns and treatment of prompts and missing answers; None for the defaults.

    Returns:
        The rows, in the file's order.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If the kind of file is unknown, or it contains no rows or no answers.
        ColumnNotFoundError: If a named column is missing, or no column or several columns could
            contain the text.
        RecordError: If a row cannot be read.

    Warns:
        SurfaceConsistencyWarning: If samples contain several responses, or several options are
            equally probable.
    """
    settings = settings or PredictionSettings()
    if isinstance(source, str | os.PathLike):
        file = Path(source)
        if not any(file.glob("**/state.json")):
            existing_file(file, "a file of stored predictions", "*.jsonl")
        one = Input(file, str(file), None, "", is_optional=False)
    else:
        (one,) = inputs_of(source, ResultColumns())
        one = one._replace(name="predictions")
        file = Path(one.name)
    notes: list[str] = []
    given = ResultColumns(
        item=settings.item, prediction=settings.prediction, filter=settings.filter
    )
    part = read_answers(one, given, notes)
    unsure, rivals = (None, ()) if not part.columns else _other_texts(part, settings, file)
    samples = part.samples
    if "prediction" not in samples:
        raise errors.ColumnNotFoundError(
            f"{file}: no column of predictions; searched for {', '.join(USUAL['prediction'])}; "
            f"name it by `prediction`. Columns: {first_names(part.columns)}"
        )
    if samples["prediction"].isna().all():
        raise errors.DataError(
            f"{file} contains no answer; of samples of lm-evaluation-harness only those of "
            "generation tasks (output_type generate_until) and of choices (multiple_choice) "
            "contain one: log-likelihoods of texts are read by the runner stored-scores under "
            "`read='multiple-choice'`"
        )
    for note in notes:
        warnings.warn(note, errors.SurfaceConsistencyWarning, stacklevel=2)
    prompts = samples["prompt"] if "prompt" in samples else [None] * len(samples)
    texts = samples["prediction"].tolist()
    is_cut = [
        isinstance(prompt, str) and bool(text and prompt) and text.startswith(prompt)
        for text, prompt in zip(texts, prompts, strict=True)
    ]
    if settings.strip_prompt:
        texts = [
            text.removeprefix(prompt) if is_own else text
            for text, prompt, is_own in zip(texts, prompts, is_cut, strict=True)
        ]
    return Predictions(
        path=file,
        settings=settings,
        samples=samples,
        columns=tuple(part.columns),
        texts=texts,
        names=_row_names(part, settings, file),
        facts=_cells(part, *FACTS),
        numbers=_cells(part, _NUMBER),
        is_cut=is_cut,
        unsure=unsure,
        rivals=rivals,
        is_in_memory=not isinstance(one.content, Path),
    )


def _other_texts(
    part: Part, settings: PredictionSettings, file: Path
) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of the texts, unless the user names it, and other columns of free text."""
    if settings.prediction is not None or "prediction" not in part.roles:
        return None, ()
    for kind in (_SURE, USUAL["prediction"][len(_SURE) :]):
        there = [own for name in kind if (own := find_column(name, part.columns)) is not None]
        if len(there) > 1:
            raise errors.ColumnNotFoundError(
                f"{file}: columns {' and '.join(map(shown, there))} could each contain the "
                "predictions; name one of them by `prediction`"
            )
        if there:
            break
    least = max(1.0, len(part.samples) / 2)
    rivals = []
    for name in map(str, part.samples):
        if name.strip().casefold() in _NO_OUTPUTS:
            continue
        cells = {cell for cell in part.samples[name] if isinstance(cell, str)}
        if len(cells) > least and sum(map(bool, map(_WORD.search, cells))) > least:
            rivals.append(name)
    column = part.roles["prediction"]
    if rivals and find_column(column, UNSURE) is not None:
        raise errors.ColumnNotFoundError(
            f"{file}: column {shown(column)} may contain the reference or the output of the model, "
            f"and {', '.join(map(shown, rivals))} may be its output too; name the column of the "
            "output by `prediction`"
        )
    return column, tuple(rivals)


def _cells(part: Part, *names: str) -> list[str] | None:
    """Return the cells of the first of some columns that exists, as text; None if none exists."""
    further = [str(name) for name in part.samples if name != "item"]
    for name in names:
        is_item = find_column(name, [part.item]) is not None
        own = "item" if is_item else find_column(name, further)
        if own is not None:
            cells: list[str] = as_text(part.samples[own]).str.strip().tolist()
            return cells
    return None


def _row_names(part: Part, settings: PredictionSettings, file: Path) -> list[tuple[str, ...]]:
    """Return the names of the question in each row, the most reliable first.

    A prompt next to other names is replaced by the question at its end.
    """
    usual = [name for name in USUAL["item"] if name not in (*FACTS, _NUMBER, "prompt")]
    if settings.item and settings.item != (_NUMBER,):
        columns = [part.samples["item"].str.strip().tolist()]
    else:
        columns = [cells for name in usual if (cells := _cells(part, name)) is not None]
    nothing = [""] * len(part.samples)
    questions = _cells(part, "question") or nothing
    names = []
    for *cells, prompt in zip(*columns, questions, _cells(part, "prompt") or nothing, strict=True):
        of_row = dict.fromkeys([cell for cell in cells if cell and cell != prompt])
        if prompt and not of_row:
            of_row = {prompt: None}
        if question := question_of(prompt or cells[-1]):
            of_row[question] = None
        names.append(tuple(of_row))
    if any(names) and not all(names) and settings.in_order is None:
        raise errors.RecordError(
            f"{file}: row {names.index(()) + 1:,} does not name its question; fill in its id or "
            "its text, or name another column by `item`"
        )
    return names


def _echo_end(text: str, question: str) -> int | None:
    """Return the position after the prompt in an output that begins with it; None if it does not.

    Before the question there may be a mark ("Q:"), or demonstrations that begin with the same mark;
    after it, the mark of the answer.
    """
    start = text.find(question)
    if start < 0:
        return None
    before = _SPECIAL.sub("", text[:start])
    lead = before.rpartition("\n")[2].strip()
    if len(lead) > _LONGEST_LEAD or not (
        before.strip() == lead or (lead and before.startswith(lead))
    ):
        return None
    end = start + len(question)
    mark = _ANSWER_MARK.match(text, end)
    return end if mark is None else mark.end()


def _echo_error(n_echoes: int, n_texts: int, what: str) -> errors.DataError:
    """Return the error for outputs that begin with their prompts."""
    return errors.DataError(
        f"{n_echoes:,} of {n_texts:,} outputs of {what} begin with their prompt, which would be "
        "scored instead of the answer; set strip_prompt=True to remove it, or name the column of "
        "the answer without the prompt by `prediction`"
    )
