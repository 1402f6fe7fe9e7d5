"""Is what was unlearned or edited still answered, under any form? Models are the conditions.

Each unlearned model is held against a reference that never saw the facts, form by form, and against
the original in what it should have kept.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import AfterValidator

from surface_consistency.engine import Analysis, Design, Report, check_rule, import_verdicts
from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics.forgetting.unlearning import UnlearningVerdictResult
from surface_consistency.report import (
    COLUMNS,
    Block,
    Column,
    Part,
    Prose,
    Table,
    Wording,
    catalogue,
    describe,
    interval_column,
    interval_value,
)
from surface_consistency.report.page import Check, MosaicPlot, MosaicPlots, Trace
from surface_consistency.schemas import Items
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.unlearning.crossing import (
    Crossing,
    Role,
    column_of,
    cross_models,
)
from surface_consistency.studies.unlearning.published import published_table
from surface_consistency.studies.unlearning.questions import FORGET, NEW
from surface_consistency.studies.unlearning.tables import (
    ANY,
    RATES,
    forms_frame,
    kept_frame,
    scores_frame,
    survivors_frame,
    verdicts,
    verdicts_frame,
)

_WORDING: Final = Wording("surface_consistency.studies.unlearning")
_MARGIN: Final = 0.05
_STORIES: Final = 3
_LABELS: Final = (
    "verdict form set against measure metric fact reason question answer original reference"
)
_HEADS: Final = {key: key.capitalize() for key in _LABELS.split()} | {
    "leaking": "Leaks under",
    "below": "Below the reference under",
    "unclear": "Unclear under",
    "lost": "Lost in",
}
_TESTS: Final = {
    "p_above": "excess ≤ margin",
    "p_equivalent": "difference ≥ margin",
    "p_not_below": "loss ≥ margin",
}
_SCORES: Final = {
    "value": "Model",
    "reference_value": "Reference",
    "published": "In the log",
    "recomputed": "Recomputed",
    "distance": "Distance",
    "least_distance": "Least of p < .05",
    "lowest": "Lowest p",
}
_COLUMNS: Final = COLUMNS | catalogue(
    Column(key="n", title="Questions", kind="count"),
    Column(key="n_clusters", title="Clusters", kind="count"),
    Column(key="clusters_needed", title="Clusters needed", kind="count"),
    Column(key="least_margin", title="Least margin", unit="points", kind="rate"),
    *(Column(key=key, title=title) for key, title in _HEADS.items()),
    *(interval_column(key, title, "rate", "%") for key, title in RATES.items()),
    interval_column("excess", "Excess", "difference", "points"),
    interval_column("change", "Change", "difference", "points"),
    interval_column("score_difference", "Difference", "number"),
    *(Column(key=key, title="p", unit=unit, kind="p_value") for key, unit in _TESTS.items()),
    *(
        Column(key=key, title=title, kind="number", on_phones=False)
        for key, title in _SCORES.items()
    ),
)
_P_VALUES: Final = {
    key: replace(_COLUMNS[key], kind="p_value") for key in ("published", "recomputed", "lowest")
}
_KEPT: Final = "model set form n n_clusters survival floor change p_not_below against"


class _Shown(NamedTuple):
    """How a table is shown."""

    caption: str
    columns: str
    note: str = ""
    titles: Mapping[str, str] = {}
    catalogue: Mapping[str, Column] = _COLUMNS


_BEFORE: Final = {"survival": "Right", "floor": "Right, of whom it is held against"}
_TABLES: Final = {
    "unlearning_verdicts": _Shown(
        "What can be said, with a margin of {} points",
        "model verdict leaking below unclear least_margin clusters_needed lost",
        "Forgotten at any margin above the least; with so many {} like these what is unclear would "
        "be clear.",
    ),
    "unlearning": _Shown(
        "Forms by model",
        "model form n n_clusters known survival floor leak damage hidden excess p_above "
        "p_equivalent",
        "Survival = floor + leak − damage. Floor is what the reference answers, which "
        "never saw the facts; known is what the original answers.",
    ),
    "unlearning_price": _Shown("The price: what should have been kept", _KEPT, titles=_BEFORE),
    "unlearning_edits": _Shown("New objects of edits", f"measure {_KEPT}", titles=_BEFORE),
    "unlearning_scores": _Shown(
        "Scores against the reference",
        "model set measure n n_clusters value reference_value score_difference",
    ),
    "unlearning_published": _Shown("As published", "model metric n published recomputed"),
    "unlearning_forget_quality": _Shown(
        "Forget quality, as published",
        "model n published recomputed distance least_distance lowest",
        "A p of a test that takes the same questions for independent: 21 pairs of models "
        "retrained without the facts have .585 to .9999, so a p above .05 shows no forgetting, "
        "and none can lie below the lowest.",
        catalogue=_COLUMNS | _P_VALUES,
    ),
    "survivors": _Shown(
        "Answers that survived, with the first reason that holds",
        "model form fact question answer reason",
    ),
}


class UnlearningSettings(Settings):
    """What the models are, and how the answers of logs are judged."""

    roles: Items[Role] = ()
    """Role of each model in order: original, unlearned, edited or reference (never taught); by
    default the first is the original, the last the reference, and all between are unlearned; of
    two the first is unlearned."""

    short_answers: Path | None = None
    """File of short answers to the questions of logs, with the columns index and answer; those of
    TOFU's forget10, forget05 and forget01 come along."""

    rule: Annotated[str, AfterValidator(check_rule)] = "boundary"
    """Matching rule that judges the answers of logs; runs are judged already."""


