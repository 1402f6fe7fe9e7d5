import gc
import json
from collections import Counter

import pandas as pd
import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.redirectqa_release import CATEGORY_TYPES_PATH
from surface_consistency.errors import (
    DataWarning,
    RecordError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)


def without(*columns):
    """Drop columns of a row."""
    return lambda row: {name: value for name, value in row.items() if name not in columns}


def first_answers(rows, **options):
    return load_redirectqa(rows, **options).rows["references"].iloc[0]


def test_load_redirectqa_reads_release_v1(rows):
    """Every column of the release is read into its field."""
    data = load_redirectqa(rows)
    question = data.questions[2]
    triple, surface = question.triple, question.surface

    assert (len(data.questions), len(data.pairs), len(data.unpaired)) == (10, 6, 0)
    assert question.id.startswith("230395:original:")
    assert question.question == "In what city was Steven D. Georgiou born?"
    assert question.template == "original"
    assert (surface.text, surface.redirect_title) == ("Steven D. Georgiou", "Steven_D._Georgiou")
    assert surface.categories == ("Redirects_from_personal_names", "Redirects_from_short_names")
    assert surface.types == ("alternative_names_and_abbreviations",)
    assert (triple.subject.id, triple.subject.name) == ("Q154216", "Cat_Stevens")
    assert triple.subject.pageviews == 1209162
    assert triple.relation == "place_of_birth"
    assert (triple.object.id, triple.object.name) == ("Q84", "London")
    assert triple.answers == ("London", "London, UK")
    # The rows of a fact share one record, and its two wordings one surface.
    assert data.questions[3].triple is triple
    assert data.questions[3].surface is surface


def test_columns_of_an_earlier_layout_are_read(rows):
    """It has one wording, plain categories, other names, and neither templates nor fact ids."""
    old = [
        {
            **{"subject_id": row["subject_id"], "subject": row["subject_wiki_title"]},
            **{"surface": row["subject_surface"], "question": row["question"]},
            **{"title": row["subject_redirect_wiki_title"], "prop": row["relation"]},
            **{"obj": row["object_surface"], "answers": json.dumps(row["possible_answers"])},
            "category": row["subject_surface_category"][0].removeprefix("Redirects_"),
        }
        for row in rows[::2]
    ]
    for row in (old[0], old[2]):
        row["category"] = None
    names = {"surface": "surface", "redirect_title": "title", "references": "answers"}

    data = load_redirectqa(
        old, columns=names | {"subject_title": "subject", "categories": "category"}
    )

    assert (len(data.rows), len(data.pairs)) == (5, 3)
    assert set(data.rows["template"]) == {"original"}
    assert data.pairs["categories"].iloc[0] == ("Redirects_from_personal_names",)
    assert data.rows["item"].iloc[0] == "Q154216|place_of_birth|London"
    assert data.rows["references"].iloc[0] == ("London", "London, UK")


FIRST, TWO = range(4), range(2)
ALIASES = {"possible_answers": ..., "object_aliases": ["alias"]}
SPACED = ["London\n", " ", "London, UK "]
BOTH = ("London", "London, UK")
SURNAME = ["__MAIN__", "Redirects_from_surnames"]
MARKED = {"subject_surface_category": SURNAME, "subject_redirect_wiki_title": "Stevens"}
PLAIN = {"is_canonical": True, "categories": (), "types": (), "redirect_title": None}
SINGER = {"subject_wiki_title": "Cat_Stevens_(singer)"}
EMPLOYER = {"relation": "employer", "question": "Who employs Cat Stevens?", "template": ...}
GAPS = dict.fromkeys(("relation", "object_id", "subject_pageviews"))
FILLED = {"relation": "place_of_birth", "object_id": "Q84", "subject_pageviews": 1209162}


