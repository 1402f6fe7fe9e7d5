"""Inputs of the reader of results: files, folders, frames or rows, each with a name."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pandas as pd
from pydantic import BaseModel

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import first_names
from surface_consistency.results.columns import ResultColumns, need_labels
from surface_consistency.results.run_folders import is_run
from surface_consistency.rows.readers import FORMATS, Place, Row
from surface_consistency.rows.remote import local_copy, url_of

OneSource: TypeAlias = (
    str | os.PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]] | BaseModel
)
"""A file or folder; a frame, a `datasets.Dataset`, rows, or an `EvalLog` of inspect_ai."""

ResultSource: TypeAlias = OneSource | Sequence[OneSource] | Mapping[str, OneSource]
"""One source, a sequence of sources, or a mapping of names of models to sources."""

_ROWS: Final = "rows"
_SPLITS: Final = ("DatasetDict", "IterableDatasetDict")
_ARCHIVES: Final = (".eval", ".xlsx")
_TEXTS_OF_HELM: Final = ("instances.json", "display_predictions.json")


class Input(NamedTuple):
    """One file, or rows in memory."""

    content: Path | pd.DataFrame | Iterable[Mapping[str, Any]]
    """The file, frame or rows."""

    name: str
    """Its name in messages and in the frame."""

    label: str | None
    """Name of its model that the user gives."""

    fallback: str | None
    """Name of its model if neither user nor file names it; None if it must be named."""

    is_optional: bool
    """Whether it was found in a folder, so that it need not contain results."""


def inputs_of(sources: ResultSource, given: ResultColumns) -> list[Input]:
    """List the inputs to read.

    Args:
        sources: A source, a list of sources, or a mapping of names of models to sources.
        given: Names of columns and models that the user gives.

    Returns:
        One input per file, in the given order; files of a folder by name.

    Raises:
        SourceNotFoundError: If a path does not exist, or a folder contains no file of results.
        DataError: If the numbers of labels and sources differ, splits are given instead of rows, or
            a path is given twice.
    """
    if type(sources).__name__ in _SPLITS or (isinstance(sources, Mapping) and not sources):
        raise DataError(
            f"the data set has several splits, {first_names(sources)}: give one of "  # type: ignore[arg-type]
            "them, as in data['test']"
            if sources
            else "no results are given; the mapping is empty"
        )
    if isinstance(sources, Mapping):
        if given.names:
            raise DataError(
                f"`names` gives {', '.join(given.names)}, but the results have the names "
                f"{first_names(sources)} already; omit `names`"
            )
        labelled = ResultColumns(names=tuple(map(str, sources)))
        return _listed(list(sources.values()), labelled)
    return _listed(sources, given)


def _listed(sources: Any, given: ResultColumns) -> list[Input]:  # noqa: ANN401
    """List the inputs of one source, or of a list of sources."""
    paths = _paths(sources)
    if paths is None:
        return _in_memory(sources, given)
    labels: Sequence[str | None] = given.names
    if len(paths) == 1 and len(labels) != 1:
        labels = (None,)
    elif labels:
        need_labels(given, len(paths))
    else:
        labels = [None] * len(paths)
    inputs: list[Input] = []
    called = path_labels(paths)
    for path, label in zip(paths, labels, strict=True):
        url = url_of(path)
        home = path if url is None else local_copy(url)
        files = files_of(home)
        names = path_labels(files) if len(paths) == 1 else dict.fromkeys(files, called[path])
        for file in files:
            name = str(file) if url is None else url + str(file).removeprefix(str(home))
            inputs.append(Input(file, name, label, names[file], is_optional=file != home))
    return inputs


def _in_memory(sources: Any, given: ResultColumns) -> list[Input]:  # noqa: ANN401
    """List frames, rows and logs, and lists of these and of files."""
    is_list = isinstance(sources, list | tuple) and any(
        isinstance(one, str | os.PathLike | pd.DataFrame | list) or _is_object(one)
        for one in sources
    )
    if not is_list:
        return [Input(_unwrapped(sources), _ROWS, None, _ROWS, is_optional=False)]
    others = [one for one in sources if not isinstance(one, str | os.PathLike)]
    unwrapped = {id(one): _unwrapped(one) for one in others}
    if given.names:
        need_labels(given, len(sources))
    labels: Sequence[str | None] = given.names or [None] * len(sources)
    inputs = []
    for number, (one, label) in enumerate(zip(sources, labels, strict=True), start=1):
        if isinstance(one, str | os.PathLike):
            named = ResultColumns(names=() if label is None else (label,))
            inputs += _listed(one, named)
        else:
            name = label or f"results {number}"
            inputs.append(Input(unwrapped[id(one)], name, label, label, is_optional=False))
    return inputs


def _is_object(source: object) -> bool:
    """Return whether a source is a `datasets.Dataset` or a log of inspect_ai, not rows."""
    return any(hasattr(source, name) for name in ("with_format", "to_pandas", "model_dump"))


def _paths(sources: object) -> list[Path] | None:
    """Return the given paths; None if other sources are given."""
    if isinstance(sources, str | os.PathLike):
        return [Path(sources).expanduser()]
    if isinstance(sources, list | tuple) and sources:
        items = [item for item in sources if isinstance(item, str | os.PathLike)]
        if len(items) == len(sources):
            return [Path(item).expanduser() for item in items]
    return None


def _unwrapped(source: Any) -> pd.DataFrame | Iterable[Mapping[str, Any]]:  # noqa: ANN401
    """Convert a `datasets.Dataset` to a frame, and an `EvalLog` to a row."""
    if hasattr(source, "model_dump"):
        log = source.model_dump(mode="json")
        return [{name: value for name, value in log.items() if value is not None}]
    if hasattr(source, "to_pandas"):
        plain = source.with_format(None) if hasattr(source, "with_format") else source
        frame: pd.DataFrame = plain.to_pandas()
        return frame
    if not isinstance(source, Iterable):
        raise TypeError(
            "results must be a path, a frame, a datasets object, rows, a log of inspect_ai, or a "
            f"list or mapping of these; got {type(source).__name__}"
        )
    return source


def memory_rows(rows: Iterable[Mapping[str, Any]], name: str = _ROWS) -> Iterator[Row]:
    """Yield rows in memory with their number.

    Args:
        rows: The rows.
        name: Their name in messages.

    Yields:
        Place and row.

    Raises:
        TypeError: If a row is not a mapping.
    """
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} must be a mapping, got {type(row).__name__}")
        yield Place(name, number), row


def files_of(path: Path) -> list[Path]:
    """List the files of results at a path.

    Args:
        path: A file; a folder that is one input (a run, a saved `datasets.Dataset`); or a folder of
            files.

    Returns:
        The files, by name. Files of a folder that only contain the texts of other files are
        omitted.

    Raises:
        SourceNotFoundError: If the path does not exist, or the folder contains no file of a known
            kind.
    """
    if not path.exists():
        on_hub = "; a file on the hub is named hf://datasets/OWNER/NAME/FILE"
        remedy = on_hub if len(path.parts) == 2 and not path.suffix else ""
        raise SourceNotFoundError(f"file or folder {path} not found; check the path{remedy}")
    if path.is_file() or is_run(path) or any(path.glob("**/state.json")):
        return [path]
    if (path / "scoring.json").is_file() and (path / "targets.parquet").is_file():
        raise SourceNotFoundError(
            f"{path} is the folder of a run, but its manifest.json or verdicts.parquet is missing; "
            f"restore it, or score the run again with `surface-consistency score {path}`"
        )
    known = (*FORMATS, *_ARCHIVES)
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and Path(file.name.removesuffix(".gz")).suffix.lower() in known
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    runs = [file.parent for file in found if file.name == "manifest.json" and is_run(file.parent)]
    if runs:
        return runs
    there = set(found)
    found = [file for file in found if not _is_companion(file, there)]
    if not found:
        raise SourceNotFoundError(
            f"{path} contains no file of results; searched for {', '.join(known)} in all levels"
        )
    return found


def _is_companion(file: Path, there: set[Path]) -> bool:
    """Return whether another file contains the rows of this one with their scores."""
    if file.name in _TEXTS_OF_HELM:
        return file.with_name("per_instance_stats.json") in there
    return file.with_name(f"{file.stem}_result{file.suffix}") in there


def path_labels(paths: Sequence[Path]) -> dict[Path, str]:
    """Name files by the parts of their paths that differ.

    Args:
        paths: Files or folders.

    Returns:
        Label by path: the folders that differ, otherwise the words of the name that differ; the
        file name if there is only one path.

    Raises:
        DataError: If a path is given twice.

    Examples:
        >>> list(path_labels([Path("a/alpha/x.json"), Path("a/beta/x.json")]).values())
        ['alpha', 'beta']
        >>> list(path_labels([Path("run__alpha_qa.json"), Path("run__beta_qa.json")]).values())
        ['alpha', 'beta']
    """
    twice = [path for path, n in Counter(paths).items() if n > 1]
    if twice:
        raise DataError(f"{twice[0]} is given twice; give it once")
    if len(paths) < 2:
        return {path: path.stem or str(path) for path in paths}
    parts = {path: path.resolve().with_suffix("").parts for path in paths}
    folders = _differing([one[:-1] for one in parts.values()])
    names = folders if len(set(folders)) == len(paths) else None
    if names is None:
        stems = _differing([tuple(one[-1].split("_")) for one in parts.values()], joint="_")
        names = (
            ["/".join(filter(None, pair)) for pair in zip(folders, stems, strict=True)]
            if len(set(stems)) < len(paths)
            else stems
        )
    if len(set(names)) < len(paths):
        names = _differing([path.resolve().parts for path in paths])
    return dict(zip(paths, names, strict=True))


def _differing(rows: Sequence[tuple[str, ...]], joint: str = "/") -> list[str]:
    """Join the words of each row, without the first and last words that all rows have in common."""
    shortest = min(map(len, rows))
    start = next((n for n in range(shortest) if len({row[n] for row in rows}) > 1), shortest)
    rest = [row[start:] for row in rows]
    shortest = min(map(len, rest))
    end = next((n for n in range(shortest) if len({row[-1 - n] for row in rest}) > 1), shortest)
    return [joint.join(row[: len(row) - end]) for row in rest]
