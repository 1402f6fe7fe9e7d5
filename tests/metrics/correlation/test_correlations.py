import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    correlation,
    correlation_interval,
    partial_correlation,
    partial_correlation_from_matrix,
)
from tests.metrics.harness import correlation_row as row_of, golden_rows
from tests.refusals import refusals

METHODS = ["pearson", "spearman"]
FUNCTIONS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}
BOUNDS = ["coefficient_low", "coefficient_high"]
rows = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-4, 4)), min_size=5, max_size=40
).filter(lambda pairs: all(len({pair[k] for pair in pairs}) > 1 for k in (0, 1)))


def correlated(seed, n, slope=0.5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, slope * x + rng.normal(size=n)


@pytest.mark.parametrize("method", METHODS)
# The last p-value lies far below the rounding of 1.
@pytest.mark.parametrize(("n", "slope"), [(3, 0.5), (5, 0.5), (30, 0.5), (4284, 0.5), (500, 2.0)])
def test_correlation_agrees_with_scipy(method, n, slope):
    x, y = correlated(n, n, slope)
    y = np.round(y) if method == "spearman" else y
    theirs = FUNCTIONS[method](x, y)

    row = row_of(x, y, method=method, confidence=0.9)

    assert row["coefficient"] == correlation(x, y, method=method)
    assert row["coefficient"] == pytest.approx(theirs.statistic, rel=1e-12)
    assert row["p_value"] == pytest.approx(theirs.pvalue, rel=1e-6, abs=0)
    t = stats.t.ppf(0.95, n - 2)
    centre, half = np.arctanh(theirs.statistic), np.arctanh(t / np.sqrt(n - 2 + t * t))
    if method == "pearson":
        assert row[BOUNDS].tolist() == pytest.approx(np.tanh([centre - half, centre + half]))
    if method == "pearson" and n > 5:
        # Fisher's own interval is nearly the same.
        fisher = theirs.confidence_interval(0.9)
        assert row[BOUNDS].tolist() == pytest.approx([fisher.low, fisher.high], abs=0.002)
    counts = ["n", "n_clusters", "n_controls", "n_missing", "n_undefined"]
    assert row[counts].tolist() == [n, n, 0, 0, 0]


@pytest.mark.parametrize("n", [3, 12, 200])
def test_interval_of_ranks_agrees_with_bonett_and_wright_at_the_bound(n):
    """The variance of atanh(r) is 1 + rho^2 / 2 times that of values."""
    x, y = correlated(n, n, slope=0.2)
    row = row_of(x, y, method="spearman")
    t = stats.t.ppf(0.975, n - 2)
    half = math.atanh(t / math.sqrt(n - 2 + t * t))

    for bound in row[BOUNDS]:
        steps = abs(math.atanh(bound) - math.atanh(row["coefficient"])) / half
        assert steps == pytest.approx(math.sqrt(1 + bound**2 / 2), rel=1e-6)


@given(
    coefficient=st.floats(-0.999, 0.999),
    df=st.integers(1, 500),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
    method=st.sampled_from(METHODS),
)
@settings(deadline=None)
def test_interval_excludes_0_exactly_if_the_test_rejects(coefficient, df, confidence, method):
    low, high, p_value = correlation_interval(
        coefficient, df=df, method=method, confidence=confidence
    )

    assume(abs(p_value - (1 - confidence)) > 1e-9)
    assert (p_value < 1 - confidence) == (low > 0 or high < 0)
    assert -1 <= low <= coefficient <= high <= 1


@given(
    pairs=rows,
    method=st.sampled_from(METHODS),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-100, 100),
    data=st.data(),
)
@settings(deadline=None)
def test_correlation_is_bounded_symmetric_and_independent_of_order_and_scale(
    pairs, method, scale, shift, data
):
    x, y = np.array(pairs, dtype=float).T
    order = data.draw(st.permutations(range(len(pairs))))

    result = correlation(x, y, method=method)

    low, high, p_value = correlation_interval(result, df=len(pairs) - 2, method=method)
    assert math.isnan(low) or -1 <= low <= result <= high <= 1
    assert math.isnan(low) == math.isnan(p_value)
    assert math.isnan(p_value) or 0 <= p_value <= 1
    assert correlation(y, x, method=method) == pytest.approx(result, abs=1e-12)
    assert correlation(x[order], y[order], method=method) == pytest.approx(result, abs=1e-12)
    assert correlation(scale * x + shift, y, method=method) == pytest.approx(result, abs=1e-9)
    assert correlation(-x, y, method=method) == pytest.approx(-result, abs=1e-12)
    if method == "spearman":
        assert correlation(np.exp(x / 10), y**3, method=method) == pytest.approx(result)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200, 1e307])
