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
    names = [name for name in record.model_fields if name in record.__annotations__]
    source = inspect.getsource(record)

    for name in names:
        line = next(line for line in source.splitlines() if line.startswith(f"    {name}:"))
        after = source.split(line, 1)[1].lstrip("\n")
        assert after.startswith('    """'), f"{record.__name__}.{name} has no docstring"


@pytest.mark.parametrize("record", RECORDS)
def test_record_is_strict_and_immutable_without_unknown_fields(record):
    expected = {"strict": True, "frozen": True, "extra": "forbid"}

    assert {name: record.model_config[name] for name in expected} == expected


PROMPT = {"prompt_id": "a"}
TURNS = (Message(role="user", content="Who?"),)
SCORED = {"target_id": "a", "judged_by": "popqa on first_line", "prediction": "x"}


test_records_reject_contradictory_fields = refusals(
    lambda record, fields: record(**fields),
    (Prompt, {"id": "a"}, "and not both"),
    (Prompt, {"id": "a", "text": "Who?", "messages": TURNS}, "and not both"),
    (Prompt, {"id": "a", "messages": ()}, "at least one message"),
    (Generation, {"prompt_id": "a", "text": None}, "`text` must be None exactly for"),
    (Generation, PROMPT | {"text": None, "finish_reason": "error"}, "`error` must be the reason"),
    (Generation, {"prompt_id": "a", "text": 5}, "Input should be a valid string"),
    (Generation, {"prompt_id": "a", "text": b"x"}, "Input should be a valid string"),
    (Verdict, {**SCORED, "correct": None}, "exactly if `correct` is None"),
    (Verdict, {**SCORED, "correct": True, "reason": "why"}, "exactly if `correct` is"),
    error=ValidationError,
)


def test_records_with_a_reason_are_valid():
    verdict = Verdict(**SCORED, correct=None, reason="no accepted answer")
    with pytest.raises(TypeError, match=r"Verdict has no truth value; test verdict\.correct"):
        bool(verdict)
    assert Generation(prompt_id="a", text="", finish_reason="length")


def test_prompt_key_depends_only_on_the_content():
    """The key ignores id and group; a text and a turn with that text differ."""
    prompt, turn = Prompt(id="a", text="Who?"), Prompt(id="a", messages=TURNS)
    others = [prompt.model_copy(update={"condition": name}) for name in ("FULL", "DEL-ON")]

    assert prompt.key == Prompt(id="b", text="Who?", group="g").key
    others += [turn, prompt.model_copy(update={"text": "Who? "})]
    assert len({prompt.key, *(other.key for other in others)}) == 5
    assert others[-1].key == Prompt(id="a", text="Who? ").key


@given(st.text(st.characters()))
def test_generation_with_any_text_is_writable(text):
    """Any text is equal after a round trip through JSON, except for replaced surrogates."""
    made = Generation(prompt_id="a", text=text)

    assert Generation.model_validate_json(made.model_dump_json()) == made
    assert made.text == "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
