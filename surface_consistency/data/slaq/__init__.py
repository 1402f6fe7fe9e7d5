"""SLAQ: loading it, a bundled sample, and what a builder of such data needs."""

from surface_consistency.data.slaq.articles import clean_article, long_enough, read_articles
from surface_consistency.data.slaq.columns import SLAQ_COLUMNS
from surface_consistency.data.slaq.load import SLAQ_ID, Slaq, load_slaq, slaq_from
from surface_consistency.data.slaq.markup import has_markup, without_markup
from surface_consistency.data.slaq.popularity import popularity_halves
from surface_consistency.data.slaq.review import ReviewItem, write_review_sheet
from surface_consistency.data.slaq.rows import SlaqRow, slaq_rows, write_slaq_csv
from surface_consistency.data.slaq.rules import Violation, check_topic
from surface_consistency.data.slaq.sample import SLAQ_SAMPLE_PATH, load_slaq_sample
from surface_consistency.data.slaq.written import (
    WrittenFact,
    WrittenTopic,
    parse_written,
    topic_from_written,
)

__all__ = [
    "SLAQ_COLUMNS",
    "SLAQ_ID",
    "SLAQ_SAMPLE_PATH",
    "ReviewItem",
    "Slaq",
    "SlaqRow",
    "Violation",
    "WrittenFact",
    "WrittenTopic",
    "check_topic",
    "clean_article",
    "has_markup",
    "load_slaq",
    "load_slaq_sample",
    "long_enough",
    "parse_written",
    "popularity_halves",
    "read_articles",
    "slaq_from",
    "slaq_rows",
    "topic_from_written",
    "without_markup",
    "write_review_sheet",
    "write_slaq_csv",
]
