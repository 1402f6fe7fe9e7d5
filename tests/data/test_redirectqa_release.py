import pytest

from surface_consistency.data.redirectqa import SAMPLE_PATH, load_redirectqa, load_sample
from surface_consistency.data.redirectqa_release import (
    CATEGORY_TYPES_PATH,
    RedirectQARow,
    check_category_types,
    hub_rows,
    read_category_types,
)
from surface_consistency.errors import DataError, SurfaceConsistencyWarning, UnscoredWarning
from surface_consistency.schemas import read_jsonl
from surface_consistency.taxonomy import CATEGORIES, TYPES


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


def write_table(folder, table, *, header="redirect_category,redirect_type", flip=False):
    path = folder / CATEGORY_TYPES_PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [(kind, label) if flip else (label, kind) for label, kind in table.items()]
    path.write_text(
        "\n".join([header, *(",".join(pair) for pair in cells)]) + "\n", encoding="utf-8"
    )
    return path


@pytest.fixture
def table():
    """The taxonomy in the spelling of the hub's file."""
    return {label: TYPES[category.type].label for label, category in CATEGORIES.items()}


@pytest.mark.parametrize("flip", [False, True])
def test_read_category_types_needs_no_header(table, flip, tmp_path):
    """Cells are known by their content, whatever the columns are called and their order."""
    path = write_table(tmp_path, table, header="x,y", flip=flip)

    assert read_category_types(path) == {
        label: category.type for label, category in CATEGORIES.items()
    }


def test_check_category_types_is_silent_when_they_agree(table, tmp_path, recwarn):
    """A folder that groups as the paper does, or that has no table, is passed over."""
    check_category_types(tmp_path)
    write_table(tmp_path, table | {"Redirects_from_books": "Typical_Errors"})
    check_category_types(tmp_path)

    assert not recwarn.list


def test_check_category_types_names_the_differences(table, tmp_path):
    """A category under another type and one that is missing are both told."""
    table["Redirects_from_surnames"] = "Typical_Errors"
    del table["Redirects_from_numerals"]
    write_table(tmp_path, table)

    with pytest.warns(
        SurfaceConsistencyWarning, match="differs from the taxonomy of the paper"
    ) as caught:
        check_category_types(tmp_path)

    message = str(caught[0].message)
    assert (
        "Redirects_from_surnames is typical_errors there and "
        "alternative_names_and_abbreviations here" in message
    )
    assert "Redirects_from_numerals is not in it" in message
