"""Items in any number of forms, each compared with a reference form."""

import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import pandas as pd

from surface_consistency.data.selection import warn_limited
from surface_consistency.engine.design import Design
from surface_consistency.engine.judging.judges import Judge, RuleJudge
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.settings import RuleScoring
from surface_consistency.engine.study import Scored, Study
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.models.runner import Runner
from surface_consistency.reading import first_names, shown
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas import GenerationParams, Message, PairedOutcome, Prompt
from surface_consistency.schemas._record import NonEmpty
from surface_consistency.studies.forms.data import Forms, load_forms
from surface_consistency.studies.forms.page import FORMS_PAGE
from surface_consistency.studies.forms.settings import RECORDS, FormsSettings, FormsSource
from surface_consistency.studies.forms.tables import agreement, long_frame, rank_table
from surface_consistency.text import did_you_mean

_WORD: Final = re.compile(r"\w")


class FormOutcome(PairedOutcome):
    """An item in its reference form and in another one."""

    kind: str | None
    """Kind of the other form, such as its language."""

    relation: str | None
    """Relation of the item."""

    item_cluster: str | None
    """What the source takes whole, such as the subject."""

    cluster: NonEmpty
    """What is taken whole: the relation where forms are its templates, else what the source takes
    whole, else the item."""

    wordings: NonEmpty
    """Whether forms are "shared" by all items, "templates" of a relation, or each item's "own"."""

    sample: int
    """Which of the answers drawn to each question, from 1."""

    is_same_answer: bool
    """Whether both forms accept the same answers, so that what was said can be compared."""

    first_surface: str | None
    """The question in the reference form."""

    second_surface: str | None
    """The question in the other form."""

    first_prediction: str | None
    """Judged part of the answer in the reference form."""

    second_prediction: str | None
    """Judged part of the answer in the other form."""


def _metrics(outcomes: pd.DataFrame) -> Mapping[str, float]:
    """Compute the agreement of two forms, right in all, and accuracy; see `forms_by`.

    Returns:
        two_forms_agree, all_forms_correct and form_accuracy; NaN where no item has two verdicts.
    """
    texts = dict.fromkeys(("model", "first_prediction", "second_prediction"), "")
    table = agreement(long_frame(outcomes.assign(**texts)))
    return {
        "two_forms_agree": float(table["consistency"]),
        "all_forms_correct": float(table["all_correct"]),
        "form_accuracy": float(table["accuracy"]),
    }


def _run_checks(scored: Scored) -> dict[str, pd.DataFrame]:
    """Compare how forms rank the options, where these were scored; see `rank_agreement`."""
    table = rank_table(scored)
    return {} if table.empty else {"rank_agreement": table}


class FormsStudy(Study):
    """One item, asked in many forms."""

    name = "forms"
    design = Design(
        title="Forms",
        question="the same item in any number of forms: wordings, names, languages, prompts",
        conditions=("reference form", "other form"),
        cells=(
            "correct in both",
            "correct in the reference only",
            "correct in the other only",
            "neither",
        ),
        clusters={"cluster": "clusters", "item": "items"},
        kind="form",
        groupings={"by_form": ("second_condition",), "by_kind": ("kind",)},
        exploded_names={"second_condition": "form"},
        second_condition_columns=("kind",),
    )
    records = replace(RECORDS, outcome=FormOutcome)
    report = replace(FORMS_PAGE, run_checks=_run_checks, metrics=_metrics)

    def load(self, source: FormsSource) -> Forms:
        """Load the items; see `load_forms`."""
        return load_forms(
            source.source,
            preset=source.preset,
            columns=dict(source.column) or None,
            reference_separator=source.reference_separator,
            wordings=source.wordings,
            revision=source.revision,
            split=source.split,
        )

    def plan(self, data: Forms, settings: FormsSettings, *, runner: Runner | None = None) -> Plan:
        """Ask every item in every form, as many times as samples are wanted; see `Study.plan`.

        Returns:
            A group of prompts a sample; one target an item, form and sample; one pair an item,
            other form and sample.

        Raises:
            DataError: If a form is unknown, or there are too few items to show before a question.
        """
        n_items = data.rows["item"].nunique()
        data, settings = _chosen(data, settings)
        data = data.limited(settings.limit)
        warn_limited(settings.limit, data.rows["item"].nunique(), n_items, "items")
        targets = _targets(data, settings)
        groups = {}
        if runner is not None:
            texts = list(_texts(data, settings))
            groups = {
                "" if sample == 1 else f"sample-{sample}": PromptGroup(
                    prompts=[
                        prompt.model_copy(update={"id": f"{prompt.id}{_sampled(sample, settings)}"})
                        for prompt in texts
                    ],
                    params=_decoding(settings, sample),
                )
                for sample in range(1, settings.samples + 1)
            }
        return Plan(
            data=data.source,
            groups=groups,
            items=targets,
            pairs=target_pairs(targets, settings.reference or "", data.wordings),
            settings=settings,
        )

    def judge(self, scoring: RuleScoring, folder: RunFolder | None) -> Judge:
        """Judge by the rule; an option that was chosen, by whether it is the right one."""
        settings: Mapping[str, Any] = {}
        if folder is not None and folder.manifest.is_file():
            settings = folder.read_manifest().settings
        if settings.get("read", "generate") != "generate":
            return RuleJudge("exact", region="whole")
        return super().judge(scoring, folder)