@pytest.mark.parametrize(
    ("n_rows", "changes", "expected"),
    [
        # The name of the object is the first answer, and repeated answers are removed.
        (
            10,
            {FIRST: {"possible_answers": ["London, UK", "The City", "London", "The City"]}},
            {"references": (*BOTH, "The City")},
        ),
        (4, {FIRST: ALIASES}, {"references": ("London", "alias"), "object_aliases": ("alias",)}),
        (
            4,
            {FIRST: ALIASES | {"o_wiki_title": "London_(city)", "object_surface": ...}},
            {"references": ("London", "alias")},
        ),
        # Answers are trimmed.
        (
            10,
            {FIRST: {"object_surface": " London ", "possible_answers": SPACED}},
            {"references": BOTH},
        ),
        (
            4,
            {FIRST: ALIASES | {"object_surface": " London ", "object_aliases": SPACED}},
            {"references": BOTH},
        ),
        # The mark of the release has precedence over other cells of the row.
        (10, {TWO: MARKED}, PLAIN),
        # A title without its parenthesis is canonical.
        (10, {FIRST: SINGER, TWO: {"subject_surface_category": []}}, {"is_canonical": True}),
        # A relation may be outside the taxonomy.
        (1, {TWO: EMPLOYER}, {"relation": "employer", "template": "original"}),
        # Missing cells are filled from other rows.
        (10, {range(1): GAPS | {"question": "Where was Cat Stevens born?"}}, FILLED),
        # Underscores and the order of answers do not matter.
        (
            10,
            {
                range(2, 3): {"object_surface": None, "possible_answers": [*BOTH[::-1]]},
                range(1, 2): {"subject_wiki_title": "Cat Stevens"},
            },
            {"references": BOTH},
        ),
    ],
)
def test_cells_of_the_first_row_are_read(n_rows, changes, expected, rows):
    """A cell `...` is removed from the row."""
    for place, row in enumerate(rows):
        for places, cells in changes.items():
            row |= cells if place in places else {}
    given = [{name: c for name, c in row.items() if c is not ...} for row in rows[:n_rows]]

    frame = load_redirectqa(given).rows
    found = frame.astype(object).where(frame.notna(), None).iloc[0]

    assert {column: found[column] for column in expected} == expected
    of_fact = frame[frame["item"] == found["item"]]
    assert set(of_fact["references"]) == {found["references"]}


@pytest.mark.parametrize("empty", [None, [], "", "[]", [""]])
def test_facts_without_answers_are_kept_and_counted(empty, rows):
    """A fact without accepted answers is kept, with one warning."""
    for row in rows[:4]:
        row["possible_answers"] = empty

    with pytest.warns(
        UnscoredWarning, match=r"4 questions .* no accepted answer \(1 facts: 230395"
    ) as caught:
        data = load_redirectqa(rows)

    assert len(caught) == 1
    assert data.rows[["references", "object_name"]].iloc[0].tolist() == [(), "London"]


def test_object_without_name_or_answers_is_kept(rows):
    """An object without a name is named by its identifier, and no answer is accepted."""
    for row in rows:
        del row["object_surface"]
        row["possible_answers"] = None
    for row in rows[4:]:
        row["object_id"] = None

    with pytest.warns(UnscoredWarning, match="10 questions"):
        data = load_redirectqa(rows)

    assert data.rows["object_name"].iloc[[0, -1]].tolist() == ["Q84", "unknown"]


def test_only_the_name_is_accepted_if_aliases_are_missing(rows):
    """If aliases are the answers, a fact without aliases accepts only the name, with a warning."""
    for row in rows:
        row["object_aliases"] = row.pop("possible_answers")
    for row in rows[:4]:
        row["object_aliases"] = None

    with pytest.warns(SurfaceConsistencyWarning, match=r"1 facts of list list no aliases .*230395"):
        assert first_answers(rows) == ("London",)


def test_unknown_categories_are_kept_and_reported_once(rows):
    """A category outside the taxonomy keeps its name, with the type "unknown"."""
    for row in rows[2:4]:
        row["subject_surface_category"] = ["Redirects_from_books", "from misspellings"]
    for row in rows[6:8]:
        row["subject_surface_category"] = None

    with pytest.warns(
        DataWarning, match=r"\(no category\) \(2\), Redirects_from_books \(2\); they are"
    ) as caught:
        data = load_redirectqa(rows)

    assert len(caught) == 1
    assert data.rows["categories"][2] == ("Redirects_from_books", "Redirects_from_misspellings")
    assert data.rows["types"][2] == ("typical_errors", "unknown")
    assert data.rows["types"][6] == ("unknown",)
    assert len(data.pairs) == 6


def test_redirects_without_a_canonical_row_are_kept_and_reported(rows):
    """They are kept as questions and listed as unpaired, but are not in pairs."""
    redirects = [row for row in rows if "__MAIN__" not in row["subject_surface_category"]]

    with pytest.warns(
        DataWarning,
        match=r"^6 redirect questions .*'Steven D\. Georgiou' \(fact 230395, original\).*, \.\.\.;",
    ):
        data = load_redirectqa(redirects)

    assert data.pairs.empty
    pd.testing.assert_frame_equal(data.unpaired, data.rows)


def test_redirects_are_not_paired_across_wordings(rows):
    """They are also unpaired after a selection; the warning has the line of the caller."""
    with pytest.warns(DataWarning, match=r"^1 redirect questions .*original\); they are") as caught:
        data = load_redirectqa(rows[1:])

    assert caught[0].filename == __file__
    assert data.unpaired["template"].tolist() == ["original"]
    assert len(data.select(templates="original").unpaired) == 1
    assert data.select(templates="paraphrase").unpaired.empty


