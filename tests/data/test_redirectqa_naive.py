"""The frame of RedirectQA equals that of a naive implementation, for rows in many layouts."""

import hashlib
import json
import random

import pandas as pd
import pytest

from surface_consistency.data.questions import QUESTION_COLUMNS, plain_values
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.sources import SAMPLES
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.taxonomy import CATEGORIES, RELATIONS, TEMPLATES

LINES = (SAMPLES / "redirectqa" / "test.jsonl").read_text(encoding="utf-8").splitlines()
SAMPLE = [json.loads(line) for line in LINES]


def without(*columns):
    """Drop columns."""
    return lambda row: {name: cell for name, cell in row.items() if name not in columns}


def numbered(row):
    """Number the templates instead of naming them."""
    return row | {"template": TEMPLATES.index(row["template"])}


def spelled_otherwise(row):
    """Write the same cells in the formats of CSV files and other tools."""
    return row | {
        "triplet_id": f" {row['triplet_id']} ",
        "relation": RELATIONS[row["relation"]].property_id,
        "object_aliases": json.dumps(row["object_aliases"]),
        "subject_surface_category": [
            label if label == "__MAIN__" else label.replace("Redirects_", "").replace("_", " ")
            for label in row["subject_surface_category"]
        ],
    }


def with_gaps(row):
    """Remove cells that other rows of the fact contain."""
    if row["template"] == TEMPLATES[0]:
        return row | {"object_id": None, "subject_wiki_title": None, "relation": None}
    return row


def cells(**changes):
    """Change the cells of some columns."""
    return lambda row: row | {name: change(row[name]) for name, change in changes.items()}


def only_titles(row):
    """Mark canonical rows only by their title."""
    is_canonical = row["subject_redirect_wiki_title"] is None
    return row | ({"subject_surface_category": []} if is_canonical else {})


LAYOUTS = {
    "as bundled": without(),
    "no template": without("template"),
    "numbered templates": numbered,
    "no relation": without("relation", "relation_id"),
    "no fact": without("triplet_id"),
    "no title": without("subject_wiki_title"),
    "no question": without("question"),
    "spelled otherwise": spelled_otherwise,
    "gaps": with_gaps,
    "ids as floats": cells(triplet_id=float),
    "categories as Python wrote them": cells(subject_surface_category=str),
    "titles with spaces": cells(subject_wiki_title=lambda title: title.replace("_", " ")),
    "relations by number": cells(relation=lambda name: RELATIONS[name].popqa_id),
    "empty redirects": cells(subject_redirect_wiki_title=lambda title: title or ""),
    "a further column": lambda row: row | {"note": "a column without a field"},
    "no subject item": without("subject_id"),
    "no object name": without("object_surface"),
    "no mark": only_titles,
}


def naive(original):
    """The documented result, row by row, from the complete original rows."""
    made = {}
    for row in original:
        is_canonical = row["subject_surface_category"] == ["__MAIN__"]
        labels = () if is_canonical else tuple(dict.fromkeys(row["subject_surface_category"]))
        title = None if is_canonical else row["subject_redirect_wiki_title"]
        key = f"{row['subject_surface']}\n{'__MAIN__' if is_canonical else title or ''}"
        fact, name = str(row["triplet_id"]), hashlib.sha256(key.encode()).hexdigest()[:12]
        question = RELATIONS[row["relation"]].question(
            row["subject_surface"], template=row["template"]
        )
        made[f"{fact}:{row['template']}:{name}"] = {
            "item": fact,
            "subject_id": row["subject_id"],
            "relation": row["relation"],
            "object_id": row["object_id"],
            "references": tuple(dict.fromkeys([row["object_surface"], *row["object_aliases"]])),
            "template": row["template"],
            "question": question,
            "surface": row["subject_surface"],
            "is_canonical": is_canonical,
            "categories": labels,
            "types": tuple(sorted({CATEGORIES[label].type for label in labels})),
            "redirect_title": title,
        }
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", [None, 0])
def test_frame_equals_that_of_a_naive_implementation(layout, seed):
    """All layouts give the questions of the original rows, in the order of the source."""
    rows = list(SAMPLE)
    if seed is not None:
        random.Random(seed).shuffle(rows)
    expected = naive(rows)

    made = list(map(LAYOUTS[layout], rows))
    data = load_redirectqa(made, ask_by_template=layout == "no question")

    columns = list(next(iter(expected.values())))
    found = [dict(zip(columns, cells, strict=True)) for cells in plain_values(data.rows, columns)]
    absent = {"no fact": "item", "no subject item": "subject_id"}.get(layout)
    if absent is not None:
        stated = [row[absent] for row in expected.values()]
        assert len(set(zip(stated, data.rows[absent], strict=True))) == len(set(stated))
        found = [one | {absent: name} for one, name in zip(found, stated, strict=True)]
    if absent != "item":
        assert data.rows["id"].tolist() == list(expected)
    for one in found:
        one["types"] = tuple(sorted(one["types"]))
    assert found == list(expected.values())
    assert tuple(data.rows.columns) == QUESTION_COLUMNS


@pytest.mark.parametrize("seed", range(3))
def test_items_and_pairs_do_not_depend_on_the_order_of_rows(seed):
    """Shuffled rows give the same items and pairs in the order of the rows."""
    rows = list(SAMPLE)
    random.Random(seed).shuffle(rows)
    plain, shuffled = load_redirectqa(SAMPLE), load_redirectqa(rows)
    study = RedirectQAStudy()

    plans = [
        study.plan(data, study.records.settings(template="both")) for data in (plain, shuffled)
    ]

    assert plain.source.digest == shuffled.source.digest
    for name, key in (("items", "target_id"), ("pairs", "pair")):
        frames = [getattr(plan, name).sort_values(key).reset_index(drop=True) for plan in plans]
        pd.testing.assert_frame_equal(*frames)
    assert plans[1].items["target_id"].tolist() == shuffled.rows["id"].tolist()
    assert plans[1].pairs["pair"].tolist() == shuffled.pairs["id"].tolist()
