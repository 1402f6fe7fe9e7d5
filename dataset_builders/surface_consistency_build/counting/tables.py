"""The tables of a count: names, entities, pairs, n-grams, and instances for the analysis."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency_build.counting.counter import Counts
from surface_consistency_build.counting.pairs import PairCounts
from surface_consistency_build.counting.surfaces import SURFACE_ROLES, SurfaceTable
from surface_consistency_build.linking.mentions import ExpectedMentions

if TYPE_CHECKING:
    import pandas as pd

Int64s = npt.NDArray[np.int64]

Floats = npt.NDArray[np.float64]

MEASURES: Final = ("longest", "bounded")
"""Counts that an entity's and a name's frequency are made of, where nothing is linked."""

_COMMON_WORD: Final = 3
_COUNT: Final = pa.int64()

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MentionCounts:
    """What a linker and the links of a wiki say of the rows of a table and of its entities."""

    linked_mentions: Int64s | None = None
    """Mentions of each row's entity under its name, shape `(len(table),)`."""

    linked_documents: Int64s | None = None
    """Documents with such a mention."""

    entity_linked: Int64s | None = None
    """Mentions of each entity under any name, of the table or not, shape `(n_entities,)`."""

    entity_linked_documents: Int64s | None = None
    """Documents with such a mention."""

    expected: ExpectedMentions | None = None
    """Expected mentions of the rows."""


