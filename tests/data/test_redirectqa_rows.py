import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SurfaceConsistencyWarning,
)


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        (("subject_surface",), r"no column for this field: 'surface' under subject_surface\. Its"),
        (
            ("triplet_id", "subject_id", "subject_wiki_title"),
            r"any of these fields: 'triple_id' under triplet_id; 'subject_id' under subject_id",
        ),
        (
            ("subject_surface_category", "subject_redirect_wiki_title"),
            r"'categories' under subject_surface_category; .*columns=\{'categories': 'NAME'",
        ),
        (("question",), r"'question' under question\. .*set `ask_by_template=True`$"),
        (
            ("possible_answers",),
            r"'answers' under possible_answers; 'object_al.*Its columns are triplet_id, "
            r".*To accept the object's name alone, name its column there$",
        ),
    ],
)
def test_load_redirectqa_rejects_missing_columns(dropped, message, rows):
    """A column that nothing can stand in for is told with what was looked for and seen."""
    with pytest.raises(ColumnNotFoundError, match=message):
        load_redirectqa(
            [{name: value for name, value in row.items() if name not in dropped} for row in rows]
        )


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("triplet_id", None, r"rows\.jsonl:3: column 'triplet_id' is empty"),
        ("triplet_id", 1.5, r"rows\.jsonl:3: column 'triplet_id': expected text, got 1\.5"),
        ("subject_surface", None, r"rows\.jsonl:3: column 'subject_surface' is empty; if the name"),
        ("subject_surface", "  ", r"'subject_surface' is empty; .*keep_default_na=False"),
        ("subject_surface", ["a"], r"column 'subject_surface': expected text, got \['a'\]"),
        ("subject_surface_category", {"a": 1}, r"column 'subject_surface_category': expected text"),
        ("subject_pageviews", "many", r"column 'subject_pageviews': expected a whole number of at"),
        ("subject_pageviews", -1, r"rows\.jsonl:3: .*number of at least 0, got -1"),
        ("possible_answers", [["a"]], r"column 'possible_answers': expected text, got \[\['a'\]\]"),
        ("question", 1.5, r"column 'question': expected text, got 1\.5"),
    ],
)
def test_load_redirectqa_rejects_broken_cells(column, value, message, rows, tmp_path, write_lines):
    """A bad cell is told with file, line, column and value."""
    rows[0]["subject_pageviews"] = rows[1]["subject_pageviews"] = None
    rows[2][column] = value
    path = write_lines(tmp_path / "rows.jsonl", rows)

    with pytest.raises(RecordError, match=message):
        load_redirectqa(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("subject_id", "Q1"),
        ("subject_wiki_title", "Yusuf"),
        ("relation", "occupation"),
        ("object_id", "Q1"),
        ("object_surface", "Paris"),
        ("possible_answers", ["Paris"]),
    ],
)
def test_load_redirectqa_rejects_facts_that_contradict_themselves(column, value, rows):
    """The members of a pair must share their fact; both rows are named."""
    rows[2][column] = value

    with pytest.raises(
        DataError, match=r"list:1 and list:3 belong to one fact, '230395', but diff"
    ):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_two_questions_for_one_instance(rows):
    """The same fact, name and template cannot be asked in two ways."""
    rows.append(rows[0] | {"question": "Where was Cat Stevens born?"})

    with pytest.raises(DataError, match="are the same fact") as caught:
        load_redirectqa(rows)

    message = str(caught.value)
    assert "list:1 and list:11 are the same fact '230395', surface 'Cat Stevens'" in message
    assert "differ in question: 'In what city was Cat Stevens born?' and 'Where was" in message
    assert "columns={'template': 'NAME'}" in message


