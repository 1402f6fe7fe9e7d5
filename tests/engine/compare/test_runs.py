"""Comparison of runs by question: planted losses and gains are counted."""

import json
import shutil

import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.measures import accuracy
from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.compare.runs import read_runs
from surface_consistency.engine.compare.verdicts import import_verdicts
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import RuleScoring
from surface_consistency.errors import DataError, RunError
from surface_consistency.metrics import paired_table
from surface_consistency.models import FakeRunner
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.made_rows import rows_of


class Quantised(FakeRunner):
    """A runner with a quantization setting that does not answer questions on given names."""

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
    """Two runs: the second fails on married names, and the first on one misspelled name."""
    home, data = tmp_path_factory.mktemp("runs"), load_redirectqa(rows_of())
    for name, forgotten in (("before", ["Cat Dowy"]), ("after", ["Smith"])):
        make_run(data, home / name, bits=name, forgotten=forgotten)
    return home


def make_run(data, out, *, bits="x", forgotten=(), rule="popqa", **settings):
    """Run and score without writing a page."""
    chosen = RedirectQASettings(**{"template": "both", "repeat": 4} | settings)
    runner = Quantised(data, bits, forgotten)
    options = {"model": "m", "settings": chosen, "progress": False}
    folder = run_study(RedirectQAStudy(), data, runner, out, **options)
    score_run(folder, scoring=RuleScoring(rule=rule, agreement=False))
    return out


def read(*folders, **columns):
    return read_runs(folders, ResultColumns(**columns))


def side_by_side(read):
    frame = read.results.frame
    wide = frame.pivot(index="item", columns="model", values="score").astype(bool)
    before, after = (wide[label] for label in read.runs)
    described = frame.drop_duplicates("item").set_index("item")
    return described.assign(before=before, after=after)


def test_lost_and_gained_answers_are_counted_by_question(runs):
    """Eight questions on married names are lost, two on a misspelling gained, each once."""
    frame = side_by_side(read(runs / "before", runs / "after"))

    assert paired_table(frame["before"], frame["after"]).counts == (14, 8, 2, 0)
    lost = frame[frame["before"] & ~frame["after"]]
    assert lost["question"].str.contains("Smith").all()
    assert lost["categories"].tolist() == [["Redirects_from_married_names"]] * 8
    assert lost["condition"].tolist() == [["redirect"]] * 8
    # Titles have a relation and a template, but no category.
    titles = frame[frame["condition"].map(tuple) == ("canonical",)]
    assert len(titles) == 8
    assert set(titles["categories"].map(tuple)) == set(titles["types"].map(tuple)) == {()}
    assert set(titles["relation"].map(tuple)) == {("father",), ("sport",)}


def test_runs_are_clustered_by_subject_unless_another_column_is_given(runs):
    """The default is the first cluster column that the study declares."""
    folders = runs / "before", runs / "after"
    by_subject, by_relation = read(*folders), read(*folders, cluster=("relation",))

    assert by_subject.cluster == "subject_id"
    assert by_subject.cluster_note == "subjects, as defined by the study"
    assert set(by_subject.results.frame["subject_id"]) == {"Q1", "Q2", "Q3", "Q4"}
    assert by_relation.cluster == "relation"
    with pytest.raises(ValueError, match="`cluster` must be one of subject_id, item, relation"):
        read(*folders, cluster=("nonsense",))


def test_the_accuracy_of_a_run_is_clustered_as_its_study_declares(runs):
    """A subject can have two facts, so that items would be smaller clusters."""
    frame = read_results([runs / "before"]).frame
    expected = accuracy(frame, item="item", score="score", cluster="subject_id").to_frame()

    shown = accuracy(str(runs / "before"), score="score").to_frame()

    assert frame["subject_id"].nunique() < frame["item"].nunique()
    pd.testing.assert_frame_equal(shown, expected)


def test_the_page_has_a_table_of_each_condition_and_the_settings_of_the_models(
    runs, tmp_path, capsys
):
    words = [
        "compare",
        str(runs / "before"),
        str(runs / "after"),
        "--wide",
        "--names",
        "bf16",
        "int8",
    ]

    assert main([*words, "--out", str(tmp_path / "page")]) == 0

    capsys.readouterr()
    html = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "quantization" in html
    assert "No noise floor" not in html

    assert (
        main([*words[:3], "--names", "bf16", "int8", "--by", "condition", "--json", "--wide"]) == 0
    )
    groups = pd.DataFrame(json.loads(capsys.readouterr().out)["rows"][1:])
    table = pd.read_csv(tmp_path / "page" / "tables" / "by_condition.csv")
    numbers = groups.columns.intersection(table.columns).drop(["not_inferred", "unlike_overall"])
    assert {"negative_flip_rate_high", "lost_of_known", "p_value_holm"} < {*numbers}
    found = groups[numbers].astype(table[numbers].dtypes)
    pd.testing.assert_frame_equal(found, table[numbers])
    assert table.set_index("group").loc["redirect", "lost_of_known"] == 8 / 14


