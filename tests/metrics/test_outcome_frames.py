import math
import warnings
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings, strategies as st
from pandas.testing import assert_frame_equal

from surface_consistency.errors import ColumnNotFoundError, DataWarning, SurfaceConsistencyWarning
from surface_consistency.metrics import paired_by, paired_table
from surface_consistency.metrics.outcome_frames import outcomes_frame, to_verdict
from tests.refusals import refusals

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*though they share:surface_consistency.errors.SurfaceConsistencyWarning"
)
"""Rows that share a fact without a cluster are told in a test of their own."""

RIGHT = [True, 1, 1.0, "1", "1.0", "true", "True", "TRUE", " true ", np.bool_(True), np.int64(1)]
WRONG = [False, 0, 0.0, "0", "0.0", "false", "False", "FALSE", np.bool_(False), np.float32(0)]
MISSING = [None, math.nan, pd.NA, pd.NaT, "", "  ", np.float64("nan")]


@pytest.mark.parametrize(
    ("cells", "verdict"), [(RIGHT, True), (WRONG, False), (MISSING, None)], ids=["1", "0", "none"]
)
def test_verdicts_are_read_in_every_common_form(cells, verdict):
    assert [to_verdict(cell) for cell in cells] == [verdict] * len(cells)


@pytest.mark.parametrize("cell", ["NA", "null", "nan", "None", "yes", "2", 2, 0.5, -1, [1], b"1"])
def test_anything_else_is_no_verdict(cell):
    """A cell that was meant to be empty must be empty, and a score is not a verdict."""
    with pytest.raises(ValueError, match="is no verdict: give 1 or 0, true or false"):
        to_verdict(cell)


OWN = [
    *("pair", "item", "first_condition", "second_condition"),
    *("first_correct", "second_correct"),
]


WIDE = {"first": "canonical", "second": "redirect"}
CONDITIONS = WIDE | {"condition": "form"}


@pytest.fixture
def wide():
    categories = [["from surnames"], ["from plurals"], ["from surnames"], []]
    verdicts = {"canonical": [1, 1, 0, 1], "redirect": [1, 0, 0, None]}
    return pd.DataFrame({"triplet_id": [7, 7, 9, 12], "category": categories} | verdicts)


@pytest.fixture
def long():
    """Two facts with one canonical name each, one of them with two redirects."""
    rows = """item,form,surface,correct
        Q1,canonical,Cat Stevens,True
        Q1,redirect,Steven Georgiou,False
        Q1,redirect,Yusuf,True
        Q2,redirect,ППК,
        Q2,canonical,PPK,0"""
    return pd.read_csv(StringIO(rows), skipinitialspace=True, dtype=str, keep_default_na=False)


def test_wide_frame_becomes_an_outcomes_frame(wide):
    frame = outcomes_frame(wide, **WIDE, cluster="triplet_id")

    assert list(frame.columns) == [*OWN, "triplet_id", "category"]
    assert frame["pair"].tolist() == ["1", "2", "3", "4"]
    assert frame["item"].tolist() == ["7", "7", "9", "12"]
    assert frame["first_correct"].tolist() == [True, True, False, True]
    assert frame["second_correct"].tolist()[:3] == [True, False, False]
    assert frame["second_correct"].isna().tolist() == [False, False, False, True]
    assert str(frame["second_correct"].dtype) == "boolean"
    assert (frame["first_condition"] == "canonical").all()
    # A frame of outcomes stays the same, and the metrics take it.
    twice = outcomes_frame(frame, first="first_correct", second="second_correct")
    assert_frame_equal(twice, frame)
    row = paired_by(frame.iloc[:3], pair="pair").iloc[0]
    assert row[["both", "first_only", "neither", "n_clusters"]].tolist() == [1, 1, 1, 2]


def test_all_kinds_of_sources_give_one_frame(wide):
    """A frame, a mapping of columns and rows hold the same pairs."""
    options = {"first": "canonical", "second": "redirect", "cluster": "triplet_id"}
    expected = outcomes_frame(wide, **options)

    for source in (
        wide.astype(object).to_dict("list"),
        wide.astype(object).to_dict("records"),
        iter(wide.astype(object).to_dict("records")),
    ):
        frame = outcomes_frame(source, **options)
        assert_frame_equal(frame.astype(object), expected.astype(object), check_dtype=False)


def test_records_become_an_outcomes_frame():
    """Records that a study wrote come back as they were."""
    schemas = pytest.importorskip("surface_consistency.schemas")
    names = {"study": "slaq", "model": "m", "item": "Q1", "second_correct": True}
    names |= {"first_condition": "short", "second_condition": "long"}
    records = [
        schemas.PairedOutcome(pair=f"p{index}", first_correct=verdict, **names)
        for index, verdict in enumerate([True, False, None])
    ]

    frame = outcomes_frame(records, first="first_correct", second="second_correct")

    assert frame["pair"].tolist() == ["p0", "p1", "p2"]
    assert frame["first_condition"].tolist() == ["short"] * 3
    assert frame["first_correct"].isna().tolist() == [False, False, True]
    assert {"study", "model"} <= set(frame.columns)


