"""Test `build_dataset`: `load_dataset` returns the rows that were written."""

import copy
import csv
import json
from pathlib import Path
from types import SimpleNamespace

import datasets
import fsspec
import huggingface_hub
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from surface_consistency_build import build_dataset
from surface_consistency_build.builders.audit_databases.databases import (
    write_audit_prompts,
    write_database,
)
from surface_consistency_build.builders.build_dataset import DATA_SETS
from surface_consistency_build.builders.redirectqa.redirectqa_builder import RedirectQABuilder
from surface_consistency_build.wikimedia.construction.rows import BuiltRow

from surface_consistency import studies
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.slaq_rows import SlaqRow
from surface_consistency.data.sources import SAMPLES
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, RecordError, RunError, SourceNotFoundError
from surface_consistency.rows.readers import read_rows
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit.conditions import find_conditions
from surface_consistency.studies.audit.retrieval.triplets import Triplets
from tests.made_data import FACTS, rows_of, slaq_row


def load(folder, *names, **options):
    """Load the split of a folder."""
    return datasets.load_dataset(str(folder), *names, split="test", **options)


def streamed(folder, *names):
    """Load the split of a folder as a stream."""
    return [dict(row) for row in load(folder, *names, streaming=True)]


def written(folder, config):
    """Read the Parquet file of a configuration."""
    return pq.read_table(folder / config / "test-00000-of-00001.parquet").to_pylist()


def lines_at(path, rows):
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# Columns are kept ---------------------------------------------------------------------------------

TEXT = st.sampled_from(["NA", "null", "None", "nan", "1984", "", "true", "a,b\n"]) | st.text(
    st.characters(codec="utf-8"), max_size=8
)
KINDS = (TEXT, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.lists(TEXT, max_size=3))


@st.composite
def more_columns(draw, n_rows):
    """Draw further columns: values of one type, or missing."""
    columns = {}
    for number, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), max_size=3))):
        cells = st.lists(st.none() | kind, min_size=n_rows, max_size=n_rows)
        columns[f"further {number}"] = draw(cells)
    return columns


def with_columns(rows, columns):
    """Add columns to rows."""
    return [row | {name: columns[name][i] for name in columns} for i, row in enumerate(rows)]


REDIRECTQA_ROWS = [row for fact in FACTS for row in rows_of(*copy.deepcopy(fact))]
SLAQ_ROWS = [
    slaq_row(topic, Pageviews=views, ShortA1=answer)
    | {f"ShortQ{number}_Entity": number % 2 for number in range(1, 6)}
    for topic, views, answer in (("NA", 12, "1984"), ("null", None, "None"))
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    further=more_columns(len(REDIRECTQA_ROWS)),
    aliases=st.lists(TEXT.filter(str.strip), min_size=1, max_size=3),
)
def test_redirectqa_rows_keep_their_columns_and_values(tmp_path_factory, further, aliases):
    home = tmp_path_factory.mktemp("home")
    rows = [row | {"object_aliases": aliases} for row in with_columns(REDIRECTQA_ROWS, further)]

    build_dataset("redirectqa", lines_at(home / "rows.jsonl", rows), home / "out")

    assert written(home / "out", "default") == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(further=more_columns(len(SLAQ_ROWS)))
def test_slaq_rows_keep_their_columns_and_values(tmp_path_factory, further):
    home = tmp_path_factory.mktemp("home")
    rows = with_columns(SLAQ_ROWS, further)

    build_dataset("slaq", lines_at(home / "rows.jsonl", rows), home / "out")

    assert written(home / "out", "all") == rows


NAME = TEXT.filter(str.strip)
FACT = st.tuples(NAME, NAME, NAME)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    facts=st.lists(FACT, min_size=1, max_size=4, unique=True), aliases=st.lists(NAME, max_size=2)
)
def test_audit_rows_keep_their_columns_and_values(tmp_path_factory, facts, aliases):
    home = tmp_path_factory.mktemp("home")
    folder = home / "source" / "towns"
    (folder / "prompts" / "base").mkdir(parents=True)
    write_database(folder / "base.json", Triplets.of(tuple(Triplet(*fact) for fact in facts)))
    names = ("subject", "relation", "gold_object")
    prompts = [
        AuditPrompt(
            prompt_id=number,
            fact_id=number,
            prompt_text="NA",
            object_aliases=aliases,
            **dict(zip(names, fact, strict=True)),
        )
        for number, fact in enumerate(facts)
    ]
    write_audit_prompts(folder / "prompts" / "base" / "prompts_cloze.jsonl", prompts)

    build_dataset("lmlm-audit", home / "source", home / "out")

    place = {"domain": "towns", "topology": "base"}
    asked = [one.model_dump(mode="json") | place | {"style": "cloze"} for one in prompts]
    assert written(home / "out", "prompts") == asked
    entries = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in facts]
    assert written(home / "out", "triplets") == [
        place | {"index": index} | entry for index, entry in enumerate(entries)
    ]


