"""Outcomes as records, as a frame and as a file."""

import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.features import read_parquet
from surface_consistency.engine.study import pair_outcomes
from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.runs.frames import write_frame
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.records import SlaqOutcome
from surface_consistency.studies.slaq.settings import SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy

VERDICTS = (True, False, None)
SETTINGS = SlaqSettings(free=True, permutations=3)


@pytest.fixture(scope="module")
def judged():
    """A plan of four topics, and labels of all kinds; some answers are missing."""
    plan = SlaqStudy().plan(load_slaq("sample").select(limit=4), SETTINGS)
    targets = plan.items
    labels = pd.array([VERDICTS[n % 3] for n in range(len(targets))], dtype="boolean")
    numbers = targets.groupby("prompt_id", sort=False).ngroup()
    verdicts = pd.DataFrame(
        {
            "target_id": targets["target_id"],
            "correct": labels,
            "is_recalled": pd.Series(labels).where(targets["form"] == "free"),
            "prediction": ("<b>answer</b> " + numbers.astype(str)).where(numbers % 5 != 0, None),
        }
    )
    return plan, verdicts


def frame_of(plan, verdicts):
    """The outcomes of model m."""
    return pair_outcomes(SlaqStudy(), plan.pairs, verdicts, model="m")


def records_of(plan, verdicts):
    """Pair labels one by one, from the topics and the prompts."""
    data = load_slaq("sample").select(limit=4)
    rows = verdicts.astype(object).where(verdicts.notna(), None).to_dict("records")
    labels = {row["target_id"]: row for row in rows}
    topics = {topic.id: topic for topic in data.topics}
    for detail in slaq_prompts(data.rows, SETTINGS)[1].itertuples():
        if detail.form == "short":
            continue
        topic = topics[detail.topic_id]
        for question in topic.questions:
            pair = f"{detail.prompt_id}/{question.index}"
            first, second = labels[f"{question.id}/short"], labels[pair]
            yield SlaqOutcome(
                study="slaq",
                model="m",
                pair=pair,
                item=question.id,
                first_condition="short",
                second_condition=detail.form,
                first_correct=first["correct"],
                second_correct=second["correct"],
                topic_id=topic.id,
                category=topic.category,
                popularity=topic.popularity,
                is_entity=question.is_entity,
                question_index=question.index,
                permutation=int(detail.permutation) if detail.order else None,
                slot=detail.order.index(question.index) + 1 if detail.order else None,
                n_slots=5 if detail.order else None,
                order_id=detail.order_id if detail.order else None,
                is_recalled=second["is_recalled"],
                first_prediction=first["prediction"],
                second_prediction=second["prediction"],
            )


def test_frame_and_file_of_outcomes_equal_the_records(judged, tmp_path):
    records = list(records_of(*judged))
    frame = frame_of(*judged)

    assert len(records) == len(frame) == 4 * 5 * (3 + 1)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert rows == [record.model_dump() for record in records]
    write_frame(tmp_path / "outcomes.parquet", frame, SlaqOutcome)
    assert list(read_parquet(tmp_path / "outcomes.parquet", SlaqOutcome)) == records
    with pytest.raises(ColumnNotFoundError, match="no column 'slot'"):
        write_frame(tmp_path / "x.parquet", frame.drop(columns="slot"), SlaqOutcome)


def test_pairs_without_verdicts_have_missing_labels(judged):
    plan, verdicts = judged

    frame = frame_of(plan, verdicts.iloc[:0])

    assert len(frame) == len(plan.pairs)
    assert frame[["first_correct", "second_correct", "first_prediction"]].isna().all(axis=None)
