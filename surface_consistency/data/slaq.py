"""SLAQ: published rows to topics, and the halves of the topics by page views."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from surface_consistency.data.questions import plain_values
from surface_consistency.data.selection import chosen_names, repeated_rows, spread
from surface_consistency.data.slaq_records import Popularity, SlaqQuestion, SlaqTopic
from surface_consistency.data.slaq_rows import SLAQ_COLUMNS, SLAQ_REQUIRED, facts_of
from surface_consistency.data.sources import Source, open_source
from surface_consistency.errors import DataError, RecordError, SurfaceConsistencyWarning
from surface_consistency.rows.cells import RowCells
from surface_consistency.rows.columns import refuse_late_columns, resolve_columns
from surface_consistency.rows.readers import Place
from surface_consistency.schemas import DataSource

SLAQ_ID: Final = "WueNLP/SLAQ"
"""The release on the hub."""

SLAQ_SAMPLE_ID: Final = "slaq-sample"
"""Name of the bundled sample in manifests, wherever the package is installed."""

SLAQ_SAMPLE_PATH: Final = Path(__file__).with_name("samples") / "slaq"
"""Folder of the bundled sample, in the hub's layout."""

PopularityWithin = Literal["category", "all"]
"""Whether topics are compared with those of their category or with all."""

BadRows = Literal["raise", "skip"]
"""What becomes of rows that are no topic."""

_OF_TOPIC: Final = (
    *("category", "topic", "url", "pageviews", "popularity", "long_question", "long_answer"),
)
_OF_FACT: Final = ("fact_id", "question_index", "question", "answer", "is_entity")
TOPIC_COLUMNS: Final = ("topic_id", *_OF_TOPIC, *_OF_FACT)
"""Columns of the facts: those of the topic, repeated for its five facts, as in `SlaqTopic`, and
those of the fact, as in `SlaqQuestion`, whose id is `fact_id`."""

_DTYPES: Final = {"pageviews": "Int64", "question_index": "Int64", "is_entity": "boolean"}
_RELEASED: Final = (600, 601)
_SHOWN: Final = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Slaq:
    """Facts of SLAQ, one row each; records of the topics are built on access."""

    rows: pd.DataFrame
    """The facts, five per topic, in the source's order, columns of `TOPIC_COLUMNS`."""

    source: DataSource
    """Where they came from, and the digest of exactly these; its questions are the short ones."""

    n_rows: int
    """Rows of the source, including the excluded ones."""

    left_out: tuple[str, ...] = ()
    """What was wrong with each excluded row, with its place."""

    @classmethod
    def from_rows(
        cls,
        rows: pd.DataFrame,
        *,
        source: str,
        revision: str | None = None,
        n_rows: int | None = None,
        left_out: Sequence[str] = (),
    ) -> "Slaq":
        """Describe facts that are a frame already.

        Args:
            rows: Columns of `TOPIC_COLUMNS`, the five facts of a topic in order.
            source: Where they came from, for manifests.
            revision: Commit of the hub repository; None for other sources.
            n_rows: Rows of the source; None for one per topic.
            left_out: What was wrong with excluded rows.

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
        n = rows["topic_id"].nunique() if n_rows is None else n_rows
        return cls(rows=rows, source=described, n_rows=n, left_out=tuple(left_out))

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

    @property
    def questions(self) -> tuple[SlaqQuestion, ...]:
        """Records of all short questions, topic by topic."""
        return tuple(question for topic in self.topics for question in topic.questions)

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
        """Keep a part of the topics; popularity halves stay those of the whole.

        Args:
            categories: Categories to keep; all when None.
            popularity: Half to keep; both, and topics in neither, when None.
            limit: Maximum number of those topics, spread over the categories: the first topic of
                each category, categories in order of appearance, then the second of each, and so
                on; all when None.

        Returns:
            The part in the order of the whole, with a digest of its own.

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
    bad_rows: BadRows = "raise",
    popularity_within: PopularityWithin = "category",
) -> Slaq:
    """Load SLAQ, or topics of your own in its columns.

    Files are read without the NA rules of CSV readers: "NA", "null", "None" and "nan" are answers
    like any other. Questions and answers lose the white space around them. Rows that repeat
    another to the letter are dropped and counted.

    Args:
        source: Hub id, folder in the hub's layout, file (`.csv`, `.tsv`, `.parquet`, `.jsonl`,
            `.json`), `datasets` object, or rows as dictionaries; see `open_source`.
        revision: Branch, tag or commit of the hub repository; pin it in work to be repeated.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field of `SLAQ_COLUMNS` to column, where the source uses other names.
        clean_html: Whether HTML is taken out of questions and answers; else it is kept.
        bad_rows: "raise" refuses the source and names every bad row; "skip" leaves them out.
        popularity_within: Whether popularity halves are those of each category, as in the paper, or
            of the whole.

    Returns:
        The topics.

    Raises:
        SourceNotFoundError: If the source or the split is not there or cannot be reached.
        ColumnNotFoundError: If a needed column is not found, or `columns` names a wrong one.
        RecordError: If rows lack a question or answer, hold a wrong flag or number, or name a topic
            that another row has; names file, line and column of each. Also, whatever `bad_rows`
            says, if a file cannot be cut into rows.
        DataError: If no row is left.
        ValueError: If `bad_rows` or `popularity_within` is unknown.

    Warns:
        SurfaceConsistencyWarning: If rows were left out, repeat others or hold HTML, or the release
            has another number of rows than the 600 of the paper or the 601 of the hub.
    """
    if bad_rows not in ("raise", "skip"):
        raise ValueError(f"bad_rows must be one of raise, skip; got {bad_rows!r}")
    opened = open_source(source, revision=revision, split=split)
    fields = resolve_columns(
        opened.columns, SLAQ_COLUMNS, overrides=columns, required=SLAQ_REQUIRED
    )
    if popularity_within not in ("category", "all"):
        raise ValueError(
            f"popularity_within must be one of category, all; got {popularity_within!r}"
        )
    known: dict[object, tuple[Place, list[dict[str, object]]]] = {}
    faults: list[str] = []
    marked: list[str] = []
    n_rows = 0
    late = refuse_late_columns(opened.rows, opened.columns, SLAQ_COLUMNS, overrides=columns)
    for n_rows, (place, row) in enumerate(late, start=1):  # noqa: B007 - counted to the end
        try:
            facts, is_marked = facts_of(RowCells(fields, place, row), clean_html=clean_html)
        except RecordError as error:
            faults.append(str(error))
            continue
        first, same = known.setdefault(facts[0]["topic_id"], (place, facts))
        if same != facts:
            faults.append(
                f"{place}: topic {facts[0]['topic']!r} is on {first} too, with other content; "
                "topics are unique"
            )
        elif first == place and is_marked:
            marked.append(str(place))
    if faults and bad_rows == "raise":
        if len(faults) == 1:
            raise RecordError(faults[0])
        raise RecordError(
            f"{len(faults)} rows of {opened.id} are not topics: {_first(faults)}. Correct them, or "
            'leave them out with bad_rows="skip"'
        )
    if not known:
        raise DataError(f"{opened.id} has no topic that can be used: {_first(faults)}")
    notes = (
        repeated_rows(opened.id, n_rows - len(known) - len(faults)),
        faults and f"left out of {opened.id}: {_first(faults)}",
        marked
        and not clean_html
        and f"{len(marked)} rows of {opened.id} contain HTML ({_first(marked)}); it is kept: pass "
        "clean_html=True to remove it",
        opened.id == SLAQ_ID
        and n_rows not in _RELEASED
        and f"{opened.id} has {n_rows} rows, where the paper has 600 and the hub reported 601: "
        "this is another release, report its revision with its numbers",
    )
    for note in filter(None, notes):
        warnings.warn(str(note), SurfaceConsistencyWarning, stacklevel=2)
    rows = _typed([fact for _, facts in known.values() for fact in facts])
    halves = _halves(rows.drop_duplicates("topic_id"), popularity_within)
    return Slaq.from_rows(
        rows.assign(popularity=rows["topic_id"].map(halves).astype(rows["topic"].dtype)),
        source=opened.id,
        revision=opened.revision,
        n_rows=n_rows,
        left_out=faults,
    )


