"""Exported runs are read back by the library `datasets`."""

import datasets
import pytest
from huggingface_hub import DatasetCard

from surface_consistency.cli.main import main
from surface_consistency.engine.export import export_dataset
from surface_consistency.errors import DataError
from surface_consistency.metrics import paired_by
from tests.made_runs import make_manifest, make_run, random_outcomes  # noqa: F401 - fixtures


@pytest.fixture
def two_runs(make_run):
    """Two scored runs with a missing correctness label each."""
    folders = []
    for seed, model in enumerate(("owner/a", "b|c")):
        outcomes = random_outcomes(60, seed=seed, model=model)
        outcomes["second_correct"] = outcomes["second_correct"].astype(object)
        outcomes.loc[3, "second_correct"] = None
        folders.append(make_run(str(seed), outcomes, make_manifest(model)))
    return folders


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")
def test_exported_data_set_has_the_rows_types_and_card_of_the_runs(two_runs, tmp_path):
    """The argument is a folder of runs."""
    out = tmp_path / "out"
    assert main(["export", str(tmp_path), "--out", str(out)]) == 0

    cache = str(tmp_path / "cache")
    rows = datasets.load_dataset(str(out), "outcomes", split="test", cache_dir=cache)
    assert len(rows) == 120
    assert set(rows["model"]) == {"owner/a", "b|c"}
    assert rows[3]["second_correct"] is None
    assert isinstance(rows[0]["categories"], list)
    table = paired_by(rows.to_pandas(), by=["model"])
    assert table["n"].tolist() == [59, 59]
    card = DatasetCard.load(out / "README.md")
    assert card.data.to_dict()["source_datasets"] == ["owner/rows"]
    assert "| `first_correct` | Correctness label under the first condition" in card.text
    assert "- `b|c`: 60 pairs" in card.text


def test_a_card_not_written_by_export_is_not_overwritten(two_runs, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").write_text("# Mine\n")

    with pytest.raises(DataError, match=r"README\.md exists and is not listed as written"):
        export_dataset(two_runs, tmp_path / "out")
    assert (tmp_path / "out" / "README.md").read_text() == "# Mine\n"


def test_export_without_runs_is_rejected_with_remedy(tmp_path, capsys):
    assert main(["export", "--out", str(tmp_path / "out")]) == 2
    assert "pass the folders of scored runs" in capsys.readouterr().err


def test_export_does_not_write_through_a_symbolic_link(two_runs, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    out.mkdir()
    (out / "data").symlink_to(elsewhere)
    with pytest.raises(DataError, match=r"out/data is a symbolic link.*elsewhere.*remove the"):
        export_dataset(two_runs, out)
    assert not list(elsewhere.iterdir())
