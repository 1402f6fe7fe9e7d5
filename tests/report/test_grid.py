import re

import pandas as pd

from surface_consistency.metrics.paired_groups import paired_by
from surface_consistency.report._grid import grid


def _cells(markup, row):
    """Return the text of the cells of a table row."""
    line = re.findall(r"<tr>(.*?)</tr>", markup)[row]
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)]


def test_grid_is_percent_with_intervals_for_paired_metrics(make_outcomes):
    """Rates show times 100 with their bounds, counts as they are, derived columns not at all."""
    verdicts = [(True, True), (True, False), (False, False), (False, True), (True, True)]
    outcomes = make_outcomes(verdicts * 4)
    table = paired_by(outcomes, by=["relation"], n_resamples=500)

    markup = grid(table, caption="By relation", sources=["signature"])

    row = table.iloc[0]
    low, high = 100 * row["consistency_low"], 100 * row["consistency_high"]
    cells = _cells(markup, 2)
    assert cells[:4] == ["occupation", "10", "10", f"60.0 [{low:.1f}, {high:.1f}]"]
    assert cells[9:13] == ["4", "2", "2", "2"]
    assert "place of birth" in markup
    assert "flip" not in markup
    assert "<caption>By relation</caption>" in markup
    assert '<p class="source">signature</p>' in markup


def test_grid_is_generic_for_other_tables():
    """Columns named as rates show in percent, bounds join their rate, labels come first."""
    frame = pd.DataFrame(
        {
            "n": [1200, 5],
            "flip_rate": [0.25, None],
            "flip_rate_low": [0.2, None],
            "flip_rate_high": [0.3, None],
            "rule": ["popqa", "<b>"],
            "n_differ": [3, 4],
            "seconds": [1.5, 2000.0],
        }
    )

    markup = grid(frame, caption="Rules", sources=[])

    assert _cells(markup, 0) == ["rule", "n", "flip rate, %", "differ", "seconds"]
    assert _cells(markup, 2) == ["popqa", "1,200", "25.0 [20.0, 30.0]", "3", "1.5"]
    assert _cells(markup, 3) == ["&lt;b&gt;", "5", "–", "4", "2,000"]


def test_grid_is_grouped_by_its_first_column():
    """Rows that share their first value share one head, which names how many they are."""
    frame = pd.DataFrame({"type": ["typical_errors"] * 2 + ["x"], "model": ["a", "b", "a"]})

    markup = grid(frame, caption="Groups", sources=["one", "two", "three"])

    assert markup.count("<tbody>") == 2
    assert 'scope="rowgroup" rowspan="2" class="label"><bdi>Typical errors</bdi>' in markup
    assert 'scope="row" rowspan="1" class="label"><bdi>x</bdi>' in markup
    assert "<summary>Made from 3 runs</summary>" in markup
