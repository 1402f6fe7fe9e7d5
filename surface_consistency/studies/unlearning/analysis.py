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

from surface_consistency.engine import Analysis, Report, import_verdicts
from surface_consistency.engine.settings import check_rule
from surface_consistency.errors import UnscoredWarning
from surface_consistency.report.page import Block, Check, MosaicPlot, MosaicPlots, Trace
from surface_consistency.report.texts import Texts
from surface_consistency.results.unlearning import FORGET, NEW, PLAIN
from surface_consistency.schemas import Items
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.unlearning.crossing import Crossing, Role, column_of, cross_models
from surface_consistency.studies.unlearning.tables import (
    ANY,
    forms_frame,
    kept_frame,
    scores_frame,
    survivors_frame,
    verdicts,
    verdicts_frame,
)
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import Part, Value, interval_value
from surface_consistency.tables.table import Table

_TEXTS: Final = Texts("surface_consistency.studies.unlearning")
_MARGIN: Final = 0.05
_STORIES: Final = 3
_TABLES: Final = (
    "unlearning_verdicts",
    "unlearning",
    "unlearning_price",
    "unlearning_edits",
    "unlearning_scores",
    "survivors",
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
        "Measured is what models answered when they were asked in these forms. What is not "
        "answered may come back in a form that was not asked, by further sampling, or by training."
    )

    def __init__(self) -> None:
        self._crossing: Crossing | None = None
        self._results: dict[str, dict[str, Any]] = {}
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
                    "pair": questions["form"] + ": " + questions["question_id"],
                    "item": questions["cluster"],
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
                title=self.title,
                question="the same questions, answered by models before and after forgetting",
                clusters={"item": crossing.clusters},
            )
            folders.append(folder.path)
        return folders

    def tables(self, report: Report, settings: UnlearningSettings) -> Mapping[str, Table]:
        """Compute rates by form, verdicts, price, scores and survivors.

        Returns:
            "unlearning_verdicts", one row a model: verdict, the forms that leak, are below the
            reference or unclear, and the sets in which a loss is shown. "unlearning", one row a
            model and form: known (original right), survival, floor (reference right), leak, damage,
            hidden (right under the form, wrong under the plain one and by the reference), excess,
            its tests (`unlearning_by`), is_known (whether the original is shown to know more under
            the form than the reference) and reference_knows (less); the last row of each model,
            "any form", is the closure: right under some form. "unlearning_price", one row a model
            and set that should be kept. "unlearning_edits" of new objects, "unlearning_scores" of
            probabilities and ROUGE, and "survivors", one row an answer with its reason.

        Raises:
            ValueError: If the runs were not made by `prepare`.
        """
        crossing = self._crossed()
        self._margin = report.settings.margin or _MARGIN
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnscoredWarning)
            forms = forms_frame(crossing, self._margin)
            price = kept_frame(crossing, self._margin)
        self._results = verdicts(crossing, forms)
        frames = {
            "unlearning_verdicts": verdicts_frame(self._results, price),
            "unlearning": forms,
            "unlearning_price": price[price["set"] != NEW],
            "unlearning_edits": price[price["set"] == NEW],
            "unlearning_scores": scores_frame(crossing),
            "survivors": survivors_frame(crossing, settings.rule),
        }
        tables = {}
        for name in _TABLES:
            frame = frames[name].reset_index(drop=True)
            if len(frame):
                margin = f"{100 * self._margin:g}"
                tables[name] = _TEXTS.table(name, frame, clusters=crossing.clusters, margin=margin)
        return tables

    def finding(self, report: Report, tables: Mapping[str, Table]) -> list[Part]:
        """Report the verdict on each model, and the price; see `Analysis.finding`."""
        forms = tables["unlearning"].frame
        price = tables["unlearning_price"].frame if "unlearning_price" in tables else forms[:0]
        sentences: list[say.Sentence] = []
        for model, result in self._results.items():
            rows = {
                str(row["form"]): row for row in forms[forms["model"] == model].to_dict("records")
            }
            sentences += self._verdict(model, result, rows)
            sentences += self._price(price[price["model"] == model].to_dict("records"))
        return say.paragraph(sentences)

    def _verdict(
        self, model: str, result: Mapping[str, Any], rows: Mapping[str, Mapping[Any, Any]]
    ) -> Iterator[say.Sentence]:
        """Report the verdict on one model, and the excess over the reference of its forms."""
        crossing, name = self._crossed(), result["verdict"].replace(" ", "_")
        forms: Sequence[str] = result["leaking"]
        least = result["least_margin"]
        if crossing.first("reference") is None:
            name = "no_reference"
        elif name == "hidden":
            least = rows[PLAIN]["least_margin"]
        elif name == "forgotten":
            known = [form for form, row in rows.items() if row["is_known"] and form != ANY]
            forms = ["every form"] if known != [PLAIN] else ["the plain question"]
        elif name != "not_forgotten":
            forms = result["unclear"]
            name = "unclear" if forms else "nothing_known"
        quoted = forms if name == "forgotten" else [f"“{form}”" for form in forms]
        yield _TEXTS.sentence(
            name,
            model=model,
            margin=_points(self._margin),
            least_margin=_points(least),
            forms=say.listing(quoted) if quoted else "",
        )
        for form in result["below"] if name == "forgotten" else forms:
            if form in rows and say.direction(rows[form], "excess") is not None:
                quantity = f"excess accuracy of {model} over the reference under the form “{form}”"
                yield self._change(rows[form], "excess", quantity)
        if name == "unclear" and not np.isnan(least):
            needed = result["clusters_needed"]
            yield _TEXTS.sentence(
                "at_margin",
                least_margin=_points(least),
                needed="no number of" if np.isnan(needed) else f"about {needed:,.0f}",
                clusters=crossing.clusters,
                n_clusters=int(rows[result["unclear"][0]]["n_clusters"]),
            )

    def _price(self, rows: Sequence[Mapping[Any, Any]]) -> list[say.Sentence]:
        """Report significant losses in what should be preserved."""
        losses = [row for row in rows if row["set"] != NEW and say.direction(row, "change") == -1]
        if not losses:
            return [_TEXTS.sentence("no_loss")] if rows else []
        return [
            self._change(
                row,
                "change",
                f"change of accuracy of {row['model']} in {row['set']}"
                f"{_of_form(row)} compared with "
                f"{row['against']}",
            )
            for row in losses
        ]

    def _change(self, row: Mapping[Any, Any], name: str, quantity: str) -> say.Sentence:
        """Report a difference of accuracies with its interval."""
        clusters = self._crossed().clusters
        return say.rate(row, name, quantity, kind="difference", unit="questions", clusters=clusters)

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
        if "survivors" in tables:
            chosen = tables["survivors"].frame
            chosen = chosen[chosen["reason"] != "guessable"].drop_duplicates("fact")[:_STORIES]
            yield from (_story(row, crossing) for row in chosen.to_dict("records"))

    def checks(self, report: Report, tables: Mapping[str, Table]) -> list[Check]:
        """Report what forbids a verdict; see `Analysis.checks`."""
        crossing, by_order = self._crossed(), self._crossed().is_by_order
        checks = [
            _TEXTS.check(
                "roles",
                level="warning" if by_order else "ok",
                by_order="By their order " if by_order else "",
                roles=", ".join(f"{label} is the {role}" for label, role in crossing.roles.items()),
                remedy="; `roles` names others" if by_order else "",
            )
        ]
        for title, text in crossing.notes:
            checks.append(replace(_TEXTS.check("note", text=text), title=title))
        for role in ("reference", "original"):
            if crossing.first(role) is None:
                checks.append(_TEXTS.check(f"no_{role}"))
        forms = tables["unlearning"].frame
        unknown = forms[~forms["is_known"]].drop_duplicates("form")
        checks += map(self._unknown, unknown.to_dict("records"))
        noise = forms[forms["model"].isin(crossing.of("reference")) & (forms["form"] != ANY)]
        return [*checks, *map(self._other_reference, noise.to_dict("records"))]

    def _unknown(self, row: Mapping[Any, Any]) -> Check:
        """Report a form under which the original is not known to know the facts."""
        form = str(row["form"])
        if row["reference_knows"]:
            sentences = {
                name: say.rate(row, name, f"accuracy of the {role}", unit="questions")
                for name, role in (("floor", "reference"), ("known", "original"))
            }
            return _TEXTS.check("reference_knows", form=form, **sentences)
        if row["known"] == 0:
            return _TEXTS.check("original_knows_nothing", form=form)
        has_reference = self._crossed().first("reference") is not None
        return _TEXTS.check(
            "original_not_above" if has_reference else "original_unknown", form=form
        )

    def _other_reference(self, row: Mapping[Any, Any]) -> Check:
        """Compare a further reference with the first one."""
        crossing = self._crossed()
        sentence = say.difference(
            row,
            "excess",
            f"accuracy under the form “{row['form']}”",
            str(crossing.first("reference")),
            str(row["model"]),
            p=None,
            unit="questions",
            clusters=crossing.clusters,
        )
        name = "references_differ" if say.direction(row, "excess") else "references_agree"
        return _TEXTS.check(name, sentence=sentence)

    def _crossed(self) -> Crossing:
        """Return the models that `prepare` crossed."""
        if self._crossing is None:
            raise ValueError(
                "the analysis 'unlearning' reads several models: give `report_runs` their logs or "
                "runs themselves, with this analysis, and not folders that it made"
            )
        return self._crossing


def _points(number: float) -> Value:
    """Write a margin."""
    return Value(value=float(number), kind="difference", signed=False)


def _of_form(row: Mapping[Any, Any]) -> str:
    """Name the form of a row, unless it is the plain question."""
    return "" if row["form"] == PLAIN else f", {row['form']},"


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
        & (questions["item"] == row["fact"])
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
