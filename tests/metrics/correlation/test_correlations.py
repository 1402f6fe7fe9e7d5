import csv
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    Intervals,
    correlation,
    correlation_by,
    correlation_interval,
    partial_correlation,
    partial_correlation_from_matrix,
)

METHODS = ["pearson", "spearman"]
rows = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-4, 4)), min_size=5, max_size=40
).filter(lambda pairs: all(len({pair[k] for pair in pairs}) > 1 for k in (0, 1)))


def row_of(x, y, controls=None, *, level=0.95, **options):
    """The one row of `correlation_by` of these vectors."""
    held = np.empty((len(x), 0)) if controls is None else np.asarray(controls)
    held = held.reshape(len(x), -1)
    names = [f"c{k}" for k in range(held.shape[1])]
    frame = pd.DataFrame(dict(zip(names, held.T, strict=True)) | {"x": x, "y": y})
    options |= {"intervals": Intervals(level=level)}
    return correlation_by(frame, x="x", y="y", controls=names, **options).iloc[0]


def correlated(seed, n, slope=0.5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, slope * x + rng.normal(size=n)


@pytest.mark.parametrize("n", [4, 30, 4284])
def test_pearson_agrees_with_scipy(n):
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(n, n)
    theirs = stats.pearsonr(x, y)
    t = stats.t.ppf(0.95, n - 2)
    centre, half = np.arctanh(theirs.statistic), np.arctanh(t / np.sqrt(n - 2 + t * t))

    row = row_of(x, y, level=0.9)

    assert row["coefficient"] == correlation(x, y) == pytest.approx(theirs.statistic, rel=1e-12)
    assert row["p_value"] == pytest.approx(theirs.pvalue, rel=1e-9)
    bounds = (row["coefficient_low"], row["coefficient_high"])
    assert bounds == pytest.approx((np.tanh(centre - half), np.tanh(centre + half)))
    if n > 4:
        # Fisher's own interval is nearly the same.
        fisher = theirs.confidence_interval(0.9)
        assert bounds == pytest.approx((fisher.low, fisher.high), abs=0.002)
    counts = ["n", "n_clusters", "n_controls", "n_missing", "n_undefined"]
    assert row[counts].tolist() == [n, n, 0, 0, 0]


@pytest.mark.parametrize("n", [5, 30, 4284])
def test_spearman_with_ties_agrees_with_scipy(n):
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(n, n)
    y = np.round(y)
    theirs = stats.spearmanr(x, y)

    row = row_of(x, y, method="spearman")

    assert row["coefficient"] == pytest.approx(theirs.statistic, rel=1e-12)
    assert row["p_value"] == pytest.approx(theirs.pvalue, rel=1e-9)


def test_far_tail_of_the_p_value_agrees_with_scipy():
    """A p-value far below rounding of 1 is not 0."""
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(0, 500, slope=2.0)

    p_value = row_of(x, y)["p_value"]

    assert 0.0 < p_value < 1e-100
    assert p_value == pytest.approx(stats.pearsonr(x, y).pvalue, rel=1e-6)


@pytest.mark.parametrize("n", [3, 12, 200])
def test_interval_of_ranks_is_stretched_as_by_bonett_and_wright_at_the_bound(n):
    """The variance of atanh(r) is 1 + rho^2 / 2 times that of values."""
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(n, n, slope=0.2)
    row = row_of(x, y, method="spearman")
    t = stats.t.ppf(0.975, n - 2)
    half = math.atanh(t / math.sqrt(n - 2 + t * t))

    for bound in (row["coefficient_low"], row["coefficient_high"]):
        steps = abs(math.atanh(bound) - math.atanh(row["coefficient"])) / half
        assert steps == pytest.approx(math.sqrt(1 + bound**2 / 2), rel=1e-6)


@given(
    coefficient=st.floats(-0.999, 0.999),
    df=st.integers(1, 500),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
    method=st.sampled_from(METHODS),
)
@settings(deadline=None)
def test_interval_excludes_0_exactly_if_the_test_rejects(coefficient, df, level, method):
    low, high, p_value = correlation_interval(
        coefficient, df=df, method=method, confidence_level=level
    )

    assume(abs(p_value - (1 - level)) > 1e-9)
    assert (p_value < 1 - level) == (low > 0 or high < 0)
    assert -1 <= low <= coefficient <= high <= 1


def test_interval_of_ranks_covers_where_fishers_does_not():
    """Of 2,000 samples of 40 with a strong correlation, 93 to 97 % of the intervals hold it."""
    rng = np.random.default_rng(3)
    rho = 0.9
    truth = 6 / math.pi * math.asin(rho / 2)
    covered = by_fisher = 0
    for _ in range(2000):
        x = rng.normal(size=40)
        y = rho * x + math.sqrt(1 - rho * rho) * rng.normal(size=40)
        coefficient = correlation(x, y, method="spearman")
        low, high, _ = correlation_interval(coefficient, df=38, method="spearman")
        half = 1.959963984540054 / math.sqrt(37)
        centre = math.atanh(coefficient)
        covered += low <= truth <= high
        by_fisher += math.tanh(centre - half) <= truth <= math.tanh(centre + half)

    assert 0.93 <= covered / 2000 <= 0.97
    assert by_fisher / 2000 < 0.925


@given(pairs=rows, method=st.sampled_from(METHODS), data=st.data())
@settings(deadline=None)
def test_correlation_is_bounded_symmetric_and_free_of_order(pairs, method, data):
    x, y = np.array(pairs, dtype=float).T
    order = data.draw(st.permutations(range(len(pairs))))

    result = correlation(x, y, method=method)
    low, high, p_value = correlation_interval(result, df=len(pairs) - 2, method=method)

    assert math.isnan(low) or -1 <= low <= result <= high <= 1
    assert math.isnan(low) == math.isnan(p_value)
    assert math.isnan(p_value) or 0 <= p_value <= 1
    assert correlation(y, x, method=method) == pytest.approx(result, abs=1e-12)
    assert correlation(x[order], y[order], method=method) == pytest.approx(result, abs=1e-12)


@given(
    pairs=rows,
    method=st.sampled_from(METHODS),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-100, 100),
)
@settings(deadline=None)
def test_correlation_is_free_of_scale_and_turns_with_the_sign(pairs, method, scale, shift):
    x, y = np.array(pairs, dtype=float).T
    coefficient = correlation(x, y, method=method)

    assert correlation(scale * x + shift, y, method=method) == pytest.approx(coefficient, abs=1e-9)
    assert correlation(-x, y, method=method) == pytest.approx(-coefficient, abs=1e-12)


