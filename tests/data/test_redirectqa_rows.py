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
            r"'references' under possible_answers; 'object_al.*Its columns are triplet_id, "
            r".*To accept only the object's name, name its column there$",
        ),
    ],
)
def test_missing_columns_raise_an_error(dropped, message, rows):
    """The message contains the names that were searched for and the columns."""
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
        ("subject_pageviews", "many", r"column 'subject_pageviews': expected an integer of at"),
        ("subject_pageviews", -1, r"rows\.jsonl:3: .*integer of at least 0, got -1"),
        ("possible_answers", {"a": 1}, r"column 'possible_answers': expected text, .* got \{'a'"),
        ("question", 1.5, r"column 'question': expected text, got 1\.5"),
    ],
)
def test_invalid_cells_raise_an_error(column, value, message, rows, tmp_path, write_lines):
    """The message names file, line, column and value."""
    rows[0]["subject_pageviews"] = rows[1]["subject_pageviews"] = None
    rows[2][column] = value
    path = write_lines(tmp_path / "rows.jsonl", rows)

    with pytest.raises(RecordError, match=message):
        load_redirectqa(path)


def changed(place, **cells):
    """Change cells of one row."""
    return lambda rows: rows[place].update(cells)


def added(place, **cells):
    """Add a row that differs from another in some cells."""
    return lambda rows: rows.append(rows[place] | cells)


def without_template(rows):
    """Two paraphrases that no column distinguishes."""
    for row in rows:
        del row["template"]
    rows.append(rows[1] | {"question": "Name the city where Cat Stevens was born."})


def without_relation(rows):
    """Neither a column nor a question in a known wording identifies the relation."""
    for row in rows[:4]:
        row |= {"relation": None, "question": f"Where was {row['subject_surface']} born?"}
    del rows[1:4:2]


def without_identity(rows):
    """Without ids, subject, relation and object together identify the fact."""
    for row in rows:
        del row["triplet_id"]
    rows[4] |= {"object_id": None, "object_surface": None, "possible_answers": None}


def of_two_templates(rows):
    """Two values, neither of which is PopQA's wording."""
    for row in rows:
        row["template"] = {"original": "t1", "paraphrase": "t2"}[row["template"]]
        row["question"] = f"{row['template']}: who or where, {row['subject_surface']}?"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        *(
            (changed(2, **cell), DataError, r"list:1 and list:3 belong to one fact, '230395', but")
            for cell in (
                {"subject_id": "Q1"},
                {"subject_wiki_title": "Yusuf"},
                {"relation": "occupation"},
                {"object_id": "Q1"},
                {"possible_answers": ["Paris"]},
            )
        ),
        (
            changed(2, object_surface="Paris"),
            DataError,
            r"list:1 and list:3 .*vary the name of the object are not for this study",
        ),
        (
            added(0, question="Where was Cat Stevens born?"),
            DataError,
            r"list:1 and list:11 are the same fact '230395', surface 'Cat Stevens' .*differ in "
            r"question: 'In what city was Cat Stevens born\?' and 'Where was.*"
            r"columns=\{'template': 'NAME'\}",
        ),
        (
            added(2, subject_surface_category=["Redirects_from_surnames"]),
            DataError,
            r"list:3 and list:11 .* differ in categories: \('Redirects_f",
        ),
        (
            added(0, subject_surface="Yusuf", question="In what city was Yusuf born?"),
            DataError,
            r"list:1 and list:11 are both canonical .*'Cat St.*'Yusuf'",
        ),
        *(
            (added(0, **cell), DataError, rf"list:1 and list:11 would be one .* {next(iter(cell))}")
            for cell in (
                {"note": "x"},
                {"subject_id": None},
                {"subject_pageviews": 7},
                {"subject_aliases": []},
            )
        ),
        (without_template, DataError, r"template 'paraphrase', but differ in question"),
        (
            without_relation,
            RecordError,
            r"list:1: fact '230395' has no relation.*columns=\{'relation': 'NAME",
        ),
        (without_identity, RecordError, r"list:5: without a column of triple ids a row needs"),
        (of_two_templates, DataError, r"templates 't1', 't2' of relation 'place_of_birth' would"),
        *(
            (changed(4, **{name: "\ud83d"}), RecordError, rf"list:5: column '{name}': .*surrogate")
            for name in ("question", "subject_surface", "object_surface")
        ),
    ],
)
def test_rows_that_contradict_each_other_raise_an_error(change, error, message, rows):
    change(rows)

    with pytest.raises(error, match=message):
        load_redirectqa(rows)


