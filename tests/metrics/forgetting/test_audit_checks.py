import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics.forgetting.audit_checks import (
    contamination_by,
    contamination_flags,
    decomposition_residual,
    recover_table,
)
from tests.metrics.harness import golden_rows
from tests.refusals import refusals

cells = st.lists(
    st.integers(1, 50).flatmap(
        lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))
    ),
    min_size=1,
    max_size=20,
)


def golden_frame(data_files):
    """The published contingencies, which call a topology a variant."""
    frame = pd.read_csv(data_files / "golden" / "audit_contingencies.csv")
    return frame.rename(columns={"variant": "topology"})


def test_contamination_by_finds_exactly_the_three_databases(data_files):
    """Three of thirteen databases were scored with the index of another one."""
    frame = golden_frame(data_files)
    rows = contamination_by(frame)

    assert contamination_by(frame.sample(frac=1.0, random_state=1)).equals(rows)
    found = rows[rows["is_contaminated"]]
    assert len(rows) == 13
    assert list(found[["domain", "topology"]].itertuples(index=False, name=None)) == [
        ("politicians", "Noise"),
        ("sports", "Alias"),
        ("sports", "Base"),
    ]
    # 2,880 of 12,228 pairs; FULL is 0 / 0 / 0.8 % there and at least 35 % elsewhere.
    assert found["n"].sum() == 2880
    assert rows["n"].sum() == 12_228
    assert found["full_accuracy"].tolist() == pytest.approx([0, 0, 0.00833], abs=1e-5)
    assert rows.loc[~rows["is_contaminated"], "full_accuracy"].min() > 0.35
    # All 18 cells of the three databases are flagged, and no other of the 78.
    flags = contamination_flags(frame["full_correct"], frame["del_on_correct"], n=frame["n"])
    places = list(zip(frame["domain"], frame["topology"], strict=True))
    suspect = set(zip(found["domain"], found["topology"], strict=True))
    assert (flags != "").tolist() == [place in suspect for place in places]
    # FULL equals DEL-ON in every cell of sports / Base.
    in_base = [place == ("sports", "Base") for place in places]
    assert set(flags[in_base]) == {"both"}


@given(cells, st.floats(0, 0.99))
def test_contamination_flags_agree_with_a_naive_loop(counts, near_zero):
    full, del_on, n = zip(*counts, strict=True)

    flags = contamination_flags(full, del_on, n=n, near_zero=near_zero)

    names = {(0, 0): "", (1, 0): "full_near_zero", (0, 1): "full_equals_del_on", (1, 1): "both"}
    assert flags.tolist() == [names[f <= near_zero * m, f == d] for f, d, m in counts]


def test_contamination_by_needs_every_cell():
    """One weak prompt style does not flag a database, but is counted."""
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
    unlabelled = contamination_by(frame.replace({"db": {"b": None}}), by=["db"])
    assert unlabelled["is_contaminated"].tolist() == [False, True]
    assert contamination_flags([], [], n=np.array([], dtype=int)).size == 0


test_contamination_flags_reject_bad_counts = refusals(
    lambda full, del_on, n, near_zero=0.01: contamination_flags(
        full, del_on, n=n, near_zero=near_zero
    ),
    ([1, 2], [1], [5, 5], "equal lengths.* got 2, 1 and 2"),
    ([6], [1], [5], r"full_correct\[0\] must not exceed n; got 6 of 5"),
    ([1], [9], [5], r"del_on_correct\[0\] must not exceed n; got 9 of 5"),
    ([0], [0], [0], r"n\[0\] is 0: a cell must contain facts"),
    ([-1], [0], [5], r"full_correct\[0\] must be a count of at least 0; got -1"),
    ([0.5], [0], [5], TypeError, "full_correct must be integer counts; got dtype float64"),
    ([[1]], [0], [5], "full_correct must be one-dimensional"),
    ([True], [0], [5], TypeError, "full_correct must be integer counts; got dtype bool"),
    ([1], [1], [5], 5, r"near_zero must be in \[0, 1\)"),
)


