"""The published tables (shared data), against contingencies and headline numbers."""

import pandas as pd
import pytest

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.studies.audit import published_tables

NAMES = ("per_state_metrics.csv", "cross_state_metrics.csv")


@pytest.fixture(scope="module")
def files(data_files):
    return [data_files / "lmlm_audit" / "outputs" / "audit" / name for name in NAMES]


@pytest.fixture(scope="module")
def tables(files):
    return published_tables(*files)


@pytest.fixture(scope="module")
def rows(tables):
    """The headline by topology and of all facts."""
    headline = tables["headline"]
    kept = headline[headline["slice"].isin(["all", "topology"])]
    return kept.set_index(["label", "subset"])


def test_published_tables_agree_with_the_golden_contingencies(tables, data_files):
    golden = pd.read_csv(data_files / "golden" / "audit_contingencies.csv")
    golden["topology"] = golden["variant"].str.lower()
    keys = ["domain", "topology", "prompt_style"]
    counts = ["n", "a", "b", "c", "d", "full_correct", "del_on_correct", "del_off_correct"]
    found = tables["cells"].rename(columns={"style": "prompt_style", "artifacts": "artifact"})

    pd.testing.assert_frame_equal(
        found[[*keys, *counts, "artifact"]].sort_values(keys, ignore_index=True),
        golden[[*keys, *counts, "artifact"]].sort_values(keys, ignore_index=True),
    )


# Recomputed from golden/audit_contingencies.csv: n, a / b / c, L + R, McNemar; n and L + R without
# the three databases that were answered from another one's index.
@pytest.mark.parametrize(
    ("label", "counts", "stack", "statistic", "clean"),
    [
        ("base", (1920, 0, 69, 2), 0.03698, 61.3521, (1320, 0.04848)),
        ("alias", (3840, 0, 236, 4), 0.06250, 222.3375, (2640, 0.09053)),
        ("collision", (2748, 1, 194, 2), 0.07169, 186.1276, (2748, 0.07169)),
        ("noise", (3120, 2, 418, 3), 0.13558, 407.1164, (2040, 0.20686)),
        ("released", (600, 0, 4, 0), 0.00667, None, (600, 0.00667)),
        ("all", (12_228, 3, 921, 11), 0.07646, None, (9348, None)),
    ],
)
def test_published_tables_agree_with_the_headline_numbers(
    rows, label, counts, stack, statistic, clean
):
    found, served = rows.loc[(label, "published")], rows.loc[(label, "clean")]

    assert tuple(found[["n", "a", "b", "c"]]) == counts
    assert found["leakage_plus_mediated"] == pytest.approx(stack, abs=5e-6)
    assert found["identity_residual"] == pytest.approx(0, abs=1e-12)
    assert found["mcnemar_method"] == ("exact" if label == "released" else "corrected")
    if statistic is not None:
        assert found["mcnemar_statistic"] == pytest.approx(statistic, abs=5e-5)
    assert served["n"] == clean[0]
    if clean[1] is not None:
        assert served["leakage_plus_mediated"] == pytest.approx(clean[1], abs=5e-6)


def test_published_tables_detect_databases_with_another_index(tables):
    flagged = tables["contamination"].query("is_contaminated")

    assert sorted(flagged["database"]) == ["politicians/noise", "sports/alias", "sports/base"]
    assert flagged["n"].sum() == 2880


def test_the_published_artifact_rate_equals_exact_match_after_deletion(tables):
    """They are equal by construction in all 78 cells."""
    cells = tables["cells"]

    assert (cells["artifacts"] == cells["del_on_correct"]).all()
    assert len(cells) == 78


def test_states_agree_with_the_published_figures(tables):
    """Figure 5: F1 under FULL is about 57 % for continuations and 17 % for few-shot prompts."""
    states = tables["states"].query("subset == 'published' and state == 'FULL'").set_index("label")

    assert states.loc["continuations", "f1"] == pytest.approx(0.57, abs=0.02)
    assert states.loc["fewshot_questions", "f1"] == pytest.approx(0.17, abs=0.02)


def test_published_tables_reject_files_that_do_not_belong_together(files, tmp_path):
    per_state, cross_state = (pd.read_csv(file) for file in files)
    broken = [tmp_path / name for name in NAMES]

    def write(first, second):
        first.to_csv(broken[0], index=False)
        second.to_csv(broken[1], index=False)

    write(per_state[per_state["state"] != "FULL"], cross_state)
    with pytest.raises(DataError, match="has no state FULL"):
        published_tables(*broken)
    write(per_state, cross_state.assign(parametric_leakage=0.123))
    with pytest.raises(DataError, match=r"prompts_cloze\.jsonl: leakage=0\.123"):
        published_tables(*broken)
    write(per_state.drop(columns="f1"), cross_state)
    with pytest.raises(DataError, match="has no column f1"):
        published_tables(*broken)
    with pytest.raises(SourceNotFoundError, match=r"table .* not found"):
        published_tables(tmp_path / "nowhere.csv", broken[1])
