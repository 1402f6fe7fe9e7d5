"""The run log after killed processes, full disks, second writers and other settings."""

import json
import logging
import os
import signal
import subprocess
import sys
import tracemalloc

import pytest

from surface_consistency.errors import RunError, SourceNotFoundError
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import RunLog, read_answers, read_generations
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import Generation, GenerationParams, write_jsonl
from surface_consistency.schemas.generations import ANSWERS

resource = pytest.importorskip("resource", reason="limits of a process need a POSIX system")


def answer(number, text="London\nQ:", **fields):
    """A generation with the fields that the driver sets."""
    values = {"prompt_id": f"q{number}", "text": text, "prompt_key": f"{number:032x}"} | fields
    return Generation(**values)


def failure(number):
    return answer(number, None, finish_reason="error", error="out of memory")


@pytest.fixture
def log_path(tmp_path):
    return tmp_path / "run" / "generations.jsonl"


@pytest.fixture
def written(log_path, manifest):
    """A log of two batches: three answers and an error."""
    with RunLog.open(log_path, manifest) as log:
        log.append([answer(1), failure(2)])
        log.append([answer(3, "naïve ППК"), answer(4)])
    return log_path


def run_child(code, *arguments):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **pipes, text=True)


def test_log_is_resumed_after_its_last_answer(written, manifest):
    with RunLog.open(written, manifest) as log:
        assert len(log) == 3
        assert f"{1:032x}" in log
        assert f"{9:032x}" not in log
        log.append([answer(9)])

    assert [item.prompt_id for item in read_generations(written)] == ["q1", "q3", "q4", "q9", "q2"]
    assert written.read_bytes().endswith(b"\n")


def test_a_lone_surrogate_does_not_stop_a_run(log_path, manifest):
    """A text with a lone surrogate is written with the surrogate replaced, and is done."""
    failed = answer(2, None, finish_reason="error", error="\udcff")
    with RunLog.open(log_path, manifest) as log:
        log.append([answer(1, "Malm\ud800ö"), failed])
        assert f"{1:032x}" in log

    first, second = read_generations(log_path)
    assert (first.text, second.error) == ("Malm?ö", "?")


def test_errors_are_not_done_and_are_replaced_by_answers(written, manifest):
    with RunLog.open(written, manifest) as log:
        assert f"{2:032x}" not in log
        log.append([answer(2, "Paris")])

    by_id = {item.prompt_id: item.text for item in read_generations(written)}
    assert by_id["q2"] == "Paris"
    assert len(by_id) == 4


def test_settings_are_stored_in_the_folder_of_the_log(written, manifest):
    """Time and package version may differ on resume; those of the first run are kept."""
    settings = written.with_name("generations.manifest.json")
    later = manifest.model_copy(update={"created_at": "2027-01-01", "package_version": "9"})

    assert RunManifest.model_validate_json(settings.read_bytes()) == manifest
    assert not written.with_name("generations.jsonl.lock").exists()
    with RunLog.open(written, later) as log:
        assert log.manifest.created_at == "2026-01-01T00:00:00Z"


def test_truncated_last_line_is_dropped_and_repeated(written, manifest, caplog):
    """A log truncated within its last line loses only that line; reading does not change it."""
    whole = written.read_bytes()
    start = whole.rstrip(b"\n").rindex(b"\n") + 1

    for cut in range(start + 1, len(whole)):
        written.write_bytes(whole[:cut])
        assert [item.prompt_id for item in read_generations(written)] == ["q1", "q3", "q2"]
        assert written.read_bytes() == whole[:cut]
        with caplog.at_level(logging.WARNING), RunLog.open(written, manifest) as log:
            assert f"{4:032x}" not in log
            assert len(log) == 2
            log.append([answer(4)])
        assert written.read_bytes() == whole

    assert "generations.jsonl:4: the last line was cut off" in caplog.text


def test_bytes_after_the_last_line_are_dropped(written, manifest):
    """After a power failure, a file may end with bytes that were not written."""
    whole = written.read_bytes()
    written.write_bytes(whole + b"\0\0\0\xff")

    with RunLog.open(written, manifest) as log:
        assert len(log) == 3

    assert written.read_bytes() == whole


