"""Topics from articles: any runner writes, the paper's rules check, a person reviews.

The making of SLAQ (arXiv 2510.11218, section 3.2 and appendix A.1), with a request to mend what
breaks a rule, and every answer of the writer in a log that a second start goes on from.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator

from surface_consistency.data.slaq import popularity_halves
from surface_consistency.data.slaq_records import SlaqArticle, SlaqTopic
from surface_consistency.data.slaq_rows import write_slaq_csv
from surface_consistency.engine.judging.judges import generate_cached
from surface_consistency.engine.judging.paper_prompts import OWN_WORDS, pin_prompts
from surface_consistency.errors import DataError, RecordError
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import DataSource, Generation, GenerationParams, Prompt
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.writers.slaq_articles import is_long_enough
from surface_consistency_build.writers.slaq_prompts import PAPER_LAYOUT, WriterLayout, writer_prompt
from surface_consistency_build.writers.slaq_review import (
    ReviewItem,
    read_review_sheet,
    write_review_sheet,
)
from surface_consistency_build.writers.slaq_rules import check_topic
from surface_consistency_build.writers.slaq_written import (
    WrittenTopic,
    parse_written,
    topic_from_written,
)

_EMPTY: Final = WrittenTopic(facts=(), long_question=None, long_answer=None)


def _writing(prompts: str) -> str:
    """Name the writer's prompt with its digest; refuse what is no preset."""
    return pin_prompts(prompts, "writer")


