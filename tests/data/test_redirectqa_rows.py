import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        (("subject_surface",), r"no column for this field: 'surface' under subject_surface, .*"),
        (
            ("triplet_id", "subject_id", "subject_wiki_title"),
            r"any of these fields: 'triple_id' under triplet_id, .*'subject_id' under subject_id",
        ),
        (
            ("subject_surface_category", "subject_redirect_wiki_title"),
            r"'categories' under subject_surface_category, .*columns=\{'categories': '<column>'\}",
        ),
        (("question", "relation"), r"'question' under question, .*'relation' under relation"),
        (
            ("possible_answers", "object"),
            r"'answers' under possible_answers, .*Its columns are triplet_id, subject_id, ",
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
        ("object", "Paris"),
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
    assert "columns={'template': '<column>'}" in message


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
        RecordError, match=r"list:1: fact '230395' has no relation.*columns=\{'relation': '<column>"
    ):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_a_question_that_cannot_be_worded(rows):
    """Without a question, the relation must have a template."""
    for row in rows:
        row |= {"relation": "employer", "question": None}

    with pytest.raises(RecordError, match=r"list:1: no question, and .* relation 'employer'; name"):
        load_redirectqa(rows)


def test_load_redirectqa_rejects_facts_without_identity(rows):
    """Without ids, subject, relation and object together are the fact."""
    for row in rows:
        del row["triplet_id"]
    rows[4]["object_id"] = None
    rows[4]["object"] = None
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

    for column, field in [
        ("question", r"list:5: field 'question'"),
        ("subject_surface", r"list:5: field 'text'"),
        ("object", r"list:5: fact '6146949': field 'name'"),
    ]:
        with pytest.raises(RecordError, match=rf"{field}: .*unicode"):
            load_redirectqa([*rows[:4], row | {column: "\ud83d"}])
