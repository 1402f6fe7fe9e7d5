"""The settings of a run on disk: of this version, and refused of others."""

import json

import pytest
from pydantic import ValidationError

from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource


def manifest(**changes):
    settings = {
        "study": "redirectqa",
        "model": "pythia",
        "data": DataSource(id="rows", revision=None, digest="ab" * 32, n_questions=2),
        "source": {"source": "rows"},
        "settings": {"shots": 15, "seed": 0, "templates": ["original"]},
        "decoding": {"answers": {"max_new_tokens": 15, "stop": ["\n"]}},
        "runner": {"dtype": "float32", "quantisation": {"bits": 8}},
        "package_version": "0.1.0",
        "created_at": "2026-01-01T00:00:00Z",
    }
    return RunManifest(**(settings | changes))


def test_manifest_differences_name_the_nested_field():
    changed = manifest(
        decoding={"answers": {"max_new_tokens": 30, "stop": ["\n"]}},
        runner={"dtype": "float32", "quantisation": {"bits": 4}},
        source={"source": "./rows"},
        created_at="2026-02-02T00:00:00Z",
        package_version="9",
    )

    assert manifest().differences(changed) == {
        "decoding.answers.max_new_tokens": (15, 30),
        "runner.quantisation.bits": (8, 4),
    }
    assert manifest().differences(manifest()) == {}


def test_manifest_reads_back_from_json_and_its_signature_is_one_line():
    signature = manifest().signature

    assert RunManifest.model_validate_json(manifest().model_dump_json()) == manifest()
    assert "\n" not in signature
    for part in ("data:rows@abababababab", "model:pythia", "shots:15", "seed:0"):
        assert part in signature


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (1, r"an earlier version .*\(manifest version 1, this package reads 3\); run again"),
        (4, r"a newer version .*\(manifest version 4, this package reads 3\); update"),
    ],
)
def test_manifest_of_another_version_names_the_remedy(version, told):
    stored = json.loads(manifest().model_dump_json()) | {"schema_version": version}

    with pytest.raises(ValidationError, match=told):
        RunManifest.model_validate_json(json.dumps(stored))
