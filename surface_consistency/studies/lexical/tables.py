"""Tables and sections of the lexical study, in addition to those of any paired study."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import page as paired
from surface_consistency.engine.paired.checks import Tables, rows_of
from surface_consistency.engine.paired.tables import (
    compare_models,
    label_columns,
    paired_rates,
    paired_tables,
    score_table,
)
from surface_consistency.metrics import adjust_p_values, paired_by
from surface_consistency.metrics.popularity.perturbation import relative_change
from surface_consistency.report.page import Section
from surface_consistency.report.texts import Texts
from surface_consistency.studies.lexical.quality import quality_section
from surface_consistency.tables import sentences as say
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate

TEXTS: Final = Texts("surface_consistency.studies.lexical")
"""Captions and notes of the study and of its analyses."""

_OWN: Final = (
    "lexical",
    "lexical_pooled",
    "lexical_models",
    "lexical_between_draws",
    "lexical_draws",
    "lexical_control",
)
_SHOWN_ELSEWHERE: Final = (
    *("similarity", "similarity_curve", "meaning", "meaning_pairs", "replaced_words"),
)
_TASKS: Final = ["model", "task"]


def lexical_tables(report: Report) -> dict[str, Table]:
    """Compute accuracy and perplexity in both wordings, and the effects of draws and frequency.

    Args:
        report: The runs.

    Returns:
        Tables by name: "lexical", one row per task; "lexical_pooled", all tasks together, and
        "lexical_models", each pair of models on them, if there are several tasks; "lexical_draws",
        each draw of synonyms, and "lexical_between_draws", their variance, if there are several
        draws; "lexical_control" if the run has a control.
    """
    frame = report.frame
    tables = {"lexical": TEXTS.table("lexical", tabulate(frame, _TASKS, _change))}
    if frame["draw"].nunique() > 1:
        between = tabulate(frame, _TASKS, _between_draws)
        draws = tabulate(frame, [*_TASKS, "draw"], _draw)
        tables["lexical_between_draws"] = TEXTS.table("lexical_between_draws", between)
        tables["lexical_draws"] = TEXTS.table("lexical_draws", draws)
    if (frame["n_control_edits"].fillna(0) > 0).any():
        tables["lexical_control"] = TEXTS.table("lexical_control", _control(report))
    if frame["task"].nunique() > 1:
        models = compare_models(report, is_pooled=True)
        tables |= {} if models is None else {"lexical_models": models}
        pooled = score_table(
            report,
            "overall",
            paired_rates(report, ["model"]),
            label_columns(report.design, ["model"]),
        )
        note = "Every pair has the same weight, so that large tasks weigh more."
        tables["lexical_pooled"] = replace(pooled, caption="All tasks together", note=note)
    return tables


def _control(report: Report) -> pd.DataFrame:
    """Separate the effect of changed words from that of frequency, by the control wordings."""
    frame = report.frame
    options: dict[str, Any] = {"cluster": report.cluster, "intervals": report.intervals}
    known = frame[frame["n_control_edits"].fillna(0) > 0]
    change = paired_by(known, by=_TASKS, second="frequent_correct", **options)
    known = known.assign(first_correct=known["frequent_correct"])
    rarity = paired_by(known, by=_TASKS, second="rarer_correct", **options)
    sizes = frame.groupby(_TASKS).size().loc[pd.MultiIndex.from_frame(change[_TASKS])]
    rows = change[[*_TASKS, "n", "n_clusters"]].assign(
        n_without=sizes.to_numpy() - change["n"],
        original=change["first_accuracy"],
        frequent=change["second_accuracy"],
        rarer=rarity["second_accuracy"],
    )
    for name, compared in (("change", change), ("rarity", rarity)):
        for end in ("", "_low", "_high"):
            rows[f"{name}{end}"] = compared[f"accuracy_difference{end}"]
        rows[f"{name}_p_value"] = adjust_p_values(compared["p_value"].astype(float))
    return rows


def _finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report the effect of other words on all tasks together, and on each task."""
    models = tables.get("lexical_pooled", tables["overall"]).frame.to_dict("records")
    tasks = tables["overall"].frame["task"].nunique()
    over = f" over {tasks} tasks together" if tasks > 1 else ""
    leads, details = [], []
    for row in models:
        leads.append(_accuracy(report, row, over))
        quantity = f"flip rate of {row['model']} between original and other words{over}"
        leads.append(say.rate(row, "flip_rate", quantity, **report.words))
        for of_task in rows_of(tables, "overall", {"model": row["model"]}) if tasks > 1 else ():
            details.append(_accuracy(report, of_task, f" on {of_task['task'].replace('_', ' ')}"))
        details.append(paired.noise_sentence(report, tables, row))
    between = paired.model_sentences(
        report,
        tables,
        "accuracy_difference",
        f"accuracy change from original to other words{over}",
        models,
        table="lexical_models" if "lexical_models" in tables else "contrasts",
    )
    return paired.headed(between, leads, details)


def _accuracy(report: Report, row: Mapping[Any, Any], over: str) -> say.Sentence:
    """Report the accuracy difference between the original and other words."""
    return say.difference(
        row,
        "accuracy_difference",
        f"accuracy of {row['model']}{over}",
        "the original words",
        "other words of the same meaning",
        "in {}",
        p="p_value",
        **report.words,
    )


def _wordings(report: Report, tables: Tables) -> Section | None:
    """Show the tables and figures of the quality of wordings."""
    return quality_section(tables, report.labels)


LEXICAL_PAGE: Final = paired.PageSpec(
    tables=(lexical_tables, paired_tables),
    finding=_finding,
    sections=(
        paired.tables_section("lexical", "Tasks in other words", _OWN),
        _wordings,
        *paired.PAIRED_SECTIONS[:-1],
        partial(paired.checks_section, shown=_SHOWN_ELSEWHERE),
    ),
    papers=TEXTS,
)
"""Tables and page of the lexical study."""


def _change(part: pd.DataFrame) -> dict[str, float]:
    """Compare the accuracies of a task in both wordings."""
    scored = part.dropna(subset=["first_correct", "second_correct"])
    first, second = scored[["first_correct", "second_correct"]].astype(float).mean()
    perplexities = [math.nan, math.nan]
    if part["task"].iloc[0] == "lambada":
        names = ["first_log_probability", "second_log_probability"]
        perplexities = np.exp(-scored[names].astype(float).mean()).tolist()
    return {
        "n": len(scored),
        "original": first,
        "perturbed": second,
        "change": relative_change(first, second) if first > 0.0 else math.nan,
        "original_perplexity": perplexities[0],
        "perturbed_perplexity": perplexities[1],
        "unchanged": (scored["n_edits"] == 0).mean(),
        "broken": scored["is_broken"].astype(float).mean(),
    }


def _draw(part: pd.DataFrame) -> dict[str, float]:
    """Compute the accuracy of a task in one draw."""
    correct = part["second_correct"].dropna().astype(float)
    return {"n": len(correct), "perturbed": correct.mean()}


def _between_draws(part: pd.DataFrame) -> dict[str, float]:
    """Compute the variance of a task between draws, on the instances in all of them."""
    wide = part.pivot(index="item", columns="draw", values="second_correct")
    wide = wide.dropna().astype(float)
    accuracies = wide.mean()
    return {
        "draws": wide.shape[1],
        "n": len(wide),
        "mean": accuracies.mean(),
        "deviation": accuracies.std(),
        "lowest": accuracies.min(),
        "highest": accuracies.max(),
        "unlike": (wide.min(axis=1) != wide.max(axis=1)).mean(),
    }
