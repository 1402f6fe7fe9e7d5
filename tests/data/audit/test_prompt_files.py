import pytest

from surface_consistency.data.audit import read_audit_prompts, write_audit_prompts
from surface_consistency.errors import RecordError
from surface_consistency.schemas import AuditPrompt


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
        ('{"prompt_id": "1"}', "field 'prompt_id'"),
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