@pytest.mark.parametrize("end", [b'{"prompt_id": "q1", "te\n', b'{"name": "mine"}\n', b"\0\n"])
def test_complete_last_line_that_is_not_an_answer_is_rejected(written, manifest, end):
    """Such a line was edited, not truncated; dropping it could lose an answer."""
    written.write_bytes(written.read_bytes() + end)
    before = written.read_bytes()

    for read in (
        lambda: RunLog.open(written, manifest),
        lambda: list(read_generations(written)),
        lambda: read_answers(written),
    ):
        with pytest.raises(RunError, match=r"generations\.jsonl:5: .*Remove that line"):
            read()

    assert written.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"prompt_id": "q1", "te', r"generations\.jsonl:2: not a Generation: .*Invalid JSON"),
        (b'{"id": 1, "text": "x"}', r"generations\.jsonl:2: not a Generation: field 'prompt_id'"),
        (b'{"prompt_id": "q", "text": "x"}', r"jsonl:2: field 'prompt_key' is missing"),
        (b"\xff\xfe", r"generations\.jsonl:2: not UTF-8 at byte 0"),
    ],
)
def test_invalid_line_raises_an_error_with_its_number(written, manifest, line, message):
    lines = written.read_bytes().splitlines()
    written.write_bytes(b"\n".join([lines[0], line, *lines[1:]]) + b"\n")
    before = written.read_bytes()

    with pytest.raises(RunError, match=message + r".*Remove that line .*another `out`"):
        RunLog.open(written, manifest)

    assert written.read_bytes() == before


def test_predictions_made_elsewhere_can_be_read_but_not_resumed(tmp_path, manifest):
    path = tmp_path / "generations.jsonl"
    write_jsonl(path, [Generation(prompt_id="q1", text="a"), Generation(prompt_id="q2", text="b")])
    (tmp_path / "generations.manifest.json").write_text(manifest.model_dump_json())

    assert [item.text for item in read_generations(path)] == ["a", "b"]
    with pytest.raises(RunError, match=r":1: field 'prompt_key' is missing, so the line is not"):
        RunLog.open(path, manifest)


def test_other_settings_are_rejected_with_both_values(written, manifest):
    """The error has both values of each setting that differs, and the log is not left locked."""
    decoding = {"answers": GenerationParams(max_new_tokens=20).model_dump(mode="json")}
    other = manifest.model_copy(update={"decoding": decoding, "runner": {"runner": "stored"}})

    message = r"tokens is 15 there and 20 now; runner\.runner is 'fake' there and 'stored' now"
    for _ in range(2):
        with pytest.raises(RunError, match=rf"{message}\. Use the same .* another `out`"):
            RunLog.open(written, other)
    with RunLog.open(written, manifest) as log:
        assert len(log) == 3
        with pytest.raises(RunError, match="this process writes to this run"):
            RunLog.open(written, manifest)


def test_lines_without_settings_are_rejected(written, manifest):
    settings = written.with_name("generations.manifest.json")
    settings.write_text('{"study": 1}')
    with pytest.raises(RunError, match=r"not the settings of a run: field 'study'"):
        RunLog.open(written, manifest)
    settings.unlink()
    with pytest.raises(RunError, match=r"has lines but no settings"):
        RunLog.open(written, manifest)


def test_settings_can_be_stored_at_another_path(log_path, tmp_path, manifest):
    with RunLog.open(log_path, manifest, manifest_path=tmp_path / "manifest.json"):
        pass

    assert (tmp_path / "manifest.json").is_file()
    assert not log_path.with_name("generations.manifest.json").exists()


def test_append_rejects_generations_without_a_key(log_path, manifest):
    with (
        RunLog.open(log_path, manifest) as log,
        pytest.raises(ValueError, match="every generation of a run log needs `prompt_key`"),
    ):
        log.append([answer(1), answer(2, prompt_key=None)])

    assert log_path.read_bytes() == b""


def test_missing_log_and_invalid_path_raise_an_error(tmp_path, manifest):
    for read in (read_answers, lambda path: list(read_generations(path))):
        with pytest.raises(
            SourceNotFoundError, match=r"run log .*none\.jsonl not found; run the study"
        ):
            read(tmp_path / "none.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot be opened for writing \(.*choose another `out`"):
        RunLog.open(tmp_path / "file" / "log.jsonl", manifest)


LINE = {"prompt_id": "q", "text": "x", "finish_reason": "stop", "prompt_key": "k"}


def columns_of(path):
    return [tuple(getattr(item, name) for name in ANSWERS) for item in read_generations(path)]


def rows_of(path):
    return list(read_answers(path).itertuples(index=False, name=None))


