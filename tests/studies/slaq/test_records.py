import pytest
from pydantic import ValidationError

from surface_consistency.data.slaq_records import SlaqArticle, SlaqQuestion, SlaqTopic, topic_id_of
from surface_consistency.engine.features import make_features
from surface_consistency.schemas.jsonl import read_jsonl, write_jsonl
from surface_consistency.studies.slaq.records import PromptTarget, SlaqOutcome, SlaqVerdict


def topic(indices=(1, 2, 3, 4, 5), identifier="t-1", owner="t-1"):
    questions = tuple(
        SlaqQuestion(id=f"{owner}/{k}", index=k, question=f"Q{k}?", answer="NA", is_entity=None)
        for k in indices
    )
    return SlaqTopic(
        id=identifier,
        category="Astronomy",
        topic="NaN",
        url=None,
        questions=questions,
        long_question="Discuss it.",
        long_answer="It is.",
    )


def verdict(**changes):
    fields = {"target_id": "t", "judged_by": "j", "prediction": "an answer", "is_correct": True}
    return SlaqVerdict(**(fields | changes))


@pytest.mark.parametrize("indices", [(1, 2, 3, 4), (1, 2, 3, 5, 4), (1, 1, 2, 3, 4), ()])
def test_topic_rejects_other_than_five_questions(indices):
    with pytest.raises(ValidationError, match="index 1 to 5 in order"):
        topic(indices)


def test_topic_rejects_questions_of_another_topic():
    with pytest.raises(ValidationError, match="must have the id 't-1/1'"):
        topic(owner="t-2")


def test_records_come_back_from_lines(tmp_path):
    """What is written is what is read, also for names that look like nothing."""
    records = [topic(), topic(identifier="t-2", owner="t-2")]
    write_jsonl(tmp_path / "topics.jsonl", records)

    assert list(read_jsonl(tmp_path / "topics.jsonl", SlaqTopic)) == records


@pytest.mark.parametrize("record", [SlaqTopic, PromptTarget, SlaqVerdict, SlaqOutcome, SlaqArticle])
def test_records_have_columns(record):
    assert set(make_features(record)) == set(record.model_fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"form": "short"}, "`question_id` is given exactly"),
        ({"form": "free", "question_id": "t/1"}, "`question_id` is given exactly"),
        ({"form": "free", "permutation": 0}, "exactly for long"),
        ({"form": "long", "permutation": 0}, "exactly for long"),
        ({"form": "long", "order": (1, 2, 3, 4, 5)}, "exactly for long"),
        ({"form": "long", "permutation": 0, "order": (0, 1, 2, 3, 4)}, "1 to 5 once each"),
        ({"form": "long", "permutation": 0, "order": (1, 2, 3, 4)}, "1 to 5 once each"),
    ],
)
def test_prompt_rejects_fields_of_another_form(fields, message):
    with pytest.raises(ValidationError, match=message):
        PromptTarget(prompt_id="p", topic_id="t", **fields)


def test_order_as_text():
    prompt = PromptTarget(
        prompt_id="p", topic_id="t", form="long", permutation=2, order=(3, 1, 5, 2, 4)
    )
    short = PromptTarget(prompt_id="p", topic_id="t", form="short", question_id="t/1")

    assert prompt.order_id == "3-1-5-2-4"
    assert short.order_id is None


@pytest.mark.parametrize(
    "changes", [{"is_correct": None}, {"reason": "refused"}, {"is_correct": False, "reason": "x"}]
)
def test_verdict_rejects_a_verdict_without_or_beside_a_reason(changes):
    with pytest.raises(ValidationError, match="exactly when `is_correct` is None"):
        verdict(**changes)


def test_verdict_rejects_right_facts_that_are_not_there():
    with pytest.raises(ValidationError, match="not recalled cannot be correct"):
        verdict(is_recalled=False)
    assert verdict(is_recalled=False, is_correct=False).is_correct is False


@pytest.mark.parametrize(
    ("first", "second"), [("NaN", "nan"), ("C", "C++"), ("TAT-1", "TAT 1"), ("∀", "∃"), ("/", "!")]
)
def test_topic_ids_stay_apart(first, second):
    """Topics that differ in case or punctuation alone are two topics, and ids hold no slash."""
    assert topic_id_of(first) != topic_id_of(second)
    assert "/" not in topic_id_of(first) + topic_id_of(second)
