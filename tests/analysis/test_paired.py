import json
import math

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.labels import split_labels
from surface_consistency.analysis.measures import paired
from surface_consistency.cli.main import main
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.metrics import adjust_p_values
from surface_consistency.results.columns import ResultColumns

FILE = {"first": "canonical", "second": "redirect", "cluster": "triplet_id"}
RATES = ["consistency", "signed_alignment", "flip_rate", "accuracy_difference"]
CELLS = ("both", "first_only", "second_only", "neither", "n")


def compare(source, *, separator=None, **options):
    """Compare two columns of a file of texts, or of a frame."""
    frame = (
        source if isinstance(source, pd.DataFrame) else pd.read_csv(source, keep_default_na=False)
    )
    frame = split_labels(frame, options.get("by", ()), separator)
    return paired(frame, **options).to_frame(all=True).to_dict("records")


def bounds(row, name):
    return row[f"{name}_low"], row[f"{name}_high"]


@pytest.mark.parametrize(("n_groups", "is_counted"), [(3, False), (14, True)])
def test_sentences_of_many_groups_name_their_number(n_groups, is_counted):
    rng, n = np.random.default_rng(0), 30 * n_groups
    sides = {f"{side}_correct": rng.integers(0, 2, n) for side in ("first", "second")}
    frame = pd.DataFrame({"item": range(n), "group": np.arange(n) % n_groups, **sides})

    result = paired(frame, by="group")

    more = f"Sentences report estimates of the first 3 of {n_groups} rows; to_frame() has all."
    assert (result.sentences[1] == more) is is_counted
    assert (more in repr(result)) is is_counted
    # Each item is one cluster, so that the clusters are equal.
    assert result.note == "Standard errors are clustered by item."


@pytest.fixture(scope="module")
def table4(data_files, tmp_path_factory):
    """The pairs of table 4 of RedirectQA, one per line."""
    counts = pd.read_csv(data_files / "golden" / "redirectqa_table4_popqa_contingency.csv")
    rows = counts.loc[counts.index.repeat(counts["count"])]
    path = tmp_path_factory.mktemp("table4") / "verdicts.csv"
    rows[["canonical_correct", "redirect_correct"]].to_csv(path, index=False)
    return path


def test_compare_agrees_with_the_published_table(table4):
    """Table 4 of RedirectQA: 14,489 pairs, 23.7 % inconsistent."""
    names = {"first": "canonical_correct", "second": "redirect_correct"}
    (row,) = compare(table4, **names)
    (published,) = compare(table4, **names, test="independent")

    assert [row[key] for key in CELLS] == [4285, 2821, 608, 6775, 14489]
    assert round(100 * row["flip_rate"], 1) == 23.7
    assert row["consistency"] == 1 - row["flip_rate"]
    assert row["signed_alignment"] == (4285 - 6775) / 14489
    assert row["test"] == "t"
    assert published["test"] == "corrected"
    assert published["statistic"] == (abs(2821 - 608) - 1) ** 2 / (2821 + 608)
    for name in RATES:
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
    low, high = bounds(row, "flip_rate")
    error = 1.96 * math.sqrt(0.237 * 0.763 / 14489)
    assert (high - low) / 2 == pytest.approx(error, rel=0.05)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Pairs of 80 facts with one or two categories each, separated by a semicolon."""
    rng = np.random.default_rng(0)
    names = ["from surnames", "from plurals", "NA"]
    lines = ["triplet_id,category,canonical,redirect"]
    for _ in range(300):
        labels = rng.choice(names, size=rng.integers(1, 3), replace=False)
        fact = rng.integers(80)
        first = (fact * 37 % 80) / 80 < 0.6
        second = first ^ (rng.random() < 0.3)
        lines.append(f"{fact},{';'.join(labels)},{int(first)},{int(second)}")
    path = tmp_path_factory.mktemp("compare") / "verdicts.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_pair_with_several_labels_is_in_several_groups(file):
    groups = compare(file, by=["category"], separator=";", **FILE)

    assert [row["category"] for row in groups] == ["NA", "from plurals", "from surnames"]
    assert sum(row["n"] for row in groups) > 300
    adjusted = adjust_p_values([row["p_value"] for row in groups])
    assert [row["p_value_holm"] for row in groups] == adjusted.tolist()


def test_cell_is_one_label_without_a_separator(file):
    rows = compare(file, by=["category"], **FILE)

    assert sum(row["n"] for row in rows) == 300
    assert "from surnames;from plurals" in [row["category"] for row in rows]


def test_undefined_numbers_are_null(tmp_path, capsys):
    (tmp_path / "v.csv").write_text("x,y,f\n1,1,f\n")
    words = ["paired", str(tmp_path / "v.csv"), "--first", "x", "--second", "y", "--cluster", "f"]
    assert main([*words, "--json"]) == 0

    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert bounds(row, "consistency") == (None, None)
    assert row["consistency"] == 1.0
    assert main(words) == 0
    assert "Consistency (%): 100.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": ["shelf"]}, ColumnNotFoundError, r"by='shelf' is not among .* category"),
        ({"pair": "triplet_id"}, DataError, "rows have the same triplet_id as another row"),
        ({"separator": ";"}, ValueError, "`separator` separates the labels of `by`"),
        ({"test": "sign"}, ValueError, "'sign'"),
    ],
)
def test_paired_rejects_invalid_options(file, options, error, message):
    with pytest.raises(error, match=message):
        compare(file, first="canonical", second="redirect", **options)


def test_two_conditions_and_two_models_have_the_same_inference():
    """The same labels as columns of conditions, and as rows of models, clustered."""
    rng = np.random.default_rng(8)
    wide = pd.DataFrame(rng.random((60, 2)) < [0.8, 0.6], columns=["first", "second"])
    wide = wide.assign(id=[f"q{n}" for n in range(60)], topic=[f"t{n // 3}" for n in range(60)])
    long = wide.melt(["id", "topic"], ["first", "second"], var_name="model", value_name="score")
    columns = ResultColumns(model="model", item=("id",), score="score", cluster=("topic",))

    (row,) = compare(wide, first="first", second="second", cluster="topic")
    models = compare_results(long, columns).metrics["score"].differences.iloc[0]

    assert row["accuracy_difference"] == pytest.approx(models["difference"])
    assert bounds(row, "accuracy_difference") == pytest.approx(bounds(models, "difference"))
    assert row["p_value"] == pytest.approx(models["p_value"])
    assert row["first_only"] == models["reference_only"]


def test_outcomes_behind_a_link_or_damaged_are_rejected(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "manifest.json").write_text("{}", "utf-8")
    (run / "verdicts.parquet").touch()
    (tmp_path / "secret.parquet").write_bytes(b"PAR1 secret")
    (run / "outcomes.parquet").symlink_to(tmp_path / "secret.parquet")
    with pytest.raises(DataError, match=r"outcomes\.parquet leads out of its folder"):
        paired(run)

    (run / "outcomes.parquet").unlink()
    with pytest.raises(DataError, match=r"outcomes\.parquet: cannot be read as Parquet"):
        paired(run)
