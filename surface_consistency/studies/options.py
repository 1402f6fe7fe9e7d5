"""Options for the prompts of any study, so that answers can be read as multiple choice."""

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.schemas import Prompt
from surface_consistency.studies.study import OptionSettings, Plan

__all__ = ["offer_options"]

_DRAWS = 50


def offer_options(plan: Plan, settings: OptionSettings) -> Plan:
    """Give every prompt options: the reference of its fact and references of other facts.

    The options of a fact are the same under all its names and in all its prompts, in an order that
    is drawn with them; no other option is an accepted answer of the fact, letter case aside. Where
    the pairs name a relation, the others are references of facts with the same relation.

    Args:
        plan: What is asked; each prompt asks one fact.
        settings: `options`, how many, and `seed`.

    Returns:
        The plan with options in its prompts.

    Raises:
        DataError: If a prompt asks several facts, or there are too few other references; names it.
    """
    targets = plan.targets
    repeated = targets["prompt_id"].duplicated()
    if repeated.any():
        prompt_id = targets.loc[repeated, "prompt_id"].iloc[0]
        n_facts = int((targets["prompt_id"] == prompt_id).sum())
        raise DataError(
            f"prompt {prompt_id!r} asks {n_facts} facts, and options can answer one; read answers "
            "with --read generate"
        )
    relations = _relations(plan)
    accepted = _accepted(targets)
    pools = {
        relation: list(dict.fromkeys(answers[0] for answers in of_relation))
        for relation, of_relation in targets["answers"].groupby(relations, sort=False)
    }
    offered: dict[object, tuple[str, ...]] = {}
    prompts: dict[object, tuple[str, ...]] = {}
    for prompt_id, fact_id, answers, relation in zip(
        targets["prompt_id"], targets["fact_id"], targets["answers"], relations, strict=True
    ):
        if fact_id not in offered:
            offered[fact_id] = _draw(
                answers[0],
                pools[relation],
                accepted[fact_id],
                settings,
                fact_id,
                where=f" among facts with relation {relation!r}" if relation else "",
            )
        prompts[prompt_id] = offered[fact_id]
    groups = {
        name: replace(group, prompts=[_with_options(item, prompts) for item in group.prompts])
        for name, group in plan.groups.items()
    }
    return replace(plan, groups=groups)


def _relations(plan: Plan) -> pd.Series:
    """Look up the relation of each target's fact; empty where no pair names one."""
    facts = plan.targets["fact_id"]
    if "relation" not in plan.pairs:
        return pd.Series("", index=facts.index)
    of_facts = plan.pairs.drop_duplicates("fact_id").set_index("fact_id")["relation"]
    return facts.map(of_facts).fillna("")


def _accepted(targets: pd.DataFrame) -> Mapping[Hashable, frozenset[str]]:
    """Collect every accepted answer of each fact, letter case aside."""
    found: dict[Hashable, set[str]] = {}
    for fact_id, answers in zip(targets["fact_id"], targets["answers"], strict=True):
        found.setdefault(fact_id, set()).update(answer.casefold() for answer in answers)
    return {fact_id: frozenset(answers) for fact_id, answers in found.items()}


def _draw(
    reference: str,
    pool: Sequence[str],
    accepted: frozenset[str],
    settings: OptionSettings,
    fact_id: object,
    *,
    where: str,
) -> tuple[str, ...]:
    """Draw the options of a fact: by its id and the seed alone."""
    rng = random.Random(f"{settings.seed}|{fact_id}")
    taken = {reference.casefold(): reference}
    for _ in range(_DRAWS * settings.options):
        if len(taken) == settings.options:
            break
        option = pool[int(rng.random() * len(pool))]
        if option.casefold() not in accepted:
            taken.setdefault(option.casefold(), option)
    else:
        # Few others are left: look at each of them once.
        for option in sorted(pool, key=lambda _: rng.random()):
            if len(taken) < settings.options and option.casefold() not in accepted:
                taken.setdefault(option.casefold(), option)
    if len(taken) < settings.options:
        raise DataError(
            f"fact {fact_id!r} has {len(taken) - 1} other answers{where} to choose from, and "
            f"--options {settings.options} needs {settings.options - 1}; ask for fewer options, or "
            "for more facts"
        )
    return tuple(sorted(taken.values(), key=lambda _: rng.random()))


def _with_options(prompt: Prompt, offered: Mapping[Any, tuple[str, ...]]) -> Prompt:
    """Write the options as they would stand after the prompt."""
    options = offered.get(prompt.id)
    if options is None:
        raise DataError(
            f"prompt {prompt.id!r} asks nothing that is judged, so it has no options; read answers "
            "with --read generate"
        )
    spaced = prompt.text is not None and not prompt.text[-1:].isspace()
    return prompt.model_copy(
        update={"options": tuple(f" {option}" if spaced else option for option in options)}
    )
