"""Reading predictions that were made elsewhere: JSONL, CSV, lm-evaluation-harness samples."""

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.schemas.generations import replace_surrogates

__all__ = ["ID_COLUMNS", "TEXT_COLUMNS", "read_predictions"]

ID_COLUMNS = (
    "id",
    "question_id",
    "prompt_id",
    "instance_id",
    "example_id",
    "qid",
    "idx",
    "question",
    "prompt",
)
"""Columns looked for as the identifier, best first; the question's own text is the last resort."""
TEXT_COLUMNS = (
    "prediction",
    "text",
    "output",
    "response",
    "generation",
    "generated_text",
    "model_output",
    "completion",
)
"""Columns looked for as the predicted text, best first."""
_JSON_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a file and where it stands."""

    place: str
    fields: Mapping[str, Any]


def read_predictions(
    path: str | os.PathLike[str], *, id_column: str | None = None, text_column: str | None = None
) -> dict[str, str]:
    """Read stored predictions of any of the usual layouts.

    JSONL (`.jsonl`, `.ndjson`) and CSV (`.csv`, `.tsv`; every cell is text, "NA" and "null"
    too) need one column with the question's identifier and one with the text. A JSONL file with
    the fields of lm-evaluation-harness (`doc`, `arguments`, `resps` or `filtered_resps`) is read
    as its samples: the identifier is `id`, `question_id` or `question` of `doc`, else the prompt
    itself; the text is the first response, unfiltered where it is there. Lone surrogates of a text,
    which no file in UTF-8 can hold, become "?".

    Args:
        path: The file, UTF-8, a byte order mark allowed.
        id_column: Column of the identifier; None takes the first of `ID_COLUMNS` that is there.
        text_column: Column of the text; None takes the first of `TEXT_COLUMNS` that is there.

    Returns:
        Identifier to text, in the file's order. Rows whose text is null are left out: they are
        questions without an answer.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the kind of file is unknown or it holds no row.
        ColumnNotFoundError: If a column is missing; names those looked for and those seen.
        RecordError: If a row is broken, or two rows give one identifier different texts; names
            file and line.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"no file {file}; expected stored predictions there")
    texts: dict[str, str] = {}
    for place, name, text in _pairs(file, id_column, text_column):
        if text is not None and texts.setdefault(name, text) != text:
            # Places are not kept, which would take more room than the texts: read again.
            pairs = _pairs(file, id_column, text_column)
            first = next(at for at, known, said in pairs if known == name and said is not None)
            raise RecordError(
                f"{place}: a second prediction for {_shown(name)}, other than that of {first}; "
                "keep one of them, or name the identifier by `id_column`"
            )
    return texts


def _pairs(
    file: Path, id_column: str | None, text_column: str | None
) -> Iterator[tuple[str, str, str | None]]:
    """Read place, identifier and text of each row."""
    rows = _rows(file)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{file} holds no predictions; it is empty")
    if _is_lm_eval(first.fields):
        return (_lm_eval_pair(row, id_column, text_column) for row in chain([first], rows))
    columns = (
        _column(file, "identifier", id_column, ID_COLUMNS, first.fields),
        _column(file, "prediction", text_column, TEXT_COLUMNS, first.fields),
    )
    return (_pair(row, *columns) for row in chain([first], rows))


def _rows(file: Path) -> Iterator[_Row]:
    """Read the rows of a file by its suffix."""
    suffix = file.suffix.lower()
    if suffix in _JSON_SUFFIXES:
        return _json_rows(file)
    if suffix in _DELIMITERS:
        return _csv_rows(file, _DELIMITERS[suffix])
    known = ", ".join(sorted({*_JSON_SUFFIXES, *_DELIMITERS}))
    raise DataError(
        f"{file}: unknown kind of file {suffix!r}; save the predictions as one of {known}"
    )


def _json_rows(file: Path) -> Iterator[_Row]:
    """Read objects, one a line."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file}:{number}"
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not content.strip():
                continue
            try:
                value = json.loads(content)
            except (UnicodeDecodeError, json.JSONDecodeError) as error:
                raise RecordError(
                    f"{place}: not a line of JSON ({error}); repair or remove the line"
                ) from error
            if not isinstance(value, dict):
                raise RecordError(
                    f"{place}: expected an object with named fields, got {_shown(value)}"
                )
            yield _Row(place, value)


def _csv_rows(file: Path, delimiter: str) -> Iterator[_Row]:
    """Read rows under a header; every cell stays the text that it is."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        header: list[str] | None = None
        start = 1
        try:
            for cells in reader:
                place, start = f"{file}:{start}", reader.line_num + 1
                if not cells:
                    continue
                if header is None:
                    header = _header(place, cells)
                elif len(cells) != len(header):
                    raise RecordError(
                        f"{place}: {len(cells)} cells under a header of {len(header)}; quote "
                        "cells that hold the delimiter or a line break"
                    )
                else:
                    yield _Row(place, dict(zip(header, cells, strict=True)))
        except (UnicodeDecodeError, csv.Error) as error:
            raise RecordError(
                f"{file}:{start}: not readable as UTF-8 text with delimiter {delimiter!r} "
                f"({error}); repair the row"
            ) from error


