"""The study end to end, on models whose answers are planted."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.measures import consistency
from surface_consistency.analysis.models import compare
from surface_consistency.engine import run_study, score_run
from surface_consistency.engine.report import build_page
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.integrations.paired_task import PairedTask
from surface_consistency.metrics import forms_by
from surface_consistency.models import FakeRunner
from surface_consistency.studies.forms import FormsStudy, load_forms
from surface_consistency.studies.forms.page import _sizes
from surface_consistency.studies.forms.settings import FormsSettings
from surface_consistency.studies.forms.tables import long_frame
from surface_consistency.tables.numbers import sentence_text
from tests.made_scores import Scoring

FORMS = ("plain", "polite", "terse", "long")
STUDY = FormsStudy()


def rows(n_items=60, forms=FORMS, **others):
    """Items whose answers differ and contain their number."""
    return [
        {"item": f"i{number}", "form": form, "question": f"{form} {number}?"}
        | {"answers": [f"answer{number}"], **others}
        for number in range(n_items)
        for form in forms
    ]


def world(seed=0, n_items=60, n_samples=1, sds=(1.2, 0.6, 0.8)):
    """Simulate correctness by item, form and sample from a logistic model with known effects."""
    rng = np.random.default_rng(seed)
    item, form, both = sds
    logit = item * rng.normal(size=(n_items, 1)) + form * rng.normal(size=4)
    chance = 1 / (1 + np.exp(-2 * (logit + both * rng.normal(size=(n_items, 4)))))
    return rng.random((n_items, 4, n_samples)) < chance[..., None]


def model(right, name="planted"):
    def answer(prompt):
        form, number = prompt.text.rpartition("Q: ")[2].removesuffix("? A:").split()
        sample = int(prompt.id.partition("sample ")[2] or 1) - 1
        is_right = right[int(number), FORMS.index(form), sample]
        return f"answer{number}" if is_right else f"wrong{number} {form}"

    return FakeRunner(answer, name=name)


def run(tmp_path, data, runner, name="run", **settings):
    options = {"settings": FormsSettings(repeat=0, **settings), "progress": False}
    folder = run_study(STUDY, data, runner, tmp_path / name, model=name, **options)
    return folder, score_run(folder, study=STUDY)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Outcomes, page and tables of a simulation whose forms have a kind."""
    data = load_forms(rows(kind="wording"))
    folder, outcomes = run(tmp_path_factory.mktemp("planted"), data, model(world()))
    page, tables, _ = build_page([folder.path], study=STUDY)
    return outcomes, page, tables


@pytest.mark.parametrize("n_samples", [1, 2])
def test_outcomes_have_the_numbers_of_the_page(tmp_path, n_samples):
    """The reference form is in three pairs of an item and counts once."""
    runs = [
        run(
            tmp_path, load_forms(rows()), model(world(seed, n_samples=2)), f"m{seed}",
            samples=n_samples, temperature=n_samples - 1,
        )
        for seed in range(2)
    ]  # fmt: skip
    (folder, first), (other, second) = runs
    row = build_page([folder.path], study=STUDY)[1]["forms"].frame.iloc[0]

    result = consistency(first)
    made = result.to_frame().iloc[0]

    names = ["consistency", "all_correct", "accuracy"]
    assert made[names].tolist() == row[names].tolist()
    assert made["n"] == row["n_items"]
    assert "proportion of items correct in all forms" in result.sentences[1]
    assert "clustered by cluster, as defined by the study" in result.note
    by_form = consistency(first, by="second_condition").sentences
    assert sum("correct in both forms" in one for one in by_form) == 3
    of_frames, of_runs = (
        compare(*both).to_frame()[["difference", "n"]]
        for both in ((first, second), (folder.path, other.path))
    )
    pd.testing.assert_frame_equal(of_frames, of_runs)


def test_labels_and_tables_equal_the_planted_world(planted):
    outcomes, page, tables = planted
    right = world()
    items, forms, _ = np.indices(right.shape)
    cells = {"item": items.ravel(), "form": forms.ravel(), "correct": right.ravel()}
    expected = forms_by(pd.DataFrame(cells)).iloc[0]

    table = long_frame(outcomes).pivot(index="item", columns="form", values="correct")
    table = table.loc[[f"i{n}" for n in range(60)], list(FORMS)]
    np.testing.assert_array_equal(table.to_numpy(dtype=bool), right[..., 0])
    row = tables["forms"].frame.iloc[0]
    names = ("accuracy", "consistency", "consistency_low", "all_correct", "within_item_share_high")
    for name in names:
        assert row[name] == pytest.approx(expected[name])
    assert " for other forms like these is " in sentence_text(page.finding.summary)
    assert "by_kind" in tables