@given(pairs=rows)
@settings(deadline=None)
def test_spearman_is_free_of_increasing_changes(pairs):
    x, y = np.array(pairs, dtype=float).T

    ours = correlation(np.exp(x / 10), y**3, method="spearman")

    assert ours == pytest.approx(correlation(x, y, method="spearman"))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200, 1e307])
def test_correlation_is_exact_at_extreme_scales(scale):
    """Neither squares that overflow nor squares that vanish spoil a correlation."""
    x, y = correlated(5, 50)

    assert correlation(x * scale, y) == pytest.approx(correlation(x, y))


@pytest.mark.parametrize("method", METHODS)
def test_perfect_correlation_has_neither_p_value_nor_interval(method):
    """Four rows in line do not prove that all are: [1, 1] and p = 0 would say so."""
    row = row_of([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], method=method)

    assert row["coefficient"] == pytest.approx(1)
    assert row[["p_value", "coefficient_low", "coefficient_high"]].isna().all()
    assert "perfect" in row["not_inferred"]


def test_missing_values_are_dropped_pairwise_with_a_count():
    x = [1.0, None, 3.0, 4.0, 5.0, 7.0]
    y = pd.array([1, 2, pd.NA, 4, 6, 5], dtype="Int64")

    with pytest.warns(UnscoredWarning, match="2 of 6 rows lack a value"):
        row = row_of(x, y)

    expected = row_of([1, 4, 5, 7], [1, 4, 6, 5])
    assert (row["n"], row["n_missing"]) == (4, 2)
    assert row.drop("n_missing").equals(expected.drop("n_missing"))
    assert correlation(x, y, missing="drop") == row["coefficient"]
    with pytest.raises(ValueError, match=r"x\[1\] is missing"):
        row_of(x, y, missing="raise")


