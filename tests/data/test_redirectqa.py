import gc
import json
from collections import Counter

import pandas as pd
import pytest

from surface_consistency.data.redirectqa import load_redirectqa, load_sample
from surface_consistency.data.redirectqa_release import CATEGORY_TYPES_PATH
from surface_consistency.errors import (
    DataWarning,
    RecordError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.taxonomy import RELATIONS, TYPES


def test_load_redirectqa_reads_release_v1(rows):
    """Every column of the release arrives in its field."""
    data = load_redirectqa(rows)
    question = data.questions[2]

    assert len(data.questions) == 10
    assert len(data.pairs) == 6
    assert data.unpaired.empty
    assert question.id.startswith("230395:original:")
    assert question.question == "In what city was Steven D. Georgiou born?"
    assert question.template == "original"
    assert question.surface.text == "Steven D. Georgiou"
    assert question.surface.redirect_title == "Steven_D._Georgiou"
    assert question.surface.categories == (
        "Redirects_from_personal_names",
        "Redirects_from_short_names",
    )
    assert question.surface.types == ("alternative_names_and_abbreviations",)
    assert question.triple.subject.id == "Q154216"
    assert question.triple.subject.name == "Cat_Stevens"
    assert question.triple.subject.pageviews == 1209162
    assert question.triple.relation == "place_of_birth"
    assert question.triple.object.id == "Q84"
    assert question.triple.object.name == "London"
    assert question.triple.answers == ("London", "London, UK")


def test_equal_values_are_kept_once(rows):
    """The rows of a fact share its records, and so do its two wordings the surface."""
    first, second, *_ = load_redirectqa(rows).questions

    assert first.triple is second.triple
    assert first.surface is second.surface


def test_redirects_of_one_surface_are_two_instances(rows):
    """Two redirects that lose their parenthesis to the same name stay apart by their titles."""
    questions = load_redirectqa(rows).questions
    same = [question for question in questions if question.surface.text == "Jesus Antunez"]

    assert len({question.id for question in same}) == 4
    assert {question.surface.redirect_title for question in same} == {
        "Jesus_Antunez",
        "Jesus_Antunez_(musician)",
    }


def test_real_rows_get_their_types(data_files):
    """The real redirect surfaces of the release load with the types that the release gives."""
    path = data_files / "redirectqa" / "v1_pairs_sample.jsonl"
    real = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    relation = RELATIONS["occupation"]
    rows = [
        {
            **{name: value for name, value in row.items() if name not in {"types", "triplet_ids"}},
            "triplet_id": number,
            "relation": "occupation",
            "object_surface": "musician",
            "possible_answers": ["musician"],
            "question": relation.question(row["subject_surface"]),
        }
        for number, row in enumerate(real)
    ]

    with pytest.warns(DataWarning, match=r"^24 redirect questions of list have no canon"):
        data = load_redirectqa(rows)

    assert data.pairs.empty
    assert len(data.unpaired) == len(data.questions) == 24
    for question, row in zip(data.questions, real, strict=True):
        assert question.surface.text == row["subject_surface"]
        assert list(question.surface.categories) == row["subject_surface_category"]
        assert {TYPES[name].label for name in question.surface.types} == set(row["types"])
        assert list(question.triple.subject.aliases) == row["subject_aliases"]


def test_load_redirectqa_reads_release_v0(rows):
    """A release with one template, a plain category and no template or fact id column loads."""
    old = [
        {
            "subject_id": row["subject_id"],
            "subject": row["subject_wiki_title"],
            "surface": row["subject_surface"],
            "redirect_title": row["subject_redirect_wiki_title"],
            "category": None
            if row["subject_redirect_wiki_title"] is None
            else row["subject_surface_category"][0].removeprefix("Redirects_").replace("_", " "),
            "prop": row["relation"].replace("_", " "),
            "obj": row["object_surface"],
            "answers": json.dumps(row["possible_answers"]),
            "question": row["question"],
        }
        for row in rows
        if row["template"] == "original"
    ]

    data = load_redirectqa(
        old,
        columns={
            "subject_title": "subject",
            "surface": "surface",
            "redirect_title": "redirect_title",
            "categories": "category",
            "answers": "answers",
        },
    )

    assert len(data.questions) == 5
    assert len(data.pairs) == 3
    assert {question.template for question in data.questions} == {"original"}
    assert data.pairs["categories"].iloc[0] == ("Redirects_from_personal_names",)
    assert data.questions[0].triple.id == "Q154216|place_of_birth|London"
    assert data.questions[0].triple.answers == ("London", "London, UK")


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row | {"triplet_id": str(row["triplet_id"])},
        lambda row: row | {"triplet_id": float(row["triplet_id"])},
        lambda row: row | {"possible_answers": json.dumps(row["possible_answers"])},
        lambda row: row | {"subject_surface_category": str(row["subject_surface_category"])},
        lambda row: row | {"subject_wiki_title": row["subject_wiki_title"].replace("_", " ")},
        lambda row: row | {"relation": RELATIONS[row["relation"]].property_id},
        lambda row: row | {"relation": RELATIONS[row["relation"]].popqa_id},
        lambda row: row | {"template": int(row["template"] == "paraphrase")},
        lambda row: row | {"subject_redirect_wiki_title": row["subject_redirect_wiki_title"] or ""},
        lambda row: row | {"note": "a column that nobody asked for"},
        lambda row: {name: value for name, value in row.items() if name != "relation"},
        lambda row: {name: value for name, value in row.items() if name != "template"},
        lambda row: {name: value for name, value in row.items() if name != "object_surface"},
        lambda row: {name: value for name, value in row.items() if name != "subject_id"},
        lambda row: {
            ("object_aliases" if name == "possible_answers" else name): value
            for name, value in row.items()
        },
        lambda row: (
            row
            | {
                "subject_surface_category": []
                if row["subject_redirect_wiki_title"] is None
                else row["subject_surface_category"]
            }
        ),
    ],
)
def test_writings_of_the_same_rows_are_the_same_data(change, rows):
    """Ids, lists, relations and templates may be written otherwise, or be left to be told."""
    expected = load_redirectqa(rows)

    found = load_redirectqa([change(row) for row in rows])

    assert found.source.digest == expected.source.digest
    assert found.pairs["id"].tolist() == expected.pairs["id"].tolist()
    assert [question.surface for question in found.questions] == [
        question.surface for question in expected.questions
    ]
    assert [question.triple.relation for question in found.questions] == [
        question.triple.relation for question in expected.questions
    ]


