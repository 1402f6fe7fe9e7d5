"""Multiple-choice reading of answers, for any study."""

import math

import pandas as pd
import pytest
from scipy import stats

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine import run_study, score_run
from surface_consistency.engine.choices import add_choices, reference_log_odds, whole_plan
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.settings import OptionSettings, StudyRecords
from surface_consistency.engine.study import make_plan
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RunnerError,
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.models import FakeRunner
from surface_consistency.models.options import MultipleChoiceRunner
from surface_consistency.models.stored_scores import StoredScores
from surface_consistency.schemas import (
    DataSource,
    GenerationParams,
    Message,
    PairedOutcome,
    Prompt,
    read_jsonl,
    write_jsonl,
)
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.made_scores import Scoring


def scorer(known, *, right=-0.1, wrong=-5.0):
    """Make a runner with one score for answers on known names and another for the rest."""

    def fields(request):
        question = request.context.rpartition("Q: ")[2]
        pairs = [(name in question, request.continuation == f" {answer}") for name, answer in known]
        value = right if (True, True) in pairs else wrong
        return {"token_ids": (1, 2), "log_probabilities": (value, -0.5)}

    return Scoring(fields)


def plan_of(rows, **columns):
    frame = pd.DataFrame(rows, columns=["target_id", "prompt_id", "item", "references"])
    target_ids = dict.fromkeys(("pair", "first_target", "second_target"), frame["target_id"])
    pairs = frame[["item"]].assign(**target_ids | columns)
    prompts = [Prompt(id=name, text=f"Q: {name}? A:") for name in frame["prompt_id"].unique()]
    data = DataSource(id="toy", revision=None, digest="0", n_questions=6)
    groups = {"": PromptGroup(prompts=prompts, params=GenerationParams())}
    return Plan(data=data, groups=groups, items=frame, pairs=pairs)


def options_of(plan, **settings):
    plan = add_choices(plan, OptionSettings(**settings))
    return {prompt.id: prompt.options for prompt in plan.groups[""].prompts}


def run_choices(runner, out, **settings):
    chosen = RedirectQASettings(**{"read": "multiple-choice", "options": 2, "repeat": 5} | settings)
    return run_study(
        RedirectQAStudy(), load_redirectqa("sample"), runner, out, model="m", settings=chosen
    )


ROWS = [
    ("t1", "q1", "f1", ["Rome", "Roma"]),
    ("t2", "q2", "f1", ["Rome", "Roma"]),
    ("t3", "q3", "f2", ["Paris"]),
    ("t4", "q4", "f3", ["roma"]),
    ("t5", "q5", "f4", ["Oslo"]),
    ("t6", "q6", "f5", ["Lima"]),
]


def test_prompts_of_a_fact_have_the_same_options():
    options = options_of(plan_of(ROWS), options=3)
    assert options["q1"] == options["q2"]
    assert all(len(of_prompt) == 3 == len(set(of_prompt)) for of_prompt in options.values())
    for _, prompt_id, _, answers in ROWS:
        assert f" {answers[0]}" in options[prompt_id]
    # Another spelling of an accepted answer is not an incorrect option.
    assert " roma" not in options["q1"]
    # Options depend on the seed.
    assert options_of(plan_of(ROWS), options=3) == options
    others = [options_of(plan_of(ROWS), options=3, seed=seed) for seed in range(1, 6)]
    assert any(other != options for other in others)


def test_incorrect_options_are_drawn_from_the_same_relation():
    plan = plan_of(ROWS, relation=["capital"] * 4 + ["port"] * 2)
    assert set(options_of(plan, options=2)["q5"]) == {" Oslo", " Lima"}
    with pytest.warns(SurfaceConsistencyWarning, match="^3 of 5 facts have fewer than 2 other ans"):
        filled = options_of(plan, options=3)
    assert set(filled["q1"]) >= {" Rome", " Paris"}
    assert set(filled["q5"]) > {" Oslo", " Lima"}
    few = r"'f1' has 3 other answers to choose from, and `options` 6 needs 5"
    with pytest.raises(DataError, match=few):
        options_of(plan, options=6)
    with pytest.raises(DataError, match=r"prompt 'q1' is about 2 facts.*`read=generate`"):
        options_of(plan_of([*ROWS, ("t7", "q1", "f5", ["Lima"])]))


