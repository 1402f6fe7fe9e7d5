"""Which pairs of a run are looked into: so many that agree and so many that do not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.score import answered_targets
from surface_consistency.errors import DataError
from surface_consistency.runs import Run
from surface_consistency.schemas import Prompt, read_jsonl

_STRATA: Final = ("category", "relation", "domain", "task")
_SIDES: Final = ("first", "second")
_TARGETS: Final = ("first_target", "second_target")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """One answer of a pair."""

    id: str
    """The target, as the run names it."""

    prompt: Prompt
    """What was asked."""

    text: str
    """What was written."""

    judged: str | None
    """Its judged part, where the run keeps one."""

    accepted: tuple[str, ...]
    """Accepted answers, the reference first."""

    question: str
    """The question of the fact; "" where the run does not tell."""

    questions: tuple[str, ...]
    """All questions of the prompt, in the order of its slots or targets."""

    topic: str
    """What they are about; "" where the run does not tell."""

    slot: int | None
    """Slot of the fact in the prompt, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledPair:
    """Two answers to one fact."""

    pair: str
    """The pair."""

    item: str
    """The fact."""

    cluster: str
    """What intervals and folds take whole, such as the topic."""

    is_aligned: bool
    """Whether both answers are right; else one alone is."""

    stratum: str
    """The group within which it was drawn."""

    first: Answer
    """The answer under the first condition."""

    second: Answer
    """The answer under the second condition."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Pairs of one run."""

    pairs: tuple[SampledPair, ...]
    """The pairs, aligned ones first."""

    counts: dict[str, Any]
    """How many pairs there were and were drawn: one row of the table."""


def sample_pairs(run: Run, *, per_class: int, seed: int, cluster: str) -> Sample:
    """Draw pairs that are right twice, and pairs of which one answer alone is right.

    Each class is dealt out evenly over strata (the category, relation, domain or task of the run),
    and a fact stands in the sample once, whatever the orders or templates in which it was asked.

    Args:
        run: The run.
        per_class: Pairs of each class; fewer where there are fewer.
        seed: Seed of the draw.
        cluster: Column of the outcomes that names what a pair belongs to.

    Returns:
        The sample.

    Raises:
        DataError: If the run does not hold what its model read, or no pair can be drawn.
    """
    _, pairs = run.folder.read_plan()
    outcomes = run.outcomes.merge(pairs[["pair", *_TARGETS]], on="pair")
    verdicts = outcomes[["first_correct", "second_correct"]]
    judged = outcomes[verdicts.notna().all(axis=1)]
    first, second = (judged[f"{side}_correct"].astype(bool) for side in ("first", "second"))
    right = judged[first | second].assign(is_aligned=(first & second)[first | second])
    answers, reasons = _answers(run, right)
    usable = right[right["pair"].isin(answers)]
    column = next((name for name in _STRATA if name in usable and usable[name].notna().any()), None)
    # Read as text, what is missing would stay so, and be in no stratum.
    usable = usable.assign(_stratum="all" if column is None else usable[column].map(str))
    rng = np.random.default_rng(seed)
    taken: set[str] = set()
    drawn: dict[bool, list[dict[Any, Any]]] = {}
    for is_aligned in (False, True):  # The rarer class has the first choice of facts.
        rows = usable[usable["is_aligned"] == is_aligned]
        drawn[is_aligned] = _dealt(rows, per_class, rng, taken)
    counts = {
        "model": run.label,
        "n_aligned": int(right["is_aligned"].sum()),
        "n_misaligned": int((~right["is_aligned"]).sum()),
        "n_left_out": len(right) - len(usable),
        "left_out": "; ".join(f"{reason}: {n:,}" for reason, n in reasons.items()),
        "drawn_aligned": len(drawn[True]),
        "drawn_misaligned": len(drawn[False]),
        "strata": column or "none",
    }
    if not (drawn[True] or drawn[False]):
        obstacle = counts["left_out"] or "no answer is right"
        raise DataError(f"{run.folder.path} has no pair to look into: {obstacle}")
    sampled = tuple(
        SampledPair(
            pair=row["pair"],
            item=row["item"],
            cluster=str(row[cluster]),
            is_aligned=is_aligned,
            stratum=row["_stratum"],
            first=answers[row["pair"]][0],
            second=answers[row["pair"]][1],
        )
        for is_aligned in (True, False)
        for row in drawn[is_aligned]
    )
    return Sample(pairs=sampled, counts=counts)