def test_columns_are_overridable(rows):
    """Columns under any name are read when they are named."""
    renamed = [
        {("prompt" if name == "question" else name): value for name, value in row.items()}
        for row in rows
    ]

    data = load_redirectqa(renamed, columns={"question": "prompt"})

    assert data.source.digest == load_redirectqa(rows).source.digest


def test_object_name_comes_first_among_the_answers(rows):
    """The object's own name leads; the other answers keep their order."""
    for row in rows[:4]:
        row["possible_answers"] = ["London, UK", "The City", "London", "The City"]

    data = load_redirectqa(rows)

    assert data.questions[0].triple.answers == ("London", "London, UK", "The City")


def test_object_without_an_answer_column_is_the_answer(rows):
    """Aliases name the object too; its own name is accepted even when they leave it out."""
    for row in rows:
        row["object_aliases"] = [f"{row['object_surface']} (alias)"]
        del row["possible_answers"]

    data = load_redirectqa(rows)

    assert data.questions[0].triple.answers == ("London", "London (alias)")
    assert data.questions[0].triple.object.aliases == ("London (alias)",)


def test_object_title_names_the_object_without_underscores(rows):
    """A page title is cleaned before it is accepted as an answer."""
    for row in rows:
        row["o_wiki_title"] = row.pop("object_surface").replace("musician", "Solo_artist_(music)")
        row["object_aliases"] = [*row.pop("possible_answers")[1:], "alias"]

    assert load_redirectqa(rows).questions[-1].triple.answers == ("Solo artist", "alias")