def test_build_from_built_rows_keeps_the_21_columns(dumps, tmp_path):
    pytest.importorskip("duckdb")
    build_dataset("redirectqa", dumps, tmp_path / "built")
    build_dataset("redirectqa", tmp_path / "built", tmp_path / "again")

    first, second = load(tmp_path / "built"), load(tmp_path / "again")
    assert len(first.column_names) == 21
    assert second.features == first.features == make_features(BuiltRow)
    assert second.to_list() == first.to_list() == streamed(tmp_path / "again")


def test_datasets_returns_the_written_values(tmp_path):
    """Also for a stream: values are not converted to missing values, numbers or text."""
    rows = with_columns(
        REDIRECTQA_ROWS[:4],
        {
            "text": ["NA", "null", "", "1984"],
            "gaps": [None, "None", "nan", None],
            "lists": [[], ["NA"], None, ["", "null"]],
            "flags": [True, False, None, True],
            "numbers": [1, None, -(2**53) - 1, 0],
            "none": [None] * 4,
            "records": [{"a": "NA", "b": None}, {"a": "", "b": []}, None, {"a": "x", "b": [1]}],
        },
    )
    build_dataset("redirectqa", lines_at(tmp_path / "rows.jsonl", rows), tmp_path / "out")

    loaded = load(tmp_path / "out")
    assert loaded.to_list() == rows == streamed(tmp_path / "out")
    assert loaded.features["flags"] == datasets.Value("bool")
    assert loaded.features["lists"] == datasets.List(datasets.Value("string"))


def test_csv_cells_have_the_types_of_the_layout_and_other_columns_are_text(tmp_path):
    """A CSV file contains only text: `datasets` reads years as numbers and "NA" as missing."""
    rows = [row | {"year": "1984"} for row in SLAQ_ROWS]
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows | {"Pageviews": "1,234"} for rows in rows)

    build_dataset("slaq", tmp_path / "rows.csv", tmp_path / "out")

    assert load(tmp_path / "out").features == make_features(SlaqRow) | {
        "year": datasets.Value("string")
    }
    assert streamed(tmp_path / "out") == [row | {"Pageviews": 1234} for row in rows]


@pytest.mark.parametrize(
    ("name", "source", "read"),
    [
        (
            "redirectqa",
            SAMPLES / "redirectqa",
            lambda source: load_redirectqa(source).source.digest,
        ),
        ("slaq", SAMPLES / "slaq", lambda source: load_slaq(source).source.digest),
    ],
)
def test_bundled_samples_load_before_and_after_a_build(name, source, read, tmp_path):
    """The rows and types of the bundled folder, of its stream and of the folder that is built."""
    build_dataset(name, source, tmp_path / "out")

    bundled, built = load(source), load(tmp_path / "out")
    assert built.features == bundled.features
    assert built.to_list() == bundled.to_list() == streamed(source) == streamed(tmp_path / "out")
    assert read(tmp_path / "out") == read(source)


STUDIES = Path(studies.__file__).parent


@pytest.mark.parametrize(
    ("folder", "split"),
    [
        (SAMPLES / "redirectqa", "test"),
        (SAMPLES / "slaq", "test"),
        (SAMPLES / "slaq_answers", "test"),
        (SAMPLES / "forms", "test"),
        (STUDIES / "audit" / "sample", "test"),
    ],
)
def test_datasets_reads_every_bundled_folder(folder, split):
    """As a table and as a stream, the rows equal those of the files."""
    read, stream = (
        datasets.load_dataset(str(folder), split=split, streaming=as_stream)
        for as_stream in (False, True)
    )
    files = sorted(folder.rglob("*.jsonl")) or [folder / "test.csv"]
    rows = [row for file in files for _, row in read_rows(file)]

    loaded = [dict(row) for row in stream]
    assert loaded == read.to_list()
    if files[0].suffix == ".csv":
        loaded = [{name: str(cell) for name, cell in row.items()} for row in loaded]
    missing = dict.fromkeys(read.column_names)
    assert sorted(map(repr, loaded)) == sorted(repr(missing | dict(row)) for row in rows)


def test_repeated_rows_are_written_once(tmp_path):
    path = lines_at(tmp_path / "rows.jsonl", [*REDIRECTQA_ROWS, REDIRECTQA_ROWS[0]])

    with pytest.warns(UserWarning, match="repeats 1 rows"):
        build_dataset("redirectqa", path, tmp_path / "out")

    assert streamed(tmp_path / "out") == REDIRECTQA_ROWS