def _header(place: str, cells: list[str]) -> list[str]:
    """Check that every column has a name of its own."""
    for name in cells:
        if cells.count(name) > 1:
            raise RecordError(
                f"{place}: the header names column {name!r} twice; rename one of them"
            )
    return cells


def _column(
    file: Path, what: str, named: str | None, candidates: Sequence[str], seen: Mapping[str, Any]
) -> str:
    """Pick a column, or say what was looked for and what is there."""
    looked_for = candidates if named is None else (named,)
    for name in looked_for:
        if name in seen:
            return name
    raise ColumnNotFoundError(
        f"{file}: no column with the {what}; looked for {', '.join(looked_for)}; saw "
        f"{', '.join(map(str, seen))}; name it by `{'id' if what == 'identifier' else 'text'}"
        "_column`"
    )


def _pair(row: _Row, id_column: str, text_column: str) -> tuple[str, str, str | None]:
    """Read one row of a plain file."""
    for name in (id_column, text_column):
        if name not in row.fields:
            raise RecordError(f"{row.place}: no field {name!r}; saw {', '.join(row.fields)}")
    text = row.fields[text_column]
    return row.place, _identifier(row, id_column, row.fields[id_column]), _text_of(row, text)


def _is_lm_eval(fields: Mapping[str, Any]) -> bool:
    """Tell samples of lm-evaluation-harness by their fields."""
    return "doc" in fields and ("resps" in fields or "filtered_resps" in fields)


def _lm_eval_pair(
    row: _Row, id_column: str | None, text_column: str | None
) -> tuple[str, str, str | None]:
    """Read one sample of lm-evaluation-harness."""
    doc = row.fields.get("doc")
    if not isinstance(doc, dict) or not _is_lm_eval(row.fields):
        raise RecordError(f"{row.place}: not a sample of lm-evaluation-harness like the first line")
    text = _text_of(row, _lm_eval_text(row, text_column))
    return row.place, _lm_eval_identifier(row, doc, id_column), text


def _lm_eval_identifier(row: _Row, doc: Mapping[str, Any], id_column: str | None) -> str:
    """Take the document's identifier, else its question, else the prompt."""
    for name in ("id", "question_id") if id_column is None else (id_column,):
        if name in doc:
            return _identifier(row, f"doc.{name}", doc[name])
    if id_column is not None:
        raise ColumnNotFoundError(
            f"{row.place}: no field {id_column!r} in `doc`; saw {', '.join(map(str, doc))}"
        )
    question = doc.get("question")
    if isinstance(question, str) and question:
        return question
    arguments = row.fields.get("arguments")
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    request = arguments[0] if isinstance(arguments, list) and arguments else None
    if isinstance(request, dict):
        request = list(request.values())
    prompt = request[0] if isinstance(request, list) and request else None
    if not isinstance(prompt, str) or not prompt:
        raise RecordError(
            f"{row.place}: `doc` has neither id, question_id nor question and `arguments` holds "
            "no prompt; name the identifier by `id_column`"
        )
    return prompt


def _lm_eval_text(row: _Row, text_column: str | None) -> str:
    """Take the first response."""
    name = text_column or ("resps" if "resps" in row.fields else "filtered_resps")
    value: object = row.fields.get(name)
    while isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, str):
        raise RecordError(
            f"{row.place}: field {name!r} holds no generated text but {_shown(value)}; only "
            "samples of generation tasks (output_type generate_until) can be scored"
        )
    return value


def _identifier(row: _Row, field: str, value: object) -> str:
    """Read an identifier: a string, or a whole number as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value:
        return value
    raise RecordError(
        f"{row.place}: field {field!r}: an identifier is a string or a whole number, got "
        f"{_shown(value)}"
    )


def _text_of(row: _Row, value: object) -> str | None:
    """Read a predicted text; what UTF-8 cannot hold is replaced."""
    if value is None:
        return None
    if isinstance(value, str):
        return replace_surrogates(value)
    raise RecordError(f"{row.place}: a prediction is a string, got {_shown(value)}")


def _shown(value: object) -> str:
    """Show a value, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
