"""Open a source of rows (hub repository, folder, file or data in memory) as one stream."""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pandas as pd

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import first_names, shown
from surface_consistency.rows.columnar import check_saved_dataset
from surface_consistency.rows.readers import FORMATS, Place, Row, read_rows
from surface_consistency.rows.remote import local_copy, url_of
from surface_consistency.text import did_you_mean

SAMPLE: Final = "sample"
"""Name of the source of the bundled rows of a data set."""

SAMPLES: Final = Path(__file__).with_name("samples")
"""Folders of the bundled rows, in the layout of the hub."""

_N_FIRST: Final = 1000
_BATCH: Final = 1000
_HUB_ID: Final = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_OFFLINE_REMEDY: Final = (
    "check the connection and HF_HUB_OFFLINE, or download the repository elsewhere "
    "(`hf download {id} --repo-type dataset --local-dir FOLDER`) and pass that folder"
)
_LOGIN_REMEDY: Final = "log in with `hf auth login` or set HF_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSource:
    """Rows that can be read once, and their origin."""

    id: str
    """Hub repository, path, or a name for rows that come from memory."""

    revision: str | None
    """Commit of the hub repository; None elsewhere."""

    folder: Path | None
    """Folder of the hub's layout with the rows; None for files and rows from memory."""

    columns: tuple[str, ...]
    """Columns of the first thousand rows, in order of appearance."""

    rows: Iterator[Row]
    """The rows, not yet read."""


Source = str | os.PathLike[str] | Iterable[Mapping[str, object]] | Mapping[str, object] | OpenSource
"""Hub id, folder, file, URL, `datasets` object (one split or all of them), data frame or rows as
dictionaries; or an open source."""


def open_source(
    source: Source, *, revision: str | None = None, split: str = "test", sample: str = ""
) -> OpenSource:
    """Find a source, its split and its columns; read only the first thousand rows.

    Args:
        source: A hub id; a folder in the layout of a hub repository or one written by
            `save_to_disk`; a file (`.parquet`, `.jsonl`, `.json`, `.csv`, `.tsv`); the URL of a
            file or folder that fsspec opens, such as `hf://` or `s3://`; a `Dataset`,
            `IterableDataset` or dictionary of them; a data frame; or rows as dictionaries. A path
            that exists has precedence over a hub id of the same spelling. "sample" always means the
            bundled rows; "./sample" is a file of that name. An open source is returned as it is.
        revision: Branch, tag or commit of a hub repository.
        split: Split of a repository, folder or dictionary of splits. One file or one `Dataset` is
            the split "test".
        sample: Folder of the bundled rows below `data/samples`; "" if there are none.

    Returns:
        The open source.

    Raises:
        SourceNotFoundError: If it is missing, gated or out of reach, or has no such split.
        DataError: If it has no rows or cannot be read.
        ValueError: If `revision` is given for something that is not a hub repository, or another
            split for a source without splits.
        TypeError: If `source` is not one of these.
    """
    if isinstance(source, OpenSource):
        return source
    if isinstance(source, str) and source == SAMPLE:
        return _open_sample(sample, revision, split)
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        near = did_you_mean(name, [SAMPLE]) if sample else ""
        if near and not Path(source).exists():
            raise SourceNotFoundError(f"file or folder {shown(name, 200)} not found{near}")
        return open_snapshot(name, locate(source, revision=revision), split=split)
    _reject_revision(revision, "rows in memory")
    if isinstance(source, Mapping):
        source = _pick_split(source, split)
    dataset = getattr(getattr(source, "info", None), "dataset_name", None)
    kind = type(source).__name__
    name = f"{kind}:{dataset}" if isinstance(dataset, str) else kind
    return _opened(name, None, None, rows_in_memory(source, name), split)


def _open_sample(sample: str, revision: str | None, split: str) -> OpenSource:
    """Open the bundled rows of a data set, whose name does not depend on the installation."""
    if not sample:
        raise SourceNotFoundError(
            "no sample of these data is bundled; pass a hub id, folder or file. Pass a file "
            f"that is named {SAMPLE} as './{SAMPLE}'"
        )
    _reject_revision(revision, "the bundled sample")
    (path,) = (SAMPLES / sample).glob("test.*")
    return _opened(f"{sample}-{SAMPLE}", None, None, read_rows(path), split)


def locate(source: str | os.PathLike[str], *, revision: str | None = None) -> "Snapshot":
    """Find a local file or folder, copy one from a URL, or fetch a hub repository.

    Args:
        source: Path, URL or hub id.
        revision: Branch, tag or commit of a hub repository.

    Returns:
        The file or folder, and the commit of a hub repository.

    Raises:
        SourceNotFoundError: If it is missing, gated or out of reach.
        DataError: If fsspec cannot open the URL.
        ValueError: If `revision` is given for something that is not a hub repository.
    """
    name = os.fspath(source)
    url = url_of(source)
    path = Path(name).expanduser() if url is None else local_copy(url)
    if path.exists():
        _reject_revision(revision, name)
        return Snapshot(path, None)
    if isinstance(source, os.PathLike) or not is_hub_id(name):
        raise SourceNotFoundError(
            f"file or folder {shown(name, 200)} not found (in {Path.cwd()}); check the path. A "
            "hub repository is named owner/name"
        )
    return fetch_repository(name, revision=revision)