def surface_table(
    table: SurfaceTable,
    counts: Counts,
    *,
    n_folded: Int64s | None = None,
    mentions: MentionCounts | None = None,
) -> pa.Table:
    """Write the counts of names, one row an entity, name and role.

    Args:
        table: The names.
        counts: Their counts.
        n_folded: Occurrences of each name without regard to case, where they were counted.
        mentions: What was linked, and what the links of a wiki say.

    Returns:
        entity_id, surface, key_id, role, is_canonical, n_bounded, n_longest, n_documents, n_folded,
        n_entities, flags (see `SurfaceTable.diagnose`; "common_word" where three times as many
        occurrences are spelled with other capitals), and p_entity, p_link, expected_mentions,
        expected_sd, linked_mentions, linked_documents, which are null until mentions are linked. A
        name that several entities have stands whole in the row of each, and its expected mentions
        are shared out.
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
    expected = linked.expected
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
            "p_entity": _column(getattr(expected, "p_entity", None), len(key), pa.float64()),
            "p_link": _column(getattr(expected, "p_link", None), len(key), pa.float64()),
            "expected_mentions": _column(getattr(expected, "mean", None), len(key), pa.float64()),
            "expected_sd": _column(getattr(expected, "sd", None), len(key), pa.float64()),
            "linked_mentions": _column(linked.linked_mentions, len(key)),
            "linked_documents": _column(linked.linked_documents, len(key)),
            "flags": pa.array([list(f) for f in flags[key]], pa.list_(pa.string())),
        }
    )


def entity_table(
    table: SurfaceTable, counts: Counts, *, mentions: MentionCounts | None = None
) -> pa.Table:
    """Write the counts of entities.

    Args:
        table: The names.
        counts: Their counts.
        mentions: What was linked, and what the links of a wiki say.

    Returns:
        entity_id, n_surfaces (distinct names but blockers), n_surfaces_seen (of those with an
        occurrence), entity_documents, entity_longest, entity_bounded, and entity_expected,
        entity_expected_sd, entity_linked and entity_linked_documents, which are null until mentions
        are linked. An entity all of whose names are blockers has none.
    """
    linked = MentionCounts() if mentions is None else mentions
    mean, sd = (None, None) if linked.expected is None else _of_entities(table, linked.expected)
    n_surfaces = _summed(table, np.ones(table.n_keys, dtype=np.int64))
    whole = pa.table(
        {
            "entity_id": pa.array(list(table.entities)),
            "n_surfaces": n_surfaces,
            "n_surfaces_seen": _summed(table, (counts.n_bounded > 0).astype(np.int64)),
            "entity_documents": counts.entity_documents,
            "entity_longest": _summed(table, counts.n_longest),
            "entity_bounded": _summed(table, counts.n_bounded),
            "entity_expected": _column(mean, table.n_entities, pa.float64()),
            "entity_expected_sd": _column(sd, table.n_entities, pa.float64()),
            "entity_linked": _column(linked.entity_linked, table.n_entities),
            "entity_linked_documents": _column(linked.entity_linked_documents, table.n_entities),
        }
    )
    return whole.filter(pa.array(n_surfaces > 0))


def pair_table(
    pairs: tuple[tuple[str, str], ...], counts: PairCounts, *, window: int | None
) -> pa.Table:
    """Write the counts of pairs.

    Args:
        pairs: (subject id, object id).
        counts: Their counts.
        window: Characters between the two at most; None for the whole document.

    Returns:
        subject_id, object_id, n_documents_both, n_documents_subject, n_documents_object, window.
    """
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
    pairs: pa.Table | None = None,
    *,
    mentions: MentionCounts | None = None,
) -> "pd.DataFrame":
    """Give each surface instance its frequencies, as `metrics.frequency_analysis` takes them.

    Args:
        instances: Rows as `instance_rows` lists them.
        table: The names; it holds the surfaces of the instances.
        counts: Their counts.
        pairs: Rows of `pair_table`, where pairs were counted.
        mentions: What was linked, and what the links of a wiki say.

    Returns:
        For each instance and measure ("longest", "bounded", and where known "linked" and
        "expected") a row: fact_id, surface_id, subject_id, is_canonical, entity_frequency (all
        names of the subject), surface_frequency (this one), others_frequency (their difference),
        pair_documents (documents that name subject and object; null where pairs were not counted),
        pageviews (of the subject, null where unknown), measure, and entity_sd and surface_sd of
        expected mentions. Analyse one measure, or by="measure".
    """
    return _instances(instances, table, _measured(table, counts, mentions), pairs)


def lookup_instances(
    instances: "pd.DataFrame", table: SurfaceTable, lookups: pa.Table
) -> "pd.DataFrame":
    """Give each surface instance what an index says of its name and of its entity's.

    Args:
        instances: Rows as `instance_rows` lists them.
        table: The names; it holds the surfaces of the instances.
        lookups: Rows of `lookup_table`, of the same names.

    Returns:
        As `instance_table`, measure "lookup"; NaN where a name could not be looked up.
    """
    of_key = np.full(table.n_keys, np.nan)
    for row in lookups.to_pylist():
        if row["is_summed"]:
            of_key[row["key_id"]] = np.nan_to_num(of_key[row["key_id"]]) + row["count"]
    of_entity = _summed(table, np.nan_to_num(of_key))
    unknown = np.full(table.n_entities, np.nan), np.full(len(table), np.nan)
    measured = {"lookup": (of_entity, of_key[table.rows.key], *unknown)}
    return _instances(instances, table, measured, None)


def _instances(
    instances: "pd.DataFrame",
    table: SurfaceTable,
    frequencies: "dict[str, tuple[Any, Any, Floats, Floats]]",
    pairs: pa.Table | None,
) -> "pd.DataFrame":
    """Give each instance the frequencies of its entity and name, a row a measure."""
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
    for measure, (of_entity, of_row, entity_sd, row_sd) in frequencies.items():
        parts.append(
            instances[["fact_id", "surface_id", "subject_id", "is_canonical"]].assign(
                entity_frequency=of_entity[entity],
                surface_frequency=of_row[rows],
                others_frequency=of_entity[entity] - of_row[rows],
                pair_documents=together,
                pageviews=instances["pageviews"],
                measure=measure,
                entity_sd=entity_sd[entity],
                surface_sd=row_sd[rows],
            )
        )
    return pd.concat(parts, ignore_index=True)


def _measured(
    table: SurfaceTable, counts: Counts, mentions: MentionCounts | None
) -> dict[str, tuple[Any, Any, Floats, Floats]]:
    """Return, by measure, frequency of entities and of rows, and the deviations of both."""
    no_sd = np.full(table.n_entities, np.nan), np.full(len(table), np.nan)
    made: dict[str, tuple[Any, Any, Floats, Floats]] = {}
    for measure in MEASURES:
        counted: Int64s = getattr(counts, f"n_{measure}")
        made[measure] = (_summed(table, counted), counted[table.rows.key], *no_sd)
    if mentions is None:
        return made
    if mentions.entity_linked is not None and mentions.linked_mentions is not None:
        made["linked"] = (mentions.entity_linked, mentions.linked_mentions, *no_sd)
    if (expected := mentions.expected) is not None:
        mean, sd = _of_entities(table, expected)
        made["expected"] = (mean, expected.mean, sd, expected.sd)
    return made


def _of_entities(table: SurfaceTable, expected: ExpectedMentions) -> tuple[Floats, Floats]:
    """Add the expected mentions of each entity's names; NaN where no name of it is known."""
    _, entity, rows = table.named
    known = ~np.isnan(expected.mean[rows])
    mean, variance = np.zeros(table.n_entities), np.zeros(table.n_entities)
    np.add.at(mean, entity[known], expected.mean[rows][known])
    # Names are counted apart from one another.
    np.add.at(variance, entity[known], expected.sd[rows][known] ** 2)
    unknown = ~np.isin(np.arange(table.n_entities), entity[known])
    mean[unknown] = variance[unknown] = np.nan
    return mean, np.sqrt(variance)


def _summed(table: SurfaceTable, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Add what the names of each entity have, but for blockers."""
    key, entity, _ = table.named
    total = np.zeros(table.n_entities, dtype=values.dtype)
    np.add.at(total, entity, values[key])
    return total


def _column(values: Int64s | Floats | None, n: int, kind: pa.DataType = _COUNT) -> pa.Array:
    """Write numbers, NaN as null; nulls where there are none."""
    return pa.nulls(n, kind) if values is None else pa.array(values, kind, from_pandas=True)