def test_question_in_a_known_wording_gives_the_relation_of_a_fact(rows):
    """Later questions in other wordings, or none, do not change it."""
    named = load_redirectqa(rows).rows["relation"].iloc[0]
    for row in rows:
        row["relation"] = None
    rows[3] |= {"question": f"Where was {rows[3]['subject_surface']} born?"}

    assert load_redirectqa(rows).rows["relation"].iloc[0] == named


def test_questions_are_written_by_template_only_on_request(rows):
    """By default neither a missing column nor an empty cell is filled from templates."""
    expected = load_redirectqa(rows).source.digest
    without = [{name: value for name, value in row.items() if name != "question"} for row in rows]
    rows[3]["question"] = None

    with pytest.raises(RecordError, match=r"list:4: column 'question' is empty, and no q"):
        load_redirectqa(rows)
    for source in (without, rows):
        assert load_redirectqa(source, ask_by_template=True).source.digest == expected
    for row in rows:
        row |= {"relation": "employer", "question": None}
    with pytest.raises(RecordError, match=r"list:1: no question, and .* relation 'employer'; name"):
        load_redirectqa(rows, ask_by_template=True)


RELEASE = {
    "question": "instruction",
    "relation": "rel_label",
    "possible_answers": "gold_surfaces",
    "object_surface": "target",
    "template": "wording",
}


def fake_release(rows, *, known=()):
    """Rows of a possible release: eight known columns, the others with unknown names."""
    return [
        {RELEASE.get(name, name) if name not in known else name: cell for name, cell in row.items()}
        | {"split_no": 3}
        for row in rows
    ]


def test_release_with_other_column_names_requires_the_columns_option(rows):
    """Each error names a column to pass; with these columns all rows are read."""
    source = fake_release(rows)
    given = {}

    for field, column in [("references", "gold_surfaces"), ("question", "instruction")]:
        with pytest.raises(ColumnNotFoundError, match=rf"instruction.*columns=\{{'{field}': 'NA"):
            load_redirectqa(source, columns=given)
        given[field] = column
    data = load_redirectqa(source, columns=given)

    assert data.rows["question"].tolist() == [row["question"] for row in rows]
    assert data.rows["references"].iloc[0] == ("London", "London, UK")
    assert data.rows["object_name"].iloc[0] == "London"
    assert data.source.digest == load_redirectqa(rows).source.digest
    only_name = load_redirectqa(source, columns=given | {"references": "target"})
    assert only_name.rows["references"].iloc[0] == ("London",)
    with pytest.raises(ColumnNotFoundError, match="unknown field 'gold'; the fields are triple"):
        load_redirectqa(rows, columns={"gold": "possible_answers"})


@pytest.mark.parametrize(
    ("known", "listed"),
    [(("relation", "possible_answers"), "wording, instruction"), (("relation",), "wording, instr")],
)
def test_rows_that_differ_in_unknown_columns_are_not_duplicates(rows, known, listed):
    """Two wordings in unknown columns raise an error with the names, instead of losing rows."""
    source = fake_release(rows, known=known)
    given = {} if "possible_answers" in known else {"references": "gold_surfaces"}

    with pytest.raises(
        DataError,
        match=rf"list:1 and list:2 would be one question.*they differ in {listed}.*"
        r"columns=\{'question': 'NAME'\} or columns=\{'template': 'NAME'\}",
    ):
        load_redirectqa(source, columns=given, ask_by_template=True)

    for remedy in ({"question": "instruction"}, {"template": "wording"}):
        data = load_redirectqa(source, columns=given | remedy, ask_by_template=True)
        assert len(data.rows) == len(rows)


@pytest.mark.parametrize(
    ("first", "second"),
    [({"note": 1}, {}), ({"note": None}, {}), ({"note": object}, {"note": str})],
)
def test_unread_cells_of_any_type_are_compared(rows, first, second):
    """A missing cell equals an empty one; other cells are compared by their `repr`."""
    repeated = [rows[0] | first, *rows[1:], rows[0] | second]

    if first == {"note": None}:
        with pytest.warns(SurfaceConsistencyWarning, match="repeats 1 rows exactly"):
            load_redirectqa(repeated)
    else:
        with pytest.raises(DataError, match="they differ in note; if one of these"):
            load_redirectqa(repeated)
