"""The settings of a run on disk: of this version, of the first one, and of newer ones."""

import json

import pytest
from pydantic import ValidationError

from surface_consistency.errors import RunLogError
from surface_consistency.runs.log import RunLog
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource

VERSION_1 = {
    "schema_version": 1,
    "study": "redirectqa",
    "model": "pythia",
    "data": {"id": "rows", "revision": None, "digest": "ab" * 32, "n_questions": 2},
    "prompts": {
        "shots": 15,
        "seed": 0,
        "demonstrations": "per_relation",
        "style": "completion",
        "templates": ["original"],
        "truncate": False,
    },
    "params": {"max_new_tokens": 15, "stop": ["\n"], "temperature": 0.0},
    "runner": {"dtype": "float32"},
    "settings": {},
    "package_version": "0.1.0.dev0",
    "created_at": "2026-01-01T00:00:00Z",
}


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
    """A run that differs in one setting is told by the dotted name of that setting."""
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


def test_manifest_reads_back_from_json():
    """A manifest on disk is the manifest that was written."""
    assert RunManifest.model_validate_json(manifest().model_dump_json()) == manifest()


def test_manifest_signature_is_one_line():
    """The foot of a table names data, model, shots and seed."""
    signature = manifest().signature

    assert "\n" not in signature
    for part in ("data:rows@abababababab", "model:pythia", "shots:15", "seed:0"):
        assert part in signature


def test_manifest_of_version_1_keeps_what_was_set():
    """What stood in prompts, params and settings stands in settings and decoding."""
    found = RunManifest.model_validate_json(json.dumps(VERSION_1))

    assert found.schema_version == 1
    assert found.settings == VERSION_1["prompts"]
    assert found.decoding == {"answers": VERSION_1["params"]}
    assert "shots:15" in found.signature


def test_manifest_of_version_1_without_prompts_is_of_predictions_made_elsewhere():
    found = RunManifest.model_validate_json(
        json.dumps(VERSION_1 | {"prompts": None, "params": None})
    )

    assert (found.settings, found.decoding) == ({}, {})


def test_manifest_of_a_newer_version_names_the_remedy():
    with pytest.raises(ValidationError, match=r"newer version .*\(manifest version 3.*update"):
        RunManifest.model_validate_json(json.dumps(VERSION_1 | {"schema_version": 3}))


def test_a_run_of_version_1_is_not_continued(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(VERSION_1))

    with pytest.raises(RunLogError, match="version 1, which can be reported but not continued"):
        RunLog.open(tmp_path / "log.jsonl", manifest(), manifest_path=tmp_path / "manifest.json")
