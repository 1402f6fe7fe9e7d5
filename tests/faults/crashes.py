"""Interrupt every command at each of its file operations, and run it again.

A command runs in a forked process that counts its file operations: opening for writing, writing,
syncing, renaming, removing, creating folders and truncating. The first run is not interrupted; it
provides the operations and the expected files. Each operation is then tested with three faults: a
SIGKILL before the operation ("kill"), a SIGKILL after half of the bytes of a write ("torn"), and an
error that the disk is full ("full"). A killed process leaves the files in their state at that
moment. A single second run therefore covers all kills: it copies the folder before each operation
and within each write. Each full disk needs a separate run. Three conditions are checked after each
fault:

- `report` of the interrupted run prints one error line, or it writes the numbers of the result
  before or after the command, but no other numbers;
- the same command succeeds without a traceback if it is repeated;
- the folder then contains the same bytes as after the uninterrupted command.

    python -m tests.faults.crashes [--points N] [--only PATTERN] [NAME ...]
"""

import argparse
import builtins
import contextlib
import csv
import dataclasses
import errno
import gc
import hashlib
import importlib
import io
import json
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

from tests import made_logs

TESTS = Path(__file__).resolve().parents[1]
MINI = TESTS / "surface_consistency_build" / "wikimedia" / "mini"
ECHO = ("--runner", "tests.faults.plugins:Echo")
QUICK = ("--setting", "resamples=5")
RUN = ("run", "redirectqa", "--source", "sample", "--limit", "2", "--repeat", "2", *ECHO)
SLAQ = ("run", "slaq", "--source", "sample", "--limit", "1", "--permutations", "2", "--repeat", "2")
AUDIT = (
    "run",
    "audit",
    "--databases",
    "sample",
    "--styles",
    "cloze",
    "--limit",
    "2",
    "--repeat",
    "2",
)
FORMS = ("run", "forms", "--source", "forms.csv", "--repeat", "2")
UNLEARN = ("run", "unlearning", "--source", "facts.csv", "--repeat", "2")
COMPARE = ("paired", "v.csv", "--first", "a", "--second", "b")
MODELS = ("compare", "v.csv", "--out", "page")
PARTS = (*RUN, *QUICK, "--out", "run", "--shards", "2")
SHEET = ("--labelling-sheet", "sheet.csv", "--setting", "labelling_sample=2")
DUMPS = ("--source", str(MINI), "--no-checksums", "--quiet", "--out", "built")
BUILD = ("build", "redirectqa", *DUMPS)
POPQA = ("build", "popqa-redirect", *DUMPS)
PREDICTIONS = ("score", "--predictions", "p.jsonl", "--source", "sample")
SCORER = ("--runner", "tests.faults.plugins:Scorer", "--label", "echo")
LINKING = ("run", "linking", "--source", "sample", "--limit", "2", "--repeat", "2", *SCORER)
WORDNET = ("--wordnet", str(TESTS / "studies" / "lexical" / "perturbation" / "wordnet"))
LEXICAL = ("run", "lexical", "--task", "piqa", "--source", "piqa", "--repeat", "2", *WORDNET)
COUNT = ("--corpus", "corpus", "--shards", "2", "--workers", "1")
PAIRS = ("count", "pairs", "--data", "sample", *COUNT)
NGRAMS = ("count", "ngrams", "--data", "texts.jsonl", "--n", "2", *COUNT)


WRITER = ("--runner", "tests.faults.plugins:Writer", "--label", "writer")
SHORT = ("--min-words", "10", "--min-characters", "10")
ARTICLES = ("build", "articles", "--pages", "wiki.xml", "--categories", "Planets", *SHORT)
FEW = ("--styles", "cloze", "--topologies", "base")
TOPICS = ("build", "topics", "--articles", "articles.jsonl", *SHORT, *WRITER)
PARAPHRASES = ("build", "paraphrases", "--source", "sample", "--limit", "2", *WRITER)
REVIEWED = ("--review", "written/review.csv", "--out", "built")


