"""`load_dataset` compared with `datasets.load_dataset` of the same Parquet file: processor time.

Both read 61,120 rows of the shape of RedirectQA v1.0.0 in one process in alternation. `datasets`
copies the columns into its cache; the package also parses every cell, determines facts, templates
and categories, and raises an error for contradictory rows.

    python benchmarks/bench_load.py
"""

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import datasets
from release_rows import N_FACTS, N_QUESTIONS, write_release

from surface_consistency import load_dataset

RATIO, ROUNDS = 1.5, 5


def cpu_of(load: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    load()
    return time.process_time() - start


def main() -> None:
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        write_release(Path(folder), N_FACTS, n_models=0)
        file = str(Path(folder) / "questions.parquet")

        def theirs() -> object:
            with tempfile.TemporaryDirectory() as cache:
                return datasets.load_dataset("parquet", data_files=file, cache_dir=cache)

        def mine() -> object:
            return load_dataset("redirectqa", source=file)

        turns = [(cpu_of(mine), cpu_of(theirs)) for _ in range(ROUNDS)]
    ours, other = (statistics.median(pair[side] for pair in turns) for side in (0, 1))
    print(f"| {N_QUESTIONS:,} rows | CPU s | datasets, CPU s | ratio |")
    print("|---|---|---|---|")
    print(f"| load_dataset | {ours:.2f} | {other:.2f} | {ours / other:.1f} |")
    if ours > RATIO * other:
        sys.exit(f"missed: {ours / other:.1f} times datasets.load_dataset, goal {RATIO}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
