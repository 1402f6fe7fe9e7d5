import json
import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.models import result_of
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.cli.main import main
from surface_consistency.engine.compare.results_page import comparison_page, write_comparison
from surface_consistency.engine.compare.results_report import ComparisonReport
from surface_consistency.errors import DataError
from surface_consistency.report.page import Answers, ForestPlot, MosaicPlots
from surface_consistency.results.columns import ResultColumns
from surface_consistency.tables.markdown import markdown_text
from surface_consistency.tables.numbers import sentence_text


def draw(skills, n_items=200, tasks=("qa",), seed=1, texts=True):
    """Simulate scores of models with the given skills on items of random difficulty."""
    rng = np.random.default_rng(seed)
    parts = []
    for task in tasks:
        hard = rng.normal(0, 1, n_items)
        for name, skill in skills.items():
            part = pd.DataFrame({"task": task, "model": name, "item": range(n_items)})
            part["score"] = (rng.random(n_items) < 1 / (1 + np.exp(hard - skill))).astype(float)
            if texts:
                part["question"] = "What is <" + part["item"].astype(str) + ">?"
                part["prediction"] = name + " says </script>" + part["score"].astype(str)
                part["references"] = [["it"]] * n_items
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


TWO = {"a": 0.0, "b": -2.0}


def page_of(frame, **settings):
    page, tables = comparison_page(compare_results(frame, settings=ComparisonSettings(**settings)))
    return page, tables, [block for section in page.sections for block in section.blocks]


def text_of(frame, columns=None, **settings):
    compared = compare_results(frame, columns, ComparisonSettings(**settings))
    report = ComparisonReport(compared, next(iter(compared.metrics)))
    return " ".join(map(sentence_text, report.sentences())).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("skills", "settings", "finding"),
    [
        ((0.0, -2.0), {}, "The accuracy (score) is LOWER for b than for a ("),
        ((-2.0, 0.5), {}, "The accuracy (score) is HIGHER for b than for a ("),
        ((0.0, 0.0), {}, "The accuracy (score) does not differ significantly between a and b ("),
        ((9.0, 9.0), {"margin": 0.2}, "The accuracy (score) is equivalent for a and b within ±20."),
        ((2.0, -2.0, -2.0), {}, "a is the best of 3 models in accuracy (score) (simultaneous"),
        ((1.0, 1.0, -3.0), {}, "2 of 3 models may be the best in accuracy (score) (simultaneous"),
        ((0.0, 0.0, 0.0), {}, "No two of the 3 models differ significantly in accuracy"),
        ((0.0, 2.0, -3.0), {"baseline": "a"}, "The accuracy (score) is HIGHER for b than for a"),
    ],
)
def test_first_sentence_of_the_report_states_the_statistical_conclusion(skills, settings, finding):
    text = text_of(draw(dict(zip("abc", skills, strict=False))), **settings)
    text = re.sub(r"[\d.]+ points (lower|higher)", lambda one: one[1].upper(), text)
    assert text.startswith(finding)


def test_finding_reports_too_few_clusters_for_inference():
    frame = draw({"a": 0.0, "b": -2.0})
    frame["passage"] = frame["item"] % 3

    with pytest.warns(UserWarning, match="no difference is defined"):
        text = text_of(frame, ResultColumns(cluster=("passage",)))
    assert text.startswith(
        "A difference in accuracy (score) between a and b cannot be inferred: 200 items in 3 "
        "clusters are too few ("
    )


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_finding_of_three_models_reports_too_few_clusters_for_inference():
    frame = draw({"a": 0.0, "b": -2.0, "c": 3.0})
    text = text_of(frame.assign(passage=frame["item"] % 3), ResultColumns(cluster=("passage",)))

    what = "A difference in accuracy (score) between any two of the 3 models"
    assert text.startswith(f"{what} cannot be inferred: 200 items in 3 clusters are too few (")


