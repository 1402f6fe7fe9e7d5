import pytest
from hypothesis import given, strategies as st
from surface_consistency_build.wikimedia.wikitext import (
    INTERWIKI_PREFIXES,
    SiteInfo,
    category_links,
    rendered_part,
    template_calls,
)

SITE = SiteInfo(
    namespaces={0: "", 2: "Benutzer", 3: "Benutzer Diskussion", 4: "Wikipedia", 14: "Kategorie"},
    case_sensitive=frozenset({14}),
)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("köln_am  Rhein", "Köln am Rhein"), ("user:x", "Benutzer:X"),
        (" benutzer_diskussion : x y", "Benutzer Diskussion:X y"), (":kategorie:x", "Kategorie:x"),
        ("talk:x", "Talk:X"), ("project:x", "Wikipedia:X"), ("de:x", "de:x"),
        ("2001: a film", "2001: a film"), ("ßx", "ßx"), ("აბგ", "აბგ"), ("\u200eabc", "Abc"),
        ("", ""),
    ],
)  # fmt: skip
def test_titles_are_normalised_like_by_the_wiki(text, title):
    assert SITE.title(text) == title


@given(st.text(max_size=30))
def test_title_is_idempotent(text):
    title = SITE.title(text)
    if not title.startswith((":", " ")):
        assert SITE.title(title) == title


def test_namespaces_have_precedence_over_interwiki_prefixes():
    assert "wikipedia" in INTERWIKI_PREFIXES
    assert not SITE.is_interwiki("Wikipedia:Titel")
    assert SiteInfo().is_interwiki("Wikipedia:Titel")
    assert SITE.namespace_of("Wikipedia:Titel") == 4


def names(text):
    return [call.name for call in template_calls(rendered_part(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{a}}{{B|c}}", ["A", "B"]), ("{{ a_b\n|x}}", ["A b"]),
        ("{{a|{{b|{{c}}}}}}", ["A", "B", "C"]), ("{{{a}}}", []), ("{{{{a}}}}", []),
        ("{{{{{a}}}}}", []), ("{{{a|{{b}}}}}", ["B"]), ("{{a {{b}} c}}", ["B"]),
        ("{{a[[b|c]]}}", []), ("{{a|[[b|c]]|d}}", ["A"]), ("{{a|[[b}}", []), ("{{a|{{b}}", ["B"]),
        ("{{a}} }} {{b}}", ["A", "B"]), ("{a} {{}} {{|x}}", []),
        ("{{:Main page}} {{subst:x}} {{#if:1|2}} {{DEFAULTSORT:k}}", []),
        ("{{Template:x}} {{template : y}}", ["X", "Y"]), ("{{x<!-- y -->z}}", ["Xz"]),
        ("<pre>{{x}}</pre><PRE class=a>{{y}}</PRE>{{z}}", ["Z"]),
        ("<includeonly>{{x}}</includeonly><noinclude>{{y}}</noinclude>", ["Y"]),
        ("{{x}}<!-- {{y}}", ["X"]), ("<nowiki />{{x}}<nowiki>{{y}}", ["X", "Y"]), ("{{a\nb}}", []),
    ],
)  # fmt: skip
def test_template_calls_agree_with_mediawiki(text, expected):
    assert names(text) == expected


def test_template_arguments_are_the_unnamed_and_numbered_ones():
    (call, *_) = template_calls("{{a| x |2= y|n=z|[[l|m]]|{{t|u}}|}}")

    assert call.arguments == ("x", "y", "", "", "")


def test_template_namespace_is_the_local_one():
    site = SiteInfo(namespaces={10: "Vorlage", 14: "Kategorie"})

    assert [call.name for call in template_calls("{{vorlage:x}}{{Template:y}}", site)] == ["X", "Y"]
    assert category_links("[[kategorie:a]][[Category:b|*]]", site) == ["A", "B"]


@given(st.lists(st.text("abcXYZ é", min_size=1).filter(lambda name: name.strip()), max_size=6))
def test_nested_template_calls_are_read_at_any_depth(inner):
    text = ""
    for name in reversed(inner):
        text = f"{{{{{name}|1={text}}}}}"
    expected = [" ".join(name.split()) for name in inner]

    assert names(text) == [name[:1].upper() + name[1:] for name in expected]


@given(st.text("{}[]|=x\n<!->", max_size=60))
def test_template_calls_accept_any_text(text):
    for call in template_calls(rendered_part(text)):
        assert call.name.strip() == call.name != ""
