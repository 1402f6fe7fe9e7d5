"""What builders over the construction share: keys of rows, folders of work, errors told plainly."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from surface_consistency.errors import DataError
from surface_consistency.studies.dataset_build import ROW_KEY
from surface_consistency.wikimedia.construction import BuildResult

__all__ = ["keyed_rows", "prepared", "require_hash", "work_folder"]


def keyed_rows(result: BuildResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a build under their keys, as `datasets` takes them.

    Args:
        result: A finished build; its rows are checked against their record as they are read.

    Yields:
        Key and row.

    Raises:
        DataError: If two rows have one key, which `datasets` would accept.
    """
    seen: set[str] = set()
    for row in result.rows():
        key = json.dumps([getattr(row, name) for name in ROW_KEY], ensure_ascii=False)
        if key in seen:
            raise DataError(f"two rows have the key {key} ({', '.join(ROW_KEY)})")
        seen.add(key)
        yield key, row.model_dump(mode="json")


def require_hash(builder: datasets.DatasetBuilder) -> None:
    """Refuse a builder whose cache would outlive a change of its sources.

    Args:
        builder: The builder.

    Raises:
        ValueError: If it was made without a hash.
    """
    if builder.hash is None:
        raise ValueError(
            f"{type(builder).__name__} has no hash, so its cache would outlive a change of the "
            "sources; make it with the function beside it"
        )


def work_folder(cache_dir: str | os.PathLike[str], wiki: str) -> Path:
    """Name the folder of what is staged: one a wiki, so that configurations share it.

    Args:
        cache_dir: Where builders keep their rows.
        wiki: Name of a wiki, or file of its configuration.

    Returns:
        The folder.
    """
    return Path(cache_dir, "dumps-work", Path(wiki).stem.partition("-")[0])


def prepared(builder: datasets.DatasetBuilder) -> datasets.Dataset:
    """Build a data set, or take it from the cache when nothing changed.

    Args:
        builder: A builder with a split "test".

    Returns:
        The rows.

    Raises:
        DataError: Whatever is wrong with the sources, as it was raised.
    """
    try:
        builder.download_and_prepare()
    except datasets.exceptions.DatasetGenerationError as error:
        if isinstance(error.__cause__, DataError):
            raise error.__cause__ from None
        raise
    return builder.as_dataset(split=datasets.Split.TEST)