class UnlearningAnalysis(Analysis):
    """Whether facts that were taken out of the weights are still answered, in any form."""

    name = "unlearning"
    title = "Forgetting in weights"
    settings = UnlearningSettings
    caveat = (
        "Measured is what models answered when they were asked in these forms. What is not "
        "answered may come back in a form that was not asked, by further sampling, or by training."
    )

    def __init__(self) -> None:
        self._crossing: Crossing | None = None
        self._results: dict[str, UnlearningVerdictResult] = {}
        self._margin = _MARGIN

    def prepare(
        self, paths: Sequence[Any], out: Path, settings: UnlearningSettings
    ) -> Sequence[Path]:
        """Cross the models, and make a folder of verdicts of each unlearned one; see `Analysis`."""
        named = [Path(path) for path in paths]
        crossing = cross_models(
            named, settings.roles, answers=settings.short_answers, rule=settings.rule
        )
        self._crossing = crossing
        other = crossing.first("reference") or crossing.first("original")
        questions = crossing.questions
        forget = (questions["set"] == FORGET) & crossing.verdicts(other).notna()
        folders = []
        for place, model in enumerate(crossing.targets):
            frame = pd.DataFrame(
                {
                    "pair_id": questions["form"] + ": " + questions["question_id"],
                    "fact_id": questions["cluster"],
                    "first_correct": crossing.verdicts(model),
                    "second_correct": crossing.verdicts(other),
                    "form": questions["form"],
                }
            )[forget]
            folder = import_verdicts(
                frame,
                out / "models" / str(place + 1),
                origin=", ".join(map(str, named)),
                first=crossing.roles[model],
                second=crossing.roles[str(other)],
                by=("form",),
                model=model,
            )
            folders.append(folder.path)
        return folders

    def design(self, made: Design) -> Design:
        """Name what is compared, and what is taken whole; see `Analysis.design`."""
        return made.model_copy(
            update={
                "title": self.title,
                "question": "the same questions, answered by models before and after forgetting",
                "clusters": {"fact_id": self._crossed().clusters},
            }
        )

    def tables(self, report: Report, settings: UnlearningSettings) -> Mapping[str, Table]:
        """Compute rates by form, verdicts, price, survivors and what logs publish.

        Returns:
            "unlearning_verdicts", one row a model: verdict, the forms that leak, are below the
            reference or unclear, and the sets in which a loss is shown. "unlearning", one row a
            model and form: known (original right), survival, floor (reference right), leak, damage,
            hidden (right under the form, wrong under the plain one and by the reference), excess,
            its tests (`unlearning_by`), is_known (whether the original is shown to know more under
            the form than the reference) and reference_knows (less); the last row of each model,
            "any form", is the closure: right under some form. "unlearning_price", one row a model
            and set that should be kept. "unlearning_edits" of new objects, "unlearning_scores" of
            probabilities and ROUGE, "unlearning_published", "unlearning_forget_quality", and
            "survivors", one row an answer with its reason.

        Raises:
            ValueError: If the runs were not made by `prepare`.
        """
        crossing = self._crossed()
        clusters = crossing.clusters
        counted = {"n_clusters": clusters, "clusters_needed": f"{clusters} needed"}
        named = {
            key: replace(_COLUMNS[key], title=title.capitalize()) for key, title in counted.items()
        }
        self._margin = report.settings.margin or _MARGIN
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnscoredWarning)
            forms = forms_frame(crossing, self._margin)
            price = kept_frame(crossing, self._margin)
        self._results = verdicts(crossing, forms)
        published = published_table(crossing.logs, crossing.first("reference"))
        is_quality = published["metric"] == "forget_quality"
        frames = {
            "unlearning_verdicts": verdicts_frame(self._results, price),
            "unlearning": forms,
            "unlearning_price": price[price["set"] != NEW],
            "unlearning_edits": price[price["set"] == NEW],
            "unlearning_scores": scores_frame(crossing),
            "unlearning_published": published[~is_quality],
            "unlearning_forget_quality": published[is_quality],
            "survivors": survivors_frame(crossing, settings.rule),
        }
        return {
            name: describe(
                frame.reset_index(drop=True),
                shown.caption.format(f"{100 * self._margin:g}"),
                shown.columns,
                {**shown.catalogue, **named},
                titles=shown.titles,
                note=shown.note.format(clusters),
                cluster_column="n_clusters" if "n_clusters" in shown.columns else None,
            )
            for name, shown in _TABLES.items()
            if len(frame := frames[name])
        }

    def finding(self, report: Report, tables: Mapping[str, Table]) -> list[Part]:
        """Say what can be said of each model, and at what price; see `Analysis.finding`."""
        frames = {name: table.frame for name, table in tables.items()}
        price = frames.get("unlearning_price", pd.DataFrame({"model": []}))
        forms = frames["unlearning"]
        rows = [
            {
                "model": model,
                "result": result,
                "forms": {
                    row["form"]: row for row in forms[forms["model"] == model].to_dict("records")
                },
                "price": price[price["model"] == model].to_dict("records"),
            }
            for model, result in self._results.items()
        ]
        return _WORDING.sentence(
            "finding", rows=rows, margin=self._margin, crossing=self._crossed()
        )

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Draw a square a model and form, and tell some survivors; see `Analysis.figures`."""
        crossing = self._crossed()
        forms = tables["unlearning"].frame
        if crossing.first("reference") is not None:
            yield MosaicPlots(
                squares=[
                    _square(row, report) for row in forms[forms["form"] != ANY].to_dict("records")
                ],
                conditions=("unlearned", "reference"),
                cells=("both: needs no teaching", "leak", "damage", "neither"),
                size="small",
            )
        if "unlearning_published" in tables:
            yield Prose(parts=_WORDING.sentence("published"))
        if "survivors" in tables:
            chosen = tables["survivors"].frame
            chosen = chosen[chosen["reason"] != "guessable"].drop_duplicates("fact")[:_STORIES]
            yield from (_story(row, crossing) for row in chosen.to_dict("records"))

    def checks(self, report: Report, tables: Mapping[str, Table]) -> list[Check]:
        """Say what forbids a verdict; see `Analysis.checks`."""
        crossing = self._crossed()
        forms = tables["unlearning"].frame
        noise = forms[forms["model"].isin(crossing.of("reference"))]
        return _WORDING.checks(
            "checks",
            crossing=crossing,
            unknown=forms[~forms["is_known"]].drop_duplicates("form").to_dict("records"),
            knowing=noise[noise["form"] != ANY].to_dict("records"),
        )

    def _crossed(self) -> Crossing:
        """Return the models that `prepare` crossed."""
        if self._crossing is None:
            raise ValueError(
                "the analysis 'unlearning' reads several models: give `report_runs` their logs or "
                "runs themselves, with this analysis, and not folders that it made"
            )
        return self._crossing


def _square(row: Mapping[Any, Any], report: Report) -> MosaicPlot:
    """Draw what an unlearned model and the reference answer under one form."""
    facts = [("excess", interval_value(row, "excess", kind="difference"), "")]
    if not np.isnan(row["known"]):
        facts.insert(0, ("known by the original", interval_value(row, "known"), ""))
    return MosaicPlot(
        title=f"{row['model']}, {row['form']}",
        model=report.index.get(str(row["model"])),
        both=int(row["both"]),
        first_only=int(row["first_only"]),
        second_only=int(row["second_only"]),
        neither=int(row["neither"]),
        facts=facts,
    )


def _story(row: Mapping[Any, Any], crossing: Crossing) -> Trace:
    """Tell what each model answered to the question of a survivor."""
    questions = crossing.questions
    chosen = questions[
        (questions["set"] == FORGET)
        & (questions["form"] == row["form"])
        & (questions["fact_id"] == row["fact"])
    ].iloc[0]
    steps = [
        (
            label,
            role,
            (),
            str(chosen[column_of("prediction", label)] or ""),
            None if pd.isna(one := chosen[column_of("correct", label)]) else bool(one),
        )
        for label, role in crossing.roles.items()
    ]
    return Trace(
        title=f"{row['fact']}, {row['form']}",
        facts=[("question", str(row["question"])), ("accepted", str(row["accepted"]))],
        steps=steps,
        note=f"{row['model']}: {row['reason']}",
    )