def test_metrics_for_other_tools_equal_those_of_the_page(planted):
    outcomes, _, tables = planted

    numbers = STUDY.report.metrics(outcomes)
    unscored = STUDY.report.metrics(outcomes.assign(first_correct=None, second_correct=None))

    assert numbers["two_forms_agree"] == tables["forms"].frame["consistency"].iloc[0]
    assert numbers["all_forms_correct"] == tables["forms"].frame["all_correct"].iloc[0]
    assert np.isnan([*unscored.values()]).all()


def test_wordings_per_item_have_one_interval_and_no_form_pairs(tmp_path):
    folder, _ = run(tmp_path, load_forms(rows(), wordings="own"), model(world()))
    page, tables, _ = build_page([folder.path], study=STUDY)

    assert "Each item has its own wordings" in sentence_text(page.finding.summary)
    assert "form_pairs" not in tables
    assert len(tables["forms"].frame) == 1


def test_templates_are_clustered_by_relation(tmp_path):
    data = [row | {"relation": f"P{int(row['item'][1:]) % 12}"} for row in rows()]
    folder, _ = run(tmp_path, load_forms(data), model(world()))
    _, tables, _ = build_page([folder.path], study=STUDY)

    assert tables["forms"].frame["n_clusters"].tolist() == [60, 12]
    assert tables["by_form"].frame["n_clusters"].tolist() == [12, 12, 12]


def test_forms_that_differ_only_together_are_reported_in_one_sentence(tmp_path):
    n_correct = np.array([30, 34, 30, 26])
    correct = np.arange(60)[:, None, None] < n_correct[:, None]
    folder, _ = run(tmp_path, load_forms(rows()), model(correct))
    page, tables, _ = build_page([folder.path], study=STUDY)

    summary = sentence_text(page.finding.summary).replace("\u00a0", " ")
    assert tables["spread"].frame["p_value"].iloc[0] < 0.01
    assert "3 of the 3 comparisons in accuracy of " in summary
    assert "together differ significantly in accuracy (p = 0.00" in summary


def test_models_are_compared_on_the_same_forms(tmp_path):
    folders = [
        run(tmp_path, load_forms(rows()), model(world(seed)), name=f"m{seed}")[0].path
        for seed in (1, 2)
    ]
    # The conditions of this study are the forms, which occur once in the groups.
    (compared,) = compare_results(folders).metrics.values()
    assert "form" not in set(compared.groups["by"])
    assert "condition" in set(compared.groups["by"])


def test_flips_between_samples_are_the_noise_of_finding_badge_and_check(tmp_path):
    """All forms are equal, so forms flip as often as two samples of one form."""
    correct = world(n_samples=3, sds=(1.0, 0.0, 0.0))
    options = {"samples": 3, "temperature": 0.7}
    folder, _ = run(tmp_path, load_forms(rows()), model(correct), **options)
    page, tables, _ = build_page([folder.path], study=STUDY)

    (row,) = tables["above_noise"].frame.to_dict("records")
    samples = tables["samples"].frame.iloc[0]
    flips = (correct[:, :1] != correct[:, 1:]).mean()
    assert row["noise"] == "samples"
    assert row["difference"] == pytest.approx(flips - (1 - samples["consistency"]))
    titles = {check.title for check in page.checks}
    assert "Not significantly above test-retest noise" in titles
    assert "No noise floor" not in titles
    text = sentence_text(page.finding.sentence)
    assert "180 samples of items, 60 " in text
    assert "agreement of run with itself on identical prompts" in sentence_text(
        page.finding.summary
    )


def test_samples_have_the_same_text_and_different_seeds(tmp_path):
    settings = FormsSettings(samples=3, temperature=0.5, seed=7)
    plan = STUDY.plan(load_forms(rows(2)), settings, runner=model(world()))
    assert [group.params.seed for group in plan.groups.values()] == [7, 8, 9]
    texts = [[prompt.text for prompt in group.prompts] for group in plan.groups.values()]
    assert texts[0] == texts[1] == texts[2]


def test_shots_are_equal_for_all_forms_and_do_not_reveal_answers():
    data = load_forms([row | {"cluster": row["item"][-1]} for row in rows(30)])
    plan = STUDY.plan(data, FormsSettings(shots=3), runner=model(world()))
    shown = {}
    for prompt in plan.groups[""].prompts:
        item, _, _ = prompt.id.partition(" | ")
        before, _, own = prompt.text.rpartition("\n\n")
        shown.setdefault(item, set()).add(before)
        assert before.count("Q: plain") == 3
        assert f"answer{item[1:]}\n" not in f"{before}\n"
        assert own.startswith("Q: ")
    assert all(len(texts) == 1 for texts in shown.values())


