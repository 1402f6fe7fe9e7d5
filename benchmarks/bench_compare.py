"""Processor time and memory of `compare` for small, large, wide and many files.

For two large files, DuckDB and pandas are the alternatives. Each contender is a separate process;
they alternate. DuckDB and pandas join both Parquet files by item and print the mean difference with
its standard error over clusters, which is the minimum work of a script. Processor time is user plus
system, on one thread. DuckDB is a dependency of surface-consistency-build.

    python benchmarks/bench_compare.py                    # two files of 4,000,000 rows, 100 files
    python benchmarks/bench_compare.py --rows 100000 --files 20 --rounds 1
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from bench_score import LAUNCHER

RATIO, SECONDS, FILES_GB, START = 3.0, 4.0, 0.8, 0.25
MOST_MB = {"ascending": 600, "shuffled": 1000}
DUCKDB = """
import sys, duckdb
database = duckdb.connect()
database.execute("set threads=1")
print(*database.execute(f'''
    with sums as (
        select a.passage, sum(b.correct - a.correct) as total, count(*) as n
        from read_parquet('{sys.argv[1]}') a join read_parquet('{sys.argv[2]}') b using (item)
        group by a.passage),
    means as (select sum(total) / sum(n) as mean, sum(n) as n_all from sums)
    select mean, sqrt(sum((total - mean * n) ** 2)) / any_value(n_all) from sums, means
    group by mean''').fetchone())
