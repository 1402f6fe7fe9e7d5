"""Verdicts that are there already: the page of forms without a question asked."""

import json

import numpy as np
import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine import ReportSettings, report_runs
from surface_consistency.errors import ColumnNotFoundError, DataError, SurfaceConsistencyWarning
from surface_consistency.results import read_results
from surface_consistency.studies.forms import load_forms
from surface_consistency.studies.forms.results import FormResults, FormsAnalysis
from surface_consistency.studies.forms.tables import long_frame
from tests.golden_runs.files import visible_text
from tests.studies.forms.test_study import model, rows, run, world


def analysed(paths, out, *, page=False, **columns):
    analyses = {FormsAnalysis(): FormResults(**columns)}
    settings = ReportSettings(page=page, answers=20)
    return report_runs(paths, out, settings=settings, analyses=analyses)


def verdicts(n_items=40, forms=("plain", "terse", "long"), seed=0):
    """A row an item and form, as a user's table has them."""
    rng = np.random.default_rng(seed)
    known = rng.random(n_items)
    right = rng.random((n_items, len(forms))) < known[:, None]
    items = [f"i{n}" for n in range(n_items) for _ in forms]
    cells = {"model": "a", "item": items, "form": [*forms] * n_items}
    return pd.DataFrame(cells | {"correct": right.ravel().astype(int)})


def saved(frame, path):
    frame.to_csv(path, index=False)
    return path


def test_verdicts_of_a_run_give_the_tables_of_the_run(tmp_path):
    data = load_forms([row | {"cluster": row["item"][-1]} for row in rows()])
    folder, outcomes = run(
        tmp_path, data, model(world(n_samples=2)), samples=2, temperature=0.5, reference="polite"
    )
    asked = report_runs([folder.path], tmp_path / "asked", settings=ReportSettings(page=False))
    long = long_frame(outcomes).rename(columns={"item": "item", "sample": "repeat"})
    # The reference is named, and not the form of the first row.
    long = long.sort_values("form", key=lambda form: form != "plain", kind="stable")
    file = saved(
        long[["model", "item", "form", "repeat", "correct", "item_cluster"]],
        tmp_path / "verdicts.csv",
    )

    given = analysed(
        [file], tmp_path / "given", reference="polite", cluster=("item_cluster",), wordings="shared"
    )

    assert {"forms", "variance", "spread", "samples", "by_form"} <= given.tables.keys()
    for name in given.tables.keys() & asked.tables.keys() - {"runs"}:
        first, second = (one.tables[name].frame for one in (asked, given))
        # Repeats in a file are a noise floor, which samples of a run are not.
        second = second[[column for column in second if column != "above_noise_p_value"]]
        known = ("model", "form", "part", "first", "second", "about", "n_right")
        keys = [key for key in known if key in first]
        pd.testing.assert_frame_equal(
            first.sort_values(keys, ignore_index=True), second.sort_values(keys, ignore_index=True)
        )


def test_verdicts_without_answers_have_no_answers_that_differ(tmp_path):
    """Items without their reference form among them."""
    file = saved(verdicts().drop(index=[0, 10, 15]), tmp_path / "verdicts.csv")

    reported = analysed([file], tmp_path / "page")

    assert not any("other answers than the reference" in note for note in reported.notes)


def test_prompteval_is_read_from_its_files(tmp_path):
    rng = np.random.default_rng(1)
    held = {}
    for subject, n_items in (("abstract_algebra", 12), ("formal_logic", 15)):
        for name in ("google_flan_t5_xl", "tiiuae_falcon_40b"):
            right = rng.integers(0, 2, size=(7, n_items))
            held[subject, name] = right
            path = tmp_path / "prompteval" / subject / f"{name}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(right, columns=[f"example_{n}" for n in range(n_items)]).to_parquet(path)

    frame = read_results(tmp_path / "prompteval").frame
    files = sorted((tmp_path / "prompteval").rglob("*.parquet"))
    tables = analysed(files, tmp_path / "page").tables

    cells = frame.set_index(["task", "model", "form", "item"])["score"]
    for (subject, name), right in held.items():
        part = cells[subject, name].unstack("form")
        columns = [f"template {n}" for n in range(7)]
        names = [f"example_{n}" for n in range(right.shape[1])]
        np.testing.assert_array_equal(part.loc[names, columns].to_numpy().T, right)
    shown = tables["forms"].frame.query("about == 'these forms'").set_index("model")
    assert shown["n_items"].tolist() == [27, 27]
    expected = frame.astype({"model": str}).groupby("model")["score"].mean()
    pd.testing.assert_series_equal(shown["accuracy"].sort_index(), expected, check_names=False)


