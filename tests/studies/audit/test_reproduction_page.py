"""The page that recomputes the published audit: its blocks print what stands under them."""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "ideas" / "audit-reproduction.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLONE = 'Path("LMLMAudit")'


@pytest.fixture(scope="module")
def text():
    return PAGE.read_text(encoding="utf-8")


def test_blocks_of_the_page_print_what_stands_under_them(text, data_files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = data_files / "lmlm_audit"
    names = {}
    blocks = BLOCK.findall(text)
    assert len(blocks) >= 10
    assert text.count("```python") == len(blocks)

    for source, printed in blocks:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(source.replace(CLONE, f"Path({str(folder)!r})"), "<page>", "exec"), names)
        assert output.getvalue() == printed, source


# Recomputed from the published CSV by other code: L + R by variant, all and without the three.
@pytest.mark.parametrize(
    ("variant", "published", "clean"),
    [
        ("base", "3.70", "4.85"),
        ("alias", "6.25", "9.05"),
        ("collision", "7.17", "7.17"),
        ("noise", "13.56", "20.69"),
        ("released", "0.67", "0.67"),
    ],
)
def test_page_agrees_with_the_headline_numbers(text, variant, published, clean):
    rows = re.findall(rf"^ *{variant} .*(?: +\d+\.\d\d){{4}}$", text, re.MULTILINE)
    tables = [row.split() for row in rows]

    assert [line[-3] for line in tables] == [published, clean]


def test_page_names_the_three_databases(text):
    flagged = re.findall(r"^ *(\S+) +\d+ +6 +\d +\d +True", text, re.MULTILINE)

    assert flagged == ["politicians/noise", "sports/alias", "sports/base"]
