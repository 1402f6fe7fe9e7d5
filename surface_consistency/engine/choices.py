"""Answer options for the prompts of any study, to read answers from option probabilities."""

import random
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.plan import Plan
from surface_consistency.engine.settings import OptionSettings
from surface_consistency.engine.study import Study
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.metrics import cluster_bootstrap
from surface_consistency.models.options import option_log_odds, option_scores
from surface_consistency.schemas import Prompt
from surface_consistency.schemas.scoring import OptionScore

_ALIKE = 1e-9
_DRAWS = 50


def whole_plan(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `Study.load`
    settings: OptionSettings,
) -> Plan | None:
    """Plan without `limit`, so that a limit does not change the options of a fact.

    Args:
        study: The study.
        data: The data that its `load` returned.
        settings: How to prompt.

    Returns:
        The plan, without prompts; None if there is no limit.
    """
    if settings.limit is None:
        return None
    # A plan without a runner selects by the settings that were given explicitly.
    fields = {name: getattr(settings, name) for name in type(settings).model_fields}
    return study.plan(data, settings.model_copy(update={**fields, "limit": None}))


def add_choices(plan: Plan, settings: OptionSettings, whole: Plan | None = None) -> Plan:
    """Add options to every prompt: the reference of its fact and references of other facts.

    The options of a fact are the same for all its names and prompts; their order is random. The
    other options are not accepted answers of the fact, ignoring letter case. If the pairs have a
    relation, the other options are references of facts with the same relation. References of other
    relations are used only if these are too few, with a `SurfaceConsistencyWarning`.

    Args:
        plan: The plan; each prompt is about one fact.
        settings: `options`, their number, and `seed`.
        whole: The plan of all data, whose references are the other options; None for `plan`.

    Returns:
        The plan with options in its prompts; unchanged if all prompts have options.

    Raises:
        DataError: If a prompt is about several facts, or there are too few other references; names
            it.
    """
    every_prompt = [prompt for group in plan.groups.values() for prompt in group.prompts]
    if every_prompt and all(prompt.options for prompt in every_prompt):
        return plan
    targets = plan.items
    repeated = targets["prompt_id"].duplicated()
    if repeated.any():
        prompt_id = targets.loc[repeated, "prompt_id"].iloc[0]
        n_items = int((targets["prompt_id"] == prompt_id).sum())
        raise DataError(
            f"prompt {prompt_id!r} is about {n_items} facts, and options can answer one; read "
            "answers with `read=generate`"
        )
    whole = whole or plan
    relations, accepted = _relations(plan), _accepted(whole.items)
    pools = {
        relation: list(dict.fromkeys(answers[0] for answers in of_relation))
        for relation, of_relation in whole.items["references"].groupby(
            _relations(whole), sort=False
        )
    }
    every = list(dict.fromkeys(chain.from_iterable(pools.values())))
    n_filled = 0
    offered: dict[object, tuple[str, ...]] = {}
    prompts: dict[object, tuple[str, ...]] = {}
    for prompt_id, item, answers, relation in zip(
        targets["prompt_id"], targets["item"], targets["references"], relations, strict=True
    ):
        if item not in offered:
            pool = pools[relation]
            offered[item] = _draw(answers[0], pool, every, accepted[item], settings, item)
            n_filled += not {*offered[item]} <= {answers[0], *pool}
        prompts[prompt_id] = offered[item]
    groups = {
        name: replace(group, prompts=[_with_options(item, prompts) for item in group.prompts])
        for name, group in plan.groups.items()
    }
    if n_filled:
        warnings.warn(
            f"{n_filled} of {len(offered)} facts have fewer than {settings.options - 1} other "
            "answers among facts with their relation, so that answers of other relations are among "
            f"their {settings.options} options; set `options` to a smaller number to avoid this",
            SurfaceConsistencyWarning,
            stacklevel=2,
        )
    return replace(plan, groups=groups)


