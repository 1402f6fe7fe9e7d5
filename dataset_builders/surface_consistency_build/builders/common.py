"""What the builders share: their cache and its key, errors told plainly, rows from dumps."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import datasets

from surface_consistency import __version__
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, SurfaceConsistencyError
from surface_consistency_build.cards.dataset_build import ROW_KEY
from surface_consistency_build.wikimedia.construction._work_folder import files_digest
from surface_consistency_build.wikimedia.construction.build import BuildResult
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan
from surface_consistency_build.wikimedia.construction.rows import BuiltRow


def only_split(**arguments: object) -> list[datasets.SplitGenerator]:
    """Offer the one split of a release.

    Args:
        arguments: What `_generate_examples` is called with.

    Returns:
        The split "test", alone.
    """
    return [datasets.SplitGenerator(name=datasets.Split.TEST, gen_kwargs=arguments)]


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


@dataclass
class DumpsConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """One way to build rows from dumps."""

    wiki: str = "enwiki"
    """Name of a wiki's configuration, or a TOML or JSON file with one."""

    route: Literal["sql", "xml", "uncategorised"] | None = None
    """Where redirects and their categories come from; None for the wiki's best."""

    seed: int = 0
    """Seed of the draws."""

    category_cap: int | None = None
    """Instances at which a category is down-sampled; None for no balancing."""


class BuiltRowsBuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """A builder whose rows come from a build over the dumps in `data_dir`; `keyed` makes one."""

    NAME: ClassVar[str]
    """Name of the data set, and of its cache."""

    HOMEPAGE = ""

    result: BuildResult | None = None
    """What the build left out, once it has run; None when the rows came from the cache."""

    @classmethod
    def keyed(
        cls,
        data_dir: str | os.PathLike[str],
        cache_dir: str | os.PathLike[str],
        name: str | None,
        options: dict[str, object],
    ) -> Self:
        """Make the builder of one configuration, its cache keyed by all that decides its rows.

        Args:
            data_dir: Folder of dump files.
            cache_dir: Where rows, and what was staged for them, are kept.
            name: Configuration; the default one when None.
            options: Fields of the configuration that differ from it.

        Returns:
            The builder, with a hash over the dumps' content, the configuration, other sources and
            the versions of builder and package.

        Raises:
            SourceNotFoundError: If a dump is missing; names each and where to fetch it.
            ValueError: If there is no such configuration.
        """
        arguments = {
            "cache_dir": os.fspath(cache_dir),
            "config_name": name,
            "dataset_name": cls.NAME,
            "data_dir": os.fspath(Path(data_dir).resolve()),
            **options,
        }
        builder = cls(**arguments)
        settings = {k: value for k, value in asdict(builder.config).items() if k != "data_dir"}
        plan = builder.plan(data_dir)
        digest = files_digest(
            plan.files.paths,
            *(str(cls.VERSION), __version__, repr(sorted(settings.items()))),
            *(plan.config.model_dump_json(), *builder.other_sources()),
        )
        return cls(**arguments, hash=digest)

    @abstractmethod
    def plan(self, data_dir: str | os.PathLike[str]) -> DumpPlan:
        """Find the dumps of the configuration.

        Args:
            data_dir: Folder of dump files.

        Returns:
            What was found and what is missing.
        """

    @abstractmethod
    def run(self, data_dir: str, work: str) -> BuildResult:
        """Build with the configuration's settings.

        Args:
            data_dir: Folder of dump files.
            work: Folder for what is staged.

        Returns:
            The rows and what was left out on the way.
        """

    def other_sources(self) -> tuple[str, ...]:
        """Name the content of what is read beside the dumps.

        Returns:
            Digests; none by default.
        """
        return ()

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
        work = os.fspath(work_folder(self._cache_dir_root, self.config.wiki))
        return only_split(data_dir=self.config.data_dir, work=work)

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
