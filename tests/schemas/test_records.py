import inspect

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from surface_consistency import schemas
from surface_consistency.schemas import (
    Entity,
    FactualTriple,
    Generation,
    Message,
    Prompt,
    QuestionRealization,
    Record,
    SurfaceForm,
    Verdict,
)

RECORDS = [
    value
    for value in vars(schemas).values()
    if isinstance(value, type) and issubclass(value, Record) and value is not Record
]


def triple(identifier="1318704"):
    return FactualTriple(
        id=identifier,
        subject=Entity(id="Q1077554", name="Chris_Metzen"),
        relation="occupation",
        object=Entity(id="Q715301", name="comics artist"),
        answers=("comics artist",),
    )


def question(text, *, canonical, template="original", fact="1318704"):
    surface = SurfaceForm(text=text, is_canonical=canonical)
    return QuestionRealization(
        id=f"{fact}:{text}",
        triple=triple(fact),
        surface=surface,
        template=template,
        question=f"What is {text}'s occupation?",
    )


@pytest.mark.parametrize("record", RECORDS)
def test_record_documents_every_field(record):
    """Each field has a docstring of its own below it."""
    own = [name for name in record.model_fields if name in record.__annotations__]
    source = inspect.getsource(record)

    for name in own:
        line = next(line for line in source.splitlines() if line.startswith(f"    {name}:"))
        after = source.split(line, 1)[1].lstrip("\n")
        assert after.startswith('    """'), f"{record.__name__}.{name} has no docstring"


@pytest.mark.parametrize("record", RECORDS)
def test_record_is_strict_frozen_and_closed(record):
    """Every record of the package refuses casts, changes and unknown fields."""
    assert record.model_config["strict"] is True
    assert record.model_config["frozen"] is True
    assert record.model_config["extra"] == "forbid"


def test_record_rejects_assignment():
    """A record cannot be changed after it was made."""
    entity = Entity(id=None, name="a")

    with pytest.raises(ValidationError, match="Instance is frozen"):
        entity.name = "b"


def test_prompt_rejects_none_or_two_contents():
    """A prompt is either a text or a conversation."""
    turns = (Message(role="user", content="Who?"),)

    for content in ({}, {"text": "Who?", "messages": turns}):
        with pytest.raises(ValidationError, match="exactly one of them"):
            Prompt(id="a", **content)
    with pytest.raises(ValidationError, match="at least one message"):
        Prompt(id="a", messages=())


def test_prompt_key_is_the_content_alone():
    """The key forgets id and group, and a text is not the same as a turn that says it."""
    turn = Prompt(id="a", messages=(Message(role="user", content="Who?"),))

    assert Prompt(id="a", text="Who?").key == Prompt(id="b", text="Who?", group="g").key
    assert Prompt(id="a", text="Who?").key != Prompt(id="a", text="Who? ").key
    assert Prompt(id="a", text="Who?").key != turn.key


def test_generation_rejects_a_missing_text_without_a_reason():
    """No text goes with an error, and an error with its reason."""
    assert Generation(prompt_id="a", text="", finish_reason="length")
    with pytest.raises(ValidationError, match="`text` is None exactly when"):
        Generation(prompt_id="a", text=None)
    with pytest.raises(ValidationError, match="`error` tells the reason exactly when"):
        Generation(prompt_id="a", text=None, finish_reason="error")


@given(st.text(st.characters()))
def test_generation_is_writable_whatever_the_text(text):
    """Any text reads back from JSON; only surrogates are replaced, one by one."""
    made = Generation(prompt_id="a", text=text)

    assert Generation.model_validate_json(made.model_dump_json()) == made
    assert made.text == "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)


def test_generation_rejects_a_text_that_is_none():
    """Replacing surrogates does not soften the field's type."""
    for text in (5, b"x"):
        with pytest.raises(ValidationError, match="Input should be a valid string"):
            Generation(prompt_id="a", text=text)


def test_verdict_rejects_a_missing_judgement_without_a_reason():
    """Not judged is None with a reason, and judged has none."""
    base = {"target_id": "a", "judged_by": "popqa on first_line", "prediction": "x"}

    assert Verdict(**base, is_correct=None, reason="no accepted answer")
    with pytest.raises(ValidationError, match="exactly when `is_correct` is None"):
        Verdict(**base, is_correct=None)
    with pytest.raises(ValidationError, match="exactly when `is_correct` is None"):
        Verdict(**base, is_correct=True, reason="why")


def test_the_key_of_a_changed_copy_is_its_own():
    """A key that was computed before a copy does not stick to the copy."""
    prompt = Prompt(id="a", text="one")
    before = prompt.key

    changed = prompt.model_copy(update={"text": "two"})

    assert changed.key == Prompt(id="a", text="two").key != before


def test_prompts_of_one_content_under_two_conditions_are_asked_apart():
    plain, full, deleted = (
        Prompt(id="a", text="one", condition=condition) for condition in (None, "FULL", "DEL-ON")
    )

    assert len({plain.key, full.key, deleted.key}) == 3
