"""The time for hostile texts grows linearly with their length; comparisons have a maximum size.

The tests measure processor time. Python calls are not counted, because most quadratic steps are
in `re` and in string methods. Instruction counters are not available on every machine. Each
function is timed on a text and on one that is 16 times as long. Linear work takes 16 times as long
and quadratic work 256 times; the limit is 64 times. The minimum of three ratios counts. The short
text is timed 16 times, because clocks of processor time have steps of 4 ms. Times below 0.2 s for
100 KB always pass: 1 MB then takes at most 20 s, even if the work is quadratic.
"""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd
import pytest

import surface_consistency as sc
from surface_consistency.matching import RULES
from surface_consistency.matching.answering_part import LongAnswer, TopicQuestions
from surface_consistency.matching.judge_reply import (
    JudgeReplyError,
    parse_states,
    parse_verdict,
    parse_verdicts,
)
from surface_consistency.metrics import compare_models
from surface_consistency.models.reasoning import split_replies
from surface_consistency.results.tools import numbered, simple_evals
from surface_consistency.rows.readers import Place
from surface_consistency.studies.audit.matching.cleaners import audit_answer, published_clean
from surface_consistency.studies.audit.matching.markup import strip_lookups
from surface_consistency.text import normalize, surface_from_title, token_key, tokenize

T = TypeVar("T")
SIZE = 6_250
UNITS = (
    *("a ", "a", " ", "\n", "(", ") ", "(a", "[", "{{", "'", '"', "a, ", "1.", "1 ", "-", "a. "),
    *("<think>", "x <think> ", "</think>", "<|end|>", "assistantcommentary", "\u0301", "e\u0301"),
    *("答", "カ゛", "the ", "not ", "1) ", "A.", "1,000 ", "<|db_", "```\n", "answer: "),
)
"""Units that hostile texts repeat."""


LOOKUPS = (
    *("<|db_a|>", "<", "','", "A. ", "a.", "[dblookup('a', 'b') -> c]", "[dblookup('a"),
    "<|db_entity|>a<|db_relationship|>b<|db_return|>c<|db_end|>",
)