def test_correlation_is_exact_at_extreme_scales(scale):
    """Squares that overflow or underflow do not affect a correlation."""
    x, y = correlated(5, 50)

    assert correlation(x * scale, y) == pytest.approx(correlation(x, y))


def test_missing_values_are_dropped_from_every_vector_with_a_count():
    x = [1.0, None, 3.0, 4.0, 5.0, 7.0, 9.0, 2.0]
    y = pd.array([1, 2, pd.NA, 4, 6, 5, 3, 2], dtype="Int64")
    control = np.array([2, 1, 1, 3, 1, 2, 5, np.nan])

    with pytest.warns(UnscoredWarning, match="2 of 8 rows lack a value"):
        row = row_of(x, y)
    with pytest.warns(UnscoredWarning, match="3 of 8"):
        given = row_of(x, y, control)

    expected = row_of([1, 4, 5, 7, 9, 2], [1, 4, 6, 5, 3, 2])
    assert (row["n"], row["n_missing"], given["n"], given["n_missing"]) == (6, 2, 5, 3)
    assert row.drop("n_missing").equals(expected.drop("n_missing"))
    with pytest.warns(UnscoredWarning, match="2 of 8 rows lack a value"):
        assert correlation(x, y, missing="drop") == row["coefficient"]
    masked = np.ma.masked_equal([1.0, -9.0, -9.0, 4.0, 5.0, 7.0, 9.0, 2.0], -9.0)
    with pytest.warns(UnscoredWarning, match="2 of 8 rows lack a value"):
        assert correlation(masked, y, missing="drop") == row["coefficient"]
    rows = [0, 3, 4, 5, 6]
    conditioned = partial_correlation(
        np.asarray(x, float)[rows], y[rows].astype(float), control[rows]
    )
    assert given["coefficient"] == conditioned
    with pytest.warns(UnscoredWarning, match="3 of 8 rows lack a value"):
        assert partial_correlation(x, y, control, missing="drop") == conditioned


LINE = [2, 1, 3, 6, 4, 5]


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ([2.0, 2.0, 2.0, 2.0], [1, 2, 3, 4], {}, "undefined.*: x is constant"),
        ([1, 2, 3, 4], [0.1] * 4, {}, "undefined.*: y is constant"),
        ([3, 1, 2, 5], [7, 7, 7, 7], {"method": "spearman"}, "y is constant"),
        # Equal up to the rounding of sums.
        ([0.1 + 0.2, 0.3, 0.3, 0.3], [1, 2, 3, 5], {}, "undefined.*: x is constant"),
        ([1e9, 1e9 + 1e-7, 1e9, 1e9], [1, 2, 3, 5], {}, "undefined.*: x is constant"),
        ([0, 0, 0], [0, 0, 0], {}, "x is constant; y is constant"),
        ([], [], {}, "there are 0 rows, and it needs 3"),
        ([1.0], [2.0], {}, "there are 1 rows, and it needs 3"),
        ([1.0, 2.0], [2.0, 3.0], {}, "there are 2 rows, and it needs 3"),
        ([1.0] * 6, LINE, {"controls": [1, 2, 3, 4, 6, 5]}, "x is constant"),
        (range(6), LINE, {"controls": [3, 5, 7, 9, 11, 13]}, "x is a linear function of the"),
        ([1, 2, 4], [2, 1, 3], {"controls": [1, 3, 2]}, "3 rows with 1 controls, and it needs 4"),
    ],
)
def test_undefined_correlation_is_nan_with_a_warning(x, y, options, message):
    function = partial_correlation if "controls" in options else correlation

    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        result = function(x, y, **options)

    assert math.isnan(result)
    assert caught[0].filename == __file__
    if len(x):
        row = row_of(x, y, **options)
        assert row[["coefficient", *BOUNDS, "p_value"]].isna().all()
        assert row["not_inferred"] in str(caught[0].message)
    # Four rows in line do not prove that all are: [1, 1] and p = 0 would say so.
    row = row_of(
        [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], method=options.get("method", "pearson")
    )
    assert row["coefficient"] == pytest.approx(1)
    assert row[["p_value", *BOUNDS]].isna().all()
    assert "perfect" in row["not_inferred"]


