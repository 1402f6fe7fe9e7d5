"""Logs that inspect_ai writes in these tests: errors, retries, edits, epochs and grades."""

import gc
from pathlib import Path
from typing import ClassVar

import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.measures import accuracy
from surface_consistency.analysis.settings import ComparisonSettings
from surface_consistency.engine.compare.results_report import ComparisonReport
from surface_consistency.errors import DataError
from surface_consistency.results.frame import read_results

pytest.importorskip("inspect_ai")

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, edit_score, invalidate_samples, write_eval_log
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import Score, ScoreEdit, match, mean, scorer
from inspect_ai.solver import solver

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

N_ITEMS = 8
CRASHES = (2, 5)
BY = ProvenanceData(author="a", reason="leaked")


class CountingAPI(ModelAPI):
    """Answers item i correctly in its first i % 5 requests."""

    n_requests: ClassVar[dict[int, int]] = {}
    can_crash: ClassVar[bool] = False

    async def generate(self, input, tools, tool_choice, config):
        number = int(input[-1].text.split()[-1])
        n_before = self.n_requests.get(number, 0)
        self.n_requests[number] = n_before + 1
        return ModelOutput.from_content("c", f"town {number if n_before < number % 5 else 99}")

    async def count_tokens(self, input, config=None):
        return 1

    count_text_tokens = count_tokens


@modelapi(name="counting")
def counting_api():
    return CountingAPI


@solver
def answering():
    async def solve(state, generate):
        state = await generate(state)
        if CountingAPI.can_crash and state.sample_id in CRASHES:
            raise RuntimeError("tool crashed")
        return state

    return solve


@scorer(metrics=[])
def words():
    async def score(state, target):
        return Score(value=("CORRECT", "INCORRECT", "NOT_ATTEMPTED")[state.sample_id % 3])

    return score


@scorer(metrics=[])
def letters():
    async def score(state, target):
        return Score(value="ABCDF"[state.sample_id % 5])

    return score


@scorer(metrics=[mean()])
def fragile():
    async def score(state, target):
        if state.sample_id in CRASHES:
            raise RuntimeError("judge is down")
        return Score(value=1.0)

    return score


@inspect_ai.task
def towns(scorers):
    return inspect_ai.Task(
        dataset=[
            Sample(id=n, input=f"Which town is the seat of county {n}", target=f"town {n}")
            for n in range(N_ITEMS)
        ],
        solver=answering(),
        scorer=[SCORERS[name]() for name in scorers],
    )


SCORERS = {one.__name__: one for one in (match, words, letters, fragile)}


