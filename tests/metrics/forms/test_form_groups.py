import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special, stats

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning
from surface_consistency.metrics import forms_by
from surface_consistency.metrics.forms.forms import fact_sums, form_rates
from surface_consistency.metrics.uncertainty.cluster_bounds import cluster_t, parts_of
from tests.metrics.harness import long
from tests.refusals import refusals

METRICS = [
    *("accuracy", "all_correct", "all_incorrect", "all_agree", "consistency"),
    *("within_item_share", "intraclass_correlation"),
]


@pytest.fixture(scope="module")
def frame():
    """Two models on 150 facts of 60 subjects, with two to five forms each."""
    rng = np.random.default_rng(1)
    rows = [
        (model, f"Q{fact}", f"S{fact % 60}", form, rng.random() < skill * known)
        for fact, known in enumerate(rng.random(150))
        for form in range(rng.integers(2, 6))
        for model, skill in (("a", 0.6), ("b", 1.1))
    ]
    return pd.DataFrame(rows, columns=["model", "item", "subject_id", "form", "correct"])


def test_group_without_two_forms_keeps_its_row():
    columns = {"item": [1, 1, 2, 2, 1], "form": [1, 2, 1, 2, 1], "correct": [1, 0, 1, 1, 1]}
    frame = pd.DataFrame({"model": [*"aaaab"]} | columns)

    with pytest.warns(UndefinedMetricWarning, match=r"consistency \(1, such as in group model='b'"):
        rows = forms_by(frame, by="model")

    assert rows["n_items"].tolist() == [2, 0]
    assert np.isnan(rows["consistency"].iloc[1])


