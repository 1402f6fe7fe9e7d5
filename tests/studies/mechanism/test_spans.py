"""Spans of a fact in a long answer: found by words, copied by an LLM judge, or marked by hand."""

import pandas as pd
import pytest

from surface_consistency.engine.judging.judges import LLMJudge
from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.models import FakeRunner
from surface_consistency.studies.mechanism.spans import (
    Span,
    SpanRequest,
    align_span,
    judged_spans,
    read_span_sheet,
    whole_span,
    write_span_sheet,
)

QUESTIONS = (
    "When did the First Punic War occur?",
    "Which two powers fought in the Punic Wars?",
    "Who led the Carthaginian army over the Alps?",
)
LONG = (
    "The First Punic War occurred from 264 to 241 BCE. Rome and Carthage were the two powers that "
    "fought. The Carthaginian army was led over the Alps by Hannibal Barca."
)


def request(short, question=QUESTIONS[0], long=LONG, **options):
    known = {"question": question, "questions": QUESTIONS, "topic": "The Punic Wars"}
    return SpanRequest(answer_id="a", short=short, long=long, **{**known, **options})


def cut(asked, span):
    return asked.long[span.start : span.stop]


@pytest.mark.parametrize(
    ("asked", "source", "part"),
    [
        # Word for word, whatever the case and the full stop.
        (request("264 to 241 bce."), "alignment", "264 to 241 BCE"),
        # Content words in another order, in the shortest passage that contains them.
        (request("Carthage and Rome", QUESTIONS[1]), "alignment", "Rome and Carthage"),
        # Half of the words are enough.
        (request("General Hannibal", QUESTIONS[2]), "alignment", "Hannibal"),
        # A contradiction has no common words: the clause that answers the question.
        (request("Scipio", QUESTIONS[2]), "answering part", LONG[LONG.index("The Carthaginian") :]),
        # The item of that number.
        (
            request("Julius", QUESTIONS[1], "1. 264 BCE\n2. Rome, Gaul\n3. Hannibal", slot=2),
            *("answering part", "Rome, Gaul"),
        ),
        # A script without spaces is found word for word.
        (request("東京", "", "日本の首都は東京です。", questions=()), "alignment", "東京"),
        # The questions are unknown.
        (request("in 241 BCE", "", questions=()), "alignment", "241 BCE"),
    ],
)
def test_alignment_finds_the_fact(asked, source, part):
    found = align_span(asked)

    assert (found.source, cut(asked, found)) == (source, part)


def test_alignment_stays_in_the_clause_of_its_question():
    # "Rome" occurs in two clauses; the one that answers the question is returned.
    long = "Rome was founded in 753 BCE. The capital of Italy is Rome."
    questions = ("When was the city founded?", "What is the capital of Italy?")
    asked = request("Rome", questions[1], long, questions=questions)

    assert align_span(asked).start == long.rindex("Rome")


def test_missing_fact_is_not_found():
    # One content word of three is not a match.
    assert not align_span(request("Japan fought China", "", questions=())).is_found
    found = align_span(request("Napoleon", "", "I do not know.", questions=()))

    assert found == Span(start=0, stop=0, source="not found")


def test_scored_part_is_the_span_without_alignment():
    assert whole_span(" Paris\nQ: next", "Paris") == Span(start=1, stop=6, source="whole")
    assert whole_span(" Paris. ", "paris") == Span(start=1, stop=7, source="whole")
    assert whole_span("  ", None).source == "not found"


def test_copies_of_an_llm_judge_must_occur_in_the_text(tmp_path):
    replies = {
        "one": "“Rome  and carthage”",
        "two": "NONE",
        "three": "Scipio did.",
        "four": "Hannibal Barca",
    }
    parts = {"long": LONG, "question": "Who?"}
    requests = [SpanRequest(answer_id=name, short=name, **parts) for name in replies]
    asked = []

    def answer(prompt):
        asked.append(prompt.id)
        return replies[prompt.id.removeprefix("span/")]

    judge = LLMJudge(FakeRunner(answer), tmp_path, model="copier", progress=False)
    found = judged_spans(requests, judge)
    again = judged_spans(requests, judge)

    parts = {name: (span.source, LONG[span.start : span.stop]) for name, span in found.items()}
    assert parts == {
        "one": ("judge", "Rome and Carthage"),
        "two": ("not found", ""),
        "three": ("not found", ""),
        "four": ("judge", "Hannibal Barca"),
    }
    assert again == found
    assert len(asked) == 4


def test_span_sheet_is_written_and_read(tmp_path):
    requests = [
        SpanRequest(answer_id=name, short="=264 BCE", long=LONG, question="When?")
        for name in ("a", "b", "c", "d")
    ]
    spans = {one.answer_id: align_span(one) for one in requests}
    sheet = tmp_path / "spans.csv"

    write_span_sheet(sheet, requests, spans)
    rows = pd.read_csv(sheet, keep_default_na=False)
    rows["span"] = ["from 264 to\n241 BCE.", "NONE", "", "Hannibal"]
    rows.to_csv(sheet, index=False)
    found = read_span_sheet(sheet, requests)

    assert rows["found"].tolist() == ["264 to 241 BCE"] * 4
    assert {name: LONG[one.start : one.stop] for name, one in found.items()} == {
        "a": "from 264 to 241 BCE.",
        "b": "",
        "d": "Hannibal",
    }
    assert {one.source for one in found.values()} == {"person"}
    with pytest.raises(DataError, match="exists and may contain labels or other work"):
        write_span_sheet(sheet, requests, spans)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("answer_id,part\na,x\n", ColumnNotFoundError, "no column span"),
        ("answer_id,span\nz,Rome\n", DataError, r":2: 'z' is not an answer of this sample"),
        ("answer_id,span\na,Rome\na,Rome\n", DataError, r":3: 'a' is marked twice"),
        ("answer_id,span\na,Athens\n", DataError, "'Athens' is not part of the answer"),
        (None, SourceNotFoundError, "write a sheet with `span_sheet`"),
    ],
)
def test_invalid_span_sheets_raise_an_error(tmp_path, content, error, message):
    sheet = tmp_path / "spans.csv"
    if content:
        sheet.write_text(content, encoding="utf-8")

    with pytest.raises(error, match=message):
        read_span_sheet(sheet, [request("x")])
