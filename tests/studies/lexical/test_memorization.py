"""What the analysis of memorization draws."""

from types import SimpleNamespace

import pandas as pd

from surface_consistency.studies.lexical.memorization import MemorizationAnalysis


def test_tasks_and_scores_are_drawn_in_the_order_of_their_table():
    """Neither is the order of the alphabet: the baseline comes first, then the paper's scores."""
    scores = ["loss", "extraction", "min_k"]
    frame = pd.DataFrame({"task": ["other"] * 3 + ["next_word"] * 3, "score": scores * 2})
    frame = frame.assign(model="m", n=40, macro_f1=0.5, baseline=0.5)
    tables = {"memorisation_prediction": SimpleNamespace(frame=frame)}

    (chart,) = MemorizationAnalysis().figures(SimpleNamespace(index={"m": 0}), tables)

    labels = ["always the majority", "MIA loss", "TDE likelihood", "Min-K % (not in the paper)"]
    assert [row[0] for row in chart.rows] == ["other", *labels, "next word", *labels]
    assert [row[1] for row in chart.rows] == [0, 1, 1, 1, 1] * 2
    assert [len(row[2]) for row in chart.rows] == [0, 1, 1, 1, 1] * 2
