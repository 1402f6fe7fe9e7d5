"""Tables and sections of the lexical study besides those of any paired study."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.paired import PairedReport
from surface_consistency.metrics import Intervals, adjust_p_values, paired_by, relative_change
from surface_consistency.report.page import Section
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.loader import Run
from surface_consistency.studies.lexical.quality import quality_section, quality_tables

__all__ = ["LexicalReport"]

_OWN: Final = ("lexical", "lexical_between_draws", "lexical_draws", "lexical_control")
_SHOWN_ELSEWHERE: Final = (
    *("similarity", "similarity_curve", "meaning", "meaning_pairs", "replaced_words"),
)
_HEAD: Final = (Column(key="model", title="Model"), Column(key="task", title="Task"))


class LexicalReport(PairedReport):
    """The paper's tables 1 and 2, draws of synonyms, and the control, beside the paired tables."""

    def tables(self) -> dict[str, Table]:
        """Compute accuracy and perplexity in both wordings, besides the paired tables.

        Returns:
            Tables by name: "lexical", one row a task; "lexical_draws", each draw of synonyms, and
            "lexical_between_draws", their variance, where there are several; "lexical_control"
            where the run has one; and those of `PairedReport.tables`.
        """
        rows = [row for run in self.report.runs for row in _changes(run)]
        tables = {"lexical": _lexical(pd.DataFrame(rows))}
        draws = pd.DataFrame([row for run in self.report.runs for row in _by_draw(run)])
        if draws["draw"].nunique() > 1:
            between = [row for run in self.report.runs for row in _between_draws(run)]
            tables["lexical_between_draws"] = _variance(pd.DataFrame(between))
            tables["lexical_draws"] = _draws(draws)
        if (self.report.frame["n_control_edits"].fillna(0) > 0).any():
            tables["lexical_control"] = self._control()
        return tables | super().tables()

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Put the tasks first; see `PairedReport.sections`."""
        own = [tables[name] for name in _OWN if name in tables]
        first = Section(anchor="lexical", title="Tasks in other words", blocks=own)
        wordings = quality_section(tables, [run.label for run in self.report.runs])
        rest = super().sections({**tables, **quality_tables(tables)})
        return [first, *([wordings] if wordings else []), *rest]

    def _own_tables(self) -> set[str]:
        """Name the tables that stand in other sections than that of checks."""
        return {*super()._own_tables(), *_OWN, *_SHOWN_ELSEWHERE}

    def _control(self) -> Table:
        """Part the change of words from their frequency: two wordings of the same words."""
        frame = self.report.frame
        keys = ["model", "task"]
        options: dict[str, Any] = {
            "by": keys,
            "cluster": self.report.cluster,
            "intervals": Intervals(
                n_resamples=self.report.settings.resamples, rng=self.report.settings.bootstrap_seed
            ),
        }
        known = frame[frame["n_control_edits"].fillna(0) > 0]
        change = paired_by(known, first="first_correct", second="frequent_correct", **options)
        rarity = paired_by(known, first="frequent_correct", second="rarer_correct", **options)
        made = change[[*keys, "n", "n_clusters"]].assign(
            n_without=[
                int((frame[keys] == row).all(axis=1).sum() - n)
                for row, n in zip(change[keys].to_numpy(), change["n"], strict=True)
            ],
            original=change["first_accuracy"],
            frequent=change["second_accuracy"],
            rarer=rarity["second_accuracy"],
        )
        for name, found in (("change", change), ("rarity", rarity)):
            for end in ("", "_low", "_high"):
                made[f"{name}{end}"] = found[f"accuracy_difference{end}"]
            made[f"{name}_p_value"] = adjust_p_values(found["mcnemar_p_value"].astype(float))
        return Table(
            frame=made,
            caption="Mere change of words, and their frequency",
            note="The same words were replaced by synonyms about as frequent and by rarer ones; "
            "instances without a word that has both are left out. Rarer words: what their "
            "frequency alone does. p by McNemar, Holm over the tasks.",
            few="n_clusters",
            columns=[
                *_HEAD,
                Column(key="n", title="Pairs", kind="count"),
                Column(key="n_without", title="Left out", kind="count", on_phones=False),
                Column(key="original", title="Original", kind="rate", unit="right, %"),
                Column(key="frequent", title="As frequent", kind="rate", unit="right, %"),
                Column(key="rarer", title="Rarer", kind="rate", unit="right, %"),
                *_difference("change", "Mere change"),
                *_difference("rarity", "Rarer words"),
            ],
        )


def _difference(key: str, title: str) -> list[Column]:
    """Describe a difference of accuracies with its test."""
    return [
        interval_column(key, title, "difference", "points"),
        Column(key=f"{key}_p_value", title="p", kind="p_value", unit="Holm", on_phones=False),
    ]


def _lexical(frame: pd.DataFrame) -> Table:
    """Describe the paper's tables 1 and 2."""
    return Table(
        frame=frame,
        caption="Tasks in the original and in other words",
        note="Change: accuracy in other words relative to that in the original words. "
        "Perplexity is that of the word to be foretold. Broken: a word was replaced in "
        "some options alone.",
        columns=[
            *_HEAD,
            Column(key="n", title="Pairs", kind="count"),
            Column(key="original", title="Original", kind="rate", unit="right, %"),
            Column(key="perturbed", title="Other words", kind="rate", unit="right, %"),
            Column(key="change", title="Change", kind="number", unit="of the original"),
            Column(key="original_perplexity", title="Perplexity", kind="number"),
            Column(
                key="perturbed_perplexity", title="Perplexity", kind="number", unit="other words"
            ),
            Column(key="unchanged", title="Unchanged", kind="rate", unit="%"),
            Column(key="broken", title="Broken", kind="rate", unit="%"),
        ],
    )


