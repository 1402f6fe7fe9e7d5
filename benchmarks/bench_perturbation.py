"""Perturbed sentences per second, without a model for senses.

Run `python benchmarks/bench_perturbation.py --wordnet /usr/share/wordnet`; prints a Markdown table.
The sentences are minimal pairs like those of BLiMP and passages like those of LAMBADA, with common
words. The lexicon is opened again in each round, so that caches are empty. Times are CPU seconds of
the process, the median of the rounds. The exit status is 1 below 5,000 sentences per second.
"""

import argparse
import random
import statistics
import time

from surface_consistency.studies.lexical.perturbation import WordNet, perturb_all
from surface_consistency.studies.lexical.records import BenchmarkInstance

BUDGET = 5_000
NOUNS = (
    "dog house story job car book child lady teacher senator waitress customer actor report movie "
    "river mountain guest doctor patient cup bicycle window answer question town theory plate"
)
VERBS = (
    "used took chose saw bought made killed improved described surprised annoyed visited helped "
    "found kept hired praised examined noticed left"
)


def sentence(rng, n_clauses):
    """Return a sentence with this number of clauses."""
    nouns, verbs = NOUNS.split(), VERBS.split()
    clauses = [
        f"the {rng.choice(nouns)} {rng.choice(verbs)} some {rng.choice(nouns)}s near the "
        f"{rng.choice(nouns)}"
        for _ in range(n_clauses)
    ]
    return " and ".join(clauses).capitalize() + "."


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", required=True, help="folder of the database files of WordNet")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rng = random.Random(0)
    jobs = {
        "pairs of one clause": [(sentence(rng, 1), sentence(rng, 1)) for _ in range(5_000)],
        "passages of four sentences": [
            (" ".join(sentence(rng, 2) for _ in range(4)),) for _ in range(2_500)
        ],
    }
    print("| job | sentences | CPU seconds | sentences per second |")
    print("|---|---|---|---|")
    slowest = float("inf")
    for name, texts in jobs.items():
        instances = [
            BenchmarkInstance(id=str(number), task="t", kind="formal", options=options, correct=0)
            for number, options in enumerate(texts)
        ]
        n_sentences = sum(text.count(".") for options in texts for text in options)
        seconds = []
        for _ in range(arguments.rounds):
            start = time.process_time()
            for _ in perturb_all(instances, lexicon=WordNet(arguments.wordnet), targets=True):
                pass
            seconds.append(time.process_time() - start)
        rate = n_sentences / statistics.median(seconds)
        slowest = min(slowest, rate)
        print(f"| {name} | {n_sentences:,} | {statistics.median(seconds):.2f} | {rate:,.0f} |")
    return int(slowest < BUDGET)


if __name__ == "__main__":
    raise SystemExit(main())
