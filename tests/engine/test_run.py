"""Run folders after a run that fails."""

import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.run import run_study
from surface_consistency.errors import RunError, RunnerError
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.settings import SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy


def run_slaq(out, answer, **settings):
    chosen = SlaqSettings(limit=1, repeat=2, **settings)
    data = load_slaq("sample")
    options = {"model": "m", "settings": chosen, "progress": False}
    return run_study(SlaqStudy(), data, FakeRunner(answer, name="fake"), out, **options)


def fail(prompt):
    raise RunnerError("no chat template")


def files(out):
    return sorted(path.name for path in out.rglob("*"))


def test_folder_of_a_run_without_answers_accepts_other_settings(tmp_path):
    (tmp_path / "toy_model").mkdir()
    with pytest.raises(RunnerError, match="no chat template"):
        run_slaq(tmp_path, fail)

    assert files(tmp_path) == ["toy_model"]
    assert run_slaq(tmp_path, lambda prompt: "1977", completion=True).manifest.is_file()


def test_folder_of_a_failed_run_with_answers_rejects_other_settings(tmp_path):
    answers = iter(["1977"])
    with pytest.raises(RunnerError, match="no chat template"):
        run_slaq(tmp_path, lambda prompt: next(answers, None) or fail(prompt))

    assert "generations-short.jsonl" in files(tmp_path)
    with pytest.raises(RunError, match="completion"):
        run_slaq(tmp_path, lambda prompt: "1977", completion=True)


def test_manifest_is_kept_if_a_resumed_run_fails(tmp_path):
    is_broken = []

    def answer(prompt):
        return fail(prompt) if is_broken else "1977"

    folder = run_slaq(tmp_path, answer)
    for log in folder.logs():
        log.write_bytes(b"")
    is_broken.append(True)
    with pytest.raises(RunnerError, match="no chat template"):
        run_slaq(tmp_path, answer)

    assert folder.manifest.is_file()