def test_masked_entries_are_missing():
    x = np.ma.masked_equal([1.0, 2.0, -9.0, 4.0, 6.0], -9.0)

    assert correlation(x, [1, 2, 3, 5, 4], missing="drop") == correlation(
        [1, 2, 4, 6], [1, 2, 5, 4]
    )


def test_correlation_rejects_missing_values_by_default():
    with pytest.raises(ValueError, match=r"y\[1\] is missing \(in all 2 of 4\).*missing='drop'"):
        correlation([1, 2, 3, 4], [1, math.nan, None, 4])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([2.0, 2.0, 2.0, 2.0], [1, 2, 3, 4], "undefined.*: x is constant"),
        ([1, 2, 3, 4], [0.1] * 4, "undefined.*: y is constant"),
        # Equal up to the rounding of sums.
        ([0.1 + 0.2, 0.3, 0.3, 0.3], [1, 2, 3, 5], "undefined.*: x is constant"),
        ([1e9, 1e9 + 1e-7, 1e9, 1e9], [1, 2, 3, 5], "undefined.*: x is constant"),
        ([0, 0, 0], [0, 0, 0], "x is constant; y is constant"),
        ([], [], "there are 0 rows, and it needs 3"),
        ([1.0], [2.0], "there are 1 rows, and it needs 3"),
        ([1.0, 2.0], [2.0, 3.0], "there are 2 rows, and it needs 3"),
    ],
)
def test_undefined_correlation_is_nan_with_a_warning(x, y, message):
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        result = correlation(x, y)

    assert math.isnan(result)
    assert caught[0].filename == __file__


def test_ranks_of_a_constant_are_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="y is constant"):
        result = correlation([3, 1, 2, 5], [7, 7, 7, 7], method="spearman")

    assert math.isnan(result)


