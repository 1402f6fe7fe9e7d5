"""Rows with the columns of the releases, example tables, and separate caches of tests."""

import copy
import csv
import json

import pytest

from surface_consistency.data.slaq_rows import SlaqRow
from surface_consistency.taxonomy import RELATIONS

RELEASED = (
    *("triplet_id", "subject_id", "subject_surface", "subject_surface_category"),
    *("subject_wiki_title", "subject_redirect_wiki_title", "subject_pageviews", "subject_aliases"),
    *("relation", "object_id", "object_surface", "possible_answers", "template", "question"),
)
FACTS = [
    (
        *(230395, "Q154216", "Cat_Stevens", 1209162, "place_of_birth", "Q84"),
        ["London", "London, UK"],
        {"Steven_D._Georgiou": ["Redirects_from_personal_names", "Redirects_from_short_names"]},
    ),
    (
        *(6146949, "Q6321927", "Jesús_Antúnez", 727, "occupation", "Q639669", ["musician"]),
        {
            "Jesus_Antunez_(musician)": ["Redirects_from_titles_without_diacritics"],
            "Jesus_Antunez": ["Redirects_from_misspellings"],
        },
    ),
]


def rows_of(triplet_id, subject_id, page, views, relation, object_id, answers, redirects):
    """Convert a fact to rows of the release."""
    title = page.replace("_", " ")
    for redirect, categories in {None: ["__MAIN__"], **redirects}.items():
        surface = title if redirect is None else redirect.partition("_(")[0].replace("_", " ")
        for template in ("original", "paraphrase"):
            question = RELATIONS[relation].question(surface, template=template)
            subject = (triplet_id, subject_id, surface, categories, page, redirect, views, [title])
            fact = (relation, object_id, answers[0], answers, template, question)
            yield dict(zip(RELEASED, subject + fact, strict=True))


@pytest.fixture
def rows():
    """Ten rows: two titles and three redirects of two facts, in two templates."""
    return [copy.deepcopy(row) for fact in FACTS for row in rows_of(*fact)]


@pytest.fixture
def write_lines():
    def write(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return write


@pytest.fixture(autouse=True)
def own_caches(tmp_path_factory, monkeypatch):
    """Give each test empty caches of the hub and of `datasets`."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(cache / "datasets"))
    return cache


COLUMNS = list(SlaqRow.model_fields)


QUESTIONS = {
    "When did the First Punic War occur?": "It took place from 264 to 241 BCE.",
    "How long did the Punic Wars last?": "They lasted a total of 43 years.",
    "Which two powers fought in the Punic Wars?": "Rome and Carthage.",
    "Who was the renowned Carthaginian general in the Second Punic War?": "Hannibal Barca was "
    "the famous general.",
    "What did Hannibal famously cross Italy with?": "Hannibal crossed Italy with war elephants.",
}


def slaq_row(topic="The Punic Wars", **changes):
    """Return the row of figure 6 of the paper (arXiv 2510.11218), with changes."""
    row = {
        "Category": "History",
        "Topic": topic,
        "URL": "https://en.wikipedia.org/wiki/Punic_Wars",
        "LongQ": "Discuss the Punic Wars by covering (1) when the First Punic War occurred, "
        "(2) how long the Punic Wars lasted, (3) which two powers fought, (4) who the renowned "
        "Carthaginian general in the Second Punic War was, and (5) what he famously crossed Italy "
        "with.",
        "LongA": "The First Punic War took place from 264 to 241 BCE, and the three Punic Wars "
        "altogether lasted about 43 years between Rome and Carthage. In the Second Punic War, "
        "Hannibal Barca rose as the famed Carthaginian commander, becoming legendary for crossing "
        "Italy with war elephants.",
        "Pageviews": "1,234,567",
    }
    for n, (question, answer) in enumerate(QUESTIONS.items(), 1):
        row |= {f"ShortQ{n}": question, f"ShortA{n}": answer, f"ShortQ{n}_Entity": str(int(n != 2))}
    return {name: row[name] for name in COLUMNS if name in row} | changes


@pytest.fixture
def row():
    return slaq_row


@pytest.fixture
def write_csv(tmp_path):
    """Write rows in the format of the released file."""

    def write(rows, name="test.csv", columns=COLUMNS, encoding="utf-8"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding=encoding, newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


@pytest.fixture(scope="session")
def published(data_files):
    """Database file and prompt folder of each published database, by name."""
    root = data_files / "lmlm_audit" / "data"
    custom = root / "custom_databases"
    cells = {
        f"{folder.name}/{name}": (folder / f"{name}.json", folder / "prompts" / name)
        for folder in (custom / "countries", custom / "politicians", custom / "sports")
        for name in ("base", "alias", "noise", "collision")
    }
    released = root / "released_database"
    return cells | {"released": (released / "lmlm_database.json", released / "prompts")}
