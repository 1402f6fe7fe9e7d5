"""The linking probe end to end, on models with known answers."""

import hashlib
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine import report_runs, run_study, score_run
from surface_consistency.errors import DataError, RunError
from surface_consistency.models import FakeRunner, encoders
from surface_consistency.models.runner import Runner
from surface_consistency.plugins import importable
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.studies.linking.consistency import (
    LinkingConsistency,
    LinkingConsistencySettings,
)
from surface_consistency.studies.linking.data import linking_examples, word_vectors
from surface_consistency.studies.linking.settings import LinkingScoring, LinkingSettings
from surface_consistency.studies.linking.study import LinkingJudge, LinkingStudy, log_odds
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.text import tokenize

pytestmark = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")


@pytest.fixture(scope="module")
def data():
    return load_redirectqa("sample")


@pytest.fixture(scope="module")
def known(data):
    """Half of the true pairs of names, which the model links."""
    pairs = set(zip(data.pairs["surface"], data.pairs["canonical_surface"], strict=True))
    return {pair for pair in pairs if hashlib.md5("".join(pair).encode()).digest()[0] % 2}


class Linker(Runner):
    """Return log-odds of 3 for linked pairs and -3 for others, plus a constant bias."""

    name = "linker"

    def __init__(self, known, *, habit=0.0):
        self._known, self._habit = known, habit

    def fingerprint(self):
        return {"runner": self.name, "habit": self._habit}

    def generate(self, prompts, params):
        raise AssertionError("no text may be generated")

    def score(self, requests):
        for request in requests:
            question = request.context.rpartition("Q: ")[2]
            knows = any(
                question.startswith((f"Is {redirect} ", f"Does {canonical} ", f"Is {canonical} "))
                and redirect in question
                and canonical in question
                for redirect, canonical in self._known
            )
            odds = self._habit + (3.0 if knows else -3.0) * ("N/A" not in question)
            word = request.continuation.strip()
            value = (odds if word.casefold() == "yes" else 0.0) - (word[0].isupper()) - 20.0
            yield ScoredText(request_id=request.id, token_ids=(1,), log_probabilities=(value,))


def run(data, runner, out, **settings):
    chosen = LinkingSettings(**{"repeat": 10} | settings)
    return run_study(LinkingStudy(), data, runner, out, model="m", settings=chosen)


@pytest.fixture(scope="module")
def linked(data, known, tmp_path_factory):
    folder = run(data, Linker(known, habit=5.0), tmp_path_factory.mktemp("linking") / "run")
    score_run(folder)
    return folder


def test_calibration_removes_a_constant_bias_from_log_odds(linked, known):
    outcomes = pd.read_parquet(linked.outcomes)
    # A bias of 5 raises all log-odds above 0: every example is affirmed.
    assert (outcomes["first_prediction"] == "yes").all()
    assert (outcomes["first_log_odds"] > 0).all()
    calibrated = outcomes["first_calibrated_log_odds"]
    assert np.allclose(calibrated.abs(), 3.0)
    names = zip(outcomes["second_surface"], outcomes["first_surface"], strict=True)
    expected = np.array([pair in known for pair in names])
    true = (outcomes["kind"] == "positive").to_numpy()
    assert ((calibrated > 0).to_numpy()[true] == expected[true]).all()
    assert ((calibrated > 0).to_numpy()[~true]).mean() < 0.03


def test_run_is_scored_again_by_calibrated_log_odds(linked, data, known, tmp_path):
    study = LinkingStudy()
    folder = run(data, Linker(known, habit=5.0), tmp_path / "run", limit=20)
    before = score_run(folder, study=study)
    after = score_run(folder, study=study, scoring=LinkingScoring(calibrated=True))
    assert (before["first_prediction"] == "yes").all()
    assert (after["first_prediction"] == "no").any()
    tables = report_runs([folder.path], tmp_path / "report").tables
    orders = tables["linking_orders"].frame.set_index(["group", "label"])["yes_rate"]
    overall = tables["linking"].frame.set_index(["group", "label"]).loc[("all", "all")]
    # The table of orders has both kinds of log-odds; the finding has the scored ones.
    assert orders["redirect first", "as asked"] == 1.0 > orders["redirect first", "calibrated"]
    assert overall["yes_rate"] == orders["redirect first", "calibrated"]
    areas = tables["linking_orders"].frame.set_index(["group", "label"])["auc"]
    assert overall["auc"] == areas["redirect first", "calibrated"]
    plain = run(data, Linker(known), tmp_path / "plain", limit=20, calibrate=False)
    with pytest.raises(DataError, match=r"`calibrated` needs log-odds of the wordings with N/A"):
        score_run(plain, study=study, scoring=LinkingScoring(calibrated=True))
    assert score_run(plain, study=study)["first_calibrated_log_odds"].isna().all()


def words_of(*values):
    """Log-probabilities of words in the order of the options."""
    pairs = enumerate(values)
    return [ScoredText(request_id=str(n), log_probabilities=(value,)) for n, value in pairs]