def _chosen(data: Forms, settings: FormsSettings) -> tuple[Forms, FormsSettings]:
    """Settle the reference form, mark it in each item, and keep the forms that are wanted."""
    rows = data.rows
    known = list(dict.fromkeys(rows["form"]))
    marked = rows["is_reference"].eq(True)
    reference = settings.reference or data.layout.reference
    for name in (*settings.forms, *filter(None, (settings.reference,))):
        if name not in known:
            raise DataError(
                f"no form {shown(name)} in {data.source.id}{did_you_mean(name, known)}; its forms "
                f"are {first_names(known)}"
            )
    if settings.reference or not marked.any():
        reference = reference if reference in known else known[0]
        marked = rows["form"] == reference
    else:
        reference = "reference"
    repeated = rows.loc[marked, "item"].duplicated()
    if repeated.any():
        item = rows.loc[marked, "item"][repeated].iloc[0]
        raise DataError(
            f"item {shown(item)} has two reference forms; mark one, or name `reference`"
        )
    wanted = rows["form"].isin(settings.forms) | marked if settings.forms else marked | True
    rows = rows.assign(is_reference=marked)[wanted & _askable(rows, settings)]
    if data.needs_two:
        rows = rows[rows.groupby("item")["form"].transform("size") > 1]
    if rows.empty:
        raise DataError(f"no item of {data.source.id} can be asked in two of these forms")
    if settings.read != "generate" and rows["choices"].map(len).eq(0).any():
        rows = rows.assign(choices=rows["choices"].map(lambda _: ()))
        n_answers = rows.assign(accepted=rows["references"].map(frozenset))
        varied = n_answers.groupby("item")["accepted"].nunique() > 1
        if varied.any():
            raise DataError(
                f"the forms of item {shown(varied.idxmax())} accept other answers, so that options "
                "drawn from other items would fit some of them only; give choices to every form, "
                "or leave out `read`"
            )
    frame = settings.frame or data.layout.frame
    settled = settings.model_copy(update={"reference": reference, "frame": frame})
    return data.select(rows), settled


def _askable(rows: pd.DataFrame, settings: FormsSettings) -> pd.Series:
    """Tell which sentences with a gap a model can go on from; say how many it cannot."""
    goes_on = rows["rest"].map(lambda rest: _WORD.search(rest) is None)
    if settings.read != "generate":
        goes_on |= rows["choices"].map(len) > 0
    askable = goes_on & rows["question"].map(str.strip).ne("")
    if n_left_out := int((~askable).sum()):
        warnings.warn(
            f"{n_left_out} of {len(rows)} forms are sentences whose gap is not at their end, from "
            "which no model goes on, and are left out"
            + (
                "; `read=multiple-choice` asks those with choices"
                if settings.read == "generate"
                else ""
            ),
            SurfaceConsistencyWarning,
            stacklevel=4,
        )
    return askable


def _sampled(sample: int, settings: FormsSettings) -> str:
    """Name a sample in ids."""
    return f" | sample {sample}" if settings.samples > 1 else ""


def _decoding(settings: FormsSettings, sample: int) -> GenerationParams:
    """Say how a sample is decoded: each from a seed of its own."""
    return GenerationParams(
        max_new_tokens=settings.max_new_tokens,
        stop=("\n",) if settings.stop else (),
        temperature=settings.temperature,
        seed=settings.seed + sample - 1 if settings.temperature else None,
    )


def _targets(data: Forms, settings: FormsSettings) -> pd.DataFrame:
    """List what is judged: every form of every item, as often as it is asked."""
    rows = data.rows
    is_chosen = settings.read != "generate" and rows["choices"].map(len).gt(0).all()
    answers = rows["references"].map(list)
    if is_chosen:
        pairs = zip(rows["references"], rows["rest"], strict=True)
        answers = pd.Series([[f"{one}{rest}" for one in of_row] for of_row, rest in pairs])
    ids = [f"{item} | {form}" for item, form in zip(rows["item"], rows["form"], strict=True)]
    parts = []
    for sample in range(1, settings.samples + 1):
        names = [f"{name}{_sampled(sample, settings)}" for name in ids]
        part = pd.DataFrame(
            {"target_id": names, "prompt_id": names, "references": answers.to_numpy()}
        )
        held = rows[["question", "form", "kind", "relation", "is_reference"]]
        part = pd.concat([part.assign(item=rows["item"].to_numpy()), held], axis=1)
        part = part.assign(item_cluster=rows["cluster"], cluster=_whole(data))
        parts.append(part.assign(sample=sample, accepted=rows["references"].to_numpy()))
    return pd.concat(parts, ignore_index=True)


