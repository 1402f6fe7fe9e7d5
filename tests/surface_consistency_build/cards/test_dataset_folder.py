"""Test that `load_dataset` reads a written folder, and that foreign files are kept."""

import csv
import json
from types import SimpleNamespace

import datasets
import pytest
from surface_consistency_build.cards.dataset_card import redirectqa_card
from surface_consistency_build.cards.dataset_folder import reserve_output_dir, write_folder

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.redirectqa_release import RedirectQARow
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, DataWarning, RunError

CARD = redirectqa_card()


def load(folder, tmp_path, *names, **options):
    return datasets.load_dataset(str(folder), *names, cache_dir=str(tmp_path / "cache"), **options)


def test_write_folder_separates_configurations_and_splits(subset, built_rows, tmp_path):
    """Each configuration is loaded by its name, and the default one without a name."""
    first = {"test": built_rows[:2], "validation": built_rows[2:5]}
    subsets = [subset("v0.1.0", first), subset("v1.0.0")]
    write_folder(tmp_path / "out", subsets, card=CARD, default="v1.0.0")

    assert datasets.get_dataset_config_names(str(tmp_path / "out")) == ["v0.1.0", "v1.0.0"]
    loaded = load(tmp_path / "out", tmp_path, "v0.1.0")
    assert {name: len(part) for name, part in loaded.items()} == {"test": 2, "validation": 3}
    assert len(load(tmp_path / "out", tmp_path, split="test")) == 10


def test_shards_of_write_folder_keep_the_order(subset, built_rows, tmp_path):
    """Names such as "NA" and "null", nulls and empty lists are read back unchanged."""
    written = write_folder(tmp_path / "out", [subset()], card=CARD, rows_per_shard=4)

    assert [path.name for path in written.files if path.suffix == ".parquet"] == [
        f"test-{number:05d}-of-00003.parquet" for number in range(3)
    ]
    loaded = load(tmp_path / "out", tmp_path, split="test")
    assert loaded.to_list() == built_rows
    assert loaded.features == make_features(RedirectQARow)
    assert isinstance(loaded.features["object_aliases"], datasets.List)
    with pytest.warns(DataWarning, match="no category"):
        assert len(load_redirectqa(tmp_path / "out").pairs) == 6
    # A shorter version is not read together with the shards of the longer one.
    shorter = subset(splits={"test": built_rows[:3]})
    write_folder(tmp_path / "out", [shorter], card=CARD, rows_per_shard=2)
    assert len(load(tmp_path / "out", tmp_path / "again", split="test")) == 3


def test_write_folder_is_deterministic(subset, tmp_path, manifest):
    """The same rows give the same bytes."""
    first, second = (
        write_folder(tmp_path / name, [subset(manifest=manifest)], card=CARD) for name in "ab"
    )

    assert first.files == second.files
    for name in first.files:
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes()


def test_write_folder_writes_attrition_and_build(subset, tmp_path, manifest):
    line = {"step": "labels", "unit": "triples", "rows_in": 9, "rows_out": 8}
    line |= {"reason": 'no "label", none', "removed": 1}
    attrition = [SimpleNamespace(**line)]
    write_folder(tmp_path / "out", [subset(attrition=attrition, manifest=manifest)], card=CARD)
    records = tmp_path / "out" / "metadata" / "v1.0.0"

    with (records / "attrition.csv").open(encoding="utf-8", newline="") as lines:
        assert list(csv.DictReader(lines)) == [{key: str(cell) for key, cell in line.items()}]
    build = json.loads((records / "build.json").read_text("utf-8"))
    assert build == manifest.model_dump(mode="json")


