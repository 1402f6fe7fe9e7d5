"""Check that prompts belong to a database, and that deletions leave no entry of their fact.

A deletion always passes a check by its own rule. Deletions are therefore checked by a wider rule:
entries are compared under alias groups, which join names that any chain of aliases of any prompt,
or any of the keys, connects. If the aliases of one prompt are incorrect or incomplete, those of
another prompt can show it.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError, DataWarning
from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.retrieval.alias_groups import (
    AliasGroups,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.closure import (
    alias_closures,
    check_closures,
    equivalent_entries,
    equivalent_names,
    split_by_fact,
)
from surface_consistency.studies.audit.retrieval.triplets import Ints, Triplets, is_among

_OF_PROMPT: Final = ("prompt_id", "fact_id", "subject", "relation", "gold_object")


def database_coverage(
    triplets: Triplets, prompts: Sequence[AuditPrompt], *, max_missing: float = 0.5
) -> dict[str, Any]:
    """Check that prompts belong to a database.

    A prompt fits if an entry of the database has its subject, relation and object, each by its own
    name or by an alias. Facts of another database would be mistaken for facts that the model never
    learned.

    Args:
        triplets: The database.
        prompts: Prompts for it, at least one.
        max_missing: Maximum proportion of prompts without an entry, in [0, 1].

    Returns:
        n_prompts; n_verbatim, the prompts whose fact is an entry, word for word; n_by_alias, the
        further prompts whose fact is an entry under aliases, ignoring case; n_missing, the prompts
        without an entry; and missing_share, their proportion in [0, 1].

    Raises:
        DataError: If a larger proportion has no entry.
        ValueError: If `prompts` is empty.

    Warns:
        DataWarning: If some have no entry, but not more than allowed.
    """
    if not prompts:
        raise ValueError("prompts is empty; pass at least one prompt")
    n_verbatim, missing = 0, []
    closures = alias_closures(triplets, prompts, rule="strict")
    for prompt, entries in zip(prompts, closures, strict=True):
        fact = (prompt.subject, prompt.relation, prompt.gold_object)
        if any(triplets[int(entry)] == fact for entry in entries):
            n_verbatim += 1
        elif not len(entries):
            missing.append(prompt.prompt_id)
    n_prompts, n_missing = len(prompts), len(missing)
    fit = {
        "n_prompts": n_prompts,
        "n_verbatim": n_verbatim,
        "n_by_alias": n_prompts - n_verbatim - n_missing,
        "n_missing": n_missing,
        "missing_share": n_missing / n_prompts,
    }
    if not missing:
        return fit
    message = (
        f"{n_missing} of {n_prompts} prompts are about facts that the database of "
        f"{len(triplets)} triplets does not contain (prompt_id "
        f"{', '.join(map(str, missing[:5]))}{', ...' if n_missing > 5 else ''})"
    )
    if n_missing / n_prompts > max_missing:
        raise DataError(f"{message}: they belong to another database; pass that database")
    warnings.warn(message, DataWarning, stacklevel=2)
    return fit


LISTS: Final = ("remaining", "by_shared_alias", "shared_surface", "shared_by_punctuation")
"""Columns of `verify_closures` that contain entries."""


def verify_closures(
    triplets: Triplets,
    facts: Sequence[AuditPrompt],
    closures: Sequence[Ints],
    *,
    groups: AliasGroups | None = None,
) -> pd.DataFrame:
    """Find the entries about each fact that remain after its deletion.

    Args:
        triplets: The database.
        facts: The facts, with their aliases.
        closures: Their deletions, in the same order, as of `alias_closures`.
        groups: Groups of equivalent names; None for those that the aliases of all facts join.

    Returns:
        One row per fact, in order: prompt_id, fact_id, subject, relation and gold_object of the
        prompt; n_deleted, the number of deleted entries, 0 if the database does not state the
        fact; n_same_object, the number of remaining entries with the object; echoes, the accepted
        objects that are or contain a name of the subject, so that a repetition of the question may
        be scored as correct; and tuples of entries. `remaining` still state the fact: they are
        equivalent in subject, relation and object. `by_shared_alias` are those of `remaining` that
        are equivalent only by an alias that two entities share ("MJ" of two athletes).
        `shared_surface` remain about the same subject under another relation, with the object of
        the fact under the published key. `shared_by_punctuation` are those of `shared_surface` that
        the strict key distinguishes, such as ".us" and "US".

    Raises:
        ValueError: If facts and closures differ in number, or a closure is of another database.
    """
    if len(facts) != len(closures):
        raise ValueError(f"facts and closures differ in number: {len(facts)}, {len(closures)}")
    check_closures(closures, len(triplets))
    known = groups or triplets.alias_groups(facts)
    names = [*_OF_PROMPT, "n_deleted", *LISTS, "n_same_object", "echoes"]
    return pd.DataFrame(_leftovers(triplets, facts, closures, known), columns=names)


def closure_counts(left: pd.DataFrame) -> dict[str, Any]:
    """Count the entries about facts that remain after the deletions in a database.

    Args:
        left: Result of `verify_closures`.

    Returns:
        n_items; closure_is_complete, whether no entry that states a fact remains; n_incomplete, the
        facts that a remaining entry states; n_absent, those whose deletion deletes nothing;
        n_shared_surface, those whose object remains under another relation of the subject;
        n_shared_by_punctuation, those of them only because the published key drops punctuation;
        n_echoing, those that a repetition of the question may answer; and summary, the same in one
        line, which a study prints with every table.
    """
    sizes = left[[*LISTS, "echoes"]].map(len)
    n = sizes.gt(0).sum().to_dict()
    is_doubtful = sizes["remaining"].gt(0) & sizes["remaining"].eq(sizes["by_shared_alias"])
    n_doubtful, n_absent = int(is_doubtful.sum()), int(left["n_deleted"].eq(0).sum())
    doubtful = f" ({n_doubtful} only by an alias of two entities)" if n_doubtful else ""
    return {
        "n_items": len(left),
        "closure_is_complete": n["remaining"] == 0,
        "n_incomplete": n["remaining"],
        "n_absent": n_absent,
        "n_shared_surface": n["shared_surface"],
        "n_shared_by_punctuation": n["shared_by_punctuation"],
        "n_echoing": n["echoes"],
        "summary": f"deletion {'INCOMPLETE' if n['remaining'] else 'complete'}: "
        f"{n['remaining']} of {len(left)} leave an entry that states the fact under another name"
        f"{doubtful}, {n_absent} delete nothing; the correct answers of {n['shared_surface']} "
        f"remain under another relation of the subject ({n['shared_by_punctuation']} only by "
        f"punctuation), those of {n['echoes']} contain their subject",
    }


def _leftovers(
    triplets: Triplets, facts: Sequence[AuditPrompt], closures: Sequence[Ints], groups: AliasGroups
) -> Iterator[tuple[Any, ...]]:
    """Compare the deleted entries with those that state a fact, or have its subject or object.

    A pair of a fact and an entry is `fact * n_entries + entry`.
    """
    n_facts, n_entries = len(facts), len(triplets)
    sizes = [len(closure) for closure in closures]
    gone = np.repeat(np.arange(n_facts) * n_entries, sizes)
    gone += np.concatenate([np.empty(0, np.int64), *closures])
    wide = equivalent_names(triplets, facts, groups)
    object_names = equivalent_names(triplets, facts, roles=["object"])["object"]
    stating = equivalent_entries(triplets, wide)
    remaining = np.setdiff1d(stating, gone, assume_unique=True)
    # The groups without shared aliases are computed only for facts with a remaining entry.
    numbers = np.unique(remaining // max(n_entries, 1))
    some = [facts[number] for number in numbers]
    apart = groups.of_facts(some).without_shared_aliases()
    sure = equivalent_entries(triplets, equivalent_names(triplets, some, apart))
    sure = numbers[sure // n_entries] * n_entries + sure % n_entries
    doubtful = np.setdiff1d(remaining, sure, assume_unique=True)
    about: dict[Role, Ints] = {"subject": wide["subject"], "object": object_names}
    shared = np.setdiff1d(equivalent_entries(triplets, about), np.union1d(gone, stating))
    strict = equivalent_names(triplets, facts, "strict", ["object"])["object"]
    by_punctuation = shared[~is_among(_objects(triplets, shared), strict)]
    objects = triplets.columns["object"]
    holders, names = np.divmod(object_names, max(len(objects.names), 1))
    counts = np.bincount(objects.ids, minlength=len(objects.names))
    n_same = np.bincount(holders, counts[names], n_facts).astype(np.int64)
    n_same -= np.bincount(
        gone[is_among(_objects(triplets, gone), object_names)] // n_entries, None, n_facts
    )
    parted = [
        split_by_fact(pairs, n_facts, n_entries)
        for pairs in (remaining, doubtful, shared, by_punctuation)
    ]
    entries = ([tuple(one.tolist()) for one in some] for some in parted)
    for fact, n_deleted, *found in zip(facts, sizes, *entries, n_same.tolist(), strict=True):
        yield (*(getattr(fact, name) for name in _OF_PROMPT), n_deleted, *found, _echoes(fact))


def _objects(triplets: Triplets, pairs: Ints) -> Ints:
    """Return the objects of pairs of a fact and an entry, each as a name of its fact."""
    column, n_entries = triplets.columns["object"], max(len(triplets), 1)
    return pairs // n_entries * len(column.names) + column.ids[pairs % n_entries]


def _echoes(fact: AuditPrompt) -> tuple[str, ...]:
    """Find the accepted objects that contain a name of the subject as whole words."""
    of = name_key("published")
    subjects = [f" {of(name)} " for name in names_in(fact, "subject")]
    return tuple(
        name
        for name in names_in(fact, "object")
        if any(subject in f" {of(name)} " for subject in subjects)
    )
