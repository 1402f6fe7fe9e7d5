"""The processor time for hostile files and texts grows linearly with their size.

Time is measured as in `test_growth`, until the result or the error.
"""

import copy
import gzip
import json
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.data.slaq_rows import without_markup
from surface_consistency.engine.judging.labels import read_labels
from surface_consistency.errors import DataError, RunError
from surface_consistency.redaction import Redactor
from surface_consistency.results import promptfoo
from surface_consistency.results.frame import read_results
from surface_consistency.results.layouts import flat_rows
from surface_consistency.results.names import direction, is_property, is_task
from surface_consistency.results.predictions import read_predictions
from surface_consistency.results.samples import written_out
from surface_consistency.rows.cells import answers_of, plain, strings_of
from surface_consistency.rows.readers import Place, read_rows
from surface_consistency.runs.files import guard_cell, unguard_cell
from surface_consistency.runs.log import read_generations
from surface_consistency.tables.latex import latex_text
from surface_consistency.tables.markdown import markdown_code, markdown_text
from surface_consistency.tables.sentences import count, stated
from surface_consistency.text import folded, guess_language, normalized, without_accents
from tests.faults.test_growth import SIZE, check_growth, compare_work
from tests.made_layouts import made

HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
SAMPLE = {"id": "q", "epoch": 1, "input": "x", "target": "x", "output": {"choices": []}}
ROW = '{"item": 1, "model": "a", "correct": 1}\n'
GENERATION = '{"prompt_id": "%d", "text": "x", "finish_reason": "stop"}\n'


def table(path, n):
    pq.write_table(pa.table({"item": range(n), "model": ["a"] * n, "x": [["b"]] * n}), path)


def workbook(path, n, unit='<row><c t="s"><v>0</v></c></row>'):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("xl/sharedStrings.xml", f"<s><si><t>{'a' * n}</t></si></s>")
        file.writestr("xl/worksheets/sheet1.xml", f"<w><sheetData>{unit * n}</sheetData></w>")


def log(path, n, **fields):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps(HEADER))
        for number in range(n):
            sample = SAMPLE | {"id": number, "scores": {"a": {"value": "C"}}} | fields
            file.writestr(f"samples/{number}.json", json.dumps(sample))


def text(make):
    """Return a function that writes the text that `make` returns for a size."""
    return lambda path, n: path.write_text(make(n))


