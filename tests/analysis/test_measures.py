"""Functions of the library compared with metrics, brute force, other packages and papers."""

import functools
import itertools
import json
import re

import datasets
import fsspec
import numpy as np
import pandas as pd
import pingouin
import pyarrow as pa
import pytest

import surface_consistency
from surface_consistency.analysis.measures import (
    PAIRS,
    accuracy,
    alignment,
    consistency,
    forgetting,
    paired,
    partial_correlation,
)
from surface_consistency.analysis.models import compare
from surface_consistency.cli.main import main
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.metrics import (
    compare_models,
    consistency as consistency_of_arrays,
    consistency_given,
    signed_alignment,
)
from surface_consistency.results import read_results
from tests.analysis.made_answers import answers, outcomes
from tests.refusals import refusals
from tests.results.kinds import written

ENDS = ("", "_low", "_high")
ONE = answers(n_repeats=1)
WIDE = answers().pivot(index=["article", "item", "run"], columns="form", values="correct")
WIDE = WIDE.reset_index().rename(columns={"a": "first_correct", "b": "second_correct"})


def row_of(result):
    """Return the only row of a result with all columns."""
    (row,) = result.to_frame(all=True).to_dict("records")
    return row


def bounds(row, name):
    return [row[f"{name}{end}"] for end in ENDS]


@pytest.mark.parametrize(
    "values",
    [
        ONE["correct"],
        ONE["correct"] * 0.5 + ONE["item"] / 200,
        ONE["correct"] * 10 + ONE["item"],
        ONE["correct"] * 10 + ONE["item"] - 30,
    ],
    ids=["binary", "graded", "unbounded", "negative"],
)
def test_accuracy_equals_the_mean_of_compare_models(values):
    frame = ONE.assign(correct=values, id=range(len(ONE)))
    other = frame.assign(model="b", correct=values.to_numpy()[::-1])
    models = compare_models(
        pd.concat([frame.assign(model="a"), other]), item="id", score="correct", cluster="article"
    ).models
    (expected,) = models[models["model"] == "a"].to_dict("records")

    row = row_of(accuracy(frame, cluster="article"))

    assert bounds(row, "accuracy") == pytest.approx(bounds(expected, "mean"), abs=1e-12)
    assert (row["n"], row["n_clusters"]) == (180, 20)


def test_accuracy_clusters_by_item_and_reports_each_model():
    frame = pd.concat([ONE.assign(model=name) for name in ("a", "b")])

    table = accuracy(frame.drop(columns="article")).to_frame()

    assert table["model"].tolist() == ["a", "b"]
    assert table["n_clusters"].tolist() == [60, 60]


def test_repeats_are_averaged_and_give_test_retest_flips_and_pass_k():
    frame = answers()
    runs = [part["correct"].to_numpy() for _, part in frame.groupby("run")]
    flips = np.mean([one != other for one, other in itertools.combinations(runs, 2)])

    row = row_of(accuracy(frame, repeat="run"))

    assert row["accuracy"] == pytest.approx(frame["correct"].mean())
    assert row["test_retest_flip_rate"] == pytest.approx(flips)
    assert row["pass_k"] == pytest.approx(np.mean(np.all(runs, axis=0)))
    assert (row["k"], row["n"], row["n_clusters"]) == (3, 180, 20)


def test_repeats_of_a_group_are_reported_in_its_row():
    frame = answers().assign(group=lambda rows: np.where(rows["item"] % 2, "b", "a"))
    frame["correct"] = frame["correct"].where(frame["group"] == "b").astype("Float64")

    first, second = (
        consistency(frame, by="group", repeat="run").to_frame(all=True).to_dict("records")
    )
    only_b = row_of(consistency(frame[frame["group"] == "b"], repeat="run"))

    assert np.isnan(first["test_retest_flip_rate"])
    assert bounds(second, "test_retest_flip_rate") == bounds(only_b, "test_retest_flip_rate")
    assert bounds(second, "pass_k") == bounds(only_b, "pass_k")


def test_consistency_of_two_forms_equals_that_of_arrays():
    two = ONE[ONE["form"] != "c"]
    wide = two.pivot(index="item", columns="form", values="correct")

    row = row_of(consistency(two, cluster="article"))

    assert row["consistency"] == pytest.approx(consistency_of_arrays(wide["a"], wide["b"]))
    assert (row["n"], row["n_clusters"]) == (60, 20)


def test_consistency_with_repeats_equals_that_of_independent_draws():
    frame = answers(n_items=12, n_repeats=2)
    agree, every = [], []
    for _, item in frame.groupby("item"):
        forms = [part["correct"].tolist() for _, part in item.groupby("form")]
        pairs = itertools.combinations(forms, 2)
        agree.append(np.mean([x == y for p in pairs for x, y in itertools.product(*p)]))
        every.append(np.mean([all(draw) for draw in itertools.product(*forms)]))

    result = consistency(frame, repeat="run")

    row = row_of(result)
    assert row["consistency"] == pytest.approx(np.mean(agree))
    assert row["all_correct"] == pytest.approx(np.mean(every))
    assert any("of which repeats of identical prompts explain" in s for s in result.sentences)


def test_paired_shows_difference_flips_and_consistency_given_the_first():
    frame = WIDE[WIDE["run"] == 0]
    first, second = frame["first_correct"], frame["second_correct"]

    row = row_of(paired(frame, cluster="article"))

    assert row["accuracy_difference"] == pytest.approx((second - first).mean())
    assert row["flip_rate"] == pytest.approx((first != second).mean())
    for how, is_correct in (("correct", True), ("incorrect", False)):
        expected = consistency_given(first, second, first_correct=is_correct)
        assert row[f"consistency_given_first_{how}"] == pytest.approx(expected)


def test_paired_with_repeats_equals_that_of_independent_draws():
    flips = [
        np.mean([x != y for x, y in itertools.product(p["first_correct"], p["second_correct"])])
        for _, p in WIDE.groupby("item")
    ]

    result = paired(WIDE, repeat="run")

    row = row_of(result)
    assert row["flip_rate"] == pytest.approx(np.mean(flips))
    assert (row["n"], row["n_clusters"]) == (60, 20)
    assert "of which repeats of identical prompts explain" in " ".join(result.sentences)


@pytest.mark.parametrize("score", ["binary", "graded"])
def test_paired_difference_equals_that_of_compare(score):
    frame = WIDE[WIDE["run"] == 0]
    if score == "graded":
        frame = frame.assign(first_correct=frame["first_correct"] / 2 + 0.1)
    sides = [
        frame.assign(correct=frame[f"{side}_correct"])[["item", "article", "correct"]]
        for side in ("first", "second")
    ]
    expected = row_of(compare(*sides, names=["first", "second"], cluster="article"))

    row = row_of(paired(frame, cluster="article"))

    difference = bounds(row, "accuracy_difference")
    assert difference == pytest.approx(bounds(expected, "difference"), abs=1e-12)
    assert row["p_value"] == pytest.approx(expected["p_value"], abs=1e-12)


