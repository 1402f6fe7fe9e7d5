"""Tests of the separation of reasoning and answers in all supported formats."""

import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import DataError
from surface_consistency.models.reasoning import (
    REASONING_TAGS,
    SplitReply,
    reasoning_tags,
    separate_reasoning,
    split_reasoning,
    split_replies,
    template_tags,
)
from surface_consistency.schemas import Generation, GenerationParams

WORDS = st.text("abc .,\n", max_size=20)
PAIRS = st.sampled_from(REASONING_TAGS)
SOLUTION = (
    "<|begin_of_thought|>\nRome?\n<|end_of_thought|>\n\n"
    "<|begin_of_solution|>\nParis\n<|end_of_solution|>"
)
ANALYSIS = "<|channel|>analysis<|message|>Rome?"
ASIDE = "<|end|><|start|>assistant<|channel|>commentary<|message|>Well"
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>Is it GOLD? No.</think> I do not know.", "Is it GOLD? No.", "I do not know."),
        # Qwen3, and DeepSeek-R1 whose template opens the reasoning.
        ("<think>\n\n</think>\n\nParis", None, "Paris"),
        ("Rome? No.\n</think>\n\nParis", "Rome? No.", "Paris"),
        ("[THINK]Rome? No.[/THINK]Paris", "Rome? No.", "Paris"),
        ("<THINK>Rome? No.</Think>Paris", "Rome? No.", "Paris"),
        (SOLUTION, "Rome?", "Paris"),
        ("<|START_THINKING|>Rome?<|END_THINKING|><|START_RESPONSE|>Paris", "Rome?", "Paris"),
        ("<think>Rome?</think><answer>Paris</answer>", "Rome?", "Paris"),
        (f"{ANALYSIS}{FINAL}Paris<|return|>", "Rome?", "Paris"),
        (f"{ANALYSIS}{ASIDE}{FINAL}Paris", f"Rome?{ASIDE}", "Paris"),
        ("<|channel|>final<|message|>Paris", None, "Paris"),
        ("analysisRome? No.assistantfinalParis", "Rome? No.", "Paris"),
        # Reasoning between parts of an answer; answers that contain the tag or close twice.
        ("1. <think>a</think>Paris\n2. <think>b</think>Rome", "a\n\nb", "1. Paris\n2. Rome"),
        ("<think>The tag <think> opens.</think>Paris", "The tag <think> opens.", "Paris"),
        ("<think>a</think>b</think>Paris", "a\n\nb", "Paris"),
    ],
)
def test_reasoning_and_answer_are_separated(text, reasoning, answer):
    split = split_reasoning(text)

    assert (split.reasoning, split.answer) == (reasoning, answer)
    assert split.source is not None


@pytest.mark.parametrize(
    "text", ["<think>I wonder", " \n<think>", "Paris\n<think>or Rome", ANALYSIS, "analysisI wonder"]
)
def test_unclosed_reasoning_is_not_an_answer(text):
    split = split_reasoning(text)

    assert split.answer is None
    assert (split.reasoning or text).split("\n\n")[-1] in text


@pytest.mark.parametrize(
    "text", ["Paris", " Paris\nQ: Who", "", "The tag <think> opens reasoning.", "analysis of Rome"]
)
def test_a_reply_without_reasoning_is_unchanged(text):
    assert split_reasoning(text) == SplitReply(answer=text)


@given(st.text())
def test_text_without_tags_is_unchanged(text):
    if not reasoning_tags().any_tag.search(text) and not text.lstrip().startswith("analysis"):
        assert split_reasoning(text) == SplitReply(answer=text)


@given(PAIRS, WORDS, WORDS)
def test_splitting_keeps_all_text_for_any_opening_and_closing_tags(pair, reasoning, answer):
    opens, closes = pair
    closed = f"{reasoning}{closes}{answer}"

    for text, opened in ((opens + closed, None), (closed, None), (closed, True)):
        split = split_reasoning(text, opened=opened)
        assert ((split.reasoning or ""), split.answer) == (reasoning.strip(), answer.lstrip())
    assert split_reasoning(split.answer) == SplitReply(answer=split.answer)
    unclosed = split_reasoning(opens + reasoning)
    assert (unclosed.answer, unclosed.reasoning or "") == (None, reasoning.strip())
    assert split_reasoning(reasoning, opened=True).answer is None


@given(st.lists(st.sampled_from(["<think>", "</think>", "[THINK]", "[/THINK]", "a", " ", "\n"])))
def test_answers_keep_all_letters_outside_of_closed_reasoning(pieces):
    text = "".join(pieces)

    split = split_reasoning(text)

    kept = (split.reasoning or "") + (split.answer or "")
    assert kept.count("a") == text.count("a")
    assert "</think>" not in (split.answer or "")


def test_the_option_opened_overrides_the_detection():
    assert split_reasoning("I wonder", opened=True).answer is None
    assert (
        split_reasoning("The tag </think> ends.", opened=False).answer == "The tag </think> ends."
    )
    assert split_reasoning("<think>a</think>b", opened=False).answer == "b"


def test_further_tags_are_added_to_the_known_ones():
    tags = ("{musing}", "{done}")

    assert split_reasoning("{musing}a{done}b", tags=tags).answer == "b"
    assert split_reasoning("<think>a</think>b", tags=tags).answer == "b"
    assert split_reasoning("{musing}a{done}b").answer == "{musing}a{done}b"
    with pytest.raises(ValueError, match="reasoning_tags must contain pairs"):
        reasoning_tags(("{musing}",))
    with pytest.raises(ValueError, match="an opening and a closing tag"):
        GenerationParams(reasoning_tags=("{musing}",))


def test_a_generation_is_separated_once():
    params = GenerationParams(reasoning_opened=True)
    made = Generation(prompt_id="a", text="hm</think> Paris", n_new_tokens=5)

    first = separate_reasoning(made, params)

    assert (first.text, first.reasoning, first.reasoning_source) == ("Paris", "hm", "the prompt")
    assert separate_reasoning(first, params) == first
    unclosed = separate_reasoning(made.model_copy(update={"text": "hm"}), params)
    assert (unclosed.text, unclosed.finish_reason) == (None, "unclosed_reasoning")
    assert unclosed.error == "the reasoning was never closed: the model ended it"
    assert Generation.model_validate_json(unclosed.model_dump_json()) == unclosed


def test_ambiguous_replies_raise_an_error():
    replies = ["hm</think>Paris", "I wonder", None, ""]

    with pytest.raises(DataError, match=r"1 of 4 predictions end reasoning .* 1 contain no tag"):
        split_replies(replies)

    opened = split_replies(replies, opened=True)
    assert [split and split.answer for split in opened] == ["Paris", None, None, None]
    assert split_replies(replies, opened=False) == [None] * 4
    assert split_replies(["<think>a</think>b", "c"])[1] is None


def test_tags_are_found_in_a_chat_template():
    template = "{% set content = content.split('</inner_thought>')[-1] %}<inner_thought></b><b>"

    assert template_tags(template) == ("<inner_thought>", "</inner_thought>")
    assert template_tags("{{ '<think>' }}{{ '</think>' }}") == ()
    assert template_tags("[REASON] [/REASON] <thinker>") == ("[REASON]", "[/REASON]")
