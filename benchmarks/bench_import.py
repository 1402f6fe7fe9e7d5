"""Import time of the package in a fresh interpreter, beside the libraries it stands on."""

import statistics
import subprocess
import sys
import time

STATEMENTS = (
    "pass",
    "import surface_consistency",
    "import numpy",
    "import surface_consistency.metrics",
    "import surface_consistency.cli",
    "import pandas",
    "import datasets",
    "import torch",
)
ROUNDS = 7


def main() -> None:
    seconds: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(ROUNDS):
        for statement in STATEMENTS:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            seconds[statement].append(time.perf_counter() - start)
    bare = statistics.median(seconds["pass"])
    print("| statement | median ms over a bare interpreter |\n|---|---|")
    for statement in STATEMENTS[1:]:
        print(f"| `{statement}` | {1000 * (statistics.median(seconds[statement]) - bare):.0f} |")


if __name__ == "__main__":
    main()
