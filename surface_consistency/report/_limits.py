"""The end of the report page: what was left out, and how to read the numbers."""

from surface_consistency.report._markup import Html, join, tag
from surface_consistency.report._page import Page
from surface_consistency.report.run import StudyRun
from surface_consistency.taxonomy import UNKNOWN_TYPE

__all__ = ["how_to_read", "labels_note", "left_out"]

_CLUSTERS = {"fact_id": "facts", "subject_id": "subjects"}


def labels_note(page: Page) -> Html:
    """Say how pairs with several or no labels count."""
    labels = {
        pair: (len(categories), types)
        for run in page.runs
        for pair, categories, types in zip(
            *(run.outcomes[name] for name in ("pair_id", "categories", "types")), strict=True
        )
    }
    several = sum(n > 1 for n, _ in labels.values())
    without = sum(n == 0 for n, _ in labels.values())
    unknown = sum(UNKNOWN_TYPE in types for _, types in labels.values())
    said = (
        f"Of {len(labels):,} pairs, {several:,} carry several redirect categories and count in "
        "each of them, so that the rows of types and categories may add up to more than all pairs."
    )
    if without:
        said += f' {without:,} carry none and stand under "none".'
    if unknown:
        said += f' {unknown:,} have a category outside the 33, of the type "{UNKNOWN_TYPE}".'
    return tag("p", said)


def left_out(page: Page) -> Html:
    """Count what entered no rate: missing verdicts, questions without a pair, absent pairs."""
    import pandas as pd

    everything = {pair for run in page.runs for pair in run.outcomes["pair_id"]}
    rows = [_losses(run, everything) for run in page.runs]
    notes = [
        "A pair enters the rates when both of its answers have a verdict; the others are counted "
        "here. A question is in no pair when the data hold no canonical question, or no redirect, "
        "of the same fact and template.",
    ]
    if len(page.runs) == 1:
        rows = [{k: v for k, v in row.items() if k != "n_only_in_other_runs"} for row in rows]
    else:
        notes.append("Pairs only in other runs are on this page, but not of that run.")
    table = page.grid(pd.DataFrame(rows), "Pairs and questions left out")
    return join([tag("p", " ".join(notes)), table])


def _losses(run: StudyRun, everything: set[str]) -> dict[str, object]:
    """Count the losses of one run."""
    pairs = run.outcomes
    first, second = pairs["first_correct"].isna(), pairs["second_correct"].isna()
    n_asked = len(pairs) + len(pairs[["fact_id", "template"]].drop_duplicates())
    n_questions = run.manifest.data.n_questions
    return {
        "run": run.label,
        "n_pairs": len(pairs),
        "n_scored": int((~first & ~second).sum()),
        "n_without_canonical_verdict": int((first & ~second).sum()),
        "n_without_redirect_verdict": int((~first & second).sum()),
        "n_without_either_verdict": int((first & second).sum()),
        "n_questions_in_no_pair": n_questions - n_asked if n_questions >= n_asked else float("nan"),
        "n_only_in_other_runs": len(everything - set(pairs["pair_id"])),
    }


def how_to_read(page: Page) -> Html:
    """Explain the numbers and their intervals."""
    clusters = _CLUSTERS.get(page.cluster, page.cluster)
    lines = (
        "A pair asks one fact twice, under the canonical name of its subject and under a redirect "
        "to it. It is consistent when both answers are right or both are wrong; two different "
        "wrong answers count as consistent.",
        '"Canonical right" and "canonical wrong" are the consistency among the pairs whose '
        "canonical question is answered right, or wrong.",
        f"Brackets are 95 % intervals from {page.n_resamples:,} bootstrap resamples of whole "
        f"{clusters} (seed {page.seed}), since pairs of one of them share an answer. Intervals "
        "without width come from groups in which no resample differs, or that are very small.",
        "McNemar p tests whether right answers are equally frequent under both names. It takes "
        "pairs for independent and is not corrected for the number of groups.",
        "– stands where nothing defines a value.",
    )
    return tag("ul", *(tag("li", line) for line in lines))
