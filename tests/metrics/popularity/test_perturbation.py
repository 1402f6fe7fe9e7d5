import csv
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import popularity_shift
from surface_consistency.metrics.popularity.perturbation import relative_change

CONTRADICTORY = "Anaphor Agr. accuracy"


@pytest.fixture(scope="module")
def published(data_files):
    """Tables 1 and 2 of Lexical Popularity: original, perturbed and change, by model and metric."""
    cells = {}
    with (data_files / "golden" / "lexical_tables1_2_perturbation.csv").open() as lines:
        for row in csv.DictReader(lines):
            key = (row["model"], row["metric"])
            cells.setdefault(key, {})[row["configuration"]] = float(row["value"])
    return cells


def test_relative_change_agrees_with_the_published_tables(published):
    """All printed changes but those of one column follow from the printed scores."""
    checked = 0
    for (_, metric), cell in published.items():
        if metric != CONTRADICTORY:
            change = 100 * relative_change(cell["original"], cell["perturbed"])
            # Half a unit of the last digit, and that of both scores, relative to the original.
            slack = 0.005 + 100 * 0.01 / cell["original"]
            if metric.endswith("perplexity"):
                slack = 0.005 + 100 * 0.02 / cell["original"] * cell["perturbed"] / cell["original"]
            assert change == pytest.approx(cell["delta_percent"], abs=slack)
            checked += 1

    assert checked == 4 * 8


def test_one_published_column_contradicts_itself(published):
    """The changes printed for anaphor agreement are 4 to 5 points smaller than its scores say."""
    for (_, metric), cell in published.items():
        if metric == CONTRADICTORY:
            change = 100 * relative_change(cell["original"], cell["perturbed"])
            assert cell["delta_percent"] - change > 3.5


def test_relative_change_of_negative_scores_turns_its_sign():
    """A log-likelihood that falls from -2 to -3 has a positive change."""
    assert relative_change(-2.0, -3.0) == 0.5
    assert relative_change(-2.0, -1.0) == -0.5


def test_relative_change_from_zero_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="relative to an original of 0"):
        assert math.isnan(relative_change(0.0, 0.5))


@pytest.mark.parametrize("scores", [(math.nan, 0.5), (0.5, math.inf)])
def test_relative_change_rejects_what_is_not_finite(scores):
    with pytest.raises(ValueError, match="must be finite"):
        relative_change(*scores)


def enumerated_p(changes):
    """Two-sided p over all ways to give signs to the ranks of distinct sizes."""
    ranks = np.argsort(np.argsort(np.abs(changes))) + 1.0
    observed = min(ranks[changes > 0].sum(), ranks[changes < 0].sum())
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    return min(1.0, 2 * np.mean([value <= observed for value in sums]))


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 1000), min_size=2, max_size=9, unique=True),
    data=st.data(),
)
def test_popularity_shift_agrees_with_enumeration(sizes, data):
    """Without ties p is exact: the share of all sign patterns as extreme as the observed one."""
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(sizes), max_size=len(sizes)))
    changes = np.asarray(sizes) * np.asarray(signs)

    result = popularity_shift(np.full(len(sizes), 5.0), 5.0 + changes)

    assert result["p_value"] == pytest.approx(enumerated_p(changes), abs=1e-12)
    ranks = np.argsort(np.argsort(np.abs(changes))) + 1
    rising, falling = ranks[changes > 0].sum(), ranks[changes < 0].sum()
    assert result["statistic"] == min(rising, falling)
    assert result["rank_biserial"] == pytest.approx((rising - falling) / (rising + falling))


