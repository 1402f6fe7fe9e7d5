"""A written folder is what `load_dataset` reads back; nothing of others in it is lost."""

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
from surface_consistency.errors import DataError, RunError
from surface_consistency.schemas import Message

CARD = redirectqa_card()


def load(folder, tmp_path, *names, **options):
    return datasets.load_dataset(str(folder), *names, cache_dir=str(tmp_path / "cache"), **options)


def test_write_folder_agrees_with_load_dataset(subset, built_rows, tmp_path):
    """Names such as "NA" and "null", nulls and empty lists come back as they were."""
    write_folder(tmp_path / "out", [subset()], card=CARD)

    loaded = load(tmp_path / "out", tmp_path, split="test")

    assert loaded.to_list() == [row.model_dump(mode="json") for row in built_rows]
    assert loaded.features == make_features(RedirectQARow)
    assert isinstance(loaded.features["object_aliases"], datasets.List)


def test_write_folder_keeps_configurations_apart(subset, built_rows, tmp_path):
    """Each configuration loads by its name, and the default one without."""
    subsets = [subset("v0.1.0", {"test": built_rows[:2]}), subset("v1.0.0")]
    write_folder(tmp_path / "out", subsets, card=CARD, default="v1.0.0")

    assert datasets.get_dataset_config_names(str(tmp_path / "out")) == ["v0.1.0", "v1.0.0"]
    assert len(load(tmp_path / "out", tmp_path, "v0.1.0", split="test")) == 2
    assert len(load(tmp_path / "out", tmp_path, split="test")) == 10


def test_write_folder_keeps_splits_apart(subset, built_rows, tmp_path):
    write_folder(
        tmp_path / "out",
        [subset(splits={"test": built_rows[:8], "validation": built_rows[8:]})],
        card=CARD,
    )

    loaded = load(tmp_path / "out", tmp_path)

    assert {name: len(part) for name, part in loaded.items()} == {"test": 8, "validation": 2}


def test_write_folder_shards_keep_the_order(subset, built_rows, tmp_path):
    written = write_folder(tmp_path / "out", [subset()], card=CARD, rows_per_shard=4)

    assert [path.name for path in written.files if path.suffix == ".parquet"] == [
        f"test-{number:05d}-of-00003.parquet" for number in range(3)
    ]
    loaded = load(tmp_path / "out", tmp_path, split="test")
    assert loaded.to_list() == [row.model_dump(mode="json") for row in built_rows]


def test_write_folder_removes_shards_of_an_earlier_version(subset, built_rows, tmp_path):
    """A shorter version is not read together with the shards of the longer one."""
    write_folder(tmp_path / "out", [subset()], card=CARD, rows_per_shard=2)
    write_folder(
        tmp_path / "out", [subset(splits={"test": built_rows[:3]})], card=CARD, rows_per_shard=2
    )

    assert len(load(tmp_path / "out", tmp_path, split="test")) == 3


def test_write_folder_is_deterministic(subset, tmp_path, manifest):
    """The same rows give the same bytes."""
    first, second = (
        write_folder(tmp_path / name, [subset(manifest=manifest)], card=CARD) for name in "ab"
    )

    assert first.files == second.files
    for name in first.files:
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes()


def test_write_folder_is_a_source_of_the_loader(subset, built_rows, tmp_path):
    """The loader reads the folder as it reads the hub repository, category table included."""
    write_folder(tmp_path / "out", [subset(splits={"test": built_rows[:6]})], card=CARD)

    data = load_redirectqa(tmp_path / "out")

    assert len(data.questions) == 6
    assert len(data.pairs) == 4


def test_write_folder_writes_attrition_and_build(subset, tmp_path, manifest):
    line = SimpleNamespace(
        step="labels", unit="triples", rows_in=9, rows_out=8, reason='no "label", none', removed=1
    )
    write_folder(tmp_path / "out", [subset(attrition=[line], manifest=manifest)], card=CARD)
    records = tmp_path / "out" / "metadata" / "v1.0.0"

    with (records / "attrition.csv").open(encoding="utf-8", newline="") as lines:
        assert list(csv.DictReader(lines)) == [
            {
                "step": "labels",
                "unit": "triples",
                "rows_in": "9",
                "rows_out": "8",
                "reason": 'no "label", none',
                "removed": "1",
            }
        ]
    assert json.loads((records / "build.json").read_text("utf-8")) == manifest.model_dump(
        mode="json"
    )


def test_write_folder_rejects_repeated_keys_and_leaves_no_card(subset, built_rows, tmp_path):
    with pytest.raises(DataError, match=r"rows 1 and 11 have the same key"):
        write_folder(
            tmp_path / "out", [subset(splits={"test": [*built_rows, built_rows[0]]})], card=CARD
        )
    assert not list((tmp_path / "out").rglob("*.parquet"))
    assert not (tmp_path / "out" / "README.md").exists()


