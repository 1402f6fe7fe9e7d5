"""The differences between two versions of an audit's facts, each with its reason."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.text import folded, token_key

DifferenceKind = Literal["triplet", "subject_aliases", "relation_aliases", "object_aliases"]
"""Part of a fact in which the versions differ."""

_NO_REASONS: Final[Mapping[Triplet, str]] = MappingProxyType({})
_NO_ALIAS_REASONS: Final[Mapping[str, str]] = MappingProxyType({})
_ROLES: Final[Mapping[DifferenceKind, str]] = MappingProxyType(
    {"subject_aliases": "subject", "relation_aliases": "relation", "object_aliases": "gold_object"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that differs between two versions."""

    kind: DifferenceKind
    """Part that differs."""

    fact: Triplet
    """The fact."""

    ours: tuple[str, ...]
    """Our list of aliases, or the parts of the triplet; empty if only the other version has it."""

    other: tuple[str, ...]
    """The same for the other version."""

    reason: str
    """Reason, if it is known."""


def compare_databases(
    ours: Sequence[AuditPrompt],
    other: Sequence[AuditPrompt],
    *,
    reasons: Mapping[Triplet, str] = _NO_REASONS,
    alias_reasons: Mapping[str, str] = _NO_ALIAS_REASONS,
) -> list[Difference]:
    """List the differences between two versions of a database's facts.

    Args:
        ours: Facts of one version, with their aliases.
        other: Facts of the other version.
        reasons: Reasons by fact for facts that are only in one version.
        alias_reasons: Reasons by alias for aliases that are only in the other version.

    Returns:
        First the facts that are only in the other version, then those only in ours, then facts of
        both with different aliases. The order of a list is ignored. If no reason is given, it is
        derived: "echo" (the subject counts as the object), "over-merged" (a name that also belongs
        to another entity), "overwritten" (the aliases of the relation were replaced by others),
        "repeated" (a name twice).
    """
    own = {_fact(prompt): prompt for prompt in ours}
    foreign = {_fact(prompt): prompt for prompt in other}
    owners = _owners([*ours, *other])
    differences = [
        Difference(
            kind="triplet",
            fact=fact,
            ours=(),
            other=tuple(fact),
            reason=reasons.get(fact) or _triplet_reason(fact, owners),
        )
        for fact in foreign
        if fact not in own
    ]
    differences += [
        Difference(
            kind="triplet",
            fact=fact,
            ours=tuple(fact),
            other=(),
            reason=reasons.get(fact, "in the place of one that is left out"),
        )
        for fact in own
        if fact not in foreign
    ]
    for fact in own:
        if fact in foreign:
            differences += _alias_differences(own[fact], foreign[fact], owners, alias_reasons)
    return differences


def _fact(prompt: AuditPrompt) -> Triplet:
    """The fact of a prompt."""
    return Triplet(prompt.subject, prompt.relation, prompt.gold_object)


def _owners(prompts: Iterable[AuditPrompt]) -> dict[str, set[str]]:
    """Map each name of an object to the objects with this name."""
    owners: dict[str, set[str]] = {}
    for prompt in prompts:
        for name in (prompt.gold_object, *prompt.object_aliases):
            owners.setdefault(token_key(name), set()).add(token_key(prompt.gold_object))
    return owners


def _triplet_reason(fact: Triplet, owners: Mapping[str, set[str]]) -> str:
    """Return the reason for the omission of a fact."""
    if folded(fact.subject) == folded(fact.object):
        return "echo: the subject is the object"
    if token_key(fact.subject) in owners:
        return "over-merged: the subject's name is another thing's too"
    return "left out"


def _alias_differences(
    ours: AuditPrompt,
    other: AuditPrompt,
    owners: Mapping[str, set[str]],
    alias_reasons: Mapping[str, str],
) -> list[Difference]:
    """Compare the aliases of a fact that both versions have."""
    differences = []
    for kind in _ROLES:
        own: tuple[str, ...] = getattr(ours, kind)
        foreign: tuple[str, ...] = getattr(other, kind)
        if sorted(own) == sorted(foreign):
            continue
        dropped = [alias for alias in foreign if alias not in own]
        given = [alias_reasons[alias] for alias in dropped if alias in alias_reasons]
        reason = given[0] if given else _alias_reason(ours, kind, dropped, owners)
        if not dropped:
            repeated = len(set(foreign)) < len(foreign)
            reason = "repeated: a name twice" if repeated else "names added"
        differences.append(
            Difference(kind=kind, fact=_fact(ours), ours=own, other=foreign, reason=reason)
        )
    return differences


def _alias_reason(
    prompt: AuditPrompt,
    kind: DifferenceKind,
    dropped: Sequence[str],
    owners: Mapping[str, set[str]],
) -> str:
    """Return the reason for the omission of aliases."""
    own_key = token_key(getattr(prompt, _ROLES[kind]))
    keys = {token_key(alias) for alias in dropped}
    spoken = {token_key(name) for name in (prompt.subject, *prompt.subject_aliases)}
    if kind == "relation_aliases":
        return "overwritten: another registration of the relation replaced its aliases"
    if keys <= {own_key}:
        return "repeated: the name itself in other letters"
    if kind == "object_aliases" and keys & spoken:
        return "echo: names of the subject count as the object"
    if any(owners.get(key, set()) - {own_key} for key in keys):
        return "over-merged: an alias is another thing's name too"
    return "other names"
