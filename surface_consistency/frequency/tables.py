"""The tables of a count: names, entities, pairs, n-grams, and instances for the analysis."""

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.frequency.counter import Counts
from surface_consistency.frequency.pairs import PairCounts
from surface_consistency.frequency.surfaces import SURFACE_ROLES, SurfaceTable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["MEASURES", "entity_table", "instance_table", "pair_table", "surface_table"]

Int64s = npt.NDArray[np.int64]

MEASURES: Final = ("longest", "bounded")
"""Counts that an entity's and a name's frequency are made of."""

_BLOCKER: Final = SURFACE_ROLES.index("blocker")
_COMMON_WORD: Final = 3
_LATER: Final = ("p_entity", "p_link", "expected_mentions")


def surface_table(
    table: SurfaceTable, counts: Counts, *, n_folded: Int64s | None = None
) -> "pa.Table":
    """Write the counts of names, one row an entity, name and role.

    Args:
        table: The names.
        counts: Their counts.
        n_folded: Occurrences of each name without regard to case, where they were counted.

    Returns:
        entity_id, surface, key_id, role, is_canonical, n_bounded, n_longest, n_documents, n_folded,
        n_entities, flags (see `SurfaceTable.diagnose`; "common_word" where three times as many
        occurrences are spelled with other capitals), and p_entity, p_link, expected_mentions,
        linked_mentions, linked_documents, which are null until mentions are linked. A name that
        several entities have stands whole in the row of each.
    """
    import pyarrow as pa

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
    null = pa.nulls(len(key), pa.float64())
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
            "n_folded": pa.nulls(len(key), pa.int64()) if n_folded is None else n_folded[key],
            "n_entities": diagnosis["n_entities"].to_numpy()[key],
            **dict.fromkeys(_LATER, null),
            "linked_mentions": pa.nulls(len(key), pa.int64()),
            "linked_documents": pa.nulls(len(key), pa.int64()),
            "flags": pa.array([list(f) for f in flags[key]], pa.list_(pa.string())),
        }
    )


def entity_table(table: SurfaceTable, counts: Counts) -> "pa.Table":
    """Write the counts of entities.

    Args:
        table: The names.
        counts: Their counts.

    Returns:
        entity_id, n_surfaces (distinct names but blockers), n_surfaces_seen (of those with an
        occurrence), entity_documents, entity_longest, entity_bounded, and entity_expected and
        entity_linked, which are null until mentions are linked. An entity all of whose names are
        blockers has none.
    """
    import pyarrow as pa

    key, entity = _named(table)

    def summed(values: Int64s) -> Int64s:
        total = np.zeros(table.n_entities, dtype=np.int64)
        np.add.at(total, entity, values[key])
        return total

    n_surfaces = summed(np.ones(table.n_keys, dtype=np.int64))
    whole = pa.table(
        {
            "entity_id": pa.array(list(table.entities)),
            "n_surfaces": n_surfaces,
            "n_surfaces_seen": summed((counts.n_bounded > 0).astype(np.int64)),
            "entity_documents": counts.entity_documents,
            "entity_longest": summed(counts.n_longest),
            "entity_bounded": summed(counts.n_bounded),
            "entity_expected": pa.nulls(table.n_entities, pa.float64()),
            "entity_linked": pa.nulls(table.n_entities, pa.int64()),
        }
    )
    return whole.filter(pa.array(n_surfaces > 0))


def pair_table(
    pairs: tuple[tuple[str, str], ...], counts: PairCounts, *, window: int | None
) -> "pa.Table":
    """Write the counts of pairs.

    Args:
        pairs: (subject id, object id).
        counts: Their counts.
        window: Characters between the two at most; None for the whole document.

    Returns:
        subject_id, object_id, n_documents_both, n_documents_subject, n_documents_object, window.
    """
    import pyarrow as pa

    return pa.table(
        {
            "subject_id": pa.array([first for first, _ in pairs], pa.string()),
            "object_id": pa.array([second for _, second in pairs], pa.string()),
            "n_documents_both": counts.n_documents_both,
            "n_documents_subject": counts.n_documents_subject,
            "n_documents_object": counts.n_documents_object,
            "window": pa.array([window] * len(pairs), pa.int64()),
        }
    )


def instance_table(
    instances: "pd.DataFrame",
    table: SurfaceTable,
    counts: Counts,
    pairs: "pa.Table | None" = None,
) -> "pd.DataFrame":
    """Give each surface instance its frequencies, as `metrics.frequency_analysis` takes them.

    Args:
        instances: Rows as `instance_rows` lists them.
        table: The names; it holds the surfaces of the instances.
        counts: Their counts.
        pairs: Rows of `pair_table`, where pairs were counted.

    Returns:
        For each instance and measure ("longest", "bounded") a row: fact_id, surface_id,
        is_canonical, entity_frequency (all names of the subject), surface_frequency (this one),
        others_frequency (their difference), pair_documents (documents that name subject and object;
        null where pairs were not counted), pageviews (of the subject, null where unknown), measure.
        Analyse one measure, or by="measure".
    """
    import pandas as pd

    keys = {name: number for number, name in enumerate(table.keys)}
    entities = {name: number for number, name in enumerate(table.entities)}
    key = np.array([keys[name] for name in instances["surface"]], dtype=np.int64)
    entity = np.array([entities[name] for name in instances["subject_id"]], dtype=np.int64)
    together = pd.Series(pd.NA, index=instances.index, dtype="Int64")
    if pairs is not None:
        both = {
            (row["subject_id"], row["object_id"]): row["n_documents_both"]
            for row in pairs.to_pylist()
        }
        named = zip(instances["subject_id"], instances["object_id"], strict=True)
        together = pd.Series(
            [both.get(pair, pd.NA) for pair in named], index=instances.index, dtype="Int64"
        )
    named_key, named_entity = _named(table)
    parts = []
    for measure in MEASURES:
        counted: Int64s = getattr(counts, f"n_{measure}")
        of_entity = np.zeros(table.n_entities, dtype=np.int64)
        np.add.at(of_entity, named_entity, counted[named_key])
        parts.append(
            instances[["fact_id", "surface_id", "is_canonical"]].assign(
                entity_frequency=of_entity[entity],
                surface_frequency=counted[key],
                others_frequency=of_entity[entity] - counted[key],
                pair_documents=together,
                pageviews=instances["pageviews"],
                measure=measure,
            )
        )
    return pd.concat(parts, ignore_index=True)


def _named(table: SurfaceTable) -> tuple[Int64s, Int64s]:
    """Return name and entity of each distinct (name, entity) that is no mere blocker."""
    kept = table.rows.role != _BLOCKER
    code = np.unique(
        table.rows.key[kept].astype(np.int64) * table.n_entities + table.rows.entity[kept]
    )
    return code // table.n_entities, code % table.n_entities
