"""Shared prompts, and judges that return too few labels."""

import pandas as pd
import pytest

from surface_consistency.data.slaq import Slaq, load_slaq
from surface_consistency.errors import DataError
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.judges import MatcherJudge


def test_equal_prompts_of_two_topics_are_sent_once_and_scored_for_both(ask, score, tmp_path):
    """Prompts are identified by their content."""
    facts = load_slaq("sample").rows[:5]
    numbers = [name.rpartition("/")[2] for name in facts["item"]]
    twin = facts.assign(
        topic_id="twin", category="Music", item=[f"twin/{number}" for number in numbers]
    )
    data = Slaq.from_rows(pd.concat([facts, twin], ignore_index=True), source="twins")
    first = data.topics[0]
    runner = FakeRunner(lambda prompt: first.questions[0].answer)

    folder = ask(data, runner, tmp_path, permutations=5, repeat=0)
    frame = score(folder, MatcherJudge(entities_only=False))

    assert len([name for name in runner.asked if name.endswith("/short")]) == 5
    by_topic = frame.groupby("topic_id")["first_correct"].apply(list)
    assert by_topic["twin"] == by_topic[first.id]
    assert frame["first_prediction"].notna().all()
    assert len(frame) == 2 * 5 * 5


def test_a_judge_that_skips_facts_is_rejected(ask, score, tmp_path):
    class Lazy(MatcherJudge):
        def judge(self, targets):
            return super().judge(targets)[:-1]

    data = load_slaq("sample").select(limit=1)
    folder = ask(data, FakeRunner(lambda prompt: "x"), tmp_path, permutations=1, repeat=0)

    with pytest.raises(DataError, match="received 10 targets and returned 9"):
        score(folder, Lazy(entities_only=False))
    assert not folder.verdicts.exists()
