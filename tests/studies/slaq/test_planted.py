"""Models with a known defect, told apart by the study from start to end."""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.models import FakeRunner
from surface_consistency.models.runner import Runner
from surface_consistency.studies.slaq.judges import MatcherJudge, SlaqLLMJudge
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.settings import SlaqSettings
from surface_consistency.studies.slaq.tables import grouped_scores, slot_tables

N_PERMUTATIONS = 10


def forgetful(rng, right_before, slot):
    """Knows less in later slots, whatever came before."""
    return rng.random() < 0.95 - 0.16 * slot


def with_momentum(rng, right_before, slot):
    """Goes on as it went in the slot before, whatever the slot."""
    return rng.random() < (0.6 if right_before is None else 0.9 if right_before else 0.3)


def even(rng, right_before, slot):
    """Has neither."""
    return rng.random() < 0.6


class Planted(Runner):
    """Answers as a rule decides, in the order in which it is asked."""

    name = "planted"

    def __init__(self, data, rule):
        _, asked = slaq_prompts(data.rows, SlaqSettings(permutations=N_PERMUTATIONS))
        self._asked = asked.set_index("prompt_id")
        self._topics = dict(list(data.rows.groupby("topic_id")))
        self._rule = rule
        self._rng = np.random.default_rng(5)

    def fingerprint(self):
        return {"rule": self._rule.__name__}

    def generate(self, prompts, params):
        yield from FakeRunner(self._answer).generate(prompts, params)

    def _answer(self, prompt):
        text = prompt.messages[0].content
        topic_id, form, order = self._asked.loc[prompt.id, ["topic_id", "form", "order"]]
        facts = self._topics[topic_id]
        assert facts["topic"].iloc[0] in text or form == "long"
        said, before = [], None
        for slot, index in enumerate(order):
            before = self._rule(self._rng, before, slot)
            said.append(facts["answer"].iloc[index - 1] if before else "I do not know")
        return " ; ".join(said)


@pytest.fixture(scope="module")
def studies(tmp_path_factory, ask, score):
    """Each rule asked, judged and scored: run folder, outcomes, tables."""
    data = load_slaq_sample()
    made = {}
    for rule in (forgetful, with_momentum, even):
        name = rule.__name__
        run = ask(
            data,
            Planted(data, rule),
            tmp_path_factory.mktemp(name),
            model=name,
            permutations=N_PERMUTATIONS,
            repeat=40,
        )
        frame = score(run, MatcherJudge(entities_only=False))
        made[name] = (run, frame, slot_tables(frame, n_resamples=500, n_null=400))
    return made


def slope(tables, null):
    table = tables["momentum_slopes"]
    return table[(table["null"] == null) & (table["streak"] == 1)].iloc[0]


def test_a_model_that_forgets_in_later_slots_has_a_position_slope(studies):
    position = studies["forgetful"][2]["position"]

    assert position["slope_high"].iloc[0] < -0.1
    assert position["accuracy"].iloc[0] > position["accuracy"].iloc[-1] + 0.4
    # Fading towards the end is not momentum once the null keeps the accuracy of each slot.
    assert slope(studies["forgetful"][2], "topic-and-slot")["p_value"] > 0.05


def test_a_model_with_momentum_leaves_the_null_band_and_has_no_position_slope(studies):
    tables = studies["with_momentum"][2]

    for null in ("topic", "topic-and-slot"):
        assert slope(tables, null)["slope"] > slope(tables, null)["null_high"]
        assert slope(tables, null)["p_value"] < 0.01
    assert abs(tables["position"]["slope"].iloc[0]) < 0.05


def test_a_model_with_neither_shows_neither(studies):
    tables = studies["even"][2]

    assert slope(tables, "topic")["p_value"] > 0.05
    row = tables["position"].iloc[0]
    assert row["slope_low"] < 0 < row["slope_high"]


def test_scores_agree_with_counting_by_hand(studies):
    _, frame, _ = studies["even"]
    overall = grouped_scores(frame, n_resamples=50).iloc[0]
    short, long = frame["first_correct"].astype(bool), frame["second_correct"].astype(bool)

    assert overall["n"] == len(frame) == 24 * 5 * N_PERMUTATIONS
    assert overall["n_clusters"] == 24
    assert overall["first_accuracy"] == pytest.approx(short.mean())
    assert overall["second_accuracy"] == pytest.approx(long.mean())
    assert overall["consistency"] == pytest.approx((short == long).mean())
    assert overall["signed_alignment"] == pytest.approx(short.mean() + long.mean() - 1)


def test_groups_part_the_facts(studies):
    _, frame, _ = studies["even"]

    for column in ("category", "is_entity"):
        table = grouped_scores(frame, (column,), n_resamples=50)
        assert table["n"].sum() == len(frame)
        assert len(table) == frame[column].nunique()


def test_independent_verdicts_disagree_between_orders_as_chance_has_it(studies):
    # Independent verdicts of accuracy 0.6 disagree in 2 * 0.6 * 0.4 of pairs.
    row = studies["even"][2]["order_sensitivity"].iloc[0]
    assert row["disagreement"] == pytest.approx(0.48, abs=0.04)


def test_the_noise_floor_is_measured_by_form(studies):
    run, _, _ = studies["even"]
    floor = pd.read_csv(run.checks / "noise_floor.csv")

    assert list(floor["form"]) == ["short", "long"]
    assert list(floor["n_repeated"]) == [40, 200]
    assert floor["flip_rate"].between(0.3, 0.65).all()


def test_two_judges_of_one_run_agree(studies, score, tmp_path):
    """A scripted judge that reads references gives the verdicts of the matcher."""
    run, frame, _ = studies["even"]

    def reply(prompt):
        system, user = prompt.messages
        answer = user.content.split("<answer>\n")[1]
        references = re.findall(r"Reference: (.*)", user.content)
        found = [int(reference in answer) for reference in references]
        return str(found[0]) if "one character" in system.content else str(found)

    judge = SlaqLLMJudge(FakeRunner(reply), tmp_path, model="scripted", progress=False)

    again = score(run, judge)

    share = (again["second_correct"] == frame["second_correct"]).mean()
    assert share > 0.97
    assert (again["pair_id"] == frame["pair_id"]).all()
