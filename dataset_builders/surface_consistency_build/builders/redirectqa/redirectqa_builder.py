"""Builder of RedirectQA in the column layout of release v1.0.0.

`datasets` runs no loading scripts, validates no rows and keys its cache by neither code nor
source. So `build` does: every row passes its record, ids are checked, and the cache is keyed by the
content of the source and the versions of builder and package.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from surface_consistency import __version__
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.rows.readers import FORMATS
from surface_consistency.studies.redirectqa.data import load_redirectqa
from surface_consistency.studies.redirectqa.release import RedirectQARow, hub_rows
from surface_consistency_build.builders.common import only_split, prepared

_NAME = "redirectqa"


@dataclass
class RedirectQAConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """Where the rows come from."""

    source: str = ""
    """Folder in the hub's layout, or file of rows."""

    source_split: str = "test"
    """Split of the folder."""


class RedirectQABuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """Rows of RedirectQA, validated one by one; use `build` rather than this class."""

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = RedirectQAConfig

    def _info(self) -> datasets.DatasetInfo:
        """Describe the columns and the licence of the rows."""
        return datasets.DatasetInfo(
            features=make_features(RedirectQARow),
            homepage="https://huggingface.co/datasets/naist-nlp/RedirectQA",
            license="cc-by-sa-4.0",
        )

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        """Offer the one split of the release."""
        return only_split(source=self.config.source, split=self.config.source_split)

    def _generate_examples(self, source: str, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the validated rows under the ids of their questions."""
        questions = load_redirectqa(source, split=split).questions
        seen: set[str] = set()
        for question, row in zip(questions, hub_rows(questions), strict=True):
            if question.id in seen:
                raise DataError(f"question id {question.id!r} stands twice in {source}")
            seen.add(question.id)
            yield question.id, row.model_dump(mode="json")


def source_hash(source: str | os.PathLike[str]) -> str:
    """Name what a build depends on: the content of the source and the code that reads it.

    Args:
        source: Folder or file of rows.

    Returns:
        SHA-256 over names and bytes of the data files and README, the version of the builder and
        that of the package.

    Raises:
        SourceNotFoundError: If there is no such folder or file, or no data file in it.
    """
    path = Path(source)
    suffixes = {*FORMATS, ".md"}
    files = (
        [path]
        if path.is_file()
        else sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes)
    )
    if not any(file.suffix.lower() in FORMATS for file in files):
        raise SourceNotFoundError(
            f"no data files ({', '.join(FORMATS)}) at {path}; pass a folder in the hub's layout or "
            "a file of rows"
        )
    digest = hashlib.sha256(f"{RedirectQABuilder.VERSION} {__version__}\n".encode())
    for file in files:
        with file.open("rb") as content:
            inner = hashlib.file_digest(content, "sha256").hexdigest()
        name = file.relative_to(path).as_posix() if file != path else file.name
        digest.update(f"{name} {inner}\n".encode())
    return digest.hexdigest()


def build(
    source: str | os.PathLike[str], cache_dir: str | os.PathLike[str], *, split: str = "test"
) -> datasets.Dataset:
    """Build the data set from a local source, or take it from the cache when nothing changed.

    Args:
        source: Folder in the hub's layout, or file of rows.
        cache_dir: Where the built data set is kept, in `redirectqa/<configuration>/<version>/`.
        split: Split of the source folder.

    Returns:
        The rows, split "test".

    Raises:
        SourceNotFoundError: If the source is not there.
        DataError: If a row is broken or stands twice; names file, line, column and value.
    """
    builder = RedirectQABuilder(
        cache_dir=os.fspath(cache_dir),
        dataset_name=_NAME,
        hash=source_hash(source),
        source=str(Path(source).resolve()),
        source_split=split,
    )
    return prepared(builder)
