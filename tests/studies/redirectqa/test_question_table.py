import hashlib
import json

import pytest

from surface_consistency.studies.redirectqa.data import load_redirectqa, load_sample
from surface_consistency.studies.redirectqa.question_table import QuestionTable


@pytest.fixture(params=["rows", "sample"])
def data(request, rows):
    """A few rows, and the bundled sample."""
    return load_sample() if request.param == "sample" else load_redirectqa(rows)


def test_records_make_the_table_that_they_are_of(data):
    """Records and columns say the same."""
    again = QuestionTable.from_records(data.questions)

    assert again == data.table
    assert tuple(again.records()) == data.questions
    assert len(again) == len(data.questions)


def test_pairs_agree_with_those_of_records(data):
    """Partners are found by fact and template."""
    canonical = {(q.triple.id, q.template): q for q in data.questions if q.surface.is_canonical}
    redirects = [q for q in data.questions if not q.surface.is_canonical]
    partners = [canonical.get((q.triple.id, q.template)) for q in redirects]

    assert [(pair.canonical, pair.redirect) for pair in data.pairs] == [
        (first, second) for first, second in zip(partners, redirects, strict=True) if first
    ]
    assert data.unpaired == tuple(
        second for first, second in zip(partners, redirects, strict=True) if not first
    )


def test_description_agrees_with_that_of_records(data):
    """The digest is of id, question and answers, by id."""
    lines = [
        json.dumps([q.id, q.question, q.triple.answers]) + "\n"
        for q in sorted(data.questions, key=lambda q: q.id)
    ]

    assert data.source.digest == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert data.source.n_questions == len(lines)


def test_questions_of_one_fact_are_paired_whoever_holds_the_fact(data):
    """Records of one fact need not share the object that says it."""
    apart = [
        q.model_copy(update={"triple": q.triple.model_copy(deep=True)}) for q in data.questions
    ]

    table = QuestionTable.from_records(apart)

    assert [list(part) for part in table.pair()] == [list(part) for part in data.table.pair()]
    assert len(table.pair()[0]) > 0


def test_take_keeps_the_facts_of_what_is_kept(data):
    """The part is that of the records, in the order asked for."""
    rows = [5, 0, 3]

    part = data.table.take(rows)

    assert part.records() == [data.questions[row] for row in rows]
    assert part.facts.num_rows == len({data.questions[row].triple.id for row in rows})


def test_column_reads_facts_for_questions(data):
    """A column of the facts has one value a question."""
    answers = data.table.column("answers").to_pylist()

    assert [tuple(item) for item in answers] == [q.triple.answers for q in data.questions]


def test_a_table_equals_no_other_thing(data):
    """Comparison is by value, with tables alone."""
    assert data.table != data.questions
    assert data.table != data.table.take([0])
