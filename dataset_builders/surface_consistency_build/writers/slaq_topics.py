"""Write topics of SLAQ from articles (arXiv 2510.11218, section 3.2 and appendix A.1).

A model writes five questions and their long query from each article, the texts are checked by the
paper's rules, the model is prompted to correct the faults, and a person reviews the result.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from surface_consistency.data.slaq_records import SlaqArticle, SlaqTopic
from surface_consistency.data.slaq_rows import SlaqRow, to_slaq_rows
from surface_consistency.engine.features import make_features
from surface_consistency.engine.judging.prompts import (
    OWN_WORDS,
    fill_holes,
    paper_prompt,
    pin_prompts,
)
from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import shown
from surface_consistency.rows.readers import Place
from surface_consistency.schemas import DataSource, Message, Prompt
from surface_consistency_build.cards.dataset_card import written_topics_card
from surface_consistency_build.cards.dataset_folder import Subset, write_folder
from surface_consistency_build.writers import writer
from surface_consistency_build.writers.slaq_articles import is_long_enough
from surface_consistency_build.writers.slaq_rules import Violation, check_topic
from surface_consistency_build.writers.slaq_written import (
    WrittenFact,
    WrittenTopic,
    parse_written,
    topic_from_written,
)

_REQUEST: Final = Path(__file__).with_name("slaq_request.txt")
_LONG: Final = "long"


class TopicSettings(writer.WriterSettings):
    """Settings for writing topics."""

    prompts: Annotated[str, AfterValidator(lambda name: pin_prompts(name, "writer"))] = OWN_WORDS
    """Wording of the request: own, which requests JSON, or paper for that of the paper's table 1,
    which requests one line without entity flags and is sent once; recorded with the digest of the
    text."""

    min_words: int = Field(default=1000, ge=0)
    """Number of words that an article must exceed."""

    min_characters: int = Field(default=1000, ge=0)
    """Minimum number of characters of an article."""

    max_characters: int | None = Field(default=None, ge=1)
    """Maximum number of characters of an article in a request; by default no limit."""


@dataclass(slots=True, kw_only=True)
class TopicDraft(writer.Draft):
    """One article, and the best topic written from it."""

    article: SlaqArticle
    """The article."""

    settings: TopicSettings
    """The settings."""

    written: WrittenTopic = field(default_factory=WrittenTopic)
    """The texts with the fewest violations so far."""

    text: str = ""
    """The answer with these texts; or the first answer, if no answer could be read."""

    refusal: str = ""
    """Reason for the rejection of the topic after the review; "" if it is not rejected."""

    @property
    def violations(self) -> list[Violation]:
        """The rules that the texts break."""
        return check_topic(self.written, self.article)

    def request(self, attempt: int) -> Prompt | None:
        """Request the topic, or a corrected one; see `Draft.request`."""
        faults = [fault.message for fault in self.violations]
        if not faults or (attempt > 1 and self.settings.prompts != OWN_WORDS):
            return None
        if self.written == WrittenTopic():
            faults = ["The answer holds no questions in the layout asked for."]
        return topic_prompt(
            self.article,
            prompts=self.settings.prompts,
            max_characters=self.settings.max_characters,
            previous=self.text,
            faults=tuple(dict.fromkeys(faults)),
            attempt=attempt,
        )

    def take(self, text: str) -> None:
        """Read an answer; it is used if it breaks fewer rules than the earlier one."""
        is_first = self.written == WrittenTopic()
        try:
            written = parse_written(text)
        except RecordError:
            self.text = text if is_first else self.text
            return
        if is_first or len(check_topic(written, self.article)) < len(self.violations):
            self.written, self.text = written, text

    def rows(self) -> Iterator[tuple[str, ...]]:
        """List the five facts, then the long question; see `Draft.rows`."""
        article, faults = self.article, self.violations
        head = (article.topic_id, article.title, article.category, article.url or "")
        for index, fact in enumerate(self.written.five, start=1):
            own = (f"ShortQ{index}", f"ShortA{index}")
            message = "; ".join(fault.message for fault in faults if fault.field in own)
            flag = "" if fact.is_entity is None else str(int(fact.is_entity))
            yield (*head, str(index), fact.question or "", fact.answer or "", flag, message)
        others = [fault.message for fault in faults if _row_of(fault.field) == _LONG]
        texts = (self.written.long_question or "", self.written.long_answer or "")
        yield (*head, _LONG, *texts, "", "; ".join(others))

    def review(self, rows: Sequence[tuple[Place, writer.Cells]]) -> None:
        """Apply corrections, and reject the topic if a row is not accepted; see `Draft.review`.

        The topic is rejected if a row is marked no and has no correction, or if a row breaks a rule
        and is not marked as both open-domain and grounded.
        """
        texts, confirmed, rejected = [], set(), []
        for _, cells in rows:
            kinds = ("question", "answer")
            marks = [writer.mark_of(cells[name]) for name in ("is_open_domain", "is_grounded")]
            texts.append([cells[f"corrected_{kind}"] or cells[kind] or None for kind in kinds])
            row = cells["fact"].removesuffix(".0")
            if all(marks):
                confirmed.add(row)
            elif False in marks and not any(cells[f"corrected_{kind}"] for kind in kinds):
                rejected.append(row)
        flags = [writer.mark_of(cells["is_entity"]) for _, cells in rows]
        self.written = WrittenTopic(
            facts=tuple(
                WrittenFact(question=question, answer=answer, is_entity=flag)
                for (question, answer), flag in zip(texts[:-1], flags, strict=False)
            ),
            long_question=texts[-1][0],
            long_answer=texts[-1][1],
        )
        broken = [fault for fault in self.violations if _row_of(fault.field) not in confirmed]
        self.refusal = "; ".join(dict.fromkeys(fault.message for fault in broken))
        if rejected:
            self.refusal = f"the reviewer rejected row {', '.join(rejected)}"


class TopicWriting(writer.Writing[TopicDraft, TopicSettings]):
    """The task of writing topics.

    `write` and `apply` write Parquet files with a card, in the columns of `load_slaq`: the split
    `test` contains the topics that satisfy all rules or that the reviewer accepted. `write` also
    writes the split `doubtful`, the complete topics that break a rule. A split without topics is
    not written.

    Args:
        articles: Articles with different titles, cleaned, such as those of `read_articles`.
        settings: The settings; None for the defaults.

    Raises:
        DataError: If two articles have the same title, or no article is long enough.
    """

    study = "slaq-writer"
    sheet = writer.ReviewSheet(
        shown=(
            *("topic_id", "topic", "category", "url", "fact", "question", "answer"),
            *("is_entity", "violations"),
        ),
        filled=("is_open_domain", "is_grounded", "corrected_question", "corrected_answer", "note"),
        key=("topic_id", "fact"),
        marks=("is_open_domain", "is_grounded", "is_entity"),
        unread=("topic", "category", "url", "violations", "note"),
    )

    def __init__(
        self, articles: Iterable[SlaqArticle], settings: TopicSettings | None = None
    ) -> None:
        self.settings = settings or TopicSettings()
        drafts: dict[str, TopicDraft] = {}
        self.left_out: dict[str, str] = {}
        limits = (self.settings.min_words, self.settings.min_characters)
        for article in articles:
            if not is_long_enough(article, min_words=limits[0], min_characters=limits[1]):
                self.left_out[article.title] = "the article is too short"
            elif article.topic_id in drafts:
                raise DataError(
                    f"two articles have the title {shown(article.title)}; titles must be unique"
                )
            else:
                drafts[article.topic_id] = TopicDraft(article=article, settings=self.settings)
        if not drafts:
            raise DataError(
                f"no article has more than {limits[0]} words and at least {limits[1]} characters "
                f"({len(self.left_out)} are shorter); give longer ones or lower the limits"
            )
        self.drafts = list(drafts.values())
        digest = hashlib.sha256()
        for name in sorted(drafts):
            digest.update(drafts[name].article.model_dump_json().encode("utf-8", "replace"))
        self.source = DataSource(
            id="articles", revision=None, digest=digest.hexdigest(), n_questions=len(drafts)
        )

    def finish(self, folder: Path, *, is_reviewed: bool) -> writer.WritingSummary:
        """Write the topics; see `Writing.finish`."""
        topics: list[SlaqTopic] = []
        doubtful: list[SlaqTopic] = []
        left_out = dict(self.left_out)
        for draft in self.drafts:
            try:
                topic = topic_from_written(draft.written, draft.article)
            except RecordError as error:
                left_out[draft.article.title] = str(error)
                continue
            if draft.refusal:
                left_out[draft.article.title] = draft.refusal
            elif draft.violations and not is_reviewed:
                doubtful.append(topic)
            else:
                topics.append(topic)
        if is_reviewed and not topics:
            raise DataError(f"no topic remains after the review: {next(iter(left_out.values()))}")
        splits = {"test": topics, "doubtful": doubtful}
        rows = {
            split: [row.model_dump(mode="json") for row in to_slaq_rows(given)]
            for split, given in splits.items()
            if given
        }
        if rows:
            subset = Subset(name="all", splits=rows, features=make_features(SlaqRow))
            write_folder(folder, [subset], card=written_topics_card())
        counts = {"topics": len(topics)}
        if not is_reviewed:
            counts["doubtful topics"] = len(doubtful)
        return writer.WritingSummary(counts=counts, left_out=left_out)


def topic_prompt(
    article: SlaqArticle,
    *,
    prompts: str = OWN_WORDS,
    max_characters: int | None = None,
    previous: str = "",
    faults: tuple[str, ...] = (),
    attempt: int = 1,
) -> Prompt:
    """Return the request for the questions on one article.

    The rules are those of SLAQ's appendix A.1 and table 1 in the wording of this package, with the
    entity flags, which the paper's authors assigned afterwards; or table 1 verbatim.

    Args:
        article: The article.
        prompts: "own", or "paper" for the paper's wording.
        max_characters: Maximum number of characters of the article, which is cut at the end of a
            paragraph, sentence or word; None for no limit.
        previous: The earlier answer that is to be corrected; "" for a first request.
        faults: The faults of that answer.
        attempt: Number of the request, from 1: part of the prompt's id.

    Returns:
        A conversation under `<topic id>/write/<attempt>`.
    """
    text = article.text if max_characters is None else _cut(article.text, max_characters)
    is_own = prompts == OWN_WORDS
    words = _REQUEST.read_text(encoding="utf-8") if is_own else paper_prompt("slaq_writer")
    request = fill_holes(words.removesuffix("\n"), {"title": article.title, "text": text})
    turns = [Message(role="user", content=request)]
    if previous:
        listed = "\n".join(f"- {fault}" for fault in faults)
        complaint = (
            f"These rules are broken:\n{listed}\n\nWrite the whole answer again, in the same "
            "layout, with these faults mended and everything else as it was."
        )
        turns.append(Message(role="assistant", content=previous))
        turns.append(Message(role="user", content=complaint))
    return Prompt(id=f"{article.topic_id}/write/{attempt}", messages=tuple(turns))


def _cut(text: str, limit: int) -> str:
    """Cut a text at the last paragraph, sentence or word that ends within the limit."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    for mark in ("\n\n", ". ", " "):
        place = head.rfind(mark)
        if place > limit // 2:
            return head[: place + (mark == ". ")].rstrip()
    return head


def _row_of(field: str) -> str:
    """Return the row of the sheet that contains a text such as "ShortQ2"; a sixth is in "long"."""
    number = field.removeprefix("ShortQ").removeprefix("ShortA")
    return number if number in ("1", "2", "3", "4", "5") else _LONG
