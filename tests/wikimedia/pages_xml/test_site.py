import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.wikimedia.wikitext import INTERWIKI_PREFIXES, SiteInfo

SITE = SiteInfo(
    namespaces={0: "", 2: "Benutzer", 3: "Benutzer Diskussion", 4: "Wikipedia", 14: "Kategorie"},
    case_sensitive=frozenset({14}),
)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("köln_am  Rhein", "Köln am Rhein"),
        ("user:x", "Benutzer:X"),
        (" benutzer_diskussion : x y", "Benutzer Diskussion:X y"),
        (":kategorie:x", "Kategorie:x"),
        ("talk:x", "Talk:X"),
        ("project:x", "Wikipedia:X"),
        ("de:x", "de:x"),
        ("2001: a film", "2001: a film"),
        ("ßx", "ßx"),
        ("აბგ", "აბგ"),
        ("\u200eabc", "Abc"),
        ("", ""),
    ],
)
def test_title_is_spelled_as_the_wiki_does(text: str, title: str) -> None:
    assert SITE.title(text) == title


@given(st.text(max_size=30))
def test_title_is_idempotent(text: str) -> None:
    title = SITE.title(text)
    if not title.startswith((":", " ")):
        assert SITE.title(title) == title


def test_namespaces_outweigh_interwiki_prefixes() -> None:
    assert "wikipedia" in INTERWIKI_PREFIXES
    assert not SITE.is_interwiki("Wikipedia:Titel")
    assert SiteInfo().is_interwiki("Wikipedia:Titel")
    assert SITE.namespace_of("Wikipedia:Titel") == 4
