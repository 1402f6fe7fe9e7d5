"""Whether two answers are the same, beside whether their verdicts are; and what mars the answers.

Two wrong answers that differ have the same verdict. The texts of both stand in the outcomes, so the
share of pairs with the same answer can be told apart from the share with the same verdict.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import RecordError, UndefinedMetricWarning
from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.rule import Rule
from surface_consistency.metrics import PAIRED_RATES, paired_by
from surface_consistency.reading import json_objects
from surface_consistency.report.page import Check, Value
from surface_consistency.text import has_unspaced_script, padded_words

if TYPE_CHECKING:
    from surface_consistency.runs.loader import Run

__all__ = ["answer_agreement", "check_answers", "same_answers"]

_PARTS_OF_WORDS: Final = ("popqa", "boundary", "token_f1", "fuzzy")
_WHOLE_PHRASES: Final = ("squad_f1",)
_WHOLE_WORDS: Final = ("boundary", "segmented", "token_f1", "squad_f1")
_AFFIXING: Final = re.compile(
    "[\u1100-\u11ff\u3131-\u318e\uac00-\ud7af\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3]"
)
"""Letters of Hangul, Hebrew and Arabic, in which short words are written onto nouns."""
_MANY: Final = 0.02
_TEXTS: Final = ("first_prediction", "second_prediction")
_AMONG: Final = {"all": "all pairs", "both wrong": "wrong both times"}


def same_answers(
    first: Sequence[str | None],
    second: Sequence[str | None],
    *,
    rule: str | Rule[Any] | None = None,
) -> list[bool | None]:
    """Tell of each pair of answers whether they are the same.

    Args:
        first: Answers under the first condition, `(n_pairs,)`; None where there is none.
        second: Answers under the second condition, in the same order.
        rule: Two answers are the same if this matching rule accepts one of them as the answer to
            the other; None, the default, compares their words in normal form, in order.

    Returns:
        For each pair whether the answers are the same; None where one is missing or blank.

    Raises:
        ValueError: If the answers differ in number, or there is no such rule.

    Notes:
        By a rule of containment "Paris" is the same as "Paris, France", and as "not Paris".

    Examples:
        >>> same_answers(["Paris.", "Paris, France", ""], ["paris", "Paris", "Rome"])
        [True, False, None]
        >>> same_answers(["Paris, France"], ["Paris"], rule="boundary")
        [True]
    """
    if len(first) != len(second):
        raise ValueError(
            f"`first` and `second` must have one answer a pair, got {len(first)} and {len(second)}"
        )
    pairs = [(_said(one), _said(other)) for one, other in zip(first, second, strict=True)]
    distinct = list({pair: None for pair in pairs if None not in pair})
    ones, others = ([str(pair[side]) for pair in distinct] for side in (0, 1))
    if rule is None:
        words = zip(padded_words(ones), padded_words(others), strict=True)
        same = [one == other for one, other in words]
    else:
        there, back = (
            match_columns(texts, [(answer,) for answer in answers], rule=rule).is_match
            for texts, answers in ((ones, others), (others, ones))
        )
        same = [bool(a or b) for a, b in zip(there, back, strict=True)]
    known = dict(zip(distinct, same, strict=True))
    return [known.get(pair) for pair in pairs]


def answer_agreement(
    frame: pd.DataFrame,
    *,
    by: Sequence[str] = ("model",),
    cluster: str = "fact_id",
    rule: str | Rule[Any] = "token_f1",
) -> pd.DataFrame:
    """Compute how often a pair has the same answer, of all pairs and of those wrong both times.

    Args:
        frame: Outcomes: first_correct, second_correct, first_prediction, second_prediction, and the
            columns named below.
        by: Columns that make groups.
        cluster: Column of what intervals take as a whole.
        rule: As for `same_answers`, for the second of the two shares.

    Returns:
        Two rows a group: the columns `by`; among, "all" or "both wrong"; n (pairs with both
        verdicts and both answers), n_clusters; same_answer, the share of pairs whose answers have
        the same words, and same_by_rule, whose answers the rule takes for the same, each in [0, 1]
        with `_low` and `_high`. Rows without a pair are left out.

    Raises:
        ColumnNotFoundError: If a column is missing.

    Notes:
        Of pairs right both times the answers may differ in wording alone, of those wrong both times
        every difference is one of substance or of wording; the two shares bound it from both sides.
        Pairs with a missing or blank answer are left out. Intervals are those of `paired_by`.

    References:
        SLAQ, arXiv 2510.11218, limitations: two wrong answers that differ count as aligned.

    Examples:
        >>> frame = pd.DataFrame(
        ...     {"model": "m", "fact_id": range(4), "first_correct": [1, 0, 0, 1],
        ...      "second_correct": [1, 0, 0, 0], "first_prediction": ["a1", "b", "c", "d"],
        ...      "second_prediction": ["a1", "b", "x", "y"]})
        >>> rows = answer_agreement(frame)
        >>> rows[["among", "n", "same_answer"]].values.tolist()
        [['all', 4, 0.5], ['both wrong', 2, 0.5]]
    """
    first, second = (frame[name].astype(object).tolist() for name in _TEXTS)
    verdicts = frame[["first_correct", "second_correct"]].astype(object)
    scored = verdicts.notna().all(axis=1).to_numpy()
    wrong = scored & ~verdicts.where(verdicts.notna(), True).astype(bool).any(axis=1).to_numpy()
    shares = {
        "same_answer": same_answers(first, second),
        "same_by_rule": same_answers(first, second, rule=rule),
    }
    keys = list(dict.fromkeys([*by, cluster]))
    kept = scored & np.array([one is not None for one in shares["same_answer"]], dtype=bool)
    if not kept.any():
        return pd.DataFrame()
    tables: list[pd.DataFrame] = []
    for name, same in shares.items():
        table = _shares(frame[keys], same, kept, wrong, list(by), cluster)
        ends = ("", "_low", "_high")
        table = table.rename(columns={f"second_accuracy{end}": name + end for end in ends})
        heads = [] if tables else [*by, "among", "n", "n_clusters"]
        tables.append(table[[*heads, *(name + end for end in ends)]])
    return pd.concat(tables, axis=1)


def _shares(
    groups: pd.DataFrame,
    same: Sequence[bool | None],
    kept: npt.NDArray[np.bool_],
    wrong: npt.NDArray[np.bool_],
    by: list[str],
    cluster: str,
) -> pd.DataFrame:
    """Compute the share of pairs with the same answer: a second verdict on what is always there."""
    frame = groups.assign(present=1, same=[bool(one) for one in same])
    both = pd.concat(
        [
            frame[rows].assign(among=name)
            for name, rows in zip(_AMONG, (kept, kept & wrong), strict=True)
        ],
        ignore_index=True,
    )
    with warnings.catch_warnings():
        # A single cluster has no interval; that stands in the table.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return paired_by(
            both,
            by=[*by, "among"],
            first="present",
            second="same",
            cluster=cluster,
            rates={"second_accuracy": PAIRED_RATES["second_accuracy"]},
        )


def check_answers(run: "Run") -> Iterator[Check]:
    """Ask what mars the answers of a run, whatever their verdicts.

    Args:
        run: The run; its outcomes hold the judged answers.

    Yields:
        What deserves a look: judged parts that are empty; scripts without spaces under a rule that
        takes parts of words for words, or phrases; scripts that write particles and prepositions
        onto nouns under a rule that wants the noun alone; and plain text given to a model that has
        a chat template.
    """
    if all(name in run.outcomes for name in _TEXTS):
        texts = pd.concat([run.outcomes[name] for name in _TEXTS]).dropna()
        yield from _check_empty(run, texts)
        yield from _check_scripts(run, texts)
    if run.manifest.runner.get("chat_template") and _asks_in_plain_text(run):
        yield Check(
            level="warning",
            title="Asked without its chat template",
            text=[
                f"{run.label}: the model has a chat template and was asked in plain text. If it is "
                "tuned on conversations, its answers may be in no form that the rule reads, and "
                "alike for that reason: ask it as it was trained (run redirectqa --chat, run slaq "
                "without --completion)."
            ],
        )


def _check_empty(run: "Run", texts: pd.Series) -> Iterator[Check]:
    """Tell how many judged parts are empty."""
    empty = int((texts.str.strip() == "").sum())
    if empty > _MANY * len(texts):
        told = (
            f"{run.label}: {empty:,} of {len(texts):,} judged answers are empty and count as wrong"
        )
        remedy = (
            " If the outputs begin with a newline, judge the first line that is not blank, or all: "
            "`surface-consistency score RUN --region first_text_line`, or `--region whole`."
        )
        is_first_line = run.judged_by.endswith(" on first_line")
        yield Check(
            level="warning",
            title="Empty answers",
            text=[f"{told}, alike under both conditions.{remedy if is_first_line else ''}"],
        )


def _check_scripts(run: "Run", texts: pd.Series) -> Iterator[Check]:
    """Tell how many answers are in scripts whose words the rule does not find."""
    rule = run.judged_by.split(" on ")[0].removeprefix("matcher:")
    if rule in (*_PARTS_OF_WORDS, *_WHOLE_PHRASES):
        share = _share(texts, has_unspaced_script)
        wrong = (
            "takes a whole phrase for one word: 東京都です is wrong for 東京都"
            if rule in _WHOLE_PHRASES
            else "accepts a part of a word: 京都 for 東京都"
        )
        if share > _MANY:
            yield Check(
                level="warning",
                title="Scripts without spaces",
                text=[
                    f"{run.label}: ",
                    Value(value=share),
                    " of the judged answers are in Chinese, Japanese, Thai, Lao, Khmer or "
                    f"Burmese, where {run.judged_by} {wrong}. {_by_words(run, rule)}",
                ],
            )
    if rule in _WHOLE_WORDS:
        share = _share(texts, lambda text: _AFFIXING.search(text) is not None)
        if share > _MANY:
            yield Check(
                level="warning",
                title="Words with particles",
                text=[
                    f"{run.label}: ",
                    Value(value=share),
                    " of the judged answers are in Korean, Hebrew or Arabic letters, where "
                    f"{run.judged_by} wants the noun without particle, article or preposition: "
                    "서울은 is wrong for 서울. `--rule popqa` accepts it, and parts of longer "
                    "words too: judge by both, between which the truth lies, or by a rule that "
                    "cuts such words (see Matching answers in the documentation).",
                ],
            )


def _by_words(run: "Run", rule: str) -> str:
    """Say how many verdicts change where words are cut, and how to judge so."""
    remedy = "`surface-consistency score RUN --rule segmented` (extra `segment`)"
    table = run.checks.get("rules", pd.DataFrame(columns=["first_rule", "second_rule"]))
    pair = table[(table["first_rule"] == rule) & (table["second_rule"] == "segmented")]
    if pair.empty:
        return f"Judge them again by words, {remedy}, and see how many verdicts change."
    row = pair.iloc[0]
    return (
        f"By words {int(row['n_differ']):,} of {int(row['n']):,} verdicts are others: "
        f"{int(row['first_only']):,} right ones are wrong, {int(row['second_only']):,} wrong ones "
        f"right; {remedy} judges so."
    )


def _share(texts: pd.Series, is_one: Callable[[str], bool]) -> float:
    """Compute the share of texts that are something."""
    return float(np.mean([is_one(text) for text in texts])) if len(texts) else 0.0


def _asks_in_plain_text(run: "Run") -> bool:
    """Tell whether the first prompt of a run is a text to continue."""
    try:
        return next(json_objects(run.folder.prompts))[1].get("text") is not None
    except (OSError, RecordError, StopIteration):
        return False


def _said(text: object) -> str | None:
    """Read an answer; a blank one is none."""
    return text if isinstance(text, str) and text.strip() else None
