"""Find the span of the fact in a long answer: by content words, with an LLM judge, or by hand.

The paper paired short answers with spans of long ones by hand, in 16 hours (appendix A.4).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from surface_consistency.engine import LLMJudge
from surface_consistency.engine.settings import SideModel
from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.matching import LongAnswer, TopicQuestions
from surface_consistency.matching.answering_part import FUNCTION_WORDS, stem
from surface_consistency.reading import delimited_rows, first_names, shown
from surface_consistency.runs import Run
from surface_consistency.runs.files import unguard_cell, write_sheet
from surface_consistency.schemas import Message, Prompt
from surface_consistency.studies.mechanism.sample import Answer, Sample
from surface_consistency.studies.mechanism.settings import MechanismSettings

SpanSource = Literal["alignment", "answering part", "judge", "person", "whole", "not found"]
"""Source of a span: the words of the short answer, the clause that answers the question, the copy
of an LLM judge, a human label, the whole scored part of the answer, or no source."""

_WORD: Final = re.compile(r"\w+(?:[’'.-]\w+)*")
_COVERED: Final = 0.5
_MOST_WORDS: Final = 60
_NONE: Final = "NONE"
_COLUMNS: Final = ("answer_id", "question", "short_answer", "long_answer", "found", "span")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Part of an answer."""

    start: int
    """Position of its first character."""

    stop: int
    """Position after its last character; `start` if nothing was found."""

    source: SpanSource
    """How the span was found."""

    @property
    def is_found(self) -> bool:
        """Whether a span was found."""
        return self.stop > self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRequest:
    """A long answer in which the span of a fact is searched."""

    answer_id: str
    """Id of the answer."""

    short: str
    """The short answer to the same fact."""

    long: str
    """The long answer."""

    question: str = ""
    """The question that the fact answers; "" if the run has no questions."""

    questions: tuple[str, ...] = ()
    """All questions that the long answer answers; empty if the run has no questions."""

    topic: str = ""
    """Topic of the questions."""

    slot: int | None = None
    """Number of the question of the fact in the long query, from 1."""


_NOT_FOUND: Final = Span(start=0, stop=0, source="not found")


def whole_span(text: str, judged: str | None) -> Span:
    """Return the span of the scored part of an answer.

    Args:
        text: The answer.
        judged: Its scored part; if it is None or does not occur in the text, the whole answer.

    Returns:
        The span, without surrounding white space; "not found" for a blank answer.

    Examples:
        >>> whole_span(" Paris", None)
        Span(start=1, stop=6, source='whole')
    """
    part = (judged or "").strip()
    at = text.find(part) if part else -1
    if at >= 0:
        return Span(start=at, stop=at + len(part), source="whole")
    stripped = text.strip()
    start = text.find(stripped)
    return Span(start=start, stop=start + len(stripped), source="whole") if stripped else _NOT_FOUND


def align_span(request: SpanRequest) -> Span:
    """Find the shortest passage of a long answer that contains the short answer's content words.

    If the run has the questions, the clauses that answer the question are searched before the
    whole answer. The first match of these is returned: the short answer, word for word; the passage
    within a clause that contains most of its content words (compared without inflection), if these
    are at least half of them; the clause that answers the question. The last one is for long
    answers that contradict the short one and have no words in common with it.

    Args:
        request: The answers.

    Returns:
        The span; "not found" if no passage answers the question.

    Examples:
        >>> long = "It was found by Huygens."
        >>> found = align_span(SpanRequest(answer_id="1", short="Huygens found it.", long=long))
        >>> found.source, long[found.start : found.stop]
        ('alignment', 'found by Huygens')
    """
    clauses = _answering_clauses(request)
    everywhere = _sentences(request.long)
    short = request.short.strip().rstrip(".").strip()
    for begin, end in (*clauses, (0, len(request.long))):
        at = request.long[begin:end].casefold().find(short.casefold()) if short else -1
        if at >= 0:
            return Span(start=begin + at, stop=begin + at + len(short), source="alignment")
    needed = {stem(word.casefold()) for word in _WORD.findall(short)}
    needed = {word for word in needed if word not in FUNCTION_WORDS} or needed
    for parts in (clauses, everywhere):
        best = _best_window(request.long, parts, needed)
        if best is not None:
            return Span(start=best[0], stop=best[1], source="alignment")
    if clauses:
        begin, end = clauses[0]
        return Span(start=begin, stop=end, source="answering part")
    return _NOT_FOUND


