"""Convert rows of any layout to items in forms; a layout assigns cells to fields."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from surface_consistency.data.sources import (
    SAMPLE,
    OpenSource,
    Source,
    locate,
    open_snapshot,
    open_source,
)
from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.reading import first_names, read_lines, shown
from surface_consistency.rows.readers import Place, Row, read_rows
from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.text import did_you_mean

Wordings = Literal["shared", "templates", "own"]
"""Whether forms are the same for all items, templates of a relation, or specific to each item."""

_HOLE: Final = re.compile(r"\{([^{}]+)\}")
_PRESETS: Final = Path(__file__).with_name("presets.toml")


class Layout(Record):
    """Assignment of the cells of a source to fields; {column} in a text is replaced by a cell."""

    source: str = ""
    """Hub repository; "" if the user must provide files."""

    files: str = ""
    """Files below a folder, with column names in braces; "" for the rows of `open_source`."""

    templates: str = ""
    """Files of templates that are joined to the rows; "" for no templates."""

    licence: str = ""
    """Licence of the data."""

    item: str = ""
    """Id of the item."""

    form: str = ""
    """Label of the form."""

    question: str = ""
    """The question."""

    references: str = ""
    """Column of the accepted answers."""

    choices: str | Items[str] = ""
    """Column of the choices, or several columns of one choice each."""

    letters: str = ""
    """Letters of the choices, if the question contains them."""

    separator: str = ""
    """Separator of choices in one cell; "" for lists."""

    kind: str = ""
    """Kind of the form, such as its language."""

    relation: str = ""
    """Relation of the item."""

    cluster: str = ""
    """Cluster for intervals."""

    reference: str = ""
    """Reference form; the first form by default."""

    wordings: Wordings | None = None
    """Kind of forms; None for templates if all rows have a relation, and shared otherwise."""

    each: str = ""
    """A cell whose entries are forms, as `key` and `value`."""

    forms: tuple[Mapping[str, str], ...] = ()
    """Forms that are columns of one row, each with the fields in which it differs."""

    replace: Mapping[str, str] = {}
    """Texts that are replaced in a question, with their replacements."""

    cloze: str = ""
    """Marker of the place of the answer in a sentence; "" for questions."""

    split: str = ""
    """Characters; a line is split into question and answer after the last of any of them."""

    frame: NonEmpty = "Q: {question} A:"
    """Prompt template."""

    note: str = ""
    """Note on the data, which is printed as a warning."""


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Layout]:
    """Read the layouts of known data sets.

    Returns:
        Layouts by name.
    """
    with _PRESETS.open("rb") as file:
        tables = tomllib.load(file)
    for table in tables.values():
        for name in ("choices", "forms"):
            if isinstance(table.get(name), list):
                table[name] = tuple(table[name])
        if table.get("cloze"):
            table["frame"] = "{question}"
    return {name: Layout.model_validate(table) for name, table in tables.items()}


def find_preset(name: str) -> Layout:
    """Return a layout by name.

    Args:
        name: Its name.

    Returns:
        The layout.

    Raises:
        DataError: If no layout has that name; the message lists the names.
    """
    known = presets()
    if name not in known:
        raise DataError(
            f"preset {name!r} not found{did_you_mean(name, known)}; the presets are "
            f"{', '.join(known)}. Rows with the columns item, form, question and references do "
            "not need a preset"
        )
    return known[name]


def layout_rows(
    layout: Layout, source: Source, *, revision: str | None = None, split: str = "test"
) -> OpenSource:
    """Open the rows of a source in the layout of a data set, joined with the templates.

    Args:
        layout: The layout.
        source: Folder, file, hub id, or rows in memory; "" for the layout's own repository.
        revision: Commit of the hub repository.
        split: Split of the hub repository, for layouts without files.

    Returns:
        The source, whose rows also have the columns of paths and templates.

    Raises:
        SourceNotFoundError: If the files do not exist, or the repository is gated or out of reach.
        DataError: If there is neither a source nor a repository.
    """
    if not isinstance(source, str | os.PathLike):
        return open_source(source, revision=revision, split=split)
    name = os.fspath(source) or layout.source
    is_sample = isinstance(source, str) and source == SAMPLE
    if not name:
        raise DataError(
            f"this preset has no repository on the hub: download the data and pass the folder as "
            f"`source` ({layout.files})"
        )
    if not layout.files or is_sample:
        return open_source(source or name, revision=revision, split=split)
    found = locate(name, revision=revision)
    if found.path.is_file():
        return open_snapshot(name, found, split=split)
    rows = _folder_rows(layout, found.path)
    return OpenSource(id=name, revision=found.revision, folder=None, columns=(), rows=rows)


def _folder_rows(layout: Layout, folder: Path) -> Iterator[Row]:
    """Read all files of a layout, each row with the columns from its path and its templates."""
    files = list(_files(folder, layout.files))
    if not files:
        raise SourceNotFoundError(
            f"{folder} contains no file {layout.files}; pass the folder that contains them"
        )
    templates = _templates(layout, folder)
    shared = [name for name in _HOLE.findall(layout.templates) if name in layout.files]
    for path, names in files:
        joined = templates.get(tuple(names[name] for name in shared), [{}])
        for number, (place, row) in enumerate(_rows(path, layout), start=1):
            for template in joined:
                numbered = place.number if layout.split else number
                yield place, {**row, **names, "row": numbered, **template}


def _templates(layout: Layout, folder: Path) -> dict[tuple[str, ...], list[dict[str, object]]]:
    """Read the templates by the columns from their paths."""
    if not layout.templates:
        return {}
    read: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for path, names in _files(folder, layout.templates):
        rows = [{**row, "template": number} for number, (_, row) in enumerate(_rows(path, layout))]
        read.setdefault(tuple(names.values()), []).extend(rows)
    if not read:
        raise SourceNotFoundError(
            f"{folder} contains no templates {layout.templates}; pass the folder that contains them"
        )
    return read


def _files(folder: Path, pattern: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """Find the files that match a pattern, with the values of the names in it."""
    parts = _HOLE.split(pattern)
    expression = "".join(
        f"(?P<{part}>[^/]+?)" if number % 2 else _as_expression(part)
        for number, part in enumerate(parts)
    )
    for path in sorted(folder.rglob("*")):
        match = re.fullmatch(expression, path.relative_to(folder).as_posix())
        if match and path.is_file():
            yield path, match.groupdict()


def _as_expression(part: str) -> str:
    """Write the fixed part of a pattern as a regular expression."""
    escaped = re.escape(part)
    return escaped.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")


def _rows(path: Path, layout: Layout) -> Iterator[Row]:
    """Read rows, or lines that are split into question and answer."""
    if not layout.split:
        yield from read_rows(path)
        return
    for number, line in read_lines(path):
        text = line.decode("utf-8").strip()
        end = max(text.rfind(letter) for letter in layout.split)
        if text:
            question, answer = text[: end + 1].strip(), text[end + 1 :].strip()
            yield Place(str(path), number), {"question": question, "answer": answer}


def forms_of_row(
    layout: Layout, row: Mapping[str, object], place: Place
) -> Iterator[dict[str, Any]]:
    """Read the forms of a row.

    Args:
        layout: The layout.
        row: The row.
        place: File and line of the row.

    Yields:
        Per form: item, form, question, references, choices, kind, relation and cluster.

    Raises:
        ColumnNotFoundError: If a cell of the layout is missing; the message contains the place.
    """
    entries: Sequence[Mapping[str, object]] = [{}]
    if layout.each:
        cell = _cell(row, layout.each, place)
        if not isinstance(cell, Mapping):
            raise ColumnNotFoundError(
                f"{place}: column {layout.each!r} does not contain forms by name"
            )
        entries = [{"key": key, "value": value} for key, value in cell.items()]
    for entry in entries:
        cells = {**row, **entry}
        for form in layout.forms or ({},):
            texts = {
                name: form.get(name, getattr(layout, name))
                for name in (
                    "item",
                    "form",
                    "question",
                    "references",
                    "kind",
                    "relation",
                    "cluster",
                )
            }
            answers = texts.pop("references")
            filled = {name: _filled(text, cells, place) for name, text in texts.items()}
            for old, new in layout.replace.items():
                filled["question"] = filled["question"].replace(old, _filled(new, cells, place))
            path = _filled(answers, cells, place)
            yield filled | {
                "references": _cell(cells, path, place),
                "choices": _choices(layout, cells, place),
            }


def _choices(layout: Layout, row: Mapping[str, object], place: Place) -> object:
    """Read the choices of a row."""
    if layout.letters:
        return list(layout.letters)
    if not isinstance(layout.choices, str):
        return [_cell(row, name, place) for name in layout.choices]
    if not layout.choices:
        return None
    cell = _cell(row, layout.choices, place)
    return cell.split(layout.separator) if layout.separator and isinstance(cell, str) else cell


def _filled(text: str, row: Mapping[str, object], place: Place) -> str:
    """Insert the cells of a row into a text."""
    return _HOLE.sub(lambda hole: str(_cell(row, hole[1], place)), text)


def _cell(row: Mapping[str, object], path: str, place: Place) -> Any:  # noqa: ANN401
    """Return a cell, or a value inside a cell by its path."""
    if path in row:
        return row[path]
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, Sequence) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ColumnNotFoundError(
                f"{place}: no {shown(path)}; pass a file or folder in the layout of the preset. "
                f"Columns: {first_names(row)}"
            )
    return value