def test_a_table_with_columns_called_example_is_no_prompteval(tmp_path):
    table = pd.DataFrame({"item": ["a"], "model": ["m"], "correct": [1]})
    file = saved(table.assign(example_0="x", example_1="y"), tmp_path / "own.csv")

    assert read_results(file).frame["score"].tolist() == [1.0]


def test_answers_are_judged_by_a_rule(tmp_path):
    frame = verdicts()
    frame["prediction"] = np.where(frame["correct"] == 1, "It is Lima.", "It is Cusco.")
    frame = frame.assign(answers="Lima", question=frame["form"] + " " + frame["item"])
    file = saved(frame.drop(columns="correct"), tmp_path / "answers.csv")

    with pytest.warns(SurfaceConsistencyWarning, match="answers without scores"):
        judged = analysed([file], tmp_path / "judged", rule="popqa", page=True)
    given = analysed([saved(verdicts(), tmp_path / "v.csv")], tmp_path / "given", page=True)

    pd.testing.assert_frame_equal(judged.tables["variance"].frame, given.tables["variance"].frame)
    assert judged.tables["form_answers"].frame["same_answer"].iloc[0] > 0.5
    assert "form_answers" not in given.tables
    page = judged.page.read_text("utf-8")
    assert "It is Cusco." in page
    assert not any("other answers than" in note for note in (*judged.notes, *given.notes))


def test_answers_without_references_are_not_held_against_each_other(tmp_path):
    frame = verdicts().assign(prediction="Lima")

    reported = analysed([saved(frame, tmp_path / "v.csv")], tmp_path / "page", page=True)

    assert "form_answers" not in reported.tables
    assert any("may accept, other answers than" in note for note in reported.notes)


def prepared(frame, home, **columns):
    folders = FormsAnalysis().prepare([saved(frame, home / "v.csv")], home, FormResults(**columns))
    return [pd.read_parquet(folder / "outcomes.parquet") for folder in folders]


def test_wordings_of_each_item_are_its_own(tmp_path):
    frame = verdicts()
    frame["form"] = frame["item"] + " " + frame["form"]

    (outcomes,) = prepared(frame, tmp_path, reference="i0 plain")

    assert set(outcomes["wordings"]) == {"own"}
    assert outcomes["first_correct"].notna().sum() == 2


def test_templates_of_relations_are_taken_whole(tmp_path):
    frame = verdicts()
    frame["relation"] = "r" + frame["item"].str[-1]
    frame["form"] = frame["relation"] + " " + frame["form"]
    columns = {"cluster": ("relation",), "wordings": "templates", "reference": "r0 plain"}

    (outcomes,) = prepared(frame, tmp_path, **columns)

    assert (outcomes["relation"] == "r" + outcomes["item"].str[-1]).all()
    assert (outcomes["cluster"] == outcomes["relation"]).all()


def test_a_sample_that_stands_twice_and_differs_is_refused(tmp_path):
    again = verdicts().head(1).assign(correct=lambda row: 1 - row["correct"])

    with pytest.raises(DataError, match="i0"):
        prepared(pd.concat([verdicts(), again]), tmp_path)


def test_models_of_other_forms_and_samples_are_counted_each(tmp_path):
    """One model was asked twice; the other never in the reference form."""
    one = pd.concat([verdicts().assign(repeat=1), verdicts(seed=1).assign(repeat=2)])
    other = verdicts(seed=2).query("form != 'plain'").assign(model="b", repeat=1)

    first, second = prepared(pd.concat([one, other]), tmp_path, reference="plain")

    for number, n_questions in ((1, 120), (2, 80)):
        manifest = tmp_path / "models" / str(number) / "manifest.json"
        assert json.loads(manifest.read_text())["data"]["n_questions"] == n_questions
    assert (len(first), len(second)) == (160, 80)
    assert first["first_correct"].notna().all()
    assert second["first_correct"].isna().all()


