import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.engine.compare.results_report import ComparisonReport
from surface_consistency.errors import DataError
from surface_consistency.metrics import (
    PAIRED_RATES,
    cohen_kappa,
    forms_by,
    mcnemar,
    paired_by,
    paired_table,
)
from surface_consistency.results.columns import ResultColumns

FILES = Path(__file__).parents[1] / "data" / "files" / "forms"
CELLS = ["both", "reference_only", "model_only", "neither"]
TWO = ("alpha", "beta")


def table(compared, metric):
    return compared.metrics[metric].differences.iloc[0][CELLS].tolist()


def rows(scores, **columns):
    """Convert scores by model to rows of model and item."""
    return pd.concat(
        pd.DataFrame({"model": name, "item": range(len(values)), "score": values, **columns})
        for name, values in scores.items()
    )


def test_forms_of_an_instance_are_separate_pairs_in_one_cluster():
    """HELM perturbations: six originals, of which three also have typos."""
    compared = compare_results([FILES / "helm" / model for model in TWO])
    result = compared.metrics["exact_match"]

    assert compared.cluster_note == "items, each with all its forms"
    assert result.groups.set_index("group")["n"].to_dict() == {"": 6, "typos": 3}
    assert result.groups.set_index("group").loc["", "difference"] == pytest.approx(-1 / 3)
    assert result.differences["n_clusters"].tolist() == [6]


@pytest.mark.parametrize(
    ("tags", "slices"),
    [
        (("a", "b", "c"), {"tag"}),  # One label per form.
        (("a", "b", "a;b"), {"tag", "form"}),
        (("a;c", "b;c", "c"), {"tag", "form"}),  # The first labels equal the forms.
        (("a", "b", None), {"tag", "form"}),
        (("a", "b", "b"), {"tag", "form"}),
    ],
)
def test_forms_are_groups_unless_another_column_equals_them(tags, slices):
    rows = [
        {"model": model, "item": item, "form": form, "tag": tag, "correct": (item + place) % 2}
        for place, model in enumerate("mn")
        for item in range(6)
        for form, tag in zip("xyz", tags, strict=True)
    ]

    table = TableSettings(by=("tag",), separator=";")
    result = compare_results(pd.DataFrame(rows), table=table).metrics["correct"]

    assert set(result.groups["by"]) == slices


def test_models_in_one_file_are_separated_and_errors_are_missing_scores():
    """Promptfoo: the provider of beta failed on q3, which is neither correct nor incorrect."""
    compared = compare_results(FILES / "promptfoo" / "results.json")

    assert table(compared, "success") == [3, 2, 0, 0]
    assert compared.metrics["success"].models["n_missing"].sum() == 1
    assert compared.missing[0].startswith("5 of 6 items have a score (success)")


def test_epochs_are_averaged_and_give_the_test_retest_flip_rate():
    compared = compare_results([FILES / f"inspect_ai/2-epoch/{model}.eval" for model in TWO])

    assert compared.metrics["graded"].n_items == 6
    scores = pd.DataFrame(
        {"model": "m", "item": [0, 0, 1, 1, 2, 2, 3, 3] * 3, "epoch": [0, 1] * 12,
         "score": [1, 0, 1, 1, 0, 0, 1, 1] * 3}
    )  # fmt: skip
    scores["item"] += np.arange(24) // 8 * 10
    two = pd.concat([scores, scores.assign(model="n", score=1 - scores["score"])])
    noise = compare_results(two).noise.set_index("model")
    forms = forms_by(scores, item="item", form="epoch", score="score")
    expected = 1 - forms["consistency"].iloc[0]
    assert noise["flip_rate"].to_dict() == pytest.approx({"m": expected, "n": expected})


def test_missing_scores_are_incorrect_only_with_missing_wrong():
    alpha = next(FILES.glob("lm_eval/0.4.13/alpha/*mc*"))
    files = [alpha, FILES / "traps" / "lm_eval_beta_one_score_null.jsonl"]

    for missing, n_items in (("drop", 5), ("wrong", 6)):
        compared = compare_results(files, settings=ComparisonSettings(missing=missing))
        assert compared.metrics["acc"].n_items == n_items


def test_scores_keep_their_scale():
    rng = np.random.default_rng(1)
    frame = rows({"a": rng.normal(60, 5, 50), "b": rng.normal(65, 5, 50)})
    row = compare_results(frame).metrics["score"].differences.iloc[0]

    assert 2 < row["difference"] < 8
    assert row["difference_high"] > 1
    with pytest.raises(ValueError, match=r"metric 'score': .*outside the scale 0 to 10"):
        compare_results(frame, settings=ComparisonSettings(scale=(0.0, 10.0)))