def _draws(frame: pd.DataFrame) -> Table:
    """Describe the accuracy of each draw."""
    return Table(
        frame=frame,
        caption="Each draw of synonyms",
        note="What the draw alone does to the accuracy in other words.",
        columns=[
            *_HEAD,
            Column(key="draw", title="Draw", kind="count"),
            Column(key="n", title="Pairs", kind="count"),
            Column(key="perturbed", title="Other words", kind="rate", unit="right, %"),
        ],
    )


def _variance(frame: pd.DataFrame) -> Table:
    """Describe what the draws do."""
    return Table(
        frame=frame,
        caption="Variance between draws of synonyms",
        note="Deviation: of the draws’ accuracies, on the same instances. Unlike: instances that "
        "are right in one draw and wrong in another.",
        columns=[
            *_HEAD,
            Column(key="draws", title="Draws", kind="count"),
            Column(key="n", title="Instances", kind="count"),
            Column(key="mean", title="Mean", kind="rate", unit="right, %"),
            Column(key="deviation", title="Deviation", kind="number", unit="of the draws"),
            Column(key="lowest", title="Lowest", kind="rate", unit="right, %"),
            Column(key="highest", title="Highest", kind="rate", unit="right, %"),
            Column(key="unlike", title="Unlike", kind="rate", unit="of instances, %"),
        ],
    )


def _changes(run: Run) -> Iterator[dict[str, object]]:
    """Compute the row of each task of a run."""
    for task, frame in run.outcomes.groupby("task", sort=False):
        judged = frame[frame["first_correct"].notna() & frame["second_correct"].notna()]
        first, second = (
            float(judged[f"{side}_correct"].astype(float).mean()) for side in ("first", "second")
        )
        perplexities = [math.nan, math.nan]
        if task == "lambada":
            perplexities = [
                float(np.exp(-judged[f"{side}_log_probability"].astype(float).mean()))
                for side in ("first", "second")
            ]
        yield {
            "model": run.label,
            "task": task,
            "n": len(judged),
            "original": first,
            "perturbed": second,
            "change": relative_change(first, second) if first > 0.0 else math.nan,
            "original_perplexity": perplexities[0],
            "perturbed_perplexity": perplexities[1],
            "unchanged": float((judged["n_edits"] == 0).mean()),
            "broken": float(judged["is_broken"].astype(float).mean()),
        }


def _by_draw(run: Run) -> Iterator[dict[str, object]]:
    """Compute the accuracy of each task and draw of a run."""
    for (task, draw), frame in run.outcomes.groupby(["task", "draw"], sort=False):
        right = frame["second_correct"].dropna().astype(float)
        yield {
            "model": run.label,
            "task": task,
            "draw": draw,
            "n": len(right),
            "perturbed": float(right.mean()),
        }


def _between_draws(run: Run) -> Iterator[dict[str, object]]:
    """Compute the variance of each task between the draws of a run, on instances in all of them."""
    for task, frame in run.outcomes.groupby("task", sort=False):
        wide = frame.pivot(index="fact_id", columns="draw", values="second_correct")
        wide = wide.dropna().astype(float)
        by_draw = wide.mean()
        yield {
            "model": run.label,
            "task": task,
            "draws": wide.shape[1],
            "n": len(wide),
            "mean": float(by_draw.mean()),
            "deviation": float(by_draw.std()),
            "lowest": float(by_draw.min()),
            "highest": float(by_draw.max()),
            "unlike": float((wide.min(axis=1) != wide.max(axis=1)).mean())
            if len(wide)
            else math.nan,
        }
