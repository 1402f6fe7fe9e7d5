import pytest

from surface_consistency.data.hub_rows import RedirectQARow, hub_rows
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.sample import SAMPLE_PATH, load_sample
from surface_consistency.errors import DataError, UnscoredWarning
from surface_consistency.schemas import read_jsonl


def dumped(questions):
    return [row.model_dump(mode="json") for row in hub_rows(questions)]


def test_hub_rows_read_back_as_the_same_data(rows):
    """Rows written in the release's layout are the questions that they came from."""
    data = load_redirectqa(rows)

    again = load_redirectqa(dumped(data.questions))

    assert again.source.digest == data.source.digest
    assert [question.surface for question in again.questions] == [
        question.surface for question in data.questions
    ]


def test_hub_rows_agree_with_the_released_columns(rows):
    """What the release calls by known names comes out as it went in."""
    known = [
        "triplet_id",
        "subject_id",
        "subject_surface",
        "subject_surface_category",
        "subject_wiki_title",
        "subject_redirect_wiki_title",
        "subject_pageviews",
        "subject_aliases",
    ]

    assert list(RedirectQARow.model_fields)[:8] == known
    for row, written in zip(rows, dumped(load_redirectqa(rows).questions), strict=True):
        assert {name: written[name] for name in known} == {name: row[name] for name in known}


def test_hub_rows_agree_with_the_bundled_sample():
    """The sample's own file holds the rows that its questions give."""
    stored = read_jsonl(SAMPLE_PATH / "test.jsonl", RedirectQARow)

    assert list(hub_rows(load_sample().questions)) == list(stored)


def test_hub_rows_keep_facts_without_answers(rows):
    """A fact without accepted answers has none after it was written and read."""
    for row in rows[:4]:
        row["possible_answers"] = None
    with pytest.warns(UnscoredWarning, match="4 questions"):
        data = load_redirectqa(rows)

    with pytest.warns(UnscoredWarning, match="4 questions"):
        again = load_redirectqa(dumped(data.questions))

    assert again.source.digest == data.source.digest


def test_hub_rows_rejects_facts_without_number(rows):
    """The layout numbers its facts."""
    named = [row | {"triplet_id": f"fact {row['triplet_id']}"} for row in rows]

    with pytest.raises(
        DataError, match=r"fact 'fact 230395': .*whole numbers for triplet_id; numb"
    ):
        dumped(load_redirectqa(named).questions)
