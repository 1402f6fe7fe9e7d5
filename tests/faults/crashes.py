"""Kills every command at each of its file operations, and runs it again.

A command runs in a forked process whose file operations are counted: opening for writing,
writing, syncing, renaming, removing, making folders and truncating. In the first round nothing
happens, which gives the operations and the result. Then, for each operation, the process ends
before it as by SIGKILL ("kill"), ends in the middle of what it writes ("torn"), or is told that
the disk is full ("full"). After each, three things must hold:

- the report of a run that is left behind is refused in one line, or shows the numbers of the result
  before or after the command, never others;
- the same command, given again, ends well and without a traceback;
- the folder then holds the same bytes as after the command that nothing disturbed.

    python -m tests.faults.crashes [--points N] [NAME ...]
"""

import argparse
import builtins
import contextlib
import dataclasses
import errno
import gc
import io
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

MINI = Path(__file__).resolve().parents[1] / "wikimedia" / "mini"
ECHO = ("--runner", "tests.faults.plugins:Echo")
QUICK = ("--resamples", "5")
RUN = ("run", "redirectqa", "--source", "sample", "--limit", "2", "--repeat", "2", *ECHO)
SLAQ = ("run", "slaq", "--source", "sample", "--limit", "1", "--permutations", "2", "--repeat", "2")
AUDIT = ("audit", "--databases", "sample", "--styles", "cloze", "--limit", "2", "--repeat", "2")
COMPARE = ("compare", "v.csv", "--first", "a", "--second", "b")
BUILD = ("build", "redirectqa", "--dumps", str(MINI), "--no-checksums", "--quiet", "--out", "built")
PREDICTIONS = ("score", "--predictions", "p.jsonl", "--source", "sample")
KILLED = 137


@dataclasses.dataclass(frozen=True)
class Command:
    """A command line, what stands there before it, and the run that it leaves."""

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    run: str | None = "run"
    has_figures: bool = False


