import pytest

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.rows.columns import REDIRECTQA_COLUMNS, resolve_columns
from tests.refusals import refusals

# Columns of release v1.0.0 that public code reads.
RELEASED = [
    *("triplet_id", "subject_id", "subject_surface", "subject_surface_category"),
    *("subject_wiki_title", "subject_redirect_wiki_title", "subject_pageviews", "subject_aliases"),
]


def test_released_columns_are_first_candidates_of_one_field_each():
    """The known columns of the release are the first candidates of eight fields."""
    assert set(RELEASED) <= {names[0] for names in REDIRECTQA_COLUMNS.values()}
    assert len(resolve_columns(RELEASED, REDIRECTQA_COLUMNS)) == 8
    names = [name for names in REDIRECTQA_COLUMNS.values() for name in names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("available", "options", "found"),
    [
        # A column whose name is spelled differently is found.
        *(
            ([column], {}, {"references": column})
            for column in ("possibleAnswers", "Possible Answers", "POSSIBLE-ANSWERS")
        ),
        # An exact name has precedence over another spelling; unknown names are not candidates.
        (
            ["answer", "Question", "question", "possible_answers"],
            {},
            {"references": "possible_answers", "question": "question"},
        ),
        # An override has precedence, also if two columns could be the field.
        (["obj", "object_surface"], {"overrides": {"object": "obj"}}, {"object": "obj"}),
        (["question", "prompt"], {"overrides": {"question": "prompt"}}, {"question": "prompt"}),
        # Any field of a group is sufficient.
        (["prop"], {"required": [("question", "relation")]}, {"relation": "prop"}),
    ],
)
def test_resolve_columns_returns_the_column_of_each_field(available, options, found):
    assert resolve_columns(available, REDIRECTQA_COLUMNS, **options) == found


test_resolve_columns_rejects = refusals(
    lambda available, options: resolve_columns(available, REDIRECTQA_COLUMNS, **options),
    (["Possible Answers", "possibleAnswers"], {}, "are both spellings of 'possible_answers'"),
    (
        ["obj", "object_surface"],
        {},
        r"'obj' could both be 'object'; name .*columns=\{'object': 'ob",
    ),
    (
        ["questoin", "gold"],
        {"required": ["question"]},
        r"no column for this field: 'question' under question\. Its columns are questoin, gold "
        r"\(close: questoin\).*columns=\{'question': 'NAME'\}",
    ),
    (
        ["gold"],
        {"required": [("question", "relation")]},
        r"any of these fields: 'question' under .*; 'rel",
    ),
    ([], {"required": ["relation"]}, r"Its columns are \(none\)"),
    (["q"], {"overrides": {"questions": "q"}}, r"unknown field 'questions' \(close: question\)"),
    (
        ["prompt", "q"],
        {"overrides": {"question": "promt"}},
        r"no column 'promt' \(close: prompt\); its columns are prompt, q",
    ),
    error=ColumnNotFoundError,
)
