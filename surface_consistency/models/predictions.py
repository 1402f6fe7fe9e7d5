"""Reading predictions that were made elsewhere: tables, logs of harnesses, results of batches.

A file is read without knowing the questions; `Predictions.match` then finds the row of each. No
column is taken where two could be meant, and no prompt, blank cell or namesake is taken for an
answer in silence.
"""

import hashlib
import re
import warnings
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.models.prediction_rows import (
    ID_COLUMNS,
    PREDICTION_COLUMNS,
    UNSURE_COLUMNS,
    PredictionColumns,
    PredictionSettings,
    accepted_answers,
    fact_of,
    find_columns,
    other_texts,
    read_row,
)
from surface_consistency.reading import existing_file, find_column, first_names
from surface_consistency.results.layouts import result_rows
from surface_consistency.results.rows import shown
from surface_consistency.results.samples import task_of

_ECHO_SHARE: Final = 0.1
_SPECIAL: Final = re.compile(r"\A(?:\s|<[^<>\s]{1,20}>)+")
_ANSWER_MARK: Final = re.compile(r"\s*(?:A|Answer):")
_LONGEST_LEAD: Final = 60
_REFERENCE_SHARE: Final = 0.95
_FEW: Final = 5
_VERDICTS: Final = frozenset(
    [
        "correct",
        "incorrect",
        "right",
        "wrong",
        "true",
        "false",
        "pass",
        "fail",
        "passed",
        "failed",
        "0",
        "1",
        "0.0",
        "1.0",
    ]
)


class QuestionIndex(NamedTuple):
    """The questions of a study, one item a prompt in each list."""

    ids: Sequence[str]
    """Ids of the prompts, each once."""

    questions: Sequence[str | None] | None = None
    """Texts of the questions; None of a prompt that asks for more than one."""

    facts: Sequence[str] | None = None
    """Ids of the facts."""

    answers: Sequence[Iterable[str]] | None = None
    """Accepted answers."""


