"""The first sheet of a workbook, built from the parts that a writer may use."""

import zipfile

import pytest

from surface_consistency.errors import DataError
from surface_consistency.results.frame import read_results
from surface_consistency.results.workbooks import workbook_rows

NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SHARED = f"<sst {NAMESPACE}><si><t>index</t></si><si><r><t>hi</t></r><r><t>t</t></r></si></sst>"
HEADER = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>question</t></is></c>'
    '<c r="D1" t="s"><v>1</v></c></row>'
)
ROW = (
    '<row r="3"><c r="A3"><v>7</v></c><c r="B3" t="str"><v>Who?</v></c>'
    '<c r="C3"><v>9</v></c><c r="D3" t="b"><v>1</v></c></row>'
)


def written(path, rows, shared=SHARED, sheet="xl/worksheets/sheet1.xml", head=""):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("xl/sharedStrings.xml", shared)
        file.writestr(
            sheet, f"{head}<worksheet {NAMESPACE}><sheetData>{rows}</sheetData></worksheet>"
        )
    return path


def test_cells_of_a_workbook_are_read_by_column_and_type(tmp_path):
    """Empty cells and errors are None."""
    row = '<row r="4"><c r="A4" t="e"><v>#N/A</v></c><c r="D4"><v>0.5</v></c></row>'
    path = written(tmp_path / "r.xlsx", HEADER + ROW + row)

    assert list(workbook_rows(path)) == [
        (3, {"index": 7, "question": "Who?", "hit": True}),
        (4, {"index": None, "question": None, "hit": 0.5}),
    ]


def test_results_of_vlmevalkit_are_read_from_its_workbooks(tmp_path):
    for model, hit in (("alpha", 1), ("beta", 0)):
        (tmp_path / model).mkdir()
        row = ROW.replace("<v>1</v></c></row>", f"<v>{hit}</v></c></row>")
        written(tmp_path / model / f"{model}_Caps_gpt-4_result.xlsx", HEADER + row)

    frame = read_results([tmp_path / "alpha", tmp_path / "beta"]).frame

    assert frame["model"].tolist() == ["alpha", "beta"]
    assert frame["score"].tolist() == [1.0, 0.0]
    assert set(frame["item"]) == {"7"}


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"rows": "<row>"}, DataError, "not a workbook that can be read"),
        ({"rows": HEADER, "shared": "<sst/>"}, DataError, "not a workbook that can be read"),
        ({"rows": HEADER, "head": "<!DOCTYPE x>"}, DataError, "defines a document type"),
    ],
    ids=["cut off", "text that is not there", "a document type"],
)
def test_damaged_workbooks_raise_an_error(tmp_path, how, error, message):
    path = written(tmp_path / "r.xlsx", **how)

    with pytest.raises(error, match=message):
        list(workbook_rows(path))


@pytest.mark.parametrize(
    ("old", "new"),
    [(">7<", ">٣<"), (">7<", ">1_0<"), (">7<", ">nan<"), (">1<", ">-1<"), ('r="3"', 'r="٣"')],
)
def test_numbers_of_a_workbook_with_other_characters_are_rejected(tmp_path, old, new):
    path = written(tmp_path / "r.xlsx", (HEADER + ROW).replace(old, new))

    with pytest.raises(DataError, match=r"digits 0 to 9|expected an integer"):
        list(workbook_rows(path))
