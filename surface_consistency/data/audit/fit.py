"""Whether prompts ask for what a database holds."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from surface_consistency.errors import ContaminationWarning, DataError
from surface_consistency.schemas import AuditPrompt, TripletDatabase
from surface_consistency.text import folded

__all__ = ["PromptsFit", "check_prompts_fit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptsFit:
    """How many prompts a database can answer."""

    n_prompts: int
    """All prompts."""

    n_verbatim: int
    """Prompts whose fact is an entry, word for word."""

    n_by_alias: int
    """Further prompts of whose fact an entry states an alias form, without regard to case."""

    missing: tuple[int, ...]
    """Numbers (`prompt_id`) of the prompts for which there is no entry."""

    @property
    def missing_share(self) -> float:
        """Share of prompts without an entry, in [0, 1]."""
        return len(self.missing) / self.n_prompts


def check_prompts_fit(
    database: TripletDatabase, prompts: Iterable[AuditPrompt], *, max_missing: float = 0.5
) -> PromptsFit:
    """Check that prompts belong to a database.

    A prompt fits when the database holds its subject, relation and object, each by its own name or
    by an alias. Prompts of another database that were taken for this one's would come out as facts
    that the model never knew.

    Args:
        database: The database.
        prompts: Prompts that are to be asked of it, at least one.
        max_missing: Largest share of prompts without an entry that is let through, in [0, 1].

    Returns:
        The counts.

    Raises:
        DataError: If a larger share has no entry.
        ValueError: If there are no prompts.

    Warns:
        ContaminationWarning: If some have no entry, but no larger share than allowed.
    """
    fit = _fit(database, list(prompts))
    if not fit.missing:
        return fit
    message = (
        f"{len(fit.missing)} of {fit.n_prompts} prompts ask for facts that the database of "
        f"{len(database.triplets)} triplets does not hold (prompt_id "
        f"{', '.join(map(str, fit.missing[:5]))}{', ...' if len(fit.missing) > 5 else ''})"
    )
    if fit.missing_share > max_missing:
        raise DataError(f"{message}: they belong to another database; pass the one they came with")
    warnings.warn(message, ContaminationWarning, stacklevel=2)
    return fit


def _fit(database: TripletDatabase, prompts: list[AuditPrompt]) -> PromptsFit:
    """Count verbatim entries, alias forms and misses."""
    if not prompts:
        raise ValueError("prompts must hold at least one prompt")
    verbatim = set(database.triplets)
    folds = {tuple(map(folded, entry)) for entry in verbatim}
    n_verbatim = 0
    missing = []
    for prompt in prompts:
        if (prompt.subject, prompt.relation, prompt.gold_object) in verbatim:
            n_verbatim += 1
        elif not any(form in folds for form in _forms(prompt)):
            missing.append(prompt.prompt_id)
    return PromptsFit(
        n_prompts=len(prompts),
        n_verbatim=n_verbatim,
        n_by_alias=len(prompts) - n_verbatim - len(missing),
        missing=tuple(missing),
    )


def _forms(prompt: AuditPrompt) -> Iterable[tuple[str, ...]]:
    """Write a fact in all its names."""
    return product(
        map(folded, (prompt.subject, *prompt.subject_aliases)),
        map(folded, (prompt.relation, *prompt.relation_aliases)),
        map(folded, (prompt.gold_object, *prompt.object_aliases)),
    )
