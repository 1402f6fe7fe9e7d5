"""The published prompts of the thirteen audit databases."""

import pytest

from surface_consistency.schemas.jsonl import read_jsonl
from surface_consistency.schemas.memory import AuditPrompt


class Prompts(list):
    """All prompts, and with the name of their database."""

    by_database: list


@pytest.fixture(scope="session")
def audit_prompts(data_files):
    folder = data_files / "lmlm_audit" / "data"
    files = sorted(folder.glob("**/prompts_*.jsonl"))
    assert len(files) == 78
    found = Prompts()
    found.by_database = [
        (path.parent.relative_to(folder).as_posix(), prompt)
        for path in files
        for prompt in read_jsonl(path, AuditPrompt)
    ]
    found += [prompt for _, prompt in found.by_database]
    return found