@settings(deadline=None)
@given(
    right=st.lists(st.tuples(st.integers(0, 4), st.integers(2, 4)), min_size=4, max_size=25),
    null=st.sampled_from([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98]),
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_intervals_exclude_a_value_exactly_if_its_p_is_below_0_05(right, null):
    facts = [(fact, form, form < k) for fact, (k, m) in enumerate(right) for form in range(m)]

    row = forms_by(pd.DataFrame(facts, columns=["item", "form", "correct"])).iloc[0]

    n_right, n_forms = np.array([(min(k, m), m) for k, m in right]).T
    for name in ("accuracy", "all_correct", "all_incorrect", "all_agree", "consistency"):
        inferred = cluster_t(parts_of(form_rates()[name]), fact_sums(n_forms, n_right))
        p_value = float(inferred.p_value(null))
        if abs(p_value - 0.05) > 1e-9:
            is_out = null < row[f"{name}_low"] or null > row[f"{name}_high"]
            assert (p_value < 0.05) == is_out


def crossed(rng, n_items, n_forms, spread=0.8):
    """Labels of items by forms shared by all items, and the accuracies of the forms."""
    logits = 1.5 * rng.normal(size=(n_items, 1)) + spread * rng.normal(size=n_forms)
    right = rng.random((n_items, n_forms)) < 1 / (1 + np.exp(-logits))
    return long(right)


def test_intervals_for_forms_like_these_cover_if_forms_are_drawn():
    """300 data sets of 100 items in 6 shared forms; the interval for fixed forms covers in half."""
    rng = np.random.default_rng(5)
    draws = rng.normal(size=(200_000, 3))
    once, again = (1 / (1 + np.exp(-1.5 * draws[:, 0] - 0.8 * draws[:, one])) for one in (1, 2))
    truth = {
        "accuracy": once.mean(),
        "consistency": (once * again + (1 - once) * (1 - again)).mean(),
    }
    covered = {(kind, name): 0 for kind in ("fixed", "sample") for name in truth}
    for _ in range(300):
        frame = crossed(rng, 100, 6)
        for kind in ("fixed", "sample"):
            row = forms_by(frame, forms=kind).iloc[0]
            for name, value in truth.items():
                covered[kind, name] += row[f"{name}_low"] <= value <= row[f"{name}_high"]

    assert covered["sample", "accuracy"] >= 0.92 * 300
    assert covered["sample", "consistency"] >= 0.92 * 300
    assert covered["fixed", "accuracy"] <= 0.75 * 300


def test_intervals_for_forms_like_these_contain_those_for_fixed_forms(frame):
    fixed, sample = (forms_by(frame, by="model", forms=one) for one in ("fixed", "sample"))

    for name in METRICS:
        assert (sample[f"{name}_low"] <= fixed[f"{name}_low"] + 1e-12).all()
        assert (sample[f"{name}_high"] >= fixed[f"{name}_high"].clip(upper=1.0) - 1e-12).all()


@pytest.mark.parametrize("forms", ["fixed", "sample"])
def test_within_item_share_is_at_most_one_unless_the_estimate_is_larger(forms):
    rows = [forms_by(crossed(np.random.default_rng(n), 12, 4), forms=forms) for n in range(20)]

    shares, highs = (pd.concat(rows)[f"within_item_share{end}"] for end in ("", "_high"))
    assert highs.max() >= 1.0
    assert highs[shares <= 1.0].max() == 1.0
    assert (highs >= shares).all()


def test_the_spread_between_forms_agrees_with_a_two_way_analysis():
    """The lower limit of consistency has the chi-square limit of the variance between forms."""
    frame = crossed(np.random.default_rng(6), 40, 5)
    row, fixed = forms_by(frame, forms="sample").iloc[0], forms_by(frame).iloc[0]
    correct = frame.pivot(index="item", columns="form", values="correct").to_numpy(float)

    n_facts, n_forms = correct.shape
    accuracy, of_forms = correct.mean(), correct.mean(axis=0)
    pairs = [(correct[:, one] != correct[:, two]) for one in range(5) for two in range(one)]
    disagreement = np.mean(pairs)
    observed = np.var(of_forms, ddof=1)
    noise = max(disagreement / 2 - observed, 0) / (n_facts - 1)
    between, total = max(observed - noise, 0), accuracy * (1 - accuracy)
    rest = total - between
    within = (disagreement / 2 - between) / rest

    def disagree(variance):
        share = variance / (variance + rest)
        return 2 * total * (share + (1 - share) * within)

    limit = max(observed, noise) * 4 / stats.chi2.ppf(0.025, 4) - noise
    chi_square_arm = disagreement * (disagree(limit) / disagree(between) - 1)

    def variance(left):
        return (len(left) - 1) / len(left) * np.sum((np.asarray(left) - np.mean(left)) ** 2)

    by_form = [forms_by(frame[frame["form"] != one])["consistency"].iloc[0] for one in range(5)]
    by_cell = [forms_by(frame.drop(index=one))["consistency"].iloc[0] for one in frame.index]
    half = stats.t.ppf(0.975, 4) * np.sqrt(max(variance(by_form) - variance(by_cell), 0.0))
    of_logit = special.logit(1 - disagreement) - half / (disagreement * (1 - disagreement))
    jackknife_arm = 1 - disagreement - special.expit(of_logit)
    change = stats.t.ppf(0.975, 4) * np.sqrt(between / n_forms) / total
    ends = special.expit(special.logit(accuracy) + np.array([-change, change]))
    accuracy_arm = disagreement * (max(ends * (1 - ends)) / total - 1)
    arms = fixed["consistency"] - fixed["consistency_low"], max(jackknife_arm, accuracy_arm)
    expected = fixed["consistency"] - np.linalg.norm([*arms, chi_square_arm])
    assert row["consistency_low"] == pytest.approx(expected, abs=1e-9)


def test_variance_between_forms_estimated_as_zero_is_not_assumed_to_be_zero():
    """Another form may differ even if four forms have equal accuracies."""
    correct = np.repeat((np.arange(60) < 36)[:, None], 4, axis=1)
    for form in range(4):
        # Each form flips three facts of either kind.
        flipped = [3 * form, 3 * form + 1, 3 * form + 2]
        correct[flipped, form], correct[np.add(flipped, 40), form] = False, True
    frame = long(correct)
    fixed, sample = (forms_by(frame, forms=one).iloc[0] for one in ("fixed", "sample"))
    assert correct.mean(axis=0).std() == 0.0
    assert sample["consistency_low"] < fixed["consistency_low"] - 0.001


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("n_incorrect", [0, 2, 20])
@pytest.mark.parametrize("is_correct", [True, False])
def test_forms_near_an_end_have_intervals_that_include_the_estimate(n_incorrect, is_correct):
    correct = np.full((50, 4), is_correct)
    correct[:n_incorrect, 0] = not is_correct
    row = forms_by(long(correct), forms="sample").iloc[0]
    for name in ("accuracy", "consistency", "all_correct", "within_item_share"):
        low, value, high = (row[f"{name}{end}"] for end in ("_low", "", "_high"))
        assert np.isnan(low) or low <= value <= high
        assert np.isnan(value) or not np.isnan(low) or name in row["not_inferred"]
    assert row["accuracy_low"] <= row["accuracy"] <= row["accuracy_high"]


def test_all_correct_of_is_the_proportion_of_draws():
    frame = crossed(np.random.default_rng(8), 60, 5)
    right = frame.pivot(index="item", columns="form", values="correct").to_numpy()
    draws = [right[:, [one, two]].all(axis=1).mean() for one in range(5) for two in range(one)]

    table = forms_by(frame, of=2)

    assert table["all_correct_of"].iloc[0] == pytest.approx(np.mean(draws))
    assert forms_by(frame, of=5)["all_correct_of"].iloc[0] == pytest.approx(
        right.all(axis=1).mean()
    )


test_forms_by_rejects_bad_input = refusals(
    lambda frame, change, options: forms_by(change(frame), **({"by": "model"} | options)),
    (lambda f: pd.concat([f, f.iloc[[0]]]), {}, "item='Q0', form=0 occurs more than once"),
    (lambda f: f, {"by": ()}, "item='Q0', form=0 occurs more than once in the frame"),
    (lambda f: f, {"of": 0}, "of must be at least 1"),
    (lambda f: f, {"forms": "all"}, "forms must be"),
    (lambda f: f, {"repeat": "subject_id", "of": 2}, "repeat excludes of"),
    fixture="frame",
)


def test_several_columns_may_identify_a_fact(frame):
    """Two models in one group: the model is part of the fact."""
    assert forms_by(frame, item=["item", "model"])["n_items"].tolist() == [300]
    with pytest.raises(ColumnNotFoundError, match="'nowhere' not found; pass"):
        forms_by(frame, item=["item", "nowhere"])