def test_groups_in_files_are_clusters_if_there_are_enough():
    rng = np.random.default_rng(2)
    scores = {name: rng.integers(0, 2, 60) for name in "ab"}
    grouped = rows(scores, passage=np.arange(60) // 5)
    enough = compare_results(grouped)
    few = compare_results(rows(scores, passage=np.arange(60) // 30))
    named = compare_results(grouped, ResultColumns(cluster=("item",)))

    assert enough.metrics["score"].differences["n_clusters"].tolist() == [12]
    assert few.metrics["score"].differences["n_clusters"].tolist() == [60]
    assert "passage groups them into 2, too few" in few.cluster_note
    assert named.cluster_note == "item, as named"


LABELLED = 200
"""Items in four topics of 50; b improves two topics."""


def labelled(name="topic", **columns):
    """Scores of two models; the gain of b differs between the four labels of a column."""
    rng = np.random.default_rng(3)
    label = np.arange(LABELLED) % 4
    one = rng.random(LABELLED) < 0.6
    other = one | (rng.random(LABELLED) < np.array([0.02, 0.05, 0.2, 0.5])[label])
    columns = {name: [f"t{k}" for k in label]} | columns
    return rows({"a": one * 1.0, "b": other * 1.0}, **columns)


def row_of(compared, metric="score"):
    return compared.metrics[metric].differences.iloc[0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["topic", "category", "subject_id", "Domain", "difficulty"])
def test_label_does_not_change_the_analysis_and_is_reported(name, suffix, tmp_path):
    """By rows and by sums; the interval of the note is that of the named cluster."""
    frame, files = labelled(name), []
    for model in "ab":
        files.append(tmp_path / f"{model}.{suffix}")
        part = frame[frame["model"] == model]
        (part.to_csv if suffix == "csv" else part.to_parquet)(files[-1], index=False)

    compared = compare_results(files)
    without = row_of(compare_results(frame.drop(columns=name)))
    named = row_of(compare_results(files, ResultColumns(cluster=(name,))))

    assert row_of(compared)["p_value"] == pytest.approx(without["p_value"], rel=1e-9)
    assert (without["conclusion"], named["conclusion"]) == ("better", "no significant difference")
    assert compared.cluster_note == "items, assumed to be independent"
    (note,) = compared.notes
    assert note.startswith(f"column {name} (4 values) labels the items; `cluster` {name} clus")
    low, high = (f"{100 * named[f'difference_{end}']:.1f}" for end in ("low", "high"))
    assert f"95 % CI {low.replace('-', '−')} to {high}), which changes the conclusion" in note


def test_label_without_effect_has_no_interval_in_its_note():
    """Three clusters are too few for inference."""
    place = np.arange(LABELLED)
    many, few = (
        compare_results(labelled(name, **{name: place % n_values}))
        for name, n_values in (("domain", 50), ("category", 3))
    )

    assert many.notes == (
        "column domain (50 values) labels the items; `cluster` domain clusters by it",
    )
    assert few.notes == ()


@pytest.mark.parametrize("columns", [ResultColumns(), ResultColumns(cluster=("passage",))])
def test_column_of_groups_does_not_cluster_its_groups(columns):
    """The overall interval is the same with and without the groups."""
    frame = labelled(passage=np.arange(LABELLED) // 10)
    compared = compare_results(frame, columns, table=TableSettings(by=("passage", "topic")))

    assert row_of(compared)["n_clusters"] == 20
    assert row_of(compared)["p_value"] == row_of(compare_results(frame, columns))["p_value"]
    groups = compared.metrics["score"].groups.set_index("by")["n_clusters"]
    assert set(groups["passage"]) == {10}
    assert set(groups["topic"]) == {20}
    assert "within a group of passage each item is a cluster" in compared.notes


def test_metrics_that_one_model_lacks_are_excluded_and_reported():
    em = rows({"a": [1, 0, 1, 1, 0], "b": [1, 1, 1, 0, 0]}, metric="em")
    frame = pd.concat([em, rows({"a": [1, 0, 1, 1, 0]}, metric="f1")])
    compared = compare_results(frame, ResultColumns(metric="metric"))

    assert list(compared.metrics) == ["em"]
    assert any("not all models have scores of f1" in note for note in compared.notes)


def test_changed_items_have_both_answers_with_losses_first():
    frame = rows({"a": [1, 1, 0, 0, 1], "b": [1, 0, 1, 0, 0]})
    frame["prediction"] = frame["model"] + frame["item"].astype(str)
    (changed,) = compare_results(frame).changed("score")

    assert changed["change"].tolist() == ["lost", "lost", "gained"]
    assert changed["reference_answer"].tolist() == ["a1", "a4", "a2"]
    assert changed["model_answer"].tolist() == ["b1", "b4", "b2"]


@pytest.mark.parametrize(
    ("fail_if", "margin", "lost", "expected"),
    [
        *(("worse", None, 30, True), ("worse", 0.5, 30, False), ("worse", None, 2, False)),
        *(("maybe-worse", 0.1, 2, False), ("maybe-worse", 0.01, 2, True), (None, None, 30, False)),
    ],
)
def test_fail_if_is_a_one_sided_test_beyond_the_margin(fail_if, margin, lost, expected):
    scores = np.ones(100)
    frame = rows({"a": scores, "b": np.r_[np.zeros(lost), scores[lost:]]})
    settings = ComparisonSettings(fail_if=fail_if, margin=margin)

    assert bool(compare_results(frame, settings=settings).failures()) is expected


def test_exact_test_equals_mcnemar():
    a, b = np.r_[np.ones(15), np.zeros(15)], np.r_[np.zeros(7), np.ones(10), np.zeros(13)]
    row = compare_results(rows({"a": a, "b": b}), table=TableSettings(test="exact")).metrics[
        "score"
    ].differences.iloc[0]  # fmt: skip

    assert row["p_value"] == mcnemar(paired_table(a, b), method="exact")[1]


PAIR = rows({"a": [1], "b": [0]})
SEVERAL = rows({"a": [1], "b": [0], "c": [0]})
UNSHARED = pd.concat([rows({"a": [1]}), rows({"b": [0]}).assign(item=7)])
TWO_METRICS = pd.concat([rows({"a": [1]}, metric="em"), rows({"b": [0]}, metric="f1")])


@pytest.mark.parametrize(
    ("frame", "settings", "error", "message"),
    [
        (
            rows({"a": [1, 0]}),
            {"fail_if": "worse", "margin": 0.1},
            ValueError,
            "`fail_if`, `margin` requires several models, but all results are of one model, 'a'; ",
        ),
        (PAIR, {"rule": "popqa"}, DataError, "no row contains an answer"),
        (PAIR, {"scale": (1.0,)}, ValueError, "`scale` requires the minimum"),
        (PAIR, {"baseline": "c"}, ValueError, "baseline='c' not found"),
        (PAIR, {"fail_if": "maybe-worse"}, ValueError, "requires `margin`"),
        (
            SEVERAL,
            {"fail_if": "worse"},
            ValueError,
            "requires `baseline` .* more than two .* a, b, c",
        ),
        (rows({"a": [5], "b": [0]}), {"missing": "wrong"}, DataError, "scores from 0 to 1"),
        (UNSHARED, {}, ValueError, "no item has a score for every model"),
        (TWO_METRICS, {}, DataError, r"no metric in common \(a: em; b: f1\)"),
        (PAIR, {"by": ("score",)}, DataError, r"`by` score: item '0' is '1\.0' in a row of 'a' an"),
    ],
)
def test_invalid_input_raises(frame, settings, error, message):
    table = TableSettings(by=settings.pop("by", ()))
    with pytest.raises(error, match=message):
        compare_results(frame, None, ComparisonSettings(**settings), table)


def test_flips_between_two_models_equal_the_paired_table():
    """For all items and each group; not for graded scores or several models."""
    rng = np.random.default_rng(5)
    wide = pd.DataFrame(rng.random((90, 2)) < [0.7, 0.5], columns=["m", "n"])
    wide = wide.assign(item=range(90), topic=[f"t{place % 30}" for place in range(90)])
    wide["kind"] = np.where(wide["item"] < 40, "a", "b")
    rows = wide.melt(["item", "topic", "kind"], ["m", "n"], var_name="model", value_name="score")
    named, table = ResultColumns(cluster=("topic",)), TableSettings(by=("kind",))

    report = ComparisonReport(compare_results(rows, named, table=table), "score")

    expected = paired_by(wide, first="m", second="n", cluster="topic").iloc[0]
    by_kind = paired_by(wide, by="kind", first="m", second="n", cluster="topic")
    overall = report.differences.iloc[0]
    for name in ("negative_flip_rate", "positive_flip_rate", "consistency"):
        for end in ("", "_low", "_high"):
            assert overall[name + end] == expected[name + end]
            assert report.groups[name + end].tolist() == by_kind[name + end].tolist()
    assert overall["lost_of_known"] == 1 - expected["consistency_given_first_correct"]
    kept = expected["consistency_given_first_correct_low"]
    assert overall["lost_of_known_high"] == pytest.approx(1 - kept)
    both = paired_table(wide["m"], wide["n"])
    assert overall["kappa"] == pytest.approx(cohen_kappa(both))
    third = rows[rows["model"] == "m"].assign(model="o")
    several = compare_results(pd.concat([rows, third]), named)
    assert "kappa" not in ComparisonReport(several, "score").differences
    scores = compare_results(rows.assign(score=rows["score"] * 0.5), named)
    assert "kappa" not in ComparisonReport(scores, "score").differences


@pytest.mark.parametrize("order", [("full", "bare"), ("bare", "full")])
def test_columns_of_one_file_apply_to_the_item_in_all_files(order, tmp_path):
    """Passages and topics are in only one file; its position does not matter."""
    rng = np.random.default_rng(7)
    kinds = {"passage": np.arange(60) // 5, "level": np.tile(["easy", "hard"], 30)}
    for name, columns in (("full", kinds), ("bare", {})):
        scores = {"item": range(60), "score": rng.integers(0, 2, 60)}
        pd.DataFrame({**scores, **columns}).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [tmp_path / f"{name}.csv" for name in order]

    compared = compare_results(files, table=TableSettings(by=("level",)))

    assert compared.cluster_note == "passage, a context that items share: 60 items in 12"
    assert compared.metrics["score"].differences["n_clusters"].tolist() == [12]
    groups = ComparisonReport(compared, "score").groups
    assert groups.set_index("group")["n"].to_dict() == {"easy": 30, "hard": 30}
    assert groups["lost_of_known"].notna().all()


def test_questions_in_two_formats_are_not_verified(tmp_path):
    """One file has questions, the other also answers, so hashes cannot be compared."""
    table = {"item": range(5), "question": list("abcde"), "score": [1, 0, 1, 1, 0]}
    pd.DataFrame(table).to_csv(tmp_path / "one.csv", index=False)
    other = {**table, "question": list("vwxyz"), "answers": list("klmno")}
    pd.DataFrame(other).to_csv(tmp_path / "other.csv", index=False)

    mixed = compare_results([tmp_path / "one.csv", tmp_path / "other.csv"])
    alike = compare_results(rows({"a": [1, 0] * 3, "b": [1] * 6}, question=list("qrstuv")))

    assert not mixed.is_same_questions
    assert alike.is_same_questions


def test_repeats_without_a_score_are_counted():
    scores = {"a": np.tile([1, 0], 10), "b": np.ones(20)}
    frame = pd.concat(rows(scores, epoch=epoch) for epoch in range(3))
    failed = (frame["model"] == "b") & (frame["epoch"] == 1) & (frame["item"] < 4)
    frame["score"] = frame["score"].mask(failed)
    once = frame["score"].mask((frame["model"] == "a") & (frame["item"] == 5))

    compared = compare_results(frame)
    without = compare_results(frame.assign(score=once))

    expected = "b has no score (score) of 4 repeats; the mean of an item excludes missing repeats"
    assert compared.metrics["score"].n_items == 20
    assert [note for note in compared.notes if "repeat" in note] == [expected]
    assert [note for note in without.notes if "repeat" in note] == [expected]
    assert without.metrics["score"].n_items == 19


def test_rule_raises_for_several_answers_to_an_item():
    """Two filters of one answer are two answers."""
    texts = {"question": list("qrstuv"), "references": ["x"] * 6}
    part = rows({"a": [1, 0] * 3, "b": [1] * 6}, **texts)
    filters = (("em,strict", "y"), ("em,any", "x"))
    frame = pd.concat(part.assign(metric=metric, prediction=text) for metric, text in filters)
    rule = ComparisonSettings(rule="exact")

    with pytest.raises(
        DataError, match="em,strict, em,any have different answers; select one by `"
    ):
        compare_results(frame, settings=rule)
    chosen = compare_results(frame, ResultColumns(metrics=("em,any",)), rule)
    assert chosen.metrics["exact"].models["mean"].tolist() == [1, 1]


def test_one_model_has_a_clustered_mean_without_difference():
    """The ratio mean over clusters, with the t interval of the accuracy in `paired_by`."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"item": range(90), "article": np.arange(90) // 5, "correct": rng.integers(0, 2, 90)}
    )
    compared = compare_results({"m": frame})
    result = compared.metrics["correct"]

    expected = paired_by(
        frame.assign(first_correct=frame["correct"], second_correct=0), cluster="article",
        rates={"first_accuracy": PAIRED_RATES["first_accuracy"]},
    ).iloc[0]  # fmt: skip
    ours = result.models.iloc[0]
    assert ours[["mean", "mean_low", "mean_high"]].tolist() == pytest.approx(
        expected[["first_accuracy", "first_accuracy_low", "first_accuracy_high"]].tolist()
    )
    assert (ours["n"], ours["n_clusters"]) == (90, 18)
    assert result.differences.empty
    assert result.groups.empty
    assert list(compared.changed("correct")) == []
    assert compared.failures() == []


def test_tasks_and_groups_of_one_model_have_means():
    frame = rows({"a": [1, 0, 1, 1] * 10}, task=["x", "y"] * 20, kind=["k", "k", "l", "l"] * 10)
    means = compare_results(frame, table=TableSettings(by=("kind",))).metrics["score"].means

    shown = means.set_index(["by", "group"])["mean"].to_dict()
    assert shown == {("task", "x"): 1.0, ("task", "y"): 0.5, ("kind", "k"): 0.5, ("kind", "l"): 1.0}


def test_pass_k_and_flips_of_repeats_equal_enumeration():
    """Enumerates all choices of k repeats and all pairs of repeats of two models."""
    rng = np.random.default_rng(9)
    answers = {model: rng.integers(0, 2, (40, 4)) for model in "ab"}
    frame = pd.concat(
        pd.DataFrame({"model": model, "item": item, "epoch": range(4), "score": values[item]})
        for model, values in answers.items()
        for item in range(40)
    )
    compared = compare_results(frame)

    for row in compared.noise.to_dict("records"):
        draws = [
            all(drawn)
            for values in answers[row["model"]]
            for drawn in itertools.combinations(values, row["k"])
        ]
        assert row["pass_k"] == pytest.approx(np.mean(draws))
        assert row["pass_k_low"] <= row["pass_k"] <= row["pass_k_high"]
        assert row["n"] == 40
    assert compared.noise["k"].tolist() == [4, 4]
    pairs = [
        one != other for a, b in zip(*answers.values(), strict=True) for one in a for other in b
    ]
    assert compared.flips["flip_rate"].tolist() == pytest.approx([np.mean(pairs)])
    assert compared.noise["model"].tolist() == ["a", "b"]


def test_items_with_a_single_repeat_have_no_pass_k():
    one = {"model": "a", "item": [0, 0, 1, 1, 1, 2], "epoch": [0, 1, 0, 1, 2, 0], "score": 1}
    frame = pd.concat(pd.DataFrame(one).assign(item=np.array(one["item"]) + start)
                      for start in (0, 10, 20, 30))  # fmt: skip
    noise = compare_results(frame).noise

    assert noise[["k", "n", "pass_k"]].values.tolist() == [[2, 8, 1]]


def test_items_without_a_score_are_also_counted_for_one_model():
    scores = rows({"a": [1, 0, None, 1, 1] * 4, "b": [1, None, 0, 1, 1] * 4})

    one = compare_results(scores[scores["model"] == "a"]).missing
    two = compare_results(scores).missing

    assert one == ("16 of 20 items have a score (score); the others are excluded",)
    assert two == ("12 of 20 items have a score (score) of every model; the others are excluded",)


def graded(metric, **columns):
    """Two models with scores of a metric, which are higher for b."""
    scores = np.linspace(0.0, 0.4, 60)
    return rows({"a": scores, "b": scores + 0.3 + scores[::-1] / 4}, metric=metric, **columns)


def compared_by(frame, *, lower=(), columns=None, **settings):
    given = ComparisonSettings(lower_is_better=lower, **settings)
    return compare_results(frame, columns, given)


@pytest.mark.parametrize(
    ("metric", "columns", "lower", "conclusion", "note"),
    [
        ("wer", {}, (), "worse", "lower scores of wer are better, by its name; if not, list"),
        ("val_loss,none", {}, (), "worse", "by its name"),
        ("error_recovery_accuracy", {}, (), "better", None),
        ("wer", {}, ("none",), "better", None),
        ("1 - wer", {}, (), "better", None),
        ("quality", {}, ("quality",), "worse", None),
        ("quality,strict", {}, ("quality",), "worse", None),
        (
            "quality",
            {"higher_is_better": False},
            (),
            "worse",
            "lower scores of quality are better, by",
        ),
        ("quality", {"lower_is_better": "true"}, (), "worse", "by the files"),
        ("wer", {"lower_is_better": 0}, (), "better", None),
        ("quality", {"higher_is_better": None}, (), "better", None),
    ],
)
def test_direction_of_a_metric_is_from_the_user_the_files_or_its_name(
    metric, columns, lower, conclusion, note
):
    compared = compared_by(graded(metric, **columns), lower=lower, baseline="a", fail_if="worse")
    (result,) = compared.metrics.values()

    assert result.differences["conclusion"].tolist() == [conclusion]
    is_lower = conclusion == "worse"
    assert result.models["model"].tolist() == (["a", "b"] if is_lower else ["b", "a"])
    assert [one for one in compared.notes if "lower scores" in one] == [
        one for one in compared.notes if note is not None and note in one
    ]
    assert len(compared.notes) == (note is not None)
    assert bool(compared.failures()) is is_lower
    (changed,) = compared.changed(metric)
    assert set(changed["change"]) == {"lost" if is_lower else "gained"}
    expected = ComparisonReport(compared, metric).quantity
    assert expected == f"mean score ({metric}{', lower is better' * is_lower})"


@pytest.mark.parametrize(("change", "is_failed"), [(-0.2, False), (0.0, False), (0.2, True)])
def test_loss_within_the_margin_is_not_maybe_worse(change, is_failed):
    """Non-inferiority follows the direction: a large decrease of a loss is not a failure."""
    noise = np.random.default_rng(4).normal(0, 0.01, 100)
    frame = rows({"a": np.full(100, 0.5), "b": 0.5 + change + noise}, metric="loss")

    compared = compared_by(frame, fail_if="maybe-worse", margin=0.05)

    assert bool(compared.failures()) is is_failed


def test_each_metric_has_a_direction_and_costs_are_not_scores():
    frame = pd.concat([graded("acc"), graded("toxicity"), graded("latency_ms")])
    overall = compared_by(frame)
    named = compared_by(frame, columns=ResultColumns(metrics=("latency_ms",)))

    assert {name: row_of(overall, name)["conclusion"] for name in overall.metrics} == {
        "acc": "better", "toxicity": "worse",
    }  # fmt: skip
    assert overall.notes[0] == (
        "rows: latency_ms is a cost, which is read as a score only if `metrics` names it, so it is "
        "excluded"
    )
    assert row_of(named, "latency_ms")["conclusion"] == "worse"


def test_error_counts_as_1_if_missing_scores_are_incorrect():
    scores = {"a": [0.0, 1.0] * 30, "b": [0.0, 1.0] * 29 + [np.nan, np.nan]}
    for metric, mean in (("error", 31 / 60), ("em", 29 / 60)):
        frame = rows(scores, metric=metric).rename(columns={"score": "value"})
        columns = ResultColumns(score="value")
        compared = compared_by(frame, columns=columns, missing="wrong")
        means = compared.metrics[metric].models.set_index("model")["mean"]
        assert means["b"] == pytest.approx(mean)


def test_repeats_of_an_error_metric_have_no_pass_k():
    scores = {"a": [0.0, 1.0] * 30, "b": [0.0, 1.0] * 30}
    frame = pd.concat(rows(scores, metric="error_rate", epoch=epoch) for epoch in range(2))
    report = ComparisonReport(compare_results(frame), "error_rate")

    assert "repeats" in report.tables()
    assert "passes" not in report.tables()
    assert not [one for one in report.sentences() if "are all correct" in str(one)]


def test_lower_is_better_rejects_a_name_that_is_not_a_metric():
    with pytest.raises(
        ValueError, match=r"`lower_is_better` wer is not a metric .* name one of acc"
    ):
        compared_by(graded("acc"), lower=("wer",))


def test_named_metric_does_not_change_the_direction_of_others():
    frame = pd.concat([graded("wer"), graded("regularity")], ignore_index=True)

    made = compared_by(frame, lower=("regularity",))

    assert set(made.settings.lower_is_better) == {"wer", "regularity"}
    assert any("lower scores of wer are better, by its name" in note for note in made.notes)
