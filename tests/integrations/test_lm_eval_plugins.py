"""Matching rules and rates over forms in lm-evaluation-harness."""

import itertools
import re
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from surface_consistency import match, metrics
from surface_consistency.errors import (
    DataError,
    DataWarning,
    MissingDependencyError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.integrations import extras, lm_eval_plugins as plugins
from surface_consistency.matching import RULES
from tests.integrations.guide import GUIDE, write_files

RATES = {"consistency", "flip_rate", "all_correct", "signed_alignment"}
PAIR = [("x", "a", True), ("x", "b", False)]


def entries():
    """Return the entry points of this package, by group and name."""
    return {
        (group, point.name): point
        for group in ("lm_eval.metrics", "lm_eval.aggregations", "lm_eval.filters")
        for point in entry_points(group=group)
        if point.value.startswith("surface_consistency")
    }


def form_scores(n_forms, seed):
    """Return random scores of 40 items, shuffled and as one row per item."""
    rng = np.random.default_rng(seed)
    correct = rng.random((40, n_forms)) < rng.random((40, 1))
    scores = [(item, f"f{form}", bool(right)) for (item, form), right in np.ndenumerate(correct)]
    return [scores[place] for place in rng.permutation(len(scores))], correct


def test_rates_of_two_forms_equal_the_metrics_of_arrays():
    scores, correct = form_scores(2, 1)
    first, second = correct.T

    assert plugins.consistency(scores) == pytest.approx(metrics.consistency(first, second))
    assert plugins.flip_rate(scores) == pytest.approx(metrics.flip_rate(first, second))
    signed = metrics.signed_alignment(first, second)
    assert plugins.signed_alignment(scores) == pytest.approx(signed)


def test_rates_of_several_forms_equal_a_count_of_all_pairs():
    scores, correct = form_scores(4, 2)

    agree = [a == b for row in correct for a, b in itertools.combinations(row, 2)]
    assert plugins.consistency(scores) == pytest.approx(np.mean(agree))
    assert plugins.all_correct(scores) == pytest.approx(correct.all(axis=1).mean())
    with pytest.raises(DataError, match="needs two forms and got 4"):
        plugins.signed_alignment(scores)


def test_items_without_two_scored_forms_give_a_warning():
    with pytest.warns(DataWarning, match="1 of 2 items have fewer than two scored forms and are"):
        assert plugins.flip_rate([*PAIR, ("y", "a", True)]) == 1
    with pytest.warns(UndefinedMetricWarning, match="excluded, so the rate is NaN"):
        assert np.isnan(plugins.consistency(PAIR[:1]))
    with pytest.warns(UnscoredWarning, match="1 of 4"):
        assert plugins.all_correct([*PAIR, ("x", "c", None), ("x", "d", True)]) == 0


@pytest.mark.parametrize("value", [1.0, ("x", True), "abc"])
def test_values_other_than_scores_of_forms_are_rejected(value):
    with pytest.raises(DataError, match=r"let process_results return \(item, form, correct\)"):
        plugins.consistency([*PAIR, value])


def test_error_of_a_missing_harness_names_the_extra(monkeypatch):
    def missing(name):
        raise extras.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "version", missing)
    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[lm-eval\]"):
        plugins.register.__wrapped__()
    with pytest.raises(AttributeError, match="has no attribute 'match_best'"):
        plugins.__getattr__("match_best")


@pytest.mark.parametrize("rule", RULES)
def test_maximum_of_the_metric_over_single_references_equals_the_rule(rule):
    pytest.importorskip("lm_eval")
    metric = getattr(plugins, f"match_{rule}")
    references = ["Tirana", "New York City", "the Beatles"]

    for prediction in (
        "It is Tirana.",
        "tirana",
        "York",
        "Beatles",
        "",
        "New York city",
        "Tiranas",
    ):
        scores = [metric([one], [prediction]) for one in references]
        assert any(scores) == match(prediction, references, rule=rule).is_match
        assert set(scores) <= {0.0, 1.0}


