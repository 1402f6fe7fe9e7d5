"""Wordings and prompts of the linking probe."""

import pytest

from surface_consistency.studies.linking.prompts import (
    LINKING_WORDINGS,
    linking_prompt,
    linking_question,
)
from surface_consistency.taxonomy import CATEGORIES


def test_every_category_has_a_wording_in_both_orders():
    assert LINKING_WORDINGS.keys() == CATEGORIES.keys()
    for wordings in LINKING_WORDINGS.values():
        for wording, first in zip(wordings, ("redirect", "canonical"), strict=True):
            places = [wording.find("{redirect}"), wording.find("{canonical}")]
            assert min(places) >= 0
            assert (places[0] < places[1]) == (first == "redirect")
            assert wording.endswith("?")


@pytest.mark.parametrize(
    ("redirect", "canonical", "category", "question"),
    [
        # The wording that RedirectQA prints, appendix B.5.
        ("NYT", "Times", "Redirects_from_initialisms", "Is NYT an initialism for Times?"),
        # Names are never read as placeholders.
        ("{canonical}", "a {b}", None, "Is {canonical} another name for a {b}?"),
    ],
)
def test_questions_contain_their_names(redirect, canonical, category, question):
    assert linking_question(redirect, canonical, category=category) == question


@pytest.mark.parametrize("chat", [False, True])
def test_prompts_contain_their_demonstrations_and_options(chat):
    shown = [("Is A another name for B?", True), ("Is C another name for D?", False)]
    prompt = linking_prompt("p", "Is E another name for F?", demonstrations=shown, chat=chat)
    if chat:
        assert prompt.options == ("yes", "Yes", "no", "No")
        assert [turn.content for turn in prompt.messages] == [
            "Is A another name for B?",
            "yes",
            "Is C another name for D?",
            "no",
            "Is E another name for F? Answer yes or no.",
        ]
    else:
        assert prompt.options == (" yes", " Yes", " no", " No")
        assert prompt.text == (
            "Q: Is A another name for B? A: yes\n\nQ: Is C another name for D? A: no\n\n"
            "Q: Is E another name for F? A:"
        )
    assert linking_prompt("p", "Is E?", chat=chat, with_options=False).options is None
