import pytest

from surface_consistency.studies.redirectqa.data import load_redirectqa, load_sample
from surface_consistency.studies.redirectqa.question_table import QuestionTable
from surface_consistency.studies.redirectqa.questions import describe_data, pair_questions


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
    pairs, unpaired = pair_questions(data.questions)

    assert data.pairs == pairs
    assert data.unpaired == unpaired


def test_description_agrees_with_that_of_records(data):
    """One digest, whichever way it is made."""
    described = describe_data(data.questions, source=data.source.id, revision=None)

    assert data.source == described


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
