"""Tables of facts with aliases, the source of the databases of an audit.

A table is a folder of tab-separated UTF-8 files with a header line and without quoting. Several
values in a cell are separated by " | ":

- `facts.tsv`: subject, relation, object.
- `aliases.tsv`: a name, the roles in which it has other names (subject, relation, object), these
  names, and the relations to which they apply (empty for all). So a club and its city can share a
  name without sharing aliases. The alias topology uses the first two names; a name that is listed
  among its own aliases is used in its position.
- `noise.tsv` and `collision.tsv`, both optional: further facts, and the fact to which each is
  related.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import decode_text, read_document, shown
from surface_consistency.schemas import Triplet
from surface_consistency.text import folded

TABLES_PATH: Final = Path(__file__).with_name("domains")
"""Folder of the bundled tables."""

DOMAINS: Final = ("countries", "politicians", "sports")
"""Names of the bundled tables."""

_ROLES: Final = ("subject", "relation", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """Aliases of a name."""

    name: str
    """The name that the facts use."""

    aliases: tuple[str, ...]
    """Its other names, the usual ones first; the name itself may be listed among them, to set its
    position if a fact is stored in two forms."""

    roles: tuple[str, ...] = _ROLES
    """Roles in which the aliases apply: "subject", "relation", "object"."""

    relations: tuple[str, ...] = ()
    """Relations to which the aliases apply; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedFact:
    """A related fact in addition to the table's facts: a decoy or a near miss."""

    triplet: Triplet
    """The fact."""

    near: tuple[str, str] | None = None
    """Subject and relation of the fact to which it is related; None if it is not related to a
    single fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """Facts, the aliases of their parts, and related facts."""

    name: str
    """Name of the table, such as "countries"; its databases are written to a folder of this
    name."""

    facts: tuple[Triplet, ...]
    """The distinct facts."""

    aliases: tuple[Aliases, ...] = ()
    """Aliases; several entries of one name are combined."""

    noise: tuple[RelatedFact, ...] = ()
    """Decoys: other subjects that lead to the same objects."""

    collision: tuple[RelatedFact, ...] = ()
    """Near misses: confusable facts with other objects."""

    _by_name: dict[tuple[str, str], list[Aliases]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Check the table and index its aliases."""
        if self.name in ("", "..") or PurePath(self.name).name != self.name:
            raise DataError(f"the name of a table must be a folder name, got {shown(self.name)}")
        _check_facts(self)
        for entry in self.aliases:
            for role in entry.roles:
                if role not in _ROLES:
                    raise DataError(
                        f"table {shown(self.name)}: the roles of {shown(entry.name)} are "
                        f"{', '.join(_ROLES)}, got {shown(role)}"
                    )
                for name in dict.fromkeys((entry.name, *entry.aliases)):
                    self._by_name.setdefault((role, name), []).append(entry)

    def names_of(self, role: str, name: str, *, relation: str) -> tuple[str, ...]:
        """Return the other names of a part of a fact.

        Args:
            role: "subject", "relation" or "object".
            name: The name that the fact uses: a listed name, or an alias of one.
            relation: Relation of the fact, for aliases that apply to some relations only.

        Returns:
            The distinct aliases in order, without those that differ from `name` only in case, width
            or spacing.
        """
        return tuple(
            other
            for other in self.forms_of(role, name, relation=relation)
            if folded(other) != folded(name)
        )

    def forms_of(self, role: str, name: str, *, relation: str) -> tuple[str, ...]:
        """Return all names of a part of a fact, in the order in which they are used.

        Args:
            role: "subject", "relation" or "object".
            name: The name that the fact uses.
            relation: Relation of the fact.

        Returns:
            The listed names, followed by the name to which they belong unless it is listed.
        """
        names: dict[str, str] = {}
        entries = [
            entry
            for entry in self._by_name.get((role, name), ())
            if not entry.relations or relation in entry.relations
        ]
        for entry in entries:
            for alias in entry.aliases:
                names.setdefault(folded(alias), alias)
        for entry in entries:
            names.setdefault(folded(entry.name), entry.name)
        names.setdefault(folded(name), name)
        return tuple(names.values())