# Hollander and Wolfe 1973, p. 29: a depression scale before and after therapy, the example of R's
# wilcox.test(x, y, paired = TRUE, alternative = "greater"): V = 40, p-value = 0.01953.
def test_popularity_shift_agrees_with_r():
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]

    result = popularity_shift(before, after)

    assert result["p_value"] == pytest.approx(2 * 0.01953, abs=1e-5)
    assert result["statistic"] == 45 - 40


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=2, max_size=30
    ).filter(lambda rows: any(a != b for a, b in rows))
)
def test_swapped_versions_turn_the_effect(rows):
    before, after = zip(*rows, strict=True)

    result, swapped = popularity_shift(before, after), popularity_shift(after, before)

    assert swapped["rank_biserial"] == pytest.approx(-result["rank_biserial"], abs=1e-12)
    assert swapped["p_value"] == pytest.approx(result["p_value"], rel=1e-9)
    assert 0 <= result["p_value"] <= 1
    assert -1 <= result["rank_biserial"] <= 1
    assert result["n_unchanged"] == sum(a == b for a, b in rows)


@settings(deadline=None)
@given(
    changes=st.lists(st.integers(-4, 4).filter(bool), min_size=51, max_size=80),
)
def test_popularity_shift_agrees_with_scipy_in_large_samples(changes):
    """With ties, or above 50 instances, p is the normal approximation."""
    stats = pytest.importorskip("scipy.stats")

    result = popularity_shift(np.zeros(len(changes)), changes)

    expected = stats.wilcoxon(changes).pvalue
    assert result["p_value"] == pytest.approx(expected, rel=1e-9)


def test_unchanged_instances_carry_no_rank():
    with_ties = popularity_shift([5, 5, 8, 9, 4], [5, 5, 3, 2, 6])
    without = popularity_shift([8, 9, 4], [3, 2, 6])

    assert with_ties["p_value"] == without["p_value"]
    assert with_ties["statistic"] == without["statistic"]
    assert (with_ties["n"], with_ties["n_unchanged"]) == (5, 2)
    assert with_ties["original_mean"] == 6.2


def test_no_change_has_no_effect_size():
    with pytest.warns(UndefinedMetricWarning, match="no instance changed"):
        result = popularity_shift([3.0, 4.0], [3.0, 4.0])

    assert (result["p_value"], result["statistic"]) == (1.0, 0.0)
    assert math.isnan(result["rank_biserial"])


def test_missing_scores_are_left_out_and_counted():
    with pytest.warns(UnscoredWarning, match="2 of 5 instances lack a score"):
        result = popularity_shift(
            [1.0, math.nan, 3.0, 7.0, 2.0], [2.0, 2.0, 1.0, math.nan, 5.0], missing="drop"
        )

    assert (result["n"], result["n_missing"]) == (3, 2)
    assert result["original_mean"] == 2.0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0], [1.0, 2.0]), {}, "original and perturbed must have equal lengths; got 1 and 2"),
        (([1.0, math.nan], [1.0, 2.0]), {}, r"original\[1\] is missing .*missing='drop'"),
        (([math.nan], [1.0]), {"missing": "drop"}, "no instance has both"),
        (([1.0], [math.inf]), {}, r"perturbed\[0\] is inf: values must be finite"),
        (([1.0], [2.0]), {"missing": "skip"}, "missing must be"),
    ],
)
def test_popularity_shift_rejects_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        popularity_shift(*arguments, **options)


@settings(deadline=None)
@given(changes=st.lists(st.sampled_from([-3, -2, -1, 1, 2, 3]), min_size=1, max_size=9))
def test_shift_with_ties_agrees_with_all_choices_of_signs(changes):
    ranks = [
        sum(abs(b) < abs(a) for b in changes) + (1 + sum(abs(b) == abs(a) for b in changes)) / 2
        for a in changes
    ]
    rising = sum(r for r, change in zip(ranks, changes, strict=True) if change > 0)
    sums = [
        sum(itertools.compress(ranks, signs))
        for signs in itertools.product([0, 1], repeat=len(changes))
    ]
    below = sum(value <= rising for value in sums) / len(sums)
    above = sum(value >= rising for value in sums) / len(sums)

    p_value = popularity_shift([0.0] * len(changes), changes)["p_value"]

    assert p_value == pytest.approx(min(1.0, 2 * min(below, above)))


def test_shift_of_five_equal_changes_is_the_least_possible():
    assert popularity_shift([0] * 5, [1] * 5)["p_value"] == 0.0625