def fill_in(home):
    """Fill in the review of the paraphrases; every paraphrase is accepted."""
    sheet = home / "written" / "review.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row | {"keep": "" if row["dropped"] else "yes"} for row in rows]
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_questions(home):
    """Write two items in two forms each, for the studies of forms and of unlearning."""
    for key, name in (("item", "forms.csv"), ("item", "facts.csv")):
        rows = [
            {key: item, "form": form, "question": text, "answers": '["x"]'}
            for item in ("a", "b")
            for form, text in (("plain", f"What is {item}?"), ("other", f"Say what {item} is."))
        ]
        with (home / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def write_unlearning_logs(home):
    """Write logs of the first 100 questions, of a model trained on them and of one that was not."""
    for folder, side in (("full", "full"), ("kept", "retain90")):
        log = made_logs.tofu_log(TESTS / "data" / "files", made_logs.MODELS[1], side)
        for metric in log.values():
            cells = metric["value_by_index"].items()
            metric["value_by_index"] = {n: cell for n, cell in cells if int(n) < 100}
        made_logs.write_log(home / folder, log)


def write_labels(home):
    """Write correctness labels of three items in two forms each."""
    rows = [f"a,{n},{form},{n % 2}" for n in range(3) for form in ("plain", "other")]
    (home / "forms.csv").write_text("\n".join(["model,item,form,correct", *rows]), "utf-8")


def save_results(**options):
    """Save results in the same way as scripts and notebooks."""
    import pandas as pd

    import surface_consistency as sc

    forms = pd.read_csv("forms.csv")
    sc.accuracy(forms, **options).save("accuracy")
    sc.consistency(forms, **options).save("consistency")
    wide = pd.read_csv("v.csv")
    sc.paired(wide, first="a", second="b", **options).save("paired")
    sc.compare("v.csv", **options).save("compared")


def save_again():
    """Save different results into the same folders."""
    save_results(confidence=0.9)


def run_in_python():
    """Run a study and write its page, as in the guide."""
    import surface_consistency as sc
    from tests.faults.plugins import Echo

    options = {"source": "sample", "limit": 2, "repeat": 2, "resamples": 5}
    sc.run("redirectqa", runner=Echo(), out="run", progress=False, **options)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command that is interrupted.

    The words of a command line can be "python" and the name of a function of this module.
    """

    words: tuple[str, ...]
    """The command line."""
    before: tuple = ()
    """Command lines, or functions of the folder, that are called before."""
    run: str | None = "run"
    """Folder of the run that the command writes; None if it writes no run."""


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
    "run forms": Command((*FORMS, *ECHO, "--out", "run", *QUICK), before=(write_questions,)),
    "run unlearning": Command((*UNLEARN, *ECHO, "--out", "run", *QUICK), before=(write_questions,)),
    "analyse unlearning": Command(
        ("analyse", "unlearning", "full/TOFU_EVAL.json", "kept/TOFU_EVAL.json", "--out", "page"),
        before=(write_unlearning_logs,),
        run=None,
    ),
    "accuracy --out": Command(
        ("accuracy", "forms.csv", "--out", "page"), before=(write_labels,), run=None
    ),
    "consistency --out": Command(
        ("consistency", "forms.csv", "--out", "page"), before=(write_labels,), run=None
    ),
    "run again": Command((*RUN, "--out", "run", *QUICK), before=((*RUN, "--out", "run", *QUICK),)),
    "score RUN": Command(
        ("score", "run", "--rule", "exact", "--setting", "region=whole", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "score RUN, fewer checks": Command(
        ("score", "run", "--rule", "exact", "--setting", "agreement=false", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "score --predictions": Command((*PREDICTIONS, "--out", "run", *QUICK)),
    "report": Command(
        ("report", "run", "--out", "page", *QUICK), before=((*RUN, "--out", "run", *QUICK),)
    ),
    "report over another": Command(
        ("report", "run", "--out", "run", "--setting", "answers=3", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "analyse": Command(
        ("analyse", "tests.faults.plugins:Counting", "run", "--out", "run", *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "paired --out": Command((*COMPARE, "--out", "page", "--by", "kind"), run=None),
    "paired --out, over another": Command(
        (*COMPARE, "--out", "page"), before=((*COMPARE, "--out", "page", "--by", "kind"),), run=None
    ),
    "compare models --out": Command(MODELS, run=None),
    "compare models --out, over another": Command(
        (*MODELS, "--margin", "0.1"), before=((*MODELS, "--by", "kind"),), run=None
    ),
    "Python, Result.save of accuracy, consistency, paired and compare": Command(
        ("python", "save_results"), before=(write_labels,), run=None
    ),
    "Python, Result.save over another": Command(
        ("python", "save_again"), before=(write_labels, ("python", "save_results")), run=None
    ),
    "Python, run": Command(("python", "run_in_python")),
    "run, two models": Command(
        (*RUN, "--model", "one", "two", "--out", "run", *QUICK), run="run/two"
    ),
    "run, a shard": Command((*PARTS, "--shard", "1"), run=None),
    "run, merged shards": Command(
        PARTS, before=((*PARTS, "--shard", "1"), (*PARTS, "--shard", "2"))
    ),
    "score RUN, a labelling sheet": Command(
        ("score", "run", "--rule", "exact", *SHEET, *QUICK),
        before=((*RUN, "--out", "run", *QUICK),),
    ),
    "demo": Command(("demo", "--steps", "2", "--out", "run")),
    "run linking": Command((*LINKING, "--out", "run", *QUICK)),
    "run lexical": Command((*LEXICAL, *SCORER, "--out", "run", *QUICK)),
    "score RUN, linking by calibrated odds": Command(
        ("score", "run", "--calibrated", *QUICK), before=((*LINKING, "--out", "run", *QUICK),)
    ),
    "analyse, linking against consistency": Command(
        ("analyse", "linking_vs_consistency", "run", "--linking", "linked", "--out", "run", *QUICK),
        before=(
            (*RUN, "--limit", "30", "--out", "run", *QUICK),
            (*LINKING, "--limit", "30", "--out", "linked", *QUICK),
        ),
    ),
    "analyse, frequency": Command(
        ("analyse", "frequency", "run", "--frequencies", "counted", "--out", "run", *QUICK),
        before=((*RUN, "--limit", "30", "--out", "run", *QUICK), (*PAIRS, "--out", "counted")),
    ),
    "count names": Command(
        ("count", "names", "--data", "sample", *COUNT, "--out", "counted"), run=None
    ),
    "count pairs": Command((*PAIRS, "--out", "counted"), run=None),
    "count pairs, one shard is left": Command(
        (*PAIRS, "--out", "counted"),
        before=((*PAIRS, "--out", "counted", "--shard", "1"),),
        run=None,
    ),
    "count merge": Command(
        ("count", "merge", "counted"),
        before=tuple((*PAIRS, "--out", "counted", "--shard", place) for place in "01"),
        run=None,
    ),
    "count ngrams": Command((*NGRAMS, "--out", "counted"), run=None),
    "build redirectqa": Command(BUILD, run=None),
    "build popqa-redirect": Command((*POPQA, "--popqa", "popqa.jsonl"), run=None),
    "build slaq": Command(
        ("build", "slaq", "--source", "topics.jsonl", "--out", "built"), run=None
    ),
    "build lmlm-audit": Command(
        ("build", "lmlm-audit", "--source", "audited", "--out", "built"),
        before=(("build", "audit", "--out", "audited", *FEW),),
        run=None,
    ),
    "build audit": Command(("build", "audit", "--out", "built", *FEW), run=None),
    "build articles": Command((*ARTICLES, "--out", "built/articles.jsonl"), run=None),
    "build topics": Command((*TOPICS, "--out", "built"), run=None),
    "build topics --review": Command(
        (*TOPICS, *REVIEWED), before=((*TOPICS, "--out", "written"),), run=None
    ),
    "build paraphrases": Command((*PARAPHRASES, "--out", "built"), run=None),
    "build paraphrases --review": Command(
        (*PARAPHRASES, *REVIEWED), before=((*PARAPHRASES, "--out", "written"), fill_in), run=None
    ),
    "count linked, rows": Command(
        ("count", "linked", "--data", "sample", "--from", "links.csv", "--out", "counted"), run=None
    ),
    "count linked, an entity map": Command(
        ("count", "linked", "--data", "sample", "--from", "map.npz", "--out", "counted"), run=None
    ),
    "export": Command(
        ("export", "run", "--out", "exported"), before=((*RUN, "--out", "run", *QUICK),), run=None
    ),
    "export over another": Command(
        ("export", "run", "--out", "exported"),
        before=(
            (*RUN, "--out", "run", *QUICK),
            ("export", "run", "--out", "exported"),
            ("score", "run", "--rule", "exact", *QUICK),
        ),
        run=None,
    ),
}
NOT_KILLED = {
    "lm-eval": "another program writes",
    "lm-eval-path": "writes nothing",
    "analyse memorization": "adds tables in the same way as `analyse frequency`",
    "analyse popularity": "adds tables in the same way as `analyse frequency`",
    "analyse mechanism": "adds tables of an ablated model in the same way as `analyse frequency`",
}
"""Commands that are not killed, and why."""


class Disk:
    """Counts file operations within a folder.

    Args:
        home: The folder.
        full: Index of the operation at which the disk is full.
        copies: Folders for copies of the state at an operation, by its index and kind of fault.
    """

    def __init__(self, home, full=None, copies=()):
        self.home, self.full, self.copies = os.path.abspath(home), full, dict(copies)
        self.operations = []
        self._open = io.open
        self._raw = {}

    def install(self):
        """Replace the file operations of Python in this process, which runs one command."""
        for name in ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "truncate"):
            setattr(os, name, self._counted(name, getattr(os, name)))
        os.fsync = self._synced(os.fsync)
        os.open = self._opened(os.open)
        io.open = builtins.open = self.open

    def count(self, what, path):
        """Count an operation; return its index, or None if the path is not in the folder."""
        if not isinstance(path, str | os.PathLike) or not self._is_ours(path):
            return None
        place = len(self.operations)
        self.operations.append((what, os.path.relpath(os.fspath(path), self.home)))
        if place == self.full and what != "unlink":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *self._names(what, path))
        self.keep(place, "kill")
        return place

    def keep(self, place, kind):
        """Copy the folder in its present state, if `copies` contains this operation."""
        if copy := self.copies.get((place, kind)):
            shutil.copytree(self.home, copy)

    def open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **more):
        """Open a file; its writes are counted."""
        if not set(mode) & set("wax+") or more or not isinstance(file, str | os.PathLike):
            return self._open(file, mode, buffering, encoding, errors, newline, **more)
        self.count("open", file)
        raw = _CountedFile(self, file, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        wrap = io.BufferedRandom if "+" in mode else io.BufferedWriter
        return wrap(raw) if "b" in mode else io.TextIOWrapper(wrap(raw), encoding, errors, newline)

    def _is_ours(self, path):
        return os.path.abspath(os.fspath(path)).startswith(self.home + os.sep)

    def _names(self, what, path):
        """Return the file name of the error; the system gives none for writes and syncs."""
        return () if what in ("write", "fsync") else (os.fspath(path),)

    def _counted(self, name, function):
        def call(path, *arguments, **options):
            target = arguments[0] if name in ("replace", "rename") else path
            if (folder := options.get("dir_fd")) is not None:
                target = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), target)
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


class _CountedFile(io.FileIO):
    """A file whose writes are counted."""

    def __init__(self, disk, file, mode):
        super().__init__(file, mode)
        self._disk = disk

    def write(self, data):
        place = self._disk.count("write", self.name)
        if (place, "torn") not in self._disk.copies:
            return super().write(data)
        half = len(data) // 2
        done = super().write(data[:half])
        self._disk.keep(place, "torn")
        return done + super().write(data[half:])

    def truncate(self, size=None):
        self._disk.count("truncate", self.name)
        return super().truncate(size)


class _Clock(datetime):
    """A clock that always returns the same time."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=tz or UTC)


def call(words, home, *, full=None, copies=()):
    """Run a command in a separate process.

    The modules that an uninterrupted command imports are also imported into this process, so that
    later processes start with them.

    Returns:
        Exit code, text printed to stderr, and the file operations.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _run_and_exit(words, home, writing, Disk(home, full, copies))
        finally:
            os._exit(99)
    os.close(writing)
    with open(reading, "rb") as pipe:
        output = pipe.read()
    _, status = os.waitpid(child, 0)
    if not output:
        return os.waitstatus_to_exitcode(status), "", []
    *ended, modules = pickle.loads(output)
    if full is None and (new := [name for name in modules if name not in sys.modules]):
        for name in new:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.freeze()
    return tuple(ended)


def _run_and_exit(words, home, pipe, disk):
    """Run a command in this process, write its result to the pipe, and exit."""
    from surface_consistency.cli import main as cli
    from surface_consistency.engine import generate, run as run_module
    from surface_consistency.engine.judging import judges as judge_module
    from surface_consistency.errors import SurfaceConsistencyError
    from surface_consistency.runs import job

    os.chdir(home)
    run_module.datetime = judge_module.datetime = job.datetime = _Clock
    generate._STORE_SECONDS = (
        -1.0
    )  # Each answer is stored immediately, so that the operations do not depend on speed.
    sys.modules["matplotlib"] = None
    printed, errors = io.StringIO(), io.StringIO()
    disk.install()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        try:
            code = globals()[words[1]]() or 0 if words[0] == "python" else cli.main(words)
        except (SurfaceConsistencyError, OSError) as error:
            code = 2
            print(f"error: {error}", file=sys.stderr)
        except BaseException:
            code = 1
            traceback.print_exc()
    modules = [
        name
        for name in sys.modules
        if not name.startswith(("matplotlib", "duckdb", "_duckdb", "__"))
    ]
    found = (code, errors.getvalue(), disk.operations, modules)
    with disk._open(pipe, "wb") as out:
        out.write(pickle.dumps(found))
    os._exit(0)


def contents(home):
    """Read all files of a folder, except locks, partial files and the staged files of a build."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file()
        and path.suffix != ".lock"
        and not any(part.endswith((".part", ".work")) for part in path.relative_to(home).parts)
    }


