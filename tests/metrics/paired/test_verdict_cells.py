import math

import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import parse_verdict

RIGHT = [True, 1, 1.0, "1", "1.0", "true", "True", "TRUE", " true ", np.bool_(True), np.int64(1)]
WRONG = [False, 0, 0.0, "0", "0.0", "false", "False", "FALSE", np.bool_(False), np.float32(0)]
MISSING = [None, math.nan, pd.NA, pd.NaT, "", "  ", np.float64("nan")]


@pytest.mark.parametrize(
    ("cells", "verdict"), [(RIGHT, True), (WRONG, False), (MISSING, None)], ids=["1", "0", "none"]
)
def test_verdicts_are_read_in_every_common_form(cells, verdict):
    assert [parse_verdict(cell) for cell in cells] == [verdict] * len(cells)


@pytest.mark.parametrize("cell", ["NA", "null", "nan", "None", "yes", "2", 2, 0.5, -1, [1], b"1"])
def test_anything_else_is_no_verdict(cell):
    """A cell that was meant to be empty must be empty, and a score is not a verdict."""
    with pytest.raises(ValueError, match="is no verdict: give 1 or 0, true or false"):
        parse_verdict(cell)
