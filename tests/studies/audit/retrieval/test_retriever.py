"""The published key of entries and lookups."""

import pytest

from surface_consistency.studies.audit.retrieval import lookup_key


@pytest.mark.parametrize(
    ("entity", "relation", "key"),
    [
        ("New_York", "Capital Of", "new york capital of"),
        # Stripped after underscores became spaces, as the published retriever does.
        ("_Chad_", " ISO code\n", "chad iso code"),
        ("İstanbul", "ÜLKE", "i̇stanbul ülke"),
        ("", "", " "),
        ("東京", "国", "東京 国"),
    ],
)
def test_lookup_key_agrees_with_the_published_rule(entity, relation, key):
    assert lookup_key(entity, relation) == key
