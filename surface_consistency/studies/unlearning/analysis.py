"""Is what was unlearned or edited still answered, under any form? Models are the conditions.

Each unlearned model is held against a reference that never saw the facts, form by form, and against
the original in what it should have kept.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import AfterValidator

from surface_consistency.engine import Analysis, Report, check_rule, import_verdicts
from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics import (
    UnlearningVerdictResult,
    unlearning_verdict,
)
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
    spread,
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
)

_WORDING: Final = Wording("surface_consistency.studies.unlearning")
_MARGIN: Final = 0.05
_STORIES: Final = 3
_COLUMNS: Final = COLUMNS | catalogue(
    Column(key="form", title="Form"),
    Column(key="set", title="Set"),
    Column(key="verdict_shown", title="Verdict"),
    Column(key="leaking", title="Leaks under"),
    Column(key="below", title="Below the reference under"),
    Column(key="unclear", title="Unclear under"),
    Column(key="lost", title="Lost in"),
    Column(key="against", title="Against"),
    *(interval_column(key, title, "rate", "%") for key, title in RATES.items()),
    interval_column("excess", "Excess", "difference", "points"),
    interval_column("change", "Change", "difference", "points"),
    interval_column("score_difference", "Difference", "number"),
    Column(key="p_above", title="p", unit="excess ≤ margin", kind="p_value"),
    Column(key="p_equivalent", title="p", unit="difference ≥ margin", kind="p_value"),
    Column(key="p_not_below", title="p", unit="loss ≥ margin", kind="p_value"),
    *(Column(key=key, title=key.capitalize()) for key in ("measure", "metric", "reason", "fact")),
    *(
        Column(key=key, title=title, kind="number", on_phones=False)
        for key, title in (
            ("value", "Model"),
            ("reference_value", "Reference"),
            ("published", "In the log"),
            ("recomputed", "Recomputed"),
            ("distance", "Distance"),
            ("least_distance", "Least of p < .05"),
            ("lowest", "Lowest p"),
        )
    ),
)
_P_VALUES: Final = ("published", "recomputed", "lowest")
_SHOWN: Final = (
    "model form n n_clusters known survival floor leak damage hidden excess p_above p_equivalent"
)


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
        "Measured is what models answer when asked in these forms, greedily and once. What is not "
        "answered may come back in a form that was not asked, by sampling, or by training."
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

    def tables(self, report: Report, settings: UnlearningSettings) -> Mapping[str, Table]:
        """Compute rates by form, verdicts, price, survivors and what logs publish.

        Returns:
            "unlearning_verdicts", one row a model: verdict, the forms that leak, are below the
            reference or unclear, and the sets in which a loss is shown. "unlearning", one row a
            model and form: known (original right), survival, floor (reference right), leak, damage,
            hidden (right under the form, wrong under the plain one and by the reference), excess,
            its tests (`unlearning_by`), and is_known (whether the original is shown to know more
            under the form than the reference); the last row of each model, "any form", is the
            closure: right under some form. "unlearning_price", one row a model and set that should
            be kept. "unlearning_edits" of new objects, "unlearning_scores" of probabilities and
            ROUGE, "unlearning_published", "unlearning_forget_quality", and "survivors", one row an
            answer with its reason.

        Raises:
            ValueError: If the runs were not made by `prepare`.
        """
        crossing = self._crossed()
        self._margin = report.settings.margin or _MARGIN
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnscoredWarning)
            forms = forms_frame(crossing, self._margin)
            price = kept_frame(crossing, self._margin)
        counted = forms[(forms["form"] != ANY) & forms["is_known"]]
        self._results = {
            model: _verdict(counted[counted["model"] == model], crossing)
            for model in crossing.targets
        }
        reference = next((x for x in crossing.logs if x.label == crossing.first("reference")), None)
        published = published_table(crossing.logs, reference)
        tables = {
            "unlearning_verdicts": describe(
                _verdict_rows(self._results, price),
                f"What can be said, with a margin of {100 * self._margin:g} points",
                "model verdict_shown leaking below unclear lost",
                _COLUMNS,
            ),
            "unlearning": describe(
                forms,
                "Forms by model",
                _SHOWN,
                _COLUMNS,
                titles={"n": "Questions", "n_clusters": "Persons"},
                note="Survival = floor + leak − damage. Floor is what the reference answers, which "
                "never saw the facts; known is what the original answers.",
                cluster_column="n_clusters",
            ),
            "unlearning_price": _price_table(price, NEW, others=True),
            "unlearning_edits": _price_table(price, NEW, others=False),
            "unlearning_scores": describe(
                scores_frame(crossing),
                "Scores against the reference",
                "model set measure n n_clusters value reference_value score_difference",
                _COLUMNS,
                titles={"n": "Questions", "n_clusters": "Persons"},
            ),
            "unlearning_published": describe(
                published[published["metric"] != "forget_quality"],
                "As published",
                "model metric n published recomputed",
                _COLUMNS,
                titles={"n": "Questions"},
            ),
            "unlearning_forget_quality": describe(
                published[published["metric"] == "forget_quality"],
                "Forget quality, as published",
                "model n published recomputed distance least_distance lowest",
                _COLUMNS | {key: replace(_COLUMNS[key], kind="p_value") for key in _P_VALUES},
                titles={"n": "Questions"},
                note="A p of a test that takes the same questions for independent: 21 pairs of "
                "models retrained without the facts have .585 to .9999, so a p above .05 shows no "
                "forgetting, and none can lie below the lowest.",
            ),
            "survivors": describe(
                survivors_frame(crossing, settings.rule),
                "Answers that survived, with the first reason that holds",
                "model form fact question answer reason",
                _COLUMNS | catalogue(*(Column(key=k, title=k.capitalize()) for k in _TEXTS)),
            ),
        }
        return {name: table for name, table in tables.items() if len(table.frame)}

    def finding(self, report: Report, tables: Mapping[str, Table]) -> list[Part]:
        """Say what can be said of each model, and at what price; see `Analysis.finding`."""
        forms = tables["unlearning"].frame
        price = tables["unlearning_price"].frame if "unlearning_price" in tables else pd.DataFrame()
        rows = [
            {
                "model": model,
                "said": result,
                "forms": _by_form(forms, model),
                "price": [] if price.empty else price[price["model"] == model].to_dict("records"),
            }
            for model, result in self._results.items()
        ]
        crossing = self._crossed()
        return _WORDING.sentence(
            "finding",
            rows=rows,
            margin=self._margin,
            has_reference=crossing.first("reference") is not None,
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
            notes=crossing.notes,
            roles=list(crossing.roles.items()),
            has_original=crossing.first("original") is not None,
            has_reference=crossing.first("reference") is not None,
            reference=crossing.first("reference"),
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


def _verdict(forms: pd.DataFrame, crossing: Crossing) -> UnlearningVerdictResult:
    """Say what the forms show; nothing without a reference."""
    if crossing.first("reference") is None:
        forms = forms[:0]
    return unlearning_verdict(forms)


def _verdict_rows(
    results: Mapping[str, UnlearningVerdictResult], price: pd.DataFrame
) -> pd.DataFrame:
    """Lay the verdicts out, one row a model."""
    rows = []
    for model, result in results.items():
        lost: list[str] = []
        if len(price):
            mine = price[(price["model"] == model) & (price["change_high"] < 0.0)]
            lost = mine.loc[mine["set"] != NEW, "set"].drop_duplicates().tolist()
        row = spread(result) | {"model": model, "lost": "; ".join(lost) or None}
        names = ("leaking", "below", "unclear")
        row |= {name: "; ".join(getattr(result, name)) or None for name in names}
        rows.append(row | {"verdict_shown": _shown(result)})
    return pd.DataFrame(rows)


def _shown(result: UnlearningVerdictResult) -> str:
    """Name a verdict, with what goes with being forgotten."""
    if result.verdict == "forgotten":
        return "forgotten" if result.is_equivalent else "forgotten, not shown equivalent"
    return result.verdict


def _price_table(price: pd.DataFrame, of_set: str, *, others: bool) -> Table:
    """Describe what was lost in the sets that should be kept, or how edits are answered."""
    frame = price[(price["set"] != of_set) == others] if len(price) else price
    return describe(
        frame.reset_index(drop=True),
        "The price: what should have been kept" if others else "New objects of edits",
        "model set form n n_clusters survival floor change p_not_below against",
        _COLUMNS,
        titles={"survival": "Right", "floor": "Right before", "n": "Questions"},
        cluster_column="n_clusters",
    )


_TEXTS: Final = ("question", "answer", "original", "reference")


def _by_form(forms: pd.DataFrame, model: str) -> dict[str, dict[Any, Any]]:
    """Take the rows of a model by form."""
    rows = forms[forms["model"] == model].to_dict("records")
    return {str(row["form"]): row for row in rows}


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