def test_another_split_keeps_its_name(tmp_path):
    lines_at(tmp_path / "source" / "validation.jsonl", REDIRECTQA_ROWS)

    build_dataset("redirectqa", tmp_path / "source", tmp_path / "out", split="validation")

    assert list(datasets.load_dataset(str(tmp_path / "out"))) == ["validation"]
    assert 'split="validation")' in (tmp_path / "out" / "README.md").read_text("utf-8")


# Configurations and cards -------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["popular", "obscure"])
def test_configurations_of_slaq_are_the_halves(tmp_path, half):
    build_dataset("slaq", SAMPLES / "slaq", tmp_path / "out", config=half)

    expected = [one.topic for one in load_slaq(SAMPLES / "slaq").topics if one.popularity == half]
    assert load(tmp_path / "out", half)["Topic"][:] == expected
    assert len(expected) == 12


def test_published_audit_has_the_13_databases_and_78_cells_of_the_study(data_files, tmp_path):
    source = data_files / "lmlm_audit" / "data"
    build_dataset("lmlm-audit", source, tmp_path / "out")

    prompts, triplets = (load(tmp_path / "out", name) for name in ("prompts", "triplets"))
    cells = set(zip(prompts["domain"], prompts["topology"], prompts["style"], strict=True))
    labels = {one.label for one in find_conditions(source)}
    assert cells == {(label.domain, label.topology, label.style) for label in labels}
    assert (len(cells), len(prompts)) == (78, 12_228)
    assert len(set(zip(triplets["domain"], triplets["topology"], strict=True))) == 13


@pytest.mark.parametrize(
    ("name", "license_id", "words"),
    [("redirectqa", "cc-by-sa-4.0", "CC0"), ("slaq", "unknown", "does not name it")],
)
def test_a_card_states_the_licence_or_that_it_is_unknown(name, license_id, words, tmp_path):
    rows = {"redirectqa": REDIRECTQA_ROWS, "slaq": SLAQ_ROWS}[name]
    build_dataset(name, lines_at(tmp_path / "rows.jsonl", rows), tmp_path / "out")

    card = huggingface_hub.DatasetCard.load(tmp_path / "out" / "README.md")
    assert card.data.license == license_id
    assert words in card.text
    assert "@" in card.text.partition("## Citation")[2]


def test_a_card_contains_the_licence_of_the_source(tmp_path):
    build_dataset("slaq", SAMPLES / "slaq", tmp_path / "out")

    card = huggingface_hub.DatasetCard.load(tmp_path / "out" / "README.md")
    assert card.data.license == "cc-by-sa-4.0"
    assert "states the licence `cc-by-sa-4.0`" in card.text


# Pushing ------------------------------------------------------------------------------------------


class Hub:
    """A hub that records its uploads."""

    def __init__(self):
        self.uploads = []

    def create_repo(self, repo_id, **_):
        self.repo_id = repo_id

    def upload_folder(self, *, repo_id, allow_patterns, **_):
        self.uploads.append((repo_id, sorted(allow_patterns)))
        return SimpleNamespace(commit_url=f"https://hub.example/{repo_id}/commit/1")


@pytest.fixture
def hub(monkeypatch):
    """The hub to which `huggingface_hub` sends requests."""
    hub = Hub()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    return hub