def _answering_clauses(request: SpanRequest) -> list[tuple[int, int]]:
    """Locate the clauses that answer the question; empty if the run does not have the question."""
    if request.question not in request.questions:
        return []
    topic = TopicQuestions(request.questions, topic=request.topic)
    index = request.questions.index(request.question)
    parts = LongAnswer(request.long, topic).parts(index, slot=request.slot)
    located = [(request.long.find(part), part) for part in parts]
    places = [(at, at + len(part)) for at, part in located if at >= 0]
    # Clauses that cover the whole answer do not answer this question in particular.
    covered = sum(end - begin for begin, end in places)
    return (
        places if covered < 0.9 * len(request.long.strip()) or len(request.questions) == 1 else []
    )


def _sentences(text: str) -> list[tuple[int, int]]:
    """Split a text at the ends of sentences and lines."""
    marks = [match.end() for match in re.finditer(r"(?<=[.!?])\s+|[。！？]|\n+|;\s+", text)]
    ends = [*marks, len(text)]
    return [(begin, end) for begin, end in zip([0, *marks], ends, strict=True) if end > begin]


def _best_window(
    text: str, parts: Iterable[tuple[int, int]], needed: set[str]
) -> tuple[int, int] | None:
    """Find the shortest passage with most of the words, if it contains at least half of them."""
    best: tuple[int, int, int, int] | None = None
    for begin, end in parts:
        words = [
            (begin + match.start(), begin + match.end(), stem(match[0].casefold()))
            for match in _WORD.finditer(text[begin:end])
        ]
        places = [place for place, (*_, word) in enumerate(words) if word in needed]
        for first_place, first in enumerate(places):
            found: set[str] = set()
            for last in places[first_place:]:
                if last - first >= _MOST_WORDS:
                    break
                if words[last][2] in found:
                    continue
                found.add(words[last][2])
                rank = (len(found), first - last, words[first][0], words[last][1])
                if best is None or rank[:2] > best[:2]:
                    best = rank
    if best is None or best[0] < _COVERED * len(needed):
        return None
    return best[2], best[3]


def find_spans(
    run: Run, sample: Sample, settings: MechanismSettings, folder: Path
) -> dict[str, Span]:
    """Find the span of the fact in every sampled answer of a run, by the rule of the settings.

    Args:
        run: The run.
        sample: Its pairs.
        settings: The rule, the LLM judge, and the sheets of human labels to read or write.
        folder: Folder of the log of the LLM judge.

    Returns:
        The span by answer; the span of a first answer is its whole scored part.

    Raises:
        DataError: If a marked span is not part of its answer, or a sheet would overwrite a file.
        RunnerError: If the LLM judge cannot be queried.
    """
    rule = settings.spans
    if rule == "auto":
        rule = "alignment" if run.manifest.study == "slaq" else "whole"
    spans = {
        answer.id: whole_span(answer.text, answer.judged)
        for pair in sample.pairs
        for answer in (pair.first, pair.second)
    }
    requests = [_request(pair.first, pair.second) for pair in sample.pairs]
    if rule == "alignment":
        spans |= {request.answer_id: align_span(request) for request in requests}
    elif rule == "judge":
        side = SideModel.of(settings, "judge")
        runner = side.load()
        judge = LLMJudge(runner, folder / "judge", model=side.name(runner), max_new_tokens=256)
        spans |= judged_spans(requests, judge)
    if settings.marked_spans is not None:
        spans |= read_span_sheet(settings.marked_spans, requests)
    if settings.span_sheet is not None:
        write_span_sheet(settings.span_sheet, requests, spans)
    return spans


def _request(first: Answer, second: Answer) -> SpanRequest:
    """Make the request for the fact of a pair in its second answer."""
    return SpanRequest(
        answer_id=second.id,
        short=(first.judged or first.text).strip(),
        long=second.text,
        question=second.question,
        questions=second.questions,
        topic=second.topic,
        slot=second.slot,
    )


_INSTRUCTION: Final = (
    "Below are a question, a short answer to it, and a long answer to several questions. Copy, "
    "word for word, the shortest part of the long answer that answers the question, whether or not "
    "it agrees with the short answer. Write nothing else. If no part answers the question, write "
    f"{_NONE}."
)


