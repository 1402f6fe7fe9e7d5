import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import popularity_shift
from surface_consistency.metrics.popularity.perturbation import relative_change
from tests.metrics.harness import golden_rows
from tests.refusals import refusals

CONTRADICTORY = "Anaphor Agr. accuracy"


def test_relative_change_agrees_with_the_published_tables(data_files):
    """Tables 1 and 2 of Lexical Popularity: all but one column follow from the printed scores."""
    cells = {}
    for row in golden_rows(data_files, "lexical_tables1_2_perturbation.csv"):
        key = (row["model"], row["metric"])
        cells.setdefault(key, {})[row["configuration"]] = float(row["value"])

    checked = 0
    for (_, metric), cell in cells.items():
        change = 100 * relative_change(cell["original"], cell["perturbed"])
        if metric == CONTRADICTORY:
            # The changes printed for anaphor agreement are 4 to 5 points smaller than its scores.
            assert cell["delta_percent"] - change > 3.5
            continue
        # Half a unit of the last digit, and that of both scores, relative to the original.
        slack = 0.005 + 100 * 0.01 / cell["original"]
        if metric.endswith("perplexity"):
            slack = 0.005 + 100 * 0.02 / cell["original"] * cell["perturbed"] / cell["original"]
        assert change == pytest.approx(cell["delta_percent"], abs=slack)
        checked += 1
    assert checked == 4 * 8


def test_relative_change_of_a_text_names_the_argument():
    with pytest.raises(TypeError, match="original must be a number; got '61'"):
        relative_change("61", 45.0)
    with pytest.raises(TypeError, match="perturbed must be a number; got None"):
        relative_change(61.0, None)


def test_relative_change_of_negative_scores_and_of_zero():
    """A log-likelihood that decreases from -2 to -3 has a positive change."""
    assert relative_change(-2.0, -3.0) == 0.5
    assert relative_change(-2.0, -1.0) == -0.5
    with pytest.warns(UndefinedMetricWarning, match="relative to an original score of 0"):
        assert math.isnan(relative_change(0.0, 0.5))


@settings(deadline=None, max_examples=60)
@given(
    changes=st.one_of(
        st.lists(st.sampled_from([-3, -2, -1, 0, 1, 2, 3]), min_size=1, max_size=9),
        st.lists(st.integers(-1000, 1000), min_size=2, max_size=9, unique_by=abs),
    ).filter(any)
)
def test_popularity_shift_agrees_with_all_choices_of_signs(changes):
    """p is exact, with or without ties: the proportion of sign patterns at least as extreme."""
    changed = [change for change in changes if change]
    ranks = [
        sum(abs(b) < abs(a) for b in changed) + (1 + sum(abs(b) == abs(a) for b in changed)) / 2
        for a in changed
    ]
    rising = sum(r for r, change in zip(ranks, changed, strict=True) if change > 0)
    signs = itertools.product([0, 1], repeat=len(changed))
    sums = np.array([sum(itertools.compress(ranks, chosen)) for chosen in signs])
    before = np.full(len(changes), 5.0)

    result = popularity_shift(before, before + changes)

    expected = min(1.0, 2 * min(np.mean(sums <= rising), np.mean(sums >= rising)))
    assert result["p_value"] == pytest.approx(expected, abs=1e-12)
    falling = sum(ranks) - rising
    assert result["statistic"] == min(rising, falling)
    assert result["rank_biserial"] == pytest.approx((rising - falling) / sum(ranks))
    assert (result["n"], result["n_unchanged"]) == (len(changes), len(changes) - len(changed))
    assert result["original_mean"] == 5.0
    assert result["perturbed_mean"] == pytest.approx(5.0 + np.mean(changes))
    swapped = popularity_shift(before + changes, before)
    assert swapped["rank_biserial"] == pytest.approx(-result["rank_biserial"], abs=1e-12)
    assert swapped["p_value"] == pytest.approx(result["p_value"], rel=1e-9)


# Hollander and Wolfe 1973, p. 29: a depression scale before and after therapy, the example of R's
# wilcox.test(x, y, paired = TRUE, alternative = "greater"): V = 40, p-value = 0.01953 on one side.
def test_popularity_shift_agrees_with_r():
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]

    result = popularity_shift(before, after)

    assert result["p_value"] == pytest.approx(2 * 0.01953, abs=1e-5)
    assert result["statistic"] == 45 - 40


@settings(deadline=None)
@given(changes=st.lists(st.integers(-4, 4).filter(bool), min_size=51, max_size=80))
def test_popularity_shift_agrees_with_scipy_in_large_samples(changes):
    """Above 50 changed instances p is the normal approximation."""
    result = popularity_shift(np.zeros(len(changes)), changes)

    assert result["p_value"] == pytest.approx(stats.wilcoxon(changes).pvalue, rel=1e-9)


def test_popularity_without_a_change_has_no_effect_size():
    with pytest.warns(UndefinedMetricWarning, match="no instance changed"):
        result = popularity_shift([3.0, 4.0], [3.0, 4.0])

    assert (result["p_value"], result["statistic"]) == (1.0, 0.0)
    assert math.isnan(result["rank_biserial"])


def test_missing_scores_are_excluded_and_counted():
    with pytest.warns(UnscoredWarning, match="2 of 5 instances lack a score"):
        result = popularity_shift(
            [1.0, math.nan, 3.0, 7.0, 2.0], [2.0, 2.0, 1.0, math.nan, 5.0], missing="drop"
        )

    assert (result["n"], result["n_missing"]) == (3, 2)
    assert result["original_mean"] == 2.0


test_bad_input_is_rejected = refusals(
    lambda function, arguments, options: function(*arguments, **options),
    (relative_change, (math.nan, 0.5), {}, "original must be finite"),
    (relative_change, (0.5, math.inf), {}, "perturbed must be finite"),
    (popularity_shift, ([1.0], [1.0, 2.0]), {}, "must have equal lengths; got 1 and 2"),
    (popularity_shift, ([1.0, math.nan], [1, 2]), {}, r"original\[1\] is missing .*='drop'"),
    (popularity_shift, ([math.nan], [1.0]), {"missing": "drop"}, "no instance has both"),
    (popularity_shift, ([1.0], [math.inf]), {}, r"perturbed\[0\] is inf: values must be fin"),
    (popularity_shift, ([1.0], [2.0]), {"missing": "skip"}, "missing must be"),
)