def _dealt(
    rows: pd.DataFrame, n: int, rng: np.random.Generator, taken: set[str]
) -> list[dict[Any, Any]]:
    """Deal rows out over strata in turn, each fact once; add the facts to those taken."""
    shuffled = rows.sort_values("pair").iloc[rng.permutation(len(rows))]
    piles = [part.to_dict("records") for _, part in shuffled.groupby("_stratum", sort=True)]
    piles = [piles[place] for place in rng.permutation(len(piles))]
    dealt: list[dict[Any, Any]] = []
    while any(piles) and len(dealt) < n:
        for pile in piles:
            while pile and pile[-1]["item"] in taken:
                pile.pop()
            if pile and len(dealt) < n:
                dealt.append(pile.pop())
                taken.add(dealt[-1]["item"])
    return dealt


def _answers(
    run: Run, wanted: pd.DataFrame
) -> tuple[dict[str, tuple[Answer, Answer]], dict[str, int]]:
    """Read both answers of each pair; count the pairs that cannot be read again, by reason."""
    read = _read(run, {*wanted["first_target"], *wanted["second_target"]})
    answers: dict[str, tuple[Answer, Answer]] = {}
    reasons: dict[str, int] = {}
    for row in wanted.to_dict("records"):
        first, second = (read[row[target]] for target in _TARGETS)
        if isinstance(first, str) or isinstance(second, str):
            reason = first if isinstance(first, str) else str(second)
        else:
            texts = (row.get(f"{side}_prediction") for side in _SIDES)
            judged = [text if isinstance(text, str) else None for text in texts]
            pair = replace(first, judged=judged[0]), replace(second, judged=judged[1])
            answers[row["pair"]] = pair
            continue
        reasons[reason] = reasons.get(reason, 0) + 1
    return answers, reasons


def _read(run: Run, wanted: set[object]) -> dict[str, Answer | str]:
    """Read the answers to some targets; of those that cannot be read again, the reason."""
    folder = run.folder
    if not folder.prompts.is_file():
        raise DataError(
            f"{folder.path} has no {folder.prompts.name}: its predictions were made elsewhere, so "
            "nothing tells what the model read; ask it with `surface-consistency run`"
        )
    targets, _ = folder.read_plan()
    used = targets[targets["target_id"].isin(wanted)]
    prompts = {prompt.id: prompt for prompt in read_jsonl(folder.prompts, Prompt)}
    questions = _questions(targets)
    puts_facts_before = run.manifest.runner.get("runner") == "retrieval_augmented"
    read: dict[str, Answer | str] = {}
    for row in answered_targets(folder, used, repeat=False).to_dict("records"):
        name, slot = str(row["target_id"]), row.get("slot")
        read[name] = _obstacle(row, puts_facts_before) or Answer(
            id=name,
            prompt=prompts[row["prompt_id"]],
            text=row["text"],
            judged=None,
            accepted=tuple(row["references"]),
            question=str(row.get("question") or ""),
            questions=questions.get(row["prompt_id"], ()),
            topic=str(row.get("topic") or ""),
            slot=None if slot is None or pd.isna(slot) else int(slot),
        )
    return read


def _questions(targets: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """List the questions that each prompt asks."""
    if "question" not in targets:
        return {}
    return {
        str(name): tuple(map(str, part["question"]))
        for name, part in targets.groupby("prompt_id", sort=False)
    }


def _obstacle(row: Mapping[Any, Any], puts_facts_before: bool) -> str | None:
    """Say why a model cannot be made to read an answer again as it wrote it."""
    text, lookups = row["text"], row["lookups"]
    if not isinstance(text, str) or not text.strip():
        return "blank"
    if isinstance(row["reasoning"], str):
        return "written after reasoning"
    # What a lookup inserts stands in the answer, or the model read it elsewhere.
    if puts_facts_before or any(item.value and item.value not in text for item in lookups or ()):
        return "written with facts before the prompt"
    return None
