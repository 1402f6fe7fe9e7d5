"""Tests of single replies of servers: answers, refusals and errors by their ends."""

import pytest

from surface_consistency.models.server._replies import read_reply
from surface_consistency.schemas import Prompt
from surface_consistency.schemas.generations import server_end


def read(content, finish, *, message=None, **choice):
    """Return the generation of a chat reply."""
    text = {"content": content, **(message or {})}
    reply = {"choices": [{"message": text, "finish_reason": finish, **choice}]}
    return read_reply(Prompt(id="p", text="x"), reply)


# From the references of the APIs and from reports: claudexor#144, genkit#6259, vllm#57082,
# langchain#31482; and SGLang's native form.
ENDS = {
    "stop": [
        *("stop", "STOP", "eos", "eos_token", "END_TURN", "stop_sequence", "COMPLETE", "Stop"),
        "FinishReason.STOP",
        "end-turn",
    ],
    "length": ["length", "MAX_TOKENS", "max_tokens", "model_length", "max_length"],
    "content_filter": [
        "content_filter",
        "SAFETY",
        "sensitive",
        "RECITATION",
        "guardrail_intervened",
    ],
    "refusal": ["refusal", "REFUSAL"],
    "error": [
        *("error", "abort", "insufficient_system_resource", "network_error", "load", "cancelled"),
        *("model_context_window_exceeded", "tool_calls", "OTHER", "stop?", " ", {"type": "stop"}),
        *({"type": "abort"}, ["stop"], 5, True, False),
    ],
}


@pytest.mark.parametrize(
    ("kind", "finish"), [(kind, finish) for kind in ENDS for finish in ENDS[kind]]
)
def test_only_known_finish_reasons_are_answers(kind, finish):
    answer = read("Alderby", finish)

    assert answer.finish_reason == kind == server_end(finish)
    if kind in ("stop", "length"):
        assert (answer.text, answer.error) == ("Alderby", None)
    else:
        assert answer.text is None
        assert answer.error.endswith(": it had written 'Alderby'")
    if kind == "error":
        assert f"finish_reason {finish!r}" in answer.error


@pytest.mark.parametrize("finish", [None, ""])
def test_a_reply_without_a_finish_reason_is_an_answer(finish):
    assert (read("Alderby", finish).text, read("Alderby", finish).finish_reason) == (
        "Alderby",
        "stop",
    )
    assert read(None, finish).error == f"the server returned no text (finish_reason {finish!r})"


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"code": 502, "message": "upstream idle timeout"}, "upstream idle timeout (code 502)"),
        ({"message": "busy"}, "busy"),
        ({"reason": "busy"}, "{'reason': 'busy'}"),
        ("busy", "busy"),
    ],
)
@pytest.mark.parametrize("finish", ["stop", "error", None])
def test_an_error_of_a_choice_is_quoted(stated, words, finish):
    answer = read("The ans", finish, error=stated)

    expected = f"the server reports an error: {words}: it had written 'The ans'"
    assert (answer.finish_reason, answer.error) == ("error", expected)
    whole = {"choices": [{"text": "The ans", "finish_reason": finish}], "error": stated}
    assert read_reply(Prompt(id="p", text="x"), whole) == answer


@pytest.mark.parametrize("finish", ["stop", "error", "content_filter", "refusal", "Ж" * 3_000])
def test_recorded_errors_contain_at_most_300_characters_of_a_reply(finish):
    long = "Ж" * 3_000
    for stated in (None, long, {"message": long, "code": long}, {"reason": long}):
        for refusal in (None, long):
            for text in (None, long):
                answer = read(text, finish, message={"refusal": refusal}, error=stated)
                assert (answer.error or "").count("Ж") <= 300
    for reply in ({"error": long}, {long: 1}):
        with pytest.raises(ValueError, match=r"^(the server|no `choices`)") as error:
            read_reply(Prompt(id="p", text="x"), reply)
        assert str(error.value).count("Ж") <= 300


def test_a_filter_error_of_a_reply_or_choice_has_the_same_finish_reason():
    stated = {"code": "content_filter", "message": "the prompt was filtered"}
    of_reply = read_reply(Prompt(id="p", text="x"), {"error": stated})

    for answer in (of_reply, read("The ans", "stop", error=stated)):
        expected = ("content_filter", "the server's content filter: the prompt was filtered (code")
        assert (answer.finish_reason, answer.error[:-16]) == expected


def test_an_error_instead_of_choices_is_quoted():
    for reply in (
        *({"error": {"message": "no credits"}}, {"choices": [], "error": "no credits"}),
        *({"object": "error", "message": "no credits"}, {"detail": "no credits"}),
    ):
        with pytest.raises(ValueError, match=r"^the server reports an error: no credits$"):
            read_reply(Prompt(id="p", text="x"), reply)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", [None, "", " \n"])
def test_an_answer_in_the_field_of_the_reasoning_is_an_error(field, content):
    """vllm#17349 and #19839: the parser of the reasoning returns the complete answer."""
    answer = read(content, "stop", message={field: "Alderby it is"})

    assert (answer.text, answer.finish_reason) == (None, "error")
    assert answer.reasoning == "Alderby it is"
    assert "start the server without its reasoning parser" in answer.error
    assert '{"chat_template_kwargs": {"enable_thinking": true}}' in answer.error