@dataclass(slots=True, eq=False)
class Predictions:
    """The rows of a file of predictions."""

    path: Path
    """The file."""

    settings: PredictionSettings
    """How it is read."""

    columns: tuple[str, ...] = ()
    """Columns of its first row."""

    task: str | None = None
    """Task of which the file is the log; None where nothing tells it."""

    lines: "array[int]" = field(default_factory=lambda: array("q"))
    """Line of each row."""

    texts: list[str | None] = field(default_factory=list)
    """Text of each row; None where there is none."""

    names: list[tuple[str, ...]] = field(default_factory=list)
    """What each row calls its question, best first."""

    is_cut: bytearray = field(default_factory=bytearray)
    """Whether a row's text began with the row's own prompt, which is cut off where it is asked."""

    unsure: str | None = None
    """Column of the texts, where its name may mean the reference or a verdict; None where the user
    or the layout says that it holds them."""

    rivals: dict[str, set[str]] = field(default_factory=dict)
    """Values of other columns of free text, by column."""

    others: dict[str, list[str]] = field(default_factory=dict)
    """Values of further columns that are another one in every row, where no usual column names the
    questions; one that holds their ids or texts alone is taken."""

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.texts)

    def place(self, row: int) -> str:
        """Say where a row stands."""
        return f"{self.path}:{self.lines[row]}"

    def by_name(self) -> tuple[dict[str, str], dict[str, str]]:
        """Give the texts by all names of their questions, for who does not know the questions.

        Returns:
            Text by name; and by name the message for those names that have different texts.

        Raises:
            ColumnNotFoundError: If no column names the questions.
        """
        if not any(self.names):
            raise ColumnNotFoundError(self._nameless())
        first_rows: dict[str, int] = {}
        conflicts: dict[str, str] = {}
        for part in (slice(0, 1), slice(1, None)):
            best = frozenset(first_rows)
            for row, names in enumerate(self.names):
                for name in names[part] if self.texts[row] is not None else ():
                    first = row if name in best else first_rows.setdefault(name, row)
                    if self.texts[first] != self.texts[row]:
                        conflicts.setdefault(name, self._conflict(name, first, row))
        texts = {name: self.texts[row] or "" for name, row in first_rows.items()}
        return {name: text for name, text in texts.items() if name not in conflicts}, conflicts

    def match(self, index: QuestionIndex) -> list[str | None]:
        """Find the prediction of each question.

        A row goes by the id of a prompt, else by the text of a question. Where several questions,
        or several predictions that differ, share a text, the row goes by the id of its fact or its
        accepted answers, else by `doc_id` or its position if these give every row of the file a
        question with its text.

        Args:
            index: The questions.

        Returns:
            One text a prompt, None where there is none.

        Raises:
            ColumnNotFoundError: If no column names the questions.
            DataError: If no row belongs to a question, or rows that differ cannot be told apart.

        Warns:
            UnscoredWarning: If rows belong to no question.
        """
        rows = self._in_order(index) if self.settings.in_order else self._by_names(index)
        if self.unsure is not None and index.answers is not None:
            self._refuse_references(rows, index.answers)
        cut = [row for row in rows if row >= 0 and self.is_cut[row]]
        if len(cut) > _ECHO_SHARE * len(rows) and not self.settings.strip_prompt:
            raise _echo_error(len(cut), len(rows), str(self.path))
        return [None if row < 0 else self.texts[row] for row in rows]

    def _refuse_references(self, rows: list[int], answers: Sequence[Iterable[str]]) -> None:
        """Refuse texts that are the references themselves, or verdicts, where nobody named them."""
        judged = [
            (text.strip(), {answer.strip() for answer in accepted})
            for row, accepted in zip(rows, answers, strict=True)
            if row >= 0 and (text := self.texts[row]) is not None
        ]
        n_equal = sum(text in accepted for text, accepted in judged)
        if len(judged) < _FEW:
            return
        if all(text.casefold() in _VERDICTS for text, _ in judged) and not n_equal:
            what = "hold verdicts alone, such as " + shown(judged[0][0])
        elif n_equal >= _REFERENCE_SHARE * len(judged) and self._may_be_reference():
            what = f"equal a reference in {n_equal:,} of {len(judged):,} questions"
        else:
            return
        raise DataError(
            f"{self.path}: the texts of column {self.unsure!r} {what}, so they are hardly what the "
            f"model wrote; the columns are {first_names(self.columns)}: name the one that holds "
            "its output by text_column (--text-column), this one too if it does"
        )

    def _may_be_reference(self) -> bool:
        """Tell whether the column's name means no output, or others may be the output too."""
        if find_column(self.unsure or "", UNSURE_COLUMNS) is not None:
            return True
        return bool(self.rivals) and find_column(self.unsure or "", PREDICTION_COLUMNS) is None

    def _in_order(self, index: QuestionIndex) -> list[int]:
        """Take the rows in the order of the questions, once their digest is right."""
        digest = questions_digest(index.questions or index.ids)
        if self.settings.in_order != digest:
            raise DataError(
                f"in_order={self.settings.in_order!r} is not the digest of these "
                f"{len(index.ids):,} questions, which is {digest!r}: the predictions are those of "
                "other questions, or of another order"
            )
        if len(self) != len(index.ids):
            raise DataError(
                f"{self.path}: {len(self):,} rows for {len(index.ids):,} questions; with in_order "
                "each question has one row"
            )
        return list(range(len(self)))

    def _by_names(self, index: QuestionIndex) -> list[int]:
        """Find the row of each question, -1 for none."""
        if not any(self.names):
            self._name_by_others(index)
        if not any(self.names):
            raise ColumnNotFoundError(self._nameless(index))
        of_id = {name: place for place, name in enumerate(index.ids)}
        of_text: dict[str, list[int]] = {}
        for place, text in enumerate(index.questions or ()):
            if text is not None:
                of_text.setdefault(text.strip(), []).append(place)
        rows_of = [-1] * len(index.ids)
        rows_of_text: dict[str, list[int]] = {}
        foreign: list[int] = []
        for row, names in enumerate(self.names):
            own = next((of_id[name] for name in names if name in of_id), None)
            text = next((name for name in names if name in of_text), None)
            if own is not None:
                self._take(rows_of, own, row, names[0])
            elif text is not None:
                rows_of_text.setdefault(text, []).append(row)
            else:
                foreign.append(row)
        shared = []
        for text, rows in rows_of_text.items():
            places = [place for place in of_text[text] if rows_of[place] < 0]
            texts = dict.fromkeys(t for row in rows if (t := self.texts[row]) is not None)
            if len(texts) > 1:
                shared.append((text, rows, places))
                continue
            row = next((row for row in rows if self.texts[row] is not None), rows[0])
            for place in places:
                rows_of[place] = row
        if shared:
            foreign += self._tell_apart(shared, rows_of, index)
        if len(foreign) == len(self):
            log = f", the log of the task {self.task!r}," if self.task else ""
            raise DataError(
                f"no prediction belongs to a question: {self.path}{log} names questions such as "
                f"{next(filter(None, self.names))[0]!r}, where ids such as "
                f"{index.ids[0]!r} or texts of questions are looked for; name the column that "
                "holds them by id_column"
            )
        if foreign:
            warnings.warn(
                f"{len(foreign)} of {len(self)} predictions belong to no question of the data and "
                f"were left out, the first under {self.names[foreign[0]][:1]!r} "
                f"({self.place(foreign[0])})",
                UnscoredWarning,
                stacklevel=5,
            )
        return rows_of

    def _name_by_others(self, index: QuestionIndex) -> None:
        """Take the one further column of which every value names a question."""
        known = {*index.ids, *(text.strip() for text in index.questions or () if text)}
        fitting = [name for name, values in self.others.items() if known.issuperset(values)]
        if len(fitting) > 1:
            raise ColumnNotFoundError(
                f"{self.path}: columns {', '.join(map(repr, fitting))} could each name the "
                "questions; say which does by id_column"
            )
        if fitting:
            self.names = [(value,) for value in self.others[fitting[0]]]

    def _take(self, rows_of: list[int], place: int, row: int, name: str) -> None:
        """Give a question its row; refuse a second one that says something else."""
        known = rows_of[place]
        if known < 0 or self.texts[known] is None:
            rows_of[place] = row
        elif self.texts[row] is not None and self.texts[row] != self.texts[known]:
            raise RecordError(self._conflict(name, known, row))

    def _conflict(self, name: str, first: int, row: int) -> str:
        """Say that two rows answer one question differently."""
        return (
            f"{self.place(row)}: a second prediction for {shown(name)}, other than that of "
            f"{self.place(first)}; keep one of them, or name the column of the questions' ids by "
            "id_column"
        )

    def _tell_apart(
        self,
        shared: list[tuple[str, list[int], list[int]]],
        rows_of: list[int],
        index: QuestionIndex,
    ) -> list[int]:
        """Give rows that share a text with others their questions; return those of no question."""
        wanted = {row for _, rows, _ in shared for row in rows}
        fields: dict[int, Mapping[str, Any]] = {}
        numbers: list[object] = []
        taken = (cells for _, cells in result_rows(self.path) if self.settings.takes(cells))
        for row, cells in enumerate(taken):
            numbers.append(cells.get("doc_id"))
            if row in wanted:
                fields[row] = cells
        own_places = self._places(numbers, index)
        foreign = []
        for text, rows, places in shared:
            for row in rows:
                left = _fitting(fields[row], places, index)
                if len(left) > 1 and own_places is not None:
                    left = [place for place in left if place == own_places[row]]
                if not left:
                    foreign.append(row)
                elif len(left) > 1:
                    raise DataError(self._undecided(text, rows, len(places), index))
                else:
                    self._take(rows_of, left[0], row, text)
        return foreign

    def _places(self, numbers: Sequence[object], index: QuestionIndex) -> list[int] | None:
        """Tell the places of all rows by `doc_id`, else by their order, if the texts agree."""
        questions = [None if text is None else text.strip() for text in index.questions or ()]
        by_order = list(range(len(self))) if len(self) == len(questions) else []
        by_number = [n for n in numbers if type(n) is int and 0 <= n < len(questions)]
        for places in (by_number, by_order):
            if len(places) == len(self) and all(
                questions[place] in names for place, names in zip(places, self.names, strict=True)
            ):
                return places
        return None

    def _undecided(self, text: str, rows: list[int], n_questions: int, index: QuestionIndex) -> str:
        """Say which rows cannot be told apart, and what would tell them."""
        places = ", ".join(self.place(row) for row in rows[:3])
        return (
            f"{places}: {n_questions} questions of the data are {shown(text)}, and the "
            "predictions under it differ; give the rows the ids of the questions, such as "
            f"{index.ids[0]!r}, in a column `id`, or the ids of their facts in a column "
            f"`triplet_id`, or their accepted answers in a column `possible_answers`"
            f"{self._order_remedy(index)}"
        )

    def _nameless(self, index: QuestionIndex | None = None) -> str:
        """Say that no column names the questions."""
        return (
            f"{self.path}: no column names the questions; looked for {', '.join(ID_COLUMNS)}; saw "
            f"{first_names(self.columns)}; name it by id_column{self._order_remedy(index)}"
        )

    def _order_remedy(self, index: QuestionIndex | None) -> str:
        """Offer the order of the rows where they are as many as the questions."""
        if index is None or len(self) != len(index.ids):
            return ""
        return (
            f"; or, if the {len(self):,} rows stand in the order of the questions, say so with "
            f"in_order={questions_digest(index.questions or index.ids)!r}, the digest of these "
            "questions"
        )


