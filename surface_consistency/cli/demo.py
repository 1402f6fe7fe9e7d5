"""The command `demo`: a complete study of a toy model with planted frequencies."""

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from surface_consistency.cli.options import Json, Out
from surface_consistency.cli.output import finish
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import contrasts_by, paired_by
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.runs.files import write_csv
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.redirectqa.consistency import PLANTED
from surface_consistency.studies.redirectqa.settings import RedirectQASettings, RedirectQASource
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.redirectqa.toy_model import (
    Exposure,
    count_names,
    plan_exposures,
    sentences_of,
    train_toy_model,
)

DEFAULT_STEPS = 250
"""Training steps after which the toy model recalls the planted facts."""

_SHOTS = 3


def run_demo(
    out: str | os.PathLike[str],
    *,
    steps: int = DEFAULT_STEPS,
    say: Callable[[str], None] | None = None,
) -> tuple[RunFolder, pd.DataFrame]:
    """Train a toy model on the bundled sample, run the study on it and score it.

    Args:
        out: Folder of the run; the model is saved in its subfolder `toy_model`.
        steps: Number of training steps.
        say: Called with a progress line at each stage; None prints no progress.

    Returns:
        The run folder, and the table of consistency by planted exposure, which is also written to
        `highlights/consistency_by_planted_exposure.csv`.
    """
    report = say or (lambda line: None)
    data = load_redirectqa("sample").select(templates=("original",))
    exposures = plan_exposures(data.questions)
    folder = RunFolder.create(out)
    model = folder.path / "toy_model"
    sentences = sentences_of(data.questions, exposures)
    report(f"{len(sentences)} sentences plant the names of {len(data.pairs)} pairs")
    train_toy_model(sentences, model, names=[q.question for q in data.questions], steps=steps)
    report("sending every fact under every name")
    runner = TransformersRunner(str(model), device="cpu", dtype="float32")
    settings = RedirectQASettings(shots=_SHOTS)
    run_study(
        RedirectQAStudy(),
        data,
        runner,
        folder.path,
        model="toy_model",
        settings=settings,
        source=RedirectQASource(source="sample"),
    )
    counts = count_names(sentences, {name for _, name in exposures})
    outcomes = score_run(folder)
    table = exposure_table(outcomes, exposures, counts)
    folder.highlights.mkdir(exist_ok=True)
    # Facts that were held out cannot flip.
    labelled = outcomes.assign(exposure=_labels(outcomes, exposures))
    taught = labelled[labelled["exposure"] != "fact held out"]
    contrasts = contrasts_by(taught, between="exposure", cluster="subject_id")
    contrasts["n"] = contrasts["n_a"] + contrasts["n_b"]
    shown = ["a", "b", "n", "n_clusters", "difference", "difference_low", "difference_high"]
    path = folder.highlights / f"{PLANTED.replace(' ', '_')}.csv"
    write_csv(path, contrasts[[*shown, "p_value_holm"]])
    write_csv(folder.highlights / "consistency_by_planted_exposure.csv", table)
    return folder, table


def _labels(outcomes: pd.DataFrame, exposures: Mapping[tuple[str, str], Exposure]) -> list[str]:
    """Return the exposure of the redirect of each pair, or "fact held out"."""
    keys = zip(outcomes["item"], outcomes["first_surface"], strict=True)
    seconds = zip(outcomes["item"], outcomes["second_surface"], strict=True)
    return [
        "fact held out" if exposures[canonical] == "absent" else exposures[redirect]
        for canonical, redirect in zip(keys, seconds, strict=True)
    ]


def exposure_table(
    outcomes: pd.DataFrame, exposures: Mapping[tuple[str, str], Exposure], counts: Mapping[str, int]
) -> pd.DataFrame:
    """Group the pairs of taught facts by how often the redirect name was planted.

    Args:
        outcomes: The outcomes frame.
        exposures: Exposure by (fact id, surface text).
        counts: Number of occurrences of each surface text in the training text, as returned by
            `count_names`.

    Returns:
        One row per exposure of the redirect name, "frequent" first: exposure, times_in_text (the
        largest count of its redirect names; `sentences_of` makes them equal), n, first_accuracy,
        second_accuracy, consistency with its bounds, flip_rate. Facts that were held out under all
        their names have a separate row, "fact held out".
    """
    labels = _labels(outcomes, exposures)
    with warnings.catch_warnings():
        # Facts that were held out have no correct canonical answer to condition on.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = paired_by(outcomes.assign(exposure=labels), by="exposure")
    times = outcomes["second_surface"].map(counts).groupby(labels).max()
    table["times_in_text"] = table["exposure"].map(times)
    order = {name: rank for rank, name in enumerate(("frequent", "rare", "absent"))}
    ranks = table["exposure"].map(lambda name: order.get(name, len(order)))
    shown = ["exposure", "times_in_text", "n", "first_accuracy", "second_accuracy"]
    shown += ["consistency", "consistency_low", "consistency_high", "flip_rate"]
    return table.iloc[ranks.argsort(kind="stable")][shown].reset_index(drop=True)


def demo(
    *,
    out: Out,
    steps: Annotated[int, Parameter(help="Number of training steps.")] = DEFAULT_STEPS,
    json: Json = False,
) -> int:
    """Train a small model on planted facts and run a complete study on it.

    In the training text, some names of the bundled sample are frequent, some rare, and some absent.
    Requires neither network nor GPU.
    """
    if steps < 1:
        raise ValueError(f"--steps must be 1 or more, got {steps}")
    folder, exposure = run_demo(
        out, steps=steps, say=None if json else lambda line: print(line, flush=True)
    )
    if not json:
        print(f"\n{exposure.to_string(index=False, float_format='{:.3f}'.format)}\n")
        print("first is the canonical name, second the redirect; times_in_text is the number of")
        print("occurrences of the redirect in the training text, also in longer names and answers.")
        print("Two incorrect answers are also consistent: see the last row.\n")
    return finish(report_runs([folder.path], out), out, as_json=json)