def test_equivalence_reports_a_significant_difference_within_the_margin():
    scores = [("a", n, 1.0) for n in range(900)] + [("b", n, n % 50 > 0) for n in range(900)]
    text = text_of(pd.DataFrame(scores, columns=["model", "item", "score"]), margin=0.05)

    assert "The accuracy (score) is equivalent for a and b within ±5.0 points" in text
    assert "The difference is statistically significant, although within the margin." in text


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_a_task_with_too_few_items_is_not_reported_as_unlike_overall():
    frame = draw({"a": 2.0, "b": -5.0}, n_items=40, tasks=("qa", "few"))
    frame = frame[(frame["task"] == "qa") | (frame["item"] < 3)]
    gained = (frame["model"] == "b") | (frame["item"] > 0)
    frame["score"] = frame["score"].where(frame["task"] == "qa", gained.astype(float))
    report = ComparisonReport(compare_results(frame), "score")

    rows = report.tables()["by_task"].frame.set_index("group")
    assert rows.loc["few", "unlike_overall"] == ""
    assert "the difference has the other sign, but not" not in sentence_text(report.summary())


def test_note_below_the_finding_reports_few_clusters():
    def texts(n_clusters, column):
        frame = draw(TWO, n_items=60)
        frame["passage"] = frame["item"] % n_clusters
        compared = compare_results(frame, ResultColumns(cluster=(column,)))
        return result_of(compared).note

    assert (
        "The result is based on only 5 clusters (passage, as named), so that intervals "
        "are wide; cluster=item assumes independent items, and the conclusions then hold "
        "only for these 5 clusters."
    ) in texts(5, "passage")
    for column in ("passage", "item"):
        assert "is based on only" not in texts(20, column)
    few = result_of(compare_results(draw({"a": 0.0, "b": -1.0}, n_items=12))).note
    assert "(items, assumed to be independent), so that intervals are wide." in few


def test_scores_by_a_rule_are_named_after_the_rule_and_its_region():
    frame = draw(TWO).drop(columns="score")
    frame["prediction"] = np.where(frame["model"] == "a", "it", "none")

    text = text_of(frame, rule="popqa")

    assert re.match(r"The accuracy \(popqa\) is [\d.]+ points lower for b than for a \(", text)
    notes = compare_results(frame, settings=ComparisonSettings(rule="popqa")).notes
    assert notes == ("popqa scores the first line of each answer (`region`)",)


def test_finding_reports_excluded_items_above_five_percent():
    frame = draw({"a": 0.0, "b": -2.0})
    some = frame[(frame["model"] == "a") | (frame["item"] % 4 > 0)]

    assert "50 of 200 items lack a score of at least one model and are excluded." in text_of(some)
    assert "excluded" not in text_of(frame)


@pytest.mark.parametrize(("missing", "n", "title"), [
    ("drop", 3, "Excluded items"),
    ("drop", 0, "No missing scores"),
    ("wrong", 3, "Missing scores count as incorrect"),
])  # fmt: skip
def test_checks_report_how_missing_scores_are_counted(missing, n, title):
    frame = draw({"a": 0.6, "b": 0.6}, texts=False)
    frame.loc[frame.index[:n], "score"] = np.nan
    page, _, _ = page_of(frame, missing=missing)

    titles = {"Excluded items", "No missing scores", "Missing scores count as incorrect"}
    assert titles & {check.title for check in page.checks} == {title}
    notes = " ".join(sentence_text(check.text) for check in page.checks)
    assert (f"{n} of 400 scores are missing and count as incorrect" in notes) is (
        missing == "wrong"
    )


def test_report_names_tasks_whose_significant_difference_is_opposite_to_overall():
    most, other = {"a": 0.0, "b": -3.0}, {"a": -1.0, "b": 2.0}
    frame = pd.concat([draw(most, 400, ("x", "y")), draw(other, 100, ("z",), seed=2)])

    text = text_of(frame)

    assert "Differences are means of 3 tasks with equal weights." in text
    assert re.search(r"in task z, unlike overall, is [\d.]+ points higher for b", text)


