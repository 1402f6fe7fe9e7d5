"""Formatted numbers, and tables on the terminal."""

import math

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.report.colours import DARK, LIGHT, MARKERS, heat_colours, model_style
from surface_consistency.tables.numbers import (
    Value,
    format_cell,
    format_interval,
    format_number,
    format_value,
    json_value,
    table_text,
)
from surface_consistency.tables.table import Column, Table

HARD = "\u00a0"


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        *((0.17349, "rate", "17.3"), (0.0, "rate", "0.0"), (1.0, "rate", "100.0")),
        *((-0.0001, "rate", "0.0"), (-math.inf, "rate", "−∞"), (math.nan, "rate", "–")),
        *((-0.082, "difference", "−8.2"), (0.0102, "difference", "+1.0")),
        *((0.0001, "difference", "0.0"), (14489, "count", "14,489"), (96.0, "count", "96")),
        *((None, "count", "–"), (0.0, "p_value", "< 0.001"), (0.00099, "p_value", "< 0.001")),
        *((0.001, "p_value", "0.001"), (0.0154, "p_value", "0.015"), (0.0996, "p_value", "0.10")),
        *((0.39, "p_value", "0.39"), (1.0, "p_value", "1.00"), (pd.NA, "p_value", "–")),
        *((0.5821, "number", "0.58"), (-0.31, "number", "−0.31"), (0.0123, "number", "0.012")),
        *((12345.6, "number", "12,346"), (123.45, "number", "123.5"), (7, "number", "7")),
        *((0, "number", "0.00"), (math.inf, "number", "∞"), (0.0042, "number", "0.0042")),
        *((0.1746, "decimal", "0.175"), (-0.05, "decimal", "−0.050"), (1, "decimal", "1.000")),
        # Values that are rounded to zero.
        *((-0.0004, "decimal", "0.000"),),
        *((-1.7e-16, "number", "0.00"), (1.7e-16, "number", "0.00"), (-2e-9, "number", "−2e-09")),
    ],
)
def test_format_number(value, kind, text):
    assert format_number(value, kind) == text


def test_format_interval_is_empty_without_both_bounds():
    assert format_interval(0.121, 0.231) == f"[12.1,{HARD}23.1]"
    assert format_interval(-0.07, 0.2603, "decimal") == f"[−0.070,{HARD}0.260]"
    assert format_interval(None, 0.2) == format_interval(math.nan, 0.2) == ""
    with pytest.raises(ValueError, match=r"kind must be one of rate, .* got 'share'"):
        format_number(0.5, "share")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Value(value=0.173, low=0.121, high=0.231), ("17.3 %", "[12.1, 23.1]")),
        (Value(value=-0.082, kind="difference"), ("−8.2 points", "")),
        (
            Value(value=0.39, low=0.316, high=0.462, kind="difference", signed=False),
            ("39.0 points", "[31.6, 46.2]"),
        ),
        (Value(value=1e-5, kind="p_value"), ("p < 0.001", "")),
        (Value(value=0.39, kind="p_value"), ("p = 0.39", "")),
        (Value(value=1080, kind="count"), ("1,080", "")),
        (Value(value=math.nan), ("–", "")),
    ],
)
def test_format_value(value, text):
    assert tuple(part.replace(HARD, " ") for part in format_value(value)) == text
    assert not any(" " in part for part in format_value(value))


def test_cell_has_the_star_of_its_p_value_and_a_second_number():
    column = Column(key="r", title="r", kind="decimal", star="p", beside=("n", "count", "(of {})"))

    cells = [
        format_cell({"r": r, "p": p, "n": 1200}, column) for r, p in ((0.2, 0.009), (0.2, 0.01))
    ]

    assert cells == [("0.200*", f"(of{HARD}1,200)"), ("0.200", f"(of{HARD}1,200)")]
    assert format_cell({"r": math.nan, "p": math.nan, "n": 3}, column) == ("–", "")
    assert column.frame_columns == ("r", "p", "n")