CELL = pd.DataFrame([["x", "y", 5, 1, 0]])
CELL.columns = ["domain", "topology", "n", "full_correct", "del_on_correct"]
test_contamination_by_rejects_bad_frames = refusals(
    lambda frame, options: contamination_by(frame, **options),
    (CELL.drop(columns="n"), {}, ColumnNotFoundError, "'n' not found; pass"),
    (CELL.iloc[:0], {}, "frame has no rows"),
    (CELL, {"by": ()}, "by must name the columns that identify"),
    (CELL.assign(n_cells=1), {"by": "n_cells"}, "'n_cells' has the name of"),
    (CELL.to_dict("records"), {}, TypeError, "must be a pandas DataFrame, one row per"),
    (CELL.assign(n=np.nan), {}, TypeError, "n must be integer counts"),
)


contingencies = st.tuples(*[st.integers(0, 240)] * 4).filter(lambda counts: 0 < sum(counts) < 1000)

RATES = {"del_on": 0.2, "leakage": 0.2, "retrieval_mediated": 0.1}
STYLES = {
    "Direct Questions": "direct_questions",
    "Paraphrased Questions": "paraphrased_questions",
    "Contextual Questions": "contextual_questions",
    "Cloze Prompts": "cloze",
    "Continuations": "continuations",
    "Fewshot": "fewshot_questions",
}


def golden_tables(data_files):
    return {
        (row["domain"], row["variant"].lower(), row["prompt_style"]): tuple(
            int(row[name]) for name in "abcd"
        )
        for row in golden_rows(data_files, "audit_contingencies.csv")
    }


def place_of(row):
    """Domain, variant and style of a row of the audit's published files."""
    style = re.search(r"prompts_(\w+)\.jsonl", row["prompt_file"])[1]
    found = re.search(r"custom_databases/(\w+)/(\w+)\.json", row["database_path"])
    return (*found.groups(), style) if found else ("released", "released", style)


def rates_of(counts):
    both, first_only, second_only, neither = counts
    n = both + first_only + second_only + neither
    return n, {
        "del_on": (both + first_only) / n,
        "leakage": (both + second_only) / n,
        "retrieval_mediated": first_only / n,
    }


def test_recover_table_agrees_with_all_cells_of_the_audit(data_files):
    """Proposition C.2, applied to the published rates of each of the 78 cells."""
    folder = "lmlm_audit/outputs/audit"
    del_on = {
        place_of(row): float(row["exact_match"])
        for row in golden_rows(data_files, "per_state_metrics.csv", folder)
        if row["state"] == "DEL-ON"
    }

    recovered = {
        place_of(row): recover_table(
            n=int(row["paired_count"]),
            del_on=del_on[place_of(row)],
            leakage=float(row["parametric_leakage"]),
            retrieval_mediated=float(row["retrieval_mediated_correctness"]),
        ).counts
        for row in golden_rows(data_files, "cross_state_metrics.csv", folder)
    }

    assert len(recovered) == 78
    assert recovered == golden_tables(data_files)


def test_recover_table_agrees_with_the_printed_table(data_files):
    """Table 6 prints L, R and A to three decimals, and A is DEL-ON accuracy in all its rows."""
    rows = golden_rows(data_files, "audit_table6_cross_state.csv")
    golden = golden_tables(data_files)

    different = {}
    for row in rows:
        domain, variant = row["database"].lower().replace("lmlm", "released").split()
        table = recover_table(
            n=int(row["n"]),
            del_on=float(row["artifact"]),
            leakage=float(row["leakage"]),
            retrieval_mediated=float(row["retrieval_mediated"]),
            decimals=3,
        )
        place = (domain, variant, STYLES[row["prompt_set"]])
        if table.counts != golden[place]:
            different[place] = table.counts

    assert len(rows) == 78
    # The one cell in which the paper (0.025, which is 4 of 158) and its published metrics (3 of
    # 158) disagree.
    assert different == {("sports", "collision", "contextual_questions"): (0, 4, 0, 154)}
    assert golden["sports", "collision", "contextual_questions"] == (0, 3, 0, 155)


