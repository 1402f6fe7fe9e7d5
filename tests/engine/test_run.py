"""A start that fails before the first answer leaves its folder to others."""

import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.run import run_study
from surface_consistency.errors import RunError, RunnerError
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.settings import SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy


def asked(out, answer, **settings):
    chosen = SlaqSettings(limit=1, repeat=2, **settings)
    data = load_slaq("sample")
    options = {"model": "m", "settings": chosen, "progress": False}
    return run_study(SlaqStudy(), data, FakeRunner(answer), out, **options)


def refuse(prompt):
    raise RunnerError("no chat template")


def files(out):
    return sorted(path.name for path in out.rglob("*"))


def test_a_start_that_fails_does_not_occupy_its_folder(tmp_path):
    (tmp_path / "toy_model").mkdir()
    with pytest.raises(RunnerError, match="no chat template"):
        asked(tmp_path, refuse)

    assert files(tmp_path) == ["toy_model"]
    assert asked(tmp_path, lambda prompt: "1977", completion=True).manifest.is_file()


def test_answers_of_a_run_that_fails_are_kept(tmp_path):
    """Its settings hold then."""
    answers = iter(["1977"])
    with pytest.raises(RunnerError, match="no chat template"):
        asked(tmp_path, lambda prompt: next(answers, None) or refuse(prompt))

    assert "generations-short.jsonl" in files(tmp_path)
    with pytest.raises(RunError, match="completion"):
        asked(tmp_path, lambda prompt: "1977", completion=True)


def test_a_run_that_goes_on_is_not_withdrawn(tmp_path):
    folder = asked(tmp_path, lambda prompt: "1977")
    for log in folder.logs():
        log.write_bytes(b"")
    with pytest.raises(RunnerError, match="no chat template"):
        asked(tmp_path, refuse)

    assert folder.manifest.is_file()