def test_groups_are_corrected_by_holm_within_a_model():
    table = paired(outcomes(), by=["type"]).to_frame(all=True)

    for _, part in table.groupby("model"):
        low, high = sorted(part["p_value"])
        assert sorted(part["p_value_holm"]) == pytest.approx(
            [min(1, 2 * low), min(1, max(2 * low, high))]
        )
    assert "p_value_holm" in paired(outcomes(), by=["type"]).to_frame()


def test_forgetting_has_the_rates_of_the_published_cells(data_files):
    cells = pd.read_csv(data_files / "golden" / "audit_contingencies.csv")
    for cell in cells.head(12).to_dict("records"):
        counts = [cell[name] for name in "abcd"]
        on, off = np.repeat([1, 1, 0, 0], counts), np.repeat([1, 0, 1, 0], counts)
        # An artifact is a correct DEL-ON answer without an equivalent candidate.
        gold = np.ones(cell["n"])
        gold[np.flatnonzero(on)[: cell["artifact"]]] = 0
        frame = pd.DataFrame({"del_on": on, "del_off": off, "gold": gold})

        row = row_of(forgetting(frame, full=None, gold_retrieved="gold"))

        rates = [row[name] for name in ("leakage", "retrieval_mediated", "interference")]
        expected = [cell["del_off_correct"], cell["b"], cell["c"]]
        assert rates == pytest.approx([one / cell["n"] for one in expected])
        assert row["artifact_rate"] == pytest.approx(cell["artifact"] / cell["n"])
        total = rates[0] + rates[1] - rates[2]
        assert total == pytest.approx(cell["del_on_correct"] / cell["n"])
        assert row["retrieval_effect"] == pytest.approx(rates[1] - rates[2])


def test_forgetting_without_traces_has_no_artifact_rate_with_reason():
    result = forgetting(WIDE.rename(columns={"first_correct": "del_on", "second_correct": "del_off",
                                             "c": "full"}))  # fmt: skip

    assert np.isnan(row_of(result)["artifact_rate"])
    assert "undefined without gold_retrieved" in result.note
    assert result.p_title == "p (R − I)"


def test_missing_trace_is_excluded_from_artifacts_if_missing_scores_are_incorrect():
    frame = pd.DataFrame(
        {"fact": range(60), "del_on": [1, 1, None] * 20, "del_off": [1, 0, 0] * 20}
    ).assign(gold=[None, 0, 0] * 20)

    options = {"full": None, "gold_retrieved": "gold", "cluster": "fact", "missing": "wrong"}
    row = row_of(forgetting(frame, **options))
    expected = row_of(forgetting(frame[frame["gold"].notna()], **options))

    assert bounds(row, "artifact_rate") == bounds(expected, "artifact_rate")
    assert row["artifact_rate"] == 0.5


@pytest.mark.parametrize("gap", [("gold_retrieved",), ("full",), ("gold_retrieved", "full")])
def test_missing_trace_or_full_score_excludes_rows_only_from_the_rates_that_need_it(gap, tmp_path):
    rng = np.random.default_rng(0)
    names = ["full", "del_on", "del_off", "gold_retrieved"]
    complete = pd.DataFrame(rng.integers(0, 2, (100, 4)), columns=names).assign(fact=range(100))
    frame = complete.astype(dict.fromkeys(gap, float))
    frame.loc[:14, list(gap)] = np.nan

    result = forgetting(frame, cluster="fact")
    row, own, whole = (
        row_of(one)
        for one in (result, forgetting(frame[15:], cluster="fact"), forgetting(complete))
    )

    for name in ("leakage", "retrieval_mediated", "interference", "retrieval_effect"):
        assert bounds(row, name) == pytest.approx(bounds(whole, name))
    assert row["n"] == 100
    for role, name in (("gold_retrieved", "artifact_rate"), ("full", "full_accuracy")):
        assert bounds(row, name) == pytest.approx(bounds(own if role in gap else whole, name))
        assert (f"15 of 100 prompts have no value in column {role} and" in result.note) == (
            role in gap
        )
    assert "effective number" not in result.note
    frame.to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(
        forgetting(tmp_path / "a.csv", cluster="fact").to_frame(), result.to_frame()
    )
    frame.loc[20:22, "del_off"] = np.nan
    assert "3 of 100 prompts have no score in del_off and are excluded." in " ".join(
        forgetting(frame, cluster="fact").sentences
    )


def test_alignment_averages_permutations_then_topics():
    # Topic 0 has two orders, of which the second lacks a score; topic 1 has one.
    frame = pd.DataFrame(
        {
            "topic": [0, 0, 0, 0, 1, 1],
            "order": [0, 0, 1, 1, 0, 0],
            "short": [1, 0, 1, 0, 1, 1],
            "long": [1, 1, 0, None, 1, 0],
        }
    )

    plain = row_of(alignment(frame))
    ordered = row_of(alignment(frame, permutation="order"))

    assert plain["alignment"] == pytest.approx(np.mean([1 / 3, 1 / 2]))
    assert ordered["alignment"] == pytest.approx(np.mean([np.mean([1 / 2, 0]), 1 / 2]))
    known = frame.dropna()
    expected = signed_alignment(known["short"], known["long"], known["topic"])
    assert plain["signed_alignment"] == pytest.approx(expected)
    for row in (plain, ordered):
        identity = row["short_accuracy"] + row["long_accuracy"] - 1
        assert row["signed_alignment"] == pytest.approx(identity)


def test_alignment_clusters_by_topic_or_a_coarser_column():
    frame = pd.DataFrame(
        {
            "topic": np.arange(200) // 5,
            "domain": np.arange(200) // 20,
            "short": np.arange(200) % 3 == 0,
            "long": np.arange(200) % 4 == 0,
        }
    )

    by_topic, by_domain = alignment(frame), alignment(frame, cluster="domain")

    assert row_of(by_topic)["alignment"] == pytest.approx(row_of(by_domain)["alignment"])
    assert (row_of(by_topic)["n_clusters"], row_of(by_domain)["n_clusters"]) == (40, 10)


def test_partial_correlation_equals_pingouin():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=["x", "y", "z"])
    frame["y"] += 0.4 * frame["x"]
    expected = pingouin.partial_corr(frame, x="x", y="y", covar="z").iloc[0]

    result = partial_correlation(frame, x="x", y="y", controls=["z"])

    row = row_of(result)
    assert row["coefficient"] == pytest.approx(expected["r"])
    p_name = "p_val" if "p_val" in expected else "p-val"
    assert row["p_value"] == pytest.approx(expected[p_name])
    assert row["n"] == 90
    sentence = result.sentences[0]
    assert sentence.startswith("The partial correlation of x and y given z is ")
    numbers = [f"{row[f'coefficient{end}']:.3f}" for end in ("", "_low", "_high")]
    assert "is {} (95 % CI {} to {}; ".format(*numbers) in sentence.replace("−", "-")