def test_a_run_is_not_replaced(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")

    with pytest.raises(DataError, match=r"holds a run, .*choose another `out`"):
        prepared(verdicts(), tmp_path)


def test_an_item_of_one_form_and_failed_answers(tmp_path):
    frame = verdicts(n_items=10).astype({"correct": object})
    frame = frame.drop(index=[1, 2])
    frame.loc[5, "correct"] = None

    with pytest.warns(SurfaceConsistencyWarning, match="1 item with a single form is left out"):
        (outcomes,) = prepared(frame, tmp_path)

    assert "i0" not in set(outcomes["item"])
    assert outcomes["second_correct"].isna().sum() == 1


@pytest.mark.parametrize(
    ("change", "columns", "error", "message"),
    [
        (
            {"correct": 0.5},
            {},
            DataError,
            r"0\.5 of item 'i0' .*choose another metric by `metrics`",
        ),
        ({"form": "plain", "item": range(120)}, {}, DataError, "name the column of forms by `for"),
        ({}, {"reference": "plan"}, DataError, r"no form 'plan' \(did you mean 'plain'"),
        ({}, {"wordings": "templates"}, DataError, "name its column by `cluster`"),
        ({}, {"cluster": ("shelf",)}, ColumnNotFoundError, "shelf"),
        ({"f1": 1}, {}, DataError, r"scores of 2 metrics \(.*\), .* name it by `metrics`"),
        ({"item": range(120)}, {}, DataError, "no item has two forms; name the columns"),
    ],
    ids=["no verdict", "one form", "reference", "templates", "cluster", "metrics", "no item"],
)
def test_what_cannot_be_compared_is_refused(tmp_path, change, columns, error, message):
    with pytest.raises(error, match=message):
        prepared(verdicts().assign(**change), tmp_path, **columns)


def test_a_thousand_forms_are_a_page(tmp_path):
    frame = verdicts(n_items=3, forms=[f"f{k}" for k in range(1_000)])

    reported = analysed([saved(frame, tmp_path / "v.csv")], tmp_path / "page", page=True)

    assert len(reported.tables["by_form"].frame) == 999
    text = visible_text(reported.page.read_text("utf-8"))
    assert "The 50 rows with the most flips, of 999; the CSV file has all." in text
    assert reported.page.stat().st_size < 5e6


def test_the_command_line_names_its_own_flag_of_clusters(tmp_path, capsys):
    """`--cluster` is an option of every report, so the column goes by another."""
    frame = verdicts().assign(shelf=lambda rows: rows["item"].where(rows["item"] != "i3"))
    file = saved(frame, tmp_path / "verdicts.csv")

    words = ["--cluster-column", "shelf", "--out", str(tmp_path / "out")]
    assert main(["analyse", "forms", str(file), *words]) == 2

    assert "--cluster-column shelf is empty for item 'i3' of 'a'" in capsys.readouterr().err


def test_repeats_are_the_noise_floor_of_the_forms(tmp_path):
    """The flip rate of repeats is 1 - the agreement of `samples`."""
    parts = [verdicts(seed=seed).assign(run=seed, topic="t") for seed in range(3)]
    frame = pd.concat(parts).assign(topic=lambda rows: rows["item"].str[-1])
    file = saved(frame, tmp_path / "verdicts.csv")

    report = analysed([file], tmp_path / "out", repeat="run", cluster=("topic",), page=True)

    (floor,) = report.tables["noise_floor"].frame.to_dict("records")
    (samples,) = report.tables["samples"].frame.to_dict("records")
    assert floor["n_repeated"] == 40 * 3
    assert floor["flip_rate"] == pytest.approx(1 - samples["consistency"])
    assert floor["flip_rate_low"] == pytest.approx(1 - samples["consistency_high"], abs=0.01)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    (above,) = report.tables["above_noise"].frame.to_dict("records")
    assert above["value_b"] == pytest.approx(floor["flip_rate"])
    assert above["n_clusters"] == 10
    assert "no prompt has two scored answers" not in visible_text(page)
