"""Published sources to records: RedirectQA, PopQA, SLAQ, bundled samples; records as Parquet."""

from surface_consistency.data.columns import POPQA_COLUMNS, REDIRECTQA_COLUMNS, resolve_columns
from surface_consistency.data.features import features_of, read_parquet, to_parquet
from surface_consistency.data.hub_rows import RedirectQARow, hub_rows
from surface_consistency.data.popqa import PopQA, load_popqa
from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa, redirectqa_from
from surface_consistency.data.sample import SAMPLE_PATH, load_sample
from surface_consistency.data.slaq import Slaq, load_slaq, load_slaq_sample
from surface_consistency.data.sources import open_source

__all__ = [
    "POPQA_COLUMNS",
    "REDIRECTQA_COLUMNS",
    "SAMPLE_PATH",
    "PopQA",
    "RedirectQA",
    "RedirectQARow",
    "Slaq",
    "features_of",
    "hub_rows",
    "load_popqa",
    "load_redirectqa",
    "load_sample",
    "load_slaq",
    "load_slaq_sample",
    "open_source",
    "read_parquet",
    "redirectqa_from",
    "resolve_columns",
    "to_parquet",
]
