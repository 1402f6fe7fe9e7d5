import pytest

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.rows.columns import POPQA_COLUMNS, REDIRECTQA_COLUMNS, resolve_columns

# Columns that public code reads from release v1.0.0.
RELEASED = [
    "triplet_id",
    "subject_id",
    "subject_surface",
    "subject_surface_category",
    "subject_wiki_title",
    "subject_redirect_wiki_title",
    "subject_pageviews",
    "subject_aliases",
]


def test_released_columns_come_first():
    """The known columns of the release are the first candidates of eight fields."""
    first = {names[0] for names in REDIRECTQA_COLUMNS.values()}

    assert set(RELEASED) <= first
    assert len(resolve_columns(RELEASED, REDIRECTQA_COLUMNS)) == 8


def test_no_column_is_a_candidate_of_two_fields():
    """A column that is there can mean one thing only."""
    names = [name for names in REDIRECTQA_COLUMNS.values() for name in names]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("column", ["possibleAnswers", "Possible Answers", "POSSIBLE-ANSWERS"])
def test_resolve_columns_forgives_case_and_separators(column):
    """A column under another writing of its name is found."""
    assert resolve_columns([column], REDIRECTQA_COLUMNS) == {"answers": column}


def test_resolve_columns_prefers_exact_names():
    """An exact name goes before another writing; names that nobody knows are no candidates."""
    available = ["answer", "Question", "question", "possible_answers"]

    found = resolve_columns(available, REDIRECTQA_COLUMNS)

    assert found == {"answers": "possible_answers", "question": "question"}


@pytest.mark.parametrize(
    ("available", "message"),
    [
        (["Possible Answers", "possibleAnswers"], "are both writings of 'possible_answers'"),
        (["obj", "object_surface"], r"'obj' could both be 'object'; say .*columns=\{'object': 'ob"),
    ],
)
def test_resolve_columns_rejects_two_columns_of_one_field(available, message):
    """Where two columns could be it, the user says which."""
    with pytest.raises(ColumnNotFoundError, match=message):
        resolve_columns(available, REDIRECTQA_COLUMNS)

    found = resolve_columns(
        ["obj", "object_surface"], REDIRECTQA_COLUMNS, overrides={"object": "obj"}
    )
    assert found == {"object": "obj"}


def test_resolve_columns_takes_overrides_first():
    """What the user says is the column, even beside the usual one."""
    found = resolve_columns(
        ["question", "prompt"], REDIRECTQA_COLUMNS, overrides={"question": "prompt"}
    )

    assert found["question"] == "prompt"


def test_resolve_columns_rejects_a_missing_field():
    """The message tells the field, what was looked for, what was seen, and how to say it."""
    with pytest.raises(ColumnNotFoundError, match="no column for this field") as caught:
        resolve_columns(["questoin", "gold"], REDIRECTQA_COLUMNS, required=["question"])

    message = str(caught.value)
    assert "'question' under question." in message
    assert "Its columns are questoin, gold (close: questoin)" in message
    assert "columns={'question': 'NAME'}" in message


def test_resolve_columns_rejects_a_missing_group():
    """Any field of a group will do; a message names them all."""
    group = [("question", "relation")]

    assert resolve_columns(["prop"], REDIRECTQA_COLUMNS, required=group) == {"relation": "prop"}
    with pytest.raises(
        ColumnNotFoundError, match=r"any of these fields: 'question' under .*; 'rel"
    ):
        resolve_columns(["gold"], REDIRECTQA_COLUMNS, required=group)


def test_resolve_columns_rejects_a_source_without_columns():
    """No columns at all is told as such."""
    with pytest.raises(ColumnNotFoundError, match=r"Its columns are \(none\)"):
        resolve_columns([], POPQA_COLUMNS, required=["subj"])


def test_resolve_columns_rejects_an_override_of_an_unknown_field():
    """A field that is not declared would be ignored, so it is refused."""
    with pytest.raises(ColumnNotFoundError, match=r"no field 'questions' \(close: question\)"):
        resolve_columns(["q"], REDIRECTQA_COLUMNS, overrides={"questions": "q"})


def test_resolve_columns_rejects_an_override_with_an_absent_column():
    """A column that is not there is named beside those that are."""
    with pytest.raises(
        ColumnNotFoundError, match=r"no column 'promt' \(close: prompt\); its columns are prompt, q"
    ):
        resolve_columns(["prompt", "q"], REDIRECTQA_COLUMNS, overrides={"question": "promt"})
