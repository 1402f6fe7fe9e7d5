"""Sentences contain quantity, subject, estimate, interval, p, n and clusters of their row."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.metrics.uncertainty.intervals import too_few_clusters
from surface_consistency.tables.numbers import Value, claim_records, sentence_text
from surface_consistency.tables.sentences import (
    detectable_difference,
    detectable_note,
    difference,
    direction,
    equivalence,
    listing,
    many,
    missing,
    not_inferred,
    paragraph,
    ranking,
    rate,
    repeats,
    size,
)
from tests.claims import agrees, read_sentence


def row(value=-0.204, low=-0.273, high=-0.136, p=0.0002, n=122, n_clusters=60, **more):
    """A row with a difference `d`."""
    cells = {"d": value, "d_low": low, "d_high": high, "p": p, "n": n, "n_clusters": n_clusters}
    return cells | more


def text(sentence):
    """A sentence with ordinary spaces."""
    return sentence_text(sentence).replace("\u00a0", " ")


def accuracy(**cells):
    """The sentence on the accuracy under title and redirect."""
    options = {
        name: cells.pop(name) for name in ("correction", "confidence", "kind") if name in cells
    }
    options |= {"p": "p", "clusters": "facts"}
    names = ("accuracy of ada", "title", "redirect", "under the {}")
    return text(difference(row(**cells), "d", *names, **options))


def test_sentence_of_a_significant_difference_has_a_direction():
    assert accuracy() == (
        "The accuracy of ada is 20.4 points lower under the redirect than under the title (95 % CI "
        "13.6 to 27.3, p < 0.001; 122 pairs, 60 facts)."
    )
    higher = accuracy(value=0.204, low=0.136, high=0.273)
    assert higher.startswith("The accuracy of ada is 20.4 points higher under the redirect than")
    assert "(95 % CI 13.6 to 27.3, p < 0.001;" in higher
    assert accuracy(kind="number").startswith("The accuracy of ada is 0.20 lower under the redirec")


def test_nonsignificant_difference_states_the_minimum_detectable_difference():
    assert accuracy(value=-0.016, low=-0.181, high=0.148, p=0.84) == (
        "The accuracy of ada does not differ significantly between title and redirect (difference "
        "−1.6 points, 95 % CI −18.1 to 14.8, p = 0.84; 122 pairs, 60 facts; minimum detectable "
        "difference 23.5 points at 80 % power)."
    )
    wide = accuracy(value=-0.016, low=-0.9, high=0.9, p=0.84)
    assert wide.endswith("60 facts; too few to detect any difference).")


def test_both_p_values_are_stated_if_a_correction_changes_the_decision():
    cells = {"value": 0.111, "low": 0.013, "high": 0.219, "p": 0.077, "p_value": 0.027}
    corrected = accuracy(**cells, correction="Holm")

    assert "does not differ significantly" in corrected
    assert "p = 0.027, Holm-corrected p = 0.077; 122 pairs" in corrected
    kept = accuracy(p=0.03, p_value=0.01, correction="Holm")
    assert ", Holm-corrected p = 0.030; 122 pairs, 60 facts)." in kept


def test_confidence_applies_to_interval_and_test():
    cells = {"value": 0.09, "low": 0.011, "high": 0.173, "p": 0.063}

    assert "does not differ significantly" in accuracy(**cells)
    shown = accuracy(**cells, confidence=0.9)
    assert "9.0 points higher" in shown
    assert "(90 % CI 1.1 to 17.3, p = 0.063;" in shown


NO_SPREAD = "the values are equal in all clusters, so that their spread is unknown"


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({}, "15 pairs in 3 facts are too few."),
        (
            {"not_inferred": too_few_clusters(2.1)},
            "15 pairs in 3 facts are too few (effective number of clusters 2.1, minimum 4).",
        ),
        ({"not_inferred": NO_SPREAD}, f"{NO_SPREAD} (15 pairs in 3 facts)."),
        (
            {"not_inferred": too_few_clusters(3), "d_n": 1, "d_n_clusters": 1},
            "1 pair is too few (all pairs: effective number of clusters 3, minimum 4).",
        ),
    ],
)
def test_differences_with_too_few_clusters_are_not_inferred(cells, reason):
    nan = math.nan
    shown = accuracy(value=0.5, low=nan, high=nan, p=nan, n=15, n_clusters=3, **cells)

    start = "A difference in accuracy of ada between title and redirect cannot be inferred: "
    assert shown.startswith(start + reason)
    assert text(not_inferred({}, "the rate")) == (
        "The rate cannot be inferred: the data are too few."
    )


@pytest.mark.parametrize(
    ("bounds", "p_value", "null", "sign"),
    [
        *(((0.1, 0.2), None, 0.0, 1), ((0.1, 0.2), math.nan, 0.0, 1)),
        *(((-0.2, -0.1), 0.01, 0.0, -1), ((-0.2, -0.1), 0.06, 0.0, 0), ((-0.2, 0.1), 0.01, 0.0, 0)),
        *(((math.nan, math.nan), 0.01, 0.0, None), ((None, None), None, 0.0, None)),
        *(((0.55, 0.7), None, 0.5, 1), ((0.45, 0.7), None, 0.5, 0), ((0.3, 0.45), None, 0.5, -1)),
    ],
)
def test_direction_requires_interval_and_test(bounds, p_value, null, sign):
    cells = dict(zip(("x_low", "x_high"), bounds, strict=True))

    assert direction(cells, "x", p_value, null=null) == sign


def test_sentence_of_a_rate_has_interval_and_counts():
    flips = {"d": 0.475, "d_low": 0.373, "d_high": 0.578, "n": 122, "n_clusters": 60}

    assert text(rate(flips, "d", "flip rate of ada", clusters="facts")) == (
        "The flip rate of ada is 47.5 % (95 % CI 37.3 to 57.8; 122 pairs, 60 facts)."
    )
    # The estimate is a number that a page can mark.
    assert any(isinstance(part, Value) for part in rate(flips, "d", "flip rate of ada"))
    unknown = flips | {"d_low": math.nan, "d_high": math.nan}
    assert text(rate(unknown, "d", "flip rate of ada")) == (
        "The flip rate of ada cannot be inferred: 122 pairs in 60 clusters are too few."
    )


UNSURE = "not significantly different from 0.50; minimum detectable difference 0.20 at 80 % power"


@pytest.mark.parametrize(
    ("low", "words"), [(0.52, "significantly different from 0.50"), (0.42, UNSURE)]
)
def test_sentence_of_a_rate_can_compare_it_with_a_null_value(low, words):
    area = {"auc": 0.6, "auc_low": low, "auc_high": 0.7, "n": 40}

    shown = text(rate(area, "auc", "area under the curve", kind="number", null=0.5))

    assert shown.startswith("The area under the curve is 0.60 (95 % CI 0.")
    assert shown.endswith(f"40 pairs; {words}).")


def test_equivalence_requires_both_one_sided_tests():
    options = {"p": "p_equivalent", "margin": 0.08, "unit": "items"}
    cells = row(value=-0.017, low=-0.047, high=0.004, n=240, n_clusters=48)

    shown = equivalence(cells | {"p_equivalent": 0.0004}, "d", "accuracy", "a", "a2", **options)
    assert text(shown) == (
        "The accuracy is equivalent for a and a2 within ±8.0 points (difference −1.7 points, 95 % "
        "CI −4.7 to 0.4, p < 0.001 of two one-sided tests; 240 items, 48 clusters)."
    )
    real = cells | {"p_equivalent": 0.0004, "d_high": -0.001, "p": 0.03, "holm": 0.06}
    also = " The difference is statistically significant, although within the margin."
    for p_difference, is_stated in ((None, True), ("p", True), ("holm", False)):
        shown = equivalence(real, "d", "accuracy", "a", "a2", p_difference=p_difference, **options)
        assert text(shown).endswith(also) == is_stated
    # The level of each one-sided test is half of 1 minus the confidence.
    for p_value in (0.03, 0.06, math.nan, None):
        not_shown = cells | {"p_equivalent": p_value}
        assert equivalence(not_shown, "d", "accuracy", "a", "a2", **options) == []


@pytest.mark.parametrize(
    ("best", "words"),
    [
        ("b", "b is the best of 3 models in accuracy (simultaneous 95 % confidence)."),
        ("ab", "2 of 3 models may be the best in accuracy (simultaneous 95 % confidence): a and b"),
        ("abc", "No two of the 3 models differ significantly in accuracy (simultaneous 95 % conf"),
    ],
)
def test_ranking_states_which_models_may_be_the_best(best, words):
    assert text(ranking([*best], 3, "accuracy")).startswith(words)


def test_sentence_of_repeats_has_a_rate_per_stratum_with_an_interval():
    columns = ("flip_rate", "flip_rate_low", "flip_rate_high", "form")
    nan = math.nan
    rows = ((0.067, 0.0, 0.449, "short"), (0.052, nan, nan, "x"), (0.087, 0.0, 0.34, "free"))
    strata = [dict(zip(columns, cells, strict=True)) for cells in rows]

    assert text(repeats(strata, of=" of ada", label="form")) == (
        "The test-retest flip rate of identical prompts of ada is 6.7 % (95 % CI 0.0 to 44.9, "
        "short); 8.7 % (95 % CI 0.0 to 34.0, free)."
    )
    assert repeats(strata[1:2]) == []


def test_comparisons_after_the_third_are_counted():
    found, null = row(), row(value=0.01, low=-0.1, high=0.1, p=0.9)
    rows = (
        [found] * 5
        + [null, row(value=0.01, low=-0.2, high=0.2, p=0.9)]
        + [row(low=math.nan, high=math.nan)]
    )

    shown = many(rows, "d", "accuracy by form", lambda one: [f"{one['d']}."], p="p")

    assert [text(one) for one in shown] == [
        *["-0.204."] * 3,
        "2 more of the 7 comparisons in accuracy by form are statistically significant.",
        "2 of the 7 comparisons in accuracy by form are not statistically significant (largest "
        "minimum detectable difference 28.6 points at 80 % power).",
        "1 of the comparisons in accuracy by form cannot be inferred.",
    ]
    assert many([null], "d", "x", lambda one: ["alone."], p="p") == [["alone."]]
    one_of_two = many([found, null], "d", "x", lambda one: ["found."], p="p")
    assert text(one_of_two[-1]) == (
        "1 of the 2 comparisons in x is not statistically significant (minimum detectable "
        "difference 14.3 points at 80 % power)."
    )


def test_minimum_detectable_differences_are_2_8_standard_errors():
    assert detectable_difference(-0.1, 0.1) == pytest.approx(0.1 * 2.801585 / 1.959964)
    assert detectable_difference(-0.1, 0.1, 0.9) == pytest.approx(
        0.1 * (1.644854 + 0.841621) / 1.644854
    )
    assert math.isnan(detectable_difference(math.nan, math.nan))


def test_note_states_detectable_difference_and_rows_without_power():
    table = pd.DataFrame({"d_low": [math.nan, -0.7, -0.07], "d_high": [math.nan, 0.7, 0.07]})

    assert detectable_note(table, "d") == (
        "Minimum detectable difference at 80 % power, before correction: 10.0 points. 2 of 3 rows "
        "have too few pairs to detect any."
    )
    assert detectable_note(table[:0], "d") == ""


def test_phrases_of_counts_lists_and_missing_scores():
    assert size({"n": 1, "n_clusters": 1}, "pairs", "facts") == "; 1 pair"
    assert size({"n": 1200, "n_clusters": math.nan}) == "; 1,200 pairs"
    assert size({}) == ""
    assert listing(["a"]) == "a"
    assert paragraph([["A."], [], ["B."]]) == ["A.", " ", "B."]
    expected = "4 of 1,220 pairs of bob have no score and are excluded."
    assert text(missing(4, 1220, of=" of bob")) == expected
    assert missing(0, 122) == []


ROWS = st.tuples(st.floats(-0.9, 0.9), st.floats(0.0, 0.5), st.floats(0.0, 0.5)).map(
    lambda x: (round(x[0], 4), round(x[0] - x[1], 4), round(x[0] + x[2], 4))
)


@given(
    ends=ROWS,
    p=st.floats(0, 1),
    n=st.integers(2, 10**6),
    kind=st.sampled_from(["difference", "number"]),
    what=st.sampled_from(["difference", "rate", "null", "equivalence"]),
)
@settings(deadline=None)
def test_sentences_are_parsed_back_into_their_records(ends, p, n, kind, what):
    cells = row(*ends, p=p, n=n, n_clusters=max(1, n // 2))
    if what == "difference":
        sentence = difference(cells, "d", "accuracy of ada", "title", "redirect", p="p", kind=kind)
    elif what == "equivalence":
        sentence = equivalence(
            cells | {"p": p / 50}, "d", "accuracy", "ada", "eve", p="p", margin=0.05, kind=kind
        )
    else:
        null = 0.25 if what == "null" else None
        kind = "rate" if kind == "difference" and null is None else "number"
        sentence = rate(cells, "d", "flip rate of ada", kind=kind, null=null, p=null and "p")
    record, *also = claim_records(sentence)

    whole = " ".join(one["text"] for one in (record, *also))
    assert whole == text(sentence)
    assert [one["direction"] for one in also] in ([], [(ends[1] > 0) - (ends[2] < 0)])
    assert agrees(read_sentence(record["text"]), record, 1 if kind == "number" else 100)
    assert {record["column"], record["estimate"], record["n"]} == {"d", ends[0], n}


def test_record_has_the_labels_of_its_row_and_the_names_of_conditions():
    cells = row(model="ada", type="alias", not_inferred="")
    (record,) = claim_records(difference(cells, "d", "accuracy", "title", "redirect", p="p"))

    assert record["scope"] == {
        "model": "ada",
        "type": "alias",
        "first": "title",
        "second": "redirect",
    }
    assert (record["direction"], record["null"], record["confidence"]) == (-1, 0.0, 0.95)
    unknown = claim_records(difference(row(low=math.nan), "d", "x", "a", "b", p="p"))
    assert [one["kind"] for one in unknown] == ["none"]
