"""Repeats of prompts against all draws of their answers."""

import itertools

import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics.forms.repeats import repeats_by

RNG = np.random.default_rng(4)
ANSWERS = [RNG.integers(0, 2, size).tolist() for size in (1, 2, 5, 3, 5, 2, 4, 1)]


def test_each_prompt_has_the_same_weight_whatever_its_number_of_repeats():
    rows = [
        {"item": item, "repeat": repeat, "correct": correct}
        for item, answers in enumerate(ANSWERS)
        for repeat, correct in enumerate(answers)
    ]
    several = [answers for answers in ANSWERS if len(answers) > 1]
    pairs = [list(itertools.combinations(answers, 2)) for answers in several]

    (row,) = repeats_by(pd.DataFrame(rows)).to_dict("records")

    flips = np.mean([np.mean([one != other for one, other in each]) for each in pairs])
    assert row["test_retest_flip_rate"] == pytest.approx(flips)
    # The smallest number of repeats is 2, as prompts with one answer are excluded.
    assert row["pass_k"] == pytest.approx(np.mean([np.mean([*map(all, each)]) for each in pairs]))
    assert (row["k"], row["n_prompts"]) == (2, 6)
