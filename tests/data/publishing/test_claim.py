"""A folder is written again for the same settings alone, and nothing of others is lost."""

import pytest

from surface_consistency.data.publishing import claim_folder, redirectqa_card, write_folder
from surface_consistency.errors import DataError, RunMismatchError

SETTINGS = {"triples": 10, "dumps": ["page.sql.gz"]}


@pytest.fixture
def written(subset, manifest, tmp_path):
    """A finished data set."""
    place = claim_folder(tmp_path / "out", SETTINGS, subsets=["v1.0.0"])
    write_folder(place, [subset(manifest=manifest)], card=redirectqa_card())
    return place


def test_claim_folder_takes_its_own_data_set_again(written):
    before = sorted(written.rglob("*"))

    assert claim_folder(written, SETTINGS, subsets=["v1.0.0"]) == written
    assert sorted(written.rglob("*")) == before


def test_claim_folder_rejects_other_settings_and_names_them(written):
    with pytest.raises(RunMismatchError, match=r"\(seed: null there, 1 now; triples: 10 there, 20"):
        claim_folder(written, SETTINGS | {"triples": 20, "seed": 1}, subsets=["v1.0.0"])

    claim_folder(written, SETTINGS | {"triples": 20}, subsets=["v1.0.0"], overwrite=True)
    claim_folder(written, SETTINGS | {"triples": 20}, subsets=["v1.0.0"])


def test_claim_folder_rejects_other_subsets(written):
    with pytest.raises(RunMismatchError, match="subsets: "):
        claim_folder(written, SETTINGS, subsets=["v2.0.0"])


def test_claim_folder_takes_an_unfinished_data_set_of_other_settings(written):
    (written / "README.md").unlink()

    claim_folder(written, {"triples": 20}, subsets=["v1.0.0"])

    (written / "README.md").write_text("", encoding="utf-8")
    with pytest.raises(RunMismatchError, match="triples"):
        claim_folder(written, SETTINGS, subsets=["v1.0.0"])


@pytest.mark.parametrize("name", ["v1.0.0/notes.parquet", "secret.env", "metadata/v1.0.0/a.txt"])
def test_claim_folder_rejects_foreign_files_beside_its_own(name, written):
    (written / name).write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=rf"no such build wrote \({name}\)"):
        claim_folder(written, SETTINGS, subsets=["v1.0.0"])


def test_claim_folder_rejects_a_readme_of_others(tmp_path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=r"no such build wrote \(README\.md\)"):
        claim_folder(tmp_path, SETTINGS, subsets=["v1.0.0"])
    assert (tmp_path / "README.md").read_text("utf-8") == "mine"


def test_claim_folder_rejects_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=r"out .*file cannot be a folder"):
        claim_folder(tmp_path / "file", SETTINGS, subsets=["a"])
    with pytest.raises(DataError, match=r"out .*below cannot be a folder"):
        claim_folder(tmp_path / "file" / "below", SETTINGS, subsets=["a"])
    with pytest.raises(DataError, match="out is empty; name a folder"):
        claim_folder("", SETTINGS, subsets=["a"])


def test_write_folder_keeps_foreign_files(written, subset):
    (written / "v1.0.0" / "notes.parquet").write_text("mine", encoding="utf-8")

    write_folder(written, [subset()], card=redirectqa_card())

    assert (written / "v1.0.0" / "notes.parquet").read_text("utf-8") == "mine"
