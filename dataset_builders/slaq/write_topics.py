"""Topics from articles: any runner writes, the paper's rules check, a person reviews.

The making of SLAQ (arXiv 2510.11218, section 3.2 and appendix A.1), with a request to mend what
breaks a rule, and every answer of the writer in a log that a second start goes on from.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import surface_consistency
from surface_consistency.data.slaq import popularity_halves
from surface_consistency.data.slaq_articles import is_long_enough
from surface_consistency.data.slaq_review import ReviewItem, write_review_sheet
from surface_consistency.data.slaq_rows import write_slaq_csv
from surface_consistency.data.slaq_rules import check_topic
from surface_consistency.data.slaq_written import WrittenTopic, parse_written, topic_from_written
from surface_consistency.errors import DataError, RecordError
from surface_consistency.inference.generate import run_prompts
from surface_consistency.inference.runner import Runner
from surface_consistency.prompts.slaq_writer import WriterLayout, writer_prompt
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, GenerationParams, Prompt
from surface_consistency.schemas.slaq import SlaqArticle, SlaqTopic

__all__ = ["WRITER_PARAMS", "WriterSettings", "WritingSummary", "write_topics"]

WRITER_PARAMS: Final = GenerationParams(max_new_tokens=2048, stop=())
"""Greedy, and room for five pairs and two long texts."""

_EMPTY: Final = WrittenTopic(facts=(), long_question=None, long_answer=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How topics are written."""

    params: GenerationParams = WRITER_PARAMS
    """Decoding."""

    layout: WriterLayout = "json"
    """Layout that the writer is asked for."""

    attempts: int = 2
    """Requests an article at most: the first, and one more for each mending."""

    min_words: int = 1000
    """Articles must have more words than this."""

    min_characters: int = 1000
    """Articles must have at least so many characters."""

    max_characters: int | None = None
    """Where long articles are cut; None sends them whole."""


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
        ValueError: If `attempts` is below 1.
        RunMismatchError: If the folder holds a run with other settings or articles.
    """
    settings = settings or WriterSettings()
    if settings.attempts < 1:
        raise ValueError(f"attempts must be at least 1, got {settings.attempts}")
    drafts, too_short = _drafts(articles, settings)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = _manifest(drafts, runner, model, settings)
    with RunLog.open(folder / "writer.jsonl", manifest) as log:
        for attempt in range(1, settings.attempts + 1):
            pending = [draft for draft in drafts if draft.item is None or draft.item.violations]
            prompts = [_prompt(draft, settings, attempt) for draft in pending]
            if prompts:
                run_prompts(runner, prompts, settings.params, log, progress=progress)
            _take(pending, prompts, folder / "writer.jsonl")
    return _finish(drafts, too_short, folder)


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


def _manifest(
    drafts: Sequence[_Draft], runner: Runner, model: str, settings: WriterSettings
) -> RunManifest:
    """Write down what the log depends on."""
    digest = hashlib.sha256()
    for draft in sorted(drafts, key=lambda one: one.article.topic_id):
        digest.update(draft.article.model_dump_json().encode("utf-8", "replace"))
    return RunManifest(
        study="slaq-writer",
        model=model,
        data=DataSource(
            id="articles", revision=None, digest=digest.hexdigest(), n_questions=len(drafts)
        ),
        decoding={"answers": settings.params.model_dump(mode="json")},
        runner=runner.fingerprint(),
        settings={"layout": settings.layout, "max_characters": settings.max_characters},
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _prompt(draft: _Draft, settings: WriterSettings, attempt: int) -> Prompt:
    """Ask for a topic, or for a better one."""
    has_text = bool(draft.text)
    return writer_prompt(
        draft.article,
        layout=settings.layout,
        max_characters=settings.max_characters,
        previous=draft.text if has_text else None,
        faults=draft.faults() if has_text else (),
        attempt=attempt,
    )


def _take(drafts: Sequence[_Draft], prompts: Sequence[Prompt], log: Path) -> None:
    """Read the answers; one that breaks as many rules as the one before is not taken."""
    wanted = {prompt.key for prompt in prompts}
    answers = {
        answer.prompt_key: answer.text
        for answer in read_generations(log)
        if answer.prompt_key in wanted and answer.text is not None
    }
    for draft, prompt in zip(drafts, prompts, strict=True):
        text = answers.get(prompt.key)
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
