"""Matching rules as a scorer of inspect_ai, and rates over forms for any scorer."""

import asyncio
import gc
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from surface_consistency import match as match_one, metrics
from surface_consistency.errors import (
    DataError,
    MissingDependencyError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.integrations import extras, inspect_scorers
from surface_consistency.matching.verdict_records import answer_span
from tests.integrations.guide import GUIDE, write_files

pytest.importorskip("inspect_ai")

import inspect_ai
from inspect_ai import Epochs, Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import SampleScore, Score, Target, accuracy, scorer
from inspect_ai.solver import generate

from surface_consistency.integrations.inspect_scorers import consistency, match

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def _collect_open_files():
    """Close files that inspect_ai leaves open while its warnings are ignored."""
    yield
    gc.collect()


def local(tiny_model: Path, folder: Path, **given):
    """Return arguments to evaluate the tiny model with 12 tokens per answer."""
    loaded = {"model_path": str(tiny_model), "device": "cpu"}
    model = {"model": "hf/local", "model_args": loaded, "max_tokens": 12}
    return {**model, "log_dir": str(folder / "logs"), "display": "none", **given}


def values(log, place=0):
    """Return the metrics of a log by name."""
    assert log.status == "success", log.error
    return {name: found.value for name, found in log.results.scores[place].metrics.items()}


def sample_score(number, value, **metadata):
    return SampleScore(score=Score(value=value), sample_id=number, sample_metadata=metadata)


def test_rates_and_intervals_equal_forms_by():
    rng = np.random.default_rng(3)
    rows = [(f"i{item}", form, f"t{item // 2}") for item in range(20) for form in "abc"]
    frame = pd.DataFrame(rows, columns=["item", "form", "topic"])
    frame["correct"] = rng.random(60) < np.repeat(rng.random(20), 3)
    scores = [
        sample_score(number, "C" if row.correct else "I", key=row.item, form=row.form, t=row.topic)
        for number, row in enumerate(frame.itertuples())
    ]

    numbers = consistency(item="key", cluster="t")(scores)

    row = metrics.forms_by(frame, cluster="topic").iloc[0]
    for end in ("", "_low", "_high"):
        assert numbers[f"consistency{end}"] == row[f"consistency{end}"]
        assert numbers[f"all_correct{end}"] == row[f"all_correct{end}"]
    flips = [numbers[f"flip_rate{end}"] for end in ("_low", "", "_high")]
    agree = [row[f"consistency{end}"] for end in ("_high", "", "_low")]
    assert flips == [1 - each for each in agree]
    assert flips == sorted(flips)
    assert (numbers["n_items"], numbers["n_single"], numbers["n_clusters"]) == (20, 0, 10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (sample_score(9, "C", item="x"), r"sample 9 has no metadata 'form'; .*Keys: item$"),
        (sample_score(9, "C"), r"sample 9 has no metadata 'item'; .*Keys: none$"),
        (sample_score(9, {"a": 1}, item="x", form="b"), r"sample 9 has the score {'a': 1}"),
        (sample_score(9, 1, item=1, form="b"), "item is text in some scores"),
        (sample_score(9, 1, item="x", form="a"), "item 'x' has 2 scores in form 'a'"),
    ],
)
def test_missing_metadata_and_ambiguous_scores_are_rejected(changed, message):
    with pytest.raises(DataError, match=message):
        consistency()([sample_score(8, "C", item="x", form="a"), changed])


@pytest.mark.parametrize("value", [0.5, "P", "good"])
def test_graded_scores_give_nan_and_a_warning_with_the_remedy(value):
    scores = [sample_score(n, value if n else "C", item="x", form=n) for n in range(2)]

    with pytest.warns(UndefinedMetricWarning, match=r"sample 1 has the score.*Epochs\(N, 'mode'\)"):
        numbers = consistency()(scores)
    assert np.isnan(
        [numbers["consistency"], numbers["flip_rate"], numbers["all_correct_low"]]
    ).all()
    assert numbers["n_items"] == 1