@pytest.fixture(scope="module", autouse=True)
def _close_files():
    """Collect files that the tool leaves open, while its warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture
def evaluate(tmp_path):
    """Run the task; each run has its own folder."""

    def evaluate(name, scorers, *, crashes=False, **options):
        CountingAPI.n_requests, CountingAPI.can_crash = {}, crashes
        how = {"display": "none", "max_samples": 1, "log_dir": str(tmp_path / name)} | options
        args = {"scorers": [one.__name__ for one in scorers]}
        (log,) = inspect_ai.eval(towns(**args), model="counting/model", **how)
        return log

    return evaluate


def location(log):
    return Path(log.location.removeprefix("file://"))


def means(sources, **settings):
    """The mean score of each model by each metric, and the sentences of failures."""
    compared = compare_results(sources, settings=ComparisonSettings(**settings))
    found = {
        (name, row["model"]): row["mean"]
        for name, one in compared.metrics.items()
        for row in one.models.to_dict("records")
    }
    return found, compared


def logged(log):
    """The value of each scorer and reducer in the log."""
    return {
        (one.name, one.reducer): next(iter(one.metrics.values())).value
        for one in log.results.scores
    }


def test_epochs_are_reduced_by_the_reducer_of_the_log(evaluate):
    reducers = ["max", "median", "mode", "at_least_2", "pass_at_2", "pass_k_2", "mean"]
    log = evaluate("epochs", [match], epochs=inspect_ai.Epochs(4, reducers))
    expected = logged(log)
    assert len({*expected.values()}) > 4

    for name in reducers:
        log.eval.config.epochs_reducer = [name]
        found, compared = means({"m": log})
        assert found["match", "m"] == pytest.approx(expected["match", name])
        frame = accuracy(log, repeat="repeat" if name == "mean" else None).to_frame()
        assert frame["accuracy"].tolist() == [pytest.approx(expected["match", name])]
        assert any(f"reduces its 4 epochs by {name}, " in note for note in compared.notes) == (
            name != "mean"
        )
        # Of 4 epochs 0, 1, 2, 3, 4, 0, 1, 2 are correct; 17 of 48 pairs of epochs differ.
        assert compared.noise["flip_rate"].tolist() == [pytest.approx(17 / 48)]


def test_unused_reducers_are_reported(evaluate):
    log = evaluate("two", [match], epochs=inspect_ai.Epochs(4, ["mean", "max"]))

    found, compared = means({"m": log})

    assert found["match", "m"] == pytest.approx(logged(log)["match", "mean"])
    (note,) = compared.notes
    assert note == "m: the log also reduces 4 epochs by max; mean is used"
    assert "4 epochs by max; mean is used." in accuracy(log, repeat="repeat").note


def test_rules_score_every_epoch(evaluate):
    log = evaluate("rule", [match], epochs=inspect_ai.Epochs(4, "max"))

    found, compared = means({"m": log}, rule="exact")
    assert found == {("exact", "m"): 13 / 32}
    assert compared.notes[0].endswith("if a rule scores the answers, repeats are averaged")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (inspect_ai.Epochs(4, "mean"), "mean of the epochs"),
        (inspect_ai.Epochs(4, "pass_at_2"), "pass_at_2 of the epochs"),
        (inspect_ai.Epochs(2, "max"), "max of 2 epochs"),
        (None, "mean of the epochs"),
    ],
)
def test_logs_with_different_reducers_are_not_compared(evaluate, other, named):
    logs = {
        "a": evaluate("a", [match], epochs=inspect_ai.Epochs(4, "max")),
        "b": evaluate("b", [match], epochs=other),
    }

    with pytest.raises(DataError, match=f"match is the max of 4 epochs in a and the {named} in b"):
        means(logs)
    # Both remedies of the message work.
    assert ("exact", "b") in means(logs, rule="exact")[0]
    for log in logs.values():
        log.eval.config.epochs_reducer = ["mean"]
    assert means(logs)[0]["match", "a"] == 13 / 32


def test_samples_with_error_and_score_keep_the_score(evaluate):
    log = evaluate("scored", [match], crashes=True, score_on_error=True, fail_on_error=False)
    assert sum(sample.error is not None for sample in log.samples) == 2

    for missing in ("drop", "wrong", "raise"):
        found, compared = means(location(log), missing=missing)
        assert found == {("match", "counting/model"): logged(log)["match", None]}
        assert compared.notes[0].endswith(
            "2 of 8 samples ended with an error and were scored nevertheless; their scores count"
        )


def test_scores_before_a_failed_scorer_count(evaluate):
    log = evaluate("fragile", [match, fragile], fail_on_error=False)

    found, _ = means({"m": log})

    assert found == {(name, "m"): value for (name, _), value in logged(log).items()}
    assert set(found) == {("match", "m"), ("fragile", "m")}


def test_failed_samples_are_counted_by_kind(evaluate):
    log = evaluate("errors", [match], crashes=True, fail_on_error=False)
    log = invalidate_samples(log, [log.samples[0].uuid], BY)

    _, compared = means({"m": log})
    frame = compared.rows.set_index("item")
    sentence = "3 of 8 answers of m failed (1 invalidated sample, 2 errors) and have no score"
    assert compared.failed_answers == {"match": (sentence,)}
    assert f"{sentence}." in "".join(map(str, ComparisonReport(compared, "match").finding()))
    assert frame.loc["0", "error"] == "sample invalidated: leaked"
    assert frame.loc["2", "error"] == "RuntimeError('tool crashed')"
    assert frame.loc[["0", "2"], "prediction"].isna().all()

    _, compared = means({"m": log}, missing="wrong")
    assert compared.rows["score"].isna().sum() == 0
    assert "and count as incorrect" in compared.failed_answers["match"][0]
    with pytest.raises(DataError, match=r"3 of 8 answers of m failed .* choose drop or wrong"):
        means({"m": log}, missing="raise")


def test_edited_scores_count(evaluate):
    log = evaluate("edited", [match])
    edit_score(log, log.samples[0].id, "match", ScoreEdit(value="C", provenance=BY))

    assert means({"m": log})[0]["match", "m"] == logged(log)["match", None] == 0.875


def test_retry_replaces_the_log_that_it_completes(evaluate, tmp_path):
    stopped = evaluate("retried", [match], crashes=True)
    CountingAPI.can_crash = False
    (retry,) = inspect_ai.eval_retry(stopped, display="none", log_dir=str(tmp_path / "retried"))
    other = evaluate("other", [match])
    assert (stopped.status, retry.status) == ("error", "success")

    found, compared = means([location(stopped), location(other), location(retry)])
    assert sorted(model.partition(" ")[0] for _, model in found) == ["counting/model"] * 2
    assert {one.n_items for one in compared.metrics.values()} == {N_ITEMS}
    named = f"{location(stopped)}: {location(retry)} is a later attempt of the same task"
    assert compared.notes[0] == f"{named} and replaces it"

    # With user-defined names, both are models.
    both = {"stopped": location(stopped), "retry": location(retry)}
    results = read_results(both)
    assert results.frame["model"].unique().tolist() == ["stopped", "retry"]
    n = len(stopped.samples)
    status = f"the log has the status 'error' and contains {n} of 8 samples; `inspect eval-retry` "
    assert results.notes[0] == f"{location(stopped)}: {status}completes it"


def test_logs_of_two_runs_are_two_models_even_if_all_answers_are_equal(evaluate, tmp_path):
    one, other = (evaluate(name, [match]) for name in ("one", "other"))
    assert len(means([location(one), location(other)])[0]) == 2

    # The same run in two formats is one model.
    write_eval_log(one, str(location(one).with_suffix(".json")))
    assert len(means([location(one), location(one).with_suffix(".json")])[0]) == 1


def test_grades_in_words_are_read_as_numbers_and_letter_grades_are_not(evaluate):
    log = evaluate("grades", [words, letters])

    found, compared = means({"m": log})

    assert found == {("words", "m"): 3 / 8}
    graded, rejected = (note.partition(": ")[2] for note in compared.notes)
    assert graded == (
        "metric 'words' contains grades, read as CORRECT 1, INCORRECT 0, NOT_ATTEMPTED 0"
    )
    assert rejected.startswith("metric 'letters' contains the letter grade 'A', for which the file")

    # The reason is given also if nothing can be compared, and its remedy works.
    log = evaluate("letters", [letters])
    with pytest.raises(DataError, match=r"score the answers by `rule`.*; m: metric 'letters' con"):
        means({"m": log})
    assert means({"m": log}, rule="exact")[0] == {("exact", "m"): 0.75}


def test_samples_of_a_data_frame_keep_the_scores_of_errors(evaluate):
    from inspect_ai.analysis import samples_df

    log = evaluate("frame", [match], crashes=True, score_on_error=True, fail_on_error=False)
    frame = read_results(samples_df(str(location(log)), quiet=True)).frame

    assert frame["score"].mean() == logged(log)["match", None]
