import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning
from surface_consistency.metrics import corrected_frequency_analysis, frequency_analysis

COLUMNS = {"entity_frequency": ("e1", "e2"), "surface_frequency": ("s1", "s2")}


def world(driver, seed=0, n_entities=13_334):
    """Surface instances whose accuracy rises with one of two true frequencies, counted twice."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(np.arange(n_entities), 3)
    share = rng.dirichlet([2, 0.5, 0.5], n_entities)
    surface = rng.poisson(np.exp(rng.normal(6, 2, (n_entities, 1))) * share).ravel()
    total = np.bincount(entity, surface)[entity]
    logit = 0.3 * (np.log1p(surface if driver == "surface" else total) - 4)
    frame = pd.DataFrame(
        {
            "fact_id": entity,
            "is_canonical": np.arange(entity.size) % 3 == 0,
            "accuracy": rng.binomial(2, 1 / (1 + np.exp(-logit))) / 2,
            "e": total,
            "s": surface,
        }
    )
    recalls = [rng.beta(0.9, 1.1, entity.size) for _ in "12"]
    false = [
        np.where(rng.random(entity.size) < 0.2, np.exp(rng.normal(3, 1.5, entity.size)), 0.0)
        for _ in "12"
    ]
    # Two linkers with mistakes of their own, and two halves of the corpus under the first linker.
    half = rng.binomial(surface, 0.5)
    for name, true, recall, wrong in (
        ("1", surface, recalls[0], false[0]),
        ("2", surface, recalls[1], false[1]),
        ("h1", half, recalls[0], false[0] / 2),
        ("h2", surface - half, recalls[0], false[0] / 2),
    ):
        frame[f"s{name}"] = rng.binomial(true, recall) + rng.poisson(wrong)
        frame[f"e{name}"] = np.bincount(entity, frame[f"s{name}"])[entity]
    return frame


def estimates(frame, **options):
    rows = corrected_frequency_analysis(frame, **(COLUMNS | options))
    return rows.set_index(["subset", "statistic"])


@pytest.fixture(scope="module")
def surface_world():
    return world("surface")


@pytest.mark.parametrize("subset", ["overall", "redirect", "redirect_high_frequency"])
def test_errors_of_counts_feign_an_entity_effect_and_the_correction_takes_it_away(
    surface_world, subset
):
    # FREQUENCY: with true counts about 0, with linked ones 0.045 to 0.125, whatever the threshold.
    true = frequency_analysis(surface_world, entity_frequency="e", surface_frequency="s")
    true = true.set_index(["subset", "statistic"])["estimate"]
    found = estimates(surface_world)

    entity = found.loc[(subset, "entity_given_surface")]
    surface = found.loc[(subset, "surface_given_entity")]
    assert abs(true[subset, "entity_given_surface"]) < 0.012
    assert 0.045 < entity["plain"] < 0.125
    assert abs(entity["estimate"]) < 0.015
    assert entity["estimate_low"] < 0 < entity["estimate_high"]
    assert abs(surface["estimate"] - true[subset, "surface_given_entity"]) < abs(
        surface["plain"] - true[subset, "surface_given_entity"]
    )


def test_an_entity_effect_that_is_there_stays():
    found = estimates(world("entity")).loc["overall"]

    assert found.loc["entity_given_surface", "estimate_low"] > 0.19
    assert abs(found.loc["surface_given_entity", "estimate"]) < 0.012


def test_halves_of_a_corpus_share_the_mistakes_of_their_linker(surface_world):
    halves = {"entity_frequency": ("eh1", "eh2"), "surface_frequency": ("sh1", "sh2")}

    row = estimates(surface_world, **halves).loc[("overall", "entity_given_surface")]

    assert row["reliability"] > 0.98
    assert row["estimate"] > 0.04


def test_halves_of_a_corpus_correct_for_sampling():
    frame = world("surface", seed=4)
    rng = np.random.default_rng(1)
    for half in "12":
        frame[f"s{half}"] = rng.binomial(frame["s"], 0.01)
        frame[f"e{half}"] = frame.groupby("fact_id")[f"s{half}"].transform("sum")

    row = estimates(frame).loc[("overall", "entity_given_surface")]

    assert row["plain"] > 0.015
    assert abs(row["estimate"]) < row["plain"] / 2


def test_equal_measurements_change_nothing(surface_world):
    frame = surface_world.head(3_000).assign(e2=lambda f: f["e1"], s2=lambda f: f["s1"])
    plain = frequency_analysis(frame, entity_frequency="e1", surface_frequency="s1")
    plain = plain.set_index(["subset", "statistic"])

    found = estimates(frame)

    shared = plain.loc[found.index]
    for column in ("estimate", "estimate_low", "estimate_high", "p_value"):
        np.testing.assert_allclose(found[column], shared[column], atol=1e-9)
    np.testing.assert_allclose(found["plain"], found["estimate"], atol=1e-9)
    assert found["n"].tolist() == shared["n"].tolist()
    assert found["n_below"].tolist() == shared["n_below"].tolist()
    np.testing.assert_allclose(found["reliability"], 1.0)


def test_the_order_of_measurements_is_of_no_matter(surface_world):
    frame = surface_world.head(3_000)
    turned = {"entity_frequency": ("e2", "e1"), "surface_frequency": ("s2", "s1")}

    pd.testing.assert_frame_equal(estimates(frame), estimates(frame, **turned))


def test_measurements_that_do_not_go_together_are_undefined():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 99, (60, 4)), columns=["e1", "e2", "s1", "s2"])
    frame = frame.assign(e2=1000 - frame["e1"], fact_id=frame.index, is_canonical=False)
    frame["accuracy"] = rng.random(60)

    with pytest.warns(UndefinedMetricWarning, match="corrected correlations are undefined"):
        found = estimates(frame)

    assert np.isnan(found.loc[("overall", "entity"), "estimate"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"surface_frequency": ("s1", "s1")}, ValueError, "two columns each, four in all"),
        ({"entity_frequency": ("e1", "no")}, ColumnNotFoundError, "column 'no' is not in"),
        ({"transform": "root"}, ValueError, "transform must be 'log' or 'log1p'"),
        ({"high_frequency_above": -1}, ValueError, "high_frequency_above must be at least 0"),
        ({"missing": "zero"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_corrected_frequency_analysis_rejects_bad_arguments(surface_world, options, error, message):
    with pytest.raises(error, match=message):
        estimates(surface_world.head(30), **options)


@pytest.mark.parametrize(
    "change",
    [{"accuracy": 0.1}, {"s2": 7}, {"e1": 0}, {"is_canonical": True}],
    ids=["constant accuracy", "constant count", "zeros alone", "no redirects"],
)
def test_what_cannot_be_corrected_is_undefined(surface_world, change):
    frame = surface_world.head(600).assign(**change)

    with pytest.warns(UndefinedMetricWarning, match="corrected correlations are undefined"):
        found = estimates(frame)

    subset = "redirect" if "is_canonical" in change else "overall"
    row = found.loc[(subset, "surface_given_entity")]
    assert np.isnan(row[["estimate", "estimate_low", "p_value"]].astype(float)).all()


def test_one_cluster_has_no_intervals(surface_world):
    found = estimates(surface_world.head(600).assign(fact_id=1))

    assert found["estimate"].notna().all()
    assert found["estimate_low"].isna().all()