class WriterSettings(Settings):
    """How topics are written."""

    max_new_tokens: int = Field(default=2048, ge=1)
    """Most tokens of an answer: room for five pairs and two long texts."""

    layout: WriterLayout = "json"
    """Layout that the writer is asked for."""

    prompts: Annotated[str, AfterValidator(_writing)] = OWN_WORDS
    """Words of the request: own, or paper for those of the paper's table 1, in one line; kept with
    the digest of the text."""

    attempts: int = Field(default=2, ge=1)
    """Requests an article at most: the first, and one more for each mending; 1 by default with
    --prompts paper, since requests to mend are in this package's words."""

    min_words: int = Field(default=1000, ge=0)
    """Articles must have more words than this."""

    min_characters: int = Field(default=1000, ge=0)
    """Articles must have at least so many characters."""

    max_characters: int | None = Field(default=None, ge=1)
    """Where long articles are cut; by default they are sent whole."""

    @model_validator(mode="before")
    @classmethod
    def _in_words_of_paper(cls, given: Any) -> Any:  # noqa: ANN401 - not yet checked
        """Take the layout and the one request of the paper; refuse another layout."""
        if not isinstance(given, Mapping) or given.get("prompts", OWN_WORDS) == OWN_WORDS:
            return given
        if given.get("layout", PAPER_LAYOUT) != PAPER_LAYOUT:
            raise ValueError(
                f"`layout` {given['layout']} contradicts `prompts` {given['prompts']}, whose words "
                f"ask for {PAPER_LAYOUT}; leave one of them out"
            )
        return {"attempts": 1, **given, "layout": PAPER_LAYOUT}

    @property
    def params(self) -> GenerationParams:
        """Greedy decoding that nothing but the budget ends."""
        return GenerationParams(max_new_tokens=self.max_new_tokens, stop=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingSummary:
    """What came of the articles."""

    topics: tuple[SlaqTopic, ...]
    """Topics that break no rule, with popularity halves among themselves: `test.csv`."""

    doubtful: tuple[SlaqTopic, ...]
    """Complete topics that break a rule: `doubtful.csv`, to be mended by hand."""

    unwritten: tuple[str, ...]
    """Titles of articles without a complete topic."""

    too_short: tuple[str, ...]
    """Titles of articles that were not asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSummary:
    """What came of a review."""

    topics: tuple[SlaqTopic, ...]
    """Topics that passed, with popularity halves among themselves: `test.csv`."""

    refused: dict[str, str]
    """Topics that are left out, by title, and why."""

    n_corrected: int
    """Rows of the sheet with a text of the reviewer's."""


@dataclass(slots=True)
class _Draft:
    """Where one article stands."""

    article: SlaqArticle
    text: str | None = None
    item: ReviewItem | None = None

    def faults(self) -> tuple[str, ...]:
        """Say what is to be mended."""
        if self.item is None:
            return ("The answer holds no questions in the layout asked for.",)
        return tuple(dict.fromkeys(fault.message for fault in self.item.violations))


def write_topics(
    articles: Iterable[SlaqArticle],
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: WriterSettings | None = None,
    progress: bool = False,
) -> WritingSummary:
    """Let a runner write the questions of each article, check them, and write the files.

    Started again with the same arguments it asks only what is not in the log.

    Args:
        articles: Articles with different titles, cleaned, such as `read_articles` yields.
        runner: Who writes.
        out: Folder for `test.csv`, `doubtful.csv`, `review.csv`, `review.html` and `writer.jsonl`.
        model: Label of the writer.
        settings: How; None for the defaults.
        progress: Whether to show a progress bar on a terminal.

    Returns:
        What was written.

    Raises:
        DataError: If two articles have one title, none is long enough, or a reviewer has written
            into the `review.csv` of an earlier start.
        RunMismatchError: If the folder holds a run with other settings or articles.
    """
    settings = settings or WriterSettings()
    drafts, too_short = _drafts(articles, settings)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "writer.jsonl"
    for attempt in range(1, settings.attempts + 1):
        pending = [draft for draft in drafts if draft.item is None or draft.item.violations]
        prompts = [_prompt(draft, settings, attempt) for draft in pending]
        answers = generate_cached(
            runner,
            prompts,
            settings.params,
            log,
            manifest_path=log.with_suffix(".manifest.json"),
            model=model,
            data=_articles(drafts),
            study="slaq-writer",
            settings=settings.model_dump(include={"layout", "prompts", "max_characters"}),
            progress=progress,
        )
        _take(pending, prompts, answers)
    return _finish(drafts, too_short, folder)


def apply_review(
    sheet: str | os.PathLike[str],
    articles: Iterable[SlaqArticle],
    out: str | os.PathLike[str],
) -> ReviewSummary:
    """Make the data set of what a reviewer left.

    The reviewer's texts take the place of the writer's, and every topic is checked again. A topic
    is left out where a row was found not open-domain or not grounded and not corrected, a text is
    missing, or a rule is broken in a row that the reviewer did not confirm with yes and yes.

    Args:
        sheet: The review sheet, filled in; see `read_review_sheet`.
        articles: The articles that the topics were written from.
        out: Folder for `test.csv`.

    Returns:
        The topics, and those that are left out.

    Raises:
        DataError: If the sheet names a topic without an article, or no topic is left; and whatever
            `read_review_sheet` raises.
    """
    by_id = {article.topic_id: article for article in articles}
    reviewed = read_review_sheet(sheet)
    if unknown := sorted(set(reviewed) - set(by_id)):
        raise DataError(
            f"{sheet}: no article for topic {unknown[0]!r} (and {len(unknown) - 1} more); give the "
            "articles that the sheet was written from"
        )
    topics: list[SlaqTopic] = []
    refused: dict[str, str] = {}
    for topic, review in reviewed.items():
        article = by_id[topic]
        broken = [
            fault
            for fault in check_topic(review.written, article)
            if _row_of(fault.field) not in review.confirmed
        ]
        try:
            made = topic_from_written(review.written, article)
        except RecordError as error:
            refused[article.title] = str(error)
            continue
        if review.refused:
            refused[article.title] = f"the reviewer refused row {', '.join(sorted(review.refused))}"
        elif broken:
            refused[article.title] = "; ".join(dict.fromkeys(fault.message for fault in broken))
        else:
            topics.append(made)
    if not topics:
        raise DataError(f"{sheet}: no topic is left: {next(iter(refused.values()))}")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    write_slaq_csv(folder / "test.csv", topics)
    return ReviewSummary(
        topics=popularity_halves(topics),
        refused=refused,
        n_corrected=sum(len(review.corrected) for review in reviewed.values()),
    )


def _row_of(field: str) -> str:
    """Name the row of the sheet that holds a field such as "ShortQ2"."""
    return field[len("ShortQ") :] if field.startswith("Short") else "long"


def _drafts(
    articles: Iterable[SlaqArticle], settings: WriterSettings
) -> tuple[list[_Draft], list[str]]:
    """Sort out short articles and refuse titles that stand twice."""
    drafts: dict[str, _Draft] = {}
    too_short: list[str] = []
    limits = {"min_words": settings.min_words, "min_characters": settings.min_characters}
    for article in articles:
        if not is_long_enough(article, **limits):
            too_short.append(article.title)
        elif article.topic_id in drafts:
            raise DataError(f"two articles are called {article.title!r}; topics are unique")
        else:
            drafts[article.topic_id] = _Draft(article)
    if not drafts:
        raise DataError(
            f"no article has more than {settings.min_words} words and at least "
            f"{settings.min_characters} characters ({len(too_short)} are shorter); give longer "
            "ones or lower the limits"
        )
    return list(drafts.values()), too_short


def _articles(drafts: Sequence[_Draft]) -> DataSource:
    """Sum up what is written from."""
    digest = hashlib.sha256()
    for draft in sorted(drafts, key=lambda one: one.article.topic_id):
        digest.update(draft.article.model_dump_json().encode("utf-8", "replace"))
    return DataSource(
        id="articles", revision=None, digest=digest.hexdigest(), n_questions=len(drafts)
    )


def _prompt(draft: _Draft, settings: WriterSettings, attempt: int) -> Prompt:
    """Ask for a topic, or for a better one."""
    has_text = bool(draft.text)
    return writer_prompt(
        draft.article,
        layout=settings.layout,
        prompts=settings.prompts,
        max_characters=settings.max_characters,
        previous=draft.text if has_text else None,
        faults=draft.faults() if has_text else (),
        attempt=attempt,
    )


def _take(
    drafts: Sequence[_Draft], prompts: Sequence[Prompt], answers: Mapping[str, Generation]
) -> None:
    """Read the answers; one that breaks as many rules as the one before is not taken."""
    for draft, prompt in zip(drafts, prompts, strict=True):
        answer = answers.get(prompt.key)
        text = None if answer is None else answer.text
        if text is None:
            continue
        item = _item(draft.article, text)
        if draft.item is None or (
            item is not None and len(item.violations) < len(draft.item.violations)
        ):
            draft.item, draft.text = item, text


def _item(article: SlaqArticle, text: str) -> ReviewItem | None:
    """Parse and check one answer; None when there is nothing in it."""
    try:
        written = parse_written(text)
    except RecordError:
        return None
    violations = check_topic(written, article)
    return ReviewItem(article=article, written=written, violations=tuple(violations))


def _finish(drafts: Sequence[_Draft], too_short: Sequence[str], folder: Path) -> WritingSummary:
    """Write topics and review sheet."""
    topics: list[SlaqTopic] = []
    doubtful: list[SlaqTopic] = []
    unwritten, items = [], []
    for draft in drafts:
        item = draft.item or ReviewItem(
            article=draft.article,
            written=_EMPTY,
            violations=tuple(check_topic(_EMPTY, draft.article)),
        )
        items.append(item)
        try:
            topic = topic_from_written(item.written, draft.article)
        except RecordError:
            unwritten.append(draft.article.title)
            continue
        (doubtful if item.violations else topics).append(topic)
    write_review_sheet(items, folder)
    write_slaq_csv(folder / "test.csv", topics)
    write_slaq_csv(folder / "doubtful.csv", doubtful)
    return WritingSummary(
        topics=popularity_halves(topics),
        doubtful=tuple(doubtful),
        unwritten=tuple(unwritten),
        too_short=tuple(too_short),
    )