# Ten rows whose partial correlations are published with R (ppcor).
HL = [7, 15, 19, 15, 21, 22, 57, 15, 20, 18]
DISP = [0, 0.964, 0, 0, 0.921, 0, 0, 1.006, 0, 1.011]
DEG = [9, 2, 3, 4, 1, 3, 1, 3, 6, 1]
BC = [1.78e-2, 1.05e-6, 1.37e-5, 7.18e-3, 0, 0, 0, 4.48e-3, 2.1e-6, 0]


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
@pytest.mark.parametrize("method", METHODS)
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
        assert ours[BOUNDS].tolist() == pytest.approx(list(bounds), abs=0.0051)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(8, 60), n_controls=st.integers(0, 4))
@settings(deadline=None)
def test_partial_correlation_equals_that_of_residuals_and_of_the_matrix(seed, n, n_controls):
    x, y, controls = sample(seed, n, n_controls)
    matrix = np.corrcoef(np.column_stack([x, y, controls]), rowvar=False)

    ours = partial_correlation(x, y, controls=controls)

    expected = np.corrcoef(residual(x, controls), residual(y, controls))[0, 1]
    assert ours == pytest.approx(expected, abs=1e-10)
    assert -1 <= ours <= 1
    conditioned = list(range(2, 2 + n_controls))
    of_matrix = partial_correlation_from_matrix(matrix, x=0, y=1, controls=conditioned)
    assert of_matrix == pytest.approx(ours, abs=1e-9)
    if n_controls == 0:
        assert ours == correlation(x, y)
    if n_controls == 1:
        xy, xz, yz = matrix[0, 1], matrix[0, 2], matrix[1, 2]
        closed = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
        assert partial_correlation(x, y, controls[:, 0]) == pytest.approx(closed, abs=1e-10)


