"""Notebook cells show results and figures."""

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
pytest.importorskip("ipykernel", reason="needs ipykernel")

CELLS = (
    """import pandas as pd
import surface_consistency as sc
answers = pd.DataFrame({"item": range(40), "correct": [1, 0, 1, 1] * 10})""",
    'sc.accuracy(answers, score="correct")',
    'sc.accuracy(answers, score="correct").plot()',
)


@pytest.mark.enable_socket
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_notebook_cells_show_sentences_table_and_figure():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])

    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()

    _, shown, drawn = notebook.cells
    (output,) = shown["outputs"]
    assert output["data"]["text/plain"].startswith("The accuracy is 75.0 %")
    assert output["data"]["text/html"].startswith("<p>The accuracy is 75.0 %")
    assert "<table>" in output["data"]["text/html"]
    assert any("image/png" in one.get("data", {}) for one in drawn["outputs"])
