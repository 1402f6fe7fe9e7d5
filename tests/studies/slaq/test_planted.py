"""A model with planted answers, from prompts to tables; planted effects: `test_null_worlds`."""

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


class Planted(Runner):
    """States facts in the order that is asked for, each with one chance."""

    name = "planted"

    def __init__(self, data):
        _, asked = slaq_prompts(data.rows, SlaqSettings(permutations=N_PERMUTATIONS))
        self._asked = asked.set_index("prompt_id")
        self._topics = dict(list(data.rows.groupby("topic_id")))
        self._rng = np.random.default_rng(5)

    def fingerprint(self):
        return {"runner": self.name}

    def generate(self, prompts, params):
        yield from FakeRunner(self._answer).generate(prompts, params)

    def _answer(self, prompt):
        topic_id, form, order = self._asked.loc[prompt.id, ["topic_id", "form", "order"]]
        facts = self._topics[topic_id]
        assert facts["topic"].iloc[0] in prompt.messages[0].content or form == "long"
        said = [
            facts["answer"].iloc[index - 1] if self._rng.random() < 0.6 else "I do not know"
            for index in order
        ]
        return " ; ".join(said)


@pytest.fixture(scope="module")
def even(tmp_path_factory, ask, score):
    """Run folder, outcomes, tables of slots."""
    data, out = load_slaq_sample(), tmp_path_factory.mktemp("planted")
    run = ask(data, Planted(data), out, permutations=N_PERMUTATIONS, repeat=40)
    frame = score(run, MatcherJudge(entities_only=False))
    return run, frame, slot_tables(frame, n_resamples=500, n_null=400)


def test_scores_agree_with_counting_by_hand(even):
    _, frame, tables = even
    overall = grouped_scores(frame, n_resamples=50).iloc[0]
    short, long = frame["first_correct"].astype(bool), frame["second_correct"].astype(bool)

    assert overall["n"] == len(frame) == 24 * 5 * N_PERMUTATIONS
    assert overall["n_clusters"] == 24
    assert overall["first_accuracy"] == pytest.approx(short.mean())
    assert overall["second_accuracy"] == pytest.approx(long.mean())
    assert overall["consistency"] == pytest.approx((short == long).mean())
    assert overall["signed_alignment"] == pytest.approx(short.mean() + long.mean() - 1)
    for column in ("category", "is_entity"):
        table = grouped_scores(frame, (column,), n_resamples=50)
        assert table["n"].sum() == len(frame)
        assert len(table) == frame[column].nunique()
    # Independent verdicts of accuracy 0.6 disagree in 2 * 0.6 * 0.4 of pairs.
    orders = tables["order_sensitivity"].iloc[0]
    assert orders["disagreement"] == pytest.approx(0.48, abs=0.04)
    row = tables["position"].iloc[0]
    assert row["slope_low"] < 0 < row["slope_high"]


def test_the_noise_floor_is_measured_by_form(even):
    floor = pd.read_csv(even[0].checks / "noise_floor.csv")

    assert list(floor["form"]) == ["short", "long"]
    assert list(floor["n_repeated"]) == [40, 200]
    assert floor["flip_rate"].between(0.3, 0.65).all()


def test_two_judges_of_one_run_agree(even, score, tmp_path):
    """A scripted judge that reads references gives the verdicts of the matcher."""
    run, frame, _ = even

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