def test_prompts_of_the_sample_have_four_options_that_a_limit_does_not_change():
    """Incorrect options are drawn from all data."""
    study, data, runner = RedirectQAStudy(), load_redirectqa("sample"), FakeRunner(lambda _: "x")

    def options(**settings):
        chosen = RedirectQASettings(read="multiple-choice", **settings)
        plan = make_plan(study, data, chosen, runner)
        with pytest.warns(SurfaceConsistencyWarning, match="answers of other relations are among"):
            plan = add_choices(plan, chosen, whole_plan(study, data, chosen))
        return {prompt.id: prompt.options for prompt in plan.groups[""].prompts}

    every, few = options(), options(limit=20)

    assert {len(of_prompt) for of_prompt in every.values()} == {4}
    assert 0 < len(few) < len(every)
    assert few == {name: every[name] for name in few}


def test_multiple_choice_scores_known_names_correct_and_ties_missing(tmp_path):
    asked_names = [
        item for item in load_redirectqa("sample").questions if item.surface.is_canonical
    ]
    known = {(item.surface.text, item.triple.answers[0]) for item in asked_names}
    folder = run_choices(scorer(known), tmp_path / "run")
    with pytest.warns(UnscoredWarning, match="options are equally probable"):
        score_run(folder)
    outcomes = pd.read_parquet(folder.outcomes)
    assert outcomes["first_correct"].all()
    named = [any(name in redirect for name, _ in known) for redirect in outcomes["second_surface"]]
    unknown = outcomes[[not known_name for known_name in named]]
    # Equally probable options have no correctness label.
    assert unknown["second_correct"].isna().all()
    manifest = folder.read_manifest()
    assert manifest.replies["tie"] == len(unknown) > 0
    assert manifest.settings["read"] == "multiple-choice"
    assert manifest.runner["option_score"] == "sum"


@pytest.mark.parametrize(("read", "share"), [("multiple-choice", 1.0), ("log-odds", 0.0)])
def test_log_odds_require_a_majority_unlike_multiple_choice(read, share, tmp_path):
    """With weights 3, 2 and 2 the first option is most probable without a majority."""
    known = {
        (item.surface.text, item.triple.answers[0]) for item in load_redirectqa("sample").questions
    }
    leans = scorer(known, right=math.log(3.0) - 5.0, wrong=math.log(2.0) - 5.0)
    folder = run_choices(leans, tmp_path / "run", read=read, options=3, repeat=0)

    outcomes = score_run(folder)

    assert outcomes["first_correct"].mean() == share
    assert outcomes["second_correct"].mean() == share
    odds = pd.read_csv(folder.path / "checks" / "log_odds.csv")
    assert odds["condition"].tolist()[2] == " − ".join(odds["condition"][:2])
    assert odds["log_odds"].tolist() == pytest.approx([math.log(3 / 4)] * 2 + [0.0])
    assert odds["log_odds_low"].isna().all()
    assert (odds["n_pairs"] == len(outcomes)).all()
    assert folder.read_manifest().runner.get("majority", False) == (read == "log-odds")


def log_odds(ahead, facts, first, second):
    """Compare log-odds of targets whose reference leads by given differences."""
    names = [str(n) for n in range(len(ahead))]
    prompts = [Prompt(id=name, text="a", options=(" Rome", " Oslo")) for name in names]
    scores = [
        tuple(ScoredText(request_id="0", log_probabilities=(v,)) for v in (odds - 4.0, -4.0))
        for odds in ahead
    ]
    targets = {"target_id": names, "prompt_id": names, "item": facts, "scores": scores}
    answered = pd.DataFrame(targets | {"references": [["Rome", "Roma"]] * len(names)})
    pairs = pd.DataFrame({"first_target": list(first), "second_target": list(second)})
    conditions = ("title", "redirect")
    return reference_log_odds(answered, pairs, prompts, conditions=conditions, cluster="item")


def test_log_odds_are_means_of_finite_pairs_by_condition():
    with pytest.warns(UndefinedMetricWarning, match="effective number of clusters 2, minimum 4"):
        table = log_odds([2.0, 0.5, 4.0, -math.inf], list("ffgg"), "020", "113")

    # The pair whose reference has probability 0 is excluded: its odds are not finite.
    assert table["n_pairs"].tolist() == [2, 2, 2]
    assert table["log_odds"].tolist() == pytest.approx([3.0, 0.5, 2.5])
    assert table["n_clusters"].tolist() == [2, 2, 2]
    # Two clusters are too few for an interval.
    assert table["log_odds_low"].isna().all()


def test_intervals_of_log_odds_equal_the_t_interval_over_facts():
    ahead = [0.5, 2.0, -1.0, 1.5, 3.0, 0.0]

    table = log_odds(ahead, list("abcdef"), "012345", "543210")

    # The differences are ((0.5 - 0) + (2 - 3) + (-1 - 1.5)) and their opposites, one pair per fact.
    for row, values in ((0, ahead), (2, [-0.5, 1.0, 2.5, -2.5, -1.0, 0.5])):
        expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        bounds = table.loc[row, ["log_odds_low", "log_odds_high"]].tolist()
        assert bounds == pytest.approx([expected.low, expected.high])


