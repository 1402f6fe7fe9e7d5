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


@pytest.mark.parametrize("half", ["popular", "obscure"])
def test_configurations_are_the_halves(tmp_path, half):
    built = build(SLAQ_SAMPLE_PATH, tmp_path / "cache", config=half)

    expected = [topic.topic for topic in SAMPLE.topics if topic.popularity == half]
    assert built["Topic"][:] == expected
    assert len(expected) == 12


def test_only_a_changed_source_or_builder_is_built_anew(source, tmp_path, monkeypatch):
    """What source_hash reads of the source is tested beside the builder of RedirectQA."""
    cache = tmp_path / "cache"
    assert len(build(source, cache)) == 24
    write_slaq_csv(source / "test.csv", SAMPLE.topics[:4])
    changed = build(source, cache).to_list()
    assert len(changed) == 4
    before = source_hash(source)
    with monkeypatch.context() as patch:
        patch.setattr(SlaqBuilder, "VERSION", datasets.Version("9.0.0"))
        assert source_hash(source) != before
    monkeypatch.setattr(slaq_builder, "load_slaq", None)

    assert build(source, cache).to_list() == changed
    assert [path.name for path in cache.iterdir() if path.is_dir()] == ["slaq"]


def test_build_rejects_other_sources_and_configurations(source, tmp_path):
    """A row that is no topic is told by file and line, where `datasets` would cast it."""
    path, cache = source / "test.csv", tmp_path / "cache"
    with pytest.raises(SourceNotFoundError, match="no data files"):
        build(tmp_path / "nowhere", cache)
    with pytest.raises(ValueError, match="nope"):
        build(source, cache, config="nope")
    bare = [topic.model_copy(update={"pageviews": None}) for topic in SAMPLE.topics]
    write_slaq_csv(path, bare)
    with pytest.raises(DataError, match="no topic in the obscure half"):
        build(source, cache, config="obscure")
    path.write_text(path.read_text().replace("Christiaan Huygens,", ",", 1))
    with pytest.raises(RecordError, match=r"test\.csv:2: column 'ShortA1' is empty"):
        build(source, cache)
