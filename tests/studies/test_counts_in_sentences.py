"""Numbers of rows in sentences on a difference between two groups."""

from types import SimpleNamespace

import pandas as pd
import pytest

from surface_consistency.studies.lexical.popularity import PopularityAnalysis
from surface_consistency.studies.linking.consistency import LinkingConsistency
from surface_consistency.tables.numbers import sentence_text

REPORT = SimpleNamespace(words={"clusters": "subjects", "confidence": 0.95}, index={"m": 0})
ESTIMATE = {"difference": 0.2, "difference_low": 0.1, "difference_high": 0.3, "n_clusters": 40}
LINKED = {"template": "original", "pairs": "all", "n_linked": 70, "n_not_linked": 50}
RARE = {"task": "copa", "wording": "original", "n_low": 70, "n_high": 50}
TABLES = {"popularity_shift": [], "popularity_paired": [], "popularity_distribution": []}


@pytest.mark.parametrize(
    ("analysis", "table", "counts", "compared"),
    [
        (LinkingConsistency(), "linking_vs_consistency", LINKED, "120 pairs, 40 subjects"),
        (PopularityAnalysis(), "popularity_accuracy", RARE, "120 instances, 40 subjects"),
    ],
)
def test_sentence_on_two_groups_counts_the_rows_of_both(analysis, table, counts, compared):
    rows = {**TABLES, table: [{"model": "m", **ESTIMATE, **counts}]}
    tables = {name: SimpleNamespace(frame=pd.DataFrame(frame)) for name, frame in rows.items()}

    first = next(iter(analysis.figures(REPORT, tables)))

    assert f"; {compared})" in sentence_text(first.parts)
