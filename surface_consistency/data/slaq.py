"""SLAQ: topics from the published rows, and the halves of the topics by page views."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import pandas as pd

from surface_consistency.data.questions import plain_values
from surface_consistency.data.selection import chosen_names, repeated_rows, spread
from surface_consistency.data.slaq_records import Popularity, SlaqQuestion, SlaqTopic
from surface_consistency.data.slaq_rows import SLAQ_COLUMNS, SLAQ_REQUIRED, facts_of
from surface_consistency.data.sources import Source, open_source
from surface_consistency.errors import RecordError, SurfaceConsistencyWarning
from surface_consistency.reading import shown
from surface_consistency.rows.cells import RowCells
from surface_consistency.rows.columns import reject_late_columns, resolve_columns
from surface_consistency.rows.readers import Place
from surface_consistency.schemas import DataSource

SLAQ_ID: Final = "WueNLP/SLAQ"
"""The release on the hub."""

_OF_TOPIC: Final = (
    *("category", "topic", "url", "pageviews", "popularity", "long_question", "long_answer"),
)
_OF_FACT: Final = ("item", "question_index", "question", "answer", "is_entity")
TOPIC_COLUMNS: Final = ("topic_id", *_OF_TOPIC, *_OF_FACT)
"""Columns of the facts: those of the topic, repeated for its five facts, as in `SlaqTopic`, and
those of the fact, as in `SlaqQuestion`, whose id is `item`."""

_DTYPES: Final = {"pageviews": "Int64", "question_index": "Int64", "is_entity": "boolean"}
_RELEASED: Final = (600, 601)
_SHOWN: Final = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Slaq:
    """Facts of SLAQ, one row per fact; records of the topics are created on access."""

    rows: pd.DataFrame
    """The facts, five per topic, in the source's order, columns of `TOPIC_COLUMNS`."""

    source: DataSource
    """Origin of the facts, and the digest of exactly these; it counts the short questions."""

    source_rows: Mapping[str, int] = field(default_factory=dict)
    """Number of the source's row of each topic, from 0; empty if the rows come from memory."""

    @classmethod
    def from_rows(cls, rows: pd.DataFrame, *, source: str, revision: str | None = None) -> "Slaq":
        """Create the data from a frame of facts.

        Args:
            rows: Columns of `TOPIC_COLUMNS`, the five facts of a topic in order.
            source: Origin of the facts, for manifests.
            revision: Commit of the hub repository; None for other sources.

        Returns:
            The facts with their digest, which covers ids, questions and answers, short and long,
            and does not depend on the order of the topics.
        """
        digest = hashlib.sha256()
        for name, facts in rows.groupby("topic_id"):
            asked = facts[["question", "answer"]].to_numpy().tolist()
            first = facts.iloc[0]
            content = [name, first["topic"], asked, first["long_question"], first["long_answer"]]
            digest.update(f"{json.dumps(content)}\n".encode("ascii"))
        described = DataSource(
            id=source, revision=revision, digest=digest.hexdigest(), n_questions=len(rows)
        )
        return cls(rows=rows, source=described)

    @cached_property
    def topics(self) -> tuple[SlaqTopic, ...]:
        """Records of all topics, in the source's order."""
        facts: dict[str, list[SlaqQuestion]] = {}
        for name, *cells in plain_values(self.rows, ("topic_id", *_OF_FACT)):
            question = SlaqQuestion(**dict(zip(SlaqQuestion.model_fields, cells, strict=True)))
            facts.setdefault(name, []).append(question)
        of_topic = plain_values(self.rows.drop_duplicates("topic_id"), ("topic_id", *_OF_TOPIC))
        return tuple(
            SlaqTopic(
                id=name, questions=tuple(facts[name]), **dict(zip(_OF_TOPIC, cells, strict=True))
            )
            for name, *cells in of_topic
        )

    def __repr__(self) -> str:
        """Summarise the content."""
        return f"<Slaq {self.source.id!r}: {self.rows['topic_id'].nunique():,} topics>"

    def select(
        self,
        *,
        categories: str | Iterable[str] | None = None,
        popularity: Popularity | None = None,
        limit: int | None = None,
    ) -> "Slaq":
        """Select a part of the topics; popularity halves are those of all topics.

        Args:
            categories: Categories to keep; all if None.
            popularity: Half to keep; if None, both halves and the topics in neither.
            limit: Maximum number of those topics, spread over the categories: the first topic of
                each category, categories in order of appearance, then the second of each, and so
                on; all if None.

        Returns:
            The part in the order of the data, with its own digest.

        Raises:
            ValueError: If a category or half is not in the data, or `limit` is below 1.
        """
        rows = self.rows
        kept = rows[rows["category"].isin(chosen_names(categories, "categories", rows["category"]))]
        if limit is not None and limit < 1:
            raise ValueError(f"limit counts topics and must be at least 1, got {limit}")
        if popularity is not None:
            kept = kept[kept["popularity"] == popularity]
        if kept.empty:
            raise ValueError(f"no topic of these categories has popularity {popularity!r}")
        if limit is not None:
            chosen = spread(zip(kept["category"], kept["topic_id"], strict=True), limit)
            kept = kept[kept["topic_id"].isin(chosen)]
        return Slaq.from_rows(
            kept.reset_index(drop=True), source=self.source.id, revision=self.source.revision
        )


