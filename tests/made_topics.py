import pytest

from surface_consistency.data.slaq_records import SlaqQuestion, SlaqTopic


@pytest.fixture
def make_topic():
    """Build a topic; figure 6 of the paper unless told otherwise."""

    def make(name="The Punic Wars", long_question=None, questions=None):
        texts = questions or [
            "When did the First Punic War occur?",
            "How long did the Punic Wars last?",
            "Which two powers fought in the Punic Wars?",
            "Who was the Carthaginian general in the Second Punic War?",
            "What did Hannibal famously cross the Alps with",
        ]
        return SlaqTopic(
            id="t-1",
            category="History",
            topic=name,
            url=None,
            questions=tuple(
                SlaqQuestion(id=f"t-1/{k}", index=k, question=text, answer="x", is_entity=None)
                for k, text in enumerate(texts, 1)
            ),
            long_question=long_question
            or "Discuss the wars: (1) when, (2) how long, (3) who, (4) whom, and (5) how.",
            long_answer="x",
        )

    return make