def judged_spans(requests: Sequence[SpanRequest], judge: LLMJudge) -> dict[str, Span]:
    """Find the part of each long answer that states the fact, as copied by an LLM judge.

    Args:
        requests: The answers.
        judge: The LLM judge; prompts that are in its log are not sent again.

    Returns:
        The span by answer; "not found" if the model replies that no part answers the question, or
        if its copy does not occur in the answer.

    Raises:
        RunError: If the judge's folder contains the log of another judge.
        RunnerError: If the model cannot be queried.
    """
    prompts = {
        request.answer_id: Prompt(
            id=f"span/{request.answer_id}",
            messages=(
                Message(
                    role="user",
                    content=f"{_INSTRUCTION}\n\nQuestion: {request.question or request.short}\n"
                    f"Short answer: {request.short.strip()}\nLong answer: {request.long.strip()}",
                ),
            ),
        )
        for request in requests
    }
    replies = judge.ask(prompts.values())
    return {
        request.answer_id: _copied(
            request.long, replies[prompts[request.answer_id].key].text, source="judge"
        )
        or _NOT_FOUND
        for request in requests
    }


def _copied(text: str, part: str | None, *, source: SpanSource) -> Span | None:
    """Find a copied part, ignoring white space, case and quotation marks; None if not found."""
    words = (part or "").strip().strip("\"'“”*` ").split()
    if not words or words == [_NONE]:
        return None
    pattern = r"\s+".join(map(re.escape, words))
    match = re.search(pattern, text, re.IGNORECASE)
    if match is None and words[-1].endswith("."):
        match = re.search(pattern.removesuffix(r"\."), text, re.IGNORECASE)
    return Span(start=match.start(), stop=match.end(), source=source) if match else None


def write_span_sheet(path: Path, requests: Sequence[SpanRequest], spans: dict[str, Span]) -> None:
    """Write a sheet for human annotation of spans.

    Args:
        path: The CSV file; its folder must exist.
        requests: The answers.
        spans: The spans that were found, by answer.

    Raises:
        DataError: If another file of that name exists, which may contain human labels.

    Notes:
        Annotators fill the column span with the part of the long answer that states the fact,
        copied word for word, or with "NONE" if no part states it. They leave it empty if `found` is
        correct.
    """
    rows = []
    for request in requests:
        span = spans[request.answer_id]
        part = request.long[span.start : span.stop]
        rows.append((request.answer_id, request.question, request.short, request.long, part, ""))
    write_sheet(path, pd.DataFrame(rows, columns=list(_COLUMNS), dtype=object))


def read_span_sheet(path: Path, requests: Sequence[SpanRequest]) -> dict[str, Span]:
    """Read the spans of human annotators.

    Args:
        path: The CSV file, with the columns answer_id and span.
        requests: The answers.

    Returns:
        The span by answer, for answers whose cell is not empty.

    Raises:
        SourceNotFoundError: If the file does not exist.
        ColumnNotFoundError: If a column is missing.
        DataError: If an answer is not in this sample or is marked twice, or a span is not part of
            its answer; the message contains the line number.
    """
    if not path.is_file():
        raise SourceNotFoundError(
            f"file {path} not found; write a sheet with `span_sheet`, mark the spans, and pass "
            "the sheet"
        )
    texts = {request.answer_id: request.long for request in requests}
    spans: dict[str, Span] = {}
    for number, row in delimited_rows(path, ","):
        for name in ("answer_id", "span"):
            if name not in row:
                raise ColumnNotFoundError(
                    f"{path} has no column {name}; it has {first_names(row) or 'none'}"
                )
        answer = str(unguard_cell(row["answer_id"]))
        marked = str(unguard_cell(row["span"])).strip()
        if not marked:
            continue
        where = f"{path}:{number}"
        if answer not in texts:
            raise DataError(
                f"{where}: {shown(answer)} is not an answer of this sample; use the same `seed`"
            )
        if answer in spans:
            raise DataError(f"{where}: {shown(answer)} is marked twice; keep one row per answer")
        span = _copied(texts[answer], marked, source="person")
        if span is None and marked != _NONE:
            raise DataError(
                f"{where}: {shown(marked)} is not part of the answer; copy it word for word, or "
                f"write {_NONE}"
            )
        spans[answer] = span or Span(start=0, stop=0, source="person")
    return spans