def linking_targets(*values):
    """Make one true pair whose words have these log-probabilities."""
    row = {"prompt_id": "q1", "kind": "positive", "category": None, "order": "redirect_first"}
    return pd.DataFrame([{**row, "text": "yes", "scores": tuple(words_of(*values))}])


@pytest.mark.parametrize("values", [(-1.0,) * 3, (-1.0,) * 5])
def test_answers_with_scores_of_other_options_raise_an_error(values):
    """Three of four words must not be compared as if they were all."""
    with pytest.raises(DataError, match=r"'q1' contains log-probabilities of . options, .* has 4"):
        LinkingJudge({}).judge(linking_targets(*values))


def test_log_odds_sum_the_spellings_of_each_word():
    """log(0) - log(0) is NaN and not above 0."""
    assert log_odds(words_of(*np.log((0.3, 0.1, 0.15, 0.05)))) == pytest.approx(np.log(2.0))
    assert log_odds(words_of(-1.0, *(-math.inf,) * 3)) == math.inf
    assert math.isnan(log_odds(words_of(*(-math.inf,) * 4)))

    scored = LinkingJudge({}).judge(linking_targets(*(-math.inf,) * 4)).iloc[0]

    assert pd.isna(scored["correct"])
    assert scored["reason"] == "no log-odds: neither yes nor no has a probability"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        # " yes" and " Yes" are equally probable, which is not a tie of yes and no.
        ((-1.0, -1.0, -2.0, -3.0), True),
        # " yes" and " no" are equally probable, and the other spellings decide.
        ((-1.0, -4.0, -1.0, -2.0), False),
        # Both groups have the same probability.
        ((-1.0, -2.0, -2.0, -1.0), None),
    ],
)
def test_groups_of_spellings_are_compared_and_only_their_tie_is_a_tie(
    data, tmp_path, values, verdict
):
    """Log-probabilities of bfloat16 are often equal."""

    class Rounded(Linker):
        def score(self, requests):
            words = dict(zip((" yes", " Yes", " no", " No"), values, strict=True))
            for one in requests:
                value = words[one.continuation] if "N/A" not in one.context else -1.0
                yield ScoredText(request_id=one.id, token_ids=(1,), log_probabilities=(value,))

    folder = run(data, Rounded(set()), tmp_path / "run", limit=4, repeat=0)
    log = folder.read_answers([""])
    if verdict is None:
        assert set(log["finish_reason"]) == {"tie"}
        with pytest.raises(RunError, match="only errors such as 'tie: options are equally"):
            score_run(folder)
    else:
        outcomes = score_run(folder)
        assert set(log["finish_reason"]) == {"stop"}
        assert set(log["text"].str.strip().str.lower()) == {"yes" if verdict else "no"}
        is_true = outcomes["kind"] == "positive"
        assert (outcomes["first_correct"] == (is_true == verdict)).all()
        assert outcomes["first_calibrated_log_odds"].equals(outcomes["first_log_odds"])
    # An answer of an older run, whose single options were compared, is read in the same way.
    scored = LinkingJudge({}).judge(linking_targets(*values).assign(text=None)).iloc[0]
    assert scored["correct"] is pd.NA if verdict is None else scored["correct"] == verdict
    assert str(scored["reason"]).startswith("tie: options are") == (verdict is None)


def test_random_and_constant_answers_have_a_balanced_accuracy_of_one_half(data, tmp_path):
    words = {
        "coin": lambda p: "Yes." if hashlib.md5(p.text.encode()).digest()[0] % 2 else "no",
        "sayer": lambda p: " yes, it is",
    }
    for name, answer in words.items():
        folder = run(data, FakeRunner(answer), tmp_path / name, read="generate")
        outcomes = score_run(folder)
        frame = report_runs([folder.path], tmp_path / f"{name}-report").tables["linking"].frame
        row = frame.iloc[0]
        assert row["balanced_accuracy"] == pytest.approx(0.5, abs=0.06 if name == "coin" else 0)
        assert outcomes["first_log_odds"].isna().all()
        assert np.isnan(row["auc"])


def test_answers_that_are_neither_yes_nor_no_are_missing(data, tmp_path):
    def answer(prompt):
        return "perhaps" if "initialism" in prompt.text else "no"

    folder = run(data, FakeRunner(answer), tmp_path / "run", read="generate", repeat=0)
    with pytest.warns(match="neither yes nor no"):
        outcomes = score_run(folder)
    asked = outcomes["categories"].str[0] == "Redirects_from_initialisms"
    assert outcomes.loc[asked, "first_correct"].isna().all()
    assert outcomes.loc[~asked, "first_correct"].notna().any()