def test_three_rows_have_a_wide_interval():
    low, high, p_value = correlation_interval(correlation([1, 2, 3], [1, 3, 2]), df=1)

    # t = .5 / sqrt(.75) on one degree of freedom: p = 2/3.
    assert p_value == pytest.approx(2 / 3)
    assert low < -0.98
    assert high > 0.99


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ([1, 2], [1, 2, 3], {}, ValueError, "x and y must have equal lengths; got 2 and 3"),
        ([[1, 2]], [1, 2], {}, ValueError, r"x must be one-dimensional; got shape \(1, 2\)"),
        ([1, 2, math.inf], [1, 2, 3], {}, ValueError, r"x\[2\] is inf: .*drop zeros first"),
        ([1, "2", 3], [1, 2, 3], {}, TypeError, r"x\[1\] is '2', which is no number"),
        ([1, 2j, 3], [1, 2, 3], {}, TypeError, "is no number|which is no number"),
        ([1, 2], [1, 2], {"method": "kendall"}, ValueError, "method must be 'pearson' or"),
        ([1, 2], [1, 2], {"missing": "omit"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_correlation_rejects_bad_arguments(x, y, options, error, message):
    with pytest.raises(error, match=message):
        correlation(x, y, **options)


PARTIAL_METHODS = ["pearson", "spearman"]

# Ten rows whose partial correlations are published with R (ppcor).
HL = [7, 15, 19, 15, 21, 22, 57, 15, 20, 18]
DISP = [0, 0.964, 0, 0, 0.921, 0, 0, 1.006, 0, 1.011]
DEG = [9, 2, 3, 4, 1, 3, 1, 3, 6, 1]
BC = [1.78e-2, 1.05e-6, 1.37e-5, 7.18e-3, 0, 0, 0, 4.48e-3, 2.1e-6, 0]

# The correlation of log entity and log surface frequency in the rows behind tables 2, 5 and 6 of
# arXiv 2604.21882, one for each corpus and subset, recovered from the tables themselves.
ENTITY_SURFACE = {
    ("pile", "overall"): 0.5648,
    ("pile", "canonical"): 0.8291,
    ("pile", "redirect"): 0.4629,
    ("pile", "redirect_high_frequency"): 0.4970,
    ("olmo", "overall"): 0.6248,
    ("olmo", "canonical"): 0.8155,
    ("olmo", "redirect"): 0.5282,
    ("olmo", "redirect_high_frequency"): 0.5197,
}
# Section 4.1: surface instances behind the overall subset.
N_OVERALL = {"pile": 4284, "olmo": 4356}


def corpus_of(model):
    return "olmo" if model.startswith("OLMo") else "pile"


def given_the_other(accuracy_entity, accuracy_surface, entity_surface, which):
    matrix = np.array(
        [
            [1, accuracy_entity, accuracy_surface],
            [accuracy_entity, 1, entity_surface],
            [accuracy_surface, entity_surface, 1],
        ]
    )
    x, control = {"entity_given_surface": (1, 2), "surface_given_entity": (2, 1)}[which]
    return partial_correlation_from_matrix(matrix, x=x, y=0, controls=control)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sample(seed, n, n_controls):
    rng = np.random.default_rng(seed)
    controls = rng.normal(size=(n, n_controls))
    shared = controls.sum(axis=1)
    x = rng.normal(size=n) + shared
    return x, 0.3 * x + rng.normal(size=n) - shared, controls


def residual(vector, controls):
    design = np.column_stack([np.ones(len(vector)), controls])
    return vector - design @ np.linalg.lstsq(design, vector, rcond=None)[0]


@pytest.mark.parametrize(
    ("method", "coefficient", "p_value"),
    # ppcor::pcor.test of R, quoted to seven digits.
    [("pearson", -0.6720863, 0.0678920), ("spearman", -0.7647345, 0.0270808)],
)
def test_partial_correlation_agrees_with_r(method, coefficient, p_value):
    row = row_of(HL, DISP, np.column_stack([DEG, BC]), method=method)

    assert row["coefficient"] == pytest.approx(coefficient, abs=5e-8)
    assert row["p_value"] == pytest.approx(p_value, abs=5e-8)
    assert (row["n"], row["n_controls"]) == (10, 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", PARTIAL_METHODS)
@pytest.mark.parametrize("n_controls", [0, 1, 3])
def test_partial_correlation_agrees_with_pingouin(method, n_controls):
    pingouin = pytest.importorskip("pingouin")
    x, y, controls = sample(n_controls, 200, n_controls)
    names = [f"c{k}" for k in range(n_controls)]
    frame = pd.DataFrame(controls, columns=names).assign(x=x, y=y)
    if names:
        theirs = pingouin.partial_corr(frame, "x", "y", names, method=method).iloc[0]
    else:
        theirs = pingouin.corr(x, y, method=method).iloc[0]
    p_value = theirs["p_val"] if "p_val" in theirs else theirs["p-val"]

    ours = row_of(x, y, controls, method=method)

    assert ours["coefficient"] == pytest.approx(theirs["r"], rel=1e-10)
    assert ours["p_value"] == pytest.approx(p_value, rel=1e-8)
    if method == "pearson":
        # pingouin rounds its interval to two digits.
        bounds = theirs["CI95"] if "CI95" in theirs else theirs["CI95%"]
        assert (ours["coefficient_low"], ours["coefficient_high"]) == pytest.approx(
            bounds, abs=0.0051
        )


@pytest.mark.parametrize("n_controls", [0, 1, 4])
def test_a_control_costs_a_row(n_controls):
    x, y, controls = sample(7, 30, n_controls)
    row = row_of(x, y, controls)

    expected = correlation_interval(row["coefficient"], df=28 - n_controls)
    found = row[["coefficient_low", "coefficient_high", "p_value"]].tolist()
    assert found == pytest.approx(expected)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(8, 60), n_controls=st.integers(0, 4))
@settings(deadline=None)
def test_partial_correlation_is_the_correlation_of_residuals(seed, n, n_controls):
    x, y, controls = sample(seed, n, n_controls)

    ours = partial_correlation(x, y, controls=controls)

    expected = np.corrcoef(residual(x, controls), residual(y, controls))[0, 1]
    assert ours == pytest.approx(expected, abs=1e-10)
    assert -1 <= ours <= 1


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(8, 60), n_controls=st.integers(0, 4))
@settings(deadline=None)
def test_partial_correlation_is_that_of_the_matrix_of_the_data(seed, n, n_controls):
    x, y, controls = sample(seed, n, n_controls)
    matrix = np.corrcoef(np.column_stack([x, y, controls]), rowvar=False)
    rows = list(range(2, 2 + n_controls))

    ours = partial_correlation_from_matrix(matrix, x=0, y=1, controls=rows)

    assert ours == pytest.approx(partial_correlation(x, y, controls), abs=1e-10)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(6, 60))