def open_snapshot(name: str, found: "Snapshot", *, split: str) -> OpenSource:
    """Open a file, or a split of a folder, that `locate` found.

    Args:
        name: The source as the user named it.
        found: The file or folder.
        split: The split; one file is the split "test".

    Returns:
        The open source.

    Raises:
        SourceNotFoundError: If a folder has no such split.
        DataError: If there are no rows, or they cannot be read.
    """
    path, commit = found
    if path.is_file():
        return _opened(name, None, None, read_rows(path), split)
    return _opened(name, commit, path, _folder_rows(path, name, split), split)


def _reject_revision(revision: str | None, name: str) -> None:
    """Reject a revision that would be ignored."""
    if revision is not None:
        raise ValueError(
            f"revision={shown(revision)} belongs to a hub repository, but the source is {name}; "
            "omit it"
        )


def _opened(
    name: str, revision: str | None, folder: Path | None, rows: Iterator[Row], split: str
) -> OpenSource:
    """Read the columns of the first rows; raise an error for an empty source."""
    first = list(islice(rows, _N_FIRST))
    if not first:
        raise DataError(
            f"{name} has no rows (split {shown(split)}); choose another split or source"
        )
    columns = tuple(dict.fromkeys(column for _, row in first for column in row))
    return OpenSource(
        id=name, revision=revision, folder=folder, columns=columns, rows=chain(first, rows)
    )


def _folder_rows(folder: Path, name: str, split: str) -> Iterator[Row]:
    """Read a split of a folder, from the files that the `datasets` library assigns to it."""
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        import datasets

        check_saved_dataset(folder)
        saved = datasets.load_from_disk(str(folder))
        data = _pick_split(saved, split) if isinstance(saved, Mapping) else saved
        return rows_in_memory(data, name)
    by_split = _data_files(folder, name)
    if split not in by_split:
        if not any(file.suffix.lower() in FORMATS for file in chain(*by_split.values())):
            raise _no_files(folder, name)
        if (folder / "manifest.json").is_file():
            raise SourceNotFoundError(
                f"folder {name} is a run folder and contains no data; name the data of its "
                "prompts, or a folder or file of rows"
            )
        names_of = {
            key: first_names([file.name for file in files]) for key, files in by_split.items()
        }
        raise _no_split(
            split, name, [f"{key} ({files})" for key, files in names_of.items()], *names_of
        )
    files = by_split[split]
    foreign = [file for file in files if file.suffix.lower() not in FORMATS]
    if foreign:
        raise DataError(
            f"cannot read {foreign[0]}: the formats are {', '.join(FORMATS)}; for others load it "
            "with datasets.load_dataset and pass the result"
        )
    return chain.from_iterable(map(read_rows, files))


def _data_files(folder: Path, name: str) -> dict[str, list[Path]]:
    """Return the files of each split, as `datasets` finds them by README, names and folders."""
    import datasets

    try:
        with tempfile.TemporaryDirectory() as cache:
            builder = datasets.load_dataset_builder(str(folder), cache_dir=cache)
    except FileNotFoundError as error:
        raise _no_files(folder, name) from error
    except Exception as error:
        # The README and its YAML are untrusted: the library raises errors of many types.
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataError(
            f"folder {name} cannot be loaded with its README.md and names of files ({why}); "
            "correct them, or pass one of its files or the result of datasets.load_dataset"
        ) from error
    return {
        str(split): [Path(file) for file in files]
        for split, files in dict(builder.config.data_files).items()
    }


def _pick_split(splits: Mapping[str, object], split: str) -> Iterable[Mapping[str, object]]:
    """Return one split of a dictionary of splits."""
    if split not in splits:
        names = [str(name) for name in splits]
        raise _no_split(split, "the dictionary of splits", names, *names)
    rows = splits[split]
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise TypeError(
            f"source[{shown(split)}] must contain rows, got {type(rows).__name__}; pass a single "
            "row as a list"
        )
    return rows


def _no_files(folder: Path, name: str) -> SourceNotFoundError:
    """Make an error for a folder without data, with the content of the folder."""
    content = first_names(sorted(item.name for item in folder.iterdir())) or "nothing"
    return SourceNotFoundError(
        f"folder {name} contains no data files ({', '.join(FORMATS)}) but {content}; name the "
        "folder or file with the rows"
    )


def _no_split(split: str, name: str, described: list[str], *names: str) -> SourceNotFoundError:
    """Make an error with the names of the splits."""
    known = ", ".join(described) or "none"
    remedy = f"; pass split={shown(names[0])}" if names else ""
    return SourceNotFoundError(f"split {shown(split)} not found in {name}; splits: {known}{remedy}")