def test_entities_of_demonstrations_are_excluded_from_the_questions(data):
    study = LinkingStudy()
    plan = study.plan(data, LinkingSettings(shots=4))
    prompt = plan.groups[""].prompts[0]
    assert prompt.text.count("A: yes\n") == prompt.text.count("A: no\n") == 2
    shown = prompt.text.split("\n\n")[:4]
    calibration = plan.groups["calibration"].prompts[0].text.split("\n\n")
    assert calibration[:4] == shown
    assert re.fullmatch(r"Q: (Is|Does) (the name )?N/A .*\? A:", calibration[4])
    subjects = set(plan.items["subject_id"])
    assert len(subjects) < len(set(study.plan(data, LinkingSettings()).items["subject_id"]))
    assert not any(question in " ".join(plan.items["question"]) for question in shown)
    for settings, message in (
        ({"shots": 5_000}, "`shots` 5000 needs as many entities"),
        ({"neighbours": "near"}, "`neighbours` must be names, embedder, a text file"),
        ({"neighbours": "no.vec"}, "`neighbours` must be names, embedder, .*'no.vec'"),
    ):
        with pytest.raises(DataError, match=message):
            study.plan(data, LinkingSettings(**settings))


def test_words_without_probability_have_no_correctness_label(data, tmp_path):
    """A server or a masked vocabulary may return -inf for all words, which is not a denial."""

    class Masked(Linker):
        def score(self, requests):
            for score in super().score(requests):
                yield score.model_copy(update={"log_probabilities": (-math.inf,)})

    folder = run(data, Masked(set()), tmp_path / "run", limit=5)
    with pytest.raises(RunError, match=r"only errors such as 'tie: options are equally probable"):
        score_run(folder)


def name_lengths(names):
    """Return the lengths of names as vectors."""
    return np.array([[len(name)] for name in names], dtype=np.float32)


def test_neighbours_may_be_any_function_from_names_to_vectors(data):
    settings = LinkingSettings(neighbours=f"{__name__}:name_lengths", limit=20)
    with importable(f"{__name__}:name_lengths"):
        plan = LinkingStudy().plan(data, settings)
    semantic = plan.pairs[plan.pairs["kind"] == "semantic_negative"]
    true = plan.pairs[plan.pairs["kind"] == "positive"].drop_duplicates("source_id")
    true = true.set_index("source_id")["first_surface"]
    # The negative names the other entity first; its title is as long as the true one, or nearly.
    lengths = semantic["first_surface"].str.len()
    gaps = (lengths - semantic["source_id"].map(true).str.len()).abs()
    assert len(semantic) > 10
    assert gaps.median() == 0


@pytest.mark.parametrize("source", ["embedder", "words.vec"])
def test_neighbours_may_be_of_the_embedder_or_of_a_file(data, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = sorted({word for name in data.pairs["canonical_surface"] for word in tokenize(name)})
    lines = [f"{len(words)} 2", *(f"{word} {len(word)} {ord(word[0])}" for word in words)]
    Path("words.vec").write_text("\n".join(lines) + "\n", "utf-8")
    monkeypatch.setattr(encoders, "SentenceEncoder", lambda: SimpleNamespace(encode=name_lengths))

    pairs = LinkingStudy().plan(data, LinkingSettings(neighbours=source, limit=20)).pairs

    encode = name_lengths if source == "embedder" else word_vectors(source)
    made = linking_examples(data, encode=encode, limit=20)
    wanted, found = (
        frame[frame["kind"] == "semantic_negative"].set_index("source_id")[column].to_dict()
        for frame, column in ((made, "canonical"), (pairs, "first_surface"))
    )
    assert found == wanted


def test_examples_that_could_not_be_made_are_counted(data):
    plain = LinkingStudy().plan(data, LinkingSettings()).checks["examples"].iloc[0]
    shaped = LinkingSettings(surface_negative="other-entity-same-shape", wording="same-entity")
    plan = LinkingStudy().plan(data, shaped)
    assert plan.items["question"].str.contains("other name").all()
    assert not plan.pairs.duplicated(["source_id", "kind"]).any()
    other = plan.checks["examples"].iloc[0]
    assert (plain["pairs"], plain["without_surface_negative"]) == (191, 0)
    assert plain["asked_as_same_entity"] == 0
    assert plain["disputable"] > 20
    assert other["asked_as_same_entity"] == other["pairs"] == 191
    assert 0 < other["without_surface_negative"] < 60
    assert other["disputable"] == 0


def test_runs_of_other_studies_or_models_raise_an_error(linked, data, tmp_path):
    settings = RedirectQASettings(shots=0, repeat=0, limit=8)
    runner = FakeRunner(lambda prompt: "x")
    folder = run_study(
        RedirectQAStudy(), data, runner, tmp_path / "qa", model="other", settings=settings
    )
    score_run(folder)
    wrong, foreign = (
        {LinkingConsistency(): LinkingConsistencySettings(linking=(path,))}
        for path in (folder.path, linked.path)
    )
    with pytest.raises(ValueError, match="got runs of redirectqa"):
        report_runs([folder.path], tmp_path / "report", analyses=wrong)
    with pytest.raises(DataError, match=r"linking run of 'other' not found; .* a linking run: m"):
        report_runs([folder.path], tmp_path / "report", analyses=foreign)