def test_stored_log_probabilities_reproduce_the_scores_of_a_run(tmp_path):
    """Stored scores are not repeated, since repeats would be identical."""
    known = {
        (item.surface.text, item.triple.answers[0])
        for item in load_redirectqa("sample").questions[::2]
    }
    first = run_choices(scorer(known), tmp_path / "run")
    path = tmp_path / "scores.jsonl"
    answers = first.read_answers([""])
    keys = {prompt.key: prompt.id for prompt in read_jsonl(first.prompts, Prompt)}
    stored = (
        score.model_copy(update={"request_id": f"{keys[key]}\n{score.request_id}"})
        for key, scores in zip(answers["prompt_key"], answers["scores"], strict=True)
        for score in scores
    )
    write_jsonl(path, stored)

    again = run_choices(StoredScores(path), tmp_path / "again")

    columns = ["pair", "first_correct", "second_correct"]
    found, expected = (score_run(folder)[columns] for folder in (again, first))
    pd.testing.assert_frame_equal(found, expected)
    assert first.log("", repeat=True).is_file()
    assert not again.log("", repeat=True).exists()


@pytest.mark.parametrize(
    ("runner", "settings", "error", "message"),
    [
        (FakeRunner(lambda prompt: "x"), {}, RunnerError, "does not define `score`"),
        (scorer(set()), {"reasoning_opened": True}, ValueError, r"is for generated answers"),
        (scorer(set()), {"max_reasoning_tokens": 9}, ValueError, r"generated answers.*`read=gener"),
    ],
)
def test_invalid_multiple_choice_settings_are_rejected_before_any_file_is_written(
    tmp_path, runner, settings, error, message
):
    """An option without a closing tag would be unclosed reasoning."""
    with pytest.raises(error, match=message):
        run_choices(runner, tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


class Renders(Scoring):
    """A runner whose chat template ends with the given text."""

    def __init__(self, end):
        super().__init__(lambda request: {"log_probabilities": (-5.0,)})
        self._end = end

    def render(self, prompt):
        return f"Q: {prompt.messages[-1].content}{self._end}"


def test_options_after_an_opening_reasoning_tag_are_rejected():
    turns = (Message(role="user", content="Capital of Italy?"),)
    prompts, params = [Prompt(id="q", messages=turns, options=("Rome", "Oslo"))], GenerationParams()
    opened = MultipleChoiceRunner(Renders("<assistant><think>\n"))
    closed = MultipleChoiceRunner(Renders("<assistant><think>\n\n</think>\n"))

    with pytest.raises(RunnerError, match=r"opens reasoning before the answer.*`read=generate`"):
        list(opened.generate(prompts, params))
    # Its prompt is scored; both options are equally probable.
    assert [one.finish_reason for one in closed.generate(prompts, params)] == ["tie"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"relatoin": "r"}, r"column 'relatoin' is not a field of RedirectO.*mean 'relation'"),
        ({"relation": 5}, r"column 'relation' has values that RedirectOutcome does not allow"),
        ({"third_target": "nix"}, r"'third_target' has 'nix', which is not a target_id"),
        ({"item": 1}, r"the pairs of a plan: column 'item' has values that PairRow does not allo"),
    ],
)
def test_undeclared_or_invalid_columns_are_rejected_before_any_prompt(columns, message):
    class Planned(RedirectQAStudy):
        def plan(self, data, settings, *, runner=None):
            return plan_of(ROWS, **columns)

    with pytest.raises(DataError, match=message):
        make_plan(Planned(), None, OptionSettings())


def test_an_outcome_field_without_a_column_is_rejected_before_any_prompt():
    class Mooded(PairedOutcome):
        mood: str

    class Planned(RedirectQAStudy):
        design = RedirectQAStudy.design.model_copy(update={"groupings": {}})
        records = StudyRecords(outcome=Mooded)

        def plan(self, data, settings, *, runner=None):
            return plan_of(ROWS)

    with pytest.raises(ColumnNotFoundError, match=r"pairs of a plan: .*'mood' of Mooded"):
        make_plan(Planned(), None, OptionSettings())


def test_items_without_lists_of_references_or_required_columns_are_rejected():
    items = pd.DataFrame({"target_id": ["t"], "prompt_id": ["q"]})
    with pytest.raises(DataError, match=r"the items .*column 'references' must contain lists"):
        plan_of([("t1", "q1", "f1", "Rome")])
    with pytest.raises(ColumnNotFoundError, match="no column 'references', 'item' of ItemRow"):
        Plan(data=None, groups={}, items=items, pairs=pd.DataFrame())