def test_write_folder_rejects_rows_of_another_record(subset, built_rows, tmp_path):
    """A foreign row would be cast or dropped silently by `datasets`."""
    foreign = Message(role="user", content="hello")

    with pytest.raises(TypeError, match=r"'v1\.0\.0' has RedirectQARow rows, got Message"):
        write_folder(tmp_path / "out", [subset(splits={"test": [foreign]})], card=CARD)


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        ([], {}, ValueError, r"one or more distinct names, got \[\]"),
        (["a", "a"], {}, ValueError, r"distinct names, got \['a', 'a'\]"),
        (["a"], {"rows_per_shard": 0}, ValueError, "at least 1, got 0"),
        (["a/b"], {}, DataError, r"'a/b' cannot name a folder or split"),
        (["metadata"], {}, DataError, "no subset can be named 'metadata'"),
        (["a"], {"default": "b"}, ValueError, r"the default 'b' is none of the subsets \(a\)"),
    ],
)
def test_write_folder_rejects_bad_names(subset, tmp_path, names, options, error, message):
    with pytest.raises(error, match=message):
        write_folder(tmp_path / "out", [subset(name) for name in names], card=CARD, **options)


@pytest.mark.parametrize(
    ("splits", "message"), [({}, "has no splits"), ({"test": []}, "has no rows in split 'test'")]
)
def test_write_folder_rejects_nothing(subset, tmp_path, splits, message):
    with pytest.raises(DataError, match=message):
        write_folder(tmp_path / "out", [subset(splits=splits)], card=CARD)


def test_write_folder_rejects_split_names_that_patterns_confuse(subset, built_rows, tmp_path):
    """`test-*` would also match the shards of a split called "test-hard"."""
    with pytest.raises(DataError, match=r"'test-hard' cannot name a folder or split"):
        write_folder(tmp_path / "out", [subset(splits={"test-hard": built_rows})], card=CARD)


SETTINGS = {"triples": 10, "dumps": ["page.sql.gz"]}


@pytest.fixture
def written(subset, manifest, tmp_path):
    """A finished data set."""
    place = reserve_output_dir(tmp_path / "out", SETTINGS, subsets=["v1.0.0"])
    write_folder(place, [subset(manifest=manifest)], card=redirectqa_card())
    return place


def test_reserve_output_dir_takes_its_own_data_set_again(written):
    before = sorted(written.rglob("*"))

    assert reserve_output_dir(written, SETTINGS, subsets=["v1.0.0"]) == written
    assert sorted(written.rglob("*")) == before


def test_reserve_output_dir_rejects_other_settings_and_names_them(written):
    with pytest.raises(RunError, match=r"\(seed: null there, 1 now; triples: 10 there, 20"):
        reserve_output_dir(written, SETTINGS | {"triples": 20, "seed": 1}, subsets=["v1.0.0"])

    reserve_output_dir(written, SETTINGS | {"triples": 20}, subsets=["v1.0.0"], overwrite=True)
    reserve_output_dir(written, SETTINGS | {"triples": 20}, subsets=["v1.0.0"])


def test_reserve_output_dir_rejects_other_subsets(written):
    with pytest.raises(RunError, match="subsets: "):
        reserve_output_dir(written, SETTINGS, subsets=["v2.0.0"])


def test_reserve_output_dir_takes_an_unfinished_data_set_of_other_settings(written):
    (written / "README.md").unlink()

    reserve_output_dir(written, {"triples": 20}, subsets=["v1.0.0"])

    (written / "README.md").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="triples"):
        reserve_output_dir(written, SETTINGS, subsets=["v1.0.0"])


@pytest.mark.parametrize("name", ["v1.0.0/notes.parquet", "secret.env", "metadata/v1.0.0/a.txt"])
def test_reserve_output_dir_rejects_foreign_files_beside_its_own(name, written):
    (written / name).write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=rf"no such build wrote \({name}\)"):
        reserve_output_dir(written, SETTINGS, subsets=["v1.0.0"])


def test_reserve_output_dir_rejects_a_readme_of_others(tmp_path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=r"no such build wrote \(README\.md\)"):
        reserve_output_dir(tmp_path, SETTINGS, subsets=["v1.0.0"])
    assert (tmp_path / "README.md").read_text("utf-8") == "mine"


def test_reserve_output_dir_rejects_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")

    with pytest.raises(DataError, match=r"out .*file cannot be a folder"):
        reserve_output_dir(tmp_path / "file", SETTINGS, subsets=["a"])
    with pytest.raises(DataError, match=r"out .*below cannot be a folder"):
        reserve_output_dir(tmp_path / "file" / "below", SETTINGS, subsets=["a"])
    with pytest.raises(DataError, match="out is empty; name a folder"):
        reserve_output_dir("", SETTINGS, subsets=["a"])


def test_write_folder_keeps_foreign_files(written, subset):
    (written / "v1.0.0" / "notes.parquet").write_text("mine", encoding="utf-8")

    write_folder(written, [subset()], card=redirectqa_card())

    assert (written / "v1.0.0" / "notes.parquet").read_text("utf-8") == "mine"