@pytest.mark.parametrize("empty", [None, [], "", "[]", [""]])
def test_missing_answers_are_kept_and_counted(empty, rows):
    """A fact without accepted answers stays in the data and is told of once."""
    for row in rows[:4]:
        row["possible_answers"] = empty

    with pytest.warns(
        UnscoredWarning, match=r"4 questions .* no accepted answer \(1 facts: 230395"
    ) as caught:
        data = load_redirectqa(rows)

    assert len(caught) == 1
    assert len(data.questions) == 10
    assert data.questions[0].triple.answers == ()
    assert data.questions[0].triple.object.name == "London"


def test_object_without_name_or_answers_is_kept(rows):
    """Without any word for the object its identifier stands in, and nothing is accepted."""
    for row in rows:
        del row["object_surface"]
        row["possible_answers"] = None
    for row in rows[4:]:
        row["object_id"] = None

    with pytest.warns(UnscoredWarning, match="10 questions"):
        data = load_redirectqa(rows)

    assert data.questions[0].triple.object.name == "Q84"
    assert data.questions[-1].triple.object.name == "unknown"


def test_missing_aliases_leave_the_objects_name(rows):
    """Where aliases are the answers, a fact without any accepts the name alone and is told of."""
    for row in rows:
        row["object_aliases"] = row.pop("possible_answers")
    for row in rows[:4]:
        row["object_aliases"] = None

    with pytest.warns(SurfaceConsistencyWarning, match=r"1 facts of list list no aliases .*230395"):
        data = load_redirectqa(rows)

    assert data.questions[0].triple.answers == ("London",)


def test_unknown_categories_are_kept_and_told_once(rows):
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
    assert data.questions[2].surface.categories == (
        "Redirects_from_books",
        "Redirects_from_misspellings",
    )
    assert data.questions[2].surface.types == ("typical_errors", "unknown")
    assert data.questions[6].surface.types == ("unknown",)
    assert len(data.pairs) == 6


def test_redirects_without_their_canonical_row_are_kept_and_told(rows):
    """They stay among the questions and are listed, but are in no pair."""
    without = [row for row in rows if "__MAIN__" not in row["subject_surface_category"]]

    with pytest.warns(
        DataWarning,
        match=r"^6 redirect questions .*'Steven D\. Georgiou' \(fact 230395, original\).*, \.\.\.;",
    ):
        data = load_redirectqa(without)

    assert data.pairs.empty
    pd.testing.assert_frame_equal(data.unpaired, data.rows)
    assert len(data.questions) == 6


def test_canonical_row_of_another_template_makes_no_pair(rows):
    """A redirect is never paired across wordings."""
    del rows[0]

    with pytest.warns(DataWarning, match=r"^1 redirect questions .*original\); they are"):
        data = load_redirectqa(rows)

    assert data.unpaired["template"].tolist() == ["original"]


def test_repeated_rows_are_dropped_and_counted(rows):
    """Rows that repeat others to the letter are used once."""
    with pytest.warns(SurfaceConsistencyWarning, match="repeats 3 rows to the letter"):
        data = load_redirectqa([*rows, *rows[:3]])

    assert data.source.digest == load_redirectqa(rows).source.digest


def test_main_label_makes_a_row_canonical(rows):
    """The release's own mark decides, whatever else stands in the row."""
    for row in rows[:2]:
        row["subject_surface_category"] = ["__MAIN__", "Redirects_from_surnames"]
        row["subject_redirect_wiki_title"] = "Stevens"

    surface = load_redirectqa(rows).questions[0].surface

    assert surface.is_canonical
    assert surface.categories == surface.types == ()
    assert surface.redirect_title is None


