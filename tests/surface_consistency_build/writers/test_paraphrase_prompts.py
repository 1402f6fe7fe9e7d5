"""The request for paraphrases."""

import pytest
from surface_consistency_build.writers.paraphrase_prompts import paraphrase_prompt

from surface_consistency.taxonomy import RELATIONS


def test_the_examples_stand_before_the_question_in_both_forms():
    """As many wordings as are asked for, and none of a relation of RedirectQA."""
    asked = {"number": 2, "prompt_id": "p"}
    chat = paraphrase_prompt("Who wrote {x}?", "{x}", **asked).messages
    text = paraphrase_prompt("Who wrote {x}?", "{x}", **asked, prompt_format="completion").text

    assert [turn.role for turn in chat] == ["user", "assistant"] * 3 + ["user"]
    assert chat[1].content.splitlines()[1].startswith("2. What is the year")
    assert chat[-1].content == "Question: Who wrote {x}?\nName: {x}\nWrite 2 wordings."
    assert text.endswith(f"\n\n{chat[-1].content}\n1.")
    for relation in RELATIONS.values():
        for template in (relation.original, relation.paraphrase):
            assert template.replace("{}", "Ikea") not in text


def test_wrong_requests_are_refused():
    with pytest.raises(ValueError, match="number counts paraphrases and must be 1 or more, got 0"):
        paraphrase_prompt("Who?", "W", number=0, prompt_id="p")
    with pytest.raises(ValueError, match="prompt_format must be one of chat, completion"):
        paraphrase_prompt("Who?", "W", number=1, prompt_id="p", prompt_format="json")
