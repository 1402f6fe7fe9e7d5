"""Facts and answers to judge."""

import pytest

from surface_consistency.schemas.slaq import SlaqQuestion
from surface_consistency.studies.slaq.judge import JudgeTask


@pytest.fixture
def questions():
    """Five facts of a topic; the last is no named entity."""
    answers = ("Rome", "Carthage", "Hannibal Barca.", "264 BCE", "because of trade")
    return tuple(
        SlaqQuestion(
            id=f"punic/{k}", index=k, question=f"Question {k}?", answer=answer, is_entity=k < 5
        )
        for k, answer in enumerate(answers, start=1)
    )


@pytest.fixture
def task(questions):
    """Builds a task."""

    def build(form, answer, prompt_id="p"):
        asked = questions[:1] if form == "short" else questions
        return JudgeTask(prompt_id=prompt_id, form=form, questions=asked, answer=answer)

    return build
