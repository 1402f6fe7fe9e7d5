import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics.forgetting.contamination import (
    contamination_by,
    contamination_flags,
)

cells = st.lists(
    st.integers(1, 50).flatmap(
        lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))
    ),
    min_size=1,
    max_size=20,
)


def golden_frame(shared_dir):
    return pd.read_csv(shared_dir / "golden" / "audit_contingencies.csv")


def test_contamination_by_finds_exactly_the_three_databases(shared_dir):
    """Three of thirteen databases were answered from another one's index."""
    rows = contamination_by(golden_frame(shared_dir))

    found = rows[rows["is_contaminated"]]
    assert len(rows) == 13
    assert list(found[["domain", "variant"]].itertuples(index=False, name=None)) == [
        ("politicians", "Noise"),
        ("sports", "Alias"),
        ("sports", "Base"),
    ]
    # 2,880 of 12,228 pairs; FULL is 0 / 0 / 0.8 % there and at least 35 % elsewhere.
    assert found["n"].sum() == 2880
    assert rows["n"].sum() == 12_228
    assert found["full_accuracy"].tolist() == pytest.approx([0, 0, 0.00833], abs=1e-5)
    assert rows.loc[~rows["is_contaminated"], "full_accuracy"].min() > 0.35


def test_contamination_flags_agree_with_the_cells_of_the_audit(shared_dir):
    """All 18 cells of the three databases are flagged, and no other of the 78."""
    frame = golden_frame(shared_dir)

    flags = contamination_flags(frame["full_correct"], frame["del_on_correct"], n=frame["n"])

    suspect = {("sports", "Base"), ("sports", "Alias"), ("politicians", "Noise")}
    expected = [(d, v) in suspect for d, v in zip(frame["domain"], frame["variant"], strict=True)]
    assert (flags != "").tolist() == expected
    # FULL equals DEL-ON in every cell of sports / Base.
    in_base = (frame["domain"] == "sports") & (frame["variant"] == "Base")
    assert set(flags[in_base]) == {"both"}


@given(cells, st.floats(0, 0.99))
def test_contamination_flags_agree_with_a_naive_loop(counts, near_zero):
    full, del_on, n = zip(*counts, strict=True)

    flags = contamination_flags(full, del_on, n=n, near_zero=near_zero)

    names = {(0, 0): "", (1, 0): "full_near_zero", (0, 1): "full_equals_del_on", (1, 1): "both"}
    assert flags.tolist() == [names[f <= near_zero * m, f == d] for f, d, m in counts]


def test_contamination_by_needs_every_cell():
    """One weak prompt style does not damn a database, and its count shows it."""
    frame = pd.DataFrame(
        {"db": ["a", "a", "b", "b"], "full_correct": [1, 60, 0, 2], "n": 100}
    ).assign(del_on_correct=[0, 5, 0, 2])

    rows = contamination_by(frame, by="db")

    assert rows["is_contaminated"].tolist() == [False, True]
    assert rows["n_near_zero"].tolist() == [1, 2]
    assert rows["n_equal"].tolist() == [0, 2]
    assert rows["n_cells"].tolist() == [2, 2]
    assert rows["full_accuracy"].tolist() == [61 / 200, 2 / 200]
    assert rows["del_on_accuracy"].tolist() == [5 / 200, 2 / 200]


def test_contamination_by_is_free_of_order(shared_dir):
    frame = golden_frame(shared_dir)

    assert contamination_by(frame.sample(frac=1.0, random_state=1)).equals(contamination_by(frame))


def test_contamination_by_keeps_databases_without_a_label():
    frame = pd.DataFrame(
        {"db": [None, "a"], "n": [10, 10], "full_correct": [0, 9], "del_on_correct": [0, 1]}
    )

    rows = contamination_by(frame, by=["db"])

    assert len(rows) == 2
    assert rows["is_contaminated"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("full", "del_on", "n", "error", "message"),
    [
        ([1, 2], [1], [5, 5], ValueError, "equal lengths.* got 2, 1 and 2"),
        ([6], [1], [5], ValueError, r"full_correct\[0\] must not exceed n; got 6 of 5"),
        ([1], [9], [5], ValueError, r"del_on_correct\[0\] must not exceed n; got 9 of 5"),
        ([0], [0], [0], ValueError, r"n\[0\] is 0: a cell must hold facts"),
        ([-1], [0], [5], ValueError, r"full_correct\[0\] must be a count of at least 0; got -1"),
        ([0.5], [0], [5], TypeError, "full_correct must hold integer counts; got dtype float64"),
        ([[1]], [0], [5], ValueError, "full_correct must be one-dimensional"),
        ([True], [0], [5], TypeError, "full_correct must hold integer counts; got dtype bool"),
    ],
)
def test_contamination_flags_reject_bad_counts(full, del_on, n, error, message):
    with pytest.raises(error, match=message):
        contamination_flags(full, del_on, n=n)


def test_contamination_flags_reject_a_threshold_out_of_range():
    with pytest.raises(ValueError, match=r"near_zero must be an accuracy in \[0, 1\)"):
        contamination_flags([1], [1], n=[5], near_zero=5)


def test_contamination_flags_of_no_cells_are_none():
    assert contamination_flags([], [], n=np.array([], dtype=int)).size == 0


@pytest.mark.parametrize(
    ("spoil", "options", "error", "message"),
    [
        (lambda f: f.drop(columns="n"), {}, ColumnNotFoundError, "'n' is not in the frame"),
        (lambda f: f.iloc[:0], {}, ValueError, "frame has no rows"),
        (lambda f: f, {"by": ()}, ValueError, "by must name the columns that make"),
        (
            lambda f: f.assign(n_cells=1),
            {"by": "n_cells"},
            ValueError,
            "by column 'n_cells' has the name of a column of the result",
        ),
        (
            lambda f: f.to_dict("records"),
            {},
            TypeError,
            "frame must be a pandas DataFrame, one row a",
        ),
        (lambda f: f.assign(n=np.nan), {}, TypeError, "n must hold integer counts"),
    ],
)
def test_contamination_by_rejects_bad_frames(spoil, options, error, message):
    frame = pd.DataFrame(
        {"domain": ["x"], "variant": ["y"], "n": [5], "full_correct": [1], "del_on_correct": [0]}
    )

    with pytest.raises(error, match=message):
        contamination_by(spoil(frame), **options)
