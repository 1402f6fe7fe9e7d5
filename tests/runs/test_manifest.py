"""The settings of a run on disk; other versions are rejected."""

import json

import pytest
from pydantic import ValidationError

from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource
from tests.made_runs import make_manifest


def manifest(bits=8, **changes):
    runner = {"dtype": "float32", "quantisation": {"bits": bits}}
    return make_manifest(**{"source": {"source": "rows"}, "runner": runner} | changes)


def test_manifest_differences_contain_the_nested_field():
    changed = manifest(
        bits=4,
        decoding={"answers": {"max_new_tokens": 30, "stop": ["\n"]}},
        source={"source": "./rows"},
        created_at="2026-02-02T00:00:00Z",
        package_version="9",
    )

    assert manifest().differences(changed) == {
        "decoding.answers.max_new_tokens": (15, 30),
        "runner.quantisation.bits": (8, 4),
    }
    assert manifest().differences(manifest()) == {}


def test_manifest_is_read_back_from_json_and_its_signature_is_one_line():
    data = DataSource(id="rows", revision=None, digest="ab" * 32, n_questions=2)
    signature = manifest(data=data).signature

    assert RunManifest.model_validate_json(manifest().model_dump_json()) == manifest()
    assert "\n" not in signature
    for part in ("data:rows@abababababab", "model:toy_model", "shots:15", "seed:3"):
        assert part in signature


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (1, r"an earlier version .*\(manifest version 1, this package reads 4\); run again"),
        (5, r"a newer version .*\(manifest version 5, this package reads 4\); update"),
    ],
)
def test_error_for_a_manifest_of_another_version_contains_the_remedy(version, message):
    stored = json.loads(manifest().model_dump_json()) | {"schema_version": version}

    with pytest.raises(ValidationError, match=message):
        RunManifest.model_validate_json(json.dumps(stored))
