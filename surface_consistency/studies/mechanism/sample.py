"""Sample the pairs of a run for the analysis: pairs with two correct answers, and with one."""

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
    """Id of the target in the run."""

    prompt: Prompt
    """The prompt."""

    text: str
    """Text of the answer."""

    judged: str | None
    """Its scored part; None if the run does not contain it."""

    accepted: tuple[str, ...]
    """Accepted answers, the reference first."""

    question: str
    """The question of the fact; "" if the run does not contain it."""

    questions: tuple[str, ...]
    """All questions of the prompt, in the order of its slots or targets."""

    topic: str
    """Topic of the questions; "" if the run does not contain it."""

    slot: int | None
    """Slot of the fact in the prompt, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledPair:
    """Two answers to one fact."""

    pair: str
    """Id of the pair."""

    item: str
    """Id of the fact."""

    cluster: str
    """Cluster for intervals and folds, such as the topic."""

    is_aligned: bool
    """Whether both answers are correct; otherwise only one is."""

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
    """Numbers of available and of sampled pairs: one row of the table."""


def sample_pairs(run: Run, *, per_class: int, seed: int, cluster: str) -> Sample:
    """Sample pairs whose answers are both correct, and pairs with only one correct answer.

    Each class is distributed evenly over strata (the category, relation, domain or task of the
    run). A fact occurs in the sample once, even if it has several orders or templates.

    Args:
        run: The run.
        per_class: Number of pairs per class; fewer if the class is smaller.
        seed: Random seed.
        cluster: Clustering column of the outcomes.

    Returns:
        The sample.

    Raises:
        DataError: If the run does not contain its prompts, or no pair can be sampled.
    """
    _, pairs = run.folder.read_plan()
    outcomes = run.outcomes.merge(pairs[["pair", *_TARGETS]], on="pair")
    verdicts = outcomes[["first_correct", "second_correct"]]
    scored = outcomes[verdicts.notna().all(axis=1)]
    first, second = (scored[f"{side}_correct"].astype(bool) for side in ("first", "second"))
    correct = scored[first | second].assign(is_aligned=(first & second)[first | second])
    answers, reasons = _answers(run, correct)
    usable = correct[correct["pair"].isin(answers)]
    column = next((name for name in _STRATA if name in usable and usable[name].notna().any()), None)
    # Missing values become text; otherwise their rows would belong to no stratum.
    usable = usable.assign(_stratum="all" if column is None else usable[column].map(str))
    rng = np.random.default_rng(seed)
    taken: set[str] = set()
    drawn: dict[bool, list[dict[Any, Any]]] = {}
    for is_aligned in (False, True):  # Facts are assigned to the rarer class first.
        rows = usable[usable["is_aligned"] == is_aligned]
        drawn[is_aligned] = _draw_by_stratum(rows, per_class, rng, taken)
    counts = {
        "model": run.label,
        "n_aligned": int(correct["is_aligned"].sum()),
        "n_misaligned": int((~correct["is_aligned"]).sum()),
        "n_left_out": len(correct) - len(usable),
        "left_out": "; ".join(f"{reason}: {n:,}" for reason, n in reasons.items()),
        "drawn_aligned": len(drawn[True]),
        "drawn_misaligned": len(drawn[False]),
        "strata": column or "none",
    }
    if not (drawn[True] or drawn[False]):
        obstacle = counts["left_out"] or "no answer is correct"
        raise DataError(f"no pair of {run.folder.path} can be analysed: {obstacle}")
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


def _draw_by_stratum(
    rows: pd.DataFrame, n: int, rng: np.random.Generator, taken: set[str]
) -> list[dict[Any, Any]]:
    """Draw rows from the strata in turn, each fact once; add the facts to `taken`."""
    shuffled = rows.sort_values("pair").iloc[rng.permutation(len(rows))]
    strata = [part.to_dict("records") for _, part in shuffled.groupby("_stratum", sort=True)]
    strata = [strata[place] for place in rng.permutation(len(strata))]
    drawn: list[dict[Any, Any]] = []
    while any(strata) and len(drawn) < n:
        for stratum in strata:
            while stratum and stratum[-1]["item"] in taken:
                stratum.pop()
            if stratum and len(drawn) < n:
                drawn.append(stratum.pop())
                taken.add(drawn[-1]["item"])
    return drawn


def _answers(
    run: Run, wanted: pd.DataFrame
) -> tuple[dict[str, tuple[Answer, Answer]], dict[str, int]]:
    """Read both answers of each pair; count by reason the pairs that cannot be read again."""
    read = _read(run, {*wanted["first_target"], *wanted["second_target"]})
    answers: dict[str, tuple[Answer, Answer]] = {}
    reasons: dict[str, int] = {}
    for row in wanted.to_dict("records"):
        first, second = (read[row[target]] for target in _TARGETS)
        if isinstance(first, str) or isinstance(second, str):
            reason = first if isinstance(first, str) else str(second)
        else:
            texts = (row.get(f"{side}_prediction") for side in _SIDES)
            scored = [text if isinstance(text, str) else None for text in texts]
            pair = replace(first, judged=scored[0]), replace(second, judged=scored[1])
            answers[row["pair"]] = pair
            continue
        reasons[reason] = reasons.get(reason, 0) + 1
    return answers, reasons


def _read(run: Run, wanted: set[object]) -> dict[str, Answer | str]:
    """Read the answers to some targets, or the reason why an answer cannot be read again."""
    folder = run.folder
    if not folder.prompts.is_file():
        raise DataError(
            f"{folder.path} has no {folder.prompts.name}: its predictions were made elsewhere, so "
            "the prompts are unknown; evaluate the model with `surface-consistency run`"
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
    """List the questions of each prompt."""
    if "question" not in targets:
        return {}
    return {
        str(name): tuple(map(str, part["question"]))
        for name, part in targets.groupby("prompt_id", sort=False)
    }


def _obstacle(row: Mapping[Any, Any], puts_facts_before: bool) -> str | None:
    """Return why a model cannot read an answer again as it wrote it; None if it can."""
    text, lookups = row["text"], row["lookups"]
    if not isinstance(text, str) or not text.strip():
        return "blank"
    if isinstance(row["reasoning"], str):
        return "written after reasoning"
    # Values that a lookup returned are in the answer, unless the model read them elsewhere.
    if puts_facts_before or any(item.value and item.value not in text for item in lookups or ()):
        return "written with facts before the prompt"
    return None