def test_recover_table_agrees_with_the_follow_up(data_files):
    """If c is large, L + R is 26.5 % and DEL-ON accuracy is 5.3 %."""
    (cross,) = golden_rows(data_files, "halo_cross_state_metrics.csv", "lmlm")
    rows = golden_rows(data_files, "halo_per_state_metrics.csv", "lmlm")
    states = {row["state"]: row for row in rows}
    rates = {
        # The verdict of this file's cross-state rates is containment, not exact match.
        "del_on": float(states["DEL-ON"]["contains_match"]),
        "leakage": float(cross["parametric_leakage"]),
        "retrieval_mediated": float(cross["retrieval_mediated_correctness"]),
    }

    table = recover_table(n=int(cross["paired_count"]), **rates)

    assert table.counts == (25, 7, 127, 440)
    assert rates["leakage"] == float(states["DEL-OFF"]["contains_match"])
    assert decomposition_residual(**rates) == pytest.approx(-127 / 599)
    assert decomposition_residual(**rates, interference=127 / 599) == pytest.approx(0.0)


@given(contingencies)
def test_recover_table_inverts_the_rates(counts):
    """Three decimals are enough below 1,000 facts, rounded to even or up."""
    n, rates = rates_of(counts)
    rounded = {name: round(rate, 3) for name, rate in rates.items()}
    up = {name: int(1000 * rate + 0.5) / 1000 for name, rate in rates.items()}

    assert recover_table(n=n, **rates).counts == counts
    assert recover_table(n=n, **rounded, decimals=3).counts == counts
    assert recover_table(n=n, **up, decimals=3).counts == counts
    residual = decomposition_residual(**rates, interference=counts[2] / n)
    assert residual == pytest.approx(0, abs=1e-12)
    assert decomposition_residual(**rates) == pytest.approx(-counts[2] / n, abs=1e-12)


def rates(n, del_on, leakage, retrieval_mediated, decimals):
    values = {"del_on": del_on, "leakage": leakage, "retrieval_mediated": retrieval_mediated}
    return values | {"n": n, "decimals": decimals}


test_recover_table_rejects_impossible_rates = refusals(
    lambda arguments, call=recover_table: call(**({"n": 10} | RATES | arguments)),
    ({"n": 0}, "n must be at least 1"),
    ({"n": 10.0}, TypeError, "n must be an integer count"),
    ({"n": -5}, "n must be a count of at least 0"),
    ({"del_on": 1.2}, r"del_on must be a rate in \[0, 1\]; got 1.2"),
    ({"leakage": float("nan")}, r"leakage must be a rate in \[0, 1\]; got nan"),
    ({"retrieval_mediated": -0.1}, r"retrieval_mediated must be a rate"),
    ({"del_on": 0.25}, "del_on=0.25 .* of 10 facts: the nearest is 2 of them, 0.2"),
    ({"del_on": 0.256, "decimals": 3}, "del_on=0.256 cannot come from integer"),
    (
        {"del_on": 0.1, "retrieval_mediated": 0.2},
        r"cannot be of the same 10 facts: a, b, c, d would be \(-1, 2, 3, 6\)",
    ),
    (rates(5000, 0.1, 0.1, 0.0, 3), r"\d+ tables of 5000 .* pass more decimals"),
    (rates(10**6, 0.5, 0.5, 0.1, 2), "1000000 facts round to these rates: pass"),
    (rates(30, 0.5, 0.5, 0.0, 1), r"\d+ tables of 30 facts round to these rates"),
    ({"decimals": -1}, "decimals must be a count of at least 0"),
    (
        {"interference": 12},
        lambda n, **rates: decomposition_residual(**rates),
        r"interference must be a rate in \[0, 1\]",
    ),
)
