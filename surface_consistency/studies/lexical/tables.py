"""Tables and sections of the lexical study besides those of any paired study."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.paired.page import PairedReport
from surface_consistency.engine.paired.wording import WORDING
from surface_consistency.metrics import adjust_p_values, paired_by, relative_change
from surface_consistency.report.page import Finding, Section
from surface_consistency.report.wording import Wording
from surface_consistency.studies.lexical.quality import quality_section, quality_tables
from surface_consistency.tables.columns import COLUMNS, catalogue
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe, tabulate

_WORDING: Final = Wording("surface_consistency.studies.lexical", default=WORDING)
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
_COLUMNS: Final = COLUMNS | catalogue(
    Column(key="original", title="Original", kind="rate", unit="right, %"),
    Column(key="perturbed", title="Other words", kind="rate", unit="right, %"),
    Column(key="change", title="Change", kind="number", unit="of the original"),
    Column(key="original_perplexity", title="Perplexity", kind="number"),
    Column(key="perturbed_perplexity", title="Perplexity", kind="number", unit="other words"),
    Column(key="unchanged", title="Unchanged", kind="rate", unit="%"),
    Column(key="broken", title="Broken", kind="rate", unit="%"),
    Column(key="draw", title="Draw", kind="count"),
    Column(key="draws", title="Draws", kind="count"),
    Column(key="mean", title="Mean", kind="rate", unit="right, %"),
    Column(key="deviation", title="Deviation", kind="number", unit="of the draws"),
    Column(key="lowest", title="Lowest", kind="rate", unit="right, %"),
    Column(key="highest", title="Highest", kind="rate", unit="right, %"),
    Column(key="unlike", title="Unlike", kind="rate", unit="of instances, %"),
    Column(key="n_without", title="Left out", kind="count", on_phones=False),
    Column(key="frequent", title="As frequent", kind="rate", unit="right, %"),
    Column(key="rarer", title="Rarer", kind="rate", unit="right, %"),
)
_CONTROL: Final = catalogue(
    interval_column("change", "Mere change", "difference", "points"),
    interval_column("rarity", "Rarer words", "difference", "points"),
    Column(key="change_p_value", title="p", kind="p_value", unit="Holm", on_phones=False),
    Column(key="rarity_p_value", title="p", kind="p_value", unit="Holm", on_phones=False),
)


class LexicalReport(PairedReport):
    """The paper's tables 1 and 2, draws of synonyms, and the control, beside the paired tables."""

    wording = _WORDING
    compared_rate = "accuracy_difference"

    def tables(self) -> dict[str, Table]:
        """Compute accuracy and perplexity in both wordings, besides the paired tables.

        Returns:
            Tables by name: "lexical", one row a task; "lexical_pooled", all tasks together, where
            there are several, and "lexical_models", every two models there; "lexical_draws", each
            draw of synonyms, and "lexical_between_draws", their variance, where there are several;
            "lexical_control" where the run has one; and those of `PairedReport.tables`.
        """
        frame = self.report.frame
        tables = {
            "lexical": describe(
                tabulate(frame, _TASKS, _change),
                "Tasks in the original and in other words",
                "model task n original perturbed change original_perplexity perturbed_perplexity "
                "unchanged broken",
                _COLUMNS,
                note="Change: accuracy in other words relative to that in the original words. "
                "Perplexity is that of the word to be foretold. Broken: a word was replaced in "
                "some options alone.",
            )
        }
        if frame["draw"].nunique() > 1:
            tables["lexical_between_draws"] = describe(
                tabulate(frame, _TASKS, _between_draws),
                "Variance between draws of synonyms",
                "model task draws n mean deviation lowest highest unlike",
                _COLUMNS,
                titles={"n": "Instances"},
                note="Deviation: of the draws’ accuracies, on the same instances. Unlike: "
                "instances that are right in one draw and wrong in another.",
            )
            tables["lexical_draws"] = describe(
                tabulate(frame, [*_TASKS, "draw"], _draw),
                "Each draw of synonyms",
                "model task draw n perturbed",
                _COLUMNS,
                note="What the draw alone does to the accuracy in other words.",
            )
        if (frame["n_control_edits"].fillna(0) > 0).any():
            tables["lexical_control"] = self._control(frame)
        return tables | self._pooled() | super().tables()

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say what other words do over all tasks together, and on each; see `PairedReport`."""
        tasks = tables["overall"].frame.to_dict("records")
        models = [
            (
                row,
                [task for task in tasks if task["model"] == row["model"]],
                self._noise_sentence(tables, row),
            )
            for row in tables.get("lexical_pooled", tables["overall"]).frame.to_dict("records")
        ]
        compared = tables.get("lexical_models", tables.get("contrasts"))
        return self._headed(
            {**tables, **({} if compared is None else {"contrasts": compared})},
            [row for row, *_ in models],
            _WORDING.sentence("finding", models=models, clusters=self.clusters),
            _WORDING.sentence("summary", models=models),
        )

    def _of_panel(self, tables: Mapping[str, Table]) -> str:
        """Say of how many tasks the finding is."""
        n_tasks = tables["overall"].frame["task"].nunique()
        return "" if n_tasks < 2 else f" over {n_tasks} tasks together"

    def _pooled(self) -> dict[str, Table]:
        """Compute the rates of all tasks together, where there are several."""
        if self.report.frame["task"].nunique() < 2:
            return {}
        models = self.compare_models(is_pooled=True)
        return ({} if models is None else {"lexical_models": models}) | {
            "lexical_pooled": Table(
                frame=self._paired(["model"]),
                caption="All tasks together",
                columns=self.score_columns(self.label_columns(["model"])),
                note="Every pair counts alike, so that large tasks count more.",
                cluster_column="n_clusters",
            )
        }

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

    def _control(self, frame: pd.DataFrame) -> Table:
        """Part the change of words from their frequency: two wordings of the same words."""
        options: dict[str, Any] = {"by": _TASKS, "cluster": self.report.cluster}
        known = frame[frame["n_control_edits"].fillna(0) > 0]
        change = paired_by(known, first="first_correct", second="frequent_correct", **options)
        rarity = paired_by(known, first="frequent_correct", second="rarer_correct", **options)
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
            rows[f"{name}_p_value"] = adjust_p_values(compared["mcnemar_p_value"].astype(float))
        return describe(
            rows,
            "Mere change of words, and their frequency",
            "model task n n_without original frequent rarer "
            "change change_p_value rarity rarity_p_value",
            _COLUMNS | _CONTROL,
            note="The same words were replaced by synonyms about as frequent and by rarer ones; "
            "instances without a word that has both are left out. Mere change: as frequent less "
            "original; rarer words: rarer less as frequent. p of the same t as the "
            "intervals, Holm over the rows.",
            cluster_column="n_clusters",
        )


def _change(part: pd.DataFrame) -> dict[str, float]:
    """Compare the accuracies of a task in both wordings."""
    judged = part.dropna(subset=["first_correct", "second_correct"])
    first, second = judged[["first_correct", "second_correct"]].astype(float).mean()
    perplexities = [math.nan, math.nan]
    if part["task"].iloc[0] == "lambada":
        names = ["first_log_probability", "second_log_probability"]
        perplexities = np.exp(-judged[names].astype(float).mean()).tolist()
    return {
        "n": len(judged),
        "original": first,
        "perturbed": second,
        "change": relative_change(first, second) if first > 0.0 else math.nan,
        "original_perplexity": perplexities[0],
        "perturbed_perplexity": perplexities[1],
        "unchanged": (judged["n_edits"] == 0).mean(),
        "broken": judged["is_broken"].astype(float).mean(),
    }


def _draw(part: pd.DataFrame) -> dict[str, float]:
    """Compute the accuracy of a task in one draw."""
    right = part["second_correct"].dropna().astype(float)
    return {"n": len(right), "perturbed": right.mean()}


def _between_draws(part: pd.DataFrame) -> dict[str, float]:
    """Compute the variance of a task between draws, on the instances in all of them."""
    wide = part.pivot(index="fact_id", columns="draw", values="second_correct")
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
