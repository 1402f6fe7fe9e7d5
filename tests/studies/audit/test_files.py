import json

import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit.files import (
    make_database,
    read_audit_prompts,
    read_database,
    write_audit_prompts,
    write_database,
)
from tests.made_data import published  # noqa: F401 - fixtures

# Triplets of the published databases, in the order of the published file names.
SIZES = {
    "countries/base": 100,
    "countries/alias": 200,
    "countries/noise": 180,
    "countries/collision": 140,
    "politicians/base": 120,
    "politicians/alias": 240,
    "politicians/noise": 180,
    "politicians/collision": 160,
    "sports/base": 100,
    "sports/alias": 200,
    "sports/noise": 160,
    "sports/collision": 158,
    "released": 692,
}
GOOD = {
    "entities": ["France"],
    "relationships": ["Capital"],
    "return_values": ["Paris"],
    "triplets": [["France", "Capital", "Paris"]],
}


def write(tmp_path, content):
    """Write a database file as it is."""
    file = tmp_path / "database.json"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(json.dumps(content), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", SIZES)
def test_read_database_agrees_with_the_published_sizes(published, name):
    database = read_database(published[name][0])

    assert len(database) == SIZES[name]
    assert make_database(database).content == database.content


@pytest.mark.parametrize("name", [name for name in SIZES if name != "released"])
def test_written_database_is_the_published_file(published, name, tmp_path):
    """What was read is written back byte for byte."""
    file = published[name][0]

    write_database(tmp_path / "copy.json", read_database(file))

    assert (tmp_path / "copy.json").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("name", "n_triplets"),
    [("dwiki-eval100-annotator_database.json", 692), ("squad-eval100-Annotator_database.json", 33)],
)
def test_databases_of_limited_memory_models_are_read(data_files, tmp_path, name, n_triplets):
    """Their lists are unsorted; those that are written are sorted."""
    file = data_files / "lmlm" / name
    names = json.loads(file.read_text(encoding="utf-8"))["entities"]
    database = read_database(file)

    assert len(database) == n_triplets
    write_database(tmp_path / "copy.json", database)
    assert list(read_database(tmp_path / "copy.json")) == list(database)
    written = json.loads((tmp_path / "copy.json").read_text(encoding="utf-8"))
    assert written["entities"] == sorted(names) != names


@given(st.sets(st.tuples(*[st.text(st.characters(codec="utf-8"), min_size=1)] * 3), min_size=1))
def test_writing_and_reading_is_the_identity(tmp_path_factory, parts):
    entries = [Triplet(*part) for part in sorted(parts) if all(map(str.strip, part))]
    if not entries:
        return
    file = tmp_path_factory.mktemp("round") / "database.json"
    database = make_database(entries)

    write_database(file, database)

    assert list(read_database(file)) == entries


@pytest.mark.parametrize("key", list(GOOD))
def test_read_database_rejects_missing_keys(tmp_path, key):
    file = write(tmp_path, {name: value for name, value in GOOD.items() if name != key})

    with pytest.raises(DataError, match=rf"no list '{key}'; a database holds entities, rel"):
        read_database(file)