def test_answers_are_the_columns_of_the_generations(written, manifest):
    """Errors are replaced by answers or are last, with the latest error per prompt."""
    known = answer(1, rows_of(written)[0][2])
    with RunLog.open(written, manifest) as log:
        log.append([failure(5), answer(6, "naïve \U0001f600 \x00\n"), failure(7), known])
        again = answer(8, finish_reason="length")
        log.append([answer(5, "at last"), failure(2), failure(7), again])
        log.append([failure(7).model_copy(update={"error": "later"}), failure(6)])

    rows = rows_of(written)

    assert rows == columns_of(written)
    assert list(read_answers(written)) == list(ANSWERS)
    assert [row[0] for row in rows] == ["q1", "q3", "q4", "q6", "q5", "q8", "q2", "q7"]
    assert rows[0][2] == "London\nQ:"
    assert rows[-1][2:] == (None, "error", "later", None, None, None, None)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"prompt_key": ""},
        {"prompt_key": None},
        {"n_prompt_tokens": 3, "n_new_tokens": 0},
        {"n_prompt_tokens": 10**30},
        {"n_prompt_tokens": None, "lookups": None},
        {"lookups": []},
        {"text": "\u2019 \ud83d\ude00"},
        {"text": ""},
        {"finish_reason": "length", "error": None},
        {"finish_reason": "error", "text": None, "error": "out of memory"},
        {"finish_reason": "error", "text": None, "error": ""},
        {"reasoning": "hm \u2019", "reasoning_source": "<think>"},
        {"finish_reason": "unclosed_reasoning", "text": None, "error": "why", "reasoning": "hm"},
        {"finish_reason": "content_filter", "text": None, "error": "why", "reasoning": None},
        {"finish_reason": "refusal", "text": None, "error": "why"},
    ],
)
def test_both_readers_return_the_same_values_for_valid_lines(tmp_path, change):
    log = tmp_path / "log.jsonl"
    lines = [LINE | {"prompt_key": None, "prompt_id": "before"}, LINE | change]
    log.write_text("".join(f" {json.dumps(line)} \n\n" for line in lines))
    with log.open("a") as file:
        file.write('{"text":"x","prompt_id":"short"}\n')

    assert rows_of(log) == columns_of(log)
    assert len(rows_of(log)) == 3


BAD = {
    "prompt_id": ["", 1, None],
    "prompt_key": [1],
    "text": [None, 5],
    "error": ["why"],
    "finish_reason": ["none", None, ["stop"], "error", "refusal"],
    "n_prompt_tokens": [-1, 1.0],
    "n_new_tokens": [True, "1"],
    "reasoning": [5],
    "reasoning_source": [["<think>"]],
    "lookups": [[5], {}],
    "unknown": [1],
}
CHANGES = [{name: value} for name, values in BAD.items() for value in values]
CHANGES += [{"finish_reason": "unclosed_reasoning", "text": None}]
CHANGES += [
    {"finish_reason": "error"} | more
    for more in ({"error": "both"}, {"text": None}, {"text": None, "error": 5})
]


@pytest.mark.parametrize(
    "line",
    [
        *(b"null", b"[]", b"5", b"{", b"\xff", b"\xef\xbb\xbf{}", b"[" * 100_000),
        b'{"prompt_id": "a", "text": "x"} {}',
        b'{"prompt_id": "a", "text": "\\ud800"}',
        b'{"prompt_id": "a", "text": "\\uD800"}',
        b'{"prompt_id": "a", "text": "x", "n_new_tokens": NaN}',
        b'{"prompt_id": "a", "finish_reason": "error", "error": "no text"}',
        *(json.dumps(LINE | change).encode() for change in CHANGES),
    ],
)
def test_both_readers_reject_invalid_lines_with_the_same_error(tmp_path, line):
    log = tmp_path / "log.jsonl"
    good = json.dumps(LINE).encode()
    log.write_bytes(b"\n".join([good, line, good, b""]))

    with pytest.raises(RunError, match=r"log\.jsonl:2: not ") as by_record:
        list(read_generations(log))
    with pytest.raises(RunError, match=r"log\.jsonl:2: not ") as by_column:
        read_answers(log)

    assert str(by_column.value) == str(by_record.value)


def test_answers_are_read_without_a_truncated_last_line(written, tmp_path):
    written.write_bytes(written.read_bytes()[:-20])
    (tmp_path / "log.jsonl").touch()

    assert rows_of(written) == columns_of(written)
    assert [row[0] for row in rows_of(written)] == ["q1", "q3", "q2"]
    assert read_answers(tmp_path / "log.jsonl").shape == (0, 9)