@pytest.mark.parametrize(
    ("data", "settings", "error", "match"),
    [
        (rows(3), {"samples": 3}, ValueError, "samples=3 at temperature 0 repeat one answer"),
        (rows(3), {"shots": 5}, DataError, "`shots` 5: only 2 items differ in .* from item 'i0'"),
        (
            rows(3),
            {"reference": "polit"},
            *(DataError, r"form 'polit' not found in list \(did you mean 'polite'\?\)"),
        ),
        (
            [row | {"answers": [f"{row['form']} {row['item']}"]} for row in rows(12)],
            {"read": "multiple-choice"},
            *(DataError, "the forms of item 'i0' accept different answers"),
        ),
    ],
    ids=["temperature", "shots", "reference", "options"],
)
def test_settings_that_do_not_fit_the_data_raise_an_error(data, settings, error, match):
    with pytest.raises(error, match=match):
        STUDY.plan(load_forms(data), FormsSettings(**settings), runner=model(world()))


def test_an_item_without_its_reference_keeps_its_other_forms(tmp_path):
    data = [row for row in rows(30) if (row["item"], row["form"]) != ("i0", "plain")]
    with pytest.warns(SurfaceConsistencyWarning, match="from 3 to 4 forms"):
        loaded = load_forms(data)
    missing = STUDY.plan(loaded, FormsSettings(reference="plain")).pairs.query("item == 'i0'")
    assert len(missing) == 3
    assert missing["first_target"].isna().all()

    folder, outcomes = run(tmp_path, loaded, model(world()), reference="plain")
    page, tables, _ = build_page([folder.path], study=STUDY)

    assert outcomes["is_same_answer"].all()
    assert "Unequal numbers of forms" in [check.title for check in page.checks]
    heads = {column.key: column.title for column in tables["forms"].columns}
    assert heads["all_correct_of"] == "Correct in 3"


def test_forms_can_be_selected_and_the_reference_marked():
    plan = STUDY.plan(load_forms(rows(5)), FormsSettings(forms=("terse",)))
    assert set(plan.items["form"]) == {"plain", "terse"}

    data = [row | {"is_reference": row["form"] == "terse"} for row in rows(5)]
    plan = STUDY.plan(load_forms(data), FormsSettings())
    assert set(plan.pairs["second_condition"]) == {"plain", "polite", "long"}


def scored(request):
    """Make the correct option the more probable one, except under one form."""
    value = -1.0 - len(request.continuation) / 10
    if "red" in request.continuation:
        value = -9.0 if "terse" in request.context else -0.5
    return {"log_probabilities": (value,)}


def test_choices_are_read_from_probabilities_and_rankings_compared_with_chance(tmp_path):
    choices = {"choices": ["blue", "red", "grey, dark"], "answers": ["red"]}
    data = [row | choices for row in rows(12)]
    folder, outcomes = run(tmp_path, load_forms(data), Scoring(scored), read="multiple-choice")
    _, tables, _ = build_page([folder.path], study=STUDY)

    assert outcomes["first_correct"].all()
    is_terse = outcomes["second_condition"] == "terse"
    assert (outcomes["second_correct"] == ~is_terse).all()
    table = tables["rank_agreement"].frame.set_index("form")
    assert table.loc["polite", "rank_agreement"] == pytest.approx(1.0)
    assert table.loc["terse", "rank_agreement"] < 1.0
    assert table["chance"].to_numpy() == pytest.approx(0.4749, abs=1e-4)


def test_sentences_with_an_inner_gap_are_excluded_for_generated_answers(tmp_path):
    from tests.studies.forms.test_layouts import lines

    lines(tmp_path / "data/trex_lms_vocab/P1.jsonl", [{"sub_label": "A", "obj_label": "B"}])
    patterns = [{"pattern": one} for one in ("[X] is [Y] .", "[X] has [Y].", "[Y] is near [X].")]
    lines(tmp_path / "data/pattern_data/graphs_json/P1.jsonl", patterns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load_forms(str(tmp_path), preset="pararel")
    with pytest.warns(SurfaceConsistencyWarning, match="1 of 3 forms are excluded: the gap"):
        plan = STUDY.plan(data, FormsSettings(), runner=model(world()))
    assert [prompt.text for prompt in plan.groups[""].prompts] == ["A is", "A has"]


def test_forms_are_loaded_as_a_task_of_evaluation_harnesses():
    task = PairedTask.load("forms", {"source": "sample", "limit": 12})

    assert len(task.documents) == 60
    known = set(load_forms("sample").rows["cluster"])
    assert {document.cluster for document in task.documents} <= known


def test_forms_without_an_answer_are_not_counted():
    """One item has one form without an answer, the other item has no answer."""
    pairs = pd.DataFrame(
        {"item": ["a", "a", "b"], "sample": 0, "first_correct": [True, True, None]}
    )
    for second, sizes in (([True, None, None], (2, 2)), ([False, True, None], (3, 3))):
        outcomes = pairs.assign(second_correct=pd.Series(second, dtype=object))
        assert _sizes(SimpleNamespace(outcomes=outcomes)) == sizes
    nothing = pairs.assign(first_correct=None, second_correct=None)
    assert _sizes(SimpleNamespace(outcomes=nothing)) == (0, 0)
