"""Whether an entry says what a target fact says, under any of its names."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from surface_consistency.retrieval.closure.keys import NameKey, name_key
from surface_consistency.schemas.memory import AuditPrompt, Triplet

__all__ = ["Flags", "TargetFlags"]


class Flags(NamedTuple):
    """Which parts of an entry are equivalent to the target's."""

    subject: bool
    """Its subject."""
    relation: bool
    """Its relation."""
    object: bool
    """Its object."""


_NONE = Flags(subject=False, relation=False, object=False)


class TargetFlags:
    """Compares entries with targets; each text's key is computed once."""

    def __init__(self, triplets: Sequence[Triplet], key: NameKey) -> None:
        """Start with nothing compared."""
        self._triplets = triplets
        self._key = name_key(key)
        self._keys: dict[str, str] = {}
        self._names: dict[tuple[str, ...], frozenset[str]] = {}

    def against(self, target: AuditPrompt | None) -> Callable[[int], Flags]:
        """Return what compares an entry with a target; without one nothing is equivalent."""
        if target is None:
            return lambda entry: _NONE
        subjects = self._set(target.subject, target.subject_aliases)
        relations = self._set(target.relation, target.relation_aliases)
        objects = self._set(target.gold_object, target.object_aliases)

        def flags(entry: int) -> Flags:
            subject, relation, value = map(self._of, self._triplets[entry])
            return Flags(subject in subjects, relation in relations, value in objects)

        return flags

    def _set(self, name: str, aliases: tuple[str, ...]) -> frozenset[str]:
        """Return the keys of a name and its aliases."""
        names = (name, *aliases)
        if names not in self._names:
            self._names[names] = frozenset(map(self._of, names))
        return self._names[names]

    def _of(self, text: str) -> str:
        """Return the key of a text."""
        if text not in self._keys:
            self._keys[text] = self._key(text)
        return self._keys[text]
