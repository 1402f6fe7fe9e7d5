"""What builders over the construction share: keys of rows, folders of work, errors told plainly."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from surface_consistency.data.features import make_features
from surface_consistency.errors import DataError, SurfaceConsistencyError
from surface_consistency.studies.dataset_build import ROW_KEY
from surface_consistency.wikimedia.construction import BuildResult, BuiltRow

__all__ = ["BuiltRowsBuilder", "keyed_rows", "prepared", "require_hash", "work_folder"]


class BuiltRowsBuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """A builder whose rows come from a build over the dumps in `data_dir`."""

    HOMEPAGE = ""

    result: BuildResult | None = None
    """What the build left out, once it has run; None when the rows came from the cache."""

    @abstractmethod
    def run(self, data_dir: str, work: str) -> BuildResult:
        """Build with the configuration's settings.

        Args:
            data_dir: Folder of dump files.
            work: Folder for what is staged.

        Returns:
            The rows and what was left out on the way.
        """

    def _info(self) -> datasets.DatasetInfo:
        """Describe the columns and the licence of the rows."""
        return datasets.DatasetInfo(
            description=self.config.description,
            features=make_features(BuiltRow),
            homepage=self.HOMEPAGE,
            license="cc-by-sa-4.0",
        )

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        """Offer the one split of the release."""
        require_hash(self)
        work = work_folder(self._cache_dir_root, self.config.wiki)
        return [
            datasets.SplitGenerator(
                name=datasets.Split.TEST,
                gen_kwargs={"data_dir": self.config.data_dir, "work": os.fspath(work)},
            )
        ]

    def _generate_examples(self, data_dir: str, work: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Build, and yield the validated rows under their keys."""
        self.result = self.run(data_dir, work)
        yield from keyed_rows(self.result)


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
        SurfaceConsistencyError: Whatever is wrong, as it was raised.
    """
    try:
        builder.download_and_prepare()
    except datasets.exceptions.DatasetGenerationError as error:
        if isinstance(error.__cause__, SurfaceConsistencyError):
            raise error.__cause__ from None
        raise
    return builder.as_dataset(split=datasets.Split.TEST)
