"""Test the selection of articles from a dump: by category, length, draw and page views."""

import json

import pytest
from surface_consistency_build.writers.slaq_article_selection import (
    ArticleSettings,
    select_articles,
)
from surface_consistency_build.writers.slaq_articles import read_articles

from surface_consistency.cli.main import main
from surface_consistency.data.slaq import load_slaq
from surface_consistency.errors import DataError, SourceNotFoundError
from tests.surface_consistency_build.wikimedia.made_exports import export_xml, page_xml

STATES = "Member states of the United Nations"
TITLES = {"Afghanistan", "Albania", "Algeria", "Andorra", "Angola", "Azerbaijan"}
RIVERS = ("Alpheus", "Bistrica", "Cherangani", "Dordogne", "Euphrates", "Fluminimaggiore")

WRITER = '''
"""A writer that copies five facts from the given article."""
import json
import re
from surface_consistency.models.runner import FakeRunner

def answer(prompt):
    text = prompt.messages[0].content
    title = re.search(r"Topic: (.*)", text)[1]
    words = list(dict.fromkeys(re.findall(r"[A-Z][a-z]{4,}", text.partition("Article:")[2])))
    names = [word for word in words if word not in title][:5]
    pairs = {}
    for k, name in enumerate(names, 1):
        pairs |= {f"ShortQ{k}": f"Which name number {k} stands in the annals of {title}?",
                  f"ShortA{k}": name}
    parts = ", ".join(f"({k}) which name number {k} stands in its annals" for k in range(1, 6))
    return json.dumps(pairs | {"LongQ": f"Describe {title}, telling {parts}.",
                               "LongA": f"Of {title} stand there " + ", ".join(names) + "."})

def make():
    return FakeRunner(answer, name="copyist")
'''


def wikitext(title, n_words, *categories):
    """An article with further elements in addition to words."""
    names = " ".join(f"[[{river} (river)|{river}]]" for river in RIVERS)
    prose = " word" * (n_words - len(RIVERS) - 1)
    links = "".join(f"[[Category:{name}|{title}]]" for name in categories)
    return f"{{{{Infobox|a=b}}}}'''{title}''' {names}{prose}<ref>A note.</ref>\n{links}"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    texts = {title: wikitext(title, 1001, STATES) for title in sorted(TITLES)}
    texts |= {
        "Andalusia": wikitext("Andalusia", 1000, STATES),
        "Aristotle": wikitext("Aristotle", 1500, "Metaphysicians", STATES),
        "Athens": wikitext("Athens", 1500, "Cities"),
    }
    pages = [page_xml(title, text, page_id=n) for n, (title, text) in enumerate(texts.items(), 1)]
    text = f"#REDIRECT [[Angola]]\n[[Category:{STATES}]]"
    path = tmp_path_factory.mktemp("dump") / "pages-articles.xml"
    path.write_text(export_xml(*pages, page_xml("AO", text, page_id=99, redirect="Angola")))
    return path


