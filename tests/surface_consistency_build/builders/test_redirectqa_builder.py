import datasets
import pytest
from surface_consistency_build.builders.redirectqa import redirectqa_builder
from surface_consistency_build.builders.redirectqa.redirectqa_builder import (
    RedirectQABuilder,
    build,
    source_hash,
)

from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.data.redirectqa_release import RedirectQARow
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError


@pytest.fixture
def source(tmp_path, rows, write_lines):
    """A folder in the hub's layout."""
    write_lines(tmp_path / "source" / "test.jsonl", rows)
    return tmp_path / "source"


def test_build_agrees_with_the_loader(source, tmp_path, rows):
    """What is built is what the loader reads, in the release's columns."""
    built = build(source, tmp_path / "cache")

    assert built.features == make_features(RedirectQARow)
    assert built[2]["subject_surface_category"] == rows[2]["subject_surface_category"]
    assert load_redirectqa(built).source.digest == load_redirectqa(rows).source.digest


def test_build_reads_changed_rows_and_takes_unchanged_ones_from_the_cache(
    source, tmp_path, rows, write_lines, monkeypatch
):
    cache = tmp_path / "cache"
    assert len(build(source, cache)) == 10
    write_lines(source / "test.jsonl", rows[:4])
    changed = build(source, cache).to_list()
    assert len(changed) == 4
    write_lines(source / "dev.jsonl", rows[:3])
    assert len(build(source / "dev.jsonl", cache)) == 3
    assert len(build(source, cache, split="validation")) == 3
    (source / "dev.jsonl").unlink()
    monkeypatch.setattr(redirectqa_builder, "load_redirectqa", None)

    assert build(source, cache).to_list() == changed
    assert [path.name for path in cache.iterdir() if path.is_dir()] == ["redirectqa"]


def test_source_hash_reads_content_names_and_versions(
    source, tmp_path, rows, write_lines, monkeypatch
):
    """The hash changes with rows, card and builder version, and not with the folder's place."""
    seen = [source_hash(source)]
    source = source.rename(tmp_path / "moved")
    assert source_hash(source) == seen[0]

    monkeypatch.setattr(RedirectQABuilder, "VERSION", datasets.Version("9.0.0"))
    seen.append(source_hash(source))
    (source / "README.md").write_text("# card")
    seen.append(source_hash(source))
    write_lines(source / "test.jsonl", rows[1:])
    seen.append(source_hash(source))
    (source / "test.jsonl").rename(source / "train.jsonl")
    seen.append(source_hash(source))

    assert len(set(seen)) == 5


def test_build_rejects_a_broken_row(source, tmp_path, rows, write_lines):
    """A row that breaks its record is told by file and line, where `datasets` would cast it."""
    broken = {**rows[3], "subject_surface": ["Cat Stevens"]}
    write_lines(source / "test.jsonl", [*rows[:3], broken])

    named = r"test\.jsonl:4: column 'subject_surface': expected text"
    with pytest.raises(RecordError, match=named):
        build(source, tmp_path / "cache")
    write_lines(source / "test.jsonl", rows)
    assert len(build(source, tmp_path / "cache")) == 10


def test_build_rejects_repeated_ids(source, tmp_path, monkeypatch):
    """Two rows under one id are refused, where `datasets` keeps both."""
    data = load_redirectqa(source)
    twice = RedirectQA.from_questions((*data.questions, data.questions[0]), source="twice")
    monkeypatch.setattr(redirectqa_builder, "load_redirectqa", lambda *_, **__: twice)

    with pytest.raises(DataError, match=r"question id '230395:original:.*' stands twice"):
        build(source, tmp_path / "cache")


def test_build_rejects_a_source_without_data(tmp_path):
    """Nothing to read is told before any work."""
    with pytest.raises(SourceNotFoundError, match=r"no data files .* at .*absent; pass a folder"):
        build(tmp_path / "absent", tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
