"""The top of the report page: highlights, what was run, and the main numbers in sentences."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

from pydantic import JsonValue

from surface_consistency.metrics.intervals import wilson_interval
from surface_consistency.report._grid import grid
from surface_consistency.report._markup import Html, join, tag
from surface_consistency.report._numbers import count, interval, percent, with_interval
from surface_consistency.report._page import Page
from surface_consistency.report.run import StudyRun
from surface_consistency.report.tables import stacked

__all__ = ["headlines", "highlights", "what_was_run"]

_COMPARABLE = ("data.", "prompts.", "params.", "study")
_SHOWN = 60


def highlights(page: Page) -> Html:
    """Show the tables that a study puts before all else."""
    titles = dict.fromkeys(title for run in page.runs for title in run.highlights)
    return join(
        page.grid(
            stacked(page.runs, {run.label: run.highlights.get(title) for run in page.runs}),
            title[:1].upper() + title[1:],
        )
        for title in titles
    )


def what_was_run(page: Page) -> Html:
    """Show the settings of each run, its signature, and where the runs differ."""
    import pandas as pd

    settings = grid(
        pd.DataFrame([_settings(run) for run in page.runs]), caption="Settings", sources=()
    )
    lines = [tag("p", signature, class_="source") for signature in page.signatures()]
    return join([settings, *lines, *(_difference(page.runs[0], run) for run in page.runs[1:])])


def headlines(page: Page) -> Html:
    """Say the main numbers of each run and template, the noise floor beside them."""
    rows = page.tables["overall"].to_dict("records")
    return tag("ul", *(tag("li", *_headline(page, row)) for row in rows), class_="headlines")


def _settings(run: StudyRun) -> dict[str, object]:
    """Name the settings of a run for a table."""
    manifest = run.manifest
    prompts, params = manifest.prompts, manifest.params
    made = {
        "run": run.label,
        "data": manifest.data.id,
        "revision": manifest.data.revision or f"digest {manifest.data.digest[:12]}",
        "n_questions": manifest.data.n_questions,
    }
    asked = decoding = "made elsewhere"
    if prompts is not None:
        asked = f"{prompts.shots}-shot {prompts.style}, seed {prompts.seed}"
        asked += f", demonstrations {prompts.demonstrations.replace('_', ' ')}"
    if params is not None:
        decoding = f"temperature {params.temperature:g}, up to {params.max_new_tokens} new tokens"
    return {
        **made,
        "prompts": asked,
        "decoding": decoding,
        "judged by": run.judged_by or "not recorded",
        "started": manifest.created_at,
        "version": manifest.package_version,
    }


def _difference(first: StudyRun, other: StudyRun) -> Html:
    """Warn of a run that was asked other things, or in another way, than the first one."""
    found = first.manifest.differences(other.manifest)
    named = [
        f"{name} ({_short(mine)} and {_short(theirs)})"
        for name, (mine, theirs) in found.items()
        if name.startswith(_COMPARABLE)
    ]
    if first.judged_by != other.judged_by:
        named.insert(0, f"judged by ({first.judged_by} and {other.judged_by})")
    if not named:
        return Html("")
    text = f"{first.label} and {other.label} differ in more than the model: {'; '.join(named)}."
    return tag("p", text, class_="note")


def _short(value: JsonValue) -> str:
    """Write a setting in few characters."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _headline(page: Page, row: Mapping[Hashable, Any]) -> list[str]:
    """Write the sentences of one run under one template."""
    start = [tag("b", tag("bdi", row["model"])), f", template {row['template']}: "]
    if not row["n"]:
        return [
            *start,
            f"none of its {count(row['n_missing'])} pairs has both verdicts, so that no rate is "
            "defined.",
        ]
    same, flips = (
        with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
        for name in ("consistency", "flip_rate")
    )
    difference = percent(row["accuracy_difference"], signed=True)
    bounds = interval(row["accuracy_difference_low"], row["accuracy_difference_high"], signed=True)
    return [
        *start,
        f"{same} of {count(row['n'])} pairs keep their verdict when the canonical name gives way "
        f"to a redirect, and {flips} flip ({_percent(row, 'negative_flip_rate')} from right to "
        f"wrong, {_percent(row, 'positive_flip_rate')} from wrong to right). Right answers: "
        f"{_percent(row, 'first_accuracy')} under canonical names, "
        f"{_percent(row, 'second_accuracy')} under redirect names, a difference of "
        f"{f'{difference} points {bounds}'.strip()}. ",
        _noise(page, row),
    ]


def _percent(row: Mapping[Hashable, Any], name: str) -> str:
    """Write a rate in percent that does not break at the sign."""
    return f"{percent(row[name])}\u00a0%"


def _noise(page: Page, row: Mapping[Hashable, Any]) -> str:
    """Say how often equal prompts flip, and whether surface forms flip more."""
    table = page.tables.get("noise_floor")
    missing = (
        "Noise floor: not measured, so that a part of the flips may be the runner's own noise."
    )
    if table is None or not {"template", "flip_rate"} <= set(table.columns):
        return missing
    found = table[(table["model"] == row["model"]) & (table["template"] == row["template"])]
    if found.empty or found["flip_rate"].isna().all():
        return missing
    floor = found.iloc[0].to_dict()
    low, high = _bounds(floor)
    repeated = f" of {count(floor['n_repeated'])}" if "n_repeated" in floor else ""
    said = f"Noise floor: {with_interval(floor['flip_rate'], low, high)}{repeated} verdicts flip "
    said += "when the same prompt is asked again"
    if math.isnan(high) or math.isnan(row["flip_rate_low"]):
        return f"{said}."
    if row["flip_rate_low"] > high:
        return f"{said}; the flip rate between names lies above it."
    return f"{said}; the flip rate between names does not lie clearly above it."


def _bounds(floor: Mapping[Hashable, Any]) -> tuple[float, float]:
    """Return the interval of a noise floor; Wilson's where resampling gives it no width."""
    low, high = (float(floor.get(f"flip_rate_{end}", math.nan)) for end in ("low", "high"))
    if low == high and {"n_verdict_flips", "n_repeated"} <= floor.keys():
        wilson = wilson_interval(int(floor["n_verdict_flips"]), int(floor["n_repeated"]))
        return wilson.low, wilson.high
    return low, high