@settings(deadline=None)
def test_one_control_is_the_closed_form(seed, n):
    x, y, controls = sample(seed, n, 1)
    xy, xz, yz = (
        np.corrcoef(a, b)[0, 1] for a, b in itertools.combinations([x, y, controls[:, 0]], 2)
    )

    ours = partial_correlation(x, y, controls=controls[:, 0])

    assert ours == pytest.approx((xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2)), abs=1e-10)


@given(seed=st.integers(0, 2**32 - 1), method=st.sampled_from(PARTIAL_METHODS), data=st.data())
@settings(deadline=None)
def test_partial_correlation_is_symmetric_and_free_of_order(seed, method, data):
    x, y, controls = sample(seed, 20, 3)
    rows = data.draw(st.permutations(range(20)))
    columns = data.draw(st.permutations(range(3)))

    ours = partial_correlation(x, y, controls=controls, method=method)

    swapped = partial_correlation(y, x, controls=controls[:, columns], method=method)
    shuffled = partial_correlation(x[rows], y[rows], controls=controls[rows], method=method)
    negated = partial_correlation(-x, y, controls=controls, method=method)
    assert swapped == pytest.approx(ours, abs=1e-10)
    assert shuffled == pytest.approx(ours, abs=1e-10)
    assert negated == pytest.approx(-ours, abs=1e-10)


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_partial_correlation_is_free_of_linear_changes_of_the_controls(seed):
    x, y, controls = sample(seed, 25, 2)
    changed = controls @ np.array([[2.0, 1.0], [-1.0, 1.0]]) + [5.0, -3.0]

    ours = partial_correlation(x, y, controls=changed)

    assert ours == pytest.approx(partial_correlation(x, y, controls=controls), abs=1e-9)


def test_no_control_is_the_plain_correlation():
    x, y, _ = sample(1, 30, 0)

    assert partial_correlation(x, y, np.empty((30, 0))) == correlation(x, y)


@pytest.mark.parametrize("extra", ["constant", "repeated", "sum", "shifted"])
def test_redundant_controls_change_nothing(extra):
    """A control that adds no direction counts neither in the residuals nor in the degrees."""
    x, y, controls = sample(2, 40, 2)
    redundant = {
        "constant": np.full(40, 0.1),
        "repeated": controls[:, 0],
        "sum": controls.sum(axis=1),
        "shifted": 3 - 2 * controls[:, 1],
    }[extra]

    for cluster in (None, "x"):
        ours = row_of(x, y, np.column_stack([controls, redundant]), cluster=cluster)

        expected = row_of(x, y, controls, cluster=cluster)
        for name in ("coefficient", "coefficient_low", "p_value"):
            assert ours[name] == pytest.approx(expected[name], abs=1e-12)
        assert ours["n_controls"] == 2