def test_significance_of_correlations_uses_the_corrected_p_value():
    rng = np.random.default_rng(8)
    parts = []
    for group in "abcdefgh":
        x = rng.normal(size=60)
        parts.append(pd.DataFrame({"x": x, "y": 0.3 * x + rng.normal(size=60), "group": group}))

    result = partial_correlation(pd.concat(parts), x="x", y="y", by="group")

    table = result.to_frame(all=True)
    only_alone = (table["p_value"] < 0.05) & (table["p_value_holm"] > 0.05)
    assert only_alone.any()
    found = [one for one in result.sentences if one.startswith("The correlation")]
    assert len(found) == 3
    for (_, row), sentence in zip(table.iterrows(), found, strict=False):
        assert ("not significantly" in sentence) == (row["p_value_holm"] > 0.05), sentence
        assert "Holm-corrected p" in sentence


def test_outcomes_frame_works_with_defaults():
    frame = outcomes()
    by_model = dict(iter(frame.groupby("model")))

    tables = {
        function.__name__: function(frame).to_frame(all=True)
        for function in (paired, consistency, alignment)
    }

    for table in tables.values():
        assert table["model"].tolist() == ["ada", "bob"]
    expected = [
        consistency_of_arrays(part["first_correct"], part["second_correct"])
        for part in by_model.values()
    ]
    assert tables["paired"]["consistency"].tolist() == pytest.approx(expected)
    assert tables["consistency"]["consistency"].tolist() == pytest.approx(expected)
    assert tables["paired"]["n_clusters"].tolist() == [40, 40]
    assert tables["consistency"]["n_clusters"].tolist() == [40, 40]
    assert tables["alignment"]["n_clusters"].tolist() == [20, 20]
    compared = row_of(compare(frame))
    means = [
        (p["first_correct"].mean() + p["second_correct"].mean()) / 2 for p in by_model.values()
    ]
    assert compared["difference"] == pytest.approx(means[1] - means[0])
    assert (compared["model"], compared["reference"], compared["n_clusters"]) == ("bob", "ada", 40)


@pytest.mark.parametrize("missing", ["drop", "wrong"])
def test_missing_scores_are_excluded_or_incorrect(missing):
    frame = ONE.astype({"correct": float})
    frame.loc[:17, "correct"] = np.nan

    result = accuracy(frame, missing=missing)

    expected = frame["correct"].mean() if missing == "drop" else frame["correct"].fillna(0).mean()
    assert row_of(result)["accuracy"] == pytest.approx(expected)
    assert ("18 of 180 answers have no score and are excluded." in result.sentences) == (
        missing == "drop"
    )


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_sentences_follow_the_confidence_level(confidence):
    frame = outcomes()
    frame = frame[frame["model"] == "ada"]

    result = paired(frame, confidence=confidence)

    row = row_of(result)
    is_significant = row["accuracy_difference_low"] > 0 or row["accuracy_difference_high"] < 0
    assert is_significant == (row["p_value"] < 1 - confidence)
    assert ("does not differ significantly" in result.sentences[0]) != is_significant
    assert f"{100 * confidence:g} % CI" in result.sentences[0]


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame.to_dict("records"),
        datasets.Dataset.from_pandas,
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.set_index("form"),
    ],
    ids=["rows", "dataset", "nullable", "index"],
)
def test_data_of_other_types_give_the_same_numbers(convert):
    plain = ONE[["item", "form", "article", "correct"]]
    expected = row_of(accuracy(plain.assign(id=range(len(plain))), item="id", cluster="article"))

    row = row_of(accuracy(convert(plain.assign(id=range(len(plain)))), item="id", form=None,
                          cluster="article"))  # fmt: skip

    assert bounds(row, "accuracy") == pytest.approx(bounds(expected, "accuracy"))


test_accuracy_rejects = refusals(
    lambda given: accuracy(*given[0], **given[1]),
    (((ONE.iloc[:0],), {}), "df has no rows"),
    (((ONE,), {"score": "corect"}), ColumnNotFoundError, r"did you mean 'correct'.*pass score="),
    (
        ((pd.DataFrame({"first_correct": [1], "second_correct": [0]}),), {}),
        ColumnNotFoundError,
        'pass score="first_correct" or "second_correct" for one condition, or use paired',
    ),
    (
        ((ONE.drop(columns="correct").assign(answer="x"),), {}),
        ColumnNotFoundError,
        r"""score .* df\["correct"\] = .*match_columns\(df\['answer'\], df\['references'\]""",
    ),
    ((([1, 0],), {}), TypeError, r"df must be a DataFrame.*got list\. To convert arrays, use"),
    ((([ONE, ONE],), {}), TypeError, r"got list\. To compare several .*y\.compare\(df\)"),
    (((ONE,), {"cluster": "topic"}), ColumnNotFoundError, "pass cluster=None or the name"),
    (
        ((ONE.drop(columns="correct").assign(hit=1, acc=0),), {}),
        ColumnNotFoundError,
        "'hit' and 'acc' are possible; pass score=",
    ),
    (((answers(),), {}), DataError, r"360 rows have the same item, form.*pass repeat="),
    (((pd.concat([answers()] * 2),), {"repeat": "run"}), DataError, "same item, form, run"),
    (((ONE.assign(article=None),), {"cluster": "article"}), DataError, "no id in row 0; fill it"),
    (((ONE.assign(item=[1, "1"] * 90),), {}), DataError, r"texts and ids that are numbers.*astype"),
    (((ONE.assign(correct=5.0),), {"missing": "wrong"}), "outside 0 to 1; pass missing='drop'"),
    (
        ((answers().assign(correct=[None, *[1] * 539]),), {"repeat": "run", "missing": "raise"}),
        r"'correct' has no score in 1 of 540 rows, first in row 0; fill it in, or pass missing=",
    ),
    (((ONE.assign(model_name=["a", None, *["b"] * 178]),), {}), DataError, "no id in row 1"),
    (((ONE,), {"missing": "skip"}), "missing must be 'drop', 'raise' or 'wrong'"),
    (((ONE.assign(accuracy="a"),), {"by": "accuracy"}), "is a column of the result; rename it"),
    (((ONE.drop(columns="item"),), {"repeat": "run"}), "pass item= the name of a column"),
)  # fmt: skip


GRADED = ONE.assign(correct=0.5, short=0.5, long=1, topic=0, del_on=0.5, del_off=0)
test_graded_scores_are_rejected_with_the_reason = refusals(
    lambda call: call(),
    (lambda: consistency(GRADED), r"'correct' has 0.5 in row 0.*both correct or both incorrect"),
    (lambda: alignment(GRADED), r"'short' has 0.5.*proportion of equal correctness labels"),
    (lambda: forgetting(GRADED, full=None), r"'del_on' has 0.5.*counts correct and incorrect"),
    (lambda: paired(GRADED, first="short", second="long", test="exact"), "pass test='auto'"),
)

