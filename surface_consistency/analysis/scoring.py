"""Score the answers in result files as in runs: by reasoning tags, region and rule."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from surface_consistency.analysis.settings import RuleSettings
from surface_consistency.errors import DataError
from surface_consistency.matching.rule import folded
from surface_consistency.models.reasoning import separate_stored
from surface_consistency.reading import shown
from surface_consistency.results.failures import SCORER, with_common_answers
from surface_consistency.results.tables import UNREAD, Unread, unread_problem
from surface_consistency.rows.cells import is_written_list, unsplit_references
from surface_consistency.schemas.prompts import GenerationParams

ITEM: Final = ("task", "item", "form")
"""Columns that identify an observation of a model."""

_NEARLY_ALL: Final = 0.95
"""Minimum proportion of answers written as lists that the finding reports."""
_MANY: Final = 0.05
"""Proportion of labels that differ between two regions, above which the finding reports it."""


class ScoredAnswers(NamedTuple):
    """Answers with scores by a rule."""

    frame: pd.DataFrame
    """One row per answer, with the rule as metric. The predictions do not contain reasoning."""

    doubts: tuple[str, ...]
    """Warnings that the finding reports, as sentences."""

    notes: tuple[str, ...]
    """Further sentences, without their full stop."""


def scored_by_rule(frame: pd.DataFrame, settings: RuleSettings) -> ScoredAnswers:
    """Score answers by a rule, each answer once.

    Args:
        frame: Rows as `read_results` returns them.
        settings: The rule, the region of the answers, and the tags of reasoning.

    Returns:
        The answers; an answer has no score if it failed, has no references or is only reasoning.

    Raises:
        DataError: If no row has an answer and its references, an item has several answers (such as
            those of two filters), references or answers cannot be read, or reasoning cannot be
            separated unambiguously; see `separate_stored`.
    """
    from surface_consistency.matching.verdict_records import match_spans

    rule = str(folded(settings.rule, fold_accents=settings.fold_accents))
    region, key = settings.region, ["model", *ITEM, "repeat"]
    answers, each = frame.drop_duplicates(key), frame.drop_duplicates([*key, "prediction"])
    if len(each) > len(answers):
        named = ", ".join(each.loc[each.duplicated(key, keep=False), "metric"].unique())
        raise DataError(f"`rule` {rule}: {named} have different answers; select one by `metrics`")
    is_given = answers["error"].isna()
    if UNREAD in answers and answers.loc[is_given, UNREAD].notna().any():
        raise DataError(f"`rule` {rule}: {unread_problem(answers.loc[is_given, UNREAD])}")
    references = answers["references"].tolist()
    has_both = answers["prediction"].notna() & (answers["references"].map(len) > 0)
    if not has_both.any():
        raise DataError(
            f"`rule` {rule} scores answers, but no row contains an answer and references; name "
            "their columns by `prediction` and `references`, or omit `rule`"
        )
    _check_references(references, rule)
    answers, n_split = _without_reasoning(answers, settings)
    texts = [None if pd.isna(text) else text for text in answers["prediction"]]
    spans, matched = match_spans(texts, references, rule=rule, region=region)
    scores = pd.Series(matched.is_match, index=answers.index, dtype="float64")
    has_answer = answers["error"].isna() | answers["error"].astype("str").str.startswith(SCORER)
    scores = scores.where(has_answer)
    scored = with_common_answers(answers.assign(metric=rule, score=scores))
    doubts = [*_of_references(scored, references), *_of_lists(scored)]
    if "region" not in settings.model_fields_set:
        rows = [row for row, text in enumerate(texts) if text != spans[row]]
        cut = [texts[row] for row in rows], [references[row] for row in rows]
        whole = scores.copy()
        whole.iloc[rows] = np.array(match_spans(*cut, rule=rule, region="whole")[1].is_match, float)
        of_whole = whole.where(scores.notna())
        doubts += _of_regions(scored, of_whole, rule)
    notes = [f"{rule} scores the {region.replace('_', ' ')} of each answer (`region`)"]
    if n_split:
        notes.append(f"the reasoning of {n_split:,} answers was removed before scoring")
    if n := int((answers["prediction"].isna() & answers["error"].isna()).sum()):
        notes.append(
            f"{n:,} of {len(answers):,} answers are missing (an empty cell of CSV, null, NaN or no "
            "field)"
        )
    if n := sum(not one for one in references):
        notes.append(f"{n:,} of {len(references):,} answers have no references and no score")
    return ScoredAnswers(scored, tuple(doubts), tuple(notes))


def _check_references(references: Sequence[Sequence[str]], rule: str) -> None:
    """Raise an error for references that cannot be read."""
    unread = [one[0] for one in references if one and isinstance(one[0], Unread)]
    if unread:
        raise DataError(
            f"`rule` {rule}: {len(unread):,} of {len(references):,} answers have references that "
            f"cannot be read, first {shown(str(unread[0]))}; write them as text or as a list "
            'of texts in JSON, such as ["UK", "U.K."], or name another column by `references`'
        )


def _without_reasoning(answers: pd.DataFrame, settings: RuleSettings) -> tuple[pd.DataFrame, int]:
    """Remove reasoning from the answers of each model; count the answers that contained it."""
    params = GenerationParams(reasoning_opened=settings.reasoning_opened)
    by_model = answers["prediction"].dropna().groupby(answers["model"], observed=True)
    parts = [separate_stored(texts, params).set_index("prompt_id") for _, texts in by_model]
    replies = pd.concat(parts).reindex(answers.index)
    errors = answers["error"].where(answers["error"].notna(), replies["error"])
    n_split = int(replies["reasoning_source"].notna().sum())
    return answers.assign(prediction=replies["text"], error=errors), n_split


def _of_regions(scored: pd.DataFrame, whole: pd.Series, rule: str) -> Iterator[str]:
    """Report both accuracies if labels by first line and by whole answer differ often."""
    n_differ, n = int((scored["score"] - whole).abs().sum()), int(whole.notna().sum())
    if n_differ <= _MANY * n:
        return
    both = scored.assign(whole=whole).groupby("model", sort=False, observed=True)
    means = both[["score", "whole"]].mean().itertuples()
    listed = "; ".join(
        f"{name} {100 * line:.1f} % and {100 * whole:.1f} %" for name, line, whole in means
    )
    yield (
        f"{n_differ:,} of {n:,} labels differ between the first line of an answer, which is "
        f"scored, and the whole answer: the accuracy by {rule} is, in this order, {listed}. "
        "Choose by `region` first_line or whole, or first_text_line to skip blank lines."
    )


def _of_lists(scored: pd.DataFrame) -> Iterator[str]:
    """Report models whose answers are lists with one text, written as text."""
    answers = scored[scored["prediction"].notna()]
    is_list = answers["prediction"].map(is_written_list)
    for name, part in answers[is_list].groupby("model", sort=False, observed=True):
        n = int((answers["model"] == name).sum())
        if len(part) >= _NEARLY_ALL * n:
            yield (
                f"{len(part):,} of {n:,} answers of {name} are a list of one text, written "
                f"as text, such as {shown(part['prediction'].iloc[0])}, and are scored as they "
                "are; if the text in the list is the answer, replace each prediction by "
                "ast.literal_eval(prediction)[0]."
            )


def _of_references(scored: pd.DataFrame, references: Sequence[Sequence[str]]) -> Iterator[str]:
    """Report texts that may contain several references, and references that equal the question."""
    yield from (f"{sentence}." for sentence in unsplit_references(references))
    n = sum(
        isinstance(question, str) and question.strip().casefold() in map(str.casefold, own)
        for question, own in zip(scored["question"], references, strict=True)
    )
    if n:
        yield (
            f"{n:,} of {len(references):,} answers have a reference that equals the question; name "
            "the column of references by `references`."
        )
