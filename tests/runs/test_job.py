"""A job in shards: each is run once, another plan is rejected, complete results are joined."""

import numpy as np
import pytest

from surface_consistency.errors import DataError, RunError
from surface_consistency.runs.job import Job, ShardResult


class Squares(Job):
    noun = "table of squares"
    kinds = ("squares",)
    own_names = ("inputs",)

    def square(self, shard):
        number = self.planned["shards"][shard]
        return ShardResult({"square": np.array([number**2])}, {"number": number})


def begin(folder, *numbers, **settings):
    return Squares.begin(folder, "squares", lambda _: {"shards": list(numbers), **settings})


def squares(job):
    return [(one.notes["number"], one.arrays["square"].item()) for one in job.results()]


def test_each_shard_is_done_once_by_any_process(tmp_path):
    job = begin(tmp_path, 2, 3, 5)

    assert [job.do(1, job.square), job.do(1, job.square)] == [True, False]
    assert Squares.open(tmp_path).missing() == [0, 2]
    assert begin(tmp_path, 2, 3, 5).do_all(job.square, n_workers=2) == 2
    assert squares(job) == [(2, 4), (3, 9), (5, 25)]
    job.finish({"n": 3})
    assert Squares.open(tmp_path).manifest["result"] == {"n": 3}


def test_failed_or_locked_shard_is_not_done(tmp_path):
    job = begin(tmp_path, 2, 3)

    def fails(shard):
        with pytest.raises(RunError, match="this process already works on this table of squares"):
            job.do(shard, job.square)
        raise KeyboardInterrupt("stopped by hand")

    with pytest.raises(KeyboardInterrupt, match="stopped by hand"):
        job.do(0, fails)
    with pytest.raises(DataError, match=r"2 of 2 shards are not done yet \(0, 1\)"):
        squares(job)


@pytest.mark.parametrize("kept", [0, 10, 200, -1])
def test_truncated_shard_raises_an_error(tmp_path, kept):
    job = begin(tmp_path, 2)
    job.do_all(job.square)
    path = tmp_path / "shards" / "00000.npz"
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(DataError, match=r"00000\.npz is invalid.*delete it and do shard 0 again"):
        squares(job)


def test_other_plan_is_rejected_with_the_difference(tmp_path):
    begin(tmp_path, 2, 3, power=2)

    with pytest.raises(RunError, match=r"power was 2, now 3\. Use .* or delete the folder: no sh"):
        begin(tmp_path, 2, 3, power=3)


@pytest.mark.parametrize("content", ["[" * 300_000, "[]", '{"plan": 1}', "\\x00"])
def test_damaged_manifest_raises_an_error(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)

    with pytest.raises(DataError, match=r"manifest\.json"):
        Squares.open(tmp_path)