SOURCE = ONE[["item", "form", "correct"]]


def test_compare_accepts_every_option_of_the_command(tmp_path, capsys):
    frame = pd.concat([ONE.assign(who="a"), ONE.assign(who="b", correct=1 - ONE["correct"])])
    frame.to_csv(tmp_path / "both.csv", index=False)
    options = {"form": "form", "model": "who", "test": "exact", "metrics": "correct"}

    result = compare(frame, **options)

    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    assert main(["compare", str(tmp_path / "both.csv"), "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == result.to_dict()["rows"]


test_compare_rejects = refusals(
    lambda call: call(),
    (compare, TypeError, "compare requires results"),
    (lambda: compare({"a": SOURCE, "b": SOURCE[:0]}), DataError, "b contains no rows"),
    (lambda: compare(ONE, scor="x"), r"compare has no option 'scor' \(did you mean 'score'"),
    (lambda: compare(ONE, fail_if="worse"), "compare has no option 'fail_if'"),
)


def test_compare_accepts_one_or_several_names_of_lower_is_better():
    sources = {"a": SOURCE.assign(correct=1), "b": SOURCE}
    for names in ("correct", ["correct"]):
        row = compare(sources, lower_is_better=names).to_frame(all=True).iloc[0]
        assert (row["difference"] < 0, row["conclusion"]) == (True, "better")
    with pytest.raises(
        ValueError, match=r"'lower_is_better\.0': Input should be a valid string, got"
    ):
        compare(sources, lower_is_better=True)


ERRORS = ONE.assign(
    error=1 - ONE["correct"], first_error=ONE["correct"], second_error=0, metric="wer"
)

test_error_measures_are_rejected_as_correctness = refusals(
    lambda call: call(),
    (lambda: accuracy(ERRORS, score="error"), "'error' is an error or a loss by its name or"),
    (
        lambda: consistency(ERRORS.drop(columns="metric"), score="error"),
        "1 is not a correct answer",
    ),
    (lambda: accuracy(ERRORS), "'wer' is an error or a loss"),
    (lambda: paired(ERRORS, first="first_error", second="second_error", item=None), "use compare"),
)


def test_graded_errors_have_a_mean_score():
    frame = ERRORS.rename(columns={"error": "loss"})
    result = accuracy(frame.assign(loss=frame["loss"] / 2), score="loss")
    assert result.sentences[0].startswith("The mean score is ")
    assert result.note.startswith("Lower scores of loss, wer are better. Clusters: article, a")


@pytest.mark.parametrize(("name", "mean"), [("wer", 0.4), ("f1", 0.2)])
def test_missing_score_counts_as_the_worst_score(name, mean, tmp_path):
    scores = [0.25, None, 0.25, None, 0.25, 0.25, 0.25, 0.25, 0.0, 0.5]
    frame = pd.DataFrame({"item": range(10), name: scores})
    frame.to_csv(tmp_path / "a.csv", index=False)
    pairs = frame.rename(columns={name: f"first_{name}"})
    pairs[f"second_{name}"] = pairs[f"first_{name}"]

    for source in (frame, tmp_path / "a.csv"):
        given = {"score": name} if source is frame else {}
        row = row_of(accuracy(source, missing="wrong", **given))
        assert row["accuracy"] == pytest.approx(mean)
    both = paired(pairs, first=f"first_{name}", second=f"second_{name}", missing="wrong")
    assert row_of(both)["first_accuracy"] == pytest.approx(mean)
    assert row_of(compare(frame, score=name, missing="wrong"))["mean"] == pytest.approx(mean)
    grouped = accuracy(frame.assign(metric=name, score=frame[name]), score="score", by="metric",
                       missing="wrong")  # fmt: skip
    assert row_of(grouped)["accuracy"] == pytest.approx(mean)


def test_direction_is_read_from_a_file(tmp_path):
    frame = pd.DataFrame({"item": range(6), "metric": "gap", "score": [0.1, 0.2, 0.3] * 2})
    frame.assign(higher_is_better=False).to_csv(tmp_path / "a.csv", index=False)

    note = accuracy(tmp_path / "a.csv").note
    assert note.startswith("Lower scores of gap are better. Standard errors are clustered by item.")


def test_compare_of_one_model_returns_its_accuracy():
    expected = row_of(accuracy(ONE, cluster="article"))

    result = compare(ONE, cluster="article")

    assert bounds(row_of(result), "mean") == pytest.approx(bounds(expected, "accuracy"))
    assert (result.p, list(result.keys)) == (None, ["model"])


def test_compare_accepts_a_dictionary_and_files(tmp_path):
    sources = {"a": SOURCE, "b": SOURCE.assign(correct=1 - SOURCE["correct"])}
    files = [tmp_path / f"{name}.csv" for name in sources]
    for file, frame in zip(files, sources.values(), strict=True):
        frame.to_csv(file, index=False)

    tables = [compare(sources), compare(*files, names=["a", "b"])]

    first, second = (row_of(one) for one in tables)
    assert bounds(first, "difference") == pytest.approx(bounds(second, "difference"))
    assert (first["model"], first["reference"]) == ("b", "a")


def test_items_and_models_are_found_by_standard_names():
    frame = ONE[ONE["form"] == "a"].drop(columns="form")
    usual = pd.concat([frame.assign(model=name) for name in "ab"])
    usual = usual.rename(columns={"item": "question_id", "model": "model_name"})

    table = accuracy(usual).to_frame()

    assert table["model"].tolist() == ["a", "b"]
    assert table["n"].tolist() == [60, 60]
    with pytest.raises(DataError, match="rows have the same model, question_id"):
        accuracy(pd.concat([usual, usual]))


def test_context_column_is_the_cluster_unless_another_is_named():
    note = "Clusters: article, a context that items share: 60 items in 20; pass cluster='item' if"

    for function in (accuracy, consistency):
        result, named = function(ONE), function(ONE, cluster="article")
        assert note in result.note
        pd.testing.assert_frame_equal(result.frame, named.frame)
        assert named.note == "Standard errors are clustered by article."
    assert row_of(accuracy(ONE, cluster="item"))["n_clusters"] == 60
    few = ONE.assign(article=ONE["item"] % 3)
    assert "too few" in accuracy(few).note
    assert row_of(accuracy(few))["n_clusters"] == 60


SIGNED = {
    *("accuracy_difference", "difference", "pooled_difference", "retrieval_effect"),
    *("signed_alignment", "kappa", "intraclass_correlation"),
}
"""Estimates that can be below 0."""


@pytest.mark.parametrize("seed", range(5))
def test_intervals_of_proportions_are_within_their_range(seed):
    few = answers(5 + 3 * seed, 2, seed)
    wide = WIDE.sample(8 + seed, random_state=seed)
    gold = {"del_on": "first_correct", "del_off": "second_correct", "gold_retrieved": "c"}
    one = few[few["run"] == 0]
    results = (
        *(accuracy(few, repeat="run"), consistency(few, repeat="run"), consistency(one)),
        *(paired(wide), paired(wide, repeat="run"), forgetting(wide, full=None, **gold)),
        alignment(wide, short="first_correct", long="second_correct", topic="article"),
        compare({"a": one, "b": one.assign(correct=one["correct"].sample(frac=1).array)}),
    )
    for result in results:
        frame = result.to_frame(all=True)
        for name in {*frame}.difference(SIGNED):
            if f"{name}_low" in frame:
                value, low, high = frame[[f"{name}{end}" for end in ENDS]].astype(float).iloc[0]
                assert not low < 0, name
                assert not high > 1 or value > 1 >= low, name


@pytest.mark.parametrize("name", ["topic", "category_id", "Subject", "template", "domain"])
def test_label_of_items_is_not_the_cluster(name):
    labelled = ONE.rename(columns={"article": name})
    for function in (accuracy, consistency):
        result = function(labelled)
        assert row_of(result)["n_clusters"] == 60
        assert f"Column {name} (20 values) labels the items; cluster='{name}' clus" in result.note
        assert row_of(function(labelled, cluster=name))["n_clusters"] == 20


@pytest.mark.parametrize("cluster", [None, "article"])
def test_column_of_groups_is_not_the_cluster_of_its_groups(cluster):
    """Each group would be one cluster, which does not allow inference."""
    table = accuracy(ONE[ONE["form"] == "a"].assign(half=ONE["item"] // 30).rename(
        columns={"half": "article", "article": "passage"}), cluster=cluster, by="article",
    ).to_frame()  # fmt: skip

    assert table["n_clusters"].tolist() == ([10, 10] if cluster is None else [30, 30])
    assert table["accuracy_low"].notna().all()


def test_accuracy_and_compare_of_one_model_have_the_same_interval():
    """Both detect the clustering column."""
    one, other = row_of(accuracy(ONE)), row_of(compare({"a": ONE}))

    for end in ("", "_low", "_high"):
        assert one[f"accuracy{end}"] == pytest.approx(other[f"mean{end}"], abs=1e-12)


@pytest.mark.parametrize("scale", [1, 6])
def test_means_are_in_percent_only_if_all_scores_are_from_0_to_1(scale):
    frame = ONE.assign(correct=np.arange(180) % 2 * 0.2 * scale)
    frame = frame.assign(second=0.1)

    means = [
        accuracy(frame).sentences[0],
        paired(frame, first="second", second="correct", item=None).sentences[0],
    ]

    assert frame["correct"].mean() < 1
    assert [" %" in one.partition("(")[0] or " points" in one for one in means] == [scale == 1] * 2


@pytest.mark.parametrize("missing", ["drop", "raise"])
def test_compare_excludes_or_rejects_missing_scores(missing):
    frame = SOURCE.astype({"correct": float})
    sources = {"a": frame, "b": frame.assign(correct=[np.nan, *frame["correct"][1:]])}

    if missing == "drop":
        assert row_of(compare(sources))["n"] == 179
        assert "179 of 180 answers have" in " ".join(compare(sources).sentences)
    else:
        with pytest.raises(DataError, match=r"179 of 180 answers have a score .*choose drop or wr"):
            compare(sources, missing="raise")


def test_metrics_of_two_scales_have_no_common_unit():
    frame = pd.DataFrame({"item": range(40), "correct": [1, 0] * 20, "reward": [9.0, -3.0] * 20})

    result = compare({"a": frame, "b": frame.assign(reward=2 * frame["reward"] + 12)})

    assert {column.kind for column in result.estimates} == {"number"}
    assert result.frame["difference"].tolist() == [0, 15]
    assert "1500" not in result.to_markdown()


def test_results_are_read_from_files_and_tables_of_other_libraries(tmp_path):
    ONE.to_csv(tmp_path / "a.csv", index=False)
    expected = row_of(accuracy(ONE, cluster="article"))

    for source in (tmp_path / "a.csv", str(tmp_path / "a.csv"), pa.Table.from_pandas(ONE)):
        row = row_of(accuracy(source, cluster="article"))
        assert bounds(row, "accuracy") == pytest.approx(bounds(expected, "accuracy"))
    table = pa.Table.from_pandas(SOURCE)
    assert row_of(compare({"a": table, "b": table}))["difference"] == 0


@pytest.mark.parametrize("column", ["kind", "correct", "article"])
@pytest.mark.parametrize("function", [accuracy, consistency, paired, compare])
def test_empty_cells_of_a_csv_file_give_the_result_of_its_frame(tmp_path, function, column):
    pairs = WIDE[WIDE["run"] == 0].drop(columns=["run", "c"])
    frame = (pairs if function is paired else ONE).assign(kind="x")
    column = "first_correct" if (function, column) == (paired, "correct") else column
    frame.loc[frame["item"] % 6 == 0, column] = None
    frame.to_csv(tmp_path / "a.csv", index=False)

    by_path, by_frame = (
        function(source, by="kind").to_frame(all=True).astype(object)
        for source in (tmp_path / "a.csv", pd.read_csv(tmp_path / "a.csv"))
    )

    shared = [name for name in by_frame if name not in ("model", "model_a")]
    pd.testing.assert_frame_equal(by_path[shared], by_frame[shared])


def test_file_with_several_metrics_raises(tmp_path):
    ONE.assign(f1=0.5).to_csv(tmp_path / "a.csv", index=False)

    with pytest.raises(DataError, match=r"scores of 2 metrics \(correct, f1\)"):
        accuracy(tmp_path / "a.csv")


def test_outcomes_of_several_templates_have_one_row_per_template():
    pairs = pd.DataFrame(
        {
            "study": "redirectqa",
            "pair": range(80),
            "item": np.arange(80) // 2,
            "template": ["q1", "q2"] * 40,
            "first_correct": [1, 1, 0, 1] * 20,
            "second_correct": [1, 0, 0, 1] * 20,
        }
    )

    of_two = compare({"a": pairs, "b": pairs.assign(second_correct=1)}).to_frame()
    tables = [function(pairs).to_frame() for function in (paired, consistency)]

    assert of_two["template"].tolist() == ["all", "q1", "q2"]
    assert of_two["difference"].tolist() == [0.25] * 3
    assert of_two["n_clusters"].tolist() == [40] * 3

    assert [table["template"].tolist() for table in tables] == [["q1", "q2"]] * 2
    for one, is_noted in ((pairs, False), (pairs.assign(template="q1"), True)):
        result = consistency(one)
        assert "pairs" in result.sentences[0]
        for noted in (result, compare({"a": one, "b": one})):
            assert (PAIRS in noted.note) == is_noted
    assert tables[0]["accuracy_difference"].tolist() == [0, -0.5]


def test_outcomes_with_integer_items_and_samples_give_the_result_of_texts():
    rng = np.random.default_rng(0)
    n = np.arange(240)
    pairs = pd.DataFrame({"pair": n, "item": n // 6, "sample": n // 3 % 2, "first_condition": "a",
                          "second_condition": [*"bcd"] * 80,
                          "first_correct": np.repeat(rng.integers(0, 2, 80), 3),
                          "second_correct": rng.integers(0, 2, 240)})  # fmt: skip

    tables = [consistency(pairs.astype({"item": kind})).to_frame() for kind in (int, str)]

    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["n"].tolist() == [80]
    # Redirects that share a condition are several forms of one name: their unit is the pair.
    assert consistency(pairs.assign(second_condition="b")).to_frame()["n"].tolist() == [240]
    # A form with a score in some pairs only, or without a name, is not counted once per item.
    for column, n_scored in (("first_correct", 239), ("second_condition", 240)):
        lacking = pairs.astype({column: object})
        lacking.loc[3, column] = None
        assert consistency(lacking).to_frame()["n"].tolist() == [n_scored]


@pytest.mark.parametrize(("name", "other"), [("", "long"), (None, "long"), (np.nan, 1.0)])
def test_empty_form_is_a_form_without_a_name_by_path_and_in_a_frame(name, other, tmp_path):
    frame = pd.DataFrame({"item": np.arange(60) // 2, "form": [name, other] * 30, "correct": 1})
    frame.to_csv(tmp_path / "a.csv", index=False)

    for function in (consistency, accuracy):
        pd.testing.assert_frame_equal(
            *(function(one).to_frame() for one in (frame, tmp_path / "a.csv"))
        )


@pytest.mark.parametrize(("cluster", "n"), [("item", 40), ("pair", 80)])
def test_outcomes_are_clustered_by_the_column_that_the_note_names(cluster, n):
    pairs = outcomes().drop(columns="topic_id")[:80]
    given = {} if cluster == "item" else {"cluster": cluster}
    for options in (given, {"cluster": cluster}):
        for one in (consistency(pairs, **options), compare({"a": pairs, "b": pairs}, **options)):
            assert one.to_frame()["n_clusters"].tolist() == [n]
            assert f"clustered by {cluster}." in one.table_note
            assert "fact" not in one.note


def test_forms_do_not_group_their_own_pairs():
    with pytest.raises(ValueError, match=r"'form' is the column of forms, .* use accuracy"):
        consistency(ONE, by="form")


@pytest.mark.parametrize("column", ["type", "types"])
def test_lists_of_labels_in_a_csv_of_outcomes_give_the_groups_of_the_frame(tmp_path, column):
    """`DataFrame.to_csv` writes tuples as text."""
    pairs = pd.DataFrame(
        {
            "study": "redirectqa",
            "model": "m",
            "pair": [f"p{n}" for n in range(80)],
            "item": np.arange(80) // 2,
            "first_correct": [1, 1, 0, 1] * 20,
            "second_correct": [1, 0, 0, 1] * 20,
            column: [(), ("alias",), ("error", "alias"), ("a, b",)] * 20,
        }
    )
    pairs.to_csv(tmp_path / "pairs.csv", index=False)

    tables = [paired(one, by="type").to_frame() for one in (pairs, tmp_path / "pairs.csv")]

    assert tables[0]["type"].tolist() == ["a, b", "alias", "error", "none"]
    pd.testing.assert_frame_equal(*tables)


def test_outcomes_without_a_column_of_pairs_have_one_pair_per_item():
    pairs = pd.DataFrame({"item": range(40), "first_correct": [1, 0] * 20, "second_correct": 1})

    assert row_values(consistency(pairs)) == row_values(consistency(pairs.assign(pair=range(40))))
    for df in (pairs.assign(item=1), pairs.drop(columns="item")):
        with pytest.raises(ColumnNotFoundError, match=r"pass a column pair .*or use pai") as raised:
            consistency(df)
        code = re.search(r"\((df\.assign\(.+\)\)) for", str(raised.value))[1]
        assert consistency(eval(code, {"df": df})).to_frame()["consistency"].tolist() == [0.5]


ARRAYS = {name: np.array([0, 1, 1, 0, 1, 0, 1]) for name in ("scores", "first", "short", "x")}
ARRAYS |= {name: np.array([0, 1, 0, 0, 1, 1, 1]) for name in ("second", "long", "y", "del_off")}
ARRAYS |= {"controls": np.arange(7), "pandas": pd, "surface_consistency": surface_consistency}


FUNCTIONS = [accuracy, consistency, paired, forgetting, alignment, partial_correlation]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_remedy_for_arrays_can_be_executed(function):
    with pytest.raises(TypeError, match=f"{function.__name__} needs one table df") as raised:
        function(ARRAYS["x"], ARRAYS["y"])

    code = re.search(r"For arrays use (.*?\)+)(,|$)", str(raised.value))[1]
    assert eval(code, dict(ARRAYS)) is not None
    columns = {"topic": range(7), "short": [*ARRAYS["x"]], "long": ARRAYS["y"]}
    assert row_values(alignment(columns)) == row_values(alignment(pd.DataFrame(columns)))


@pytest.mark.parametrize("function", [accuracy, consistency])
@pytest.mark.parametrize("texts", ["01", ("no", "yes"), ("no", 1)])
def test_remedy_for_scores_that_are_texts_can_be_executed(function, texts):
    df = ONE.assign(correct=[texts[score] for score in ONE["correct"]])
    with pytest.raises(ValueError, match=r"'correct' has the text .* in row ") as raised:
        function(df)

    code = re.search(r"df\[.*\(float\)", str(raised.value))[0]
    df["correct"] = eval(code, {"df": df, "codes": dict(zip(texts, (0, 1), strict=True))})
    assert row_values(function(df)) == row_values(function(ONE))


def test_error_for_a_column_of_forms_does_not_suggest_none():
    with pytest.raises(ColumnNotFoundError, match="pass form= the name of a column"):
        consistency(ONE.drop(columns="form"))


def test_tasks_and_groups_of_a_comparison_have_one_row_each():
    """Differences and means of each group equal those of only its rows."""
    rng = np.random.default_rng(2)
    cells = {"item": range(80), "task": ["x", "y"] * 40, "kind": [*"aabb"] * 20}
    one = pd.DataFrame(cells).assign(correct=rng.integers(0, 2, 80))
    other = one.assign(correct=rng.integers(0, 2, 80))

    frame = compare({"a": one, "b": other}, by=["task", "kind"]).to_frame()

    groups = [("all", "all"), ("x", "all"), ("y", "all"), ("all", "a"), ("all", "b")]
    assert [*zip(frame["task"], frame["kind"], strict=True)] == groups
    for row, (column, label) in zip(
        frame.iloc[1:].to_dict("records"),
        [("task", "x"), ("task", "y"), ("kind", "a"), ("kind", "b")],
        strict=True,
    ):
        means = [part.loc[part[column] == label, "correct"].mean() for part in (one, other)]
        assert [row["reference_mean"], row["model_mean"]] == pytest.approx(means)
        assert row["difference"] == pytest.approx(means[1] - means[0])
    with pytest.raises(ValueError, match="'difference' is a column of the result; rename it"):
        compare({"a": one.assign(difference=1), "b": other.assign(difference=1)}, by="difference")


def test_file_of_pairs_is_read_like_its_frame(tmp_path):
    pairs = pd.DataFrame({"item": np.arange(80) // 2, "first_correct": [1, 1, 0, 1] * 20})
    pairs["second_correct"] = [1, 0, 0, 1] * 20
    facts = pairs.rename(columns={"first_correct": "del_on", "second_correct": "del_off"})
    for name, frame in (("pairs", pairs), ("facts", facts)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        frame.astype(dict.fromkeys(frame.columns[1:], bool)).to_csv(
            tmp_path / f"{name}.csv", index=False
        )

    for function, name, frame in (
        (paired, "pairs", pairs),
        (functools.partial(forgetting, full=None), "facts", facts),
    ):
        expected = function(frame).frame
        url = f"memory://pairs/{name}.csv"
        fsspec.filesystem("memory").pipe(url, (tmp_path / f"{name}.csv").read_bytes())
        frame.to_json(tmp_path / f"{name}.jsonl.gz", orient="records", lines=True)
        files = [tmp_path / f"{name}.{kind}" for kind in ("parquet", "csv", "jsonl.gz")]
        for source in (*files, url):
            read = function(source).frame
            pd.testing.assert_frame_equal(read, expected, check_dtype=False)


def test_form_may_have_a_standard_name_of_a_model():
    renamed = ONE.rename(columns={"form": "system"})

    result = consistency(renamed, form="system")

    pd.testing.assert_frame_equal(result.frame, consistency(ONE).frame)


@pytest.mark.parametrize("cluster", [None, "task"])
def test_tasks_of_a_file_are_not_pooled(tmp_path, cluster):
    pd.concat([ONE.assign(task=name) for name in ("x", "y")]).to_json(
        tmp_path / "a.jsonl", orient="records", lines=True
    )

    with pytest.raises(DataError, match=r"scores of 2 tasks \(x, y\); pass by='task'"):
        accuracy(tmp_path / "a.jsonl", cluster=cluster)
    assert accuracy(tmp_path / "a.jsonl", by="task").to_frame()["n"].tolist() == [180, 180]


def test_one_row_per_answer_is_not_a_table_of_pairs():
    with pytest.raises(ColumnNotFoundError, match=r"requires one row per pair; pass df\.pivot"):
        paired(ONE)


def test_clustered_test_requires_clusters():
    pairs = pd.DataFrame({"first_correct": [1, 0] * 20, "second_correct": [1] * 40})

    with pytest.raises(
        ValueError, match="test='obuchowski' requires clusters of pairs; pass cluster"
    ):
        paired(pairs, test="obuchowski")


def scored(**further):
    """Answers of two models to 40 items, 80 % and 40 % correct, with further columns."""
    rows = [(n, m, int(n % 10 < k)) for m, k in (("a", 8), ("b", 4)) for n in range(40)]
    frame = pd.DataFrame(rows, columns=["item", "model", "correct"])
    return frame.assign(**{name: make(frame) for name, make in further.items()})


@pytest.mark.parametrize(
    "make",
    [
        lambda f: 1 - f["correct"],
        lambda f: f["correct"] == 0,
        lambda f: [{"text": ["a", "b"]}] * len(f),
        lambda f: "No exception",
    ],
    ids=["complement", "bool", "objects", "words"],
)
@pytest.mark.parametrize("column", ["error", "exception", "prediction"])
def test_columns_without_failures_do_not_change_the_scores(column, make):
    assert accuracy(scored(**{column: make})).to_frame()["accuracy"].tolist() == [0.8, 0.4]


def test_column_of_groups_or_scores_is_not_read_as_answers_or_errors():
    frame = scored(error=lambda f: "e" + (f["item"] % 2).astype(str), prediction=lambda f: "x")

    assert accuracy(frame, by="error").to_frame()["n"].tolist() == [20] * 4
    scores = scored(prediction=lambda f: f["correct"], error=lambda f: None)
    assert accuracy(scores, score="prediction").to_frame()["accuracy"].tolist() == [0.8, 0.4]
    errors = scored(error=lambda f: f["correct"] / 4, prediction=lambda f: "x")
    assert accuracy(errors, score="error").to_frame()["accuracy"].tolist() == [0.2, 0.1]


def test_texts_for_missing_cells_are_answers_of_a_frame_if_one_is_correct():
    frame = scored(prediction=lambda f: np.where(f["item"] % 4 == 0, "nan", "x"))

    assert accuracy(frame).to_frame()["accuracy"].tolist() == [0.8, 0.4]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_scores_of_files_are_read_from_the_named_column(tmp_path, name):
    path = written(
        tmp_path / name, scored(rating=lambda f: 1 + 4 * f["correct"]).to_dict("records")
    )

    assert accuracy(path, score="rating").to_frame()["accuracy"].round(9).tolist() == [4.2, 2.6]


def test_pairs_with_columns_of_answers_and_errors_have_no_warnings():
    pairs = pd.DataFrame({"item": range(40), "one": [1, 0] * 20, "two": 1, "prediction": 3})

    sentences = paired(pairs.assign(error=0), first="one", second="two").sentences
    assert "failed" not in " ".join(sentences)


def test_direction_in_one_of_two_files_applies_to_both():
    frame = scored()
    parts = {m: part.to_dict("records") for m, part in frame.groupby("model")}
    parts["b"] = [row | {"lower_is_better": True} for row in parts["b"]]

    for names in (["a", "b"], ["b", "a"]):
        (finding, *_) = compare({name: parts[name] for name in names}).sentences
        assert "correct, lower is better" in finding


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (consistency, {"form": "paraphrase", "cluster": "topic"}),
        (consistency, {"item": "doc_id", "form": "paraphrase", "cluster": "doc_id"}),
        (accuracy, {"by": "paraphrase"}),
        (accuracy, {"by": "paraphrase", "cluster": "doc_id", "form": "paraphrase"}),
    ],
)
def test_columns_of_a_file_are_named_as_in_the_file(tmp_path, capsys, function, named):
    rows = [
        {"doc_id": n // 2, "topic": n // 8, "paraphrase": f"p{n % 2}", "correct": int(n % 3 > 0)}
        for n in range(80)
    ]
    file = tmp_path / "rows.jsonl"
    pd.DataFrame(rows).to_json(file, orient="records", lines=True)

    result = function(str(file), **named)

    expected = function(pd.DataFrame(rows), **{"item": "doc_id", "form": "paraphrase"} | named)
    assert row_values(result) == row_values(expected)
    options = [word for name, value in named.items() for word in (f"--{name}", value)]
    assert main([function.__name__, str(file), *options]) == 0
    assert main([function.__name__, str(file), "--by", "nope"]) == 2
    assert "pass --by the name of a column" in capsys.readouterr().err


def row_values(result):
    return result.to_frame().round(9).select_dtypes("number").values.tolist()


@pytest.mark.parametrize("is_path", [True, False])
def test_remedy_for_missing_scores_can_be_executed(tmp_path, is_path):
    df = pd.DataFrame({"id": range(40), "output": list("abcd") * 10, "target": list("abcx") * 10})
    df.to_csv(tmp_path / "a.csv", index=False)

    with pytest.raises((DataError, ColumnNotFoundError), match="match_columns") as raised:
        accuracy(tmp_path / "a.csv" if is_path else df)
    code = re.search(r'df\["correct"\] = .*\.is_match', str(raised.value))[0]
    exec(code, {"df": df, "surface_consistency": surface_consistency})
    assert accuracy(df).to_frame()["accuracy"].tolist() == [0.75]


def test_unknown_argument_raises_an_error_with_a_remedy():
    with pytest.raises(TypeError, match=r"\(df\['reply'\].*'exact'\).*or use compare"):
        accuracy(ONE, prediction="reply", rule="exact")
    with pytest.raises(ValueError, match=r"has no option 'modle' \(did you mean 'model'\?\)"):
        consistency(ONE, modle="model")


OWN = pd.DataFrame({"id": [i // 2 for i in range(80)], "response": ["", "x", "y", " "] * 20,
                    "correct": [0, 1, 1, 0] * 20, "wording": ["a", "b"] * 40})  # fmt: skip


@pytest.mark.parametrize("kind", ["frame", "file", "raw"])
def test_notes_and_errors_describe_the_source(tmp_path, kind):
    own = OWN if kind != "raw" else OWN.rename(columns={"correct": "target"})
    own.to_json(file := tmp_path / "own.jsonl", orient="records", lines=True)
    function, rule = (compare, {"rule": "exact"}) if kind == "raw" else (accuracy, {})
    source = own if kind == "frame" else file

    result = function(source, form="wording", **rule)

    assert "40 of 80 answers are empty texts with a score" in f"{result.note} {result.sentences}"
    with pytest.raises(ColumnNotFoundError, match=r"id, response, (correct|target), wording"):
        function(source, form="wording", by="nope", **rule)


def test_failed_answers_of_a_frame_have_no_score_under_any_standard_name():
    is_failed = np.arange(40) % 4 == 2
    rows = {"item": range(40), "prediction": np.where(is_failed, None, "x"),
            "error": np.where(is_failed, "timeout", None)}  # fmt: skip
    tables = [pd.DataFrame(rows | {name: [1, 1, 0, 0] * 10}) for name in ("score", "correct")]

    assert [accuracy(df).to_frame()["n"].tolist() for df in tables] == [[30]] * 2


def test_missing_scores_that_count_as_incorrect_are_in_a_note():
    df = pd.DataFrame({"item": range(40), "correct": [1, 0, None, 1] * 10})

    assert "10 of 40 rows without a score count as incorrect." in accuracy(df, missing="wrong").note
    assert "incorrect" not in accuracy(df.dropna(), missing="wrong").note
    texts = df.replace({"correct": {1: "yes"}})
    with pytest.raises(ValueError, match="'correct' has the text 'yes'"):
        accuracy(texts, missing="wrong")


def test_columns_of_files_and_outcomes_have_the_remedy_of_their_source(tmp_path):
    names = {"fact": np.arange(40) // 2, "question": ["a", "b"] * 20, "score": [0, 1] * 20}
    pd.DataFrame(names).to_csv(tmp_path / "a.csv", index=False)
    by_path = accuracy(tmp_path / "a.csv", item="fact", form="question")
    assert by_path.to_frame()[["n", "n_clusters"]].values.tolist() == [[40, 20]]
    pd.DataFrame({"fact": range(4), "score": 1}).to_csv(tmp_path / "b.csv", index=False)
    read = read_results(tmp_path / "b.csv").frame.assign(extra=1)
    with pytest.raises(ColumnNotFoundError, match=r"did you mean 'score'.*Columns: .*extra"):
        accuracy(read, score="scores2")
    outcomes = pd.DataFrame({"pair": range(4), "first_correct": 1, "second_correct": 0})
    with pytest.raises(ColumnNotFoundError, match="pass none of item=, form= and score="):
        consistency(outcomes, form="frm")
    with pytest.raises(TypeError, match=r"got dict\. To compare several sources, use"):
        accuracy({"a": ONE, "b": ONE})


def test_columns_with_different_indices_are_rejected():
    labels = pd.Series([1, 0] * 20)
    with pytest.raises(ValueError, match="different indices, but rows are matched"):
        paired({"first_correct": labels[:20], "second_correct": labels[10:30]}, pair=None)


def test_own_columns_and_clusters_of_outcomes_are_used():
    rng = np.random.default_rng(0)
    numbers = np.arange(120)
    df = pd.DataFrame({"pair": numbers, "item": numbers // 3, "fact": numbers // 20,
                       "topic": numbers // 30}).assign(model="a")  # fmt: skip
    df = pd.concat([df, df.assign(model="b")], ignore_index=True)
    df[["first_correct", "second_correct"]] = rng.integers(0, 2, (240, 2))

    assert compare(df, by="fact").to_frame()["fact"].nunique() == 7
    assert len(compare(df, by="item").to_frame()) == 41
    sources = (df, df.drop(columns="item"))
    for function, source in itertools.product((compare, consistency), sources):
        by_fact = function(source, cluster="fact").to_frame(all=True)
        assert by_fact["n_clusters"].max() == 6
    grouped = consistency(df, cluster="topic", by="topic")
    assert grouped.to_frame()["n_clusters"].max() == 10
    compared = compare(df, cluster="topic", by="topic").to_frame()
    assert compared["n_clusters"].tolist() == [4, 10, 10, 10, 10]
    with pytest.raises(ColumnNotFoundError, match="'item' not found"):
        compare(df.drop(columns=["item", "fact"]), cluster="item")
    one = df[df["pair"] % 3 == 0].drop(columns="pair").rename(columns={"model": "llm"})
    assert len(consistency(one, model="llm").to_frame()) == 2
    assert "Rows of outcomes" not in consistency(one, model="llm").note
    assert [function(sources[1]).to_frame(all=True)["n_clusters"].max()
            for function in (compare, consistency)] == [6, 6]  # fmt: skip


def test_rows_without_a_value_are_not_reported_as_rows_without_a_score():
    df = pd.DataFrame({"x": [np.nan, *range(39)], "y": [0, 1, 1, 0] * 10})

    assert (
        "1 of 40 rows lack a value of x or y and are excluded."
        in partial_correlation(df, x="x", y="y").sentences
    )
