"""SLAQ: published rows to topics, and the halves of the topics by page views."""

import hashlib
import json
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from surface_consistency.data.selection import chosen_names, repeated_rows, spread
from surface_consistency.data.sources import Source, open_source
from surface_consistency.errors import DataError, RecordError, SurfaceConsistencyWarning
from surface_consistency.rows.cells import RowCells
from surface_consistency.rows.columns import refuse_late_columns, resolve_columns
from surface_consistency.rows.readers import Place
from surface_consistency.schemas import DataSource
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.studies.slaq.records import Popularity, SlaqQuestion, SlaqTopic
from surface_consistency.studies.slaq.rows import SLAQ_COLUMNS, SLAQ_REQUIRED, topic_of

SLAQ_ID: Final = "WueNLP/SLAQ"
"""The release on the hub."""

SLAQ_SAMPLE_ID: Final = "slaq-sample"
"""Name of the bundled sample in manifests, wherever the package is installed."""

SLAQ_SAMPLE_PATH: Final = Path(__file__).with_name("sample")
"""Folder of the bundled sample, in the hub's layout."""

PopularityWithin = Literal["category", "all"]
"""Whether topics are compared with those of their category or with all."""

BadRows = Literal["raise", "skip"]
"""What becomes of rows that are no topic."""