def numbers(home, run):
    """Return the tables of the report of a run, None after an error line, or any other output."""
    page = home.with_name("probe")
    shutil.rmtree(page, ignore_errors=True)
    code, output, _ = call(
        ["report", run, "--out", str(page), *QUICK, "--setting", "answers=0"], home
    )
    if code == 0:
        return contents(page / "tables")
    is_error_line = code == 2 and output.startswith("error: ") and "Traceback" not in output
    return None if is_error_line else {"": f"rc {code}: {output[-500:]}".encode()}


def interrupt_all(name, command, home, n_points, rng, only=""):
    """Interrupt a command at its operations; yield each point with its failure or None."""
    start, work = home / "start", home / "work"
    work.mkdir(parents=True)
    _prepare(work)
    for words in command.before:
        if callable(words):
            words(work)
            continue
        code, output, _ = call(list(words), work)
        if code:
            raise RuntimeError(f"{name}: {words} ended with {code}: {output}")
    shutil.copytree(work, start)

    def restore(source):
        # The path is the same for all copies, since plans contain paths.
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(source, work)

    has_run = command.run is not None
    known = [numbers(work, command.run)] if has_run and command.before else []
    code, output, operations = call(list(command.words), work)
    if code:
        raise RuntimeError(f"{name} ended with {code}: {output}")
    expected = contents(work)
    if has_run:
        known.append(numbers(work, command.run))
    points = [(place, "kill") for place in range(len(operations))]
    points += [(place, "torn") for place, (what, _) in enumerate(operations) if what == "write"]
    points += [(p, "full") for p, (what, _) in enumerate(operations) if what not in ("unlink",)]
    points = [(p, kind) for p, kind in points if re.search(only, described(kind, operations[p]))]
    points = sorted(rng.sample(points, min(n_points, len(points))))
    copies = {point: home / "copies" / f"{point[0]}-{point[1]}" for point in points}
    restore(start)
    _, _, repeated = call(list(command.words), work, copies=copies)
    if _without_process_ids(repeated) != _without_process_ids(operations):
        raise RuntimeError(f"{name} has other operations in its second run")

    def check():
        """Check the remaining files; return the failure or None."""
        if has_run:
            found = numbers(work, command.run)
            if found is not None and found not in known:
                return f"other numbers: {_difference(known[-1] or {}, found)}"
        code, output, _ = call(list(command.words), work)
        if code or "Traceback" in output:
            return f"repeated: rc {code}: {output[-800:]}"
        found = contents(work)
        return None if found == expected else f"repeated: {_difference(expected, found)}"

    checked = {}
    for point in points:
        place, kind = point
        fault = None
        if kind == "full":
            restore(start)
            code, output, _ = call(list(command.words), work, full=place)
            if code not in (0, 2) or "Traceback" in output:
                fault = f"rc {code}: {output[-800:]}"
            elif code == 2 and not _names_a_file(output):
                fault = f"no file is named: {output}"
        else:
            restore(copies[point])
            shutil.rmtree(copies[point])
        state = _state(work)
        if state not in checked:
            checked[state] = check()
        yield f"{name}, {described(kind, operations[place])} ({place})", fault or checked[state]