def test_partial_correlation_is_exact_beside_a_huge_shared_trend():
    """What the controls explain may outweigh the rest by ten orders of magnitude."""
    rng = np.random.default_rng(8)
    trend, noise = rng.normal(size=300), rng.normal(size=300)
    x, y = 1e8 * trend + noise, 1e8 * trend + noise + rng.normal(size=300)

    ours = partial_correlation(x, y, controls=trend)

    expected = partial_correlation(x - 1e8 * trend, y - 1e8 * trend, controls=trend)
    assert ours == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("x", "controls", "message"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1, 2, 3, 4, 6, 5], "x is constant"),
        ([1, 2, 3, 4, 5, 6], [3, 5, 7, 9, 11, 13], "x is a linear function of the controls"),
        ([1, 2, 4], [1, 3, 2], "there are 3 rows with 1 controls, and it needs 4"),
    ],
)
def test_undefined_partial_correlation_is_nan_with_a_warning(x, controls, message):
    y = [2, 1, 3, 6, 4, 5][: len(x)]

    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        result = partial_correlation(x, y, controls)

    assert math.isnan(result)
    assert caught[0].filename == __file__
    row = row_of(x, y, controls)
    assert row[["coefficient", "coefficient_low", "coefficient_high", "p_value"]].isna().all()
    assert message in row["not_inferred"]


def test_missing_values_are_dropped_from_every_vector():
    x, y, controls = sample(3, 12, 2)
    x[0], y[1], controls[2, 1] = np.nan, np.nan, np.nan

    with pytest.warns(UnscoredWarning, match="3 of 12"):
        row = row_of(x, y, controls)

    expected = partial_correlation(x[3:], y[3:], controls[3:])
    assert (row["n"], row["n_missing"]) == (9, 3)
    assert row["coefficient"] == expected
    assert partial_correlation(x, y, controls, missing="drop") == expected
    with pytest.raises(ValueError, match=r"controls\[:, 1\]\[0\] is missing \(in all 1 of 10\)"):
        partial_correlation(x[2:], y[2:], controls[2:])
    with pytest.raises(ValueError, match=r"x\[0\] is missing"):
        partial_correlation(x, y, controls)


@pytest.mark.parametrize(
    ("controls", "error", "message"),
    [
        ([1, 2], ValueError, "x and controls must have equal lengths; got 3 and 2"),
        ([[1, 2, 3]], ValueError, r"x and controls\[:, 0\] must have equal lengths"),
        (np.ones((3, 1, 1)), ValueError, r"controls must have shape \(n_rows,\) or"),
        (["a", "b", "c"], TypeError, r"controls\[0\] is 'a', which is no number"),
    ],
)
def test_partial_correlation_rejects_bad_controls(controls, error, message):
    with pytest.raises(error, match=message):
        partial_correlation([1, 2, 3], [1, 3, 2], controls=controls)


@pytest.mark.parametrize("options", [{"method": "kendall"}, {"missing": "omit"}])
def test_partial_correlation_rejects_options_out_of_range(options):
    name = next(iter(options))

    with pytest.raises(ValueError, match=f"{name} must"):
        partial_correlation([1, 2, 3], [1, 3, 2], controls=[2, 1, 3], **options)


def test_table_2_follows_from_table_5(data_files):
    """All 60 partial correlations of table 2, from the correlations of table 5."""
    plain = {
        (row["model"], row["subset"], row["frequency"]): float(row["pearson_r"])
        for row in read(data_files / "golden" / "redirectqa_table5_correlations.csv")
    }
    published = read(data_files / "golden" / "redirectqa_table2_partial_correlations.csv")

    for row in published:
        place = row["model"], row["subset"]
        entity_surface = ENTITY_SURFACE[corpus_of(row["model"]), row["subset"]]
        result = given_the_other(
            plain[*place, "entity"], plain[*place, "surface"], entity_surface, row["partial"]
        )
        assert result == pytest.approx(float(row["partial_r"]), abs=0.002), row
    assert len(published) == 60


