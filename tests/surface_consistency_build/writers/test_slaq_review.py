import csv
from html.parser import HTMLParser

import pytest
from surface_consistency_build.writers.slaq_review import (
    REVIEW_COLUMNS,
    ReviewItem,
    write_review_sheet,
)
from surface_consistency_build.writers.slaq_rules import check_topic

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.errors import DataError


class Tags(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self):
        super().__init__()
        self.found, self.links, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.links += [value for name, value in attrs if name == "href"]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parsed(path):
    tags = Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    return tags


def test_sheet_holds_every_fact_and_what_is_wrong(tmp_path, written, article):
    bad = written(ShortQ1="When did the war occur?", LongQ="Tell me about the Punic Wars.")
    items = [
        ReviewItem(article=article, written=one, violations=tuple(check_topic(one, article)))
        for one in (written(), bad)
    ]

    table, page = write_review_sheet(items, tmp_path / "new" / "folder")
    rows = read(table)

    assert list(rows[0]) == list(REVIEW_COLUMNS)
    assert [row["fact"] for row in rows] == ["1", "2", "3", "4", "5", "long"] * 2
    assert rows[0]["violations"] == rows[5]["violations"] == ""
    assert "names no subject" in rows[6]["violations"]
    assert "does not list five parts" in rows[11]["violations"]
    assert rows[2]["answer"] == "Rome and Carthage."
    assert all(row["note"] == "" for row in rows)
    assert "2 topics, 1 with broken rules" in "".join(parsed(page).text)


def test_a_sheet_that_a_reviewer_has_filled_is_not_written_over(tmp_path, written, article):
    items = [ReviewItem(article=article, written=written())]
    table, _ = write_review_sheet(items, tmp_path)
    assert write_review_sheet(items, tmp_path)[0] == table
    filled = table.read_text("utf-8").replace(",,,,,\n", ",,,,,not in the article\n", 1)
    table.write_text(filled, "utf-8")

    with pytest.raises(DataError, match=r"review\.csv holds the notes of a reviewer"):
        write_review_sheet(items, tmp_path)

    assert table.read_text("utf-8") == filled


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", " javascript:alert(1)"])
def test_page_runs_nothing(tmp_path, written, url):
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'</td>"
    article = SlaqArticle(title=attack, category=attack, text=attack, url=url)
    item = ReviewItem(article=article, written=written(ShortQ1=attack, LongA=attack))

    page = parsed(write_review_sheet([item], tmp_path)[1])

    assert not {"script", "img"} & set(page.found)
    assert page.links == []
    assert "".join(page.text).count("<script>alert(1)</script>") == 4


def test_page_links_to_the_web(tmp_path, written, article):
    page = parsed(write_review_sheet([ReviewItem(article=article, written=written())], tmp_path)[1])

    assert page.links == ["https://en.wikipedia.org/wiki/Punic_Wars"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_table_holds_no_formulas(tmp_path, written, article, start):
    item = ReviewItem(article=article, written=written(ShortA1=f'{start}HYPERLINK("http://x")'))

    rows = read(write_review_sheet([item], tmp_path)[0])

    assert rows[0]["answer"].startswith(f"'{start}")
    assert all(not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
