"""Make the tables of a count: names, entities, pairs, n-grams, and instances for the analysis."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency_build.counting.counter import Counts
from surface_consistency_build.counting.pairs import PairCounts
from surface_consistency_build.counting.surfaces import SURFACE_ROLES, SurfaceTable

if TYPE_CHECKING:
    import pandas as pd

Int64s = npt.NDArray[np.int64]

MEASURES: Final = ("longest", "bounded")
"""Counts that give the frequencies of entities and names, if nothing is linked."""

_COMMON_WORD: Final = 3
_COUNT: Final = pa.int64()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MentionCounts:
    """Linked mentions of the rows of a table and of its entities; None if not counted."""

    linked_mentions: Int64s | None = None
    """Number of mentions of each row's entity by its name, shape `(len(table),)`."""

    linked_documents: Int64s | None = None
    """Number of documents with such a mention."""

    entity_linked: Int64s | None = None
    """Number of mentions of each entity by any name, in the table or not, shape `(n_entities,)`."""

    entity_linked_documents: Int64s | None = None
    """Number of documents with such a mention."""


def surface_table(
    table: SurfaceTable,
    counts: Counts,
    *,
    n_folded: Int64s | None = None,
    mentions: MentionCounts | None = None,
) -> pa.Table:
    """Make the table of the counts of names, one row per entity, name and role.

    Args:
        table: The names.
        counts: Their counts.
        n_folded: Occurrences of each name without regard to case, if they were counted.
        mentions: Counts of linked mentions.

    Returns:
        entity_id, surface, key_id, role, is_canonical, n_bounded, n_longest, n_documents, n_folded,
        n_entities, flags (see `SurfaceTable.diagnose`; "common_word" if three times as many
        occurrences have other capitals), and linked_mentions and linked_documents, which are null
        unless mentions are linked. The count of a name that several entities share is in the row of
        each entity.
    """
    key = table.rows.key
    diagnosis = table.diagnose()
    flags = diagnosis["flags"].to_numpy()
    if n_folded is not None:
        is_common = n_folded > (_COMMON_WORD + 1) * np.maximum(counts.n_bounded, 1)
        flags = np.array(
            [(*f, "common_word") if c else f for f, c in zip(flags, is_common, strict=True)] + [()],
            dtype=object,
        )[:-1]
    rows = table.to_arrow()
    linked = MentionCounts() if mentions is None else mentions
    return pa.table(
        {
            "entity_id": rows["entity_id"].cast("string"),
            "surface": rows["surface"].cast("string"),
            "key_id": pa.array(key.astype(np.int64)),
            "role": rows["role"],
            "is_canonical": pa.array(table.rows.role == SURFACE_ROLES.index("canonical")),
            "n_bounded": counts.n_bounded[key],
            "n_longest": counts.n_longest[key],
            "n_documents": counts.n_documents[key],
            "n_folded": _column(None if n_folded is None else n_folded[key], len(key)),
            "n_entities": diagnosis["n_entities"].to_numpy()[key],
            "linked_mentions": _column(linked.linked_mentions, len(key)),
            "linked_documents": _column(linked.linked_documents, len(key)),
            "flags": pa.array([list(f) for f in flags[key]], pa.list_(pa.string())),
        }
    )


def entity_table(
    table: SurfaceTable, counts: Counts, *, mentions: MentionCounts | None = None
) -> pa.Table:
    """Make the table of the counts of entities.

    Args:
        table: The names.
        counts: Their counts.
        mentions: Counts of linked mentions.

    Returns:
        entity_id, n_surfaces (distinct names except blockers), n_surfaces_seen (those with an
        occurrence), entity_documents, entity_longest, entity_bounded, and entity_linked and
        entity_linked_documents, which are null unless mentions are linked. An entity with only
        blockers has no row.
    """
    linked = MentionCounts() if mentions is None else mentions
    n_surfaces = _summed(table, np.ones(table.n_keys, dtype=np.int64))
    whole = pa.table(
        {
            "entity_id": pa.array(list(table.entities)),
            "n_surfaces": n_surfaces,
            "n_surfaces_seen": _summed(table, (counts.n_bounded > 0).astype(np.int64)),
            "entity_documents": counts.entity_documents,
            "entity_longest": _summed(table, counts.n_longest),
            "entity_bounded": _summed(table, counts.n_bounded),
            "entity_linked": _column(linked.entity_linked, table.n_entities),
            "entity_linked_documents": _column(linked.entity_linked_documents, table.n_entities),
        }
    )
    return whole.filter(pa.array(n_surfaces > 0))


def pair_table(pairs: tuple[tuple[str, str], ...], counts: PairCounts) -> pa.Table:
    """Make the table of the counts of pairs.

    Args:
        pairs: (subject id, object id).
        counts: Their counts.

    Returns:
        subject_id, object_id, n_documents_both, n_documents_subject, n_documents_object.
    """
    return pa.table(
        {
            "subject_id": pa.array([first for first, _ in pairs], pa.string()),
            "object_id": pa.array([second for _, second in pairs], pa.string()),
            "n_documents_both": counts.n_documents_both,
            "n_documents_subject": counts.n_documents_subject,
            "n_documents_object": counts.n_documents_object,
        }
    )


