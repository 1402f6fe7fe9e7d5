"""Rows in the columns of figure 6, and files of them as they come."""

import csv

import pytest

from surface_consistency.data.slaq.rows import SlaqRow
from surface_consistency.data.slaq.written import WrittenFact, WrittenTopic
from surface_consistency.schemas.slaq import SlaqArticle

COLUMNS = list(SlaqRow.model_fields)


def slaq_row(topic="The Punic Wars", **changes):
    """Figure 6 of the paper (arXiv 2510.11218)."""
    return {
        "Category": "History",
        "Topic": topic,
        "URL": "https://en.wikipedia.org/wiki/Punic_Wars",
        "ShortQ1": "When did the First Punic War occur?",
        "ShortA1": "It took place from 264 to 241 BCE.",
        "ShortQ2": "How long did the Punic Wars last?",
        "ShortA2": "They lasted a total of 43 years.",
        "ShortQ3": "Which two powers fought in the Punic Wars?",
        "ShortA3": "Rome and Carthage.",
        "ShortQ4": "Who was the renowned Carthaginian general in the Second Punic War?",
        "ShortA4": "Hannibal Barca was the famous general.",
        "ShortQ5": "What did Hannibal famously cross Italy with?",
        "ShortA5": "Hannibal crossed Italy with war elephants.",
        "LongQ": "Discuss the Punic Wars by covering (1) when the First Punic War occurred, "
        "(2) how long the Punic Wars lasted, (3) which two powers fought, (4) who the renowned "
        "Carthaginian general in the Second Punic War was, and (5) what he famously crossed Italy "
        "with.",
        "LongA": "The First Punic War took place from 264 to 241 BCE, and the three Punic Wars "
        "altogether lasted about 43 years between Rome and Carthage. In the Second Punic War, "
        "Hannibal Barca rose as the famed Carthaginian commander, becoming legendary for crossing "
        "Italy with war elephants.",
        "Pageviews": "1,234,567",
        "ShortQ1_Entity": "1",
        "ShortQ2_Entity": "0",
        "ShortQ3_Entity": "1",
        "ShortQ4_Entity": "1",
        "ShortQ5_Entity": "1",
    } | changes


@pytest.fixture
def row():
    """Make a row."""
    return slaq_row


@pytest.fixture
def write_csv(tmp_path):
    """Write rows as the release's file."""

    def write(rows, name="test.csv", columns=COLUMNS, encoding="utf-8"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding=encoding, newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


@pytest.fixture
def written():
    """What a writer would have written to get figure 6; changes by column name."""

    def make(**changes):
        cells = slaq_row(**changes)
        return WrittenTopic(
            facts=tuple(
                WrittenFact(question=cells[f"ShortQ{k}"], answer=cells[f"ShortA{k}"])
                for k in range(1, 6)
            ),
            long_question=cells["LongQ"],
            long_answer=cells["LongA"],
        )

    return make


@pytest.fixture
def article():
    """An article that holds figure 6."""
    cells = slaq_row()
    text = " ".join(str(cells[name]) for name in ("LongA", *(f"ShortA{k}" for k in range(1, 6))))
    return SlaqArticle(
        title="The Punic Wars", category="History", text=text, url=cells["URL"], pageviews=12
    )