def test_a_sample_without_a_score_is_excluded():
    scores = [sample_score(n, "C", item=str(n // 2), form=n % 2) for n in range(8)]
    scores.append(sample_score(8, float("nan"), item="0", form=2))

    with pytest.warns(UnscoredWarning, match="1 of 9"):
        numbers = consistency()(scores)

    assert (numbers["consistency"], numbers["n_items"]) == (1.0, 4)


def test_items_in_a_single_form_give_nan_and_are_counted():
    numbers = consistency()([sample_score(n, n % 2, item=n, form="a") for n in range(3)])

    assert np.isnan(numbers["consistency"])
    assert (numbers["n_items"], numbers["n_single"]) == (0, 3)


@pytest.mark.parametrize(
    ("completion", "value"),
    [("<think>Paris?</think>Rome", "I"), ("<think>Rome?</think>Paris", "C"), ("<think>Paris", "I")],
)
def test_reasoning_is_excluded_from_the_scored_answer(completion, value):
    state = SimpleNamespace(output=SimpleNamespace(completion=completion))

    assert asyncio.run(match()(state, Target(["Paris"]))).value == value


def test_unknown_rules_and_regions_and_a_missing_inspect_ai_are_rejected(monkeypatch):
    with pytest.raises(ValueError, match="`rule` must be one of popqa"):
        match(rule="best")
    with pytest.raises(ValueError, match="region"):
        match(region="line")
    with pytest.raises(AttributeError, match="has no attribute 'score'"):
        inspect_scorers.__getattr__("score")

    def missing(name):
        raise extras.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "version", missing)
    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[inspect\]"):
        inspect_scorers.register.__wrapped__()


# stderr(cluster=) of inspect_ai 0.3.200 divides 0 by 0 if there is one cluster.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning:inspect_ai.scorer")
def test_task_of_the_guide_equals_the_metrics(tiny_model: Path, tmp_path: Path, monkeypatch):
    """The documented command then scores the log by another rule."""
    from inspect_ai._cli.main import inspect as command

    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    log = inspect_ai.eval("capitals.py", **local(tiny_model, tmp_path))[0]
    numbers = values(log)

    answers = [answer_span(sample.output.completion) for sample in log.samples]
    found = [
        match_one(*each) for each in zip(answers, (s.target for s in log.samples), strict=True)
    ]
    first, second = np.reshape([each.is_match for each in found], (-1, 2)).T
    assert numbers["consistency"] == pytest.approx(metrics.consistency(first, second))
    assert numbers["flip_rate"] == pytest.approx(metrics.flip_rate(first, second))
    assert numbers["all_correct"] == pytest.approx(np.mean(first & second))
    assert numbers["accuracy"] == pytest.approx(np.mean([first, second]))
    assert 0.1 < numbers["accuracy"] < 0.9
    assert 0.1 < numbers["consistency"] < 0.9

    [line] = re.findall(r"^inspect (score .*)$", GUIDE.read_text("utf-8"), re.MULTILINE)
    words = shlex.split(line)
    words[1] = log.location.removeprefix("file://")
    words += ["--action", "overwrite", "--output-file", "again.eval", "--display", "none"]
    command.main(words, standalone_mode=False)
    again = inspect_ai.log.read_eval_log("again.eval")
    assert again.results.scores[0].params == {"rule": "squad_em"}
    assert values(again)["n_items"] == numbers["n_items"]


@scorer(metrics=[accuracy()])
def by_epoch():
    """Form a is correct in every epoch, form b in the first `item` epochs."""

    async def score(state, target):
        is_correct = state.metadata["form"] == "a" or state.epoch <= state.metadata["item"]
        return Score(value="C" if is_correct else "I")

    return score


def test_epochs_reduced_by_mean_are_nan_and_by_mode_are_labels(tiny_model: Path, tmp_path: Path):
    labels = [{"item": item, "form": form} for item in range(4) for form in "ab"]
    asked = [Sample(input=str(number), metadata=each) for number, each in enumerate(labels)]
    task = Task(dataset=asked, solver=generate(), scorer=by_epoch(), metrics=[consistency()])
    how = local(tiny_model, tmp_path)

    with pytest.warns(UndefinedMetricWarning, match=r"has the score 0\.\d+; consistency is NaN"):
        by_mean = inspect_ai.eval(task, epochs=3, **how)[0]
    assert np.isnan(values(by_mean)["consistency"])

    again = inspect_ai.score(
        by_mean, by_epoch(), metrics=[consistency()], epochs_reducer="mode", display="none"
    )
    fresh = inspect_ai.eval(task, epochs=Epochs(3, "mode"), **how)[0]
    # Items 0 and 1 have form b correct in fewer than two of three epochs.
    assert [values(log, -1)["consistency"] for log in (again, fresh)] == [0.5, 0.5]