def instance_table(
    instances: "pd.DataFrame",
    table: SurfaceTable,
    counts: Counts,
    pairs: pa.Table | None = None,
    *,
    mentions: MentionCounts | None = None,
) -> "pd.DataFrame":
    """Make the table of the frequencies of instances, as `metrics.frequency_analysis` accepts it.

    Args:
        instances: Rows as returned by `instance_rows`.
        table: The names, including the surfaces of the instances.
        counts: Their counts.
        pairs: Rows of `pair_table`, if pairs were counted.
        mentions: Counts of linked mentions.

    Returns:
        One row per instance and measure ("longest", "bounded", and "linked" if mentions are
        linked): item, surface_id, subject_id, is_canonical, entity_frequency (all names of the
        subject), surface_frequency (this name), others_frequency (their difference), pair_documents
        (documents that name subject and object; null if pairs were not counted), pageviews (of the
        subject, null if unknown) and measure. Analyse one measure, or use by="measure".
    """
    return _instances(instances, table, _measured(table, counts, mentions), pairs)


def linked_instances(
    instances: "pd.DataFrame", table: SurfaceTable, mentions: MentionCounts
) -> "pd.DataFrame":
    """Make the table of the linked mentions of each instance's entity and name.

    Args:
        instances: Rows as returned by `instance_rows`.
        table: The names, including the surfaces of the instances.
        mentions: Counts of linked mentions.

    Returns:
        As `instance_table`, with only the measure "linked".
    """
    return _instances(instances, table, _linked(mentions), None)


def linked_tables(table: SurfaceTable, mentions: MentionCounts) -> tuple[pa.Table, pa.Table]:
    """Make the tables of the linked mentions of entities and of names.

    Args:
        table: The names.
        mentions: Counts of linked mentions.

    Returns:
        One row per entity: entity_id, entity_linked, entity_linked_documents; and one row per
        entity, name and role: entity_id, surface, role, linked_mentions, linked_documents. Numbers
        of documents are null if the linker does not name documents.
    """
    n_entities, n_rows = table.n_entities, len(table)
    entities = pa.table(
        {
            "entity_id": pa.array(list(table.entities)),
            "entity_linked": _column(mentions.entity_linked, n_entities),
            "entity_linked_documents": _column(mentions.entity_linked_documents, n_entities),
        }
    )
    surfaces = table.to_arrow()
    for name in ("linked_mentions", "linked_documents"):
        surfaces = surfaces.append_column(name, _column(getattr(mentions, name), n_rows))
    return entities, surfaces


def _instances(
    instances: "pd.DataFrame",
    table: SurfaceTable,
    frequencies: dict[str, tuple[Int64s, Int64s]],
    pairs: pa.Table | None,
) -> "pd.DataFrame":
    """Make the rows of the frequencies of each instance's entity and name, one per measure."""
    import pandas as pd

    keys = {name: number for number, name in enumerate(table.keys)}
    entities = {name: number for number, name in enumerate(table.entities)}
    key = np.array([keys[name] for name in instances["surface"]], dtype=np.int64)
    entity = np.array([entities[name] for name in instances["subject_id"]], dtype=np.int64)
    both = {
        (row["subject_id"], row["object_id"]): row["n_documents_both"]
        for row in ([] if pairs is None else pairs.to_pylist())
    }
    named = zip(instances["subject_id"], instances["object_id"], strict=True)
    together = pd.array([both.get(pair, pd.NA) for pair in named], dtype="Int64")
    pairs_of_rows = zip(table.rows.entity.tolist(), table.rows.key.tolist(), strict=True)
    row_of = {pair: row for row, pair in enumerate(pairs_of_rows)}
    rows = np.array([row_of[pair] for pair in zip(entity.tolist(), key.tolist(), strict=True)])
    parts = []
    for measure, (of_entity, of_row) in frequencies.items():
        parts.append(
            instances[["item", "surface_id", "subject_id", "is_canonical"]].assign(
                entity_frequency=of_entity[entity],
                surface_frequency=of_row[rows],
                others_frequency=of_entity[entity] - of_row[rows],
                pair_documents=together,
                pageviews=instances["pageviews"],
                measure=measure,
            )
        )
    return pd.concat(parts, ignore_index=True)


def _measured(
    table: SurfaceTable, counts: Counts, mentions: MentionCounts | None
) -> dict[str, tuple[Int64s, Int64s]]:
    """Return the frequencies of entities and of rows, by measure."""
    made: dict[str, tuple[Int64s, Int64s]] = {}
    for measure in MEASURES:
        counted: Int64s = getattr(counts, f"n_{measure}")
        made[measure] = (_summed(table, counted), counted[table.rows.key])
    return made if mentions is None else made | _linked(mentions)


def _linked(mentions: MentionCounts) -> dict[str, tuple[Int64s, Int64s]]:
    """Return the linked mentions of entities and of rows, if there are any."""
    if mentions.entity_linked is None or mentions.linked_mentions is None:
        return {}
    return {"linked": (mentions.entity_linked, mentions.linked_mentions)}


def _summed(table: SurfaceTable, values: Int64s) -> Int64s:
    """Add the values of the names of each entity, except blockers."""
    key, entity, _ = table.named
    total = np.zeros(table.n_entities, dtype=np.int64)
    np.add.at(total, entity, values[key])
    return total


def _column(values: Int64s | None, n: int) -> pa.Array:
    """Return an Arrow column of counts; nulls if nothing was counted."""
    return pa.nulls(n, _COUNT) if values is None else pa.array(values, _COUNT)
