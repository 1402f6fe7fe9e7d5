"""What is exported is read back by the libraries that read it for others."""

import datasets
import huggingface_hub
import pytest
from huggingface_hub import DatasetCard, ModelCard

from surface_consistency.cli.main import main
from surface_consistency.engine.export import (
    export_dataset,
    export_eval_results,
    export_model_index,
)
from surface_consistency.errors import DataError, UnsupportedVersionError
from surface_consistency.metrics import paired_by
from surface_consistency.schemas import DataSource
from tests.made_runs import make_manifest, make_run, random_outcomes  # noqa: F401 - fixtures

yaml = pytest.importorskip("yaml")


@pytest.fixture
def two(make_run, make_manifest, random_outcomes):
    """Two scored runs, of which one lacks a verdict."""
    folders = []
    for seed, model in enumerate(("owner/a", "b|c")):
        outcomes = random_outcomes(60, seed=seed, model=model)
        outcomes["second_correct"] = outcomes["second_correct"].astype(object)
        outcomes.loc[3, "second_correct"] = None
        folders.append(make_run(str(seed), outcomes, make_manifest(model)))
    return folders


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")
def test_a_data_set_is_read_back_whole(two, tmp_path):
    """Columns, lists and missing verdicts; a folder of runs stands for them all."""
    out = tmp_path / "out"
    assert main(["export", str(tmp_path), "--to", "dataset", "--out", str(out)]) == 0

    rows = datasets.load_dataset(
        str(out), "outcomes", split="test", cache_dir=str(tmp_path / "cache")
    )
    assert len(rows) == 120
    assert set(rows["model"]) == {"owner/a", "b|c"}
    assert rows[3]["second_correct"] is None
    assert isinstance(rows[0]["categories"], list)
    table = paired_by(rows.to_pandas(), by=["model"])
    assert table["n"].tolist() == [59, 59]
    card = DatasetCard.load(out / "README.md")
    assert card.data.to_dict()["source_datasets"] == ["owner/rows"]
    assert "| `first_correct` | Verdict under the first condition" in card.text
    assert "- b|c: 60 pairs" in card.text


def test_a_model_card_holds_the_rates_with_their_intervals(two, tmp_path):
    """As the hub's own reader takes them."""
    words = ["export", *map(str, two), "--to", "model-index", "--out", str(tmp_path / "out")]
    assert main(words) == 0

    data = ModelCard.load(tmp_path / "out" / "owner-a" / "README.md").data
    assert data.model_name == "owner/a"
    found = {one.metric_type: one for one in data.eval_results}
    assert set(found) == {
        "consistency",
        "first_accuracy",
        "second_accuracy",
        "accuracy_difference",
    }
    one = found["consistency"]
    assert (one.dataset_type, one.dataset_revision, one.dataset_config) == (
        "owner/rows",
        "abc123",
        "original",
    )
    assert one.metric_args["low"] < one.metric_value < one.metric_args["high"]
    assert one.metric_args["n_pairs"] == 59
    assert found["first_accuracy"].metric_name == "Accuracy, title"


def test_evaluation_results_are_those_of_the_hub(two, tmp_path):
    """Written where the hub looks, with the revision of the data and where to see them."""
    parse_eval_result_entries = pytest.importorskip(
        "huggingface_hub", "1.4"
    ).parse_eval_result_entries
    out, url = tmp_path / "out", "https://example.org/page"
    words = ["export", str(two[0]), "--to", "eval-results", "--out", str(out), "--source-url", url]
    assert main(words) == 0

    (path,) = (out / "owner-a" / ".eval_results").iterdir()
    entries = parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert {entry.dataset_id for entry in entries} == {"owner/rows"}
    assert {entry.dataset_revision for entry in entries} == {"abc123"}
    assert entries[0].task_id == "redirectqa_original_consistency"
    assert entries[0].source_url == url
    assert "59 pairs in" in entries[0].notes
    assert "judged by by hand" in entries[0].notes


