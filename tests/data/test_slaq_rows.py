import numpy as np
import pytest

from surface_consistency.data.slaq_rows import flag_of, has_markup, views_of, without_markup


@pytest.mark.parametrize(
    ("cell", "flag"),
    [
        *((cell, True) for cell in (1, 1.0, "1", "1.0", " 1 ", True, "True", "TRUE", np.int64(1))),
        *((cell, False) for cell in (0, 0.0, "0", "0.0", False, "false", np.bool_(False))),
        *((cell, None) for cell in ("", "  ", None, float("nan"), np.float64("nan"))),
    ],
)
def test_flag_of_reads_flags(cell, flag):
    assert flag_of(cell) is flag


@pytest.mark.parametrize(
    ("cell", "views"),
    [
        ("1,234", 1234),
        ("12,345,678", 12_345_678),
        ("1 234", 1234),
        ("1234", 1234),
        ("1234.0", 1234),
        (1234.0, 1234),
        (np.int64(7), 7),
        (0, 0),
        ("", None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_views_of_reads_numbers_of_views(cell, views):
    assert views_of(cell) == views


@pytest.mark.parametrize(
    ("read", "cells", "message"),
    [
        (flag_of, ["2", 2, 2.0, 0.5, "entity", -1, ["1"], "NA"], "expected"),
        (
            views_of,
            ["1,23", "12,34,567", "1.5", 1.5, "-3", -3, "1e6", "many", "１２"],
            "expected an integer",
        ),
    ],
)
def test_flag_of_and_views_of_reject_other_cells(read, cells, message):
    for cell in cells:
        with pytest.raises(ValueError, match=message):
            read(cell)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<i>E. coli</i>", "E. coli"),
        ("10<sup>-9</sup> m", "10^-9 m"),
        ("a<br>b<br/>c", "a b c"),
        ("&lt;b&gt; &#233; &#x41;", "<b> é A"),
        ('<a href="x>y">link</a>', 'y">link'),
        ("fact<ref name='a'>source</ref>", "fact"),
        ("<script>alert(1)</script>no", "no"),
    ],
)
def test_markup_is_detected_and_removed(text, plain):
    assert has_markup(text)
    assert without_markup(text) == plain


@pytest.mark.parametrize(
    "text", ["a < b", "if x<y and z>w", "<not a tag>", "R&D; T&C", "5 > 3", ""]
)
def test_text_without_markup_is_unchanged(text):
    assert not has_markup(text)
    assert without_markup(text) == text
