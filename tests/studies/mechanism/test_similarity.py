"""Similarities of aligned and misaligned pairs."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.studies.mechanism.similarity import ALL_MODELS, FEATURES, difference_rows


def test_differences_between_models_are_not_differences_between_pairs():
    """A difference between models is not a difference of aligned and misaligned pairs."""
    rng = np.random.default_rng(2)
    model, topic = np.repeat(["a", "b"], 400), np.tile(np.repeat(np.arange(40), 10), 2)
    is_aligned = rng.random(800) < np.where(model == "a", 0.15, 0.85)
    level = np.where(model == "a", 0.3, 0.6)
    frame = pd.DataFrame({name: level + rng.normal(0, 0.05, 800) for name in FEATURES})
    frame = frame.assign(
        model=model, cluster=topic, is_aligned=is_aligned, aggregation="transport", tokens="span"
    )

    rows = difference_rows(frame).set_index(["model", "feature"])

    together = rows.loc[ALL_MODELS]
    assert (together["aligned"] - together["misaligned"] > 0.15).all()
    assert together["difference"].abs().max() < 0.02
    assert (together["p_value"] > 0.01).all()


def test_model_with_one_class_has_no_difference():
    frame = pd.DataFrame({name: [0.1, 0.2, 0.3, 0.4] for name in FEATURES}).assign(
        model="a", cluster=range(4), is_aligned=True, aggregation="transport", tokens="span"
    )

    rows = difference_rows(frame)

    assert rows["difference"].isna().all()
    assert rows["aligned"].iloc[0] == pytest.approx(0.25)
