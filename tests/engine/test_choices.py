"""Answers read as multiple choice, by any study."""

import math

import pandas as pd
import pytest
from scipy import stats

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.engine import run_study, score_run
from surface_consistency.engine.choices import add_choices, reference_log_odds
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.settings import OptionSettings
from surface_consistency.engine.study import make_plan
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RunnerError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.models import FakeRunner, StoredScores
from surface_consistency.models.options import MultipleChoiceRunner
from surface_consistency.models.runner import Runner
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


class Knows(Runner):
    """Gives the reference of a known name probability, and nothing any other option."""

    name = "knows"

    def __init__(self, known):
        self._known = known

    def fingerprint(self):
        return {"runner": self.name}

    def generate(self, prompts, params):
        raise AssertionError("nothing is to be written")

    def score(self, requests):
        for request in requests:
            question = request.context.rpartition("Q: ")[2]
            knows = any(
                name in question and request.continuation == f" {answer}"
                for name, answer in self._known
            )
            yield ScoredText(
                request_id=request.id,
                token_ids=(1, 2),
                log_probabilities=(-0.1 if knows else -5.0, -0.5),
            )


def plan_of(rows, **columns):
    frame = pd.DataFrame(rows, columns=["target_id", "prompt_id", "fact_id", "answers"])
    pairs = pd.DataFrame(
        {
            "pair_id": frame["target_id"],
            "fact_id": frame["fact_id"],
            "first_target": frame["target_id"],
            "second_target": frame["target_id"],
        }
    ).assign(**columns)
    prompts = [Prompt(id=name, text=f"Q: {name}? A:") for name in frame["prompt_id"].unique()]
    return Plan(
        data=DataSource(id="toy", revision=None, digest="0", n_questions=6),
        groups={"": PromptGroup(prompts=prompts, params=GenerationParams())},
        items=frame,
        pairs=pairs,
    )


def options_of(plan):
    return {prompt.id: prompt.options for prompt in plan.groups[""].prompts}


ROWS = [
    ("t1", "q1", "f1", ["Rome", "Roma"]),
    ("t2", "q2", "f1", ["Rome", "Roma"]),
    ("t3", "q3", "f2", ["Paris"]),
    ("t4", "q4", "f3", ["roma"]),
    ("t5", "q5", "f4", ["Oslo"]),
    ("t6", "q6", "f5", ["Lima"]),
]


def test_a_fact_has_the_same_options_under_all_its_names():
    options = options_of(add_choices(plan_of(ROWS), OptionSettings(options=3)))
    assert options["q1"] == options["q2"]
    assert all(len(of_prompt) == 3 == len(set(of_prompt)) for of_prompt in options.values())
    for _, prompt_id, _, answers in ROWS:
        assert f" {answers[0]}" in options[prompt_id]
    # Another spelling of an accepted answer is no wrong option.
    assert " roma" not in options["q1"]


def test_options_depend_on_the_seed_and_not_on_the_order_of_facts():
    settings = OptionSettings(options=3)
    forward = options_of(add_choices(plan_of(ROWS), settings))
    again = options_of(add_choices(plan_of(ROWS), settings))
    assert forward == again
    others = [
        options_of(add_choices(plan_of(ROWS), OptionSettings(options=3, seed=seed)))
        for seed in range(1, 6)
    ]
    assert any(other != forward for other in others)


def test_other_options_are_drawn_within_the_relation():
    plan = plan_of(ROWS, relation=["capital"] * 4 + ["port"] * 2)
    options = options_of(add_choices(plan, OptionSettings(options=2)))
    assert set(options["q5"]) == {" Oslo", " Lima"}
    with pytest.raises(
        DataError,
        match=r"'f1' has 1 other answers among facts with relation 'capital'.*`options` 3 needs 2",
    ):
        add_choices(plan, OptionSettings(options=3))


def test_a_prompt_of_several_facts_is_refused():
    plan = plan_of([*ROWS, ("t7", "q1", "f5", ["Lima"])])
    with pytest.raises(DataError, match=r"prompt 'q1' asks 2 facts.*`read=generate`"):
        add_choices(plan, OptionSettings())


def test_redirectqa_as_multiple_choice_recovers_what_the_model_knows(tmp_path):
    data = load_sample()
    known = {
        (item.surface.text, item.triple.answers[0])
        for item in data.questions
        if item.surface.is_canonical
    }
    settings = RedirectQASettings(read="multiple-choice", options=2, repeat=5)
    folder = run_study(
        RedirectQAStudy(), data, Knows(known), tmp_path / "run", model="knows", settings=settings
    )
    with pytest.warns(UnscoredWarning, match="options are equally probable"):
        score_run(folder)
    outcomes = pd.read_parquet(folder.outcomes)
    assert outcomes["first_correct"].all()
    named = [any(name in redirect for name, _ in known) for redirect in outcomes["second_surface"]]
    unknown = outcomes[[not known_name for known_name in named]]
    # Equal options: none is chosen, and nothing is right or wrong.
    assert unknown["second_correct"].isna().all()
    assert folder.read_manifest().replies["tie"] == len(unknown) > 0
    manifest = folder.read_manifest()
    assert manifest.settings["read"] == "multiple-choice"
    assert manifest.runner["option_score"] == "sum"