"""
MERGE = """
import sys, numpy as np, pandas as pd
first, second = (pd.read_parquet(path) for path in sys.argv[1:])
both = first.merge(second, on=["item", "passage"])
gain = both["correct_y"] - both["correct_x"]
sums = (gain - gain.mean()).groupby(both["passage"]).sum()
print(gain.mean(), np.sqrt((sums**2).sum()) / len(gain))
"""
PANDAS = "import pandas"
COMPARE = """
import sys
from surface_consistency.cli.main import main
sys.argv[1:] = ["compare", *sys.argv[1:], "--json"]
sys.exit(main())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        missed = start(Path(folder))
        missed += two_files(Path(folder), arguments.rows, arguments.rounds)
        missed += one_wide_file(Path(folder), arguments.rows // 4)
        missed += many_files(Path(folder), arguments.files, arguments.rows // 200)
        files_with_texts(Path(folder), arguments.files // 5, arguments.rows // 400)
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")


def write_scores(path: Path, n_rows: int, seed: int) -> Path:
    """Write labels of one model, four items per passage."""
    rng = np.random.default_rng(seed)
    items = np.arange(n_rows)
    columns = {"item": [f"q{item}" for item in items], "passage": items // 4}
    pd.DataFrame({**columns, "score": rng.integers(0, 2, n_rows)}).to_csv(path, index=False)
    return path


def cost_of(script: str, files: Sequence[Path]) -> tuple[float, float, float]:
    """Run a script and return processor seconds, wall seconds and peak megabytes."""
    words = [sys.executable, "-S", "-c", LAUNCHER, "quiet", sys.executable, "-c", script]
    done = subprocess.run([*words, *map(str, files)], check=True, capture_output=True, text=True)
    cpu, wall, peak = map(float, done.stdout.split()[-3:])
    return cpu, wall, peak


def start(folder: Path, rounds: int = 7) -> list[str]:
    """Compare two files of 100 rows, without and with a page, and the import of pandas."""
    files = [write_scores(folder / f"small-{seed}.csv", 100, seed) for seed in (1, 2)]
    page = [*files, Path("--out"), folder / "page"]
    contenders = {
        "import pandas": (PANDAS, []),
        "compare": (COMPARE, files),
        "compare --out": (COMPARE, page),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, (script, words) in contenders.items():
            seconds[name].append(cost_of(script, words)[0])
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    pandas = medians["import pandas"]
    print("| two files of 100 rows | processor s | above pandas |\n|---|---|---|")
    for name, cpu in medians.items():
        print(f"| {name} | {cpu:.2f} | {cpu - pandas:.2f} |")
    print()
    above = medians["compare"] - pandas
    return [f"{above:.2f} s of start above pandas"] if above > START else []


def write_tables(folder: Path, n_rows: int) -> dict[str, list[Path]]:
    """Write labels of two models as Parquet, ten items per passage, in two different orders."""
    rng = np.random.default_rng(0)
    items, easy = np.arange(n_rows), rng.random(n_rows)
    paths = [folder / f"{name}.parquet" for name in ("first", "second", "shuffled")]
    for path, level in zip(paths, (0.6, 0.61), strict=False):
        correct = (0.6 * easy + 0.4 * rng.random(n_rows) < level).astype(float)
        frame = pd.DataFrame({"item": items, "passage": items // 10, "correct": correct})
        frame.to_parquet(path, index=False)
    frame.sample(frac=1.0, random_state=0).to_parquet(paths[2], index=False)
    return {"ascending": paths[:2], "shuffled": [paths[0], paths[2]]}


def two_files(folder: Path, n_rows: int, rounds: int) -> list[str]:
    """Compare two files of the same size, also with DuckDB and pandas."""
    missed = []
    for order, files in write_tables(folder, n_rows).items():
        contenders = {"DuckDB": DUCKDB, "pandas": MERGE, "compare": COMPARE}
        costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, script in contenders.items():
                costs[name].append(cost_of(script, files))
        print(f"| two files of {n_rows:,} rows, {order} | processor s | wall s | peak MB |")
        print("|---|---|---|---|")
        medians = {}
        for name, taken in costs.items():
            medians[name] = [statistics.median(values) for values in zip(*taken, strict=True)]
            cpu, wall, peak = medians[name]
            print(f"| {name} | {cpu:.2f} | {wall:.2f} | {peak:.0f} |")
        ratio, peak = medians["compare"][0] / medians["DuckDB"][0], medians["compare"][2]
        print(f"\nratio of processor time to DuckDB {ratio:.2f} (goal {RATIO})\n")
        missed += [f"{order}: {ratio:.2f} times DuckDB"] if ratio > RATIO else []
        missed += [f"{order}: {peak:.0f} MB"] if peak > MOST_MB[order] else []
    return missed


def one_wide_file(folder: Path, n_rows: int) -> list[str]:
    """Compare two conditions of one file, one pair per row."""
    rng = np.random.default_rng(3)
    verdicts = rng.integers(0, 2, (n_rows, 2))
    frame = pd.DataFrame(verdicts, columns=["first_correct", "second_correct"])
    frame.assign(passage=np.arange(n_rows) // 4).to_csv(folder / "wide.csv", index=False)
    words = ["--first", "first_correct", "--second", "second_correct", "--cluster", "passage"]
    paired = COMPARE.replace('"compare"', '"paired"')
    cpu, wall, peak = cost_of(paired, [folder / "wide.csv", *map(Path, words)])
    print(f"{n_rows:,} pairs of one file: {cpu:.1f} s, wall {wall:.1f} s, peak {peak:.0f} MB")
    return [f"{cpu:.1f} s for one wide file"] if cpu > SECONDS else []


def many_files(folder: Path, n_files: int, n_rows: int) -> list[str]:
    """Compare many models, with bounded memory."""
    files = [write_scores(folder / f"model-{n}.csv", n_rows, n) for n in range(n_files)]
    cpu, wall, peak = cost_of(COMPARE, [*files])
    print(f"{n_files} files of {n_rows:,} rows: {cpu:.1f} s, wall {wall:.1f} s, peak {peak:.0f} MB")
    return [f"{peak:.0f} MB for {n_files} files"] if peak > 1000 * FILES_GB else []


def files_with_texts(folder: Path, n_files: int, n_rows: int) -> None:
    """Compare models with questions and answers in their files, without and with a page."""
    files = []
    for n in range(n_files):
        frame = pd.read_csv(write_scores(folder / "scores.csv", n_rows, n))
        asked = "Which city is meant, by whatever name it is called here, in row " + frame["item"]
        wrote = f"Model {n} thinks at some length about this " * 5 + frame["item"]
        path = folder / f"texts-{n}.jsonl"
        frame.assign(question=asked, prediction=wrote).to_json(path, orient="records", lines=True)
        files.append(path)
    page = [Path("--out"), folder / "page-of-texts"]
    for name, words in (("without a page", []), ("with a page", page)):
        cpu, _, peak = cost_of(COMPARE, [*files, *words])
        print(f"{n_files} files of {n_rows:,} texts, {name}: {cpu:.1f} s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