def test_text_json_and_markdown_report_the_same_numbers(tmp_path, capsys):
    frame = draw(TWO)
    frame.to_json(tmp_path / "answers.jsonl", orient="records", lines=True)
    compared = compare_results(frame)
    row = compared.metrics["score"].differences.iloc[0]
    result = result_of(compared)
    assert main(["compare", str(tmp_path / "answers.jsonl"), "--markdown"]) == 0
    markdown = capsys.readouterr().out

    (shown,) = result.to_dict()["rows"]
    assert (shown["difference"], shown["p_value"]) == (row["difference"], row["p_value"])
    points = f"{100 * row['difference']:+.1f}".replace("-", "−")
    assert points in result.to_text()
    assert points in markdown
    assert "`a says </script>1.0`" in markdown
    n_lost = row["reference_only"]
    assert f"{n_lost:,} items lost" in markdown
    assert f"{n_lost - 20:,} more; use --out to write all" in markdown


def test_json_contains_neither_infinity_nor_nan():
    frame = draw({"a": 0.0, "b": -2.0}, 50)
    frame["score"] *= 7

    frame["half"] = frame["item"] % 2
    table = TableSettings(by=("half",))
    shown = result_of(compare_results(frame, table=table)).to_dict(all=True)

    assert shown["rows"][1]["conclusion"] is None
    assert json.dumps(shown, allow_nan=False)


def test_page_of_two_models_has_a_mosaic_plot_answers_and_tables(tmp_path):
    page, tables, blocks = page_of(draw(TWO))
    (square,) = (block.squares[0] for block in blocks if isinstance(block, MosaicPlots))
    (answers,) = (block for block in blocks if isinstance(block, Answers))
    row = tables["differences"].iloc[0]

    assert [square.both, square.first_only] == [row["both"], row["reference_only"]]
    assert [name for name, _, _ in square.facts] == ["same label", "lost of a correct", "kappa"]
    few = next(one for one in page_of(draw(TWO, n_items=4))[2] if isinstance(one, MosaicPlots))
    assert [name for name, _, _ in few.squares[0].facts] == ["same label", "kappa"], "intervals"
    assert answers.answers[0].cell in ("first_only", "second_only")
    assert len(tables["changed"]) == row["reference_only"] + row["model_only"]
    (check,) = (one for one in page.checks if one.level == "ok" and "Same" in one.title)
    assert check.title == "Same items"
    assert "(question, references or hash)" in sentence_text(check.text)
    html = write_comparison(compare_results(draw(TWO)), tmp_path / "page").read_text("utf-8")
    assert "says </script>" not in html
    assert "@misc{miller2024errorbars" in html
    written = pd.read_csv(tmp_path / "page" / "tables" / "differences.csv")
    assert written["difference"].tolist() == [row["difference"]]


def test_answers_name_the_form_and_each_model_once():
    one = draw(TWO).drop(columns="question")
    _, _, blocks = page_of(pd.concat(one.assign(form=form) for form in ("plain", "polite")))
    (answers,) = (block for block in blocks if isinstance(block, Answers))

    assert answers.filters == ["form"]
    assert {one.labels["form"][0] for one in answers.answers} == {"plain", "polite"}
    assert answers.conditions == ("a", "b")
    assert {one.surfaces for one in answers.answers} == {("", "")}


def test_page_of_scores_without_answers_ends_with_the_changed_items():
    frame = draw({"a": 0.0, "b": -2.0}, texts=False)
    frame["score"] = frame["score"] * 3 + 1

    page, _ = comparison_page(compare_results(frame))

    assert [section.anchor for section in page.sections][-1] == "changed"


def test_a_page_is_not_written_into_a_run_folder(tmp_path):
    (tmp_path / "prompts.jsonl").touch()

    with pytest.raises(DataError, match="contains a run"):
        write_comparison(compare_results(draw({"a": 0.0, "b": 0.0})), tmp_path)