@given(seed=st.integers(0, 2**32 - 1), method=st.sampled_from(METHODS), data=st.data())
@settings(deadline=None)
def test_partial_correlation_is_symmetric_and_independent_of_order(seed, method, data):
    x, y, controls = sample(seed, 20, 3)
    places = data.draw(st.permutations(range(20)))
    columns = data.draw(st.permutations(range(3)))

    ours = partial_correlation(x, y, controls=controls, method=method)

    swapped = partial_correlation(y, x, controls=controls[:, columns], method=method)
    shuffled = partial_correlation(x[places], y[places], controls[places], method=method)
    negated = partial_correlation(-x, y, controls=controls, method=method)
    assert [swapped, shuffled, -negated] == pytest.approx([ours] * 3, abs=1e-10)
    changed = controls @ np.array([[2.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    if method == "pearson":
        assert partial_correlation(x, y, changed - 3) == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize("extra", ["constant", "repeated", "sum", "shifted"])
def test_redundant_controls_change_nothing(extra):
    """A redundant control affects neither the residuals nor the degrees of freedom."""
    x, y, controls = sample(2, 40, 2)
    redundant = {
        "constant": np.full(40, 0.1),
        "repeated": controls[:, 0],
        "sum": controls.sum(axis=1),
        "shifted": 3 - 2 * controls[:, 1],
    }[extra]

    for cluster in (None, x):
        ours = row_of(x, y, np.column_stack([controls, redundant]), cluster=cluster)

        expected = row_of(x, y, controls, cluster=cluster)
        for name in ("coefficient", "coefficient_low", "p_value"):
            assert ours[name] == pytest.approx(expected[name], abs=1e-12)
        assert ours["n_controls"] == 2


def test_partial_correlation_is_exact_with_a_huge_shared_trend():
    """The part explained by the controls may exceed the rest by ten orders of magnitude."""
    rng = np.random.default_rng(8)
    trend, noise = rng.normal(size=300), rng.normal(size=300)
    x, y = 1e8 * trend + noise, 1e8 * trend + noise + rng.normal(size=300)

    ours = partial_correlation(x, y, controls=trend)

    expected = partial_correlation(x - 1e8 * trend, y - 1e8 * trend, controls=trend)
    assert ours == pytest.approx(expected, abs=1e-6)


# The correlation of log entity and log surface frequency in the rows behind tables 2, 5 and 6 of
# arXiv 2604.21882, one for each corpus and subset, recovered from the tables themselves.
SUBSETS = ("overall", "canonical", "redirect", "redirect_high_frequency")
ENTITY_SURFACE = {
    "pile": dict(zip(SUBSETS, (0.5648, 0.8291, 0.4629, 0.4970), strict=True)),
    "olmo": dict(zip(SUBSETS, (0.6248, 0.8155, 0.5282, 0.5197), strict=True)),
}
# Section 4.1: surface instances behind the overall subset.
N_OVERALL = {"pile": 4284, "olmo": 4356}


def corpus_of(model):
    return "olmo" if model.startswith("OLMo") else "pile"


def given_the_other(accuracy_entity, accuracy_surface, entity_surface, which):
    matrix = [
        [1, accuracy_entity, accuracy_surface],
        [accuracy_entity, 1, entity_surface],
        [accuracy_surface, entity_surface, 1],
    ]
    x, control = {"entity_given_surface": (1, 2), "surface_given_entity": (2, 1)}[which]
    return partial_correlation_from_matrix(matrix, x=x, y=0, controls=control)


def test_table_2_follows_from_table_5(data_files):
    """All 60 partial correlations of table 2, from the correlations of table 5; 20 have stars."""
    plain = {
        (row["model"], row["subset"], row["frequency"]): float(row["pearson_r"])
        for row in golden_rows(data_files, "redirectqa_table5_correlations.csv")
    }
    published = golden_rows(data_files, "redirectqa_table2_partial_correlations.csv")

    for row in published:
        place, corpus = (row["model"], row["subset"]), corpus_of(row["model"])
        plain_r = plain[*place, "entity"], plain[*place, "surface"]
        result = given_the_other(*plain_r, ENTITY_SURFACE[corpus][row["subset"]], row["partial"])
        assert result == pytest.approx(float(row["partial_r"]), abs=0.002), row
        if row["subset"] == "overall":
            # Marked p < 0.01 exactly if the p-value for its number of rows is below.
            df = N_OVERALL[corpus] - 3
            p_value = correlation_interval(float(row["partial_r"]), df=df)[2]
            assert (p_value < 0.01) == (row["significant_p01"] == "1"), row
    assert (len(published), sum(row["subset"] == "overall" for row in published)) == (60, 20)


def test_table_6_follows_from_its_other_correlations(data_files):
    """All 40 partial correlations of table 6, from its other 40 values."""
    cells = golden_rows(data_files, "redirectqa_table6_low_frequency_control.csv")
    values = {(row["model"], row["subset"], row["statistic"]): float(row["value"]) for row in cells}
    partial = [row for row in cells if "given" in row["statistic"]]

    for row in partial:
        place = row["model"], row["subset"]
        result = given_the_other(
            values[*place, "pearson_entity"],
            values[*place, "pearson_surface"],
            ENTITY_SURFACE[corpus_of(row["model"])][row["subset"]],
            row["statistic"],
        )
        assert result == pytest.approx(float(row["value"]), abs=0.002), row
    assert len(partial) == 40


def test_redundant_controls_of_a_matrix_count_once_and_may_determine_a_variable():
    matrix = [[1, 0.3, 0.5, 0.5], [0.3, 1, 0.2, 0.2], [0.5, 0.2, 1, 1], [0.5, 0.2, 1, 1]]

    with pytest.warns(UndefinedMetricWarning, match="the controls determine x") as caught:
        assert math.isnan(of_matrix(matrix, x=2, y=1, controls=3))

    assert of_matrix(matrix, controls=[2, 3]) == pytest.approx(of_matrix(matrix, controls=2))
    assert [warning.filename for warning in caught] == [__file__]


def of_matrix(matrix=((1, 0, 0), (0, 1, 0), (0, 0, 1)), *, x=0, y=1, controls=()):
    return partial_correlation_from_matrix(matrix, x=x, y=y, controls=controls)


def partial(controls, **options):
    return partial_correlation([1, 2, 3], [1, 3, 2], controls, **options)


test_bad_arguments_are_rejected = refusals(
    lambda call: call(),
    (lambda: correlation([1, 2], [1, 2, 3]), "equal lengths; got 2 and 3"),
    (lambda: correlation([[1, 2]], [1, 2]), r"x must be one-dimens.* \(1, 2\)"),
    (lambda: correlation([1, math.inf], [1, 2]), r"x\[1\] is inf: .*exclude zeros"),
    (lambda: correlation([1, "2"], [1, 2]), TypeError, r"x\[1\] is '2', which is not a number"),
    (lambda: correlation([1, 2j], [1, 2]), TypeError, "which is not a number"),
    (lambda: correlation([1], [1], method="kendall"), "method must be 'pearson'"),
    (lambda: correlation([1], [1], missing="omit"), "missing must be 'raise' or"),
    (lambda: correlation([1, 2], [1, None]), r"y\[1\] is missing .*='drop'"),
    (lambda: row_of([1, None], [1, 2], missing="raise"), r"x\[1\] is missing"),
    (lambda: partial([1, 2]), "x and controls must have equal lengths; got 3 and"),
    (lambda: partial([[1, 2, 3]]), "pass numpy.column_stack"),
    (lambda: partial(np.ones((3, 1, 1))), r"controls must have shape \(n_rows,\)"),
    (lambda: partial(["a", "b", "c"]), TypeError, r"controls\[0\] is 'a', which is not a number"),
    (lambda: partial([2, None, 3]), r"controls\[1\] is missing \(1 of 3 values"),
    (lambda: partial([[2, 1], [1, None], [3, 2]]), r"controls\[:, 1\]\[1\] is missing"),
    (lambda: partial([2, 1, 3], method="kendall"), "method must"),
    (lambda: partial([2, 1, 3], missing="omit"), "missing must"),
    (lambda: of_matrix([[1, 0.5], [0.4, 1]]), r"\[0, 1\] must equal the entry across"),
    (lambda: of_matrix([[1, 1.5], [1.5, 1]]), r"\[0, 1\] must be in .*got 1\.5"),
    (lambda: of_matrix([[1, 0.2], [0.2, 0.9]]), r"\[1, 1\] must be 1; got 0\.9"),
    (lambda: of_matrix([[1, np.nan], [np.nan, 1]]), "must be in .*got nan"),
    (lambda: of_matrix([[1, 0.2, 0.1]]), r"must be square; got shape \(1, 3\)"),
    (lambda: of_matrix([1, 0.5]), r"must be square; got shape \(2,\)"),
    (lambda: of_matrix([["1", "0"], ["0", "1"]]), TypeError, "matrix must be numeric"),
    (
        lambda: of_matrix([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]),
        "not positive semidefinite.*lowest eigenvalue is -0.8",
    ),
    (lambda: of_matrix(x=3), r"different rows .* 0 to 2; got \[3, 1\]"),
    (lambda: of_matrix(y=-1), r"different rows .* got \[0, -1\]"),
    (lambda: of_matrix(y=0), "different rows"),
    (lambda: of_matrix(controls=[2, 2]), "different rows"),
    (lambda: of_matrix(controls=1), "different rows"),
    (lambda: of_matrix(x=0.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: correlation_interval(0.5, df=9, method="kendall"), "method must be"),
    (lambda: correlation_interval(0.5, df=9, confidence=0), "confidence must"),
)


def test_nonlinear_effect_of_a_control_is_removed_only_if_it_is_transformed():
    """x and y are the square of the control plus noise: Cov 2 over Var 3, and 0 given z squared."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=40_000)
    x, y = (z**2 + rng.normal(size=z.size) for _ in range(2))

    assert partial_correlation(x, y, z) == pytest.approx(2 / 3, abs=0.02)
    assert partial_correlation(x, y, np.column_stack([z, z**2])) == pytest.approx(0, abs=0.015)