def test_load_redirectqa_rejects_two_category_lists_for_one_instance(rows):
    """The same redirect cannot be in other categories on another row."""
    rows.append(rows[2] | {"subject_surface_category": ["Redirects_from_surnames"]})

    with pytest.raises(
        DataError, match=r"list:3 and list:11 .* differ in categories: \('Redirects_f"
    ):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_two_canonical_names(rows):
    """A fact has one canonical name for a template."""
    rows.append(rows[0] | {"subject_surface": "Yusuf", "question": "In what city was Yusuf born?"})

    with pytest.raises(
        DataError, match=r"list:1 and list:11 are both canonical .*'Cat St.*'Yusuf'"
    ):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_two_wordings_without_a_template_column(rows):
    """Two paraphrases that nothing tells apart are refused, and never merged."""
    for row in rows:
        del row["template"]
    rows.append(rows[1] | {"question": "Name the city where Cat Stevens was born."})

    with pytest.raises(DataError, match=r"template 'paraphrase', but differ in question"):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_a_fact_without_relation(rows):
    """A relation that neither column nor question tells is asked for."""
    for row in rows[:4]:
        row |= {"relation": None, "question": f"Where was {row['subject_surface']} born?"}
    del rows[1:4:2]

    with pytest.raises(
        RecordError, match=r"list:1: fact '230395' has no relation.*columns=\{'relation': 'NAME"
    ):
        load_redirectqa(rows)


def test_one_question_in_known_words_tells_the_relation_of_a_fact(rows):
    """Questions in other words after it, or none, take nothing back."""
    named = load_redirectqa(rows).questions[0].triple.relation
    for row in rows:
        row["relation"] = None
    rows[3] |= {"question": f"Where was {rows[3]['subject_surface']} born?"}

    assert load_redirectqa(rows).questions[0].triple.relation == named


def test_load_redirectqa_rejects_a_question_that_cannot_be_worded(rows):
    """Without a question, the relation must have a template."""
    for row in rows:
        row |= {"relation": "employer", "question": None}

    with pytest.raises(RecordError, match=r"list:1: no question, and .* relation 'employer'; name"):
        load_redirectqa(rows, ask_by_template=True)


def test_load_redirectqa_makes_up_no_question(rows):
    """Without being asked, neither a missing column nor an empty cell is filled from templates."""
    expected = load_redirectqa(rows).source.digest
    without = [{name: value for name, value in row.items() if name != "question"} for row in rows]
    rows[3]["question"] = None

    with pytest.raises(RecordError, match=r"list:4: column 'question' is empty, and a question is"):
        load_redirectqa(rows)
    for source in (without, rows):
        assert load_redirectqa(source, ask_by_template=True).source.digest == expected


def test_load_redirectqa_rejects_facts_without_identity(rows):
    """Without ids, subject, relation and object together are the fact."""
    for row in rows:
        del row["triplet_id"]
    rows[4]["object_id"] = None
    rows[4]["object_surface"] = None
    rows[4]["possible_answers"] = None

    with pytest.raises(RecordError, match=r"list:5: without a column of triple ids a row needs"):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_templates_that_cannot_be_told_apart(rows):
    """Two values that are both no wording of PopQA's are not merged into one template."""
    for row in rows:
        row["template"] = {"original": "t1", "paraphrase": "t2"}[row["template"]]
        row["question"] = f"{row['template']}: who or where, {row['subject_surface']}?"

    with pytest.raises(DataError, match=r"templates 't1', 't2' of relation 'place_of_birth' would"):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_unknown_overrides(rows):
    """A field that does not exist is refused with those that do."""
    with pytest.raises(
        ColumnNotFoundError, match=r"there is no field 'gold'; the fields are triple"
    ):
        load_redirectqa(rows, columns={"gold": "possible_answers"})


def test_load_redirectqa_rejects_text_that_is_no_unicode(rows):
    """Half a surrogate pair, which JSON can spell, is refused with its row."""
    row = rows[4]

    for column in ("question", "subject_surface", "object_surface"):
        with pytest.raises(RecordError, match=rf"list:5: column '{column}': .*surrogate"):
            load_redirectqa([*rows[:4], row | {column: "\ud83d"}])


RELEASE = {
    "question": "instruction",
    "relation": "rel_label",
    "possible_answers": "gold_surfaces",
    "object_surface": "target",
    "template": "wording",
}


