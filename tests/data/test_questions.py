import hashlib
import json
import random

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.data.questions import (
    QUESTION_COLUMNS,
    describe_questions,
    question_frame,
    question_id,
    question_records,
)
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.taxonomy import CANONICAL_LABEL

text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@pytest.fixture(params=["rows", "sample"])
def data(request, rows):
    """A few rows, and the bundled sample."""
    return load_redirectqa("sample") if request.param == "sample" else load_redirectqa(rows)


def described(records):
    """Describe records."""
    return describe_questions(question_frame(records), source="a", revision=None)


@given(st.lists(st.tuples(text, st.none() | text), unique=True))
def test_question_ids_are_unique(names):
    """Names of one fact have different ids, also a redirect with the canonical text."""
    names = [*names, ("Cat Stevens", CANONICAL_LABEL), ("Cat Stevens", None)]

    assert len({question_id("1", "original", *name) for name in names}) == len(set(names))


def test_question_id_does_not_depend_on_other_columns(rows):
    """Categories, page views and order of rows do not change the id of a question."""
    before = {question.id for question in load_redirectqa(rows).questions}
    for row in rows:
        row["subject_pageviews"] = None
        if row["subject_redirect_wiki_title"]:
            row["subject_surface_category"] = ["Redirects_from_surnames"]

    assert {question.id for question in load_redirectqa(rows[::-1]).questions} == before


def test_records_and_frame_are_converted_to_each_other(data):
    """Records and rows contain the same values of the same types."""
    again = question_frame(data.questions)

    pd.testing.assert_frame_equal(again, data.rows)
    assert tuple(question_records(again)) == data.questions
    assert tuple(again.columns) == QUESTION_COLUMNS


def test_types_of_columns_do_not_depend_on_missing_values(data):
    """A column without values has the same type as one with values."""
    incomplete = data.rows.assign(subject_id=None, subject_pageviews=None, redirect_title=None)

    again = question_frame(question_records(incomplete))

    pd.testing.assert_series_equal(again.dtypes, data.rows.dtypes)


def test_pairs_agree_with_a_naive_loop(data):
    """Each redirect question is paired with the canonical one of its fact and template."""
    questions = data.questions
    naive = [
        (first.id, second.id)
        for second in questions
        for first in questions
        if first.surface.is_canonical
        and not second.surface.is_canonical
        and first.triple.id == second.triple.id
        and first.template == second.template
    ]

    pairs = data.pairs

    assert list(zip(pairs["canonical_id"], pairs["id"], strict=True)) == naive
    assert len(naive) > 0
    assert data.unpaired.empty


def test_description_agrees_with_that_of_records(data):
    """The digest is of id, question and answers, by id."""
    lines = [
        json.dumps([q.id, q.question, q.triple.answers]) + "\n"
        for q in sorted(data.questions, key=lambda q: q.id)
    ]

    assert data.source.digest == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert data.source.n_questions == len(lines)


def test_digest_depends_on_questions_and_answers_but_not_on_their_order(rows):
    """The digest changes only with questions, answers and the number of rows."""
    questions = load_redirectqa(rows).questions
    source = described(questions)
    shuffled = list(questions)
    random.Random(0).shuffle(shuffled)
    reworded = [questions[0].model_copy(update={"question": "Who?"}), *questions[1:]]
    paris = [
        q.model_copy(update={"triple": q.triple.model_copy(update={"answers": ("Paris",)})})
        if q.triple.id == questions[0].triple.id
        else q
        for q in questions
    ]

    assert described(shuffled) == source
    assert source.n_questions == 10
    digests = {described(changed).digest for changed in (questions, questions[1:], reworded, paris)}
    assert len(digests) == 4