def test_long_rows_are_paired_by_fact(long):
    frame = outcomes_frame(long, **CONDITIONS)

    assert frame["surface"].tolist() == ["Steven Georgiou", "Yusuf", "ППК"]
    assert frame["pair"].tolist() == ["Q1/1", "Q1/2", "Q2/1"]
    assert frame["item"].tolist() == ["Q1", "Q1", "Q2"]
    assert frame["first_correct"].tolist() == [True, True, False]
    assert frame["second_correct"].isna().tolist() == [False, False, True]
    assert list(frame.columns) == [*OWN, "surface"]


def test_facts_named_by_columns_are_kept_apart(long):
    """("a/b", "c") and ("a", "b/c") are two facts."""
    rows = [
        {"x": x, "y": y, "form": form, "correct": form == "one" and x == "a"}
        for x, y in (("a/b", "c"), ("a", "b/c"))
        for form in ("one", "two")
    ]

    frame = outcomes_frame(rows, first="one", second="two", condition="form", item=["x", "y"])

    assert frame["item"].nunique() == 2
    assert frame["first_correct"].tolist() == [False, True]
    both = pd.concat([long.assign(template="a"), long.assign(template="b")])
    frame = outcomes_frame(both, **CONDITIONS, item=["item", "template"])
    assert frame["pair"].nunique() == len(frame) == 6
    assert frame["item"].tolist() == ["Q1", "Q1", "Q2"] * 2


ROW = st.tuples(st.integers(0, 4), st.sampled_from(["c", "r"]), st.booleans())


@settings(deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=30))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.DataWarning")
def test_long_pairs_agree_with_a_naive_loop(rows):
    """Each redirect row meets the one canonical row of its fact."""
    canonical = {fact: verdict for fact, form, verdict in rows if form == "c"}
    others = [(fact, verdict) for fact, form, verdict in rows if form == "r"]
    pairs = [(canonical[fact], verdict) for fact, verdict in others if fact in canonical]
    assume(pairs)
    kept = [(fact, "c", verdict) for fact, verdict in canonical.items()]
    kept += [(fact, "r", verdict) for fact, verdict in others]
    source = pd.DataFrame(kept, columns=["item", "form", "correct"])
    source = source.sample(frac=1, random_state=len(rows))

    frame = outcomes_frame(source, first="c", second="r", condition="form")

    table = paired_table(frame["first_correct"], frame["second_correct"])
    assert table == paired_table(*zip(*pairs, strict=True))


def test_facts_under_one_condition_are_left_out_and_counted(long):
    with pytest.warns(DataWarning, match="1 of 2 facts stand under one") as caught:
        frame = outcomes_frame(long.iloc[:4], **CONDITIONS)

    assert frame["item"].tolist() == ["Q1", "Q1"]
    assert caught[0].filename == __file__


def test_pair_ids_are_unique_within_a_model(wide):
    models = pd.concat([wide.assign(model=name, pair=range(4)) for name in "xy"])
    options = {"first": "canonical", "second": "redirect", "cluster": "triplet_id"}

    assert len(outcomes_frame(models, within="model", **options)) == 8
    assert len(outcomes_frame(models, within=None, **options)) == 8
    with pytest.raises(ValueError, match=r"pair id '0' stands more than once \(4 rows"):
        outcomes_frame(models, **options)


IDS = {"condition": "triplet_id", "first": "7", "second": "9"}
test_outcomes_frame_rejects_names = refusals(
    lambda wide, options: outcomes_frame(wide, **WIDE | options),
    ({"first": "canon"}, r"first='canon' is not among the columns, which are \['triplet_id'"),
    ({"second": "alias"}, "second='alias' is not among"),
    ({"cluster": "subject"}, "column='subject' is not among"),
    ({"pair": "id"}, "column='id' is not among"),
    ({"within": "model"}, "within='model' is not among"),
    ({"condition": "form"}, "condition='form' is not among"),
    (IDS, "score='correct' is not among"),
    (IDS | {"score": "redirect"}, "item='item' is not among"),
    ({"second": "canonical"}, ValueError, "first and second must differ"),
    ({"item": "triplet_id"}, ValueError, "item='triplet_id' is for rows of one condition each"),
    error=ColumnNotFoundError,
    fixture="wide",
)


test_outcomes_frame_rejects_bad_sources = refusals(
    lambda source, options=WIDE: outcomes_frame(source, **options),
    ("verdicts.csv", TypeError, "got str: read a file first"),
    (3, TypeError, "must be a DataFrame, a mapping of columns, or rows; got int"),
    ([(1, 0)], TypeError, "row 1 must be a mapping or a record; got tuple"),
    ({"a": [1, 0], "b": [1]}, r"equally long; got \{'a': 2, 'b': 1\}"),
    (pd.DataFrame(columns=[*WIDE.values()]), "no rows"),
    (pd.DataFrame([[1, 0, 0]], columns=["canonical", *["redirect"] * 2]), "'redirect' stands 2 t"),
)