@pytest.mark.parametrize(("read", "share"), [("multiple-choice", 1.0), ("log-odds", 0.0)])
def test_log_odds_ask_for_more_than_the_most_probable_option(read, share, tmp_path):
    """Of three options one with weight 3 against 2 and 2 is the best, and has no majority."""
    data = load_sample()

    class Leans(Knows):
        def score(self, requests):
            for score in super().score(requests):
                knows = score.log_probabilities[0] == -0.1
                value = math.log(3.0 if knows else 2.0) - 5.0
                yield score.model_copy(update={"log_probabilities": (value, -0.5)})

    known = {(item.surface.text, item.triple.answers[0]) for item in data.questions}
    settings = RedirectQASettings(read=read, options=3, repeat=0)
    folder = run_study(
        RedirectQAStudy(), data, Leans(known), tmp_path / "run", model="m", settings=settings
    )

    outcomes = score_run(folder)

    assert outcomes["first_correct"].mean() == share
    assert outcomes["second_correct"].mean() == share
    odds = pd.read_csv(folder.path / "checks" / "log_odds.csv")
    assert odds["condition"].tolist()[2] == " less ".join(odds["condition"][:2])
    assert odds["log_odds"].tolist() == pytest.approx([math.log(3 / 4)] * 2 + [0.0])
    assert odds["log_odds_low"].isna().all()
    assert (odds["n_pairs"] == len(outcomes)).all()
    assert folder.read_manifest().runner.get("majority", False) == (read == "log-odds")


def test_log_odds_say_how_far_the_reference_is_ahead_under_each_condition():
    prompts = [Prompt(id=f"q{n}", text="a", options=(" Rome", " Oslo")) for n in range(4)]
    scores = [
        tuple(ScoredText(request_id=str(n), log_probabilities=(v,)) for n, v in enumerate(values))
        for values in ((-1.0, -3.0), (-1.0, -1.5), (-2.0, -6.0), (-math.inf, -1.0))
    ]
    answered = pd.DataFrame(
        {
            "target_id": ["a", "b", "c", "d"],
            "prompt_id": [prompt.id for prompt in prompts],
            "answers": [["Rome", "Roma"]] * 4,
            "fact_id": ["f", "f", "g", "g"],
            "scores": scores,
        }
    )
    pairs = pd.DataFrame({"first_target": ["a", "c", "a"], "second_target": ["b", "b", "d"]})

    with pytest.warns(UndefinedMetricWarning, match="worth 2 clusters, under 4"):
        table = reference_log_odds(
            answered, pairs, prompts, conditions=("title", "redirect"), cluster="fact_id"
        )

    # The pair whose reference has probability 0 has no finite odds and is left out.
    assert table["n_pairs"].tolist() == [2, 2, 2]
    assert table["log_odds"].tolist() == pytest.approx([3.0, 0.5, 2.5])
    assert table["n_clusters"].tolist() == [2, 2, 2]
    # Two clusters tell too little of the spread.
    assert table["log_odds_low"].isna().all()


def test_bounds_of_log_odds_are_students_over_facts():
    ahead = [0.5, 2.0, -1.0, 1.5, 3.0, 0.0]
    names = [f"q{n}" for n in range(6)]
    prompts = [Prompt(id=name, text="a", options=(" Rome", " Oslo")) for name in names]
    scores = [
        tuple(ScoredText(request_id="0", log_probabilities=(v,)) for v in (odds - 4.0, -4.0))
        for odds in ahead
    ]
    targets = {"target_id": names, "prompt_id": names, "fact_id": names, "scores": scores}
    answered = pd.DataFrame(targets | {"answers": [["Rome"]] * 6})
    pairs = pd.DataFrame({"first_target": names, "second_target": names[::-1]})

    table = reference_log_odds(
        answered, pairs, prompts, conditions=("title", "redirect"), cluster="fact_id"
    )

    expected = stats.ttest_1samp(ahead, 0.0).confidence_interval(0.95)
    bounds = table.loc[0, ["log_odds_low", "log_odds_high"]].tolist()
    assert bounds == pytest.approx([expected.low, expected.high])
    # ((0.5 - 0) + (2 - 3) + (-1 - 1.5)) and their opposites, a pair to a fact.
    turned = stats.ttest_1samp([-0.5, 1.0, 2.5, -2.5, -1.0, 0.5], 0.0).confidence_interval(0.95)
    bounds = table.loc[2, ["log_odds_low", "log_odds_high"]].tolist()
    assert bounds == pytest.approx([turned.low, turned.high])