def fake_release(rows, *, known=()):
    """Rows as the release might have them: eight known columns, the others under any name."""
    return [
        {RELEASE.get(name, name) if name not in known else name: cell for name, cell in row.items()}
        | {"split_no": 3}
        for row in rows
    ]


def test_a_release_with_other_names_is_refused_until_they_are_named(rows):
    """Each refusal names a column to give, and whoever does as it says gets all rows."""
    source = fake_release(rows)
    given = {}

    for field, column in [("answers", "gold_surfaces"), ("question", "instruction")]:
        with pytest.raises(ColumnNotFoundError, match=rf"instruction.*columns=\{{'{field}': 'NA"):
            load_redirectqa(source, columns=given)
        given[field] = column
    data = load_redirectqa(source, columns=given)

    assert [q.question for q in data.questions] == [row["question"] for row in rows]
    assert data.questions[0].triple.answers == ("London", "London, UK")
    assert data.source.digest == load_redirectqa(rows).source.digest


@pytest.mark.parametrize(
    ("known", "listed"),
    [(("relation", "possible_answers"), "wording, instruction"), (("relation",), "wording, instr")],
)
def test_rows_that_differ_are_no_repetition(rows, known, listed):
    """Two wordings under unknown names are refused with their names, where half the rows went."""
    source = fake_release(rows, known=known)
    given = {} if "possible_answers" in known else {"answers": "gold_surfaces"}

    with pytest.raises(
        DataError, match=rf"list:1 and list:2 would be one question.*they differ in {listed}"
    ) as caught:
        load_redirectqa(source, columns=given, ask_by_template=True)

    assert "columns={'question': 'NAME'} or columns={'template': 'NAME'}" in str(caught.value)
    for remedy in ({"question": "instruction"}, {"template": "wording"}):
        data = load_redirectqa(source, columns=given | remedy, ask_by_template=True)
        assert len(data.questions) == len(rows)


@pytest.mark.parametrize(
    "change", [{"note": "x"}, {"subject_pageviews": 7}, {"subject_aliases": []}]
)
def test_a_row_that_repeats_a_question_alone_is_refused(rows, change):
    """To the letter means all columns, read or not, and those that come late."""
    rows.append(rows[0] | change)

    with pytest.raises(
        DataError, match=rf"list:1 and list:11 would be one .* {next(iter(change))}"
    ):
        load_redirectqa(rows)


@pytest.mark.parametrize(
    ("first", "second"),
    [({"note": 1}, {}), ({"note": None}, {}), ({"note": object}, {"note": str})],
)
def test_cells_of_any_kind_are_compared(rows, first, second):
    """An absent cell is as an empty one; what cannot be packed is compared as it is shown."""
    repeated = [rows[0] | first, *rows[1:], rows[0] | second]

    if first == {"note": None}:
        with pytest.warns(SurfaceConsistencyWarning, match="repeats 1 rows to the letter"):
            load_redirectqa(repeated)
    else:
        with pytest.raises(DataError, match="they differ in note; if one of these"):
            load_redirectqa(repeated)


def test_answers_are_not_lost_in_silence(rows):
    """An answers column of unknown name is asked for; the object's name alone is a choice."""
    source = [
        {"gold" if name == "possible_answers" else name: cell for name, cell in row.items()}
        for row in rows
    ]

    with pytest.raises(ColumnNotFoundError, match=r"'answers' under .*columns are .*gold, "):
        load_redirectqa(source)

    named = load_redirectqa(source, columns={"answers": "gold"}).questions[0]
    alone = load_redirectqa(source, columns={"answers": "object_surface"}).questions[0]
    assert named.triple.answers == ("London", "London, UK")
    assert alone.triple.answers == ("London",)


def test_rows_that_vary_the_name_of_the_object_are_refused_for_that(rows):
    rows[2]["object_surface"] = "Paris"

    with pytest.raises(DataError, match="vary the name of the object are not for this study"):
        load_redirectqa(rows)
