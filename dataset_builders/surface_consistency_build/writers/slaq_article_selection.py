"""Articles for the question writer out of a wiki's dumps: by category, length and page views."""

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
    """Which articles are taken."""

    categories: tuple[str, ...] = Field(strict=False, min_length=1)
    """Categories of the wiki without namespace; an article in several counts for the first."""

    candidates: int | None = Field(default=None, ge=1)
    """Articles drawn at random from those of a category that are long enough; all by default."""

    per_half: int | None = Field(default=None, ge=1)
    """Articles kept of each category from either end of the page views; all by default."""

    project: str = "en.wikipedia"
    """Project in the pageview files and host of the articles' addresses."""

    min_words: int = Field(default=1000, ge=0)
    """Articles must have more words than this."""

    min_characters: int = Field(default=1000, ge=0)
    """Articles must have at least so many characters."""

    seed: int = 0
    """Seed of the draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleSelection:
    """The articles, and what was left out."""

    articles: tuple[SlaqArticle, ...]
    """By category in the order asked for, then by page views, the most viewed first."""

    n_in_category: Counter[str] = field(default_factory=Counter)
    """Articles of each category in the dump, short ones included."""

    n_long_enough: Counter[str] = field(default_factory=Counter)
    """Those of them that are long enough."""

    n_without_views: int = 0
    """Articles of the draw that no pageview file names; they count as 0 views."""


@dataclass(order=True, slots=True)
class _Drawn:
    """An article of the draw; the heap's first is the one that goes next."""

    place: int
    article: SlaqArticle = field(compare=False)


def select_articles(
    pages: str | os.PathLike[str],
    pageviews: Sequence[str | os.PathLike[str]] = (),
    *,
    settings: ArticleSettings,
) -> ArticleSelection:
    """Select articles as SLAQ does (arXiv 2510.11218, section 3.2 and appendix A.1).

    Main-namespace pages of each category, drawn at random among those that are long enough;
    their views are summed over the files, and from either end the most and the least viewed are
    kept. The paper lists categories by the wiki's interface; here the membership is what a page's
    own text says, so articles that only a template puts into a category are not seen, and neither
    are those of subcategories.

    Args:
        pages: `pages-articles` dump, packed or not; it is read once.
        pageviews: Files of `pageview_complete`, daily or monthly; without any, views are unknown.
        settings: Which articles.

    Returns:
        The articles. Memory holds those of the draw alone.

    Raises:
        SourceNotFoundError: If a file is not there.
        DataError: If a file is damaged or of another kind.
        DataError: If a category has no article that is long enough, `per_half` is asked for without
            page views, or the pageview files name none of the articles.
    """
    if settings.per_half is not None and not pageviews:
        raise DataError("per_half takes the most and least viewed articles: give pageview files")
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
            f"no article of the draw has a line of {settings.project} in the pageview files; give "
            "files of that wiki, or its name by --project"
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
    """Write a category's name as its links do."""
    name = category.replace("_", " ").strip()
    return name[:1].upper() + name[1:]


def _article(page: WikiPage, category: str, settings: ArticleSettings) -> SlaqArticle | None:
    """Reduce a page to its running text; None when it is too short."""
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
    """Keep the articles of the smallest seeded hashes: a sample that no order of pages changes."""
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
    """Give each article its views, and keep the most and the least viewed."""
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
