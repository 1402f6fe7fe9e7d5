import math

import numpy as np
import pandas as pd
import pytest

from surface_consistency.studies.lexical.quality import share_columns


def shares(values, facts):
    return share_columns("same", pd.Series(values, dtype=object), pd.Series(facts))


def test_texts_of_one_instance_tell_no_more_than_one_of_them():
    values = np.random.default_rng(1).random(40) < 0.3

    once = shares(values, range(40))
    thrice = shares(np.repeat(values, 3), np.repeat(range(40), 3))

    assert thrice == pytest.approx(once, abs=1e-12)
    assert once["same"] == values.mean()
    assert once["same_low"] < once["same"] < once["same_high"]


def test_what_is_not_known_is_left_out_and_a_share_of_nothing_is_not_defined():
    assert shares([True, None, False, True], list("abcd"))["same"] == pytest.approx(2 / 3)
    assert all(map(math.isnan, shares([None, None], list("ab")).values()))
