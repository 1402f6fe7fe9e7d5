import pytest

from surface_consistency.wikimedia.pages_xml import REDIRECT_WORDS, redirect_link


@pytest.mark.parametrize("word", REDIRECT_WORDS)
def test_redirect_link_knows_the_word(word: str) -> None:
    for spelling in (word, word.lower().replace("i\u0307", "i"), word.replace("_", " ")):
        found = redirect_link(f" #{spelling} : [[A|b]] [[C]]")

        assert found is not None
        assert found[1] == "A"


@pytest.mark.parametrize("text", ["#NOWORD [[A]]", "REDIRECT [[A]]", "#REDIRECT {{A}} [[B]]", ""])
def test_redirect_link_rejects_other_text(text: str) -> None:
    assert redirect_link(text) is None


def test_redirect_link_takes_any_word_of_a_known_redirect() -> None:
    found = redirect_link("#NOWORD [[A#b]]", is_known=True)

    assert found is not None
    assert found[1] == "A#b"
    assert redirect_link("no number sign [[A]]", is_known=True) is None
