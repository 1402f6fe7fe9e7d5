"""Two runs compared question by question: planted losses are found where they are."""

import json
import re

import pandas as pd
import pytest

from surface_consistency import FakeRunner
from surface_consistency.cli.main import main
from surface_consistency.engine.compare.results import compare_results
from surface_consistency.engine.compare.runs import read_two_runs
from surface_consistency.engine.compare.table import TableSettings, VerdictColumns
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.study import RuleScoring
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.metrics import paired_table
from surface_consistency.models.results.columns import ResultColumns
from surface_consistency.studies.redirectqa.data import load_redirectqa
from surface_consistency.studies.redirectqa.study import RedirectQASettings, RedirectQAStudy
from tests.made_rows import rows_of


class Quantised(FakeRunner):
    """A runner that says in how many bits it runs, and has forgotten what some names stand for."""

    def __init__(self, data, bits, forgotten=()):
        answers = {q.question: q.triple.answers[0] for q in data.questions}

        def handler(prompt):
            question = prompt.text.rpartition("Q: ")[2].removesuffix(" A:")
            known = not any(name in question for name in forgotten)
            return f" {answers[question]}" if known else " dunno"

        super().__init__(handler)
        self.bits = bits

    def fingerprint(self):
        return {"runner": "fake", "quantization": self.bits}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Before and after: the second one lost the married names, and the first never knew one."""
    home, data = tmp_path_factory.mktemp("runs"), load_redirectqa(rows_of())
    for name, forgotten in (("before", ["Cat Dowy"]), ("after", ["Smith"])):
        make_run(data, home / name, bits=name, forgotten=forgotten)
    return home


def make_run(data, out, *, bits="x", forgotten=(), rule="popqa", **settings):
    """Ask and judge; no page is made."""
    chosen = RedirectQASettings(**{"template": "both", "repeat": 4} | settings)
    runner = Quantised(data, bits, forgotten)
    folder = run_study(
        RedirectQAStudy(), data, runner, out, model="m", settings=chosen, progress=False
    )
    score_run(folder, scoring=RuleScoring(rule=rule, agreement=False))
    return out


def test_what_is_lost_and_gained_is_counted_by_question(runs):
    """Eight questions on married names are lost, two on a misspelling gained, each once."""
    compared = read_two_runs(runs / "before", runs / "after")

    frame = compared.frame
    assert len(frame) == 24
    table = paired_table(frame["first_correct"], frame["second_correct"])
    assert table.counts == (14, 8, 2, 0)
    lost = frame[frame["first_correct"] & ~frame["second_correct"]]
    assert lost["question"].str.contains("Smith").all()
    assert set(lost["categories"]) == {("Redirects_from_married_names",)}
    assert set(lost["condition"]) == {("redirect",)}
    assert compared.differing == {"runner.quantization": ("before", "after")}


def test_categories_of_a_redirect_say_nothing_of_its_title(runs):
    """Titles are in no category; their relation and template they have."""
    frame = read_two_runs(runs / "before", runs / "after").frame

    titles = frame[frame["condition"] == ("canonical",)]
    assert len(titles) == 8
    assert set(titles["categories"]) == set(titles["types"]) == {()}
    assert set(titles["relation"]) == {("father",), ("sport",)}


def test_intervals_take_subjects_whole_as_the_report_does(runs):
    """The default cluster is the study's first; another may be chosen."""
    by_subject = read_two_runs(runs / "before", runs / "after")
    by_relation = read_two_runs(runs / "before", runs / "after", VerdictColumns(cluster="relation"))

    assert by_subject.clusters == "subjects"
    assert set(by_subject.frame["fact_id"]) == {"Q1", "Q2", "Q3", "Q4"}
    assert set(by_relation.frame["fact_id"]) == {"father", "sport"}
    with pytest.raises(ValueError, match="--cluster must be one of subject_id, fact_id, relation"):
        read_two_runs(runs / "before", runs / "after", VerdictColumns(cluster="nonsense"))


