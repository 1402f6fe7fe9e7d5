"""Judgements to outcomes: as records, as a frame, as a file."""

import pandas as pd
import pytest

from surface_consistency.data.features import read_parquet
from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.prompts.slaq import slaq_prompts
from surface_consistency.schemas.slaq import Judgement, SlaqOutcome
from surface_consistency.studies.slaq.outcomes import (
    slaq_frame,
    slaq_outcomes,
    write_slaq_outcomes,
)

VERDICTS = (True, False, None)


@pytest.fixture(scope="module")
def judged():
    """Topics, details, judgements of all kinds, answers; some are missing."""
    topics = load_slaq_sample().topics[:4]
    details = slaq_prompts(topics, forms=("short", "long", "free"), n_permutations=3).details
    by_id = {topic.id: topic for topic in topics}
    judgements, number = [], 0
    for detail in details:
        for question in by_id[detail.topic_id].questions:
            if detail.form == "short" and question.id != detail.question_id:
                continue
            number += 1
            verdict = VERDICTS[number % 3]
            if number % 7 == 0:
                continue
            judgements.append(
                Judgement(
                    prompt_id=detail.prompt_id,
                    question_id=question.id,
                    judge="j",
                    is_correct=verdict,
                    is_recalled=verdict if detail.form == "free" else None,
                    reason="unread" if verdict is None else None,
                )
            )
    answers = {d.prompt_id: f"<b>answer</b> {n}" for n, d in enumerate(details) if n % 5}
    return topics, details, judgements, answers


def test_rows_of_the_frame_are_the_records(judged):
    records = list(slaq_outcomes(*judged, model="m"))
    frame = slaq_frame(*judged, model="m")

    assert len(records) == len(frame) == 4 * 5 * (3 + 1)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert rows == [record.model_dump() for record in records]


def test_the_file_holds_valid_records(judged, tmp_path):
    path = tmp_path / "outcomes.parquet"

    write_slaq_outcomes(path, slaq_frame(*judged, model="m"))

    assert list(read_parquet(path, SlaqOutcome)) == list(slaq_outcomes(*judged, model="m"))
    assert list(tmp_path.iterdir()) == [path]


def test_slots_are_places_in_the_order(judged):
    frame = slaq_frame(*judged, model="m")
    listed = frame[frame["second_condition"] == "long"]

    for row in listed.itertuples():
        assert row.order_id.split("-")[int(row.slot) - 1] == str(row.question_index)
    free = frame[frame["second_condition"] == "free"]
    assert free[["slot", "n_slots", "permutation", "order_id"]].isna().all(axis=None)


def test_nothing_judged_is_a_frame_of_missing_verdicts(judged):
    topics, details, _, _ = judged

    frame = slaq_frame(topics, details, [], {}, model="m")

    assert frame[["first_correct", "second_correct", "first_prediction"]].isna().all(axis=None)


def test_facts_that_were_not_asked_alone_have_no_row(judged):
    topics, _, judgements, answers = judged
    details = slaq_prompts(topics, forms=("long",), n_permutations=3).details

    frame = slaq_frame(topics, details, judgements, answers, model="m")

    assert frame.empty
    assert list(frame) == list(SlaqOutcome.model_fields)


def test_a_frame_of_another_kind_is_rejected(judged, tmp_path):
    frame = slaq_frame(*judged, model="m")

    with pytest.raises(ColumnNotFoundError, match="lack the column slot"):
        write_slaq_outcomes(tmp_path / "x.parquet", frame.drop(columns="slot"))
    with pytest.raises(DataError, match="does not allow"):
        write_slaq_outcomes(tmp_path / "x.parquet", frame.assign(slot="first"))
    assert not list(tmp_path.iterdir())


def test_every_paired_metric_takes_the_frame(judged):
    """The frame is the one of all studies: functions over frames need no adapter."""
    from surface_consistency.metrics import paired_by, topic_arrays

    frame = slaq_frame(*judged, model="m")
    listed = frame[frame["second_condition"] == "long"]

    with pytest.warns(Warning, match="lack a verdict|undefined"):
        table = paired_by(frame, by="second_condition", cluster="topic_id", n_resamples=50)
    assert list(table["second_condition"]) == ["free", "long"]
    assert topic_arrays(listed, question="fact_id").long.shape == (4, 3, 5)
    assert isinstance(frame, pd.DataFrame)
