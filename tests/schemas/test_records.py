import inspect

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from surface_consistency import schemas
from surface_consistency.schemas import Generation, Message, Prompt, Record, Verdict
from tests.refusals import refusals

RECORDS = [
    value
    for value in vars(schemas).values()
    if isinstance(value, type) and issubclass(value, Record) and value is not Record
]


@pytest.mark.parametrize("record", RECORDS)
def test_record_documents_every_field(record):
    own = [name for name in record.model_fields if name in record.__annotations__]
    source = inspect.getsource(record)

    for name in own:
        line = next(line for line in source.splitlines() if line.startswith(f"    {name}:"))
        after = source.split(line, 1)[1].lstrip("\n")
        assert after.startswith('    """'), f"{record.__name__}.{name} has no docstring"


@pytest.mark.parametrize("record", RECORDS)
def test_record_is_strict_frozen_and_closed(record):
    expected = {"strict": True, "frozen": True, "extra": "forbid"}

    assert {name: record.model_config[name] for name in expected} == expected


ASKED = {"prompt_id": "a"}
TURNS = (Message(role="user", content="Who?"),)
JUDGED = {"target_id": "a", "judged_by": "popqa on first_line", "prediction": "x"}


test_records_refuse_fields_that_contradict_each_other = refusals(
    lambda record, fields: record(**fields),
    (Prompt, {"id": "a"}, "exactly one of them"),
    (Prompt, {"id": "a", "text": "Who?", "messages": TURNS}, "exactly one of them"),
    (Prompt, {"id": "a", "messages": ()}, "at least one message"),
    (Generation, {"prompt_id": "a", "text": None}, "`text` is None exactly when"),
    (Generation, ASKED | {"text": None, "finish_reason": "error"}, "`error` tells the reason e"),
    (Generation, {"prompt_id": "a", "text": 5}, "Input should be a valid string"),
    (Generation, {"prompt_id": "a", "text": b"x"}, "Input should be a valid string"),
    (Verdict, {**JUDGED, "correct": None}, "exactly when `correct` is None"),
    (Verdict, {**JUDGED, "correct": True, "reason": "why"}, "exactly when `correct` is"),
    error=ValidationError,
)


def test_records_that_give_a_reason_are_made():
    verdict = Verdict(**JUDGED, correct=None, reason="no accepted answer")
    with pytest.raises(TypeError, match=r"Verdict has no truth value; test verdict\.correct"):
        bool(verdict)
    assert Generation(prompt_id="a", text="", finish_reason="length")


def test_prompt_key_is_the_content_alone():
    """The key forgets id and group, and a text is not the same as a turn that says it."""
    prompt, turn = Prompt(id="a", text="Who?"), Prompt(id="a", messages=TURNS)
    others = [prompt.model_copy(update={"condition": name}) for name in ("FULL", "DEL-ON")]

    assert prompt.key == Prompt(id="b", text="Who?", group="g").key
    others += [turn, prompt.model_copy(update={"text": "Who? "})]
    assert len({prompt.key, *(other.key for other in others)}) == 5
    assert others[-1].key == Prompt(id="a", text="Who? ").key


@given(st.text(st.characters()))
def test_generation_is_writable_whatever_the_text(text):
    """Any text reads back from JSON; only surrogates are replaced, one by one."""
    made = Generation(prompt_id="a", text=text)

    assert Generation.model_validate_json(made.model_dump_json()) == made
    assert made.text == "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
