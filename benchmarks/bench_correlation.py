"""Partial correlations of the accuracies of 13 models, compared with pingouin.

Run `python benchmarks/bench_correlation.py`; prints a Markdown table. The data are synthetic, with
the sizes of RedirectQA's frequency analysis: 4,284 surface instances of the Pile-based analysis
(section 4.1 of arXiv 2604.21882), and all 30,560 of the data set. 13 models times 3 partial
correlations (each frequency given the other, and one frequency given the other and a third
variable) make 39. Exits with an error if the Pearson coefficients of 4,284 instances are less than
15 times as fast as with pingouin.
"""

import argparse
import platform
import statistics
import warnings

import numpy as np
import pandas as pd
import pingouin
import scipy
from timing import interleaved

from surface_consistency.metrics.correlation.correlations import partial_correlation
from surface_consistency.metrics.frequency.frequency import frequency_analysis

N_MODELS = 13
SIZES = (4_284, 30_560)
TARGET, TARGET_SIZE = 15, SIZES[0]
DESIGNS = (("entity", ["surface"]), ("surface", ["entity"]), ("entity", ["surface", "length"]))


def synthetic_instances(rng, n):
    """Return log frequencies, a third variable and the accuracies of 13 models."""
    entity = rng.normal(6, 2, n)
    surface = 0.56 * entity + rng.normal(0, 1.7, n)
    frame = pd.DataFrame({"entity": entity, "surface": surface, "length": rng.normal(12, 4, n)})
    for model in range(N_MODELS):
        chance = 1 / (1 + np.exp(2.0 - 0.2 * entity - 0.1 * surface))
        frame[f"model {model}"] = rng.binomial(2, chance) / 2
    return frame


def with_pingouin(frame, method):
    """Return the 39 coefficients one by one."""
    return [
        float(pingouin.partial_corr(frame, x, f"model {m}", controls, method=method)["r"].iloc[0])
        for m in range(N_MODELS)
        for x, controls in DESIGNS
    ]


def one_by_one(frame, method):
    """Return the 39 coefficients of `partial_correlation`."""
    columns = {name: frame[name].to_numpy() for name in frame}
    return [
        partial_correlation(
            columns[x],
            columns[f"model {m}"],
            np.column_stack([columns[c] for c in controls]),
            method=method,
        )
        for m in range(N_MODELS)
        for x, controls in DESIGNS
    ]


def whole_analysis(frame, method):
    """Return `frequency_analysis` of all models: 5 statistics in 4 subsets, without resampling."""
    models = [f"model {m}" for m in range(N_MODELS)]
    return frequency_analysis(frame, accuracy=models, method=method, cluster=None)


def raw_frame(frame):
    """Return the inputs of `whole_analysis`: frequencies, and which rows are canonical."""
    return frame.assign(
        entity_frequency=np.exp(frame["entity"]),
        surface_frequency=np.exp(frame["surface"]),
        is_canonical=np.arange(len(frame)) % 2 == 0,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds (default: 7)")
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    print(
        f"39 partial correlations, {rounds} interleaved rounds, Python "
        f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"pingouin {pingouin.__version__}\n"
    )
    print("| n | method | what | median ms | min to max ms | speed over pingouin |")
    print("|---|---|---|---|---|---|")
    missed = []
    for n in SIZES:
        frame = synthetic_instances(np.random.default_rng(n), n)
        raw = raw_frame(frame)
        for method in ("pearson", "spearman"):
            theirs, ours = with_pingouin(frame, method), one_by_one(frame, method)
            if not np.allclose(theirs, ours, rtol=0, atol=1e-9):
                raise SystemExit(f"the coefficients disagree: {theirs} and {ours}")
            times = interleaved(
                {
                    "pingouin.partial_corr": lambda f=frame, m=method: with_pingouin(f, m),
                    "partial_correlation": lambda f=frame, m=method: one_by_one(f, m),
                    "frequency_analysis (260 statistics)": (
                        lambda f=raw, m=method: whole_analysis(f, m)
                    ),
                },
                rounds,
            )
            reference = statistics.median(times["pingouin.partial_corr"])
            for name, values in times.items():
                print(
                    f"| {n:,} | {method} | {name} | {1e3 * statistics.median(values):.1f} "
                    f"| {1e3 * min(values):.1f} to {1e3 * max(values):.1f} "
                    f"| {reference / statistics.median(values):.1f}x |"
                )
            gain = reference / statistics.median(times["partial_correlation"])
            if n == TARGET_SIZE and method == "pearson" and gain < TARGET:
                missed.append(f"{gain:.1f} times pingouin's speed, not {TARGET}")
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
