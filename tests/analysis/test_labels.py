"""Errors for columns of labels."""

import pandas as pd
import pytest

from surface_consistency.analysis.labels import split_labels
from surface_consistency.errors import ColumnNotFoundError


def test_error_for_a_missing_column_of_labels_lists_the_columns_of_the_file():
    """Columns that the library adds are not listed, because files do not have them."""
    added = {f"{side}_{of}": [1] for side in ("first", "second") for of in ("condition", "correct")}
    frame = pd.DataFrame({"item": ["a"], **added, "topic": ["b"]})

    with pytest.raises(ColumnNotFoundError, match=r"'nix' is not .*, which are item, topic$"):
        split_labels(frame, ["nix"], None)


@pytest.mark.parametrize(("name", "other"), [("type", "types"), ("category", "categories")])
def test_stored_and_shown_names_of_a_column_of_labels_are_proposed(name, other):
    with pytest.raises(ColumnNotFoundError, match=rf"{name}.* \(did you mean '{other}'\?\)$"):
        split_labels(pd.DataFrame({"item": ["a"], other: ["b"], "task": ["c"]}), [name], None)