test_outcomes_frame_rejects_bad_pairs = refusals(
    lambda wide, change, options: outcomes_frame(wide.assign(**change), **WIDE | options),
    ({"redirect": [1, 0, "yes", 0]}, {}, "row 3, column 'redirect': 'yes' is no"),
    ({"canonical": 0.5}, {}, "row 1, column 'canonical': .*0.5.* is no verdict"),
    ({"own": [1, None, 2, 3]}, {"cluster": "own"}, "column 'own' is empty in row 2"),
    ({"item": 1}, {"cluster": "triplet_id"}, "has a column 'item' besides 'triplet_id'"),
    ({"first_correct": 1}, {}, "has a column 'first_correct' besides"),
    ({"pair": [1, 1, 2, 3]}, {}, "pair id '1' stands more than once"),
    fixture="wide",
)


test_outcomes_frame_rejects_bad_rows_of_conditions = refusals(
    lambda long, change, options: outcomes_frame(long.assign(**change), **CONDITIONS | options),
    ({}, {"first": "original"}, r"first='original' is no value of column 'form'"),
    ({"form": "canonical"}, {"second": "redirect"}, "second='redirect' is no value"),
    ({"form": ["canonical", "canonical", *["redirect"] * 3]}, {}, "'Q1' has several rows"),
    ({"item": range(5)}, {}, "no fact stands under both conditions"),
    ({"item": None}, {}, "column 'item' is empty in row 1"),
    ({"correct": "NA"}, {}, "row 1, column 'correct': 'NA' is no verdict"),
    fixture="long",
)


@pytest.mark.parametrize("dtype", ["Int64", "string", "category", "object"])
def test_conditions_are_read_from_every_type_of_column(dtype):
    """A row without a condition belongs to neither, however the gap is stored."""
    conditions = pd.Series([0, 1, None, 0, 1], dtype="Int64").astype(dtype)
    rows = pd.DataFrame({"item": [1, 1, 1, 2, 2], "form": conditions, "correct": [1, 0, 1, 0, 0]})

    frame = outcomes_frame(rows, first="0", second="1", condition="form")

    assert frame["item"].tolist() == ["1", "2"]
    assert frame["first_correct"].tolist() == [True, False]
    assert frame["second_correct"].tolist() == [False, False]


def test_an_empty_category_of_arrow_is_a_missing_verdict():
    """Of which pandas 2 makes the code -1 even where it is asked for another."""
    cells = pa.array(["1", None, "0", "1"]).dictionary_encode()
    column = pd.Series(cells, dtype=pd.ArrowDtype(cells.type))

    frame = outcomes_frame(pd.DataFrame({"a": column, "b": [1, 1, 0, 0]}), first="a", second="b")

    read = frame["first_correct"]
    assert read.isna().tolist() == [False, True, False, False]
    assert read.dropna().tolist() == [True, False, True]


@pytest.mark.parametrize("column", ["triplet_id", "Subject", "topic-id", "fact_id"])
def test_rows_that_share_a_fact_are_told(wide, column):
    """Without a cluster each row counts for itself; a name of something else may repeat."""
    plain = wide.drop(columns="triplet_id").assign(template_id=[1, 1, 2, 2])
    names = {"first": "canonical", "second": "redirect"}
    shared = plain.assign(**{column: ["a", "a", "b", "c"]})

    with pytest.warns(
        SurfaceConsistencyWarning, match=rf"share 3 values of '{column}'.*`cluster={column}`"
    ):
        outcomes_frame(shared, **names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcomes_frame(plain, **names)
        outcomes_frame(plain.assign(n_items=[5, 5, 6, 7], is_question=[1, 1, 1, 0]), **names)
        outcomes_frame(plain.assign(**{column: ["a", "b", "c", "d"]}), **names)
        outcomes_frame(shared, **names, cluster=column)


@pytest.mark.parametrize("dtype", ["Int64", "string", "Float64", "datetime64[ns]", "object"])
@pytest.mark.parametrize("role", ["pair", "cluster", "item"])
def test_ids_of_every_type_are_read_and_gaps_refused(wide, long, dtype, role):
    """An id that is missing is named by its row, and is no crash."""
    source, names = (long, CONDITIONS) if role == "item" else (wide, WIDE)
    ids = pd.Series(range(3, len(source) + 3), dtype="Int64")

    with pytest.raises(ValueError, match="column 'own' is empty in row 2"):
        outcomes_frame(
            source.assign(own=ids.mask(ids == 4).astype(dtype)), **names, **{role: "own"}
        )
    if role != "item" and dtype in ("Int64", "string", "Float64"):
        frame = outcomes_frame(wide.assign(own=ids.astype(dtype)), **WIDE, **{role: "own"})
        column = {"pair": "pair", "cluster": "item"}[role]
        assert [float(name) for name in frame[column]] == [3, 4, 5, 6]
