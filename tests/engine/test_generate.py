"""Running all prompts: resuming, batches, errors and the progress line."""

import io
import logging
import math
import re

import pytest

from surface_consistency.engine import generate
from surface_consistency.engine.generate import Progress, progress_reporter, run_prompts
from surface_consistency.errors import RunError, RunnerError, RunnerOutOfMemoryError
from surface_consistency.models.runner import FakeRunner
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.schemas import Generation, GenerationParams, Message, Prompt

PARAMS = GenerationParams()


class Batched(FakeRunner):
    """A runner that records its batches and runs out of memory above `memory` prompts."""

    def __init__(self, *, memory=1_000, handler=None):
        super().__init__(handler or (lambda prompt: f"to {prompt.text}"))
        self.memory = memory
        self.batches = []

    def generate(self, prompts, params=None):
        self.batches.append([prompt.id for prompt in prompts])
        if len(prompts) > self.memory:
            raise RunnerOutOfMemoryError(f"{len(prompts)} prompts do not fit")
        yield from super().generate(prompts, params)


class Planning(Batched):
    """A runner with a custom plan: reversed prompts, three per batch."""

    def plan(self, prompts, params):
        backwards = list(reversed(prompts))
        return iter([backwards[start : start + 3] for start in range(0, len(backwards), 3)])


@pytest.fixture
def prompts():
    return [Prompt(id=f"q{number}", text=f"Q: {number}? A:") for number in range(10)]


@pytest.fixture
def log(tmp_path, manifest):
    with RunLog.open(tmp_path / "log.jsonl", manifest) as opened:
        yield opened


def run(runner, prompts, log, **options):
    return run_prompts(runner, prompts, PARAMS, log, progress=False, **options)


def texts_in_log(log):
    return {item.prompt_id: item.text for item in read_generations(log.path)}


def test_every_prompt_is_sent_once_and_logged_under_its_key(prompts, log):
    runner = Batched()

    summary = run(runner, prompts, log)

    assert (summary.n_asked, summary.n_reused, summary.n_errors) == (10, 0, 0)
    assert summary.seconds >= 0
    assert texts_in_log(log) == {prompt.id: f"to {prompt.text}" for prompt in prompts}
    assert {item.prompt_key for item in read_generations(log.path)} == {p.key for p in prompts}


def test_prompts_of_equal_content_are_sent_once(log):
    chat = (Message(role="user", content="x"),)
    prompts = [
        Prompt(id="a", text="x"),
        Prompt(id="b", text="x", group="g"),
        Prompt(id="c", messages=chat),
        Prompt(id="d", messages=chat),
        Prompt(id="a", text="x"),
    ]
    runner = FakeRunner(lambda prompt: prompt.id)

    summary = run(runner, prompts, log)

    assert runner.asked == ["a", "c"]
    assert summary.n_asked == 2


def test_a_second_start_sends_only_the_remaining_prompts(prompts, log):
    run(Batched(), prompts[:4], log)
    runner = Batched()

    summary = run(runner, prompts, log)

    assert (summary.n_asked, summary.n_reused) == (6, 4)
    assert runner.batches == [[f"q{number}" for number in range(4, 10)]]
    complete = Planning()
    complete.plan = None  # Without remaining prompts `plan` is not called.
    summary = run(complete, prompts, log)
    assert (summary.n_asked, summary.n_reused) == (0, 10)
    assert complete.batches == []
    assert run(complete, [], log).n_asked == 0


def test_batch_size_bounds_the_batches_of_any_plan(prompts, log, tmp_path, manifest):
    plain, planning = Batched(), Planning()

    run(plain, prompts, log, batch_size=4)
    with RunLog.open(tmp_path / "other.jsonl", manifest) as other:
        run(planning, prompts, other, batch_size=2)

    assert [len(batch) for batch in plain.batches] == [4, 4, 2]
    assert planning.batches[:4] == [["q9", "q8"], ["q7"], ["q6", "q5"], ["q4"]]


def test_a_resumed_run_sends_the_same_batches(prompts, log):
    """Batch effects then do not depend on when a run was stopped."""
    whole = Planning()
    run(whole, prompts, log)
    keys = [prompt.key for prompt in prompts]

    class Half:
        def __contains__(self, key):
            return keys.index(key) in (9, 8, 7, 6)

        def append(self, generations):
            pass

    resumed = Planning()
    run(resumed, prompts, Half())

    assert resumed.batches == [["q5", "q4"], ["q3", "q2", "q1"], ["q0"]]
    assert whole.batches[2:] == resumed.batches[1:]