def test_push_to_uploads_the_files_of_the_dry_run(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    words = ("slaq", SAMPLES / "slaq", tmp_path / "out")

    listed = build_dataset(*words, push_to="me/slaq", dry_run=True)

    printed = list(listed.lines())
    paths = [one.path for one in listed.uploads]
    assert paths == ["README.md", "all/test-00000-of-00001.parquet", "metadata/all/build.json"]
    assert printed[-1] == f"a push would upload 3 files, {listed.total_bytes:,} bytes to me/slaq"
    assert printed[1].endswith("all/test-00000-of-00001.parquet  24 rows")
    assert (listed.is_done, hub.uploads) == (False, [])
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_token")

    done = build_dataset(*words, push_to="me/slaq")

    assert hub.uploads == [("me/slaq", paths)]
    assert (done.is_done, done.url) == (True, "https://hub.example/me/slaq/commit/1")


def test_push_without_a_token_raises_before_the_build(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)

    with pytest.raises(DataError, match=r"cannot upload to me/slaq without a token.*hf auth login"):
        build_dataset("slaq", SAMPLES / "slaq", tmp_path / "out", push_to="me/slaq")
    with pytest.raises(ValueError, match="repo_id must be owner/name"):
        build_dataset("slaq", SAMPLES / "slaq", tmp_path / "out", push_to="slaq")
    assert not (tmp_path / "out").exists()
    assert hub.uploads == []


# Invalid input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("slaqs", {}, r"unknown data set 'slaqs' \(did you mean 'slaq'\?\); .* redirectqa, pop"),
        ("slaq", {"config": "populer"}, r"'populer' \(did you mean 'popular'\?\) .* all, popular"),
        ("slaq", {"splitt": "x"}, r"no option 'splitt' \(did you mean 'split'\?\).*options: split"),
        ("slaq", {"split": 3}, "slaq: field 'split': Input should be a valid string, got 3"),
        ("redirectqa", {"config": "v1.0.0"}, "no configuration 'v1.0.0' for this source.* default"),
    ],
)
def test_errors_for_unknown_names_list_the_known_names(name, options, message, tmp_path):
    source = SAMPLES / "slaq" if name != "redirectqa" else SAMPLES / "redirectqa"

    with pytest.raises(ValueError, match=message):
        build_dataset(name, source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", DATA_SETS)
def test_error_for_a_missing_source_contains_its_url(name, tmp_path):
    sources = {"popqa-redirect": "dumps.wikimedia.org", "lmlm-audit": "raeesiarya/LMLMAudit"}
    remedy = sources.get(name, "from the hub")

    with pytest.raises(SourceNotFoundError, match=f"{name}: file or folder .* not found.*{remedy}"):
        build_dataset(name, tmp_path / "absent", tmp_path / "out")


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{"subject_surface": ["Cat"]}], RecordError, r"jsonl:1: column 'subject_surface': expect"),
        ([{"n": 1}, {"n": "one"}], DataError, "a column has several types"),
        ([{"n_objects": "many"}], RecordError, r"jsonl:1: column 'n_objects': expected an integer"),
    ],
)
def test_invalid_rows_are_rejected_before_files_are_written(rows, error, message, tmp_path):
    given = [one | two for one, two in zip(REDIRECTQA_ROWS, rows, strict=False)]
    path = lines_at(tmp_path / "rows.jsonl", given)

    with pytest.raises(error, match=message):
        build_dataset("redirectqa", path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_half_without_page_views_is_rejected(tmp_path):
    rows = [row | {"Pageviews": None} for row in SLAQ_ROWS]

    with pytest.raises(DataError, match="no topic in the obscure half; it needs page views"):
        build_dataset(
            "slaq", lines_at(tmp_path / "a.jsonl", rows), tmp_path / "o", config="obscure"
        )


def test_folder_with_other_files_or_another_data_set_is_rejected(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match=r"files of other origin \(notes\.txt\)"):
        build_dataset("slaq", SAMPLES / "slaq", tmp_path / "mine")
    build_dataset("slaq", SAMPLES / "slaq", tmp_path / "out")
    build_dataset("slaq", SAMPLES / "slaq", tmp_path / "out")

    with pytest.raises(RunError, match='builder: "slaq" there, "redirectqa" now'):
        build_dataset("redirectqa", SAMPLES / "redirectqa", tmp_path / "out")
    build_dataset("redirectqa", SAMPLES / "redirectqa", tmp_path / "out", overwrite=True)
    assert load(tmp_path / "out").to_list() == load(SAMPLES / "redirectqa").to_list()


def test_datasets_reads_a_folder_that_was_built_again(tmp_path):
    """The key of its cache is the card of a local folder, not the content of its files."""
    for answer in ("1984", "1985"):
        rows = [row | {"ShortA1": answer} for row in SLAQ_ROWS]
        path = lines_at(tmp_path / "rows.jsonl", rows)
        build_dataset("slaq", path, tmp_path / "out")

        assert load(tmp_path / "out").to_list() == rows


def test_a_builder_class_reads_a_changed_source_again(tmp_path):
    """The cache of `datasets` has no key for the content of a source."""

    def built(rows):
        lines_at(tmp_path / "rows.jsonl", rows)
        source = str(tmp_path / "rows.jsonl")
        builder = RedirectQABuilder(cache_dir=str(tmp_path / "cache"), source=source)
        builder.download_and_prepare()
        return builder.as_dataset(split="test").to_list()

    assert built(REDIRECTQA_ROWS) == REDIRECTQA_ROWS
    assert built(REDIRECTQA_ROWS[:4]) == REDIRECTQA_ROWS[:4]


def test_rows_at_a_url_are_built_like_local_rows(tmp_path):
    content = (SAMPLES / "slaq" / "test.csv").read_bytes()
    fsspec.filesystem("memory").pipe("/topics/test.csv", content)

    build_dataset("slaq", "memory://topics/test.csv", tmp_path / "out")

    assert load_slaq(tmp_path / "out").source.digest == load_slaq("sample").source.digest