def test_a_client_without_evaluation_results_is_refused(two, tmp_path, monkeypatch):
    """Those of huggingface_hub came with 1.4."""
    monkeypatch.setitem(vars(huggingface_hub), "__version__", "1.3.7")
    monkeypatch.setattr(huggingface_hub, "__getattr__", _none_such, raising=False)
    for name in ("EvalResultEntry", "eval_result_entries_to_yaml"):
        vars(huggingface_hub).pop(name, None)

    with pytest.raises(UnsupportedVersionError, match=r"huggingface-hub >=1.4, and 1.3.7 is inst"):
        export_eval_results(two, tmp_path / "out")


def _none_such(name):
    raise AttributeError(name)


def test_results_on_data_of_ones_own_are_none_of_the_hub(
    make_run, make_manifest, random_outcomes, tmp_path
):
    source = DataSource(id="rows.jsonl", revision=None, digest="d" * 64, n_questions=40)
    run = make_run("run", random_outcomes(9, seed=1, model="m"), make_manifest("m", data=source))

    with pytest.raises(DataError, match=r"asked rows.jsonl, but evaluation results of the hub"):
        export_eval_results([run], tmp_path / "out")


@pytest.mark.parametrize("to", ["model-index", "eval-results"])
def test_results_on_the_sample_do_not_go_to_the_hub(
    to, make_run, make_manifest, random_outcomes, tmp_path, capsys
):
    """Its name has the form of a repository, and its numbers say nothing about a model."""
    source = DataSource(id="redirectqa-sample", revision=None, digest="d" * 64, n_questions=40)
    run = make_run("run", random_outcomes(9, seed=1, model="m"), make_manifest("m", data=source))

    assert main(["export", str(run), "--to", to, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "asked the sample that comes with the package (redirectqa-sample)" in told
    assert "run redirectqa on the data set" in told
    assert not (tmp_path / "out").exists()
    assert main(["export", str(run), "--to", "dataset", "--out", str(tmp_path / "out")]) == 0


def test_rows_from_memory_are_no_data_set_of_the_hub(
    make_run, make_manifest, random_outcomes, tmp_path
):
    """They are called after their type, such as "list"."""
    source = DataSource(id="list", revision=None, digest="d" * 64, n_questions=40)
    run = make_run("run", random_outcomes(9, seed=1, model="m"), make_manifest("m", data=source))

    with pytest.raises(DataError, match=r"asked list, but .* \(owner/name\), at a commit"):
        export_eval_results([run], tmp_path / "out")


def test_results_on_a_part_of_the_data_say_so(make_run, make_manifest, random_outcomes, tmp_path):
    manifest = make_manifest("m", settings={"limit": 9})
    run = make_run("run", random_outcomes(9, seed=1, model="m"), manifest)

    with pytest.raises(DataError, match=r"asked a part \(limit 9\) of owner/rows, but"):
        export_eval_results([run], tmp_path / "out")
    (card,) = export_model_index([run], tmp_path / "out")
    assert "owner/rows, a part (limit 9)" in card.read_text(encoding="utf-8")


def test_a_card_of_another_hand_stays(two, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").write_text("# Mine\n")

    with pytest.raises(DataError, match="was not written here and stays as it is"):
        export_dataset(two, tmp_path / "out")
    assert (tmp_path / "out" / "README.md").read_text() == "# Mine\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--to", "dataset", "--source-url", "x"], "--source-url is for --to eval-results"),
        (["--to", "dataset"], "give the folders of scored runs"),
    ],
)
def test_mistakes_in_the_command_are_told(more, message, tmp_path, capsys):
    assert main(["export", *more, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("export", [export_model_index, export_eval_results])
def test_a_model_called_dots_is_exported_within_the_folder(
    export, make_run, make_manifest, random_outcomes, tmp_path
):
    if export is export_eval_results:
        pytest.importorskip("huggingface_hub", "1.4")
    run = make_run("dots", random_outcomes(60, seed=1, model=".."), make_manifest(".."))

    [written] = export([run], tmp_path / "home" / "out")

    assert written.is_relative_to(tmp_path / "home" / "out" / "--")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["out"]


def test_a_link_in_the_place_of_a_folder_is_not_written_through(two, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    out.mkdir()
    for name in ("data", "owner-a"):
        (out / name).symlink_to(elsewhere)
    for export in (export_dataset, export_model_index):
        with pytest.raises(
            DataError, match=r"out/[\w-]+ is a symbolic link.*elsewhere.*remove the"
        ):
            export(two, out)
    assert not list(elsewhere.iterdir())