def _without_process_ids(operations):
    """Remove process ids from the paths of operations."""
    return [(what, _PROCESS_ID.sub("", path)) for what, path in operations]


def _state(home):
    """Return a digest of the files of a folder, without process ids and the content of locks."""
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        name = _PROCESS_ID.sub("", path.relative_to(home).as_posix())
        content = path.read_bytes() if path.is_file() and path.suffix != ".lock" else b""
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.digest()


def described(kind, operation):
    """Return the name of a point, such as "kill at replace run/scoring.json"."""
    return f"{kind} at {' '.join(operation)}"


def _names_a_file(output):
    """Return whether each error line (one per model) names the file that could not be written."""
    lines = re.findall("^error: (.*)$", output, re.MULTILINE)
    names = re.compile(r".*[/.]|(out )?\w+ cannot be ")
    return bool(lines) and all(map(names.match, lines))


def _difference(expected, found):
    """List the files that differ."""
    names = [name for name in sorted({*expected, *found}) if expected.get(name) != found.get(name)]
    first = names[0] if names else ""
    return f"{names[:6]}: {expected.get(first, b'')[:150]!r} / {found.get(first, b'')[:150]!r}"


def _prepare(home):
    """Write the files that commands read."""
    import numpy as np

    from surface_consistency.data.redirectqa import load_redirectqa
    from surface_consistency.data.slaq import load_slaq
    from surface_consistency.data.slaq_rows import to_slaq_rows

    rows = ["item,a,b,kind", *(f"{i},{i % 2},{int(i % 3 > 0)},k{i % 2}" for i in range(12))]
    (home / "v.csv").write_text("\n".join(rows) + "\n")
    questions = load_redirectqa("sample").questions
    lines = [{"id": one.id, "prediction": one.triple.answers[0]} for one in questions]
    _write(home / "p.jsonl", lines)
    pairs = [f"{one.surface.text}, {one.triple.object.name}" for one in questions]
    for place in (0, 1):
        _write(home / "corpus" / f"{place}.jsonl", [{"text": text} for text in pairs[place::2]])
    _write(home / "texts.jsonl", [{"id": place, "text": text} for place, text in enumerate(pairs)])
    texts = {"goal": "To choose a dog,", "sol1": "look at it.", "sol2": "eat the apple."}
    _write(home / "piqa" / "validation.jsonl", [texts | {"label": place} for place in (0, 1)])
    _write(home / "popqa.jsonl", [_POPQA])
    topics = load_slaq("sample").topics[:2]
    _write(home / "articles.jsonl", [_article(topic) for topic in topics])
    _write(home / "topics.jsonl", [row.model_dump() for row in to_slaq_rows(topics)])
    (home / "wiki.xml").write_text(_WIKI, encoding="utf-8")
    names = {one.triple.subject.name.replace(" ", "_") for one in questions}
    numbers = {f"http://dbpedia.org/resource/{name}": np.arange(3) for name in sorted(names)}
    np.savez(home / "map.npz", **numbers)
    (home / "links.csv").write_text("document,uri,surface\nd,Paris,Paris\n", encoding="utf-8")