FILES = {
    "rows.jsonl": text(lambda n: ROW * (n // 30)),
    "items.jsonl": text(lambda n: "".join(ROW.replace("1", str(k), 1) for k in range(n // 30))),
    "fields.jsonl": text(lambda n: json.dumps({f"c{k}": k for k in range(n // 11)})),
    "duplicate_fields.jsonl": text(lambda n: '{"item": 1' + ', "a": 1' * (n // 8) + "}\n"),
    "other_fields.jsonl": text(lambda n: "".join(f'{{"c{k}": 1}}\n' for k in range(n // 12))),
    "nested.jsonl": text(lambda n: '{"a": ' * (n // 6)),
    "nested_lists.jsonl": text(lambda n: '{"a": ' + "[" * n + "]" * n + "}"),
    "wide_lists.jsonl": text(lambda n: '{"a": [' + "[[]], " * (n // 6) + "1]}"),
    "escapes.jsonl": text(lambda n: '{"item": "' + "\\u0061\\n" * (n // 8) + '"}'),
    "open_text.jsonl": text(lambda n: '{"item": "' + '\\"' * (n // 2)),
    "blank.jsonl": text(lambda n: ROW + "\n" * n + ROW),
    "blanks.jsonl": text(lambda n: ROW + " \t\r\n" * (n // 4) + ROW),
    "digits.jsonl": text(lambda n: '{"item": ' + "1" * n + "}"),
    "fraction.jsonl": text(lambda n: '{"item": 1, "model": "a", "score": 0.' + "1" * n + "}"),
    "marks.jsonl": text(lambda n: "\ufeff" * (n // 3)),
    "list.json": text(lambda n: "[" + ROW + f", {ROW}" * (n // 30) + "]"),
    "open_list.json": text(lambda n: "[" + f"{ROW}, " * (n // 30)),
    "empty_items.json": text(lambda n: "[" + "{}, " * (n // 4) + "{}]"),
    "commas.json": text(lambda n: "[" + "," * n),
    "blank_list.json": text(lambda n: "[" + "{}" + " \n" * (n // 2) + ", {}]"),
    "object.json": text(lambda n: '{\n"a": [' + "1, " * (n // 3) + "1]}"),
    "rows_within.json": text(lambda n: '{\n"results": [' + f"{ROW}, " * (n // 30) + ROW + "]}"),
    "by_item.json": text(lambda n: json.dumps({f"q{k}": k % 2 for k in range(n // 9)}, indent=1)),
    "by_column.json": text(
        lambda n: json.dumps({"score": {f"q{k}": k % 2 for k in range(n // 9)}}, indent=1)
    ),
    "split.json": text(
        lambda n: json.dumps(
            {"columns": ["item", "score"], "data": [[k, 1] for k in range(n // 9)]}, indent=1
        )
    ),
    "rows.csv": text(lambda n: "item,model,correct\n" + "1,a,1\n" * (n // 6)),
    "items.csv": text(
        lambda n: "item,model,correct\n" + "".join(f"{k},m{k % 2},1\n" for k in range(n // 9))
    ),
    "columns.csv": text(
        lambda n: ",".join(f"c{k}" for k in range(n // 9)) + "\n" + "1," * (n // 9)
    ),
    "models.csv": text(
        lambda n: "item," + ",".join(f"m{k}" for k in range(n // 60)) + "\n1" + ",1" * (n // 60)
    ),
    "quotes.csv": text(lambda n: 'item\n"' + '""' * (n // 2) + '"\n'),
    "open_quote.csv": text(lambda n: 'item\n"' + "a\n" * (n // 2)),
    "quotes_in_cells.csv": text(lambda n: "item\n" + 'a"' * (n // 2)),
    "quoted.csv": text(lambda n: "item\n" + '"a"\n' * (n // 4)),
    "returns.csv": text(lambda n: "item,model" + "\r" * n),
    "returns_and_lines.csv": text(lambda n: "item\r\n" + "a\r\n\r\n" * (n // 5)),
    "commas.csv": text(lambda n: "item,model,correct\n" + "," * n),
    "outputs.csv": text(lambda n: "[a] b," * (n // 7) + "c\n" + "x," * (n // 7)),
    "promptfoo.csv": text(lambda n: "q,[a] b\n" + "w,[PASS] (1) x\n" * (n // 16)),
    "promptfoo_label.csv": text(lambda n: "q,[a] " + "[a] " * (n // 4) + "\nw,[PASS] (1) x\n"),
    "rows.tsv": text(lambda n: "item\tmodel\tcorrect\n" + "1\ta\t1\n" * (n // 6)),
    "rows.jsonl.gz": lambda path, n: path.write_bytes(gzip.compress(ROW.encode() * (n // 30))),
    "rows.parquet": lambda path, n: table(path, n // 10),
    "columns.parquet": lambda path, n: pq.write_table(
        pa.table({f"c{k}": [1] for k in range(n // 100)}), path
    ),
    "rows.xlsx": lambda path, n: workbook(path, n // 30),
    "cells.xlsx": lambda path, n: workbook(path, n // 20, "<row><c><v>1</v></c></row>"),
    "reference.xlsx": lambda path, n: workbook(path, 1, f"<row><c r='{'Z' * n}1'/></row>"),
    "samples.eval": lambda path, n: log(path, n // 100),
    "scores.eval": lambda path, n: log(
        path, 1, scores={f"s{k}": {"value": "C"} for k in range(n // 30)}
    ),
    "turns.eval": lambda path, n: log(path, 1, input=[{"content": "a"}] * (n // 20)),
    "parts.eval": lambda path, n: log(
        path, 1, input=[{"content": [{"type": "text", "text": "a"}] * (n // 30)}]
    ),
    "labels.csv": text(
        lambda n: "prompt_id,question_id,correct\n" + "".join(f"{k},a,1\n" for k in range(n // 8))
    ),
    "guarded_labels.csv": text(lambda n: "prompt_id,question_id,correct\na,b," + "'" * n + "=\n"),
    "generations.jsonl": text(lambda n: "".join(GENERATION % k for k in range(n // 60))),
    "one_prompt.jsonl": text(lambda n: GENERATION % 1 * (n // 60)),
    "blank_generations.jsonl": text(lambda n: "\n" * n + GENERATION % 1),
    "torn_generations.jsonl": text(lambda n: GENERATION[:-1] % 1 * (n // 60)),
}
"""Functions that write a file of about n bytes, by the name of the file."""

OF_NAME = {"labels": [read_labels], "generations": [read_generations], "prompt": [read_generations]}


def readers_of(name):
    """List the readers of a file."""
    special = [reader for part, readers in OF_NAME.items() if part in name for reader in readers]
    rows = [] if name.endswith((".xlsx", ".eval")) else [lambda path: list(read_rows(path))]
    return special or [read_results, partial(read_predictions), *rows]


def read(reader, path):
    """Read a file until its end or an error."""
    with suppress(DataError, RunError):
        list(reader(path)) if reader is read_generations else reader(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_files_are_read_in_linear_time(tmp_path, name):
    paths = [tmp_path / f"{size}_{name}" for size in ("small", "large")]
    for path, n in zip(paths, (SIZE, 16 * SIZE), strict=True):
        FILES[name](path, n)
    for reader in readers_of(name):
        compare_work(partial(read, reader), *paths, name)


SAMPLES = made(((0, 1), (1, 0)))
LARGE = [made([(k, k % 2) for k in range(n)]) for n in (100, 1_600)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", SAMPLES)
def test_many_rows_of_a_layout_are_read_in_linear_time(tmp_path, layout):
    paths = [tmp_path / "small.json", tmp_path / "large.json"]
    for path, content in zip(paths, LARGE, strict=True):
        path.write_text(json.dumps(content[layout]))
    compare_work(partial(read, read_results), *paths, layout)


def places(value, path=()):
    """List the paths of all values within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for name, cell in inner:
        yield (*path, name)
        if isinstance(cell, dict | list):
            yield from places(cell, (*path, name))


def enlarged(content, path, unit, n):
    """Enlarge a list, an object or a text in a file of a layout."""
    content = copy.deepcopy(content)
    inside = content
    for step in path[:-1]:
        inside = inside[step]
    cell = inside[path[-1]]
    if isinstance(cell, dict):
        cell |= {f"{name}{k}": one for name, one in [*cell.items()][-1:] for k in range(n // 20)}
    else:
        inside[path[-1]] = cell * (n // 20) if isinstance(cell, list) else unit * (n // len(unit))
    return content


def flatten(layout, content):
    """Flatten the rows of a file."""
    rows = content if isinstance(content, list) else [content]
    places = ((Place("a.json", k), row) for k, row in enumerate(rows, start=1))
    with suppress(DataError):
        list(flat_rows(places, Path("a.json"), [])[1])


@pytest.mark.parametrize("layout", SAMPLES)
def test_long_values_of_a_layout_are_read_in_linear_time(layout):
    for path in places(SAMPLES[layout]):
        for unit in ("a", " ", "a: "):
            contents = [enlarged(SAMPLES[layout], path, unit, n) for n in (SIZE, 16 * SIZE)]
            compare_work(partial(flatten, layout), *contents, f"{path} of {layout}")


def test_many_prompts_of_promptfoo_are_read_in_linear_time():
    rows = [
        [
            {"provider": "p", "prompt": {"raw": "q", "label": f"l{k}"}, "vars": {"q": "x"},
             "success": True, "score": 1, "response": {"output": "A"}, "promptIdx": k}
            for k in range(n)
        ]
        for n in (250, 4_000)
    ]  # fmt: skip
    compare_work(partial(flatten, "promptfoo"), *rows, "prompts of promptfoo")


def cell(inside):
    return promptfoo._result(["[a] b"], [inside])


UNITS = (
    *(" ", "a", "a ", ",", ", ", ": ", "a: b, ", ".", ")", "(", "'", '"', "`", "*", "_", "-", "\\"),
    *("1", "1,", "<", "<a", "<sup>", "<ref>", "<p ", "&", "[", "{", "|", "=", "\n", "\t", "%41"),
    *("Pass Reason: ", "\u0301\u0327", "\u3099", "not ", "neg_", "\nQ:", " A:", "['a' 'b'] "),
    *("','", "b'", "np.", "mean of "),
)
TEXTS = {
    "promptfoo_cell": lambda text: cell(f"[PASS] (1) {text}"),
    "promptfoo_scores": lambda text: cell(f"[PASS] (1, {text}) x"),
    "written_out": lambda text: written_out({"prompt_0": text, "logit_0": text}, Place("a", 1)),
    "markdown": lambda text: (markdown_text(text), markdown_code(text)),
    "latex": latex_text,
    "guards": lambda text: (guard_cell(text), unguard_cell(text)),
    "sentences": lambda text: (stated(text), count(1, 2, text, model=text)),
    "names": lambda text: (direction(text), is_property(text), is_task(text)),
    "cells": lambda text: (plain(text), answers_of(text), strings_of(text)),
    "markup": without_markup,
    "marks": lambda text: (folded(text), guess_language([text]), without_accents(text)),
    "normalized": lambda text: [normalized(one, text) for one in ("NFC", "NFD", "NFKC", "NFKD")],
    **{
        f"redaction of {key}": Redactor(key).text
        for key in ("a+b,c/d", "++++++++++++", "%2D%2D%2D", "\\\\\\\\\\\\", "sk-abcdefabcdef")
    },
}


def attempt(work, text):
    """Process a text; an error of the input is accepted."""
    with suppress(ValueError):
        work(text)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_files_are_processed_in_linear_time(name):
    units = [name.rpartition(" ")[2][:-1], "%2B", "\\", *UNITS] if "redaction" in name else UNITS
    for unit in units:
        for before, after in (("", ""), ("x", "x")):
            check_growth(partial(attempt, TEXTS[name]), unit, before, after)