def rows_in_memory(source: object, name: str) -> Iterator[Row]:
    """Number the rows of a `datasets` object, a data frame or any iterable of dictionaries."""
    if isinstance(source, pd.DataFrame):
        plain = source.astype(object)
        source = plain.where(plain.notna(), None).to_dict("records")
    if not isinstance(source, Iterable):
        raise TypeError(
            "source must be a hub id, a path, a datasets object, a data frame or rows as "
            f"dictionaries, got {type(source).__name__}"
        )
    for number, row in enumerate(_unbatched(source), start=1):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} must be a dictionary, got {type(row).__name__}")
        yield Place(name, number), row


def _unbatched(source: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Iterate over rows; `datasets` objects in plain Python values and by batches, for speed."""
    if not hasattr(source, "with_format") or not hasattr(source, "iter"):
        yield from source
        return
    for batch in source.with_format(None).iter(batch_size=_BATCH):
        for values in zip(*batch.values(), strict=True):
            yield dict(zip(batch, values, strict=True))


class Snapshot(NamedTuple):
    """A file or folder of this computer, such as a repository in the hub's cache."""

    path: Path
    """The file or folder."""

    revision: str | None
    """Commit of a hub repository; None if there is none or the cache does not name it."""


def card_language(folder: Path | None) -> str | None:
    """Return the language that the card of a data set names.

    Args:
        folder: A folder in the hub's layout; None for sources without one.

    Returns:
        The code; None if there is no readable card, or it names no language or several.
    """
    card = None if folder is None else folder / "README.md"
    if card is None or not card.is_file():
        return None
    from huggingface_hub import metadata_load
    from yaml import YAMLError

    try:
        named = (metadata_load(card) or {}).get("language")
    except (OSError, ValueError, YAMLError):
        return None
    named = [named] if isinstance(named, str) else named
    return str(named[0]) if isinstance(named, list) and len(named) == 1 else None


def is_hub_id(text: str) -> bool:
    """Check whether a source that is not a local path could be a hub repository.

    Args:
        text: The source that the user passed, such as "naist-nlp/RedirectQA".

    Returns:
        Whether it has the form `owner/name` or `name` and no suffix of a data file.

    Examples:
        >>> is_hub_id("naist-nlp/RedirectQA"), is_hub_id("./rows"), is_hub_id("data/rows.jsonl")
        (True, False, False)
    """
    return bool(_HUB_ID.fullmatch(text)) and not text.lower().endswith(tuple(FORMATS))


def fetch_repository(repository: str, *, revision: str | None = None) -> Snapshot:
    """Download the data files of a repository, or find them in the hub's cache.

    Args:
        repository: Its id.
        revision: Branch, tag or commit; the main branch when None.

    Returns:
        The folder with the README, the metadata and the data files, and its commit.

    Raises:
        SourceNotFoundError: If the repository is missing, gated, without that revision, or out of
            reach; the message has a remedy.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # The HTTP library's module differs between versions of the hub's client.
    http = [base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError"]
    failures: tuple[type[Exception], ...] = (HFValidationError, OSError, *http)
    try:
        folder = snapshot_download(
            repository,
            repo_type="dataset",
            revision=revision,
            allow_patterns=["README.md", *(f"*{suffix}" for suffix in FORMATS)],
        )
    except failures as error:
        _explain(repository, revision, error)
    path = Path(folder)
    return Snapshot(path, path.name if _COMMIT.fullmatch(path.name) else None)


def _explain(repository: str, revision: str | None, error: Exception) -> NoReturn:
    """Raise an error with a remedy for a failure of the hub."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    url = f"https://huggingface.co/datasets/{repository}"
    at = f" at revision {shown(revision)}" if revision else ""
    local = f"There is no local file or folder {shown(repository, 200)} either."
    if isinstance(error, GatedRepoError):
        message = f"{url} is gated: accept its conditions on that page, then {_LOGIN_REMEDY}."
    elif isinstance(error, RepositoryNotFoundError):
        message = (
            f"the hub has no data repository {shown(repository, 200)}, or it is private: check the "
            f"name; if it is private, {_LOGIN_REMEDY}. {local}"
        )
    elif isinstance(error, RevisionNotFoundError):
        message = (
            f"{url} has no revision {shown(revision)}: its branches and tags are at {url}/tree."
        )
    elif isinstance(error, HFValidationError):
        message = f"{shown(repository, 200)} is not a repository id of the hub ({error}). {local}"
    elif isinstance(error, LocalEntryNotFoundError):
        message = (
            f"the hub cannot be reached and {shown(repository, 200)}{at} is not in its cache: "
            f"{_OFFLINE_REMEDY.format(id=repository)}. {local}"
        )
    else:
        message = (
            f"{shown(repository, 200)}{at} could not be downloaded ({type(error).__name__}: "
            f"{error}): {_OFFLINE_REMEDY.format(id=repository)}."
        )
    raise SourceNotFoundError(message) from error