def _table(**columns):
    frame = pd.DataFrame(
        {
            "type": ["errors", None, "東京"],
            "model": ["a", "b", "c"],
            "n": [1200, 5, 0],
            "rate": [0.1, 0.25, math.nan],
            "low": [0.05, 0.2, math.nan],
            "high": [0.2, 0.3, math.nan],
            "right": [True, None, False],
            "labels": [["x", "y"], [], ["z"]],
        }
    )
    return Table(
        frame=frame,
        caption="Rates",
        columns=[
            Column(key="type", title="Type", labels={"errors": "Typical errors"}),
            Column(key="n", title="Pairs", kind="count"),
            Column(key="rate", title="Flips", kind="rate", unit="%", low="low", high="high"),
            Column(key="right", title="Verdict", kind="verdict"),
            Column(key="square", title="Square", kind="square", cells=("n", "n", "n", "n")),
            Column(key="labels", title="Labels"),
        ],
        **columns,
    )


def test_columns_of_table_text_are_aligned():
    lines = table_text(_table(note="So it is.")).splitlines()
    assert lines[0] == "Rates"
    assert lines[-1] == "So it is."
    assert lines[3].split() == [
        "Typical", "errors", "1,200", "10.0", "[5.0,", "20.0]", "correct",
        "1,200/1,200/1,200/1,200", "x,", "y",
    ]  # fmt: skip
    assert lines[3].index("correct") == lines[4].index("not scored") == lines[1].index("Verdict")
    # Wide characters have two columns.
    assert lines[5].index("incorrect") == lines[1].index("Verdict") - 2
    # A missing label is a dash, and a table without rows keeps its headings.
    table = _table()
    second = table.frame.to_dict("records")[1]
    assert (
        format_cell(second, table.columns[0]) == format_cell(second, table.columns[5]) == ("–", "")
    )
    empty = Table(frame=table.frame.iloc[:0], caption="None", columns=table.columns)
    assert len(table_text(empty).splitlines()) == 3
    with pytest.raises(ColumnNotFoundError, match="table 'T' has no column 'x'; its frame has 'n'"):
        Table(frame=pd.DataFrame({"n": [1]}), caption="T", columns=[Column(key="x", title="X")])


def contrast(one, other):
    """The contrast ratio of two colours, from 1 to 21, as WCAG 2.2 defines it."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour):
    """The relative luminance of a colour."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize(
    ("front", "back", "minimum"),
    [
        *(
            ("ink", "page", 14),
            ("ink", "field", 12),
            ("ink", "heat-0", 4.5),
            ("ink", "heat-5", 4.5),
        ),
        *(("soft", "page", 6.5), ("soft", "field", 6), ("soft", "floor-1", 4.5)),
        *(("link", "page", 6.9), ("edge", "page", 3), ("both-text", "both", 7)),
        *(
            ("neither-text", "neither", 7),
            ("flip-text", "first", 4.5),
            ("flip-text", "second", 4.5),
        ),
        *((role, "page", 6) for role in ("lost", "fine", "look")),
        *((f"model-{number}", "page", 3.8) for number in range(4)),
    ],
)
def test_pairs_of_colours_have_the_minimum_contrast(colours, front, back, minimum):
    both = {**colours, **heat_colours(colours)}

    assert contrast(both[front], both[back]) >= minimum


def test_schemes_have_the_same_roles_and_sixteen_model_styles_differ():
    assert set(LIGHT) == set(DARK)
    assert len({model_style(index) for index in range(16)}) == 16
    assert [model_style(index)[1] for index in range(4)] == list(MARKERS)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        (np.int64(3), 3), (np.float64(0.5), 0.5), (np.True_, True), ("a\n\u202e", "a\n\u202e"),
        (math.nan, None), (-math.inf, None), (pd.NA, None), (("a", "b"), ["a", "b"]),
        (np.array([1.0, math.nan]), [1.0, None]),
        (pd.Timestamp("2026-01-02"), "2026-01-02 00:00:00"),
    ],
)  # fmt: skip
def test_json_value_keeps_a_cell_or_gives_null(cell, written):
    assert json_value(cell) == written