def _whole(data: Forms) -> pd.Series:
    """Name what is taken whole of each row."""
    if data.wordings == "templates":
        return data.rows["relation"]
    return data.rows["cluster"].where(data.rows["cluster"].notna(), data.rows["item"])


def target_pairs(targets: pd.DataFrame, reference: str, wordings: str) -> pd.DataFrame:
    """List what is compared: the reference form of each item with every other.

    Args:
        targets: One row a form, item and sample, with target_id, item, form, is_reference,
            question, accepted (texts), sample, kind, relation, item_cluster and cluster.
        reference: What the reference form is called.
        wordings: What the forms are.

    Returns:
        The columns of `FormOutcome` that are known before a verdict, and both targets.
    """
    keys = ["item", "sample"]
    first = targets[targets["is_reference"].astype(bool)].set_index(keys)
    # An item in its reference form alone is compared with none.
    is_alone = targets["is_reference"] & ~targets.duplicated(keys, keep=False)
    others = targets[~targets["is_reference"].astype(bool) | is_alone].reset_index(drop=True)
    is_compared = ~others["is_reference"].astype(bool)
    of_first = first.reindex(pd.MultiIndex.from_frame(others[keys]))
    # Of an item without its reference the first form stands in.
    order = targets.sort_values("is_reference", ascending=False, kind="stable")
    accepted = order.drop_duplicates("item").set_index("item")["accepted"].to_dict()
    is_same = [
        set(accepted[item]) == set(other)
        for item, other in zip(others["item"], others["accepted"], strict=True)
    ]
    named = {name: of_first[name].to_numpy(dtype=object) for name in ("target_id", "question")}
    return pd.DataFrame(
        {
            "pair": others["target_id"],
            "item": others["item"],
            "first_condition": reference,
            "second_condition": others["form"],
            "first_target": pd.Series(named["target_id"], dtype=object).where(
                lambda x: x.notna(), None
            ),
            "second_target": others["target_id"].astype(object).where(is_compared, None),
            "kind": others["kind"],
            "relation": others["relation"],
            "item_cluster": others["item_cluster"],
            "cluster": others["cluster"],
            "wordings": wordings,
            "sample": others["sample"],
            "is_same_answer": is_same,
            "first_surface": pd.Series(named["question"], dtype=object).where(
                lambda x: x.notna(), None
            ),
            "second_surface": others["question"].astype(object).where(is_compared, None),
        }
    )


def _texts(data: Forms, settings: FormsSettings) -> Iterator[Prompt]:
    """Write the prompts of one sample, options among them where they are compared."""
    frame = settings.frame or data.layout.frame
    shown = _demonstrations(data.rows, settings)
    for row in data.rows.to_dict("records"):
        question = frame.replace("{question}", row["question"])
        spaced = question.rstrip() != question or frame != "{question}"
        solved = [(frame.replace("{question}", one), answer) for one, answer in shown[row["item"]]]
        content: dict[str, Any] = {
            "text": "\n\n".join(
                [*(f"{one.rstrip()} {answer}" for one, answer in solved), question.rstrip()]
            )
        }
        if settings.chat:
            turns = [
                turn
                for one, answer in solved
                for turn in (
                    Message(role="user", content=one),
                    Message(role="assistant", content=answer),
                )
            ]
            content = {"messages": (*turns, Message(role="user", content=question))}
        if settings.read != "generate" and row["choices"]:
            space = " " if spaced and not settings.chat else ""
            content["options"] = tuple(f"{space}{one}{row['rest']}" for one in row["choices"])
        yield Prompt(id=f"{row['item']} | {row['form']}", group=row["item"], **content)


def _demonstrations(
    rows: pd.DataFrame, settings: FormsSettings
) -> dict[str, list[tuple[str, str]]]:
    """Choose solved items before each item: in the reference form, the same under all its forms.

    They are of another relation, cluster and answer, so that they give nothing away.
    """
    solved = rows[rows["is_reference"].astype(bool)].to_dict("records")
    order = sorted(solved, key=lambda row: _rank(settings.seed, str(row["item"])))
    drawn = {}
    for row in rows.drop_duplicates("item").to_dict("records"):
        allowed = (other for other in order if not _tells(other, row))
        chosen = list(islice(allowed, settings.shots))
        if len(chosen) < settings.shots:
            raise DataError(
                f"`shots` {settings.shots}: only {len(chosen)} items may stand before item "
                f"{shown(row['item'])} (of other relations, clusters and answers); ask for fewer"
            )
        drawn[row["item"]] = [(other["question"], other["references"][0]) for other in chosen]
    return drawn


def _tells(other: Mapping[Any, Any], row: Mapping[Any, Any]) -> bool:
    """Return whether a solved item may give away the answer to another."""
    is_like = other["item"] == row["item"] or any(
        row[name] is not None and other[name] == row[name] for name in ("relation", "cluster")
    )
    return bool(is_like or {*other["references"]} & {*row["references"]})


def _rank(seed: int, item: str) -> bytes:
    """Order items in a way that is drawn by the seed."""
    return hashlib.sha256(f"{seed}|{item}".encode()).digest()
