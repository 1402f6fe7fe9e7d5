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
    """Cluster in the source, such as the subject."""

    cluster: NonEmpty
    """Cluster: the relation if forms are its templates, otherwise the cluster in the source,
    otherwise the item."""

    wordings: NonEmpty
    """Whether forms are "shared" by all items, "templates" of a relation, or each item's "own"."""

    sample: int
    """Number of the sampled answer to each question, from 1."""

    is_same_answer: bool
    """Whether both forms accept the same answers, so that the texts of answers are comparable."""

    first_surface: str | None
    """The question in the reference form."""

    second_surface: str | None
    """The question in the other form."""

    first_prediction: str | None
    """Scored part of the answer in the reference form."""

    second_prediction: str | None
    """Scored part of the answer in the other form."""


def _metrics(outcomes: pd.DataFrame) -> Mapping[str, float]:
    """Compute agreement of two forms, proportion correct in all, and accuracy; see `forms_by`.

    Returns:
        two_forms_agree, all_forms_correct and form_accuracy; NaN if no item has two scored forms.
    """
    texts = dict.fromkeys(("model", "first_prediction", "second_prediction"), "")
    table = agreement(long_frame(outcomes.assign(**texts)))
    return {
        "two_forms_agree": float(table["consistency"]),
        "all_forms_correct": float(table["all_correct"]),
        "form_accuracy": float(table["accuracy"]),
    }


def _run_checks(scored: Scored) -> dict[str, pd.DataFrame]:
    """Compare the ranks of options between forms, if they were scored; see `rank_agreement`."""
    table = rank_table(scored)
    return {} if table.empty else {"rank_agreement": table}


