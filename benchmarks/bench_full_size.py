"""A full-size study from predictions to page: 61,120 questions x 13 models, time and peak memory.

The predictions of all models are scored in one command, as in `surface-consistency score
--predictions`; then all runs are reported on one page. Each stage is a separate process. Processor
time includes the workers of the process; peak memory is that of the largest process.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench_score import cost_of, ours
from release_rows import N_FACTS, write_release


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=13)
    parser.add_argument("--facts", type=int, default=N_FACTS)
    parser.add_argument("--report", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.report:
        report(*map(Path, arguments.report))
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        files = write_release(home, arguments.facts, n_models=arguments.models)
        runs = [home / "runs" / file.stem for file in files]
        stages = {
            "questions and predictions to labels": ours(home, files, home / "runs", agreement=True),
            "tables, figures and page": cost_of([__file__, "--report", home / "page", *runs]),
            "the same on one core": cost_of([__file__, "--report", home / "again", *runs, "one"]),
        }
        tables = [
            {path.name: path.read_bytes() for path in (home / name / "tables").iterdir()}
            for name in ("page", "again")
        ]
    print(f"| {arguments.models} models | wall s | CPU s | CPU / wall | peak MB |")
    print("|---|---|---|---|---|")
    for name, cost in stages.items():
        ratio = cost.cpu / cost.wall
        print(f"| {name} | {cost.wall:.1f} | {cost.cpu:.1f} | {ratio:.2f} | {cost.peak_mb:,.0f} |")
    if tables[0] != tables[1]:
        sys.exit("the tables depend on the number of cores")


def report(out: Path, *runs: Path) -> None:
    """Write tables, figures and page; with a last argument "one", on one core."""
    from surface_consistency.engine.report import report_runs

    if runs[-1].name == "one":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        runs = runs[:-1]
    report_runs(runs, out)


if __name__ == "__main__":
    main()
