import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import variance_shares_by
from surface_consistency.metrics.forms.variance_shares import SHARES, squared_totals
from tests.metrics.harness import long

NAMES = [f"{name}_share" for name in SHARES]


def crossed(rng, n_items=30, n_forms=4, n_samples=3, sds=(1.0, 0.5, 0.7, 0.6)):
    """Scores of items by forms by samples, with normal effects of given standard deviations."""
    item, form, both, rest = sds
    y = item * rng.normal(size=(n_items, 1, 1)) + form * rng.normal(size=(1, n_forms, 1))
    y = y + both * rng.normal(size=(n_items, n_forms, 1))
    y = y + rest * rng.normal(size=(n_items, n_forms, n_samples))
    return y, long(y)


def by_analysis_of_variance(y):
    """Brennan 2001, section 3.4: components from the mean squares of a balanced crossed design."""
    n, k, s = y.shape
    cells, items, forms, mean = y.mean(2), y.mean((1, 2)), y.mean((0, 2)), y.mean()
    of_items = k * s * ((items - mean) ** 2).sum() / (n - 1)
    of_forms = n * s * ((forms - mean) ** 2).sum() / (k - 1)
    rest = cells - items[:, None] - forms[None] + mean
    of_both = s * (rest**2).sum() / ((n - 1) * (k - 1))
    within = ((y - cells[..., None]) ** 2).sum() / (n * k * (s - 1))
    parts = [(of_items - of_both) / (k * s), (of_forms - of_both) / (n * s), (of_both - within) / s]
    return np.array([*parts, within])


def test_proportions_agree_with_the_analysis_of_variance():
    y, frame = crossed(np.random.default_rng(0))
    parts = by_analysis_of_variance(y)

    row = variance_shares_by(frame).iloc[0]

    np.testing.assert_allclose(row[NAMES].astype(float), parts / parts.sum())
    assert row["total"] == pytest.approx(parts.sum())


def test_planted_proportions_are_recovered_if_cells_are_missing():
    rng = np.random.default_rng(2)
    _, frame = crossed(rng, n_items=400, n_forms=60, n_samples=2)

    row = variance_shares_by(frame[rng.random(len(frame)) < 0.5]).iloc[0]

    squares = np.array([1.0, 0.25, 0.49, 0.36])
    np.testing.assert_allclose(row[NAMES].astype(float), squares / squares.sum(), atol=0.05)


def test_simulated_labels_are_divided_like_their_probabilities():
    rng = np.random.default_rng(3)
    latent, _ = crossed(rng, n_items=600, n_forms=40, n_samples=1)
    chance = 1 / (1 + np.exp(-2 * latent[..., 0]))
    y = rng.random((*chance.shape, 2)) < chance[..., None]
    row = variance_shares_by(long(y)).iloc[0]

    true = by_analysis_of_variance(np.stack([chance, chance], axis=2))[:3]
    true = np.array([*true, (chance * (1 - chance)).mean()])
    np.testing.assert_allclose(row[NAMES].astype(float), true / true.sum(), atol=0.02)


@pytest.mark.parametrize(
    ("n_samples", "options", "undefined"),
    [(3, {}, []), (1, {}, ["sampling_share"]), (3, {"templates": "item"}, ["form_share"])],
)
def test_proportions_add_up_to_one_whatever_is_missing(n_samples, options, undefined):
    """Without samples, interaction and sampling noise are one term."""
    rng = np.random.default_rng(4)
    _, frame = crossed(rng, n_samples=n_samples)
    row = variance_shares_by(frame[rng.random(len(frame)) < 0.6], **options).iloc[0]

    assert [name for name in NAMES if np.isnan(row[name])] == undefined
    assert row[NAMES].sum() == pytest.approx(1.0)


def test_templates_are_different_forms_in_each_relation():
    parts = [crossed(np.random.default_rng(seed))[1].assign(relation=seed) for seed in range(8)]
    frame = pd.concat([part.assign(item=part["item"] + 100 * part["relation"]) for part in parts])
    shared = variance_shares_by(frame).iloc[0]

    own = variance_shares_by(frame, templates="relation").iloc[0]

    assert own["n_forms"] == 32
    assert own["n_clusters"] == 8
    assert own["form_share"] > shared["form_share"] + 0.05


def test_interval_equals_the_jackknife_over_items():
    _, frame = crossed(np.random.default_rng(7), n_items=12)
    row = variance_shares_by(frame).iloc[0]

    left = [
        variance_shares_by(frame[frame["item"] != item])["item_share"].iloc[0] for item in range(12)
    ]
    error = np.sqrt(11 / 12 * ((left - np.mean(left)) ** 2).sum())
    assert row["item_share_high"] - row["item_share"] == pytest.approx(2.200985 * error, rel=1e-6)


def test_forms_as_a_sample_widen_every_interval():
    _, frame = crossed(np.random.default_rng(8))
    fixed, sample = (variance_shares_by(frame, forms=one).iloc[0] for one in ("fixed", "sample"))

    for name in NAMES:
        assert sample[f"{name}_low"] < fixed[f"{name}_low"]
        assert sample[f"{name}_high"] > fixed[f"{name}_high"]


@pytest.mark.parametrize("forms", ["fixed", "sample"])
def test_bounds_of_proportions_are_within_0_and_1(forms):
    for seed in range(20):
        _, frame = crossed(np.random.default_rng(seed), n_items=10, n_forms=4)
        row = variance_shares_by(frame, forms=forms).iloc[0]
        bounds = row[[f"{name}_{end}" for name in NAMES for end in ("low", "high")]]
        assert bounds.dropna().astype(float).between(0.0, 1.0).all()


def test_squared_totals_agree_with_a_loop():
    rng = np.random.default_rng(10)
    values = rng.normal(size=40)
    groups, clusters = rng.integers(0, 6, 40), np.r_[np.arange(5), rng.integers(0, 5, 35)]

    squares, sizes = squared_totals(values, groups, clusters)

    for place, kept in enumerate([clusters >= 0, *(clusters != one for one in range(5))]):
        totals = [values[kept & (groups == group)].sum() for group in range(6)]
        counts = [(kept & (groups == group)).sum() for group in range(6)]
        assert squares[place] == pytest.approx(np.square(totals).sum())
        assert sizes[place] == pytest.approx(np.square(counts).sum())