def test_each_run_in_a_folder_of_runs_is_read_as_a_model(runs):
    results = read_results(runs)

    assert set(results.frame["model"]) == {"m (before)", "m (after)"}
    wrong = results.frame[results.frame["score"] == 0].iloc[0]
    assert (wrong["prediction"], wrong["task"]) == ("dunno", "redirectqa")
    assert wrong["references"]
    assert "fact" in results.clusters


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (3, r"an earlier version .*\(manifest version 3, this package reads 4\); run again"),
        (5, r"a newer version .*\(manifest version 5, this package reads 4\); update"),
    ],
)
def test_a_run_folder_of_another_version_is_rejected(runs, tmp_path, version, message):
    path = shutil.copytree(runs / "after", tmp_path / "run") / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": version}))

    with pytest.raises(DataError, match=message):
        read_results(tmp_path / "run")


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_comparison_of_several_runs_rejects_a_run_with_different_prompts(runs, tmp_path):
    data = load_redirectqa(rows_of())
    third = make_run(data, tmp_path / "third", bits="4")
    folders = [runs / "before", runs / "after", third]

    result = compare_results(folders).metrics["correct"]

    assert len(result.differences) == 3
    make_run(data, tmp_path / "other", shots=0)
    with pytest.raises(RunError, match="prompts differ between the runs"):
        compare_results([*folders, tmp_path / "other"])


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_questions_of_only_one_run_are_excluded_and_counted(runs, tmp_path, capsys):
    less = make_run(load_redirectqa(rows_of()), tmp_path / "less", limit=3)

    assert main(["compare", str(runs / "before"), str(less)]) == 0

    assert "6 of 24 items lack a score" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shots": 0}, r"24 of 24 prompts differ .*shots 1 and 0"),
        ({"max_new_tokens": 30}, "decode differently"),
        ({"rule": "exact"}, r"rule 'popqa' and 'exact'.*consistency score"),
    ],
)
def test_runs_with_different_settings_are_rejected(runs, tmp_path, settings, message):
    other = make_run(load_redirectqa(rows_of()), tmp_path / "other", **settings)

    with pytest.raises(RunError, match=message):
        read(runs / "before", other)


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_runs_whose_scoring_differs_only_in_agreement_checks_are_accepted(runs, tmp_path):
    other = make_run(load_redirectqa(rows_of()), tmp_path / "other")
    score_run(RunFolder(other), scoring=RuleScoring(agreement=True))

    assert len(read(runs / "before", other).results.frame)


def test_runs_with_different_accepted_answers_are_rejected(runs, tmp_path):
    """Corrected data can score the same answer differently."""
    rows = [row | {"object_aliases": [*row["object_aliases"], "more"]} for row in rows_of()]
    other = make_run(load_redirectqa(rows), tmp_path / "other")

    with pytest.raises(DataError, match=r"do not contain the same items.*24 such items"):
        read(runs / "before", other)


def test_page_of_runs_rescored_by_another_rule_omits_the_stored_noise_floor(runs, tmp_path, capsys):
    """The stored noise floor applies to the stored scores, not to those of the other rule."""
    folders = [str(runs / name) for name in ("before", "after")]

    assert main(["compare", *folders, "--rule", "exact", "--out", str(tmp_path / "page")]) == 0

    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "scored by</th><td>exact" in page
    assert "judged_by:popqa" not in page
    assert "No noise floor" in page
    assert "asked again differs from itself" not in capsys.readouterr().out


def test_runs_with_the_same_model_settings_are_reported(tmp_path):
    """If no model setting differs, flips can be noise."""
    data = load_redirectqa(rows_of())
    one = make_run(data, tmp_path / "one")
    two = make_run(data, tmp_path / "two", forgotten=["Smith"])

    assert any("describe the same model" in note for note in read(one, two).notes)


def test_folders_of_imported_correctness_labels_are_rejected(tmp_path):
    """A folder that `import_verdicts` wrote contains no prompts."""
    rows = {"item": range(4), "pair": range(4), "first_correct": [0, 1] * 2, "second_correct": 1}
    frame = pd.DataFrame(rows)
    import_verdicts(frame, tmp_path / "page", origin="v.csv", first="a", second="b")

    with pytest.raises(DataError, match="contains correctness labels without prompts"):
        read(tmp_path / "page", tmp_path / "page")


def test_digest_of_imported_correctness_labels_depends_on_their_content_alone(tmp_path):
    digests = []
    for number, second in enumerate(([1, 1], [1, 1], [1, 0])):
        rows = {"item": [1, 2], "pair": [1, 2], "first_correct": [0, 1], "second_correct": second}
        out = tmp_path / str(number)
        made = import_verdicts(pd.DataFrame(rows), out, origin="v", first="a", second="b")
        digests.append(json.loads(made.manifest.read_text("utf-8"))["data"]["digest"])

    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{before}", "--fail-if", "worse"], "all results are of one model"),
        (["{before}", "{after}", "--first", "x"], "use `surface-consistency paired`"),
        (["{before}", "{after}", "--names", "x"], "--names gives x for 2 files or tables; give"),
        (["{before}", "{after}", "--names", "x", "x"], "--names must be distinct; got x, x"),
        (
            ["{before}", "{after}", "--item", "x", "--score", "y"],
            "--item, --score cannot be set for runs",
        ),
    ],
)
def test_invalid_options_for_runs_are_rejected_with_a_message(runs, words, message, capsys):
    given = [word.format(before=runs / "before", after=runs / "after") for word in words]

    assert main(["compare", *given]) == 2

    assert message in capsys.readouterr().err


def test_compare_with_one_run_prints_its_accuracy_by_group(runs, capsys):
    assert main(["compare", str(runs / "before"), "--by", "condition"]) == 0

    printed = capsys.readouterr().out
    assert "The accuracy (correct) of " in printed
    assert "condition" in printed