def questions_digest(questions: Iterable[str | None]) -> str:
    """Name an order of questions, so that predictions without names are not given to others.

    Args:
        questions: Texts of the questions, in order; None counts as an empty one.

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
    """Take prompts off outputs where that is asked, refuse them else, and count blank ones.

    Args:
        texts: Outputs, one a prompt; None where there is none.
        questions: Texts of the questions; None where they are not known.
        settings: What is asked.

    Returns:
        The answers; blank ones are None unless they count as wrong.

    Raises:
        DataError: If a tenth of the outputs or more begin with their question and the prompts are
            not to be cut off.

    Warns:
        UnscoredWarning: If outputs are blank.
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
    if n_blank:
        counted = (
            "they count as missing, and their pairs are left out; to count them as wrong answers "
            "set blank (--blank) to wrong"
            if settings.blank == "missing"
            else "they count as wrong answers"
        )
        warnings.warn(
            f"{n_blank:,} of {n_texts:,} predictions are blank; {counted}",
            UnscoredWarning,
            stacklevel=5,
        )
    if settings.blank == "wrong":
        return list(texts)
    return [text if text is None or text.strip() else None for text in texts]


def read_predictions(path: Path, settings: PredictionSettings | None = None) -> Predictions:
    """Read stored predictions of any of the usual layouts.

    JSONL (`.jsonl`, `.ndjson`), JSON (a list), CSV (`.csv`, `.tsv`; every cell is text, "NA" and
    "null" too), all of them packed (`.gz`) too, Parquet and the folder of a saved
    `datasets.Dataset` need a column that names the question and one with the text, under any
    writing of their names; where no usual column names the questions, the one is taken that is
    another in every row and holds their ids or texts alone. Results of OpenAI's batches go by
    their `custom_id`.
    `prediction` and `pred` are the text whatever stands beside them, as in the files of PopQA's
    script, whose `generation` holds the prompt too; of the names of `OUTPUT_COLUMNS` there may be
    one. A JSONL file with the fields of lm-evaluation-harness (`doc`, `arguments`, `resps` or
    `filtered_resps`) is read as its samples: the question goes by `id`, `question_id` or `question`
    of `doc`, else by the prompt itself; the text is the first response, unfiltered where it is
    there, and the filtered one of `harness_filter`; those of its first versions, one JSON array,
    and what lm-eval 0.3 wrote with `--write_out` are read too. Logs of inspect_ai (`.eval`,
    `.json`) are read by its own reader. Lone surrogates of a text, which no file in UTF-8 can hold,
    become "?".

    Args:
        path: The file, text in UTF-8, a byte order mark allowed; or the folder.
        settings: Columns and treatment; None for the defaults.

    Returns:
        The rows, in the file's order.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the kind of file is unknown or it holds no row.
        ColumnNotFoundError: If a named column is missing, none holds the text or several could;
            names those seen.
        RecordError: If a row is broken; names file and line.
    """
    settings = settings or PredictionSettings()
    file = Path(path)
    if not any(file.glob("**/state.json")):
        existing_file(file, "a file of stored predictions", "*.jsonl")
    read = Predictions(file, settings)
    columns: PredictionColumns | None = None
    filters: set[str] = set()
    n_several = n_tied = 0
    for place, fields in result_rows(file):
        if "filter" in fields:
            filters.add(str(fields["filter"]))
        if not settings.takes(fields):
            continue
        if columns is None:
            columns = find_columns(fields, file, settings)
            read.columns, read.task = tuple(fields), task_of(file, fields)
            read.unsure = None if columns.is_named else columns.text
            if not (columns.names or columns.is_sample or settings.in_order):
                read.others = {name: [] for name in fields if name != columns.text}
        for name, value in {} if columns.is_named else other_texts(fields, columns).items():
            read.rivals.setdefault(name, set()).add(value)
        for name, values in read.others.items():
            values.append(str(fields.get(name, "")).strip())
        text, prompt, names, n_texts, is_tied = read_row(place, fields, columns)
        n_several += n_texts > 1
        n_tied += is_tied
        is_echo = text is not None and bool(prompt) and text.startswith(prompt or "")
        if is_echo and text is not None and settings.strip_prompt:
            text = text[len(prompt or "") :]
        read.lines.append(place.number)
        read.texts.append(text)
        read.names.append(names)
        read.is_cut.append(is_echo)
    if settings.harness_filter is not None and columns is None:
        there = ", ".join(sorted(filters)) or "none"
        raise DataError(
            f"{file} holds no samples of the filter {settings.harness_filter!r}; name one that is "
            f"there by harness_filter: {there}"
        )
    if columns is None:
        raise DataError(f"{file} holds no predictions; it is empty")
    read.rivals = {
        name: values for name, values in read.rivals.items() if len(values) > max(1, len(read) / 2)
    }
    if columns.is_unsure and read.rivals:
        raise ColumnNotFoundError(
            f"{file}: column {columns.text!r} may hold the reference as well as what the model "
            f"wrote, and {', '.join(map(repr, read.rivals))} may be its output too; name the "
            "column of the output by text_column (--text-column)"
        )
    is_filtered = columns.is_sample and columns.text != "resps"
    if is_filtered and len(filters) > 1 and settings.harness_filter is None:
        raise DataError(
            f"{file} holds the samples of {len(filters)} filters, {', '.join(sorted(filters))}; "
            "choose one by harness_filter"
        )
    if n_several:
        warnings.warn(
            f"{file}: {n_several:,} of {len(read):,} samples hold several responses (repeats), of "
            "which the first is taken",
            SurfaceConsistencyWarning,
            stacklevel=2,
        )
    if n_tied:
        warnings.warn(
            f"{file}: in {n_tied:,} of {len(read):,} samples several options share the greatest "
            "log-probability (tie), so none is the answer; they count as missing",
            UnscoredWarning,
            stacklevel=2,
        )
    read.others = {
        name: values for name, values in read.others.items() if len(set(values)) == len(values)
    }
    return read


def _fitting(fields: Mapping[str, Any], places: Sequence[int], index: QuestionIndex) -> list[int]:
    """Keep the questions that a row can mean by the id of its fact, else by its answers."""
    fact = fact_of(fields)
    if fact is not None and index.facts is not None:
        return [place for place in places if index.facts[place] == fact]
    accepted = accepted_answers(fields)
    if accepted and index.answers is not None:
        return [
            place
            for place in places
            if accepted & {answer.strip() for answer in index.answers[place]}
        ]
    return list(places)


def _echo_end(text: str, question: str) -> int | None:
    """Tell where an output that begins with its prompt goes on; None where it does not.

    Before the question may stand nothing, what marks it ("Q:"), or demonstrations that begin with
    the same mark; after it, what marks the answer.
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


def _echo_error(n_echoes: int, n_texts: int, what: str) -> DataError:
    """Refuse outputs that begin with their prompts."""
    return DataError(
        f"{n_echoes:,} of {n_texts:,} outputs of {what} begin with their prompt, which would be "
        "judged in place of the answer; set strip_prompt=True to cut it off, or name the column of "
        "the answer alone by text_column"
    )
