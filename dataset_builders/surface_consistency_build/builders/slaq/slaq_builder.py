"""Builder of SLAQ in the column layout of the release.

`datasets` reads "NA" and "null" in CSV files as nothing, validates no rows and keys its cache by
neither code nor source. So `build` reads with `load_slaq`, passes every row through its record, and
keys the cache by the content of the source and the versions of builder and package.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.slaq_rows import SlaqRow, to_slaq_rows
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError
from surface_consistency_build.builders.common import only_split, prepared
from surface_consistency_build.builders.redirectqa import redirectqa_builder

_NAME = "slaq"
_VERSION = datasets.Version("1.0.0")


@dataclass
class SlaqConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """Where the rows come from, and which are kept."""

    source: str = ""
    """Folder in the hub's layout, or file of rows."""

    source_split: str = "test"
    """Split of the folder."""

    popularity: str = ""
    """Half by page views to keep, "popular" or "obscure"; "" keeps all."""

    clean_html: bool = False
    """Whether HTML is taken out of questions and answers."""


class SlaqBuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """Topics of SLAQ, validated one by one; use `build` rather than this class."""

    VERSION = _VERSION
    BUILDER_CONFIG_CLASS = SlaqConfig
    BUILDER_CONFIGS = [  # noqa: RUF012
        SlaqConfig(name="all", version=_VERSION, description="All topics."),
        SlaqConfig(
            name="popular",
            version=_VERSION,
            popularity="popular",
            description="Of each category the half with more page views.",
        ),
        SlaqConfig(
            name="obscure",
            version=_VERSION,
            popularity="obscure",
            description="Of each category the half with fewer page views.",
        ),
    ]
    DEFAULT_CONFIG_NAME = "all"

    def _info(self) -> datasets.DatasetInfo:
        """Describe the columns."""
        return datasets.DatasetInfo(
            features=make_features(SlaqRow), homepage="https://huggingface.co/datasets/WueNLP/SLAQ"
        )

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        """Offer the one split of the release."""
        return only_split(source=self.config.source, split=self.config.source_split)

    def _generate_examples(self, source: str, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the validated rows under the ids of their topics."""
        data = load_slaq(source, split=split, clean_html=self.config.clean_html)
        topics = [
            topic for topic in data.topics if self.config.popularity in ("", topic.popularity)
        ]
        if not topics:
            raise DataError(
                f"{source} has no topic in the {self.config.popularity} half; do the rows hold "
                "page views?"
            )
        for topic, row in zip(topics, to_slaq_rows(topics), strict=True):
            yield topic.id, row.model_dump(mode="json")


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
    content = redirectqa_builder.source_hash(source)
    return hashlib.sha256(f"{_NAME} {SlaqBuilder.VERSION} {content}\n".encode()).hexdigest()


def build(
    source: str | os.PathLike[str],
    cache_dir: str | os.PathLike[str],
    *,
    config: str = "all",
    split: str = "test",
    clean_html: bool = False,
) -> datasets.Dataset:
    """Build the data set from a local source, or take it from the cache when nothing changed.

    Args:
        source: Folder in the hub's layout, or file of rows.
        cache_dir: Where the built data set is kept, in `slaq/<configuration>/<version>/`.
        config: "all", "popular" or "obscure".
        split: Split of the source folder.
        clean_html: Whether HTML is taken out of questions and answers.

    Returns:
        The rows, split "test".

    Raises:
        SourceNotFoundError: If the source is not there.
        DataError: If a row is broken or stands twice, or none is kept; names file, line, column
            and value.
        ValueError: If there is no such configuration.
    """
    builder = SlaqBuilder(
        cache_dir=os.fspath(cache_dir),
        dataset_name=_NAME,
        config_name=config,
        hash=source_hash(source),
        source=str(Path(source).resolve()),
        source_split=split,
        clean_html=clean_html,
    )
    return prepared(builder)
