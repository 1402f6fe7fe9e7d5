import json

import pytest

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.files import read_audit_prompts, read_database
from surface_consistency.studies.audit.retrieval import Triplets
from tests.made_data import published  # noqa: F401 - fixtures

# Triplets of the published databases, in the order of the published file names.
SIZES = {
    "countries": {"base": 100, "alias": 200, "noise": 180, "collision": 140},
    "politicians": {"base": 120, "alias": 240, "noise": 180, "collision": 160},
    "sports": {"base": 100, "alias": 200, "noise": 160, "collision": 158},
}
GOOD = {
    "entities": ["France"],
    "relationships": ["Capital"],
    "return_values": ["Paris"],
    "triplets": [["France", "Capital", "Paris"]],
}


def write(tmp_path, content):
    """Write a database file unchanged."""
    file = tmp_path / "database.json"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_read_database_agrees_with_the_published_sizes(published):
    sizes = {name: len(read_database(files[0])) for name, files in published.items()}

    expected = {f"{name}/{kind}": n for name, one in SIZES.items() for kind, n in one.items()}
    assert sizes == expected | {"released": 692}


@pytest.mark.parametrize(
    ("name", "n_triplets"),
    [("dwiki-eval100-annotator_database.json", 692), ("squad-eval100-Annotator_database.json", 33)],
)
def test_databases_of_limited_memory_models_are_read(data_files, name, n_triplets):
    """Their lists are unsorted."""
    file = data_files / "lmlm" / name
    names = json.loads(file.read_text(encoding="utf-8"))["entities"]

    assert len(read_database(file)) == n_triplets
    assert names != sorted(names)


def larger(*triplet):
    """A database with another triplet."""
    return {"triplets": [*GOOD["triplets"], list(triplet)]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (larger("France", "Capital"), r"triplet 1 must be three .* got \['France', 'Capital'\]"),
        (larger("France", "Capital", 7), "triplet 1 must be three strings"),
        (larger("France", "Capital", None), "triplet 1 must be three strings"),
        (larger("France", "Capital", float("nan")), "triplet 1 must be three strings"),
        ({"triplets": [*GOOD["triplets"], "abc"]}, "triplet 1 must be three strings"),
        (larger("France", "Capital", "Paris"), "triplet 1 repeats triplet 0"),
        (larger("France", "Capital", ""), "has an empty object"),
        (larger("France", " ", "Paris"), "has an empty relation"),
        (larger("France", "Capital", "x" * 10_001), "10,001 characters, more than the 10,000 all"),
        (larger("France", "Capital", "\ud83d"), "contains a lone surrogate"),
        ({"entities": ["Italy"]}, "entities does not match the triplets: 1 missing, 1 that no"),
        ({"entities": ["France", "France"]}, "0 missing, 0 that no triplet has, 1 repeated"),
        ({"return_values": [1]}, "return_values must contain strings, got 1"),
        ({"relationships": []}, "relationships does not match the triplets: 1 missing"),
        ({"triplets": []}, "no triplets; a database needs at least one"),
        *(({key: None}, f"no list '{key}'; a database contains entities, r") for key in GOOD),
        (b'{"entities": [', "not JSON: .*; a database is one JSON object"),
        (b"", "not JSON"),
        (b'{"entities": "\xff"}', "not UTF-8 at byte 14"),
        (b"[1, 2]", "this file contains a list"),
        (b'{"entities": ' + b"9" * 5_000 + b"}", "a number has more than 4,300 digits"),
        (b'{"entities": NaN}', "no list 'entities'"),
        (b"[" * 100_000, "nested more than 64 levels deep"),
    ],
    ids=range(26),
)
def test_read_database_rejects_invalid_files(tmp_path, change, message):
    if isinstance(change, dict):
        change = {name: value for name, value in (GOOD | change).items() if value is not None}
    file = write(tmp_path, change)

    with pytest.raises(DataError, match=message):
        read_database(file)


def test_read_database_rejects_a_missing_file(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"database file .* not found"):
        read_database(tmp_path / "none.json")


ROW = {
    "prompt_id": "7",
    "fact_id": "usa-capital",
    "subject": "USA",
    "gold_object": "Washington",
    "prompt_text": "What is the capital of USA?",
    "gold_object_aliases": ["Washington, D.C."],
    "answer_aliases": "DC",
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no prompts; the file needs at least one line"),
        ("{}", "field 'prompt_id': Field required"),
        ("not json", "not a AuditPrompt"),
        ('{"prompt_id": 1.5}', "field 'prompt_id'"),
        (f"{json.dumps(ROW | {'relation': 'Capital'})}\n" * 2, "prompt_id 7 occurs twice"),
        (json.dumps(ROW), "prompt_id 7 has no relation, and no database was given"),
    ],
    ids=range(6),
)
def test_read_audit_prompts_rejects_invalid_files(tmp_path, text, message):
    (tmp_path / "p.jsonl").write_text(text, encoding="utf-8")

    with pytest.raises(RecordError, match=message):
        read_audit_prompts(tmp_path / "p.jsonl")


def test_prompts_are_read_under_the_field_names_of_the_audit(tmp_path):
    path = tmp_path / "prompts_cloze.jsonl"
    path.write_text(json.dumps(ROW) + "\n", "utf-8")
    database = Triplets.of(
        [
            Triplet("usa", "Capital", "Washington"),
            Triplet("USA", "Seat of Government", "DC"),
            Triplet("USA", "Largest City", "New York"),
        ]
    )

    [prompt] = read_audit_prompts(path, database=database)

    assert prompt.prompt_id == 7
    assert prompt.fact_id == read_audit_prompts(path, database=database)[0].fact_id > 10**6
    assert prompt.object_aliases == ("Washington, D.C.", "DC")
    assert (prompt.relation, prompt.relation_aliases) == ("Capital", ("Seat of Government",))
