"""RedirectQA from dumps as a `datasets` builder, on the miniature wiki."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest
from surface_consistency_build.builders import common as builders
from surface_consistency_build.builders.redirectqa import dumps_builder
from surface_consistency_build.builders.redirectqa.dumps_builder import (
    RedirectQADumpsBuilder,
    build_from_dumps,
)
from surface_consistency_build.cards.dataset_build import write_redirectqa
from surface_consistency_build.wikimedia.construction.rows import BuiltRow

from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def rows(dumps, cache):
    return build_from_dumps(dumps, cache)


@pytest.fixture
def other_dumps(dumps, tmp_path):
    """A copy of the dumps, to be changed."""
    ignored = shutil.ignore_patterns("*.py", "*.md", "*.tsv", "__pycache__")
    return Path(shutil.copytree(dumps, tmp_path / "dumps", ignore=ignored))


def test_build_gives_the_rows_of_the_construction(rows):
    assert len(rows) == 286
    assert rows.features == make_features(BuiltRow)


def test_build_takes_unchanged_dumps_from_the_cache(dumps, cache, rows, monkeypatch):
    assert len(build_from_dumps(dumps, cache, triples=10)) < len(rows)
    monkeypatch.setattr(dumps_builder.RedirectQADumpsBuilder, "run", None)

    assert build_from_dumps(dumps, cache).to_list() == rows.to_list()
    assert {"redirectqa", "dumps-work"} <= {path.name for path in cache.iterdir()}


def test_build_sees_changed_dumps(other_dumps, tmp_path):
    """Changed dumps are built again, where `datasets` alone returns the stale rows."""
    before = build_from_dumps(other_dumps, tmp_path / "cache")
    (other_dumps / "pageviews-202511-user.bz2").unlink()
    after = build_from_dumps(other_dumps, tmp_path / "cache")

    assert len(before) == 286
    assert set(before["subject_wiki_title"]) - set(after["subject_wiki_title"]) == {"Tolven Reach"}


def test_builder_hash_names_dumps_settings_and_versions(dumps, other_dumps, tmp_path, monkeypatch):
    """Not the folder that the dumps lie in."""

    def hash_of(folder, **options):
        return dumps_builder.dumps_builder(folder, tmp_path, **options).hash

    seen = [hash_of(dumps)]
    assert hash_of(other_dumps) == seen[0]

    seen += [hash_of(dumps, name="v0.1.0"), hash_of(dumps, seed=1)]
    monkeypatch.setattr(builders, "__version__", "99.0")
    seen.append(hash_of(dumps))
    monkeypatch.setattr(RedirectQADumpsBuilder, "VERSION", datasets.Version("9.0.0"))
    seen.append(hash_of(dumps))
    renamed = other_dumps / "enwiki-20260101-page.sql.gz"
    renamed.write_bytes(renamed.read_bytes() + b"\x00")
    seen.append(hash_of(other_dumps))

    assert len(set(seen)) == 6


def test_builder_without_hash_is_refused(dumps, tmp_path):
    """Its cache would outlive a change of the dumps."""
    builder = RedirectQADumpsBuilder(cache_dir=str(tmp_path), data_dir=str(dumps))

    with pytest.raises(ValueError, match="RedirectQADumpsBuilder has no hash, so its cache"):
        builder.download_and_prepare()


def test_build_rejects_a_truncated_dump_by_name(other_dumps, tmp_path):
    """The error of the reader comes through, not the one that `datasets` wraps it in."""
    path = other_dumps / "enwiki-20260101-redirect.sql.gz"
    path.write_bytes(path.read_bytes()[:900])

    with pytest.raises(DataError, match=r"redirect\.sql\.gz"):
        build_from_dumps(other_dumps, tmp_path / "cache")


def test_keyed_rows_rejects_rows_with_one_key(rows):
    """Two rows under one key are refused, where `datasets` keeps both."""
    made = [BuiltRow.model_validate(row) for row in rows]

    assert len(list(builders.keyed_rows(SimpleNamespace(rows=lambda: made)))) == len(made)
    with pytest.raises(DataError, match=r"two rows have the key \["):
        list(builders.keyed_rows(SimpleNamespace(rows=lambda: [*made, made[0]])))


RELEASES = [
    config.settings()
    for config in RedirectQADumpsBuilder.BUILDER_CONFIGS
    if config.name in {"v1.0.0", "v0.1.0"}
]


@pytest.fixture(scope="module")
def exported(dumps, cache, tmp_path_factory):
    """Both releases in one folder."""
    out = tmp_path_factory.mktemp("exported")
    return write_redirectqa(dumps, out, builds=RELEASES, work=cache)


@pytest.mark.parametrize("name", ["v1.0.0", "v0.1.0"])
def test_export_agrees_with_the_builder(exported, dumps, cache, tmp_path, name):
    """A round trip through the folder gives the rows that were built."""
    where = {"split": "test", "cache_dir": str(tmp_path)}
    loaded = datasets.load_dataset(str(exported.folder), name, **where)

    built = build_from_dumps(dumps, cache, name=name)
    assert loaded.to_list() == built.to_list()
    assert loaded.features == built.features


def test_export_records_counts_attrition_and_dumps_by_their_checksums(exported, dumps):
    card = (exported.folder / "README.md").read_text("utf-8")
    content = (exported.folder / "metadata" / "v1.0.0" / "build.json").read_text("utf-8")
    manifest = json.loads(content)

    assert "| test | 286 | 49 | 49 | 94 |" in card
    assert "| sample | triples | 55 | 53 |" in card
    assert "| pageviews-202511-user.bz2 | 202511 |" in card
    assert (manifest["seed"], manifest["options"]["triples"]) == (0, 500_000)
    names = {source["name"] for source in manifest["sources"]}
    assert names >= {"enwiki-20260101-redirect.sql.gz", "wikidata-20260101-all.json.gz"}
    for source in manifest["sources"]:
        assert source["n_bytes"] == (dumps / source["name"]).stat().st_size
        assert len(source["sha1"]) == 40
    assert str(dumps) not in content
    assert str(exported.folder) not in card