def _article(topic):
    """Return the article of a topic."""
    text = " ".join([topic.long_answer, *(one.answer for one in topic.questions)])
    return {"title": topic.topic, "category": topic.category, "text": text}


_PROCESS_ID = re.compile(r"[-.]\d+(-\d+)?(?=\.part)")

_PAGE = (
    "<page><title>{0}</title><ns>0</ns><id>{1}</id><revision><id>9</id><model>wikitext</model>"
    '<text xml:space="preserve">{2}</text></revision></page>'
)
_PAGES = {
    "Mercury": "A small planet that goes round the [[Sun]] within the [[Solar System]], and fast. "
    "[[Category:Planets]]",
    "Sun": "The star of the [[Solar System]].",
    "Solar System": "Where the [[Sun]] and [[Mercury|the planet]] are.",
}
_WIKI = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">'
    "<siteinfo><sitename>Wikipedia</sitename><dbname>enwiki</dbname><case>first-letter</case>"
    '<namespaces><namespace key="0" case="first-letter" />'
    '<namespace key="14" case="first-letter">Category</namespace></namespaces></siteinfo>'
    + "\n".join(_PAGE.format(name, n, text) for n, (name, text) in enumerate(_PAGES.items(), 1))
    + "</mediawiki>\n"
)
"""A wiki of three articles with links."""


