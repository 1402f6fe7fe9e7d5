"""Repeated answers to identical prompts: the test-retest flip rate and pass^k."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from surface_consistency.metrics._groups import column_names, has_list_cells
from surface_consistency.metrics.forms.form_groups import forms_by
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_ENDS: Final = ("", "_low", "_high")


def repeats_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    prompt: str | Sequence[str] = "item",
    repeat: str = "repeat",
    score: str = "correct",
    cluster: str | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Return the test-retest flip rate and pass^k of repeated answers to a prompt, for each group.

    Args:
        frame: One row per answer.
        by: Columns of the groups, as for `forms_by`.
        prompt: Column of the prompt, or columns that identify it together within a group.
        repeat: Column that numbers the answers to a prompt.
        score: Column of scores: 0, 1, or missing.
        cluster: Column of dependent prompts; None for independent prompts.
        intervals: As for `forms_by`.

    Returns:
        One row per group: test_retest_flip_rate and pass_k, with bounds; k; n_prompts, n_clusters
        and not_inferred. All prompts have equal weights; prompts with fewer than two scored repeats
        are excluded.

    Raises:
        ColumnNotFoundError: As for `forms_by`.
        ValueError: As for `forms_by`.

    Notes:
        The flip rate is the probability that two repeats of a prompt, drawn without replacement,
        differ. pass^k is the probability that k repeats, drawn in the same way, are all correct; k
        is the smallest number of scored repeats of the prompts of all groups.

    References:
        Yao et al., "tau-bench", arXiv 2406.12045 (pass^k).

    Examples:
        >>> frame = pd.DataFrame({"item": [1, 1, 2, 2], "repeat": [1, 2] * 2,
        ...                       "correct": [1, 0, 1, 1]})
        >>> repeats_by(frame)[["test_retest_flip_rate", "pass_k", "k"]].values.tolist()
        [[0.5, 0.5, 2.0]]
    """
    keys, prompts = column_names(by), column_names(prompt)
    labels = [name for name in keys if not has_list_cells(frame[name])]
    scored = frame[frame[score].notna()]
    sizes = scored.groupby([*labels, *prompts], dropna=False, observed=True).size()
    k = int(sizes[sizes > 1].min()) if (sizes > 1).any() else 2
    table = forms_by(
        frame, by=keys, item=prompts, form=repeat, score=score, cluster=cluster, of=k,
        intervals=intervals,
    )  # fmt: skip
    ends = zip(_ENDS, ("", "_high", "_low"), strict=True)
    flips = {f"test_retest_flip_rate{end}": 1 - table[f"consistency{of}"] for end, of in ends}
    passes = {f"pass_k{end}": table[f"all_correct_of{end}"] for end in _ENDS}
    counts = table[["n_items", "n_clusters", "not_inferred"]].rename(
        columns={"n_items": "n_prompts"}
    )
    return table[keys].assign(**flips, **passes, k=k).join(counts)