def test_table_6_follows_from_its_own_correlations(data_files):
    """All 40 partial correlations of table 6, from its other 40 values."""
    rows = read(data_files / "golden" / "redirectqa_table6_low_frequency_control.csv")
    values = {(row["model"], row["subset"], row["statistic"]): float(row["value"]) for row in rows}
    partial = [row for row in rows if "given" in row["statistic"]]

    for row in partial:
        place = row["model"], row["subset"]
        result = given_the_other(
            values[*place, "pearson_entity"],
            values[*place, "pearson_surface"],
            ENTITY_SURFACE[corpus_of(row["model"]), row["subset"]],
            row["statistic"],
        )
        assert result == pytest.approx(float(row["value"]), abs=0.002), row
    assert len(partial) == 40


def test_stars_of_table_2_follow_from_the_number_of_rows(data_files):
    """Each overall partial correlation is marked p < 0.01 exactly where its p-value says so."""
    published = read(data_files / "golden" / "redirectqa_table2_partial_correlations.csv")
    overall = [row for row in published if row["subset"] == "overall"]

    for row in overall:
        df = N_OVERALL[corpus_of(row["model"])] - 3
        p_value = correlation_interval(float(row["partial_r"]), df=df)[2]
        assert (p_value < 0.01) == (row["significant_p01"] == "1"), row
    assert len(overall) == 20


def test_one_control_of_a_matrix_is_the_closed_form():
    result = partial_correlation_from_matrix(np.eye(3) * 0.5 + 0.5, x=0, y=1, controls=2)

    assert result == pytest.approx((0.5 - 0.25) / 0.75)


def test_determined_variable_of_a_matrix_is_nan_with_a_warning():
    matrix = [[1, 0.5, 1], [0.5, 1, 0.5], [1, 0.5, 1]]

    with pytest.warns(UndefinedMetricWarning, match="the controls determine x") as caught:
        result = partial_correlation_from_matrix(matrix, x=0, y=1, controls=2)

    assert math.isnan(result)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        ([[1, 0.5], [0.4, 1]], ValueError, r"matrix\[0, 1\] must equal its mirror image.*got 0\.5"),
        ([[1, 1.5], [1.5, 1]], ValueError, r"matrix\[0, 1\] must lie in \[-1, 1\]; got 1\.5"),
        ([[1, 0.2], [0.2, 0.9]], ValueError, r"matrix\[1, 1\] must be 1; got 0\.9"),
        ([[1, np.nan], [np.nan, 1]], ValueError, r"matrix\[0, 1\] must lie in \[-1, 1\]; got nan"),
        ([[1, 0.2, 0.1], [0.2, 1, 0.3]], ValueError, r"matrix must be square; got shape \(2, 3\)"),
        ([1, 0.5], ValueError, r"matrix must be square; got shape \(2,\)"),
        ([["1", "0"], ["0", "1"]], TypeError, "matrix must hold numbers"),
        (
            [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]],
            ValueError,
            "not positive semidefinite.*lowest eigenvalue is -0.8",
        ),
    ],
)
def test_impossible_matrices_are_rejected(matrix, error, message):
    with pytest.raises(error, match=message):
        partial_correlation_from_matrix(matrix, x=0, y=1, controls=[])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"x": 3}, ValueError, r"different rows of the matrix, 0 to 2; got \[3, 0, 2\]"),
        ({"y": -1}, ValueError, r"different rows.* got \[0, -1, 2\]"),
        ({"y": 0}, ValueError, "different rows of the matrix"),
        ({"controls": [2, 2]}, ValueError, "different rows"),
        ({"controls": 1}, ValueError, "different rows"),
        ({"x": 0.0}, TypeError, "cannot be interpreted as an integer"),
    ],
)
def test_partial_correlation_from_matrix_rejects_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        partial_correlation_from_matrix(np.eye(3), **({"x": 0, "y": 1, "controls": 2} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "kendall"}, "method must be"), ({"confidence_level": 0}, "confidence_level must")],
)
def test_correlation_interval_rejects_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        correlation_interval(0.5, df=10, **options)
