import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.redirectqa_release import (
    CATEGORY_TYPES_PATH,
    RedirectQARow,
    check_category_types,
    hub_rows,
    read_category_types,
)
from surface_consistency.data.sources import SAMPLES
from surface_consistency.errors import DataError, SurfaceConsistencyWarning, UnscoredWarning
from surface_consistency.schemas import read_jsonl
from surface_consistency.taxonomy import CATEGORIES, TYPES

KNOWN = (
    *("triplet_id", "subject_id", "subject_surface", "subject_surface_category"),
    *("subject_wiki_title", "subject_redirect_wiki_title", "subject_pageviews", "subject_aliases"),
)


def dumped(questions):
    return [row.model_dump(mode="json") for row in hub_rows(questions)]


def test_hub_rows_can_be_read_as_the_same_data(rows):
    """Columns with known names are unchanged, and facts without answers stay without them."""
    for row in rows[:4]:
        row["possible_answers"] = None
    with pytest.warns(UnscoredWarning, match="4 questions"):
        data = load_redirectqa(rows)
    written = dumped(data.questions)
    with pytest.warns(UnscoredWarning, match="4 questions"):
        again = load_redirectqa(written)

    assert again.source.digest == data.source.digest
    assert [q.surface for q in again.questions] == [q.surface for q in data.questions]
    assert tuple(RedirectQARow.model_fields)[:8] == KNOWN
    for row, out in zip(rows, written, strict=True):
        assert {name: out[name] for name in KNOWN} == {name: row[name] for name in KNOWN}


def test_hub_rows_agree_with_the_bundled_sample():
    """The file of the sample contains the rows of its questions."""
    stored = read_jsonl(SAMPLES / "redirectqa" / "test.jsonl", RedirectQARow)

    assert list(hub_rows(load_redirectqa("sample").questions)) == list(stored)


def test_hub_rows_rejects_facts_without_a_number(rows):
    named = [row | {"triplet_id": f"fact {row['triplet_id']}"} for row in rows]

    with pytest.raises(DataError, match=r"fact 'fact 230395': .*integers for triplet_id"):
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
def test_read_category_types_does_not_require_a_header(table, flip, tmp_path):
    """Cells are recognised by their content, regardless of names and order of the columns."""
    path = write_table(tmp_path, table, header="x,y", flip=flip)

    assert read_category_types(path) == {
        label: category.type for label, category in CATEGORIES.items()
    }


def test_check_category_types_reports_the_differences(table, tmp_path, recwarn):
    """A folder without a table, or with the groups of the paper, gives no warning."""
    check_category_types(tmp_path)
    write_table(tmp_path, table | {"Redirects_from_books": "Typical_Errors"})
    check_category_types(tmp_path)
    assert not recwarn.list

    table["Redirects_from_surnames"] = "Typical_Errors"
    del table["Redirects_from_numerals"]
    write_table(tmp_path, table)
    with pytest.warns(SurfaceConsistencyWarning, match="differs from the taxonomy") as caught:
        check_category_types(tmp_path)

    message = str(caught[0].message)
    assert (
        "Redirects_from_surnames is typical_errors there and "
        "alternative_names_and_abbreviations here" in message
    )
    assert "Redirects_from_numerals is not in it" in message
