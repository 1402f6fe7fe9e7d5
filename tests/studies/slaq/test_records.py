import pytest
from pydantic import ValidationError

from surface_consistency.data.slaq_records import SlaqQuestion, SlaqTopic, topic_id_of
from surface_consistency.studies.slaq.records import SlaqVerdict


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
    fields = {"target_id": "t", "judged_by": "j", "prediction": "an answer", "correct": True}
    return SlaqVerdict(**(fields | changes))


@pytest.mark.parametrize(
    ("make", "fields", "message"),
    [
        *(
            (topic, {"indices": indices}, "index 1 to 5 in order")
            for indices in [(1, 2, 3, 4), (1, 2, 3, 5, 4), (1, 1, 2, 3, 4), ()]
        ),
        (topic, {"owner": "t-2"}, "must have the id 't-1/1'"),
        *(
            (verdict, fields, "exactly if `correct` is None")
            for fields in [
                {"correct": None},
                {"reason": "refused"},
                {"correct": False, "reason": "x"},
            ]
        ),
        (verdict, {"is_recalled": False}, "not recalled cannot be correct"),
    ],
)
def test_invalid_records_are_rejected(make, fields, message):
    with pytest.raises(ValidationError, match=message):
        make(**fields)


def test_a_fact_that_is_not_recalled_can_be_incorrect():
    assert verdict(is_recalled=False, correct=False).correct is False


@pytest.mark.parametrize(
    ("first", "second"), [("NaN", "nan"), ("C", "C++"), ("TAT-1", "TAT 1"), ("∀", "∃"), ("/", "!")]
)
def test_topics_with_similar_names_have_different_ids(first, second):
    """The names differ only in case or punctuation; ids do not contain a slash."""
    assert topic_id_of(first) != topic_id_of(second)
    assert "/" not in topic_id_of(first) + topic_id_of(second)
