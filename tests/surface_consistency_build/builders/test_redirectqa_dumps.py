"""RedirectQA from dumps, on the miniature wiki."""

import json
import shutil
from pathlib import Path

import datasets
import pytest
from surface_consistency_build import build_dataset
from surface_consistency_build.wikimedia.construction.rows import BuiltRow

from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, RunError

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def built(dumps, tmp_path_factory):
    """The folder of the default configuration."""
    out = tmp_path_factory.mktemp("built") / "out"
    build_dataset("redirectqa", dumps, out)
    return out


@pytest.fixture
def other_dumps(dumps, tmp_path):
    """A copy of the dumps, to be changed."""
    ignored = shutil.ignore_patterns("*.py", "*.md", "*.tsv", "__pycache__")
    return Path(shutil.copytree(dumps, tmp_path / "dumps", ignore=ignored))


def rows_of(folder, *names):
    """Load the rows of a folder."""
    return datasets.load_dataset(str(folder), *names, split="test")


def test_build_gives_the_rows_of_the_construction(built):
    rows = rows_of(built, "v1.0.0")

    assert len(rows) == 286
    assert rows.features == make_features(BuiltRow)


def test_configurations_are_the_releases(dumps, tmp_path):
    """The first release has one wording."""
    build_dataset("redirectqa", dumps, tmp_path / "out", config="v0.1.0", triples=10)

    assert rows_of(tmp_path / "out", "v0.1.0").unique("template") == ["original"]


def test_name_of_a_wiki_is_the_name_of_its_configuration(dumps, tmp_path):
    build_dataset("redirectqa", dumps, tmp_path / "out", wiki="enwiki", route="uncategorised")

    assert len(rows_of(tmp_path / "out", "enwiki")) > 0
    with pytest.raises(ValueError, match=r"config and wiki both name a wiki; .*v1\.0\.0, v0\.1\.0"):
        build_dataset("redirectqa", dumps, tmp_path / "o", config="v0.1.0", wiki="enwiki")


def test_build_detects_changed_dumps(built, other_dumps, tmp_path):
    build_dataset("redirectqa", other_dumps, tmp_path / "out")
    (other_dumps / "pageviews-202511-user.bz2").unlink()

    with pytest.raises(RunError, match="dumps: "):
        build_dataset("redirectqa", other_dumps, tmp_path / "out")
    build_dataset("redirectqa", other_dumps, tmp_path / "out", overwrite=True)
    before, after = (
        set(rows_of(folder)["subject_wiki_title"]) for folder in (built, tmp_path / "out")
    )
    assert before - after == {"Tolven Reach"}


def test_error_for_a_truncated_dump_contains_its_name(other_dumps, tmp_path):
    path = other_dumps / "enwiki-20260101-redirect.sql.gz"
    path.write_bytes(path.read_bytes()[:900])

    with pytest.raises(DataError, match=r"redirect\.sql\.gz"):
        build_dataset("redirectqa", other_dumps, tmp_path / "out")


def test_build_records_counts_attrition_and_dumps_by_their_checksums(built, dumps):
    card = (built / "README.md").read_text("utf-8")
    content = (built / "metadata" / "v1.0.0" / "build.json").read_text("utf-8")
    manifest = json.loads(content)

    assert "| test | 286 | 49 | 49 | 94 |" in card
    assert "| sample | triples | 55 | 53 |" in card
    assert "| `pageviews-202511-user.bz2` | 202511 |" in card
    assert (manifest["seed"], manifest["options"]["triples"]) == (0, 500_000)
    names = {source["name"] for source in manifest["sources"]}
    assert names >= {"enwiki-20260101-redirect.sql.gz", "wikidata-20260101-all.json.gz"}
    for source in manifest["sources"]:
        assert source["n_bytes"] == (dumps / source["name"]).stat().st_size
        assert len(source["sha1"]) == 40
    assert str(dumps) not in content
    assert str(built) not in card
