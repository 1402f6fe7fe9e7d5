"""Analyse whether unlearned or edited facts are still answered under any form.

Each unlearned model is compared with a reference that never saw the facts, form by form, and with
the original on the facts that it should preserve.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    TESTED,
    forms_frame,
    kept_frame,
    scores_frame,
    survivors_frame,
    verdicts,
    verdicts_frame,
)
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import Claim, Part, Value, interval_value, sentence_text
from surface_consistency.tables.table import Table

_TEXTS: Final = Texts("surface_consistency.studies.unlearning")
_MARGIN: Final = 0.05
_STORIES: Final = 3


class UnlearningSettings(Settings):
    """Roles of the models, and scoring of the answers of logs."""

    roles: Items[Role] = ()
    """Role of each model in order: original, unlearned, edited or reference (never trained on the
    facts); by default the first is the original, the last the reference, and all between are
    unlearned; of two models the first is unlearned."""

    short_answers: Path | None = None
    """File of short answers to the questions of logs, with the columns index and answer; those of
    TOFU's forget10, forget05 and forget01 are bundled."""

    rule: Annotated[str, AfterValidator(check_rule)] = "boundary"
    """Matching rule that scores the answers of logs; runs are already scored."""


class UnlearningAnalysis(Analysis):
    """Test whether unlearned or edited facts are still answered, in any form."""

    name = "unlearning"
    title = "Forgetting in weights"
    settings = UnlearningSettings
    caveat = (
        "The results are about the answers to these forms. A fact that is not answered may return "
        "in another form, with further samples, or after training."
    )

    def __init__(self) -> None:
        self._crossing: Crossing | None = None
        self._results: dict[str, dict[str, Any]] = {}
        self._margin = _MARGIN
        self._words: dict[str, Any] = {}

    def prepare(
        self, paths: Sequence[Any], out: Path, settings: UnlearningSettings
    ) -> Sequence[Path]:
        """Join the models, and make a folder of scores per unlearned model; see `Analysis`."""
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
                    "first_correct": crossing.verdicts(other),
                    "second_correct": crossing.verdicts(model),
                    "form": questions["form"],
                }
            )[forget]
            folder = import_verdicts(
                frame,
                out / "models" / str(place + 1),
                origin=", ".join(map(str, named)),
                first=crossing.roles[str(other)],
                second=crossing.roles[model],
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
            "unlearning_verdicts", one row per model: the fields of `metrics.unlearning_verdict`,
            the excluded forms, and the sets with a significant loss. "unlearning", one row per
            model and form: known (original correct), survival, floor (reference correct), leak,
            damage, hidden (correct under the form; incorrect under the plain one and by the
            reference), excess, its tests (`unlearning_by`), known_excess (original minus reference)
            and status (why the form is excluded, or "tested"); the last row of each model, "any
            form", is for facts that are correct under any form. "unlearning_price", one row per
            model and set to preserve. "unlearning_edits" of new objects, "unlearning_scores" of
            probabilities and ROUGE, and "survivors", one row per answer with its reason.

        Raises:
            ValueError: If the runs were not made by `prepare`.
        """
        crossing = self._crossed()
        self._margin = report.settings.margin or _MARGIN
        level, intervals = report.confidence, report.intervals
        self._words = {"unit": "questions", "clusters": crossing.clusters, "confidence": level}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnscoredWarning)
            forms = forms_frame(crossing, self._margin, intervals)
            price = kept_frame(crossing, self._margin, intervals)
        self._results = verdicts(crossing, forms, report.confidence)
        frames = {
            "unlearning_verdicts": verdicts_frame(self._results, price),
            "unlearning": forms,
            "unlearning_price": price[price["set"] != NEW],
            "unlearning_edits": price[price["set"] == NEW],
            "unlearning_scores": scores_frame(crossing, intervals),
            "survivors": survivors_frame(crossing, settings.rule),
        }
        tables = {}
        for name, frame in frames.items():
            if len(frame := frame.reset_index(drop=True)):
                margin = f"{100 * self._margin:g}"
                tables[name] = _TEXTS.table(name, frame, clusters=crossing.clusters, margin=margin)
        return tables

    def finding(self, report: Report, tables: Mapping[str, Table]) -> list[Part]:
        """Report the verdict on each model, and the price; see `Analysis.finding`."""
        forms = tables["unlearning"].frame
        price = tables["unlearning_price"].frame if "unlearning_price" in tables else forms[:0]
        sentences: dict[str, say.Sentence] = {}
        for verdict in tables["unlearning_verdicts"].frame.to_dict("records"):
            model = verdict["model"]
            rows = {
                str(row["form"]): row for row in forms[forms["model"] == model].to_dict("records")
            }
            kept = self._price(model, price[price["model"] == model].to_dict("records"))
            # The reasons for excluding a form are the same for all models.
            for one in (*self._verdict(model, verdict, rows), *kept):
                sentences.setdefault(sentence_text(one), one)
        return say.paragraph(sentences.values())

    def _verdict(
        self, model: str, verdict: say.Row, rows: Mapping[str, say.Row]
    ) -> Iterator[say.Sentence]:
        """Report the verdict on one model, the excess of its forms, and the excluded forms."""
        result, clusters = self._results[model], self._words["clusters"]
        name, tested, needed = result["verdict"], result["tested"], result["clusters_needed"]
        least = (rows[PLAIN] if name == "hidden" else result)["least_margin"]
        columns = ("least_margin", "clusters_needed")
        records = [one for column in columns for one in self._claims([verdict], column, p="")]
        values: dict[str, Any] = {
            key: _quoted(forms) for key, forms in result.items() if isinstance(forms, tuple)
        }
        values |= {"model": model, "margin": _points(self._margin), "least_margin": _points(least)}
        if name == "not inferred":
            what, row = f"whether {model} has forgotten the facts", next(iter(rows.values()))
            yield say.not_inferred(row, what, unit="questions", clusters=clusters)
        else:
            has_reference = self._crossed().first("reference") is not None
            text = name.replace(" ", "_") if has_reference else "no_reference"
            equal = {"forgotten": tested, "equivalent": tested, "hidden": (PLAIN,)}.get(name, ())
            above = result["above"] if name == "equivalent" else ()
            yield [
                records[0],
                *self._claims([rows[form] for form in equal], "excess", p="p_equivalent"),
                *self._claims([rows[form] for form in result["leaking"]], "excess", self._margin),
                *self._claims([rows[form] for form in above], "excess", 0.0),
                *_TEXTS.sentence(text, **values),
            ]
        for text, is_below in (("unclear", False), ("unclear_below", True)):
            if forms := [one for one in result["unclear"] if (one in result["below"]) == is_below]:
                test = {"null": 0.0} if is_below else {"p": "p_above"}
                claims = self._claims([rows[form] for form in forms], "excess", **test)
                yield [*claims, *_TEXTS.sentence(text, **values | {"forms": _quoted(forms)})]
        used = {form for key in ("leaking", "unclear", "above", "below") for form in result[key]}
        for form in [form for form in rows if form in used | {*result["not_inferred"]} & {*tested}]:
            what = f"excess accuracy of {model} over the reference under the form “{form}”"
            yield say.rate(rows[form], "excess", what, kind="difference", null=0.0, **self._words)
        if name == "cannot tell" and not np.isnan(least):
            number = "no number of" if np.isnan(needed) else f"about {needed:,.0f}"
            n_clusters = int(max(rows[form]["n_clusters"] for form in tested))
            values |= {"needed": number, "clusters": clusters, "n_clusters": n_clusters}
            yield [*records, *_TEXTS.sentence("needed", **values)]
        if result["excluded"]:
            yield _TEXTS.sentence("excluded", **values)
            yield from (self._original(rows[form]) for form in result["excluded"])

    def _claims(
        self, rows: Iterable[say.Row], name: str, null: float | None = None, p: str | None = None
    ) -> list[Claim]:
        """Make a record per row: of its test against the margin, by `p` if not "", or of `null`."""
        kind = "difference" if p is None else "equivalence" if p == "p_equivalent" else "test"
        options: dict[str, Any] = {
            "kind": kind,
            "null": null,
            "confidence": self._words["confidence"],
        }
        options["margin"] = None if p is None else self._margin
        what = f"{name} of the accuracy of "
        return [
            say.claim(row, name, what + row["model"], p_value=row.get(p), **options) for row in rows
        ]

    def _original(self, row: say.Row) -> say.Sentence:
        """Compare the original with the reference under a form."""
        names = {"n": "excess_n", "n_clusters": "excess_n_clusters", "not_inferred": "not_inferred"}
        cells = {**row, **{name: row[f"known_{of}"] for name, of in names.items()}}
        quantity = f"accuracy under the form “{row['form']}”"
        ends = ("the reference", "the original")
        equal = {"p": "known_p_equivalent", "margin": self._margin, **self._words}
        return say.equivalence(cells, "known_excess", quantity, *ends, **equal) or say.difference(
            cells, "known_excess", quantity, *ends, p=None, **self._words
        )

    def _price(self, model: str, rows: Sequence[say.Row]) -> Iterator[say.Sentence]:
        """Report losses on facts to preserve: significant, not significant, not inferred."""
        confidence, rows = self._words["confidence"], [row for row in rows if row["set"] != NEW]
        others = [row for row in rows if say.direction(row, "change") in (0, 1)]
        for row in [row for row in rows if row not in others]:
            what, ends = f"accuracy in {_places([row])}", (str(row["against"]), model)
            yield say.difference(row, "change", what, *ends, p=None, **self._words)
        small = [row for row in rows if row["p_not_below"] < (1.0 - confidence) / 2.0]
        values = {"model": model, "margin": _points(self._margin)}
        if others:
            widest = max(others, key=lambda row: row["change_high"] - row["change_low"])
            values["least"] = say.detectable(widest, "change", confidence=confidence)
            text = _TEXTS.sentence("no_loss", places=_places(others), **values)
            yield [*self._claims(others, "change", 0.0), *text]
        if small:
            text = _TEXTS.sentence("no_large_loss", places=_places(small), **values)
            yield [*self._claims(small, "change", p="p_not_below"), *text]

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Draw a square per model and form, and show some survivors; see `Analysis.figures`."""
        crossing = self._crossed()
        forms = tables["unlearning"].frame
        if crossing.first("reference") is not None:
            yield MosaicPlots(
                squares=[
                    _square(row, report) for row in forms[forms["form"] != ANY].to_dict("records")
                ],
                conditions=("unlearned", "reference"),
                cells=("both: guessable", "leak", "damage", "neither"),
                size="small",
            )
        if "survivors" in tables:
            chosen = tables["survivors"].frame
            chosen = chosen[chosen["reason"] != "guessable"].drop_duplicates("fact")[:_STORIES]
            yield from (_story(row, crossing) for row in chosen.to_dict("records"))

    def checks(self, report: Report, tables: Mapping[str, Table]) -> list[Check]:
        """Report problems that rule out a verdict; see `Analysis.checks`."""
        crossing, by_order = self._crossed(), self._crossed().is_by_order
        checks = [
            _TEXTS.check(
                "roles",
                level="warning" if by_order else "ok",
                by_order="By their order " if by_order else "",
                roles=", ".join(f"{label} is the {role}" for label, role in crossing.roles.items()),
                remedy="; set other roles by `roles`" if by_order else "",
            )
        ]
        notes = ((_TEXTS.check("note", text=text), title) for title, text in crossing.notes)
        checks += [replace(check, title=title) for check, title in notes]
        roles: tuple[Role, ...] = ("reference", "original")
        checks += [_TEXTS.check(f"no_{role}") for role in roles if not crossing.of(role)]
        forms = tables["unlearning"].frame
        forms = forms[forms["form"] != ANY]
        excluded = forms[forms["status"].notna() & (forms["status"] != TESTED)]
        for row in excluded.drop_duplicates(["form", "status"]).to_dict("records"):
            name = "reference_knows" if row["status"] == "below" else "excluded"
            checks.append(_TEXTS.check(name, sentence=self._original(row)))
        noise = forms[forms["model"].isin(crossing.of("reference"))]
        return [*checks, *map(self._other_reference, noise.to_dict("records"))]

    def _other_reference(self, row: say.Row) -> Check:
        """Compare a further reference with the first one."""
        ends = (str(self._crossed().first("reference")), str(row["model"]))
        what = f"accuracy under the form “{row['form']}”"
        sentence = say.difference(row, "excess", what, *ends, p=None, **self._words)
        names = {None: "references_unknown", 0: "references_agree"}
        name = names.get(say.direction(row, "excess"), "references_differ")
        return _TEXTS.check(name, sentence=sentence)

    def _crossed(self) -> Crossing:
        """Return the models that `prepare` crossed."""
        if self._crossing is None:
            raise ValueError(
                "the analysis 'unlearning' needs the logs or runs of several models: pass these to "
                "`report_runs`, and not the folders that the analysis wrote"
            )
        return self._crossing


def _points(number: float) -> Value:
    """Format a margin."""
    return Value(value=float(number), kind="difference", signed=False)


def _quoted(forms: Sequence[str]) -> str:
    """List all forms, since a verdict is limited to these."""
    return say.listing([f"“{form}”" for form in forms], most=len(forms)) if forms else ""


def _places(rows: Sequence[say.Row]) -> str:
    """List the sets of rows, with their forms unless these are the plain question."""
    forms = ["" if row["form"] == PLAIN else f" (“{row['form']}”)" for row in rows]
    places = [f"{row['set']}{form}" for row, form in zip(rows, forms, strict=True)]
    return say.listing(places, most=len(rows))


def _square(row: say.Row, report: Report) -> MosaicPlot:
    """Draw the square of an unlearned model and the reference under one form."""
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


def _story(row: say.Row, crossing: Crossing) -> Trace:
    """Show the answer of each model to the question of a survivor."""
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
