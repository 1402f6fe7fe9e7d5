"""Base classes of the builders, for rows of a source and for rows built from dumps.

A builder is a class of `datasets` that defines columns, types and rows. `build_dataset` creates it,
and writes its rows as a folder with a card.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import datasets
import pyarrow as pa
from huggingface_hub import metadata_load
from pydantic import JsonValue

from surface_consistency import __version__
from surface_consistency.data.sources import OpenSource, open_source
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError
from surface_consistency.rows.cells import RowCells, count_of, strings_of, text_of
from surface_consistency.schemas import Record
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.builders.settings import RowsSettings
from surface_consistency_build.cards.build_records import BuildManifest, Row
from surface_consistency_build.cards.dataset_card import CardText, stated_license
from surface_consistency_build.cards.dataset_folder import Subset
from surface_consistency_build.wikimedia.construction.progress import BuildHook

_VERSION: Final = "1.0.0"


@dataclass
class BuildConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """One configuration of a data set."""

    source: str = ""
    """Source of the rows."""

    settings: Settings = field(default_factory=RowsSettings)
    """Settings of the build."""


class RowsBuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """A builder of one data set; `build_dataset` creates it and writes its rows."""

    VERSION = datasets.Version(_VERSION)
    BUILDER_CONFIG_CLASS: ClassVar[type[BuildConfig]] = BuildConfig

    NAME: ClassVar[str]
    """Name of the data set."""

    SETTINGS: ClassVar[type[Settings]] = RowsSettings
    """The record of its settings."""

    DEFAULTS: ClassVar[tuple[str, ...]] = ()
    """Configurations that are built by default; empty for the default configuration."""

    record: type[Record]
    """The record of its columns."""

    KEY: ClassVar[tuple[str, ...]] = ()
    """Columns whose values identify a row; not checked if empty."""

    progress: BuildHook | None = None
    """Called while dumps are read and before each step."""

    WHERE: ClassVar[str]
    """Places of a source, for messages."""

    def download_and_prepare(self, output_dir: str | None = None, **options: Any) -> None:  # noqa: ANN401 - options of `datasets`
        """Build the rows again, because the cache has no key for the source's content."""
        self.info.features, self.info.splits = self._info().features, None
        options["download_mode"] = datasets.DownloadMode.FORCE_REDOWNLOAD
        super().download_and_prepare(output_dir, **options)

    @property
    def split(self) -> str:
        """Name of the split."""
        return getattr(self.config.settings, "split", "test")

    def _info(self) -> datasets.DatasetInfo:
        """Describe the columns."""
        return datasets.DatasetInfo(features=make_features(self.record))

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        """Return the generator of the only split."""
        return [datasets.SplitGenerator(name=self.split, gen_kwargs={})]

    def _generate_examples(self) -> Iterator[tuple[str, Row]]:
        """Yield the rows with unique keys."""
        yield from ((str(number), row) for number, row in enumerate(self.rows()))

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Yield the rows.

        Yields:
            Value by column, all columns in each row.
        """

    @abstractmethod
    def card(self) -> CardText:
        """Return the card's text.

        Returns:
            The text.
        """

    def options(self) -> dict[str, JsonValue]:
        """Return the settings that determine the rows, for the folder and its card.

        Returns:
            Value by name.
        """
        source = Path(self.config.source)
        shown = source.name if source.exists() else self.config.source
        return {"source": shown, **self.config.settings.model_dump(mode="json")}

    def claim(self) -> dict[str, JsonValue]:
        """Return the settings that identify a folder, so that other data sets do not replace it.

        Returns:
            Value by name.
        """
        return {"builder": self.NAME, **self.options()}

    def subset(self, name: str) -> Subset:
        """Describe the configuration of the folder.

        Args:
            name: Its name.

        Returns:
            Its rows, columns and records.
        """
        manifest = BuildManifest(
            builder=self.NAME,
            builder_version=_VERSION,
            package_version=__version__,
            options=self.options(),
        )
        return self._subset(name, self.rows(), manifest=manifest)

    def _subset(self, name: str, rows: Iterator[Row], **records: Any) -> Subset:  # noqa: ANN401 - fields of `Subset`
        """Describe rows by the columns of the builder."""
        return Subset(
            name=name,
            splits={self.split: rows},
            features=self.info.features,
            meanings={
                name: known.description
                for name, known in self.record.model_fields.items()
                if known.description and name in self.info.features
            },
            key=self.KEY,
            **records,
        )


class SourceBuilder(RowsBuilder):
    """Rows of a file, folder or hub repository, which are validated and written unchanged.

    The columns of the record get its types (in CSV files all cells are text). Other columns keep
    the types of their values. Rows that are equal to another row in all cells are dropped.
    """

    READERS: ClassVar[Mapping[str, Callable[[object], object]]] = {}
    """Column of the record to the reader of its cells, if the reader of its type does not
    suffice."""

    def _info(self) -> datasets.DatasetInfo:
        """Check the source, read it, and describe its columns."""
        self.check()
        self._opened = open_source(self.config.source, split=self.split)
        known = make_features(self.record)
        read = [self._typed(place, row, known) for place, row in self._opened.rows]
        names = dict.fromkeys(name for row in read for name in row)
        self._rows = [{name: row.get(name) for name in names} for row in read]
        try:
            features = datasets.Features.from_arrow_schema(
                pa.schema(
                    [
                        (name, pa.array([row[name] for row in self._rows]).type)
                        for name in names
                        if name not in known
                    ]
                )
            )
        except (pa.ArrowException, TypeError) as error:
            raise DataError(
                f"{self._opened.id}: a column has several types; use one: {error}"
            ) from error
        columns = {name: known[name] if name in known else features[name] for name in names}
        return datasets.DatasetInfo(features=datasets.Features(columns))

    def _typed(self, place: Any, row: Row, known: datasets.Features) -> dict[str, object]:  # noqa: ANN401 - a place
        """Read the columns of the record by their types."""
        cells = RowCells({name: name for name in row}, place, row)
        return {
            name: cells.read(name, self.READERS.get(name, _reader_of(known[name])))
            if name in known
            else value
            for name, value in row.items()
        }

    def rows(self) -> Iterator[Row]:
        """Yield the distinct rows of the source; see `RowsBuilder.rows`."""
        seen = {json.dumps(row, default=str): row for row in self._rows}
        yield from seen.values()

    @abstractmethod
    def check(self) -> None:
        """Load the source with the loader of the data set, which rejects invalid rows."""

    @abstractmethod
    def base_card(self) -> CardText:
        """Return the card's text for a source that does not state a licence."""

    def card(self) -> CardText:
        """Return the card's text, with the licence that the source states."""
        return stated_license(self.base_card(), _license_of(self._opened))


def _reader_of(feature: object) -> Callable[[object], object]:
    """Return the reader of a column's cells; values that already have the type are unchanged."""
    if isinstance(feature, datasets.List):
        return lambda value: value if isinstance(value, list | None) else list(strings_of(value))
    if getattr(feature, "dtype", None) == "int64":
        return count_of
    return lambda value: value if isinstance(value, str) else text_of(value)


def _license_of(opened: OpenSource) -> str | None:
    """Read the licence that the card of a source states."""
    card = None if opened.folder is None else opened.folder / "README.md"
    if card is None or not card.is_file():
        return None
    named = (metadata_load(card) or {}).get("license")
    return named if isinstance(named, str) and named != "unknown" else None
