import pytest
from surface_consistency_build.writers.slaq_prompts import writer_prompt

from surface_consistency.data.slaq_records import SlaqArticle

TEXT = "First paragraph here.\n\nSecond paragraph. It goes on and on and on."
ARTICLE = SlaqArticle(title="Null Island", category="Geography", text=TEXT)


@pytest.mark.parametrize("layout", ["json", "lines", "one_line"])
def test_writer_prompt_holds_rules_keys_and_article(layout):
    prompt = writer_prompt(ARTICLE, layout=layout)
    content = prompt.messages[0].content

    assert prompt.id.endswith("/write/1")
    assert TEXT in content
    assert "fewer than ten words" in content
    for key in ("ShortQ1", "ShortA5", "LongQ", "LongA", "ShortQ5_Entity"):
        assert key in content


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (len(TEXT), TEXT),
        (30, "First paragraph here."),
        (50, "First paragraph here.\n\nSecond paragraph."),
        (20, "First paragraph"),
        (3, "Fir"),
    ],
)
def test_writer_prompt_cuts_at_the_end_of_something(limit, kept):
    content = writer_prompt(ARTICLE, max_characters=limit).messages[0].content

    assert content.partition("Article:\n")[2].partition("\n\n(The article")[0] == kept


def test_writer_prompt_asks_for_a_better_answer():
    prompt = writer_prompt(ARTICLE, previous="old", faults=("ShortA1 has 12 words",), attempt=2)

    assert [turn.role for turn in prompt.messages] == ["user", "assistant", "user"]
    assert "ShortA1 has 12 words" in prompt.messages[2].content
    assert prompt.messages[1].content == "old"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "xml"}, "layout must be one of"),
        ({"max_characters": 0}, "max_characters must be at least 1"),
        ({"previous": "old"}, "given together"),
        ({"faults": ("bad",)}, "given together"),
    ],
)
def test_writer_prompt_rejects_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        writer_prompt(ARTICLE, **options)


def test_a_writer_is_asked_in_the_words_of_the_paper():
    article = SlaqArticle(title="Null Island", category="Geography", text="A {text} of sea. More.")
    options = {"layout": "one_line", "prompts": "paper"}
    (turn,) = writer_prompt(article, **options, max_characters=17).messages
    again = writer_prompt(article, **options, previous="old", faults=("bad",), attempt=2).messages

    assert turn.content.endswith("Reference Article:\nA {text} of sea.\n\n-\n\nGenerate Now:")
    assert "Null Island" not in turn.content
    assert [one.role for one in again] == ["user", "assistant", "user"]
    with pytest.raises(ValueError, match="layout 'json' is not what the paper's words ask for"):
        writer_prompt(article, prompts="paper")