def test_reported_differences_of_equal_models_do_not_exceed_the_error_rate():
    """Three models of equal skill, simulated 120 times: any reported difference is an error."""
    claims = 0
    for seed in range(120):
        text = text_of(draw({"a": 0.0, "b": 0.0, "c": 0.0}, 60, seed=seed, texts=False))
        claims += not text.startswith("No two of the 3 models differ significantly")

    assert claims <= 12


def test_model_names_with_line_breaks_and_markup_are_escaped():
    frame = draw({"a\nb": 2.0, "<b>|`c": -2.0}, n_items=40)
    compared = compare_results(frame)

    assert "lower for <b>|`c than for a\\nb (95 % CI" in result_of(compared).sentences[0]
    shown = markdown_text(result_of(compared).sentences[0])
    assert "lower for ``<b>|`c`` than for `a\\nb` (95 % CI" in shown
    assert "p < 0.001" in shown


def test_changed_items_and_answers_exclude_items_without_scores_of_all_models():
    """The number of changed items of two models equals the discordant cells of their table."""
    frame = draw({"a": 0.0, "b": -1.0, "c": -2.0}, 40)
    is_first = frame["item"] == 0
    frame.loc[is_first, "score"] = frame["model"].map({"a": 0.5, "b": 1.0})
    _, tables, blocks = page_of(frame, baseline="b")
    (answers,) = (block for block in blocks if isinstance(block, Answers))

    differences = tables["differences"].set_index("model")
    n_changed = differences["reference_only"] + differences["model_only"]
    assert tables["changed"].groupby("model").size().to_dict() == n_changed.to_dict()
    assert set(answers.n_pairs.values()) == {39} == set(differences["n"])


def test_scores_with_lower_is_better_are_not_reported_as_correct_answers():
    _, tables, blocks = page_of(draw({"a": 0.0, "b": -1.0}), lower_is_better=("score",))

    assert not [block for block in blocks if isinstance(block, MosaicPlots | Answers)]
    shown = [column.title for block in blocks for column in getattr(block, "columns", ())]
    assert "Difference" in shown
    assert "Correct" not in shown
    assert len(tables["changed"]) > 0


def test_graded_repeats_are_reported_as_repeats_without_a_flip_rate():
    frame = pd.concat(draw({"a": 0.0, "b": -1.0}, 30).assign(epoch=epoch) for epoch in range(2))
    page, _, _ = page_of(frame.assign(score=frame["score"] / 2))

    titles = [check.title for check in page.checks]
    assert "No flip rate" in titles
    assert "No noise floor" not in titles


def test_repeats_with_correctness_labels_are_on_the_page_and_in_its_tables():
    frame = pd.concat(draw({"a": 0.0, "b": -1.0}, 30).assign(epoch=epoch) for epoch in range(2))
    page, tables, _ = page_of(frame)

    summary = sentence_text(page.finding.summary)
    assert "The flip rate between single repeats of a and b is" in summary
    assert "The test-retest flip rate of identical prompts of a is" in summary
    assert "2 random repeats of b are all correct (pass^2) is" in summary
    assert tables["repeats"]["against"].tolist() == ["a", "itself", "itself"]
    assert tables["passes"]["k"].tolist() == [2, 2]
    assert "No noise floor" not in [check.title for check in page.checks]


def test_page_of_one_model_reports_its_mean_and_the_mean_per_task():
    frame = draw({"a": 0.0}, 40)
    tasks = np.where(frame["item"] < 20, "x", "y")
    for labelled, names in ((frame, ["models"]), (frame.assign(task=tasks), ["models", "by_task"])):
        page, tables, blocks = page_of(labelled)

        assert list(tables) == names
        assert sentence_text(page.finding.sentence).startswith("The accuracy (score) of a is ")
        (forest,) = (block for block in blocks if isinstance(block, ForestPlot))
        assert len(forest.rows) == (1 if len(names) == 1 else 3)
        assert {"Same items", "No noise floor"} & {check.title for check in page.checks} == {
            "No noise floor"
        }