def test_subjects_without_a_title_are_named_by_the_canonical_surface(rows):
    """Without article titles, the canonical row gives the name, in any position."""
    data = load_redirectqa(list(map(without("subject_wiki_title"), rows[::-1])))

    assert set(data.rows["subject_name"]) == {"Cat Stevens", "Jesús Antúnez"}


def test_load_redirectqa_checks_the_categories_of_the_folder(tmp_path, rows, write_lines):
    """A folder whose table of types differs from that of the paper gives a warning."""
    write_lines(tmp_path / "test.jsonl", rows)
    path = tmp_path / CATEGORY_TYPES_PATH
    path.parent.mkdir()
    path.write_text("category,type\nRedirects_from_surnames,Typical_Errors\n")

    with pytest.warns(
        SurfaceConsistencyWarning, match=r"Redirects_from_surnames is typical_errors"
    ):
        assert len(load_redirectqa(tmp_path).pairs) == 6


def test_select_keeps_complete_pairs(rows):
    """A selection has complete pairs, all names of its facts, and a different digest."""
    data = load_redirectqa(rows)

    original = data.select(templates="original")
    first = data.select(limit=1)
    both = data.select(templates=["original"], relations=["occupation"], limit=5)

    assert (len(original.rows), len(original.pairs)) == (5, 3)
    assert set(first.rows["item"]) == {"230395"}
    assert len(first.pairs) == 2
    assert both.pairs["relation"].tolist() == ["occupation"] * 2
    assert len({part.source.digest for part in (data, original, first, both)}) == 4
    pd.testing.assert_frame_equal(data.select().rows, data.rows)


def test_limit_spreads_over_relations():
    """One fact per relation in turn, each under all its names, in the order of the source."""
    rows = load_redirectqa("sample").rows
    facts = dict(zip(rows["item"], rows["relation"], strict=True))

    for limit in (1, 5, 16, 40, len(facts)):
        part = load_redirectqa("sample").select(limit=limit).rows
        kept = dict(zip(part["item"], part["relation"], strict=True))
        counts = Counter(kept.values())
        assert list(kept) == [fact for fact in facts if fact in kept]
        assert len(kept) == limit
        assert set(kept.values()) == set(rows["relation"].unique()[:limit])
        assert part["id"].tolist() == rows.loc[rows["item"].isin(kept), "id"].tolist()
        for relation, count in counts.items():
            of_relation = [fact for fact, name in facts.items() if name == relation]
            assert [fact for fact in of_relation if fact in kept] == of_relation[:count]
            assert count == len(of_relation) or count >= max(counts.values()) - 1


def test_load_redirectqa_restores_the_garbage_collector(rows):
    """The collector is disabled while records are made, and is restored also after errors."""
    load_redirectqa(rows)
    assert gc.isenabled()

    with pytest.raises(RecordError, match="list:1"):
        load_redirectqa([rows[0] | {"question": 1.5}])
    assert gc.isenabled()

    gc.disable()
    try:
        load_redirectqa(rows)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"templates": "third"}, r"templates must be .* original, paraphrase; got 'third'"),
        ({"templates": ()}, r"templates must be .*; got none"),
        ({"relations": ["color"]}, r"relations must be .*place_of_birth, occupation; got 'color'"),
        ({"limit": 0}, r"limit counts facts and must be at least 1, got 0"),
    ],
)
def test_select_rejects_unknown_templates_relations_and_limits(options, message, rows):
    with pytest.raises(ValueError, match=message):
        load_redirectqa(rows).select(**options)


def many(rows, n_rows):
    """Repeat the rows under other fact identifiers."""
    copies = range(-(-n_rows // len(rows)))
    made = [row | {"triplet_id": row["triplet_id"] + copy} for copy in copies for row in rows]
    return made[:n_rows]


@pytest.mark.parametrize("kind", ["list", "jsonl"])
def test_load_redirectqa_rejects_a_column_that_appears_late(rows, tmp_path, write_lines, kind):
    """Otherwise, aliases that first appear in row 1,921 would not be read."""
    last = rows[0] | {"triplet_id": 1}
    late = [*many(list(map(without("subject_aliases"), rows)), 1920), last]
    source = late if kind == "list" else write_lines(tmp_path / "rows.jsonl", late)

    with pytest.raises(
        RecordError,
        match=r":1921: column 'subject_aliases' appears here for the first time, too la",
    ):
        load_redirectqa(source)
    assert load_redirectqa([last]).rows["subject_aliases"].iloc[0] == ("Cat Stevens",)


def test_load_redirectqa_ignores_late_columns_without_a_field(rows):
    """A late column is allowed if no field is read from it."""
    made = many(rows, 1920)
    late = [*made[:1910], *(row | {"note": 1, "answer": "x"} for row in made[1910:])]

    pd.testing.assert_frame_equal(load_redirectqa(late).rows, load_redirectqa(made).rows)