def test_the_command_prints_and_writes_the_same_numbers(runs, tmp_path, capsys):
    """The table on the terminal, JSON, the CSV files and the page agree."""
    words = ["compare", str(runs / "before"), str(runs / "after"), "--label", "bf16", "int8"]

    assert main([*words, "--by", "condition", "--json"]) == 0
    rows = {row["condition"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert main([*words, "--out", str(tmp_path / "page")]) == 0
    text = capsys.readouterr().out

    redirects = rows["redirect"]
    assert [redirects[name] for name in ("both", "first_only", "second_only")] == [6, 8, 2]
    assert rows["canonical"]["negative_flip_rate"] == 0.0
    assert "kept of known" in text
    assert "int8 - bf16" in text
    assert "redirect" in text.partition("report:")[0]
    table = pd.read_csv(tmp_path / "page" / "tables" / "by_condition.csv").set_index("condition")
    assert table.loc["redirect", "negative_flip_rate"] == redirects["negative_flip_rate"]
    low, high = redirects["interval"]["negative_flip_rate"]
    assert table.loc["redirect", "negative_flip_rate_low"] == pytest.approx(low)
    assert table.loc["redirect", "negative_flip_rate_high"] == pytest.approx(high)
    assert table.loc["redirect", "lost_of_known"] == 8 / 14
    changed = pd.read_csv(tmp_path / "page" / "tables" / "changed.csv")
    assert list(changed["change"]) == ["lost"] * 8 + ["gained"] * 2
    assert set(changed.loc[changed["change"] == "lost", "second_prediction"]) == {"dunno"}
    differing = pd.read_csv(tmp_path / "page" / "tables" / "settings_that_differ.csv")
    assert list(differing["setting"]) == ["runner.quantization"]
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    finding = re.sub(r"<[^>]*>", "", re.search(r"(?s)<h1.*?</h1>", page)[0]).replace("\u00a0", " ")
    assert finding.startswith("No difference in accuracy is shown between bf16 and int8 (")
    assert "Noise of its own" in page


def test_runs_as_any_results_have_the_same_table(runs):
    """A margin, more than two runs and --fail-if go by the reader of all results."""
    folders = [runs / "before", runs / "after"]
    row = read_two_runs(*folders).tables(TableSettings())[0][0]

    compared = compare_results(folders, ResultColumns(label=("before", "after")))

    (result,) = compared.metrics.values()
    other = result.differences.iloc[0]
    cells = ["both", "reference_only", "model_only", "neither"]
    assert other[cells].tolist() == [
        row[n] for n in ("both", "first_only", "second_only", "neither")
    ]
    assert other["difference"] == pytest.approx(row["accuracy_difference"])
    assert other["n_clusters"] == row["n_clusters"]
    assert other["p_value"] == pytest.approx(row["mcnemar"]["p_value"])


def test_other_questions_are_refused_unless_the_common_ones_are_asked_for(runs, tmp_path, capsys):
    """A run of three facts has six questions less; --common compares the rest and says so."""
    data = load_redirectqa(rows_of())
    less = make_run(data, tmp_path / "less", limit=3)

    code = main(["compare", str(runs / "before"), str(less)])
    refused = capsys.readouterr().err
    assert main(["compare", str(runs / "before"), str(less), "--common"]) == 0

    assert code == 2
    assert "the runs did not ask the same questions: 6 are in" in refused
    assert "limit None and 3" in refused
    assert "compare the 18 that both asked with --common" in refused
    assert "note: compared are the 18 questions that both runs asked" in capsys.readouterr().out


def test_other_prompts_are_refused_and_the_setting_is_named(runs, tmp_path):
    """Without demonstrations every prompt is another one."""
    data = load_redirectqa(rows_of())
    other = make_run(data, tmp_path / "other", shots=0)

    with pytest.raises(RunMismatchError, match=r"24 of 24 prompts differ .*shots 1 and 0"):
        read_two_runs(runs / "before", other)


def test_another_decoding_is_refused(runs, tmp_path):
    """The prompts are the same, but answers may be longer."""
    data = load_redirectqa(rows_of())
    other = make_run(data, tmp_path / "other", max_new_tokens=30)

    with pytest.raises(RunMismatchError, match="decode differently"):
        read_two_runs(runs / "before", other)


def test_another_rule_is_refused_with_the_command_that_mends_it(runs, tmp_path):
    """Verdicts by two rules differ for the rules' sake."""
    data = load_redirectqa(rows_of())
    other = make_run(data, tmp_path / "other", rule="exact")

    with pytest.raises(RunMismatchError, match=r"rule 'popqa' and 'exact'.*consistency score"):
        read_two_runs(runs / "before", other)


def test_other_accepted_answers_are_refused(runs, tmp_path):
    """Data that was corrected in between judges the same answer in two ways."""
    rows = [row | {"object_aliases": [*row["object_aliases"], "more"]} for row in rows_of()]
    other = make_run(load_redirectqa(rows), tmp_path / "other")

    with pytest.raises(RunMismatchError, match="accepted answers of 24 questions differ"):
        read_two_runs(runs / "before", other)


def test_equal_models_are_told(runs, tmp_path):
    """Where no setting of the models differs, flips may be noise."""
    data = load_redirectqa(rows_of())
    one, two = (
        make_run(data, tmp_path / "one"),
        make_run(data, tmp_path / "two", forgotten=["Smith"]),
    )

    notes = read_two_runs(one, two).notes

    assert any("no difference between their models" in note for note in notes)


def test_verdicts_from_elsewhere_are_no_runs(runs, tmp_path):
    """A folder that `compare --out` wrote holds no prompts."""
    file = tmp_path / "verdicts.jsonl"
    write_rows = [{"fact_id": f"f{n}", "a": n % 2, "b": 1} for n in range(4)]
    file.write_text("".join(json.dumps(row) + "\n" for row in write_rows), encoding="utf-8")
    words = ["compare", str(file), "--first", "a", "--second", "b", "--out"]
    assert main([*words, str(tmp_path / "page")]) == 0

    with pytest.raises(DataError, match="holds verdicts without prompts"):
        read_two_runs(tmp_path / "page", tmp_path / "page")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{before}"], "all results are of one model"),
        (["{before}", "{after}", "--score", "x"], "--score say nothing of the folders of two runs"),
        (["{before}", "{after}", "--first", "x"], "name models of files and runs by --label"),
        (["{before}", "{after}", "--label", "x"], "--label names both runs; got x"),
        (["{before}", "nowhere.csv"], "nowhere.csv"),
        (["some.csv", "--first", "a"], "--second is required"),
        (["some.csv", "--first", "a", "--second", "b", "--common"], "--common is for the folders"),
        (["{before}", "{after}", "--margin", "0.1", "--common"], "--common is for the folders"),
    ],
)
def test_the_command_says_what_it_takes(runs, words, message, capsys):
    """A mistake in the command is named with its remedy."""
    given = [word.format(before=runs / "before", after=runs / "after") for word in words]

    assert main(["compare", *given]) == 2

    assert message in capsys.readouterr().err
