import json

import pandas as pd
import pytest

from surface_consistency.studies.unlearning.logs import read_logs
from surface_consistency.studies.unlearning.published import published_table
from tests.made_logs import MODELS, SIDES, published, tofu_log, write_log

FIELDS = {
    **{f"{of_set}_Q_A_ROUGE": "rougeL_recall" for of_set in ("retain", "ra", "wf")},
    **{f"{of_set}_Truth_Ratio": "score" for of_set in ("retain", "ra", "wf")},
    "retain_Q_A_Prob": "prob",
    "ra_Q_A_Prob_normalised": "prob",
    "wf_Q_A_Prob_normalised": "prob",
}
"""The nine parts of model utility, and where a question has its score."""


def recomputed(logs, reference=None):
    """What is computed of the questions, by model and metric."""
    rows = published_table(logs, reference).set_index(["model", "metric"])
    return rows.sort_index()


@pytest.mark.parametrize("model", MODELS)
def test_aggregates_are_those_that_the_logs_publish(data_files, tmp_path, model):
    """Up to the six digits that the numbers at hand have; forget quality depends on ranks alone."""
    names = dict(zip(SIDES, (f"{model}/full/forget10", f"{model}/retain90"), strict=True))
    paths = [write_log(tmp_path / side, tofu_log(data_files, model, side)) for side in SIDES]

    rows = recomputed(read_logs(paths), "retain90")

    metrics = ("extraction_strength", "exact_memorization", "forget_Q_A_ROUGE", "forget_Q_A_Prob")
    for side, name in names.items():
        expected = published(data_files)["summary"][name]
        for metric in metrics:
            row = rows.loc[side, metric]
            assert row["recomputed"] == pytest.approx(expected[metric], abs=5e-8)
            assert (row["published"], row["n"]) == (expected[metric], 400)
    quality = rows.loc["full", "forget_quality"]
    expected = published(data_files)["forget_quality"][f"{model}/forget10"]
    assert quality["recomputed"] == pytest.approx(expected, rel=1e-9)
    assert (quality["published"], quality["least_distance"]) == (expected, 0.0975)
    assert quality["lowest"] == pytest.approx(1.06e-239, rel=5e-3)


@pytest.fixture
def cut(data_files):
    """A real log of which every metric is cut to two questions."""
    return json.loads((data_files / "unlearning" / "TOFU_EVAL.json").read_text("utf-8"))


def test_utility_is_that_of_its_nine_parts(cut, tmp_path):
    rows = recomputed(read_logs([write_log(tmp_path, cut)]))["recomputed"]

    parts = []
    for metric, field in FIELDS.items():
        scores = [one[field] for one in cut[metric]["value_by_index"].values()]
        if "Truth" in metric:
            scores = [max(0.0, 1.0 - score) for score in scores]
        parts.append(sum(scores) / 2)
        assert rows["TOFU_EVAL", metric] == pytest.approx(parts[-1], rel=1e-12)
    assert rows["TOFU_EVAL", "model_utility"] == pytest.approx(9 / sum(1 / x for x in parts))


def test_privleak_is_held_against_the_reference(cut, tmp_path):
    """Of four pairs of a held-out text and one to forget, in so many the former scores higher."""
    other = json.loads(json.dumps(cut))
    other["forget_Q_A_ROUGE"]["value_by_index"]["0"]["generation"] = "Somebody else"
    for log, forgotten in ((cut, (0.2, 0.9)), (other, (0.2, 0.3))):
        for side, scores in (("forget", forgotten), ("holdout", (0.5, 0.1))):
            cells = {str(number): {"score": score} for number, score in enumerate(scores)}
            log["mia_min_k"][side] = {"value_by_index": cells | {"2": {"score": None}}}
    paths = [write_log(tmp_path / name, log) for name, log in (("a", cut), ("b", other))]

    rows = recomputed(read_logs(paths), "b")["recomputed"]

    assert (rows["a", "mia_min_k"], rows["b", "mia_min_k"]) == (0.25, 0.5)
    assert rows["a", "privleak"] == pytest.approx(50.0)
    assert rows["b", "privleak"] == 0.0


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_truth_ratios_are_those_of_either_name_without_gaps(data_files, tmp_path, missing):
    """Logs call it forget_truth_ratio, and configurations forget_Truth_Ratio."""
    logs = [tofu_log(data_files, MODELS[1], side) for side in SIDES]
    for log in logs:
        log["forget_truth_ratio"]["value_by_index"]["3"]["score"] = missing
    paths = [write_log(tmp_path / side, log) for side, log in zip(SIDES, logs, strict=True)]
    logs[0]["forget_Truth_Ratio"] = logs[0].pop("forget_truth_ratio")

    rows = recomputed(read_logs(paths), "retain90")
    write_log(tmp_path / "full", logs[0])
    again = recomputed(read_logs(paths), "retain90")

    quality = rows.loc["full", "forget_quality"]
    assert quality["n"] == rows.loc["full", "forget_truth_ratio"]["n"] == 399
    assert quality["recomputed"] < 1e-20
    pd.testing.assert_frame_equal(again, rows)