def test_title_without_its_parenthesis_is_canonical(rows):
    """Without a mark, a row that asks under its article's title is the canonical one."""
    for row in rows[:4]:
        row["subject_wiki_title"] = "Cat_Stevens_(singer)"
    for row in rows[:2]:
        row["subject_surface_category"] = []

    assert load_redirectqa(rows).questions[0].surface.is_canonical


def test_relation_outside_the_taxonomy_is_kept(rows):
    """A relation of one's own keeps its name, and its template is "original"."""
    for row in rows[:4]:
        row |= {"relation": "employer", "question": f"Who employs {row['subject_surface']}?"}
        del row["template"]
    own = rows[:4:2]

    data = load_redirectqa(own)

    assert data.pairs["relation"].iloc[0] == "employer"
    assert data.pairs["template"].iloc[0] == "original"


def test_facts_gather_what_single_rows_leave_out(rows):
    """A value that one row of a fact lacks is taken from another."""
    for name in ("relation", "object_id", "subject_pageviews"):
        rows[0][name] = None
    rows[0]["question"] = "Where was Cat Stevens born?"

    triple = load_redirectqa(rows).questions[0].triple

    assert triple.relation == "place_of_birth"
    assert triple.object.id == "Q84"
    assert triple.subject.pageviews == 1209162


def test_facts_forgive_underscores_and_order_of_answers(rows):
    """Rows of one fact may write its title and list its answers in another way."""
    rows[1]["subject_wiki_title"] = "Cat Stevens"
    rows[2]["possible_answers"] = rows[2]["possible_answers"][::-1]
    rows[2]["object_surface"] = None

    assert load_redirectqa(rows).questions[2].triple.answers == ("London", "London, UK")


def test_subject_without_a_title_is_named_by_its_canonical_surface(rows):
    """Without article titles the canonical row names the subject, wherever it stands."""
    for row in rows:
        del row["subject_wiki_title"]

    data = load_redirectqa(rows[::-1])

    assert {question.triple.subject.name for question in data.questions} == {
        "Cat Stevens",
        "Jesús Antúnez",
    }


def test_load_redirectqa_checks_the_folders_own_categories(tmp_path, rows, write_lines):
    """A folder whose table of types differs from the paper's is told of."""
    write_lines(tmp_path / "test.jsonl", rows)
    path = tmp_path / CATEGORY_TYPES_PATH
    path.parent.mkdir()
    path.write_text("category,type\nRedirects_from_surnames,Typical_Errors\n")

    with pytest.warns(
        SurfaceConsistencyWarning, match=r"Redirects_from_surnames is typical_errors"
    ):
        data = load_redirectqa(tmp_path)

    assert len(data.pairs) == 6


def test_warnings_point_at_the_caller(rows):
    """A warning names the user's line, not the library's."""
    with pytest.warns(DataWarning, match="1 redirect questions") as caught:
        load_redirectqa(rows[1:])

    assert caught[0].filename == __file__


def test_select_keeps_pairs_whole(rows):
    """A part of the data has whole pairs, all of its facts' names, and a digest of its own."""
    data = load_redirectqa(rows)

    original = data.select(templates="original")
    first = data.select(limit=1)
    both = data.select(templates=["original"], relations=["occupation"], limit=5)

    assert len(original.questions) == 5
    assert len(original.pairs) == 3
    assert {question.triple.id for question in first.questions} == {"230395"}
    assert len(first.pairs) == 2
    assert both.pairs["relation"].tolist() == ["occupation"] * 2
    assert len({part.source.digest for part in (data, original, first, both)}) == 4
    pd.testing.assert_frame_equal(data.select().rows, data.rows)


