"""Scoring of a full-size run file by the matching rules, compared with plain loops.

Run `python benchmarks/bench_matching.py`; prints Markdown tables. The texts are synthetic, with the
sizes of RedirectQA: 61,120 predictions (30,560 surface instances x 2 templates) on 14,672 facts,
each with different accepted answers, median 5 and at most 60, 14 % of them not in ASCII. Real data
have answers of several facts, which make the bulk form faster. Times are CPU time, medians over
interleaved rounds; ratios are to the plain `a in p` loop over normalised texts. The exit status is
1 if `boundary` with new answers misses a budget: 20 times as fast as `re.search` for each answer,
at most 4 times the time of the plain loop.
"""

import argparse
import platform
import re
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from surface_consistency.matching import RULES, match_columns
from surface_consistency.matching.bulk import answer_sets
from surface_consistency.text import normalize

N_FACTS, N_INSTANCES, N_TEMPLATES, N_MODELS = 14_672, 30_560, 2, 13
N_REGEX_ROWS = 6_112
REGEX_ROUNDS = 3
PLAIN = "plain `any(a in p)`, normalised in advance, no boundaries"
BOUNDARY = "`match_columns`, boundary, first model"
REGEX = "`re.search` per answer, normalised in advance (x)"
OVER_REGEX, TO_PLAIN = 20, 4
SYLLABLES = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]
SENTENCES = ["I think it is", "It is", "The answer is", "He was born in", "That would be the"]
YEARS = [str(year) for year in range(1700, 2025)]
ACCENTS = str.maketrans("aeiou", "áèîöū")


def synthetic_answers(rng):
    """Return the accepted answers of each fact."""
    sizes = np.clip(np.round(rng.lognormal(np.log(5.0), 0.82, N_FACTS)), 1, 60).astype(int)
    return [tuple(name(rng) for _ in range(size)) for size in sizes]


def name(rng):
    """Return one to three capitalised words, some with diacritics, an initial or a hyphen."""
    words = [
        "".join(SYLLABLES[i] for i in rng.integers(0, len(SYLLABLES), rng.integers(1, 5)))
        for _ in range(rng.integers(1, 4))
    ]
    text = (" " if rng.random() < 0.9 else "-").join(words).title()
    if rng.random() < 0.14:
        text = text.translate(ACCENTS)
    return text if rng.random() < 0.9 else f"{text[0]}. {text}"


def synthetic_predictions(rng, answers, facts):
    """Return one prediction per row: 40 % correct, half in a sentence, templates often equal."""
    predictions = []
    for fact in facts:
        accepted = answers[fact]
        right = rng.random() < 0.4
        text = accepted[rng.integers(0, len(accepted))] if right else name(rng)
        if rng.random() < 0.5:
            text = (
                f"{SENTENCES[rng.integers(0, len(SENTENCES))]} {text}, {YEARS[fact % len(YEARS)]}."
            )
        again = text if rng.random() < 0.55 else f"{text} (born in {YEARS[fact % len(YEARS)]})"
        predictions += [text, again]
    return predictions


def synthetic_rows(rng):
    """Return predictions and accepted answers of the run of a model."""
    answers = synthetic_answers(rng)
    facts = np.r_[np.arange(N_FACTS), rng.integers(0, N_FACTS, N_INSTANCES - N_FACTS)]
    rows = [answers[fact] for fact in facts for _ in range(N_TEMPLATES)]
    return synthetic_predictions(rng, answers, facts), rows, answers, facts


def contenders(predictions, rows):
    """Return the timed functions by name; each returns its labels."""
    texts = [normalize(text) for text in predictions]
    forms = {answer: normalize(answer) for row in rows for answer in row}
    accepted = [[forms[answer] for answer in row] for row in rows]
    padded_texts = [f" {text} " for text in texts]
    padded_forms = {answer: f" {form} " for answer, form in forms.items()}
    padded = [[padded_forms[answer] for answer in row] for row in rows]
    timed = {
        PLAIN: lambda: [any(a in p for a in row) for p, row in zip(texts, accepted, strict=True)],
        "plain for/break, normalised first, no boundaries": lambda: plain_loop(texts, accepted),
        "padded for/break, normalised before": lambda: plain_loop(padded_texts, padded),
        "padded, both normalised in the loop": lambda: [
            any(f" {normalize(a)} " in f" {normalize(p)} " for a in row)
            for p, row in zip(predictions, rows, strict=True)
        ],
    }
    for rule in RULES:
        for which in ("first model", "next models"):
            timed[f"`match_columns`, {rule}, {which}"] = lambda rule=rule: (
                match_columns(predictions, rows, rule=rule).is_match
            )
    return timed, texts, accepted


def plain_loop(texts, accepted):
    """Search for each answer until one is found."""
    verdicts = []
    for text, row in zip(texts, accepted, strict=True):
        found = False
        for answer in row:
            if answer in text:
                found = True
                break
        verdicts.append(found)
    return verdicts


