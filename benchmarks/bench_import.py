"""Start-up: imports, compared with their libraries, and complete commands, in new processes."""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench_score import cost_of

STATEMENTS = (
    "pass",
    "import surface_consistency",
    "import numpy",
    "import surface_consistency.metrics",
    "import surface_consistency.cli.main",
    "import pandas",
    "import datasets",
    "import torch",
)
COMMAND = ("-c", "from surface_consistency.cli.main import main; main()")
ROUNDS = 7
HELP_S, COMPARE_S = 0.15, 0.6


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        verdicts = Path(folder) / "verdicts.csv"
        lines = [f"{row},{row % 2},{row % 3 % 2}\n" for row in range(100)]
        verdicts.write_text("item,short,long\n" + "".join(lines), encoding="utf-8")
        compare = ("paired", verdicts, "--first", "short", "--second", "long")
        started: dict[str, tuple[object, ...]] = {
            **{statement: ("-c", statement) for statement in STATEMENTS},
            "surface-consistency --help": (*COMMAND, "--help"),
            "surface-consistency run --help": (*COMMAND, "run", "--help"),
            "surface-consistency paired, 100 rows": (*COMMAND, *compare),
        }
        cpu: dict[str, list[float]] = {name: [] for name in started}
        wall: dict[str, list[float]] = {name: [] for name in started}
        for _ in range(ROUNDS):
            for name, words in started.items():
                begin = time.perf_counter()
                cpu[name].append(cost_of(words, quiet=True).cpu)
                wall[name].append(time.perf_counter() - begin)
    print("| in a new process | CPU ms | wall ms |\n|---|---|---|")
    for name in started:
        times = (1000 * statistics.median(kind[name]) for kind in (cpu, wall))
        print(f"| `{name}` | {' | '.join(f'{ms:.0f}' for ms in times)} |")
    missed = [
        name
        for name, budget in (
            ("surface-consistency --help", HELP_S),
            ("surface-consistency run --help", HELP_S),
            ("surface-consistency paired, 100 rows", COMPARE_S),
        )
        if statistics.median(cpu[name]) > budget
    ]
    if missed:
        sys.exit(f"over budget: {', '.join(missed)}")


if __name__ == "__main__":
    main()
