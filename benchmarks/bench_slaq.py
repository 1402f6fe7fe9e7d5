"""Scoring of SLAQ at the size of the paper: 16 models, 600 topics, 5 orders of each long query.

Run `python benchmarks/bench_slaq.py`; prints a Markdown table. Budgets: outcomes and all tables are
computed from labels in under 5 s, and the tables at least 20 times as fast as with a simple
implementation: a `groupby` of pandas and a loop over resamples of topics (a few are timed and
scaled up).
Exits with an error if a budget is missed.
"""

import argparse
import platform
import statistics
import time

import numpy as np
import pandas as pd

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.study import pair_outcomes
from surface_consistency.studies.slaq.settings import SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.studies.slaq.tables import grouped_scores, slot_tables

N_MODELS, N_TOPICS, N_PERMUTATIONS = 16, 600, 5
N_RESAMPLES = 10_000
N_LOOPED = 3
BUDGET_S = 5.0
SPEED_UP = 20
GROUPINGS = ((), *SlaqStudy.design.groupings.values())
SCORES = ("short", "long", "alignment", "signed", "difference", "flip")


def made_up_topics(n_topics):
    """Return rows of the shape of SLAQ: twelve categories, two entities in five."""
    rows = []
    for number in range(n_topics):
        clauses = ", ".join(f"({k}) fact {k} of topic {number}" for k in range(1, 6))
        row = {
            "Category": f"category {number % 12}",
            "Topic": f"Topic {number}",
            "LongQ": f"Discuss topic {number} by covering {clauses}.",
            "LongA": "All of them.",
            "Pageviews": number,
        }
        for k in range(1, 6):
            row[f"ShortQ{k}"] = f"What is fact {k} of topic {number}?"
            row[f"ShortA{k}"] = f"answer {number} {k}"
            row[f"ShortQ{k}_Entity"] = int((number + k) % 5 < 2)
        rows.append(row)
    return rows


def verdicts_on(targets, rng):
    """Return the labels of a model on every fact, one in a hundred of them missing."""
    draw = rng.random(len(targets))
    return pd.DataFrame(
        {
            "target_id": targets["target_id"],
            "correct": pd.Series(pd.array(draw < 0.45, dtype="boolean")).where(draw >= 0.01),
            "is_recalled": pd.array([None] * len(targets), dtype="boolean"),
            "prediction": "An answer of some length.",
        }
    )


def by_hand(frame, resamples):
    """Score each group by `groupby` and `apply`, with a loop over resamples of topics."""
    rng = np.random.default_rng(0)

    def scores(part):
        short, long = part["first"], part["second"]
        aligned = short == long
        return pd.Series(
            [
                short.mean(),
                long.mean(),
                aligned.mean(),
                short.mean() + long.mean() - 1,
                long.mean() - short.mean(),
                1 - aligned.mean(),
            ],
            index=SCORES,
        )

    def with_interval(part):
        by_topic = dict(list(part.groupby("topic_id")))
        names = list(by_topic)
        drawn = [
            scores(pd.concat([by_topic[names[i]] for i in rng.integers(0, len(names), len(names))]))
            for _ in range(resamples)
        ]
        return pd.concat([scores(part), pd.DataFrame(drawn).quantile([0.025, 0.975]).stack()])

    known = frame.dropna(subset=["first_correct", "second_correct"])
    known = known.assign(
        first=known["first_correct"].astype(bool), second=known["second_correct"].astype(bool)
    )
    tables = []
    for columns in GROUPINGS:
        for _, part in known.groupby(["model", *columns]):
            tables.append(with_interval(part))
    return tables


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=N_MODELS)
    parser.add_argument("--topics", type=int, default=N_TOPICS)
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (default: 3)")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    topics = made_up_topics(options.topics)
    study = SlaqStudy()
    plan = study.plan(load_slaq(topics), SlaqSettings(permutations=N_PERMUTATIONS))
    runs = {f"model-{m:02}": verdicts_on(plan.items, rng) for m in range(options.models)}

    def outcomes():
        frames = [
            pair_outcomes(study, plan.pairs, verdicts, model=model)
            for model, verdicts in runs.items()
        ]
        return pd.concat(frames, ignore_index=True)

    parts = {"labels to outcomes": [], "outcomes to tables": [], "both": []}
    for _ in range(options.rounds + 1):
        start = time.perf_counter()
        frame = outcomes()
        middle = time.perf_counter()
        for columns in GROUPINGS:
            grouped_scores(frame, columns)
        slot_tables(frame)
        end = time.perf_counter()
        for name, seconds in zip(parts, (middle - start, end - middle, end - start), strict=True):
            parts[name].append(seconds)
    one = frame[frame["model"] == "model-00"]
    start = time.perf_counter()
    by_hand(one, N_LOOPED)
    looped = (time.perf_counter() - start) * options.models * N_RESAMPLES / N_LOOPED
    print(
        f"{options.models} models, {options.topics} topics, {N_PERMUTATIONS} orders, "
        f"{len(frame):,} pairs, {N_RESAMPLES:,} resamples, {options.rounds} rounds, Python "
        f"{platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}\n"
    )
    print("| what | median | min to max |\n|---|---|---|")
    for name, times in parts.items():
        kept = times[1:]
        print(
            f"| {name} | {statistics.median(kept):.2f} s | {min(kept):.2f} to {max(kept):.2f} s |"
        )
    print(
        f"| only scores, by groupby and a loop, {N_LOOPED} of {N_RESAMPLES:,} resamples of one "
        f"model, scaled up | {looped / 3600:.1f} h | |"
    )
    failures = []
    if statistics.median(parts["both"][1:]) > BUDGET_S:
        failures.append(f"scoring takes more than {BUDGET_S:.0f} s")
    if looped < SPEED_UP * statistics.median(parts["outcomes to tables"][1:]):
        failures.append(f"the tables are not {SPEED_UP} times as fast as a loop")
    if failures:
        raise SystemExit("; ".join(failures))


if __name__ == "__main__":
    main()