_POPQA = {
    "id": 4222382,
    "subj": "Maren Oskeld",
    "prop": "place of birth",
    "obj": "Brisk Harbor",
    "subj_id": 1,
    "prop_id": 218,
    "obj_id": 2,
    "s_aliases": '["one"]',
    "o_aliases": "[]",
    "s_uri": "http://www.wikidata.org/entity/Q990000022",
    "o_uri": "http://www.wikidata.org/entity/Q990000003",
    "s_wiki_title": "Maren Oskeld",
    "o_wiki_title": "Brisk Harbor",
    "s_pop": 100,
    "o_pop": 200,
    "question": "In what city was Maren Oskeld born?",
    "possible_answers": '["Brisk Harbor"]',
}
"""A row in PopQA's columns about the miniature wiki."""


def _write(path, rows):
    """Write rows of JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _import_all():
    """Import the modules that all commands need, so that forked processes do not import them."""
    import pyarrow.parquet  # noqa: F401

    import tests.faults.plugins  # noqa: F401
    from surface_consistency.report import html

    for name in html._environment().list_templates():
        html._environment().get_template(name)


def main(argv=None):
    """Interrupt commands; print a Markdown table of points and failures, and each failure."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--points", type=int, default=10**9, help="maximum number per command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="maximum time")
    parser.add_argument("--only", default="", help='pattern of points, such as "full at open"')
    parser.add_argument("names", nargs="*")
    args = parser.parse_args(argv)
    _import_all()
    gc.freeze()
    until = time.monotonic() + args.seconds
    kinds, failures = Counter(), []
    print("| command | points | failures |\n|---|---|---|")
    for name in args.names or COMMANDS:
        tries = bad = 0
        with tempfile.TemporaryDirectory() as home:
            rng = random.Random(args.seed)
            command, folder = COMMANDS[name], Path(home) / "x"
            points = interrupt_all(name, command, folder, args.points, rng, args.only)
            try:
                for where, fault in points:
                    tries += 1
                    kinds[where.partition(", ")[2].split(" at ")[0].rpartition(" ")[2]] += 1
                    if fault is not None:
                        bad += 1
                        failures.append(f"{where}\n  {fault}")
                    if time.monotonic() > until:
                        break
            except RuntimeError as error:  # The command fails without a fault; continue the others.
                bad += 1
                failures.append(str(error))
        print(f"| {name} | {tries} | {bad} |", flush=True)
    print(f"\n{sum(kinds.values())} points ({dict(kinds)}), {len(failures)} failures")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
