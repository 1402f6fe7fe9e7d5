"""The published prompts of the thirteen audit databases."""

import pytest

from surface_consistency.studies.audit import find_conditions


@pytest.fixture(scope="session")
def audit_prompts(data_files):
    """Pairs of a database name and a prompt, in all styles."""
    found = find_conditions(data_files / "lmlm_audit" / "data")
    return [(one.label.database, prompt) for one in found for prompt in one.prompts]
