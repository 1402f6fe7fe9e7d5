import pytest

from surface_consistency.data.category_types import (
    CATEGORY_TYPES_PATH,
    check_category_types,
    read_category_types,
)
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.taxonomy import CATEGORIES, TYPES


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
