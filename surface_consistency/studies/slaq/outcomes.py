"""Verdicts on short and long answers, paired: as records, as a frame, as a file."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.data.features import make_features
from surface_consistency.schemas.slaq import (
    Judgement,
    SlaqOutcome,
    SlaqPrompt,
    SlaqQuestion,
    SlaqTopic,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["slaq_frame", "slaq_outcomes", "write_slaq_outcomes"]

_COLUMNS: Final = tuple(SlaqOutcome.model_fields)
_ROW_GROUP: Final = 8192
_VERDICTS: Final = ("first_correct", "second_correct", "is_recalled")


_NOTHING: Final = (None, None)


class _Fact:
    """A fact with what came of it alone, read once for all its long prompts."""

    __slots__ = ("id", "index", "is_entity", "short_answer", "short_correct")

    def __init__(
        self, question: SlaqQuestion, short_correct: bool | None, short_answer: str | None
    ) -> None:
        self.id = question.id
        self.index = question.index
        self.is_entity = question.is_entity
        self.short_correct = short_correct
        self.short_answer = short_answer


def slaq_outcomes(
    topics: Iterable[SlaqTopic],
    details: Iterable[SlaqPrompt],
    judgements: Iterable[Judgement],
    answers: Mapping[str, str | None],
    *,
    model: str,
) -> Iterator[SlaqOutcome]:
    """Pair the verdict on each fact alone with its verdict in each long answer.

    Args:
        topics: The topics.
        details: What each prompt asked for.
        judgements: What the judge said.
        answers: Text by prompt id, to show.
        model: Label of the model.

    Yields:
        One outcome for each fact in each long prompt, and in the free one; "short" first, and
        "long" or "free" second. A verdict that is missing is None.
    """
    for row in _rows(topics, details, judgements, answers, model):
        yield SlaqOutcome(**dict(zip(_COLUMNS, row, strict=True)))  # type: ignore[arg-type]


def slaq_frame(
    topics: Iterable[SlaqTopic],
    details: Iterable[SlaqPrompt],
    judgements: Iterable[Judgement],
    answers: Mapping[str, str | None],
    *,
    model: str,
) -> "pd.DataFrame":
    """Lay the outcomes out as the frame that metrics and the report read.

    The rows are those of `slaq_outcomes`, which come from records that were checked already; to
    check a hundred thousand of them again would take longer than all the metrics.

    Args:
        topics: As for `slaq_outcomes`.
        details: As for `slaq_outcomes`.
        judgements: As for `slaq_outcomes`.
        answers: As for `slaq_outcomes`.
        model: As for `slaq_outcomes`.

    Returns:
        One row an outcome, columns of `SlaqOutcome`; verdicts are nullable booleans.
    """
    import pandas as pd

    rows = list(_rows(topics, details, judgements, answers, model))
    values = zip(*rows, strict=True) if rows else ((),) * len(_COLUMNS)
    columns = dict(zip(_COLUMNS, map(list, values), strict=True))
    for name in _VERDICTS:
        columns[name] = pd.array(columns[name], dtype="boolean")  # type: ignore[assignment]
    return pd.DataFrame(columns, columns=list(_COLUMNS))


def write_slaq_outcomes(path: str | os.PathLike[str], frame: "pd.DataFrame") -> None:
    """Write a frame as Parquet rows of `SlaqOutcome`; the file appears whole or not at all.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        frame: As from `slaq_frame`.

    Raises:
        ColumnNotFoundError: If a column of `SlaqOutcome` is missing.
        DataError: If a column holds what the record does not allow.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from surface_consistency.errors import ColumnNotFoundError, DataError

    missing = [name for name in _COLUMNS if name not in frame]
    if missing:
        raise ColumnNotFoundError(f"the outcomes lack the column {', '.join(missing)}")
    schema = make_features(SlaqOutcome).arrow_schema
    try:
        table = pa.Table.from_pandas(frame[list(_COLUMNS)], schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"the outcomes hold what SlaqOutcome does not allow: {error}") from error
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        pq.write_table(
            table.replace_schema_metadata(schema.metadata), part, row_group_size=_ROW_GROUP
        )
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _rows(
    topics: Iterable[SlaqTopic],
    details: Iterable[SlaqPrompt],
    judgements: Iterable[Judgement],
    answers: Mapping[str, str | None],
    model: str,
) -> Iterator[tuple[object, ...]]:
    """Give the values of each outcome in the order of the fields of `SlaqOutcome`."""
    said = {(j.prompt_id, j.question_id): (j.is_correct, j.is_recalled) for j in judgements}
    prompts = list(details)
    alone = {d.question_id: d.prompt_id for d in prompts if d.form == "short"}
    known = {topic.id: topic for topic in topics}
    facts = {
        topic.id: [
            _Fact(question, said.get((name, question.id), _NOTHING)[0], answers.get(name))
            for question in topic.questions
            if (name := alone.get(question.id)) is not None
        ]
        for topic in known.values()
    }
    for detail in prompts:
        if detail.form == "short":
            continue
        prompt, order_id, answer = detail.prompt_id, detail.order_id, answers.get(detail.prompt_id)
        slots = {index: slot for slot, index in enumerate(detail.order, start=1)}
        topic = known[detail.topic_id]
        shared = (topic.id, topic.category, topic.popularity)
        for fact in facts[topic.id]:
            is_correct, is_recalled = said.get((prompt, fact.id), _NOTHING)
            yield (
                "slaq",
                model,
                f"{prompt}/{fact.index}",
                fact.id,
                "short",
                detail.form,
                fact.short_correct,
                is_correct,
                *shared,
                fact.is_entity,
                fact.index,
                detail.permutation,
                slots.get(fact.index),
                len(slots) or None,
                order_id,
                is_recalled,
                fact.short_answer,
                answer,
            )