def pageviews(path, **views):
    """A file of the real format, with rows of other wikis and kinds of access."""
    lines = ["de.wikipedia Angola 1 desktop 99999 A99999"]
    for title, count in views.items():
        lines += [
            f"en.wikipedia {title} 2 desktop {count} A{count}",
            f"en.wikipedia {title} 2 mobile-web 1 A1",
        ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_long_articles_of_a_category_are_selected(dump):
    settings = ArticleSettings(categories=("metaphysicians", STATES.replace(" ", "_")))

    found = select_articles(dump, settings=settings)

    assert found.articles[0].title == "Aristotle"
    states = found.articles[1:]
    assert {item.title for item in states} == TITLES
    assert all(item.pageviews is None and len(item.text.split()) > 1000 for item in states)
    assert states[0].url == "https://en.wikipedia.org/wiki/Afghanistan"
    assert states[0].text.startswith("Afghanistan Alpheus Bistrica Cherangani Dordogne Euphrates")
    assert not {"{{", "[[", "note", "Category"} & set(states[0].text.split())
    assert found.n_in_category == {"metaphysicians": 1, settings.categories[1]: 7}
    assert found.n_long_enough == {"metaphysicians": 1, settings.categories[1]: 6}


def test_drawn_articles_depend_only_on_the_seed(dump):
    def drawn(seed, n):
        settings = ArticleSettings(categories=(STATES,), candidates=n, seed=seed)
        return {item.title for item in select_articles(dump, settings=settings).articles}

    first = [drawn(seed, 2) for seed in range(2)]

    assert first[0] == drawn(0, 2)
    assert len({frozenset(drawn(seed, 2)) for seed in range(6)}) > 1
    assert first[0] < drawn(0, 4) < TITLES | {"Aristotle"}
    assert len(drawn(1, 9)) == 7


NAMED = ("Albania", "Afghanistan", "Angola", "Azerbaijan")


def test_most_and_least_viewed_articles_are_kept(dump, tmp_path):
    """Views are summed over kinds of access and files; rows of other wikis are not counted."""
    day = pageviews(tmp_path / "a", Afghanistan=50, Albania=40, Algeria=30, Andorra=20, Angola=5)
    other = pageviews(tmp_path / "b", Angola=4, Albania=100)
    settings = ArticleSettings(categories=("Metaphysicians", STATES), per_half=2)

    found = select_articles(dump, [day, other], settings=settings)

    named = {item.title: item.pageviews for item in found.articles[1:]}
    assert list(named.items()) == [*zip(NAMED, (142, 51, 11, 0), strict=True)]
    assert found.n_without_views == 2


def test_invalid_selections_are_rejected(dump, tmp_path):
    day = [pageviews(tmp_path / "day", Albania=40)]
    french = {"per_half": 1, "project": "fr.wikipedia"}
    for pages, views, given, error, message in (
        (dump, [], {"categories": (STATES, "No such")}, DataError, "No such: 0 articles"),
        (dump, [], {"per_half": 1}, DataError, "give pageview files"),
        (dump, day, french, DataError, r"no drawn article has a line of fr\.wikipedia"),
        (tmp_path / "none.xml", [], {}, SourceNotFoundError, "not found"),
    ):
        settings = ArticleSettings(**({"categories": (STATES,)} | given))
        with pytest.raises(error, match=message):
            select_articles(pages, views, settings=settings)


def test_three_commands_build_a_data_set_from_a_dump(dump, tmp_path, capsys, monkeypatch):
    """Articles are selected, topics are written and reviewed, and the result is loaded."""
    (tmp_path / "copyist.py").write_text(WRITER, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    articles, out = tmp_path / "articles.jsonl", tmp_path / "written"
    day = pageviews(tmp_path / "day", Albania=40, Algeria=30, Angola=5)
    chosen = ["--categories", STATES, "--per-half", "1", "--pageviews", str(day)]

    assert main(["build", "articles", "--pages", str(dump), *chosen, "--out", str(articles)]) == 0
    assert f"{STATES}: 8 articles, 7 long enough, 2 kept" in capsys.readouterr().out
    assert [item.title for item in read_articles(articles)] == ["Albania", "Azerbaijan"]

    write = ["build", "topics", "--articles", str(articles), "--runner", "copyist:make"]
    assert main([*write, "--out", str(out)]) == 0
    assert "topics: 2\n" in capsys.readouterr().out
    assert len((out / "writer.jsonl").read_text("utf-8").splitlines()) == 2

    done = tmp_path / "reviewed"
    assert main([*write, "--review", str(out / "review.csv"), "--out", str(done)]) == 0
    assert "topics: 2\ncorrected: 0\n" in capsys.readouterr().out
    topics = load_slaq(done).topics
    assert [topic.popularity for topic in topics] == ["popular", "obscure"]
    assert json.loads(articles.read_text("utf-8").splitlines()[0])["pageviews"] == 41


def test_invalid_paths_on_the_command_line_are_reported(dump, tmp_path, capsys):
    build = ["build", "articles", "--pages", str(dump), "--categories", STATES]

    assert main([*build, "--out", str(tmp_path / "articles")]) == 2
    assert "name it articles.jsonl" in capsys.readouterr().err
    assert main(["build", "topics", "--articles", str(tmp_path / "no"), "--runner", "fake"]) == 2