def reference_log_odds(
    answered: pd.DataFrame,
    pairs: pd.DataFrame,
    prompts: Iterable[Prompt],
    *,
    conditions: tuple[str, str],
    cluster: str,
    option_score: OptionScore = "sum",
) -> pd.DataFrame:
    """Compare the log-odds of the reference against the other options under the two conditions.

    A correctness label shows only whether the reference is the most probable option. The log-odds
    against all other options together measure by how much, and can change without a flip.

    Args:
        answered: Targets with answers, prompt_id, scores and the clustering column.
        pairs: The pairs: first_target and second_target.
        prompts: The prompts, with options.
        conditions: Names of the two conditions.
        cluster: Clustering column of the bootstrap.
        option_score: How options are compared.

    Returns:
        A row for each condition and one for the first minus the second: condition, n_pairs,
        n_clusters, and log_odds, the mean in nats, with log_odds_low and log_odds_high (95 %,
        cluster bootstrap; NaN if all clusters have the same mean). Pairs in which an option has no
        probability are excluded. Empty if no prompt has its reference among its options.
    """
    options = {prompt.id: prompt.options or () for prompt in prompts}
    odds = {}
    for target_id, prompt_id, answers, scores in zip(
        *(answered[name] for name in ("target_id", "prompt_id", "references", "scores")),
        strict=True,
    ):
        offered = [option.strip() for option in options.get(prompt_id, ())]
        if scores is not None and answers[0].strip() in offered:
            values = option_scores(options[prompt_id], scores, option_score)
            odds[target_id] = option_log_odds(values, offered.index(answers[0].strip()))
    first, second = (pairs[f"{side}_target"].map(odds) for side in ("first", "second"))
    of_target = answered.set_index("target_id")[cluster]
    known = np.isfinite(first.to_numpy(dtype=float)) & np.isfinite(second.to_numpy(dtype=float))
    codes, _ = pd.factorize(pairs.loc[known, "first_target"].map(of_target))
    if not known.any():
        return pd.DataFrame()
    rows = []
    sides = first[known].to_numpy(dtype=float), second[known].to_numpy(dtype=float)
    labels = (*conditions, f"{conditions[0]} − {conditions[1]}")
    for label, values in zip(labels, (*sides, sides[0] - sides[1]), strict=True):
        sums = np.stack([np.bincount(codes, values), np.bincount(codes)], axis=1)
        row = {"condition": label, "n_pairs": len(values), "n_clusters": len(sums)}
        row["log_odds"] = values.mean()
        row["log_odds_low"] = row["log_odds_high"] = np.nan
        if np.ptp(sums[:, 0] / sums[:, 1]) > _ALIKE:
            row["log_odds_low"], row["log_odds_high"] = cluster_bootstrap(sums, _mean)[1:]
        rows.append(row)
    return pd.DataFrame(rows)


def _mean(sums: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Divide sums over clusters by numbers of pairs."""
    total, n = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    mean: npt.NDArray[np.float64] = total / n
    return mean


def _relations(plan: Plan) -> pd.Series:
    """Look up the relation of the fact of each target; empty if the pairs have no relation."""
    facts = plan.items["item"]
    if "relation" not in plan.pairs:
        return pd.Series("", index=facts.index)
    of_facts = plan.pairs.drop_duplicates("item").set_index("item")["relation"]
    return facts.map(of_facts).fillna("")


def _accepted(targets: pd.DataFrame) -> Mapping[Hashable, frozenset[str]]:
    """Collect all accepted answers of each fact, ignoring letter case."""
    by_fact: dict[Hashable, set[str]] = {}
    for item, answers in zip(targets["item"], targets["references"], strict=True):
        by_fact.setdefault(item, set()).update(answer.casefold() for answer in answers)
    return {item: frozenset(answers) for item, answers in by_fact.items()}


def _draw(
    reference: str,
    pool: Sequence[str],
    every: Sequence[str],
    accepted: frozenset[str],
    settings: OptionSettings,
    item: object,
) -> tuple[str, ...]:
    """Draw the options of a fact from the pool, then from all, seeded by its id and the seed."""
    rng = random.Random(f"{settings.seed}|{item}")
    taken = {reference.casefold(): reference}
    for _ in range(_DRAWS * settings.options):
        if len(taken) == settings.options:
            break
        option = pool[int(rng.random() * len(pool))]
        if option.casefold() not in accepted:
            taken.setdefault(option.casefold(), option)
    else:
        # Few other options are left, so each is tried once.
        for options in (pool, every):
            for option in sorted(options, key=lambda _: rng.random()):
                if len(taken) < settings.options and option.casefold() not in accepted:
                    taken.setdefault(option.casefold(), option)
    if len(taken) < settings.options:
        raise DataError(
            f"fact {item!r} has {len(taken) - 1} other answers to choose from, and `options` "
            f"{settings.options} needs {settings.options - 1}; set fewer options, or load more "
            "facts"
        )
    return tuple(sorted(taken.values(), key=lambda _: rng.random()))


def _with_options(prompt: Prompt, offered: Mapping[Any, tuple[str, ...]]) -> Prompt:
    """Add the options in the form in which they follow the prompt."""
    options = offered.get(prompt.id)
    if options is None:
        raise DataError(
            f"prompt {prompt.id!r} has no item to score, and therefore no options; set "
            "`read=generate`"
        )
    spaced = prompt.text is not None and not prompt.text[-1:].isspace()
    return prompt.model_copy(
        update={"options": tuple(f" {option}" if spaced else option for option in options)}
    )
