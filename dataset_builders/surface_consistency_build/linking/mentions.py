"""What names stand for, by the links of a wiki: mention tables, and expected mentions of counts."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.text import counted_name
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.texts import PackedTexts, arrays_digest, offsets_of

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MENTION_FILE: Final = "mentions.parquet"
"""Name of the table in a folder of `build mentions`."""

_COLUMNS: Final = (
    *("surface", "entity_id", "title", "n_links", "is_title", "is_redirect"),
    *("n_link_documents", "n_surface_documents"),
)


@dataclass(frozen=True, eq=False)
class MentionTable:
    """Names and the entities that they link to; make one by `from_arrow` or `read`.

    Examples:
        >>> table = MentionTable.from_rows([
        ...     {"surface": "Paris", "entity_id": "Q90", "title": "Paris", "n_links": 8,
        ...      "is_title": True, "is_redirect": False, "n_link_documents": 9,
        ...      "n_surface_documents": 19},
        ...     {"surface": "Paris", "entity_id": "Q167646", "title": "Paris (mythology)",
        ...      "n_links": 1, "is_title": False, "is_redirect": False, "n_link_documents": 9,
        ...      "n_surface_documents": 19}])
        >>> table.commonness.tolist(), table.link_probability.tolist()
        ([0.9, 0.1], [0.475])
    """

    names: PackedTexts
    """Distinct names, in the form in which they are counted."""

    offsets: Int64s
    """Where the entities of each name begin, shape `(n_names + 1,)`; the commonest comes first."""

    entity: npt.NDArray[np.int32]
    """Number of each row's entity."""

    entities: PackedTexts
    """Ids of the entities."""

    titles: PackedTexts
    """Titles of their pages."""

    n_links: Int64s
    """Links with this name to this entity, redirects followed."""

    is_title: npt.NDArray[np.bool_]
    """Whether the name is the title of the entity's page."""

    is_redirect: npt.NDArray[np.bool_]
    """Whether it is a redirect to that page."""

    n_link_documents: Int64s
    """Pages on which each name is a link, to whatever, shape `(n_names,)`."""

    n_surface_documents: Int64s
    """Pages on which each name stands, linked or not."""

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Make a table of rows.

        Args:
            rows: As the columns of `from_arrow`.

        Returns:
            The table.

        Raises:
            ColumnNotFoundError: If a column is missing.
            DataError: As `from_arrow`.
        """
        return cls.from_arrow(pa.Table.from_pylist([dict(row) for row in rows]))

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """Make a table of an Arrow table.

        Args:
            table: Columns surface, entity_id, title, n_links, is_title, is_redirect, and of the
                name n_link_documents and n_surface_documents; one row a name and entity.

        Returns:
            The table.

        Raises:
            ColumnNotFoundError: If a column is missing.
            DataError: If there is no row, a value is missing or negative, or a name and entity
                stand together twice.
        """
        if missing := [name for name in _COLUMNS if name not in table.column_names]:
            raise ColumnNotFoundError(
                f"the mention table has no column {', '.join(missing)}; it has "
                f"{', '.join(table.column_names)}. Make one with `surface-consistency build "
                "mentions`"
            )
        if not len(table):
            raise DataError("the mention table holds no names; see what the dump holds")
        table = table.select(list(_COLUMNS))
        for name in _COLUMNS:
            if table[name].null_count:
                raise DataError(f"the column {name} of the mention table must have no empty cells")
        names, owner = _numbered(table["surface"])
        entities, entity = _numbered(table["entity_id"])
        n_links = table["n_links"].cast(pa.int64()).to_numpy()
        order = np.lexsort((-n_links, owner))
        owner, entity, n_links = owner[order], entity[order], n_links[order]
        code = owner * len(entities) + entity
        if np.unique(code).size < code.size:
            raise DataError(
                "the mention table holds a name and entity twice; give each pair one row"
            )
        offsets = offsets_of(np.bincount(owner, minlength=len(names)))
        of_entity = np.zeros(len(entities), dtype=np.int64)
        of_entity[entity[::-1]] = np.arange(entity.size)[::-1]
        linked = table["n_link_documents"].cast(pa.int64()).to_numpy()[order][offsets[:-1]]
        found = table["n_surface_documents"].cast(pa.int64()).to_numpy()[order][offsets[:-1]]
        if min(n_links.min(), linked.min(), found.min()) < 0:
            raise DataError("the mention table must hold counts from 0")
        return cls(
            names=names,
            offsets=offsets,
            entity=entity.astype(np.int32),
            entities=entities,
            titles=PackedTexts.from_arrow(table["title"].take(order[of_entity])),
            n_links=n_links,
            is_title=np.asarray(table["is_title"])[order].astype(bool),
            is_redirect=np.asarray(table["is_redirect"])[order].astype(bool),
            n_link_documents=linked,
            n_surface_documents=np.maximum(found, linked),
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table.

        Args:
            path: The folder of `build mentions`, or a Parquet file with the columns of
                `from_arrow`.

        Returns:
            The table.

        Raises:
            SourceNotFoundError: If there is no such file.
            DataError: If it is no such table.
        """
        place = mention_file(path)
        try:
            return cls.from_arrow(pq.read_table(place))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{place}: cannot be read as Parquet ({error})") from error
        except DataError as error:
            raise type(error)(f"{place}: {error}") from error

    @cached_property
    def commonness(self) -> Floats:
        """P(entity given name) of each row: its share of the links of the name.

        The title of a page and a redirect to it count as one link each, so that a name that is
        nowhere linked has its own page for certain.
        """
        weights = self.n_links + (self.is_title | self.is_redirect)
        total = np.add.reduceat(weights, self.offsets[:-1])
        sizes = np.diff(self.offsets)
        shares: Floats = weights / np.repeat(np.maximum(total, 1), sizes)
        return shares

    @cached_property
    def link_probability(self) -> Floats:
        """Probability that a page with the name links it, shape `(n_names,)`.

        By pages, since a page links a name once or never, however often it stands there; the mean
        of the Beta distribution that Jeffreys' prior gives, (linked + 1/2) / (pages + 1), which is
        never 0 or 1.
        """
        return (self.n_link_documents + 0.5) / (self.n_surface_documents + 1.0)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rows."""
        columns = (self.entity, self.n_links, self.n_link_documents, self.n_surface_documents)
        return arrays_digest(self.names, self.entities, *columns)

    def named(self, ids: Mapping[str, str]) -> "MentionTable":
        """Give entities the ids that a data set knows them by.

        Args:
            ids: Title of each entity in the data set, by its id. An id that the table has stays;
                else the page of that title is meant, or the one that it redirects to.

        Returns:
            A table in which these pages have these ids. Two ids of one page, which a wiki's later
            redirects make, leave the first.
        """
        known = {entity: number for number, entity in enumerate(self.entities)}
        wanted = {
            counted_name(title): entity
            for entity, title in reversed(list(ids.items()))
            if entity not in known
        }
        if not wanted:
            return self
        renamed = {
            number: wanted.pop(title) for number, title in enumerate(self.titles) if title in wanted
        }
        rows = np.flatnonzero(self.is_redirect)
        owner = np.searchsorted(self.offsets, rows, side="right") - 1
        for row, name in zip(rows.tolist(), owner.tolist(), strict=True):
            entity = wanted.get(self.names[name])
            if entity is not None:
                renamed.setdefault(int(self.entity[row]), entity)
        changed = {field: getattr(self, field) for field in self.__dataclass_fields__}
        changed["entities"] = self.entities.changed(renamed)
        return MentionTable(**changed)

    def rows_of(self, names: Iterable[str]) -> dict[str, slice]:
        """Find names in the table.

        Args:
            names: Names in the form in which they are counted.

        Returns:
            The rows of each, by name; names that the table lacks are left out.
        """
        wanted = set(names)
        return {
            name: slice(int(self.offsets[number]), int(self.offsets[number + 1]))
            for number, name in enumerate(self.names)
            if name in wanted
        }


def mention_file(path: str | os.PathLike[str]) -> Path:
    """Name the file of a mention table.

    Args:
        path: A folder of `build mentions`, or the file.

    Returns:
        The file.

    Raises:
        SourceNotFoundError: If there is none.
    """
    place = Path(path) / MENTION_FILE if Path(path).is_dir() else Path(path)
    if not place.is_file():
        raise SourceNotFoundError(
            f"no mention table {place}; make one with `surface-consistency build mentions DUMP`"
        )
    return place


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedMentions:
    """Expected mentions of the rows of a `SurfaceTable`, NaN where the links do not know a name.

    Shapes are `(len(table),)`, one value a row.
    """

    p_entity: Floats
    """P(entity given name) by links; 0 where the name is linked, but never to this entity."""

    p_link: Floats
    """Probability that an occurrence is a mention at all."""

    mean: Floats
    """Expected mentions of the entity under this name."""

    sd: Floats
    """Their standard deviation: chance of each occurrence, and what few links leave unknown."""


def expected_mentions(
    table: SurfaceTable, n_occurrences: Int64s, mentions: MentionTable
) -> ExpectedMentions:
    """Share occurrences of names out to the entities that they may mean.

    An occurrence is a mention of an entity with probability q = l p: l that the name is a mention
    at all (linked where it stands, by pages), p that it means this entity (its share of links). Of
    N occurrences N E[q] are expected. l has the Beta distribution that Jeffreys' prior gives after
    k linked of n pages, p the one after w links of W to this entity (a title or redirect counts as
    a link; certain where the name has one entity), so that the variance is
    N E[q] (1 - E[q]) + N (N - 1) Var(q): that of drawing, and of not knowing q.

    Args:
        table: The names whose occurrences were counted.
        n_occurrences: Occurrences of each distinct name, shape `(table.n_keys,)`; the longest ones,
            so that none is shared out twice.
        mentions: What names link to, its entities known by the ids of `table` (`named`).

    Returns:
        Expected mentions of each row of the table. They hold for a corpus that uses names as the
        wiki does.
    """
    found = mentions.rows_of(table.keys)
    of_entity = {entity: number for number, entity in enumerate(mentions.entities)}
    keys = list(table.keys)
    entities = list(table.entities)
    values = np.full((4, len(table)), np.nan)
    for row, (key, entity) in enumerate(
        zip(table.rows.key.tolist(), table.rows.entity.tolist(), strict=True)
    ):
        rows = found.get(keys[key])
        if rows is None:
            continue
        values[:, row] = _expected(
            int(n_occurrences[key]), rows, of_entity.get(entities[entity], -1), mentions
        )
    p_entity, p_link, mean, sd = values
    return ExpectedMentions(p_entity=p_entity, p_link=p_link, mean=mean, sd=sd)


def _expected(
    n: int, rows: slice, entity: int, mentions: MentionTable
) -> tuple[float, float, float, float]:
    """Return P(entity given name), P(mention), and mean and deviation of the mentions among n."""
    name = int(np.searchsorted(mentions.offsets, rows.start, side="right")) - 1
    owners = mentions.entity[rows]
    weights = mentions.n_links[rows] + (mentions.is_title[rows] | mentions.is_redirect[rows])
    total, own = int(weights.sum()), int(weights[owners == entity].sum())
    linked, pages = int(mentions.n_link_documents[name]), int(mentions.n_surface_documents[name])
    p, p_square = _moments(own, total - own)
    if own == total:
        p, p_square = 1.0, 1.0
    elif not own:
        p, p_square = 0.0, 0.0
    link, link_square = _moments(linked, pages - linked)
    q = link * p
    variance = n * q * (1 - q) + n * (n - 1) * (link_square * p_square - q * q)
    share = own / total if total else 0.0
    return share, link, n * q, float(np.sqrt(max(variance, 0.0)))


def _moments(hits: int, misses: int) -> tuple[float, float]:
    """Return E[x] and E[x^2] of a share after hits and misses, by Jeffreys' prior."""
    a, b = hits + 0.5, misses + 0.5
    mean = a / (a + b)
    return mean, mean * (a + 1) / (a + b + 1)


def _numbered(column: pa.ChunkedArray) -> tuple[PackedTexts, Int64s]:
    """Return distinct strings and the number of each given one."""
    coded = column.combine_chunks().dictionary_encode()
    return PackedTexts.from_arrow(coded.dictionary), coded.indices.cast(pa.int64()).to_numpy()