HOLD = """
import sys
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import RunLog
from surface_consistency.runs.manifest import RunManifest
manifest = RunManifest.model_validate_json(open(sys.argv[2]).read())
with RunLog.open(sys.argv[1], manifest):
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["close", "kill"])
def test_second_process_on_a_run_gets_an_error(written, manifest, end):
    """The error has the id of the first process; the lock ends with it, also if it is killed."""
    settings = written.with_name("generations.manifest.json")
    with run_child(HOLD, written, settings) as child:
        assert child.stdout.readline() == "open\n"

        with pytest.raises(RunError, match=rf"process {child.pid} writes to this run"):
            RunLog.open(written, manifest)

        if end == "kill":
            child.kill()
        child.communicate()
    with RunLog.open(written, manifest) as log:
        assert len(log) == 3


def test_full_disk_keeps_the_batches_written_before(written, manifest):
    """A partly written batch is removed, and the run resumes after the previous one."""
    whole = written.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RunLog.open(written, manifest) as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100, hard))
        try:
            with pytest.raises(RunError, match=r"\(File too large\).* the 3 .*Free disk space"):
                log.append([answer(5), answer(6)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        assert written.read_bytes() == whole
        assert f"{5:032x}" not in log
        log.append([answer(5), answer(6)])

    assert len(list(read_generations(written))) == 6


def test_device_without_space_raises_an_error(written, manifest):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with RunLog.open(written, manifest) as log, open("/dev/full", "ab", buffering=0) as full:
        whole, log._file = log._file, full

        with pytest.raises(RunError, match="No space left on device"):
            log.append([answer(5)])

        log._file = whole
        assert len(log) == 3


def test_interrupted_batch_is_removed(written, manifest, monkeypatch):
    """Ctrl-C between writing and syncing leaves only complete batches."""
    whole = written.read_bytes()

    def interrupt(descriptor):
        raise KeyboardInterrupt

    with RunLog.open(written, manifest) as log:
        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            log.append([answer(5)])

    assert written.read_bytes() == whole


def test_each_batch_is_synced_to_disk(log_path, manifest, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)

    with RunLog.open(log_path, manifest) as log:
        synced.clear()
        log.append([answer(1), answer(2)])
        log.append([answer(3)])

    assert len(synced) == 2


def test_large_log_is_read_in_bounded_memory(log_path, manifest, monkeypatch):
    """Only keys are kept in memory: 20,000 answers of 2 kB take less than 5 MB."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    with RunLog.open(log_path, manifest) as log:
        for start in range(0, 20_000, 1_000):
            log.append([answer(start + offset, "word " * 400) for offset in range(1_000)])
    assert log_path.stat().st_size > 40_000_000

    tracemalloc.start()
    with RunLog.open(log_path, manifest) as log:
        n_answers = len(log)
        kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert n_answers == 20_000
    assert kept < 5_000_000
    assert peak < 10_000_000


RUN = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests' own parent does
from surface_consistency.engine.generate import run_prompts
from surface_consistency.models.runner import FakeRunner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import RunLog
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.runs.manifest import RunManifest
def answer(prompt):
    if prompt.id == "q57":
        print("waiting", flush=True)
        sys.stdin.read()
    return f"answer to {prompt.text}"
prompts = [Prompt(id=f"q{n}", text=f"Q: {n}? A:") for n in range(100)]
manifest = RunManifest.model_validate_json(open(sys.argv[2]).read())
with RunLog.open(sys.argv[1], manifest, manifest_path=sys.argv[2]) as log:
    summary = run_prompts(FakeRunner(answer), prompts, GenerationParams(), log, batch_size=10)
print(summary.n_asked, summary.n_reused, flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_run_resumes_to_the_same_log(tmp_path, manifest, sent):
    (tmp_path / "manifest.json").write_text(manifest.model_dump_json())
    path = tmp_path / "log.jsonl"
    with run_child(RUN, path, tmp_path / "manifest.json") as child:
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(sent)
        _, errors = child.communicate()
        assert child.returncode != 0
    before = [item.prompt_id for item in read_generations(path)]
    assert before[:52] == [f"q{number}" for number in range(52)]
    assert len(before) == (57 if sent == signal.SIGINT else 52)  # Batches of 32, ten at once.
    assert ("KeyboardInterrupt" in errors) == (sent == signal.SIGINT)

    with run_child(RUN, path, tmp_path / "manifest.json") as child:
        output, _ = child.communicate("")

    assert output.split("\n")[-2] == f"{100 - len(before)} {len(before)}"
    lines = path.read_text().splitlines()
    assert len(lines) == 100
    texts = {item.prompt_id: item.text for item in read_generations(path)}
    assert texts == {f"q{number}": f"answer to Q: {number}? A:" for number in range(100)}


def test_two_answers_to_one_prompt_are_rejected(written, manifest):
    """Such a log cannot be resumed; two equal lines are one answer."""
    lines = written.read_text().splitlines(keepends=True)
    with written.open("a") as log:
        log.write(lines[0])
    read_answers(written)
    with written.open("a") as log:
        log.write(lines[0].replace("London", "Paris"))

    for read in (
        lambda: RunLog.open(written, manifest),
        lambda: list(read_generations(written)),
        lambda: read_answers(written),
    ):
        number = len(lines) + 2
        with pytest.raises(RunError, match=rf":{number}: another answer to the prompt of line 1,"):
            read()


@pytest.mark.parametrize("group", ["repeat", "long-repeat", "a/b", "..\\x"])
def test_group_names_with_ambiguous_log_names_are_rejected(tmp_path, group):
    folder = RunFolder(tmp_path)

    assert folder.log("long", repeat=True).name == "generations-long-repeat.jsonl"
    with pytest.raises(ValueError, match="a group of prompts has the name"):
        folder.log(group)