class FormsStudy(Study):
    """Compare answers to several forms of the same items."""

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
        """Plan one prompt per item, form and sample; see `Study.plan`.

        Returns:
            One group of prompts per sample; one target per item, form and sample; one pair per
            item, other form and sample.

        Raises:
            DataError: If a form is unknown, or there are too few items for the demonstrations.
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
        """Return the judge of the rule, or of exact matches if the model chooses an option."""
        settings: Mapping[str, Any] = {}
        if folder is not None and folder.manifest.is_file():
            settings = folder.read_manifest().settings
        if settings.get("read", "generate") != "generate":
            return RuleJudge("exact", region="whole")
        return super().judge(scoring, folder)


def _chosen(data: Forms, settings: FormsSettings) -> tuple[Forms, FormsSettings]:
    """Determine the reference form, mark it in each item, and select the requested forms."""
    rows = data.rows
    known = list(dict.fromkeys(rows["form"]))
    marked = rows["is_reference"].eq(True)
    reference = settings.reference or data.layout.reference
    for name in (*settings.forms, *filter(None, (settings.reference,))):
        if name not in known:
            raise DataError(
                f"form {shown(name)} not found in {data.source.id}{did_you_mean(name, known)}; "
                f"the forms are {first_names(known)}"
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
            f"item {shown(item)} has two reference forms; mark one, or pass `reference`"
        )
    wanted = rows["form"].isin(settings.forms) | marked if settings.forms else marked | True
    rows = rows.assign(is_reference=marked)[wanted & _usable(rows, settings)]
    if data.needs_two:
        rows = rows[rows.groupby("item")["form"].transform("size") > 1]
    if rows.empty:
        raise DataError(f"no item of {data.source.id} has two of these forms that can be prompted")
    if settings.read != "generate" and rows["choices"].map(len).eq(0).any():
        rows = rows.assign(choices=rows["choices"].map(lambda _: ()))
        n_answers = rows.assign(accepted=rows["references"].map(frozenset))
        varied = n_answers.groupby("item")["accepted"].nunique() > 1
        if varied.any():
            raise DataError(
                f"the forms of item {shown(varied.idxmax())} accept different answers, so options "
                "from other items would fit only some of them; add choices to every form, or omit "
                "`read`"
            )
    frame = settings.frame or data.layout.frame
    settled = settings.model_copy(update={"reference": reference, "frame": frame})
    return data.select(rows), settled


def _usable(rows: pd.DataFrame, settings: FormsSettings) -> pd.Series:
    """Select the forms that a model can complete; warn about sentences with an inner gap."""
    ends_in_gap = rows["rest"].map(lambda rest: _WORD.search(rest) is None)
    if settings.read != "generate":
        ends_in_gap |= rows["choices"].map(len) > 0
    usable = ends_in_gap & rows["question"].map(str.strip).ne("")
    if n_excluded := int((~usable).sum()):
        warnings.warn(
            f"{n_excluded} of {len(rows)} forms are excluded: the gap of these sentences is not at "
            "their end, so a model cannot complete them"
            + (
                "; `read=multiple-choice` includes those with choices"
                if settings.read == "generate"
                else ""
            ),
            SurfaceConsistencyWarning,
            stacklevel=4,
        )
    return usable


def _sampled(sample: int, settings: FormsSettings) -> str:
    """Return the part of an id that names a sample."""
    return f" | sample {sample}" if settings.samples > 1 else ""


def _decoding(settings: FormsSettings, sample: int) -> GenerationParams:
    """Return the generation parameters of a sample; each sample has its own seed."""
    return GenerationParams(
        max_new_tokens=settings.max_new_tokens,
        stop=("\n",) if settings.stop else (),
        temperature=settings.temperature,
        seed=settings.seed + sample - 1 if settings.temperature else None,
    )


def _targets(data: Forms, settings: FormsSettings) -> pd.DataFrame:
    """List the targets: one per item, form and sample."""
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
        copied = rows[["question", "form", "kind", "relation", "is_reference"]]
        part = pd.concat([part.assign(item=rows["item"].to_numpy()), copied], axis=1)
        part = part.assign(item_cluster=rows["cluster"], cluster=_clusters(data))
        parts.append(part.assign(sample=sample, accepted=rows["references"].to_numpy()))
    return pd.concat(parts, ignore_index=True)


def _clusters(data: Forms) -> pd.Series:
    """Return the cluster of each row."""
    if data.wordings == "templates":
        return data.rows["relation"]
    return data.rows["cluster"].where(data.rows["cluster"].notna(), data.rows["item"])


def target_pairs(targets: pd.DataFrame, reference: str, wordings: str) -> pd.DataFrame:
    """List the pairs: the reference form of each item with every other form.

    Args:
        targets: One row per form, item and sample, with target_id, item, form, is_reference,
            question, accepted (texts), sample, kind, relation, item_cluster and cluster.
        reference: Name of the reference form.
        wordings: Kind of forms.

    Returns:
        The columns of `FormOutcome` that do not depend on correctness labels, and both targets.
    """
    keys = ["item", "sample"]
    first = targets[targets["is_reference"].astype(bool)].set_index(keys)
    # An item that has only its reference form is not compared.
    is_alone = targets["is_reference"] & ~targets.duplicated(keys, keep=False)
    others = targets[~targets["is_reference"].astype(bool) | is_alone].reset_index(drop=True)
    is_compared = ~others["is_reference"].astype(bool)
    of_first = first.reindex(pd.MultiIndex.from_frame(others[keys]))
    # An item without its reference form is represented by its first form.
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
    """Write the prompts of one sample, with options if options are compared."""
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
    """Choose the demonstrations of each item: in the reference form, equal for all its forms.

    They have another relation, cluster and answer, so they do not reveal the answer.
    """
    solved = rows[rows["is_reference"].astype(bool)].to_dict("records")
    order = sorted(solved, key=lambda row: _rank(settings.seed, str(row["item"])))
    drawn = {}
    for row in rows.drop_duplicates("item").to_dict("records"):
        allowed = (other for other in order if not _may_reveal(other, row))
        chosen = list(islice(allowed, settings.shots))
        if len(chosen) < settings.shots:
            raise DataError(
                f"`shots` {settings.shots}: only {len(chosen)} items differ in relation, cluster "
                f"and answer from item {shown(row['item'])}; use fewer shots"
            )
        drawn[row["item"]] = [(other["question"], other["references"][0]) for other in chosen]
    return drawn


def _may_reveal(other: Mapping[Any, Any], row: Mapping[Any, Any]) -> bool:
    """Return whether a demonstration may reveal the answer to another item."""
    is_like = other["item"] == row["item"] or any(
        row[name] is not None and other[name] == row[name] for name in ("relation", "cluster")
    )
    return bool(is_like or {*other["references"]} & {*row["references"]})


def _rank(seed: int, item: str) -> bytes:
    """Return the sort key of an item in a random order given by the seed."""
    return hashlib.sha256(f"{seed}|{item}".encode()).digest()