def test_metric_rejects_options_and_values_that_are_not_text():
    pytest.importorskip("lm_eval")
    with pytest.raises(ValueError, match="match_popqa has no option 'ignore_case'"):
        plugins.match_popqa(references=["a"], predictions=["a"], ignore_case=True)
    with pytest.raises(ValueError, match=r"a prediction is \['a'\].*end filter_list with take_f"):
        plugins.match_popqa(references=["a"], predictions=[["a"]])
    with pytest.raises(ValueError, match="a reference is 1942; let doc_to_target return text"):
        plugins.match_popqa(references=[1942], predictions=["1942"])


def test_filter_extracts_the_answer_before_and_after_take_first():
    pytest.importorskip("lm_eval")
    answers = [["\n Paris\nQ: Who"], [" Rome \n"]]

    assert plugins.answer_span().apply(answers, []) == [[""], ["Rome"]]
    made = plugins.answer_span(region="first_text_line")
    assert made.apply([each[0] for each in answers], []) == ["Paris", "Rome"]
    replies = ["<think>Rome?</think>\n\nParis", "Rome?</think>Paris\nQ:", "<think>Paris"]
    assert plugins.answer_span().apply([replies], []) == [["Paris", "Paris", ""]]
    with pytest.raises(ValueError, match="region"):
        plugins.answer_span(region="line")


def test_entry_points_equal_the_registered_functions():
    pytest.importorskip("lm_eval")
    from lm_eval.api.metrics import mean
    from lm_eval.api.registry import get_metric, get_metric_aggregation, is_higher_better

    named = {f"match_{rule}" for rule in RULES}
    by_group = {group: {n for g, n in entries() if g == group} for group, _ in entries()}
    assert by_group == {
        "lm_eval.metrics": named,
        "lm_eval.aggregations": RATES,
        "lm_eval.filters": {"answer_span"},
    }, "reinstall the package after a change of entry points in pyproject.toml"
    for (group, name), point in entries().items():
        loaded = point.load()
        if group != "lm_eval.filters":  # The harness compares both when the metric is registered.
            assert point.value == f"{loaded.__module__}:{loaded.__qualname__}"
        if group == "lm_eval.metrics":
            assert (get_metric(name), get_metric_aggregation(name)) == (loaded, mean)
            assert is_higher_better(name) is True


def test_functions_of_the_guide_are_entry_points():
    found = re.findall(
        r"!function (surface_consistency\S+)\.(\w+)$", GUIDE.read_text("utf-8"), re.M
    )

    assert len(found) == 6
    assert {f"{module}:{name}" for module, name in found} <= {p.value for p in entries().values()}


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)
def test_tasks_of_the_guide_equal_the_metrics(tiny_model: Path, tmp_path: Path, monkeypatch):
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    found = lm_eval.simple_evaluate(
        model="hf",
        model_args={"pretrained": str(tiny_model), "dtype": "float32"},
        tasks=["capitals", "capitals_forms"],
        task_manager=TaskManager(include_path=".", include_defaults=False),
        device="cpu",
        batch_size=16,
        bootstrap_iters=10,
    )

    samples = found["samples"]["capitals"]
    correct = {
        rule: [
            match(sample["resps"][0][0].split("\n")[0], sample["doc"]["references"], rule=rule)
            for sample in samples
        ]
        for rule in ("popqa", "squad_em")
    }
    by_rule, numbers = found["results"]["capitals"], found["results"]["capitals_forms"]
    for rule, matches in correct.items():
        accuracy = np.mean([found.is_match for found in matches])
        assert by_rule[f"match_{rule},first_line"] == pytest.approx(accuracy)
    first, second = np.reshape([found.is_match for found in correct["popqa"]], (-1, 2)).T
    for name in ("consistency", "flip_rate", "signed_alignment"):
        expected = getattr(metrics, name)(first, second)
        assert numbers[f"{name},first_line"] == pytest.approx(expected)
    assert 0.1 < numbers["accuracy,first_line"] < 0.9
    assert 0.1 < numbers["consistency,first_line"] < 0.9