def test_a_run_is_read_again_from_its_stored_log_probabilities(tmp_path):
    """Scores of a run, stored, give its verdicts without a model; reading twice shows no noise."""
    data, study = load_sample(), RedirectQAStudy()
    known = {(item.surface.text, item.triple.answers[0]) for item in data.questions[::2]}
    settings = RedirectQASettings(read="multiple-choice", options=2, repeat=5)
    first = run_study(study, data, Knows(known), tmp_path / "run", model="m", settings=settings)
    path = tmp_path / "scores.jsonl"
    answers = first.read_answers([""])
    keys = {prompt.key: prompt.id for prompt in read_jsonl(first.prompts, Prompt)}
    write_jsonl(
        path,
        (
            score.model_copy(update={"request_id": f"{keys[key]}\n{score.request_id}"})
            for key, scores in zip(answers["prompt_key"], answers["scores"], strict=True)
            for score in scores
        ),
    )

    again = run_study(
        study, data, StoredScores(path), tmp_path / "again", model="m", settings=settings
    )

    columns = ["pair_id", "first_correct", "second_correct"]
    told, expected = (score_run(folder)[columns] for folder in (again, first))
    pd.testing.assert_frame_equal(told, expected)
    assert first.log("", repeat=True).is_file()
    assert not again.log("", repeat=True).exists()


def test_a_runner_without_log_probabilities_is_refused_before_anything_is_written(tmp_path):
    settings = RedirectQASettings(read="multiple-choice", options=2)
    with pytest.raises(RunnerError, match="does not define `score`"):
        run_study(
            RedirectQAStudy(),
            load_sample(),
            FakeRunner(lambda prompt: "x"),
            tmp_path / "run",
            model="fake",
            settings=settings,
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("said", [{"reasoning_opened": True}, {"max_reasoning_tokens": 9}])
def test_settings_of_reasoning_are_refused_where_nothing_is_written(tmp_path, said):
    """An option without a closing tag would be reasoning that was never closed."""
    settings = RedirectQASettings(read="multiple-choice", options=2, **said)

    with pytest.raises(ValueError, match=r"is for answers that are written.*`read=generate`"):
        run_study(
            RedirectQAStudy(),
            load_sample(),
            Knows(set()),
            tmp_path / "run",
            model="m",
            settings=settings,
        )
    assert not (tmp_path / "run").exists()


class Renders(Knows):
    """Has a chat template, which may open reasoning."""

    def __init__(self, end):
        super().__init__(set())
        self._end = end

    def render(self, prompt):
        return f"Q: {prompt.messages[-1].content}{self._end}"


def test_options_are_not_scored_within_reasoning():
    prompt = Prompt(
        id="q",
        messages=(Message(role="user", content="Capital of Italy?"),),
        options=("Rome", "Oslo"),
    )

    with pytest.raises(RunnerError, match=r"opens reasoning before the answer.*`read=generate`"):
        list(
            MultipleChoiceRunner(Renders("<assistant><think>\n")).generate(
                [prompt], GenerationParams()
            )
        )
    closed = MultipleChoiceRunner(Renders("<assistant><think>\n\n</think>\n"))
    # It is asked; both options are equally probable to it.
    assert [one.finish_reason for one in closed.generate([prompt], GenerationParams())] == ["tie"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"relatoin": "r"}, r"column 'relatoin' is no field of RedirectOutcome .*mean 'relation'"),
        ({"relation": 5}, r"column 'relation' holds what RedirectOutcome does not allow"),
        ({"relation": None}, r"column 'relation' is empty in row 0"),
        ({"types": "alias"}, r"column 'types' must hold lists of labels, got 'alias'"),
        ({"third_target": "nix"}, r"pair column 'third_target' names 'nix', which is no target_id"),
        (
            {"fact_id": 1},
            r"the pairs of a plan: column 'fact_id' holds what PairRow does not allow",
        ),
    ],
)
def test_undeclared_or_misfilled_columns_are_refused_before_anything_is_asked(columns, told):
    class Planned(RedirectQAStudy):
        def plan(self, data, settings, *, runner=None):
            return plan_of(ROWS, **columns)

    with pytest.raises(DataError, match=told):
        make_plan(Planned(), None, OptionSettings())


def test_a_field_that_nothing_tells_is_missed_before_anything_is_asked():
    class Mooded(PairedOutcome):
        mood: str

    class Planned(RedirectQAStudy):
        design = RedirectQAStudy.design.model_copy(update={"groupings": {}})
        outcome = Mooded

        def plan(self, data, settings, *, runner=None):
            return plan_of(ROWS)

    with pytest.raises(ColumnNotFoundError, match=r"pairs of a plan: .*'mood' of Mooded"):
        make_plan(Planned(), None, OptionSettings())


def test_targets_of_another_kind_are_refused():
    with pytest.raises(DataError, match="the items of a plan: column 'answers' must hold lists"):
        plan_of([("t1", "q1", "f1", "Rome")])
    with pytest.raises(ColumnNotFoundError, match="no column 'answers', 'fact_id' of ItemRow"):
        Plan(
            data=None,
            groups={},
            items=pd.DataFrame({"target_id": ["t"], "prompt_id": ["q"]}),
            pairs=pd.DataFrame(),
        )
