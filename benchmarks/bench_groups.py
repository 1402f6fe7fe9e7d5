"""Groups, models, memory and growth of the paired metrics at the sizes of RedirectQA.

Run `python benchmarks/bench_groups.py`; prints a Markdown table. Budgets: 33 categories of 13
models with 10,000 resamples each in under 20 s, under 500 MB beyond the data at 100,000 clusters,
and a time that does not grow faster than the rows. Exits with an error if one is missed.
"""

import argparse
import functools
import platform
import statistics
import time
import tracemalloc

import numpy as np
import pandas as pd
import scipy
from bench_bootstrap import synthetic_pairs

from surface_consistency.metrics import (
    PAIRED_RATES,
    Intervals,
    cluster_bootstrap,
    contrasts_by,
    forms_by,
    paired_by,
)

N_MODELS = 13
N_RESAMPLES = 10_000
N_CLUSTERS = 100_000
GROWTH_ROWS = (20_000, 80_000, 320_000)


def models_frame(rng):
    """Return the pairs of RedirectQA answered by 13 models of increasing accuracy."""
    frame = synthetic_pairs(rng).assign(pair=lambda f: np.arange(len(f)))
    parts = []
    for number in range(N_MODELS):
        flipped = rng.random(len(frame)) < 0.1 + 0.02 * number
        second = frame["second_correct"].astype(bool) ^ flipped
        parts.append(frame.assign(model=f"model-{number:02}", second_correct=second))
    return pd.concat(parts, ignore_index=True)


def forms_frame(frame):
    """Return the same answers as forms of facts: one row per second name of a pair."""
    return frame.rename(columns={"second_correct": "correct", "pair": "form"})


def seconds(call, rounds, clock=time.perf_counter):
    """Return the times of some calls after a first call."""
    call()
    times = []
    for _ in range(rounds):
        start = clock()
        call()
        times.append(clock() - start)
    return times


def distinct_clusters(rng):
    """Return 100,000 clusters of which nearly all differ, the worst case of the bootstrap."""
    return rng.integers(0, 200, size=(N_CLUSTERS, 4))


def peaks():
    """Return the peak memory of calls at 100,000 clusters without their data, in MB."""
    rng = np.random.default_rng(0)
    counts = distinct_clusters(rng)
    frame = pd.DataFrame(
        {
            "model": np.repeat(["a", "b"], N_CLUSTERS),
            "pair": np.tile(np.arange(N_CLUSTERS), 2),
            "first_correct": rng.random(N_CLUSTERS * 2) < 0.5,
            "second_correct": rng.random(N_CLUSTERS * 2) < 0.5,
        }
    )
    rate = PAIRED_RATES["consistency"]
    calls = {
        "cluster_bootstrap": lambda: cluster_bootstrap(
            counts, rate, intervals=Intervals(resamples=N_RESAMPLES)
        ),
        "cluster_bootstrap, percentile": lambda: cluster_bootstrap(
            counts, rate, intervals=Intervals(resamples=N_RESAMPLES, method="percentile")
        ),
        "paired_by": lambda: paired_by(
            frame[frame["model"] == "a"], cluster="pair", intervals=Intervals(resamples=N_RESAMPLES)
        ),
        "contrasts_by": lambda: contrasts_by(frame, between="model", pair="pair", cluster="pair"),
    }
    found = {}
    for name, call in calls.items():
        tracemalloc.start()
        call()
        found[name] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return found


def growth():
    """Return the processor time of increasing numbers of rows, four times as many each.

    Wall time would depend on other work of the machine.
    """
    rng = np.random.default_rng(3)
    found = []
    for n_rows in GROWTH_ROWS:
        frame = pd.DataFrame(
            {
                "item": rng.integers(0, n_rows // 2, n_rows),
                "category": rng.choice(list("abcdefgh"), n_rows),
                "first_correct": rng.random(n_rows) < 0.5,
                "second_correct": rng.random(n_rows) < 0.5,
            }
        )
        call = functools.partial(paired_by, frame, by="category")
        found.append(statistics.median(seconds(call, 3, time.process_time)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (default: 3)")
    options = parser.parse_args()
    frame = models_frame(np.random.default_rng(0))
    forms = forms_frame(frame)
    calls = {
        f"paired_by, 33 categories x {N_MODELS} models": lambda: paired_by(
            frame, by=["model", "category"], intervals=Intervals(resamples=N_RESAMPLES)
        ),
        "the same with percentile intervals and Obuchowski's test": lambda: paired_by(
            frame,
            by=["model", "category"],
            intervals=Intervals(resamples=N_RESAMPLES, method="percentile"),
            test="obuchowski",
        ),
        f"contrasts_by, {N_MODELS} models, 78 pairs of them": lambda: contrasts_by(
            frame, between="model", pair="pair"
        ),
        f"forms_by, {N_MODELS} models": lambda: forms_by(
            forms, by="model", item="subject_id", intervals=Intervals(resamples=N_RESAMPLES)
        ),
    }
    print(
        f"{len(frame):,} rows, {N_RESAMPLES:,} resamples, {options.rounds} rounds, Python "
        f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, pandas "
        f"{pd.__version__}\n"
    )
    print("| what | median | min to max |\n|---|---|---|")
    failures = []
    for name, call in calls.items():
        times = seconds(call, options.rounds)
        print(
            f"| {name} | {statistics.median(times):.2f} s | {min(times):.2f} to "
            f"{max(times):.2f} s |"
        )
        if name.startswith("paired_by") and statistics.median(times) > 20:
            failures.append("33 categories of 13 models take more than 20 s")
    for what, used in peaks().items():
        print(f"| memory of {what}, {N_CLUSTERS:,} clusters | {used:.0f} MB | |")
        if used > 500:
            failures.append(f"{what} takes more than 500 MB")
    times = growth()
    for n_rows, spent in zip(GROWTH_ROWS, times, strict=True):
        print(f"| paired_by, 8 groups, {n_rows:,} rows, 1,000 resamples, CPU | {spent:.2f} s | |")
    if times[-1] > 1.25 * times[-2] * GROWTH_ROWS[-1] / GROWTH_ROWS[-2]:
        failures.append("the time grows faster than the rows")
    if failures:
        raise SystemExit("; ".join(failures))


if __name__ == "__main__":
    main()