def load_slaq_sample() -> Slaq:
    """Load the bundled sample, a small set of true facts for trying things out, not for results.

    It needs neither network nor cache nor the `datasets` library.

    Returns:
        Topics over twelve categories of the paper, half of them popular.

    Examples:
        >>> sample = load_slaq_sample()
        >>> len(sample.topics), len(sample.questions)
        (24, 120)
    """
    data = load_slaq(SLAQ_SAMPLE_PATH / "test.csv")
    return replace(data, source=data.source.model_copy(update={"id": SLAQ_SAMPLE_ID}))


def popularity_halves(
    topics: Sequence[SlaqTopic], *, within: PopularityWithin = "category"
) -> tuple[SlaqTopic, ...]:
    """Say of each topic whether it is in the half with more page views.

    The paper sorts the pages of each category by views and splits the list in half (appendix A.1);
    section 3.2 calls the halves popular and obscure.

    Args:
        topics: The topics of a whole data set; a part would be split at another place.
        within: Compare within categories, as the paper does, or over all topics.

    Returns:
        The topics in their order, with `popularity` set; None where page views are unknown. Of an
        odd number the middle one is obscure, and of equal page views the earlier id is popular; a
        topic that is alone in its category is in neither half.

    Raises:
        ValueError: If `within` is unknown.
    """
    if within not in ("category", "all"):
        raise ValueError(f"within must be one of category, all; got {within!r}")
    rows = pd.DataFrame(
        {
            "topic_id": [topic.id for topic in topics],
            "category": [topic.category for topic in topics],
            "pageviews": pd.array([topic.pageviews for topic in topics], dtype="Int64"),
        }
    )
    halves = _halves(rows, within)
    return tuple(topic.model_copy(update={"popularity": halves.get(topic.id)}) for topic in topics)


def _halves(topics: pd.DataFrame, within: PopularityWithin) -> dict[str, str]:
    """Split topics, one row each, by page views; those in neither half are left out."""
    known = topics[topics["pageviews"].notna()]
    ranked = known.sort_values(["pageviews", "topic_id"], ascending=[False, True])
    if within == "all":
        ranked = ranked.assign(category="")
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