def check_growth(
    work: Callable[[str], object], unit: str, before: str = "", after: str = ""
) -> None:
    """Check that the work on a text does not grow faster than the text."""
    small, large = (before + unit * (n // len(unit)) + after for n in (SIZE, 16 * SIZE))
    compare_work(work, small, large, f"{unit!r} after {before!r}")


def compare_work(work: Callable[[T], object], small: T, large: T, name: str) -> None:
    """Check that the work on an input of 16 times the size takes less than 64 times as long."""
    ratio = 0.0
    for _ in range(3):
        if (seconds := _seconds(work, large)) < 0.2:
            return
        ratio = seconds / max(sum(_seconds(work, small) for _ in range(16)) / 16, 1e-6)
        if ratio < 64.0:
            return
    pytest.fail(f"16 times {name} takes {ratio:.0f} times as long")


def _seconds(work: Callable[[T], object], content: T) -> float:
    gc.disable()  # The time of a collection depends on the objects of all other tests.
    try:
        start = time.process_time()
        work(content)
        return time.process_time() - start
    finally:
        gc.enable()


def page(text: str) -> object:
    """Read a page of simple-evals."""
    row = {"convos": [[{"role": "user", "content": "q"}]], "htmls": [text]}
    return list(simple_evals(row, Place("a.json", 1)))


@pytest.mark.parametrize(
    "unit", ["<p>Correct Answer: ", "<p>Score: ", "<p>Score: a", " ", "<p>Score: a "]
)
def test_pages_of_simple_evals_are_read_in_linear_time(unit: str) -> None:
    check_growth(page, unit, "<p>Correct Answer: a")


def test_repeated_names_are_numbered_in_linear_time() -> None:
    check_growth(lambda text: numbered(text.split()), "a ")


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("language", ["en", "ja"])
def test_rules_score_long_texts_in_linear_time(rule: str, language: str) -> None:
    scorer, is_japanese = RULES[rule], language == "ja"
    for unit in UNITS:
        gold = "東京" if is_japanese else "a b"
        check_growth(partial(scorer, references=[gold]), unit)
        check_growth(lambda text: scorer(gold, [text]), unit, "x")  # noqa: B023


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rules_with_many_aliases_score_in_linear_time(rule: str) -> None:
    scorer = RULES[rule]
    aliases = ["a" * n for n in range(1, 101)] + [f"name {n}" for n in range(900)]
    check_growth(lambda text: scorer(text, aliases), "aaaa name ")


@pytest.mark.parametrize("before", ["", "<think>", "analysisWe ", "a <think>", "</think>"])
def test_reasoning_is_split_in_linear_time(before: str) -> None:
    for unit in UNITS:
        check_growth(lambda text: split_replies([text], opened=True), unit, before, "x")
        check_growth(lambda text: split_replies([text]), unit, before, "x")


def test_replies_of_judges_are_rejected_in_linear_time() -> None:
    def read(text: str) -> None:
        for parse in (parse_verdict, lambda x: parse_verdicts(x, 3), lambda x: parse_states(x, 3)):
            with pytest.raises(JudgeReplyError, match=r"^expected (a |1 or 0|3 )"):
                parse(text)

    for unit in UNITS:
        for before in ("", "<think>", "```\n", "["):
            check_growth(read, unit, before, "x")


@pytest.mark.parametrize(
    "clean",
    [
        *(normalize, tokenize, token_key, surface_from_title),
        *(audit_answer, published_clean, strip_lookups),
    ],
    ids=lambda clean: clean.__name__,
)
def test_texts_are_normalized_in_linear_time(clean: Callable[[str], object]) -> None:
    for unit in (*UNITS, *LOOKUPS):
        for before in ("", "a", "[dblookup('a"):
            check_growth(clean, unit, before, "x")


def test_parts_of_long_answers_are_found_in_linear_time() -> None:
    questions = TopicQuestions(["Where was she born?", "When did she die?"])
    for unit in UNITS:
        check_growth(lambda text: LongAnswer(text, questions).parts(0), unit, "a", "x")


def scores_of(n_models: int, n_items: int, n_groups: int = 1) -> pd.DataFrame:
    """Return scores of models, of which every third is 0, with a column of groups."""
    items = np.arange(n_models * n_items) % n_items
    models = [f"m{number}" for number in np.repeat(np.arange(n_models), n_items)]
    columns = {"model": models, "item": items, "score": (np.arange(items.size) % 3 > 0) * 1.0}
    return pd.DataFrame(columns | {"group": (items % n_groups).astype(str)})


def test_more_pairs_than_the_maximum_need_a_baseline() -> None:
    frame = scores_of(201, 5)
    with pytest.raises(ValueError, match=r"201 models make 20,100 pairs.*without `baseline`"):
        compare_models(frame)
    assert len(compare_models(frame, baseline="m0").differences) == 200


def test_models_and_groups_above_the_maximum_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"501 models make 125,250 pairs.*remove models"):
        compare_models(scores_of(501, 4), baseline="m0")
    for option in ({"by": "group"}, {"task": "group"}):
        with pytest.raises(ValueError, match=r"has 1,001 groups; the maximum.*is 1,000"):
            compare_models(scores_of(2, 1001, 1001), **option)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"has 16 groups; the maximum.*is 15"):
        compare_models(scores_of(200, 16, 16), by="group")


def test_all_pairs_of_models_have_the_numbers_of_single_comparisons() -> None:
    rng = np.random.default_rng(7)
    frame = scores_of(5, 60, 3).assign(score=rng.integers(0, 5, 300) / 4)
    for option in ({}, {"task": "group"}, {"margin": 0.2}):
        rows = compare_models(frame, **option).differences
        for _, row in rows.iterrows():
            two = frame[frame["model"].isin([row["model"], row["reference"]])]
            alone = compare_models(two, scale=(0.0, 1.0), **option).differences.iloc[0]
            names = ["difference", "difference_low", "difference_high", "p_value", "p_worse"]
            assert row[names].tolist() == pytest.approx(alone[names].tolist(), abs=1e-12)


def test_groups_of_pairs_above_the_maximum_are_rejected() -> None:
    frame = pd.DataFrame({"item": range(5001), "first": 1, "second": 0, "group": range(5001)})
    with pytest.raises(ValueError, match="group makes 5,001 groups; the maximum is 5,000"):
        sc.paired(frame, first="first", second="second", by="group")
