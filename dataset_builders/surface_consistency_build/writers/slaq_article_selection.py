"""Select articles for the question writer from dumps, by category, length and page views."""

import hashlib
import heapq
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pydantic import Field

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.errors import DataError
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.wikimedia.anchors import plain_text
from surface_consistency_build.wikimedia.pages_xml import WikiPage, read_pages
from surface_consistency_build.wikimedia.pageviews import read_pageviews
from surface_consistency_build.wikimedia.wikitext import category_links, rendered_part
from surface_consistency_build.writers.slaq_articles import clean_article, is_long_enough


class ArticleSettings(Settings):
    """Settings for the selection of articles."""

    categories: tuple[str, ...] = Field(strict=False, min_length=1)
    """Categories of the wiki without namespace; an article in several categories counts for the
    first."""

    candidates: int | None = Field(default=None, ge=1)
    """Number of articles drawn at random from the sufficiently long ones of a category; by default
    all."""

    per_half: int | None = Field(default=None, ge=1)
    """Number of most viewed and of least viewed articles to keep per category; by default all."""

    project: str = "en.wikipedia"
    """Project in the pageview files and host of the articles' URLs."""

    min_words: int = Field(default=1000, ge=0)
    """Number of words that an article must exceed."""

    min_characters: int = Field(default=1000, ge=0)
    """Minimum number of characters of an article."""

    seed: int = 0
    """Random seed of the draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleSelection:
    """The selected articles, and the numbers of others."""

    articles: tuple[SlaqArticle, ...]
    """By category in the given order, then by page views, the most viewed first."""

    n_in_category: Counter[str] = field(default_factory=Counter)
    """Number of articles of each category in the dump, including short ones."""

    n_long_enough: Counter[str] = field(default_factory=Counter)
    """Number of sufficiently long articles of each category."""

    n_without_views: int = 0
    """Number of drawn articles that are in no pageview file; they count as 0 views."""


@dataclass(order=True, slots=True)
class _Drawn:
    """A drawn article; the first one of the heap is replaced next."""

    place: int
    article: SlaqArticle = field(compare=False)


def select_articles(
    pages: str | os.PathLike[str],
    pageviews: Sequence[str | os.PathLike[str]] = (),
    *,
    settings: ArticleSettings,
) -> ArticleSelection:
    """Select articles as SLAQ does (arXiv 2510.11218, section 3.2 and appendix A.1).

    Main-namespace pages of each category are drawn at random from the sufficiently long ones. Their
    views are summed over the files, and the most and the least viewed articles are kept. The paper
    lists categories with the wiki's interface. This function reads them from a page's text, so
    articles whose category is added by a template, and those of subcategories, are not found.

    Args:
        pages: `pages-articles` dump, compressed or not; it is read once.
        pageviews: Files of `pageview_complete`, daily or monthly; without any, views are unknown.
        settings: Settings of the selection.

    Returns:
        The articles. Only drawn articles are in memory.

    Raises:
        SourceNotFoundError: If a file does not exist.
        DataError: If a file is damaged or has another format.
        DataError: If a category has no sufficiently long article, `per_half` is given without page
            views, or no article is in the pageview files.
    """
    if settings.per_half is not None and not pageviews:
        raise DataError("per_half selects the most and least viewed articles; give pageview files")
    wanted = {_spelled(name): name for name in settings.categories}
    drawn: dict[str, list[_Drawn]] = {name: [] for name in wanted.values()}
    n_in, n_long = Counter[str](), Counter[str]()
    for page in read_pages(pages):
        if page.redirect is not None:
            continue
        links = category_links(rendered_part(page.text), page.site)
        category = next((name for key, name in wanted.items() if key in links), None)
        if category is None:
            continue
        n_in[category] += 1
        article = _article(page, category, settings)
        if article is None:
            continue
        n_long[category] += 1
        _draw(drawn[category], article, settings)
    if empty := [name for name, items in drawn.items() if not items]:
        counts = ", ".join(f"{name}: {n_in[name]} articles" for name in empty)
        raise DataError(
            f"no article of more than {settings.min_words} words in {counts}; check the spelling "
            "of the categories in the dump, name narrow ones before wide ones (an article in "
            "several counts for the first), or lower the limits"
        )
    views = _views(drawn.values(), pageviews, settings.project) if pageviews else None
    if views is not None and not views:
        raise DataError(
            f"no drawn article has a line of {settings.project} in the pageview files; give files "
            "of that wiki, or set its name with --project"
        )
    articles = [
        article for items in drawn.values() for article in _ends(items, views, settings.per_half)
    ]
    return ArticleSelection(
        articles=tuple(articles),
        n_in_category=n_in,
        n_long_enough=n_long,
        n_without_views=0
        if views is None
        else sum(item.article.title not in views for items in drawn.values() for item in items),
    )


def _spelled(category: str) -> str:
    """Return a category's name in the spelling of its links."""
    name = category.replace("_", " ").strip()
    return name[:1].upper() + name[1:]


def _article(page: WikiPage, category: str, settings: ArticleSettings) -> SlaqArticle | None:
    """Extract the running text of a page; None if it is too short."""
    if len(page.text) < max(settings.min_characters, 1):
        return None
    text = clean_article(plain_text(page.text, page.site))
    if not text:
        return None
    article = SlaqArticle(
        title=page.title,
        category=category,
        text=text,
        url=f"https://{settings.project}.org/wiki/{quote(page.title.replace(' ', '_'))}",
    )
    limits = {"min_words": settings.min_words, "min_characters": settings.min_characters}
    return article if is_long_enough(article, **limits) else None


def _draw(items: list[_Drawn], article: SlaqArticle, settings: ArticleSettings) -> None:
    """Keep the articles with the smallest seeded hashes: a sample independent of the page order."""
    digest = hashlib.blake2b(f"{settings.seed}\0{article.title}".encode(), digest_size=8).digest()
    item = _Drawn(-int.from_bytes(digest), article)
    if settings.candidates is None or len(items) < settings.candidates:
        heapq.heappush(items, item)
    else:
        heapq.heappushpop(items, item)


def _views(
    drawn: Iterable[list[_Drawn]], files: Sequence[str | os.PathLike[str]], project: str
) -> dict[str, int]:
    """Sum the views of the drawn articles by title."""
    titles = {
        item.article.title.replace(" ", "_").encode(): item.article.title
        for items in drawn
        for item in items
    }
    views: Counter[str] = Counter()
    for file in files:
        for batch in read_pageviews(Path(file), project=project):
            counts = zip(batch["title"].to_pylist(), batch["views"].to_pylist(), strict=True)
            for title, n_views in counts:
                if title in titles:
                    views[titles[title]] += n_views
    return dict(views)


def _ends(
    items: Iterable[_Drawn], views: dict[str, int] | None, per_half: int | None
) -> list[SlaqArticle]:
    """Set the views of each article, and keep the most and the least viewed ones."""
    articles = sorted(
        (
            item.article
            if views is None
            else item.article.model_copy(update={"pageviews": views.get(item.article.title, 0)})
            for item in items
        ),
        key=lambda article: (-(article.pageviews or 0), article.title),
    )
    if per_half is None or len(articles) <= 2 * per_half:
        return articles
    return articles[:per_half] + articles[-per_half:]