@pytest.mark.parametrize(
    ("triplet", "message"),
    [
        (["France", "Capital"], r"triplet 1 must be three strings .* got \['France', 'Capital'\]"),
        (["France", "Capital", 7], "triplet 1 must be three strings"),
        (["France", "Capital", None], "triplet 1 must be three strings"),
        (["France", "Capital", float("nan")], "triplet 1 must be three strings"),
        ("abc", "triplet 1 must be three strings"),
        (["France", "Capital", "Paris"], "triplet 1 repeats triplet 0"),
        (["France", "Capital", ""], "has an empty object"),
        (["France", " ", "Paris"], "has an empty relation"),
        (["France", "Capital", "x" * 10_001], "10,001 characters, more than the 10,000 allowed"),
        (["France", "Capital", "\ud83d"], "holds half a character"),
    ],
)
def test_read_database_rejects_bad_triplets(tmp_path, triplet, message):
    file = write(tmp_path, GOOD | {"triplets": [*GOOD["triplets"], triplet]})

    with pytest.raises(DataError, match=message):
        read_database(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entities": ["Italy"]}, "entities does not fit the triplets: 1 missing, 1 that no"),
        ({"entities": ["France", "France"]}, "0 missing, 0 that no triplet has, 1 repeated"),
        ({"return_values": [1]}, "return_values must hold strings, got 1"),
        ({"relationships": []}, "relationships does not fit the triplets: 1 missing"),
        ({"triplets": []}, "no triplets; a database needs at least one"),
    ],
)
def test_read_database_rejects_lists_that_do_not_fit(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        read_database(write(tmp_path, GOOD | change))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"entities": [', "not JSON: .*; a database is one JSON object"),
        (b"", "not JSON"),
        (b'{"entities": "\xff"}', "not UTF-8 at byte 14"),
        (b"[1, 2]", "this file holds a list"),
        (b'{"entities": ' + b"9" * 5_000 + b"}", "a number has more than 4,300 digits"),
        (b'{"entities": NaN}', "no list 'entities'"),
        (b"[" * 100_000, "nested more than 64 levels deep"),
    ],
)
def test_read_database_rejects_what_is_no_database(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_database(write(tmp_path, content))


def test_read_database_rejects_a_missing_file(tmp_path):
    with pytest.raises(SourceNotFoundError, match="no database file"):
        read_database(tmp_path / "none.json")


def test_duplicates_can_be_dropped(tmp_path):
    file = write(tmp_path, GOOD | {"triplets": GOOD["triplets"] * 3})

    assert len(read_database(file, duplicates="drop")) == 1


def test_the_longest_value_can_be_chosen(tmp_path):
    value = "x" * 10_001
    entry = ["France", "Capital", value]
    file = write(tmp_path, GOOD | {"triplets": [entry], "return_values": [value]})

    assert read_database(file, longest=None)[0].object == value
    with pytest.raises(DataError, match="raise `longest` if it is right"):
        read_database(file)


def test_make_database_rejects_repetition():
    with pytest.raises(DataError, match="triplet 1 repeats triplet 0"):
        make_database([Triplet("a", "b", "c")] * 2)


def test_make_database_of_nothing_is_empty():
    assert list(make_database([])) == []


def prompt(number=0, **fields):
    """A prompt row."""
    given = {
        "prompt_id": number,
        "fact_id": 7,
        "subject": "Türkiye",
        "relation": "Capital",
        "gold_object": "Ankara",
        "prompt_text": "Capital?\nAnswer:",
    }
    return AuditPrompt(**(given | fields))


def test_written_prompts_are_the_published_files(published, tmp_path):
    """All 78 files, 12,228 rows, come back byte for byte."""
    files = [file for _, folder in published.values() for file in sorted(folder.glob("*.jsonl"))]
    n_prompts = 0

    for file in files:
        n_prompts += write_audit_prompts(tmp_path / "copy.jsonl", read_audit_prompts(file))
        assert (tmp_path / "copy.jsonl").read_bytes() == file.read_bytes()

    assert (len(files), n_prompts) == (78, 12_228)


def test_rows_without_aliases_hold_no_alias_keys(tmp_path):
    write_audit_prompts(tmp_path / "p.jsonl", [prompt(object_aliases=("Angora",))])

    line = (tmp_path / "p.jsonl").read_text(encoding="utf-8")
    assert line == (
        '{"prompt_id": 0, "fact_id": 7, "subject": "Türkiye", "relation": "Capital", '
        '"gold_object": "Ankara", "prompt_text": "Capital?\\nAnswer:", '
        '"object_aliases": ["Angora"]}\n'
    )


def test_reading_rejects_numbers_that_stand_twice(tmp_path):
    file = tmp_path / "p.jsonl"
    write_audit_prompts(file, [prompt()])
    file.write_text(file.read_text("utf-8") * 2, encoding="utf-8")

    with pytest.raises(RecordError, match="prompt_id 0 stands twice; number anew"):
        read_audit_prompts(file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no prompts; the file needs at least one line"),
        ("{}", "field 'prompt_id': Field required"),
        ("not json", "not a AuditPrompt"),
        ('{"prompt_id": 1.5}', "field 'prompt_id'"),
    ],
)
def test_reading_rejects_what_is_no_prompt(tmp_path, line, message):
    (tmp_path / "p.jsonl").write_text(line, encoding="utf-8")

    with pytest.raises(RecordError, match=message):
        read_audit_prompts(tmp_path / "p.jsonl")


def test_writing_rejects_empty_aliases_and_writes_nothing(tmp_path):
    with pytest.raises(RecordError, match="prompt_id 3 has an empty name in subject_aliases"):
        write_audit_prompts(tmp_path / "p.jsonl", [prompt(), prompt(3, subject_aliases=(" ",))])

    assert list(tmp_path.iterdir()) == []


ROW = {
    "prompt_id": "7",
    "fact_id": "usa-capital",
    "subject": "USA",
    "gold_object": "Washington",
    "prompt_text": "What is the capital of USA?",
    "gold_object_aliases": ["Washington, D.C."],
    "answer_aliases": "DC",
}


def test_prompts_are_read_under_the_names_that_the_audit_reads(tmp_path):
    path = tmp_path / "prompts_cloze.jsonl"
    path.write_text(json.dumps(ROW) + "\n", "utf-8")
    database = make_database(
        [
            Triplet("usa", "Capital", "Washington"),
            Triplet("USA", "Seat of Government", "DC"),
            Triplet("USA", "Largest City", "New York"),
        ]
    )

    [prompt] = read_audit_prompts(path, database=database)
    with pytest.raises(RecordError, match="prompt_id 7 has no relation, and no database was given"):
        read_audit_prompts(path)

    assert prompt.prompt_id == 7
    assert prompt.fact_id == read_audit_prompts(path, database=database)[0].fact_id > 10**6
    assert prompt.object_aliases == ("Washington, D.C.", "DC")
    assert (prompt.relation, prompt.relation_aliases) == ("Capital", ("Seat of Government",))