def load_slaq(
    source: Source = SLAQ_ID,
    *,
    revision: str | None = None,
    split: str = "test",
    columns: Mapping[str, str] | None = None,
    clean_html: bool = False,
) -> Slaq:
    """Load SLAQ, or your own topics in its columns.

    Files are read without the NA rules of CSV readers: "NA", "null", "None" and "nan" are answers
    like any other. Questions and answers are stripped of white space. Rows that are identical to
    another one are dropped and counted.

    Args:
        source: Hub id, folder in the hub's layout, file (`.csv`, `.tsv`, `.parquet`, `.jsonl`,
            `.json`), `datasets` object, or rows as dictionaries; see `open_source`. "sample" is the
            bundled sample: topics of twelve categories, for trials, not for results.
        revision: Branch, tag or commit of the hub repository; pin it for reproducible work.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field of `SLAQ_COLUMNS` to column, if the source uses other names.
        clean_html: Whether HTML is removed from questions and answers; otherwise it is kept.

    Returns:
        The topics.

    Raises:
        SourceNotFoundError: If the source or the split does not exist or cannot be reached.
        ColumnNotFoundError: If a required column is not found, or `columns` names an unknown field
            or a missing column.
        RecordError: If rows lack a question or answer, contain an invalid flag or number, or name a
            topic of another row with other content; names file, line and column of each.
        DataError: If there are no rows.

    Warns:
        SurfaceConsistencyWarning: If rows repeat others or contain HTML, or the number of rows of
            the release is neither the 600 of the paper nor the 601 of the hub.

    Examples:
        >>> sample = load_slaq("sample")
        >>> len(sample.topics), len(sample.rows)
        (24, 120)
    """
    opened = open_source(source, revision=revision, split=split, sample="slaq")
    fields = resolve_columns(
        opened.columns, SLAQ_COLUMNS, overrides=columns, required=SLAQ_REQUIRED
    )
    known: dict[object, tuple[Place, list[dict[str, object]]]] = {}
    source_rows: dict[str, int] = {}
    faults: list[str] = []
    marked: list[str] = []
    n_rows = 0
    late = reject_late_columns(opened.rows, opened.columns, SLAQ_COLUMNS, overrides=columns)
    for n_rows, (place, row) in enumerate(late, start=1):
        try:
            facts, is_marked = facts_of(RowCells(fields, place, row), clean_html=clean_html)
        except RecordError as error:
            faults.append(str(error))
            continue
        source_rows.setdefault(str(facts[0]["topic_id"]), n_rows - 1)
        first, same = known.setdefault(facts[0]["topic_id"], (place, facts))
        if same != facts:
            faults.append(
                f"{place}: topic {shown(facts[0]['topic'])} is also on {first}, with other "
                "content; topics must be unique"
            )
        elif first == place and is_marked:
            marked.append(str(place))
    if len(faults) == 1:
        raise RecordError(faults[0])
    if faults:
        raise RecordError(
            f"{len(faults)} rows of {opened.id} are not topics: {_first(faults)}. Correct or "
            "remove them"
        )
    notes = (
        repeated_rows(opened.id, n_rows - len(known)),
        marked
        and not clean_html
        and f"{len(marked)} rows of {opened.id} contain HTML ({_first(marked)}); it is kept: pass "
        "clean_html=True to remove it",
        opened.id == SLAQ_ID
        and n_rows not in _RELEASED
        and f"{opened.id} has {n_rows} rows, but the paper has 600 and the hub reported 601: this "
        "is another release, report its revision with its results",
    )
    for note in filter(None, notes):
        warnings.warn(str(note), SurfaceConsistencyWarning, stacklevel=2)
    rows = _typed([fact for _, facts in known.values() for fact in facts])
    halves = _halves(rows.drop_duplicates("topic_id"))
    data = Slaq.from_rows(
        rows.assign(popularity=rows["topic_id"].map(halves).astype(rows["topic"].dtype)),
        source=opened.id,
        revision=opened.revision,
    )
    return replace(data, source_rows=source_rows)


def _halves(topics: pd.DataFrame) -> dict[str, str]:
    """Split topics, one row each, by page views; those in neither half are omitted.

    The paper sorts the pages of each category by views and splits the list in half (appendix A.1).
    If the number is odd, the middle one is obscure; for equal page views the earlier id is popular.
    The only topic of a category is in neither half.
    """
    known = topics[topics["pageviews"].notna()]
    ranked = known.sort_values(["pageviews", "topic_id"], ascending=[False, True])
    groups = ranked.groupby("category")["topic_id"]
    size = groups.transform("size")
    half = (groups.cumcount() < size // 2).map({True: "popular", False: "obscure"})
    return dict(zip(ranked["topic_id"][size > 1], half[size > 1], strict=True))


def _typed(facts: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Make the frame of facts."""
    rows = pd.DataFrame(list(facts), columns=[*TOPIC_COLUMNS], dtype=object)
    text = pd.Series([""]).dtype
    return rows.astype({name: _DTYPES.get(name, text) for name in TOPIC_COLUMNS})


def _first(items: Sequence[str]) -> str:
    """List the first few."""
    rest = len(items) - _SHOWN
    return "; ".join(items[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