_RELEASED: Final = (600, 601)
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Slaq:
    """Topics of SLAQ."""

    topics: tuple[SlaqTopic, ...]
    """All topics, in the source's order."""

    source: DataSource
    """Where they came from, and the digest of exactly these; its questions are the short ones."""

    n_rows: int
    """Rows of the source, those included that were left out."""

    left_out: tuple[str, ...] = ()
    """What was wrong with the rows that were left out, each with its place."""

    @classmethod
    def from_topics(
        cls,
        topics: Sequence[SlaqTopic],
        *,
        source: str,
        revision: str | None = None,
        n_rows: int | None = None,
        left_out: Sequence[str] = (),
    ) -> "Slaq":
        """Sum up topics that are records already.

        Args:
            topics: Topics with unique ids.
            source: Where they came from, for manifests.
            revision: Commit of the hub repository; None elsewhere.
            n_rows: Rows of the source; None for one a topic.
            left_out: What was wrong with rows that were left out.

        Returns:
            The topics with their digest, which covers ids, questions and answers, short and long,
            and does not depend on their order.
        """
        digest = hashlib.sha256()
        for topic in sorted(topics, key=lambda item: item.id):
            facts = [[question.question, question.answer] for question in topic.questions]
            content = [topic.id, topic.topic, facts, topic.long_question, topic.long_answer]
            digest.update(json.dumps(content).encode("ascii"))
            digest.update(b"\n")
        described = DataSource(
            id=source,
            revision=revision,
            digest=digest.hexdigest(),
            n_questions=sum(len(topic.questions) for topic in topics),
        )
        return cls(
            topics=tuple(topics),
            source=described,
            n_rows=len(topics) if n_rows is None else n_rows,
            left_out=tuple(left_out),
        )

    @property
    def questions(self) -> tuple[SlaqQuestion, ...]:
        """All short questions, topic by topic."""
        return tuple(question for topic in self.topics for question in topic.questions)

    def __repr__(self) -> str:
        """Say what it holds, not all of it."""
        return f"<Slaq {self.source.id!r}: {len(self.topics):,} topics>"

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
            limit: Keep so many topics of those, spread over the categories: the first topic of
                each category, categories in order of appearance, then the second of each, and so
                on; all when None.

        Returns:
            The part in the order of the whole, with a digest of its own.

        Raises:
            ValueError: If a category or half is not in the data, or `limit` is below 1.
        """
        wanted = chosen_names(categories, "categories", (topic.category for topic in self.topics))
        if limit is not None and limit < 1:
            raise ValueError(f"limit counts topics and must be at least 1, got {limit}")
        topics = [
            topic
            for topic in self.topics
            if topic.category in wanted and popularity in (None, topic.popularity)
        ]
        if not topics:
            raise ValueError(f"no topic of these categories has popularity {popularity!r}")
        if limit is not None:
            chosen = spread(((topic.category, topic.id) for topic in topics), limit)
            topics = [topic for topic in topics if topic.id in chosen]
        return Slaq.from_topics(topics, source=self.source.id, revision=self.source.revision)


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
    reading = _Reading()
    rows = refuse_late_columns(opened.rows, opened.columns, SLAQ_COLUMNS, overrides=columns)
    for place, row in rows:
        reading.read(RowCells(fields, place, row), clean_html=clean_html)
    if reading.faults and bad_rows == "raise":
        if len(reading.faults) == 1:
            raise RecordError(reading.faults[0])
        raise RecordError(
            f"{len(reading.faults)} rows of {opened.id} are no topics: {_first(reading.faults)}. "
            'Mend them, or leave them out with bad_rows="skip"'
        )
    if not reading.topics:
        raise DataError(f"{opened.id} has no topic that can be used: {_first(reading.faults)}")
    for note in reading.notes(opened.id, is_cleaned=clean_html):
        warnings.warn(note, SurfaceConsistencyWarning, stacklevel=2)
    topics = popularity_halves(list(reading.topics.values()), within=popularity_within)
    return Slaq.from_topics(
        topics,
        source=opened.id,
        revision=opened.revision,
        n_rows=reading.n_rows,
        left_out=reading.faults,
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
    groups: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for topic in topics:
        if topic.pageviews is not None:
            key = topic.category if within == "category" else ""
            groups[key].append((-topic.pageviews, topic.id))
    popular = {
        identifier
        for members in groups.values()
        for _, identifier in sorted(members)[: len(members) // 2]
    }
    known = {
        identifier for members in groups.values() if len(members) > 1 for _, identifier in members
    }
    halves = {topic: "popular" if topic in popular else "obscure" for topic in known}
    return tuple(topic.model_copy(update={"popularity": halves.get(topic.id)}) for topic in topics)


class _Reading:
    """What has been read so far."""

    def __init__(self) -> None:
        self.topics: dict[str, SlaqTopic] = {}
        self.faults: list[str] = []
        self.n_rows = 0
        self.n_repeated = 0
        self.marked: list[str] = []
        self._places: dict[str, Place] = {}

    def read(self, cells: RowCells, *, clean_html: bool) -> None:
        """Take one row, or note what is wrong with it."""
        self.n_rows += 1
        try:
            topic, is_marked = topic_of(cells, clean_html=clean_html)
        except ValidationError as error:
            self.faults.append(f"{cells.place}: {describe_validation_error(error)}")
            return
        except RecordError as error:
            self.faults.append(str(error))
            return
        earlier = self.topics.get(topic.id)
        if earlier == topic:
            self.n_repeated += 1
        elif earlier is not None:
            self.faults.append(
                f"{cells.place}: topic {topic.topic!r} stands on {self._places[topic.id]} too, "
                "with other content; topics are unique"
            )
        else:
            self.topics[topic.id] = topic
            self._places[topic.id] = cells.place
            if is_marked:
                self.marked.append(str(cells.place))

    def notes(self, source: str, *, is_cleaned: bool) -> Iterator[str]:
        """Say what a user should know about the rows, each once a load."""
        if note := repeated_rows(source, self.n_repeated):
            yield note
        if self.faults:
            yield f"left out of {source}: {_first(self.faults)}"
        if self.marked and not is_cleaned:
            yield (
                f"{len(self.marked)} rows of {source} hold HTML ({_first(self.marked)}); it is "
                "kept: pass clean_html=True to take it out"
            )
        if source == SLAQ_ID and self.n_rows not in _RELEASED:
            yield (
                f"{source} has {self.n_rows} rows, where the paper has 600 and the hub reported "
                "601: this is another release, tell its revision with its numbers"
            )


def _first(items: Sequence[str]) -> str:
    """List the first few."""
    rest = len(items) - _SHOWN
    return "; ".join(items[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
