import datasets
import pytest
from surface_consistency_build.builders.slaq import slaq_builder
from surface_consistency_build.builders.slaq.slaq_builder import SlaqBuilder, build, source_hash

from surface_consistency.data.slaq import SLAQ_SAMPLE_PATH, load_slaq, load_slaq_sample
from surface_consistency.data.slaq_rows import SlaqRow, write_slaq_csv
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError

SAMPLE = load_slaq_sample()


@pytest.fixture
def source(tmp_path):
    """A folder with the release's file."""
    folder = tmp_path / "source"
    folder.mkdir()
    write_slaq_csv(folder / "test.csv", SAMPLE.topics)
    return folder


def test_build_agrees_with_the_loader(source, tmp_path):
    """What is built is what the loader reads, "NA" and "null" among it."""
    built = build(source, tmp_path / "cache")

    assert built.features == make_features(SlaqRow)
    assert load_slaq(built).topics == SAMPLE.topics
    assert "NaN" in built["Topic"][:]


def test_built_rows_can_be_published(source, tmp_path):
    """Parquet written from the build loads with `load_dataset` alone, as on the hub."""
    built = build(source, tmp_path / "cache")
    folder = tmp_path / "published"
    folder.mkdir()
    built.to_parquet(folder / "test.parquet")

    loaded = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "other"))

    assert loaded.features == built.features
    assert loaded.to_list() == built.to_list()
    assert load_slaq(folder).source.digest == SAMPLE.source.digest


@pytest.mark.parametrize("half", ["popular", "obscure"])
def test_configurations_are_the_halves(tmp_path, half):
    built = build(SLAQ_SAMPLE_PATH, tmp_path / "cache", config=half)

    expected = [topic.topic for topic in SAMPLE.topics if topic.popularity == half]
    assert built["Topic"][:] == expected
    assert len(expected) == 12


def test_build_names_its_cache_after_the_data_set(source, tmp_path):
    build(source, tmp_path / "cache")
    build(source, tmp_path / "cache", config="popular")

    folders = [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    assert [path.name for path in folders] == ["slaq"]
    assert len(list(folders[0].iterdir())) == 2


def test_builder_file_is_not_named_as_its_folder():
    """`load_dataset` refuses a folder that holds a script of its own name."""
    assert slaq_builder.__file__.endswith("slaq/slaq_builder.py")


def test_build_takes_unchanged_data_from_the_cache(source, tmp_path, monkeypatch):
    first = build(source, tmp_path / "cache")

    def refuse(*_, **__):
        raise AssertionError("read again")

    monkeypatch.setattr(slaq_builder, "load_slaq", refuse)

    assert build(source, tmp_path / "cache").to_list() == first.to_list()


def test_build_sees_a_changed_source_and_builder(source, tmp_path, monkeypatch):
    assert len(build(source, tmp_path / "cache")) == 24
    seen = [source_hash(source)]

    write_slaq_csv(source / "test.csv", SAMPLE.topics[:4])
    assert len(build(source, tmp_path / "cache")) == 4
    seen.append(source_hash(source))
    monkeypatch.setattr(SlaqBuilder, "VERSION", datasets.Version("9.0.0"))
    seen.append(source_hash(source))

    assert len(set(seen)) == 3


def test_build_rejects_a_broken_row(source, tmp_path):
    """A row that is no topic is told by file and line, where `datasets` would cast it."""
    path = source / "test.csv"
    path.write_text(path.read_text().replace("Christiaan Huygens,", ",", 1))

    with pytest.raises(RecordError, match=r"test\.csv:2: column 'ShortA1' is empty"):
        build(source, tmp_path / "cache")


def test_build_rejects_a_half_without_page_views(source, tmp_path):
    bare = [topic.model_copy(update={"pageviews": None}) for topic in SAMPLE.topics]
    write_slaq_csv(source / "test.csv", bare)

    with pytest.raises(DataError, match="no topic in the obscure half"):
        build(source, tmp_path / "cache", config="obscure")


def test_build_rejects_other_sources_and_configurations(source, tmp_path):
    with pytest.raises(SourceNotFoundError, match="no data files"):
        build(tmp_path / "nowhere", tmp_path / "cache")
    with pytest.raises(ValueError, match="nope"):
        build(source, tmp_path / "cache", config="nope")