@pytest.mark.parametrize(
    ("splits", "error", "message"),
    [
        (lambda _: {}, DataError, "has no splits"),
        (lambda _: {"test": []}, DataError, "has no rows in split 'test'"),
        # `test-*` would also match the shards of a split called "test-hard".
        (lambda rows: {"test-hard": rows}, DataError, "'test-hard' is not valid as the name"),
        (lambda rows: {"test": [*rows, rows[0]]}, DataError, "rows 1 and 11 have the same key"),
        (
            lambda rows: {"test": [rows[0] | {"more": 1}]},
            DataError,
            r"'v1\.0\.0': .* missing or additional columns: more; its columns are triplet_id",
        ),
        (
            lambda rows: {"test": [rows[0] | {"triplet_id": "one"}]},
            DataError,
            r"'v1\.0\.0': a cell does not have the type of its column; convert it: .*'one'",
        ),
    ],
)
def test_write_folder_rejects_invalid_rows_and_writes_no_card(
    subset, built_rows, tmp_path, splits, error, message
):
    with pytest.raises(error, match=message):
        write_folder(tmp_path / "out", [subset(splits=splits(built_rows))], card=CARD)
    assert not list(tmp_path.rglob("*.parquet")) + list(tmp_path.rglob("README.md"))


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        ([], {}, ValueError, r"one or more distinct names, got \[\]"),
        (["a", "a"], {}, ValueError, r"distinct names, got \['a', 'a'\]"),
        (["a"], {"rows_per_shard": 0}, ValueError, "at least 1, got 0"),
        (["a/b"], {}, DataError, r"'a/b' is not valid as the name of a folder or split"),
        (["metadata"], {}, DataError, "a subset cannot be named 'metadata'"),
        (["a"], {"default": "b"}, ValueError, r"the default 'b' is not one of the subsets \(a\)"),
    ],
)
def test_write_folder_rejects_invalid_names(subset, tmp_path, names, options, error, message):
    with pytest.raises(error, match=message):
        write_folder(tmp_path / "out", [subset(name) for name in names], card=CARD, **options)


SETTINGS = {"triples": 10, "dumps": ["page.sql.gz"]}


@pytest.fixture
def written(subset, manifest, tmp_path):
    """A finished data set."""
    place = reserve_output_dir(tmp_path / "out", SETTINGS, subsets=["v1.0.0"])
    write_folder(place, [subset(manifest=manifest)], card=redirectqa_card())
    return place


def test_reserve_output_dir_rejects_other_settings_with_both_values(written):
    before = sorted(written.rglob("*"))
    assert reserve_output_dir(written, SETTINGS, subsets=["v1.0.0"]) == written
    assert sorted(written.rglob("*")) == before
    with pytest.raises(RunError, match=r"\(seed: null there, 1 now; triples: 10 there, 20"):
        reserve_output_dir(written, SETTINGS | {"triples": 20, "seed": 1}, subsets=["v1.0.0"])
    with pytest.raises(RunError, match="subsets: "):
        reserve_output_dir(written, SETTINGS, subsets=["v2.0.0"])

    reserve_output_dir(written, SETTINGS | {"triples": 20}, subsets=["v1.0.0"], overwrite=True)
    reserve_output_dir(written, SETTINGS | {"triples": 20}, subsets=["v1.0.0"])


def test_reserve_output_dir_accepts_an_unfinished_data_set_of_other_settings(written):
    (written / "README.md").unlink()

    reserve_output_dir(written, {"triples": 20}, subsets=["v1.0.0"])

    # A card, even an empty one, makes it a finished data set.
    (written / "README.md").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="triples: 20 there, 10 now"):
        reserve_output_dir(written, SETTINGS, subsets=["v1.0.0"])


@pytest.mark.parametrize("name", ["v1.0.0/notes.parquet", "secret.env", "metadata/v1.0.0/a.txt"])
def test_reserve_output_dir_rejects_foreign_files_and_keeps_them(name, written, subset, tmp_path):
    (written / name).write_text("mine", encoding="utf-8")
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=rf"files of other origin \({name}\)"):
        reserve_output_dir(written, SETTINGS, subsets=["v1.0.0"])
    write_folder(written, [subset()], card=redirectqa_card())
    assert (written / name).read_text("utf-8") == "mine"
    with pytest.raises(DataError, match=r"files of other origin \(README\.md"):
        reserve_output_dir(tmp_path, SETTINGS, subsets=["v1.0.0"])
    assert (tmp_path / "README.md").read_text("utf-8") == "mine"


def test_reserve_output_dir_rejects_paths_of_files_and_empty_paths(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=r"out .*file cannot be a folder"):
        reserve_output_dir(tmp_path / "file", SETTINGS, subsets=["a"])
    with pytest.raises(DataError, match=r"out .*below cannot be a folder"):
        reserve_output_dir(tmp_path / "file" / "below", SETTINGS, subsets=["a"])
    with pytest.raises(DataError, match="out is empty; name a folder"):
        reserve_output_dir("", SETTINGS, subsets=["a"])