def regex_loop(texts, accepted, compiled=None):
    """Search for each answer with word boundaries, in the original texts."""
    search = re.search if compiled is None else lambda answer, text: compiled[answer].search(text)
    patterns = compiled is None
    return [
        any(search(pattern(answer) if patterns else answer, text) for answer in row)
        for text, row in zip(texts, accepted, strict=True)
    ]


def pattern(answer):
    """Return a pattern of the answer with word boundaries."""
    return rf"(?<!\w){re.escape(answer)}(?!\w)"


def cpu_time(function):
    """Return the CPU seconds of one call, and its value."""
    start = time.process_time()
    value = function()
    return time.process_time() - start, value


def report_times(predictions, rows, rounds):
    """Time all functions, print one table, check the labels and return the missed budgets."""
    timed, texts, accepted = contenders(predictions, rows)
    times = {label: [] for label in timed}
    verdicts = {}
    for _ in range(rounds):
        for label, function in timed.items():
            if label.endswith("first model"):
                answer_sets.cache_clear()
            seconds, verdicts[label] = cpu_time(function)
            times[label].append(seconds)
    medians = {label: statistics.median(values) for label, values in times.items()}
    few = (texts[:N_REGEX_ROWS], accepted[:N_REGEX_ROWS])
    compiled = {answer: re.compile(pattern(answer)) for row in few[1] for answer in row}
    scale = len(texts) / N_REGEX_ROWS
    searches = {
        REGEX: lambda: regex_loop(*few),
        "the same, patterns compiled in advance (x)": lambda: regex_loop(*few, compiled),
    }
    spent = {label: [] for label in searches}
    for _ in range(REGEX_ROUNDS):
        for label, search in searches.items():
            seconds, verdicts[label] = cpu_time(search)
            spent[label].append(seconds * scale)
    medians |= {label: statistics.median(values) for label, values in spent.items()}
    base, boundary = medians[PLAIN], medians[BOUNDARY]
    print("\n| scoring | seconds | to the plain loop | boundary, first model, is faster by |")
    print("|---|---|---|---|")
    for label, seconds in medians.items():
        print(f"| {label} | {seconds:.3f} | {seconds / base:.2f} | {seconds / boundary:.1f} |")
    print(f"\n(x): {N_REGEX_ROWS:,} rows, extrapolated linearly; medians of {REGEX_ROUNDS} rounds.")
    check(verdicts)
    return missed(medians)


def missed(medians):
    """Return one sentence per missed budget."""
    over_regex = medians[REGEX] / medians[BOUNDARY]
    to_plain = medians[BOUNDARY] / medians[PLAIN]
    found = []
    if over_regex < OVER_REGEX:
        found.append(
            f"boundary is {over_regex:.1f} times faster than re.search; the budget is {OVER_REGEX}"
        )
    if to_plain > TO_PLAIN:
        found.append(f"boundary takes {to_plain:.2f} plain loops; the budget is {TO_PLAIN}")
    return found


def check(verdicts):
    """Compare the labels of the functions for the same rule."""
    ours = verdicts[BOUNDARY]
    assert ours == verdicts["`match_columns`, boundary, next models"]
    assert ours == verdicts["padded for/break, normalised before"]
    assert ours == verdicts["padded, both normalised in the loop"]
    assert ours[:N_REGEX_ROWS] == verdicts[REGEX]
    plain = verdicts[PLAIN]
    extra = sum(a and not b for a, b in zip(plain, ours, strict=True))
    rate = sum(ours) / len(ours)
    print(f"Labels under `boundary`: {rate:.1%} correct, identical in all four that find whole")
    print(f"words; plain containment accepts {extra} more.")


def report_memory():
    """Score all models in sequence, keep all labels in memory, and print the peak."""
    rng = np.random.default_rng(0)
    _, rows, answers, facts = synthetic_rows(rng)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = []
    for _ in range(N_MODELS):
        predictions = synthetic_predictions(rng, answers, facts)
        kept.append({rule: match_columns(predictions, rows, rule=rule) for rule in RULES})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"\nMemory: {len(rows):,} rows x {len(kept)} models under {len(RULES)} rules, all verdicts "
        f"kept: peak {peak / 1024:,.0f} MiB, of which {before / 1024:,.0f} MiB before the first."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory-only", action="store_true")
    options = parser.parse_args()
    if options.memory_only:
        report_memory()
        return
    predictions, rows, _, _ = synthetic_rows(np.random.default_rng(0))
    sizes = [len(row) for row in rows]
    distinct = {answer for row in rows for answer in row}
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print(
        f"{len(rows):,} predictions ({len(set(predictions)):,} distinct), {sum(sizes):,} pairs, "
        f"{statistics.median(sizes):.0f} answers per row (median; {max(sizes)} at most), "
        f"{np.mean([not answer.isascii() for answer in distinct]):.0%} beyond ASCII"
    )
    over = report_times(predictions, rows, options.rounds)
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "--memory-only"], check=True)
    if over:
        raise SystemExit(f"missed: {'; '.join(over)}")


if __name__ == "__main__":
    main()