@pytest.mark.parametrize("memory", [1, 2, 3, 5, 9])
def test_batches_that_do_not_fit_are_halved_and_stay_small(prompts, log, memory, caplog):
    runner = Batched(memory=memory)

    with caplog.at_level(logging.WARNING):
        summary = run(runner, prompts, log)

    assert summary.n_errors == 0
    assert texts_in_log(log) == {prompt.id: f"to {prompt.text}" for prompt in prompts}
    too_large = [len(batch) for batch in runner.batches if len(batch) > memory]
    assert too_large == sorted(set(too_large), reverse=True)
    assert "ran out of memory at 10 prompts; continuing with batches of 5" in caplog.text


def test_answers_before_running_out_of_memory_are_kept(prompts, log):
    class Late(Batched):
        def generate(self, prompts, params=None):
            for number, answer in enumerate(FakeRunner.generate(self, prompts, params)):
                if number == 3:
                    raise RunnerOutOfMemoryError("full")
                yield answer

    runner = Late()

    summary = run(runner, prompts, log)

    assert summary.n_asked == 10
    assert len(log.path.read_text().splitlines()) == 10


def test_a_prompt_that_does_not_fit_alone_is_an_error_and_sent_again(prompts, log):
    class Narrow(Batched):
        def generate(self, prompts, params=None):
            if any(prompt.id == "q6" for prompt in prompts):
                raise RunnerOutOfMemoryError("q6 is too long")
            # Answers may come in any order.
            yield from reversed(list(super().generate(prompts, params)))

    summary = run(Narrow(), prompts, log)

    assert (summary.n_asked, summary.n_errors) == (10, 1)
    (failed,) = [item for item in read_generations(log.path) if item.text is None]
    assert failed.prompt_id == "q6"
    assert failed.error == "out of memory at batch size 1: q6 is too long"

    again = run(Batched(), prompts, log)
    assert (again.n_asked, again.n_reused, again.n_errors) == (1, 9, 0)
    assert texts_in_log(log) == {prompt.id: f"to {prompt.text}" for prompt in prompts}


def runner_answering(*ids):
    """Make a runner that answers these ids for any prompts."""

    class Fixed(FakeRunner):
        def generate(self, prompts, params=None):
            for name in ids:
                yield Generation(prompt_id=name, text="x") if isinstance(name, str) else name

    return Fixed({})


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            ["q0"],
            r"did not return a generation for prompts 'q1', 'q2', 'q3', 'q4', 'q5' and 4 more",
        ),
        ([f"q{n}" for n in range(9)], r"did not return a generation for prompt 'q9'; yield one"),
        (
            ["q0", "other"],
            r"answered prompt 'other', which is not in this batch or already has an answer",
        ),
        (["q0", "q0"], r"answered prompt 'q0', which is not in .* and the same command resumes"),
        (
            [{"id": "q0"}],
            r"yielded a dict for prompt 'q0' \('Q: 0\? A:'\) and 9 more; yield objects",
        ),
    ],
)
def test_errors_name_runners_that_violate_the_protocol(prompts, log, ids, message):
    with pytest.raises(RunnerError, match=message):
        run(runner_answering(*ids), prompts, log)

    assert set(texts_in_log(log)) <= {prompt.id for prompt in prompts}


def refuse(asked):
    raise RunnerError("prompt 'q3' has 3,000 tokens")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda prompts: [prompts[:8]], r"omitted prompts 'q8', 'q9' in `plan`"),
        (lambda prompts: [prompts, prompts[:1]], r"planned prompts twice, or .* prompt 'q0'"),
        (lambda prompts: [[Prompt(id="z", text="z")]], r"not in the run: prompt 'z'"),
        (lambda prompts: [[prompts[0], prompts[0]]], r"planned prompts twice, or .*'q0'"),
        (refuse, "'q3' has 3,000 tokens"),
    ],
)
def test_errors_name_plans_that_omit_repeat_add_or_reject_prompts(prompts, log, plan, message):
    runner = Planning()
    runner.plan = lambda asked, params: iter(plan(asked))

    with pytest.raises(RunnerError, match=message):
        run(runner, prompts, log)
    assert len(runner.batches) <= 1


def test_answers_before_a_keyboard_interrupt_are_kept(prompts, log):
    def interrupt(prompt):
        if prompt.id == "q6":
            raise KeyboardInterrupt
        return "x"

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run(Batched(handler=interrupt), prompts, log, batch_size=4)

    assert set(texts_in_log(log)) == {f"q{number}" for number in range(6)}
    assert run(Batched(), prompts, log).n_asked == 4


