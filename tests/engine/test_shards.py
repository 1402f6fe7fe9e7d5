"""Shards of a run: run separately and merged."""

import json

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.run import merge_shards, run_study
from surface_consistency.engine.score import score_run
from surface_consistency.errors import DataError, RecordError, RunError
from surface_consistency.models import FakeRunner
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import Generation
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.made_rows import rows_of


class Planned(FakeRunner):
    """Answers with the ids of the batch, so that answers depend on its composition."""

    def __init__(self, size=3):
        super().__init__(lambda prompt: "", name="fake")
        self.size = size

    def fingerprint(self):
        return {"runner": "planned", "size": self.size}

    def plan(self, prompts, params):
        ordered = sorted(prompts, key=lambda prompt: prompt.id)
        for start in range(0, len(ordered), self.size):
            yield ordered[start : start + self.size]

    def generate(self, prompts, params):
        name = "+".join(sorted(prompt.id[-6:] for prompt in prompts))
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text=name)


@pytest.fixture(scope="module")
def data():
    return load_redirectqa(rows_of())


def run_shard(data, out, *, shard=(0, 1), size=3, **settings):
    chosen = RedirectQASettings(**{"repeat": 5} | settings)
    options = {"model": "m", "settings": chosen, "progress": False, "shard": shard}
    return run_study(RedirectQAStudy(), data, Planned(size), out, **options)


def answers(folder, *, repeat=False):
    return {one.prompt_key: one.text for one in read_generations(folder.log(repeat=repeat))}


@pytest.mark.parametrize("n_shards", [2, 5])
def test_merged_shards_equal_a_run_without_shards(data, tmp_path, n_shards):
    """Answers, repeated answers, outcomes and manifest are equal."""
    whole = run_shard(data, tmp_path / "whole")
    parts = [run_shard(data, tmp_path / str(n), shard=(n, n_shards)) for n in range(n_shards)]

    merged = merge_shards([part.path for part in reversed(parts)], tmp_path / "merged")

    assert answers(merged) == answers(whole)
    assert answers(merged, repeat=True) == answers(whole, repeat=True)
    assert sum(len(answers(part)) for part in parts) == len(answers(whole)) == 12
    assert score_run(merged).equals(score_run(whole))
    assert merged.read_manifest().replies == whole.read_manifest().replies
    assert not merged.read_manifest().differences(whole.read_manifest())


def test_a_finished_shard_does_not_send_prompts_again(data, tmp_path):
    first = run_shard(data, tmp_path / "part", shard=(1, 2))
    size = first.log().stat().st_size

    run_shard(data, tmp_path / "part", shard=(1, 2))

    assert first.log().stat().st_size == size


def test_missing_shards_are_rejected(data, tmp_path):
    parts = [run_shard(data, tmp_path / str(n), shard=(n, 3)).path for n in (0, 2)]

    with pytest.raises(DataError, match=r"shards 1 of 3 of .*merged not finished"):
        merge_shards(parts, tmp_path / "merged")
    (parts[1] / "shard.json").unlink()
    with pytest.raises(DataError, match=r"shard 2 of .*merged not finished"):
        merge_shards(parts, tmp_path / "merged")


@pytest.mark.parametrize("mark", ['{"shard": 0}', '{"shard": 0, "of": [2]}', "[]", '{"shard": 0, '])
def test_invalid_shard_files_are_rejected_by_name(data, tmp_path, mark):
    parts = [run_shard(data, tmp_path / str(n), shard=(n, 2)).path for n in (0, 1)]
    (parts[1] / "shard.json").write_text(mark)

    with pytest.raises(RecordError, match=r"shard\.json"):
        merge_shards(parts, tmp_path / "merged")


def test_a_shard_file_with_a_huge_number_of_shards_is_rejected(data, tmp_path):
    part = run_shard(data, tmp_path / "part", shard=(0, 2)).path
    (part / "shard.json").write_text('{"shard": 0, "of": 1000000000000}')

    with pytest.raises(RecordError, match="remove the file and run this shard again"):
        merge_shards([part], tmp_path / "merged")


@pytest.mark.parametrize(
    ("change", "message"),
    [({"shots": 0}, r"settings\.shots 1 and 0"), ({"size": 4}, r"runner\.size 3 and 4")],
)
def test_shards_with_different_settings_or_runners_are_rejected(data, tmp_path, change, message):
    one = run_shard(data, tmp_path / "one", shard=(0, 2)).path
    other = run_shard(data, tmp_path / "other", shard=(1, 2), **change).path

    with pytest.raises(RunError, match=message):
        merge_shards([one, other], tmp_path / "merged")


def test_shards_are_not_merged_into_a_run_with_other_settings(data, tmp_path):
    run = run_shard(data, tmp_path / "run", shots=0)
    before = run.log().read_bytes()
    parts = [run_shard(data, tmp_path / str(n), shard=(n, 2)).path for n in (0, 1)]

    with pytest.raises(RunError, match="shots"):
        merge_shards(parts, run.path)

    assert run.log().read_bytes() == before


def test_errors_of_shards_are_counted_in_the_merged_run(data, tmp_path):
    parts = [run_shard(data, tmp_path / str(n), shard=(n, 2)) for n in (0, 1)]
    lines = parts[0].log().read_text().splitlines()
    failed = json.loads(lines[0]) | {"text": None, "finish_reason": "error", "error": "broke"}
    parts[0].log().write_text("\n".join([json.dumps(failed), *lines[1:]]) + "\n")

    merged = merge_shards([part.path for part in parts], tmp_path / "merged")

    assert merged.read_manifest().replies["error"] == 1
