import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.studies.forms import load_forms


def row(item, form, answers=("yes",), **others):
    question = {"item": item, "form": form, "question": f"{item} {form}?"}
    return question | {"answers": list(answers), **others}


ROWS = [row(item, form) for item in ("a", "b") for form in ("x", "y")]


def test_bundled_sample_has_five_forms_per_item():
    data = load_forms("sample")

    assert data.rows.groupby("item").size().eq(5).all()
    assert (data.source.id, data.wordings) == ("forms-sample", "shared")
    assert data.source.n_questions == 1005
    assert data.source.is_sample


def test_choices_with_an_answer_index_give_the_references():
    rows = [
        {"item": "a", "form": form, "question": form, "choices": ["no", "yes"], "answer_index": 1}
        for form in ("x", "y")
    ]
    assert load_forms(rows).rows["references"].tolist() == [("yes",), ("yes",)]


CHOSEN = {"item": "a", "form": "x", "question": "x", "choices": ["no"], "answer_index": 1}
MAYBE, OTHER = [row("a", "x", choices=["no", "maybe"])], row("a", "x") | {"question": "other?"}
KLAR = {"preset": "klar", "columns": {"item": "id"}}
BOTH = [one | {"possible_answers": ["no"]} for one in ROWS]


@pytest.mark.parametrize(
    ("rows", "options", "error", "match"),
    [
        ([CHOSEN], {}, RecordError, "answer_index 1 must be the index of the correct choice"),
        (MAYBE, {}, RecordError, r"no accepted answer \(yes\) is among the choices"),
        (BOTH, {}, ColumnNotFoundError, "'possible_answers' and 'answers' could both be"),
        ([*ROWS, OTHER], {}, RecordError, "already has another question under form 'x'"),
        (ROWS, {"wordings": "templates"}, DataError, "needs the relation of every item"),
        ("", {}, DataError, "no source is given; pass `source`, or `preset`"),
        ("here", KLAR, DataError, "a preset names its columns"),
    ],
    ids=["index", "choice", "two columns", "question", "templates", "no source", "preset"],
)
def test_invalid_rows_and_options_raise_an_error(rows, options, error, match):
    with pytest.raises(error, match=match):
        load_forms(rows, **options)


def test_items_with_one_form_are_excluded_with_a_warning():
    with pytest.warns(SurfaceConsistencyWarning, match=r"list: excluded .*: 1 item \(c\)"):
        data = load_forms([*ROWS, row("c", "x")])

    assert set(data.rows["item"]) == {"a", "b"}


def test_unequal_numbers_of_forms_give_a_warning():
    with pytest.warns(SurfaceConsistencyWarning, match="have from 2 to 3 forms"):
        load_forms([*ROWS, row("a", "z")])


def test_no_item_with_two_forms_raises_an_error():
    with (
        pytest.warns(SurfaceConsistencyWarning, match="a single form"),
        pytest.raises(DataError, match="no item of list has two forms"),
    ):
        load_forms([row("a", "x"), row("b", "x")])


def test_columns_selects_one_of_two_columns_of_references():
    data = load_forms(BOTH, columns={"references": "possible_answers"})
    assert data.rows["references"].tolist() == [("no",)] * 4


def test_answers_with_a_separator_are_reported_and_split_on_request():
    rows = [one | {"answers": "Rome | Roma"} for one in ROWS]

    with pytest.warns(
        SurfaceConsistencyWarning, match=r"4 of 4 .*'\|'.*`reference_separator` '\|'"
    ):
        whole = load_forms(rows)
    split = load_forms(rows, reference_separator="|")

    assert whole.rows["references"].tolist() == [("Rome | Roma",)] * 4
    assert split.rows["references"].tolist() == [("Rome", "Roma")] * 4


def test_answers_in_an_unknown_object_raise_an_error_with_their_value():
    with pytest.raises(RecordError, match=r"column 'answers': expected text.*got \{'x': 1\}"):
        load_forms([one | {"answers": {"x": 1}} for one in ROWS])


def test_rows_without_answers_are_counted():
    with (
        pytest.warns(UnscoredWarning, match="1 rows of list have no accepted answer"),
        pytest.warns(SurfaceConsistencyWarning, match="a single form"),
    ):
        load_forms([*ROWS, row("c", "x"), row("c", "y", answers=())])


def test_rows_with_relations_are_templates_by_default():
    rows = [one | {"relation": "P1"} for one in ROWS]

    assert load_forms(rows).wordings == "templates"
    assert load_forms(rows, wordings="shared").wordings == "shared"


def test_limit_is_spread_over_relations():
    rows = [
        row(f"{relation}{n}", form, relation=relation)
        for relation in "pq"
        for n in range(5)
        for form in "xy"
    ]
    limited = load_forms(rows).limited(2)
    assert set(limited.rows["item"]) == {"p0", "q0"}