def load_fact_table(domain: str) -> FactTable:
    """Read a bundled table.

    Args:
        domain: One of `DOMAINS`.

    Returns:
        The table.

    Raises:
        ValueError: If the table does not exist.

    Examples:
        >>> table = load_fact_table("countries")
        >>> len(table.facts), table.names_of("subject", "France", relation="Capital")
        (100, ('French Republic',))
    """
    if domain not in DOMAINS:
        raise ValueError(f"domain must be one of {', '.join(DOMAINS)}, got {shown(domain)}")
    return read_fact_table(TABLES_PATH / domain)


def read_fact_table(folder: str | os.PathLike[str], *, name: str | None = None) -> FactTable:
    """Read a table of facts from a folder.

    Args:
        folder: Folder with `facts.tsv` and optionally `aliases.tsv`, `noise.tsv` and
            `collision.tsv`.
        name: Name of the table; None for the name of the folder.

    Returns:
        The table.

    Raises:
        SourceNotFoundError: If `facts.tsv` does not exist.
        DataError: If a file has other columns, a line has too few cells, a required cell is empty,
            or a fact occurs twice.
    """
    root = Path(folder)
    facts = tuple(
        Triplet(*row) for row in _read_tsv(root / "facts.tsv", ("subject", "relation", "object"))
    )
    aliases = tuple(
        Aliases(
            name=cells[0],
            roles=_cell_values(cells[1]),
            aliases=_cell_values(cells[2]),
            relations=_cell_values(cells[3]),
        )
        for cells in _read_tsv(
            root / "aliases.tsv", ("name", "roles", "aliases", "relations"), filled=3, missing=True
        )
    )
    return FactTable(
        name=name or root.resolve().name,
        facts=facts,
        aliases=aliases,
        noise=_related(root / "noise.tsv"),
        collision=_related(root / "collision.tsv"),
    )


def _related(file: Path) -> tuple[RelatedFact, ...]:
    """Read decoys or near misses."""
    columns = ("subject", "relation", "object", "fact_subject", "fact_relation")
    return tuple(
        RelatedFact(triplet=Triplet(*cells[:3]), near=(cells[3], cells[4]) if cells[3] else None)
        for cells in _read_tsv(file, columns, filled=3, missing=True)
    )


def _check_facts(table: FactTable) -> None:
    """Reject an empty table, repeated facts, and related facts whose fact is missing."""
    if not table.facts:
        raise DataError(f"table {shown(table.name)} has no facts; it needs at least one")
    related = (table.noise, table.collision)
    for facts in (table.facts, *([item.triplet for item in items] for items in related)):
        seen: set[Triplet] = set()
        for fact in facts:
            if fact in seen:
                raise DataError(f"table {shown(table.name)}: {shown(fact)} occurs twice; drop one")
            if not all(part.strip() for part in fact):
                raise DataError(
                    f"table {shown(table.name)}: {shown(fact)} has an empty part; fill or drop it"
                )
            seen.add(fact)
    known = {fact[:2] for fact in table.facts}
    for near in (item.near for item in (*table.noise, *table.collision)):
        if near is not None and near not in known:
            raise DataError(f"table {shown(table.name)}: no fact has subject and relation {near}")


def _cell_values(cell: str) -> tuple[str, ...]:
    """Split a cell into its values; an empty cell has none."""
    return tuple(value.strip() for value in cell.split("|") if value.strip())


def _read_tsv(
    file: Path, columns: tuple[str, ...], *, filled: int | None = None, missing: bool = False
) -> Iterator[tuple[str, ...]]:
    """Read the lines of a table; the first `filled` cells (None: all) must not be empty."""
    if not file.is_file():
        if missing:
            return
        raise SourceNotFoundError(f"table {file} not found; its columns: {', '.join(columns)}")
    lines = decode_text(read_document(file), str(file)).split("\n")
    if tuple(lines[0].rstrip("\r").split("\t")) != columns:
        raise DataError(
            f"{file}: the header must be {' <tab> '.join(columns)}, got {shown(lines[0])}"
        )
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = tuple(cell.strip() for cell in line.rstrip("\r").split("\t"))
        if len(cells) != len(columns):
            raise DataError(
                f"{file}:{number}: {len(cells)} cells under {len(columns)} columns; correct the "
                f"line {shown(line)}"
            )
        for column, cell in list(zip(columns, cells, strict=True))[:filled]:
            if not cell:
                raise DataError(f"{file}:{number}: {column} is empty; fill it or drop the line")
        yield cells