COMMANDS = {
    "run redirectqa": Command((*RUN, "--out", "run", *QUICK)),
    "run slaq": Command((*SLAQ, *ECHO, "--judge", "matcher", "--out", "run", *QUICK)),
    "run audit": Command((*AUDIT, *ECHO, "--retriever", "fuzzy", "--out", "run", *QUICK)),
    "run audit, a sweep": Command(
        (
            *AUDIT,
            *ECHO,
            "--retriever",
            "fuzzy",
            "--threshold",
            "0.5",
            "0.9",
            "--out",
            "run",
            *QUICK,
        ),
        run="run/fuzzy-0.5",
    ),
    "run again": Command((*RUN, "--out", "run", *QUICK), before=((*RUN, "--out", "run", *QUICK),)),
    "score RUN": Command(
        ("score", "run", "--rule", "exact", "--region", "whole", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "score RUN, fewer checks": Command(
        ("score", "run", "--rule", "exact", "--no-agreement", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "score --predictions": Command((*PREDICTIONS, "--out", "run", *QUICK)),
    "report": Command(
        ("report", "run", "--out", "page", *QUICK), before=((*RUN, "--out", "run", *QUICK),)
    ),
    "report with figures, over another": Command(
        ("report", "run", "--out", "run", "--answers", "3", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
        has_figures=True,
    ),
    "analyse": Command(
        ("analyse", "tests.faults.plugins:Counting", "run", "--out", "run", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "compare --out": Command((*COMPARE, "--out", "run", "--by", "kind", *QUICK)),
    "compare --out, over another": Command(
        (*COMPARE, "--out", "run", *QUICK),
        before=((*COMPARE, "--out", "run", "--by", "kind", *QUICK),),
    ),
    "build redirectqa": Command(BUILD, run=None),
    "build audit": Command(
        ("build", "audit", "--out", "built", "--styles", "cloze", "--topologies", "base"), run=None
    ),
}


class Disk:
    """Counts file operations within a folder, and strikes at one of them."""

    def __init__(self, home, strike=None, kind="kill"):
        self.home, self.strike, self.kind = os.path.abspath(home), strike, kind
        self.operations = []
        self._open = io.open
        self._raw = {}

    def install(self):
        """Put itself between Python and the system, in a process that ends soon."""
        for name in ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "truncate"):
            setattr(os, name, self._watched(name, getattr(os, name)))
        os.fsync = self._synced(os.fsync)
        os.open = self._opened(os.open)
        io.open = builtins.open = self.open

    def count(self, what, path):
        """Count an operation, and strike if it is the one; tell whether to tear what is written."""
        if not isinstance(path, str | os.PathLike) or not self._is_ours(path):
            return False
        self.operations.append((what, os.path.relpath(os.fspath(path), self.home)))
        if self.strike != len(self.operations) - 1:
            return False
        if self.kind == "full" and what != "unlink":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *self._names(what, path))
        if self.kind == "torn" and what == "write":
            return True
        if self.kind != "full":
            os._exit(KILLED)
        return False

    def open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **more):
        """Open a file; what is written to it passes by."""
        if not set(mode) & set("wax+") or more or not isinstance(file, str | os.PathLike):
            return self._open(file, mode, buffering, encoding, errors, newline, **more)
        self.count("open", file)
        raw = _Watched(self, file, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        made = io.BufferedRandom if "+" in mode else io.BufferedWriter
        return made(raw) if "b" in mode else io.TextIOWrapper(made(raw), encoding, errors, newline)

    def _is_ours(self, path):
        return os.path.abspath(os.fspath(path)).startswith(self.home + os.sep)

    def _names(self, what, path):
        """A full disk names the file where a name was given, not where bytes were."""
        return () if what in ("write", "fsync") else (os.fspath(path),)

    def _watched(self, name, function):
        def call(path, *arguments, **options):
            target = arguments[0] if name in ("replace", "rename") else path
            self.count("unlink" if name == "remove" else name, target)
            return function(path, *arguments, **options)

        return call

    def _synced(self, function):
        def call(descriptor):
            self.count("fsync", os.readlink(f"/proc/self/fd/{descriptor}"))
            return function(descriptor)

        return call

    def _opened(self, function):
        def call(path, flags, *arguments, **options):
            if flags & (os.O_CREAT | os.O_TRUNC):
                self.count("open", path)
            return function(path, flags, *arguments, **options)

        return call


class _Watched(io.FileIO):
    """A file whose writes are counted."""

    def __init__(self, disk, file, mode):
        super().__init__(file, mode)
        self._disk = disk

    def write(self, data):
        if self._disk.count("write", self.name):
            super().write(bytes(data)[: len(data) // 2])
            os._exit(KILLED)
        return super().write(data)

    def truncate(self, size=None):
        self._disk.count("truncate", self.name)
        return super().truncate(size)


class _Clock(datetime):
    """The same moment, always."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=tz or UTC)


def call(words, home, *, strike=None, kind="kill", has_figures=False):
    """Run a command in a process of its own.

    Returns:
        Exit code, what was printed as an error, and the file operations.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _serve(words, home, writing, strike, kind, has_figures)
        finally:
            os._exit(99)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if not told:
        return os.waitstatus_to_exitcode(status), "", []
    return pickle.loads(told)


def _serve(words, home, pipe, strike, kind, has_figures):
    """Run a command here, tell the pipe what came of it, and end."""
    from surface_consistency import cli
    from surface_consistency.studies import asking, judging

    os.chdir(home)
    asking.datetime = judging.datetime = _Clock
    if not has_figures:
        sys.modules["matplotlib"] = None
    errors = io.StringIO()
    disk = Disk(home, strike, kind)
    disk.install()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = cli.main(words)
        except BaseException:
            code = 1
            traceback.print_exc()
    found = (code, errors.getvalue(), disk.operations)
    with disk._open(pipe, "wb") as out:
        out.write(pickle.dumps(found))
    os._exit(0)


def contents(home):
    """Read all files below a folder, but for locks, half-written ones, and what a build stages."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file()
        and path.suffix != ".lock"
        and not any(part.endswith((".part", ".work")) for part in path.relative_to(home).parts)
    }


def numbers(home, run):
    """Report a run: its tables, or the line that refuses it, or what went wrong."""
    page = home.with_name("probe")
    shutil.rmtree(page, ignore_errors=True)
    code, said, _ = call(["report", run, "--out", str(page), *QUICK, "--answers", "0"], home)
    if code == 0:
        return contents(page / "tables")
    is_told = code == 2 and said.startswith("error: ") and "Traceback" not in said
    return None if is_told else {"": f"rc {code}: {said[-500:]}".encode()}


def strike_all(name, command, home, n_points, rng, only=""):
    """Strike a command at its operations, and yield each point with what is wrong, or None."""
    start, work = home / "start", home / "work"
    start.mkdir(parents=True)
    _prepare(start)
    for words in command.before:
        code, said, _ = call(list(words), start)
        if code:
            raise RuntimeError(f"{name}: {words} ended with {code}: {said}")
    options = {"has_figures": command.has_figures}

    def renew():
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(start, work)

    renew()
    has_run = command.run is not None
    known = [numbers(work, command.run)] if has_run and command.before else []
    code, said, operations = call(list(command.words), work, **options)
    if code:
        raise RuntimeError(f"{name} ended with {code}: {said}")
    wanted = contents(work)
    if has_run:
        known.append(numbers(work, command.run))
    points = [(place, "kill") for place in range(len(operations))]
    points += [(place, "torn") for place, (what, _) in enumerate(operations) if what == "write"]
    points += [(p, "full") for p, (what, _) in enumerate(operations) if what not in ("unlink",)]
    points = [(p, kind) for p, kind in points if re.search(only, described(kind, operations[p]))]
    for place, kind in sorted(rng.sample(points, min(n_points, len(points)))):
        renew()
        code, said, _ = call(list(command.words), work, strike=place, kind=kind, **options)
        where = f"{name}, {described(kind, operations[place])} ({place})"
        wrong = None
        if kind == "full":
            if code not in (0, 2) or "Traceback" in said:
                wrong = f"rc {code}: {said[-800:]}"
            elif code == 2 and not _names_a_file(said):
                wrong = f"no file is named: {said}"
        elif code != KILLED:
            wrong = f"rc {code} rather than killed: {said[-300:]}"
        if wrong is None and has_run:
            found = numbers(work, command.run)
            if found is not None and found not in known:
                wrong = f"other numbers: {_difference(known[-1] or {}, found)}"
        if wrong is None:
            code, said, _ = call(list(command.words), work, **options)
            if code or "Traceback" in said:
                wrong = f"again: rc {code}: {said[-800:]}"
            elif (found := contents(work)) != wanted:
                wrong = f"again: {_difference(wanted, found)}"
        yield where, wrong


def described(kind, operation):
    """Name a point, such as "kill at replace run/scoring.json"."""
    return f"{kind} at {' '.join(operation)}"


def _names_a_file(said):
    """Tell whether an error of one line names what could not be written."""
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    return len(lines) == 1 and ("/" in lines[0] or "." in lines[0].removeprefix("error: "))


def _difference(wanted, found):
    """Name the files that differ."""
    names = [name for name in sorted({*wanted, *found}) if wanted.get(name) != found.get(name)]
    first = names[0] if names else ""
    return f"{names[:6]}: {wanted.get(first, b'')[:150]!r} / {found.get(first, b'')[:150]!r}"


def _prepare(home):
    """Write the files that commands read."""
    import json

    from surface_consistency.data.redirectqa import load_sample

    rows = ["fact_id,a,b,kind", *(f"{i},{i % 2},{int(i % 3 > 0)},k{i % 2}" for i in range(12))]
    (home / "v.csv").write_text("\n".join(rows) + "\n")
    questions = load_sample().questions
    lines = [{"id": one.id, "prediction": one.triple.answers[0]} for one in questions]
    (home / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _import_all():
    """Load what commands load, so that processes only fork."""
    import pyarrow.parquet  # noqa: F401

    import tests.faults.plugins  # noqa: F401


def main(argv=None):
    """Strike commands; print a Markdown table of points and failures, and each failure."""
    reader = argparse.ArgumentParser(description=main.__doc__)
    reader.add_argument("--points", type=int, default=10**9, help="of each command, at most")
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    reader.add_argument("--only", default="", help='pattern of points, such as "full at open"')
    reader.add_argument("names", nargs="*")
    given = reader.parse_args(argv)
    _import_all()
    gc.freeze()
    until = time.monotonic() + given.seconds
    kinds, failures = Counter(), []
    print("| command | points | failures |\n|---|---|---|")
    for name in given.names or COMMANDS:
        tries = bad = 0
        with tempfile.TemporaryDirectory() as home:
            rng = random.Random(given.seed)
            command, folder = COMMANDS[name], Path(home) / "x"
            points = strike_all(name, command, folder, given.points, rng, given.only)
            for where, wrong in points:
                tries += 1
                kinds[where.partition(", ")[2].split(" at ")[0].rpartition(" ")[2]] += 1
                if wrong is not None:
                    bad += 1
                    failures.append(f"{where}\n  {wrong}")
                if time.monotonic() > until:
                    break
        print(f"| {name} | {tries} | {bad} |", flush=True)
    print(f"\n{sum(kinds.values())} points ({dict(kinds)}), {len(failures)} failures")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
