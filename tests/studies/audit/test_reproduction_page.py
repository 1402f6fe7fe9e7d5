"""The page that recomputes the published audit."""

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


def test_code_blocks_of_the_page_print_the_stated_output(text, data_files, tmp_path, monkeypatch):
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
