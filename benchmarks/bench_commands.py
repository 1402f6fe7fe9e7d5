"""CPU time and peak memory of complete commands, one process each.

    python benchmarks/bench_commands.py                  # a table of this tree
    python benchmarks/bench_commands.py --against v1.0   # compare with another revision

`scripts/bench --compare` does the latter with the last release. CPU time is user plus system of
the process and its workers, medians over interleaved rounds. With `--against` the exit status is 1
if a command became slower by more than 15 %.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from bench_score import LAUNCHER, Cost
from release_rows import write_release

ROOT = Path(__file__).resolve().parents[1]
SLOWER = 1.15
N_FACTS = {"small": 1_467, "whole": 14_672}
ENTRY = "import sys; from surface_consistency.cli.main import main; sys.exit(main())"


def cost_of(tree: Path, words: Sequence[object]) -> Cost:
    """Run a command of a tree and measure it; NaN if the tree does not have the command."""
    path = os.pathsep.join([str(tree), str(tree / "dataset_builders")])
    command = [sys.executable, "-S", "-c", LAUNCHER, "quiet", sys.executable]
    done = subprocess.run(
        [*command, "-c", ENTRY, *map(str, words)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        if tree != ROOT:
            return Cost(math.nan, math.nan, math.nan)
        sys.exit(f"{' '.join(map(str, words))} failed in {tree}:\n{done.stderr}")
    return Cost(*map(float, done.stdout.splitlines()[-1].split()))


def inputs_of(home: Path) -> dict[str, list[object]]:
    """Write the inputs and return the commands; "{out}" is the folder of a round."""
    files = {}
    for name, n_facts in N_FACTS.items():
        folder = home / name
        folder.mkdir()
        files[name] = [folder / "questions.parquet", *write_release(folder, n_facts, n_models=4)]
    rng = np.random.default_rng(0)
    for name, n in (("hundred", 100), ("million", 1_000_000)):
        drawn = {f"{side}_correct": rng.integers(0, 2, n) for side in ("first", "second")}
        pd.DataFrame({"item": np.arange(n)} | drawn).to_csv(home / f"{name}.csv", index=False)
    verdicts = ["--first", "first_correct", "--second", "second_correct"]
    questions, *predictions = files["small"]
    whole, prediction, *_ = files["whole"]
    score = ["score", "--predictions"]
    return {
        "--help": ["--help"],
        "run redirectqa --help": ["run", "redirectqa", "--help"],
        "score, 6,112 predictions": [
            *(*score, predictions[0], "--source", questions, "--out", "{out}/small")
        ],
        "score, 61,120 predictions": [
            *(*score, prediction, "--source", whole, "--out", "{out}/whole")
        ],
        "the same without a page": [
            *(*score, prediction, "--source", whole, "--out", "{out}/tables", "--no-page")
        ],
        "score, 4 models of 6,112": [
            *(*score, *predictions, "--source", questions, "--out", "{out}/four")
        ],
        "report of the 4 models": ["report", "{out}/four", "--out", "{out}/page"],
        "paired, 100 pairs": ["paired", home / "hundred.csv", *verdicts],
        "paired, 1,000,000 pairs": ["paired", home / "million.csv", *verdicts],
    }


def costs(
    trees: Mapping[str, Path], commands: Mapping[str, Sequence[object]], home: Path, rounds: int
) -> dict[tuple[str, str], list[Cost]]:
    """Run all commands of all trees in alternation."""
    found: dict[tuple[str, str], list[Cost]] = {}
    for number in range(rounds):
        for command, words in commands.items():
            for label, tree in trees.items():
                out = home / f"{label}-{number}"
                placed = [str(word).replace("{out}", str(out)) for word in words]
                found.setdefault((command, label), []).append(cost_of(tree, placed))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", help="a revision of this repository")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        trees = {"this tree": ROOT}
        if arguments.against:
            trees[arguments.against] = home / "before"
            archive = ["git", "-C", ROOT, "archive", arguments.against]
            tree = subprocess.run(archive, check=True, capture_output=True).stdout
            trees[arguments.against].mkdir()
            subprocess.run(["tar", "-x", "-C", home / "before"], input=tree, check=True)
        commands = inputs_of(home)
        found = costs(trees, commands, home, arguments.rounds)
    sys.exit(table(found, list(commands), list(trees)))


def table(
    found: Mapping[tuple[str, str], Sequence[Cost]], commands: Sequence[str], labels: Sequence[str]
) -> str | None:
    """Print the table; return the commands that became slower."""
    columns = [f"{label}, CPU s | peak MB" for label in labels]
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"| command | {' | '.join(columns)} |{' ratio |' if labels[1:] else ''}")
    print("|---" * (1 + 2 * len(labels) + len(labels[1:])) + "|")
    slower = []
    for command in commands:
        cells = []
        for label in labels:
            turns = found[command, label]
            cells.append(f"{statistics.median(turn.cpu for turn in turns):.2f}")
            cells.append(f"{max(turn.peak_mb for turn in turns):.0f}")
        if labels[1:]:
            pairs = zip(*(found[command, label] for label in labels), strict=True)
            ratio = statistics.median(now.cpu / before.cpu for now, before in pairs)
            cells.append(f"{ratio:.2f}")
            if ratio > SLOWER:
                slower.append(f"{command} takes {ratio:.2f} times as long")
        print(f"| {command} | {' | '.join(cells)} |", flush=True)
    return f"slower: {'; '.join(slower)}" if slower else None


if __name__ == "__main__":
    main()
