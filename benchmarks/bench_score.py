"""`score` and a lean pandas script that writes the same files: processor time and peak memory.

Each contender is a separate process that reads a Parquet file of questions and a JSONL file of
predictions; they alternate. Processor time is user plus system of the process and its workers, and
peak memory that of its largest process. The rows have the shape of RedirectQA v1.0.0.

    python benchmarks/bench_score.py            # 61,120 questions, four files of predictions
    python benchmarks/bench_score.py --large    # also 611,200 questions
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from release_rows import N_FACTS, N_QUESTIONS, write_release

HERE = Path(__file__).parent
RATIO, LARGE_GB, ROW_KB = 1.5, 1.2, 2.0
LAUNCHER = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL if sys.argv[1] else None)
_, status, usage = os.wait4(process.pid, 0)
wall = time.perf_counter() - start
print(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)
sys.exit(status != 0)
"""
"""An intermediate process, since Linux includes the memory of the parent in the peak."""


@dataclass(frozen=True)
class Cost:
    """Resources used by a process."""

    cpu: float
    wall: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--score", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.score:
        score(arguments.score)
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        missed = compared(Path(folder), arguments.rounds)
        missed += files_at_once(Path(folder))
        if arguments.large:
            missed += large(Path(folder))
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")


def score(words: Sequence[str]) -> None:
    """Run the steps of `score --predictions` before the page: QUESTIONS OUT AGREEMENT FILE..."""
    from surface_consistency.engine.score import score_files
    from surface_consistency.engine.settings import RuleScoring
    from surface_consistency.studies.redirectqa.settings import RedirectQASource
    from surface_consistency.studies.redirectqa.study import RedirectQAStudy

    questions, out, agreement, *files = words
    study, source = RedirectQAStudy(), RedirectQASource(source=questions)
    scoring = RuleScoring(agreement=agreement == "agreement")
    score_files(study, study.load(source), [*map(Path, files)], out, source=source, scoring=scoring)


def cost_of(command: Sequence[object], *, quiet: bool = False) -> Cost:
    """Run a Python process and return its resources from the system."""
    words = [sys.executable, "-S", "-c", LAUNCHER, "quiet" if quiet else "", sys.executable]
    done = subprocess.run([*words, *map(str, command)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{command} failed")
    *lines, costs = done.stdout.splitlines()
    print(*lines, sep="\n", end="")
    return Cost(*map(float, costs.split()))


def ours(folder: Path, files: Sequence[Path], out: Path, *, agreement: bool) -> Cost:
    """Score by the package."""
    mode = "agreement" if agreement else "none"
    return cost_of([__file__, "--score", folder / "questions.parquet", out, mode, *files])


def lean(folder: Path, file: Path, out: Path, *, agreement: bool) -> Cost:
    """Score by the script."""
    options = [] if agreement else ["--setting", "agreement=false"]
    command = [HERE / "lean_score.py", folder / "questions.parquet", file, out, *options]
    return cost_of(command)


def compared(folder: Path, rounds: int) -> list[str]:
    """Compare the package with the script, with and without the agreement of rules."""
    (file, *_) = write_release(folder, N_FACTS, n_models=4)
    print(f"| {N_QUESTIONS:,} predictions | CPU s | script, CPU s | ratio | peak MB, script |")
    print("|---|---|---|---|---|")
    missed = []
    for agreement in (True, False):
        turns = [
            (
                ours(folder, [file], folder / "ours", agreement=agreement),
                lean(folder, file, folder / "lean", agreement=agreement),
            )
            for _ in range(rounds)
        ]
        check_same(folder / "ours", folder / "lean", agreement=agreement)
        mine, theirs = (statistics.median(pair[side].cpu for pair in turns) for side in (0, 1))
        ratio = statistics.median(first.cpu / second.cpu for first, second in turns)
        peaks = [max(pair[side].peak_mb for pair in turns) for side in (0, 1)]
        name = "with the agreement of five rules" if agreement else "without"
        print(
            f"| {name} | {mine:.2f} | {theirs:.2f} | {ratio:.2f} "
            f"| {peaks[0]:.0f}, {peaks[1]:.0f} |",
            flush=True,
        )
        if ratio > RATIO:
            missed.append(f"{ratio:.2f} times the script {name}")
    return missed


def check_same(mine: Path, theirs: Path, *, agreement: bool) -> None:
    """Check that both wrote the same labels, outcomes and counts."""
    for name, key, columns in (
        ("verdicts", "target_id", ["correct", "matched_answer", "prediction"]),
        ("outcomes", "pair", ["item", "relation", "first_prediction", "second_prediction"]),
    ):
        first, second = (
            pd.read_parquet(folder / f"{name}.parquet").set_index(key).sort_index()[columns]
            for folder in (mine, theirs)
        )
        pd.testing.assert_frame_equal(first, second, check_dtype=False)
    for name in ("rules", "regions") if agreement else ():
        tables = [pd.read_csv(folder / "checks" / f"{name}.csv") for folder in (mine, theirs)]
        pd.testing.assert_frame_equal(*tables)


def files_at_once(folder: Path) -> list[str]:
    """Score four models in one command: the questions are loaded once, on all cores."""
    files = sorted(folder.glob("model-*.jsonl"))
    alone = ours(folder, files[:1], folder / "alone", agreement=True)
    together = ours(folder, files, folder / "together", agreement=True)
    print(f"\n| {len(files)} models | CPU s | wall s | CPU / wall | peak MB per process |")
    print("|---|---|---|---|---|")
    for name, cost in (("one file", alone), (f"{len(files)} files", together)):
        print(
            f"| {name} | {cost.cpu:.1f} | {cost.wall:.1f} | {cost.cpu / cost.wall:.2f} | "
            f"{cost.peak_mb:.0f} |"
        )
    print(f"\nOne by one they take {len(files) * alone.cpu:.1f} CPU s.", flush=True)
    return [] if together.cpu < len(files) * alone.cpu else ["questions are loaded again"]


def large(folder: Path) -> list[str]:
    """Score ten times the questions: peak memory and its slope."""
    small = ours(folder, [folder / "model-0.jsonl"], folder / "small", agreement=True)
    home = folder / "large"
    home.mkdir()
    (file,) = write_release(home, 10 * N_FACTS)
    n_rows = len(pd.read_parquet(home / "questions.parquet", columns=["question"]))
    cost = ours(home, [file], home / "ours", agreement=True)
    row_kb = (cost.peak_mb - small.peak_mb) * 1024 / (n_rows - N_QUESTIONS)
    print("\n| questions | CPU s | peak MB | KB per further row |\n|---|---|---|---|")
    print(f"| {N_QUESTIONS:,} | {small.cpu:.1f} | {small.peak_mb:,.0f} | |")
    print(f"| {n_rows:,} | {cost.cpu:.1f} | {cost.peak_mb:,.0f} | {row_kb:.2f} |", flush=True)
    missed = (
        [] if cost.peak_mb < 1024 * LARGE_GB else [f"{cost.peak_mb:,.0f} MB of {n_rows:,} rows"]
    )
    return missed if row_kb <= ROW_KB else [*missed, f"{row_kb:.2f} KB a row"]


if __name__ == "__main__":
    main()