def test_a_log_that_cannot_be_written_stops_the_run(prompts, log, monkeypatch):
    def full(generations):
        raise RunError("disk full")

    monkeypatch.setattr(log, "append", full)
    runner = Batched()

    with pytest.raises(RunError, match="disk full"):
        run(runner, prompts, log, batch_size=4)
    assert len(runner.batches) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
        ({"shard": (2, 2)}, r"`shard` must be \(number, n_shards\).* got \(2, 2\)"),
        ({}, "prompt id 'a' belongs to two prompts"),
    ],
)
def test_invalid_options_and_prompts_are_rejected(log, options, message):
    two = [Prompt(id="a", text="x"), Prompt(id="a", text="y")]

    with pytest.raises(ValueError, match=message):
        run(Batched(), two, log, **options)


def test_progress_is_reported_after_each_batch(prompts, log, capsys):
    run_prompts(Batched(), prompts[:2], PARAMS, log)
    states = []

    run_prompts(Batched(), prompts, PARAMS, log, progress=states.append, batch_size=3)

    assert [state.n_done for state in states] == [2, 5, 8, 10]
    assert [state.n_asked for state in states] == [0, 3, 6, 8]
    assert {state.n_total for state in states} == {10}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error", [TypeError("no length"), ValueError("went away"), KeyError("x"), OSError("no route")]
)
def test_error_of_a_failing_runner_names_the_prompt_and_keeps_earlier_answers(log, error):
    def handler(prompt):
        if prompt.id == "p2":
            raise error
        return "fine"

    prompts = [Prompt(id=f"p{number}", text=str(number)) for number in range(4)]

    message = (
        rf"runner 'fake' failed on prompt 'p2' \('2'\) and 1 more: {type(error).__name__}: .*; the "
        "answers so far are stored, and the same command resumes"
    )
    with pytest.raises(RunnerError, match=message) as raised:
        run(FakeRunner(handler), prompts, log)
    assert raised.value.__cause__ is error

    assert set(texts_in_log(log)) == {"p0", "p1"}


def test_answers_are_in_the_log_before_their_batch_ends(tmp_path, manifest, monkeypatch):
    monkeypatch.setattr(generate, "_STORE_SECONDS", -1.0)
    path, texts_in_log = tmp_path / "log.jsonl", []

    def answer(prompt):
        texts_in_log.append(len(path.read_text().splitlines()) if path.exists() else 0)
        return "yes"

    prompts = [Prompt(id=f"q{n}", text=str(n)) for n in range(4)]
    with RunLog.open(path, manifest) as log:
        run(FakeRunner(answer), prompts, log)

    assert texts_in_log == [0, 1, 2, 3]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def state(**changes):
    values = {"n_done": 30, "n_total": 100, "n_asked": 20, "seconds": 4.0} | changes
    return Progress(**values)


def test_rate_counts_only_prompts_sent_since_this_start():
    assert state().rate == 5.0
    assert state().seconds_left == 14.0
    assert math.isnan(state(n_asked=0).rate)
    assert math.isnan(state(n_asked=0).seconds_left)


def shown(stream):
    return [line.strip() for line in stream.getvalue().split("\r") if line]


def test_progress_on_a_terminal_is_one_updated_line():
    stream, empty = Terminal(), Terminal()

    with progress_reporter(True, stream=stream) as report:
        report(state(n_asked=0, n_done=10))
        report(state())
    with progress_reporter(True, stream=empty) as report:
        report(state(n_done=0, n_total=0, n_asked=0))

    first, *_, last = shown(stream)
    assert re.match(r"10%.* 10/100 \[", first)
    assert re.match(r"30%.* 30/100 \[.*prompts/s\]", last)
    assert stream.getvalue().count("\n") == 1
    assert shown(empty)[-1].startswith("0 prompts")


def test_progress_line_is_ended_when_the_run_is_interrupted():
    stream = Terminal()

    def run():
        with progress_reporter(True, stream=stream) as report:
            report(state())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run()

    assert stream.getvalue().endswith("\n")


def test_printed_rate_excludes_answers_of_earlier_starts(monkeypatch):
    stream, clock = Terminal(), iter(range(0, 1000, 10))
    monkeypatch.setattr("tqdm.std.time", lambda: next(clock))

    with progress_reporter(True, stream=stream) as report:
        report(state(n_total=61_120, n_done=61_080, n_asked=0))
        report(state(n_total=61_120, n_done=61_100, n_asked=20))

    rates = re.findall(r"([\d.]+) prompts/s", stream.getvalue())
    assert rates
    assert max(map(float, rates)) <= 2.0


@pytest.mark.parametrize(("progress", "stream"), [(True, io.StringIO()), (False, Terminal())])
def test_progress_is_not_written_to_files_or_in_quiet_runs(progress, stream):
    with progress_reporter(progress, stream=stream) as report:
        report(state())

    assert stream.getvalue() == ""