def test_limit_spreads_over_relations():
    """One fact a relation, then the next, each under all its names, in the order of the whole."""
    data = load_sample()
    relations = dict.fromkeys(question.triple.relation for question in data.questions)
    facts = {question.triple.id: question.triple.relation for question in data.questions}

    for limit in (1, 5, 16, 40, len(facts)):
        part = data.select(limit=limit)
        kept = {question.triple.id: question.triple.relation for question in part.questions}
        counts = Counter(kept.values())
        assert len(kept) == limit
        assert list(kept) == [fact for fact in facts if fact in kept]
        assert set(kept.values()) == set(list(relations)[:limit])
        assert [q for q in data.questions if q.triple.id in kept] == list(part.questions)
        for relation, count in counts.items():
            of_relation = [fact for fact, name in facts.items() if name == relation]
            assert [fact for fact in of_relation if fact in kept] == of_relation[:count]
            assert count == len(of_relation) or count >= max(counts.values()) - 1


def test_load_redirectqa_leaves_the_garbage_collector_as_it_was(rows):
    """The collector rests while records are made, whether or not that succeeds."""
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


def test_select_keeps_the_unpaired(rows):
    """Redirects without their canonical question stay listed in a part."""
    with pytest.warns(DataWarning, match="1 redirect questions"):
        data = load_redirectqa(rows[1:])

    assert len(data.select(templates="original").unpaired) == 1
    assert data.select(templates="paraphrase").unpaired.empty


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"templates": "third"}, r"templates must be .* original, paraphrase; got 'third'"),
        ({"templates": ()}, r"templates must be .*; got none"),
        ({"relations": ["color"]}, r"relations must be .*place_of_birth, occupation; got 'color'"),
        ({"limit": 0}, r"limit counts facts and must be at least 1, got 0"),
    ],
)
def test_select_rejects_what_is_not_there(options, message, rows):
    """A choice that is not in the data is named beside those that are."""
    with pytest.raises(ValueError, match=message):
        load_redirectqa(rows).select(**options)


def many(rows, n_rows):
    """Repeat the rows under other fact identifiers."""
    copies = range(-(-n_rows // len(rows)))
    made = [row | {"triplet_id": row["triplet_id"] + copy} for copy in copies for row in rows]
    return made[:n_rows]


@pytest.mark.parametrize("kind", ["list", "jsonl"])
def test_load_redirectqa_rejects_a_column_that_comes_late(rows, tmp_path, write_lines, kind):
    """Aliases that only row 1,921 brings would else go unread."""
    made = many([leave_out(row, "subject_aliases") for row in rows], 1920)
    last = rows[0] | {"triplet_id": 1}
    late = [*made, last]
    source = late if kind == "list" else write_lines(tmp_path / "rows.jsonl", late)

    with pytest.raises(
        RecordError,
        match=r":1921: column 'subject_aliases' appears here for the first time, too la",
    ):
        load_redirectqa(source)
    assert load_redirectqa([last]).questions[0].triple.subject.aliases == ("Cat Stevens",)


def test_load_redirectqa_passes_over_late_columns_without_a_field(rows):
    """A late column that no field is read from, or that a better one outranks, is no error."""
    made = many(rows, 1920)

    data = load_redirectqa(
        [*made[:1910], *(row | {"note": 1, "answer": "x"} for row in made[1910:])]
    )

    assert data.questions == load_redirectqa(made).questions


@pytest.mark.parametrize("column", ["possible_answers", "object_aliases"])
def test_accepted_answers_are_trimmed(rows, column):
    """White space around an answer, which no first line of a prediction has, does not hide it."""
    padded = [
        leave_out(row, "possible_answers")
        | {
            "object_surface": " London ",
            "object_id": "Q84",
            column: ["London\n", " ", "London, UK "],
        }
        for row in rows[:4]
    ]

    answers = {question.triple.answers for question in load_redirectqa(padded).questions}

    assert answers == {("London", "London, UK")}


def leave_out(row, column):
    """The row without a column."""
    return {name: value for name, value in row.items() if name != column}
