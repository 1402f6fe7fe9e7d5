"""Builder of RedirectQA from local dump files of Wikipedia and Wikidata.

`data_dir` is a folder of dumps under the names that Wikimedia publishes them by. The configurations
are the two releases of RedirectQA, and other wikis.
`dumps_builder` makes a builder whose cache is keyed by the dumps' content, the configuration and
the versions of builder and package; rows come from
`surface_consistency_build.wikimedia.construction`.
"""

import os
from dataclasses import dataclass
from typing import Literal

import datasets

from surface_consistency_build.builders.common import BuiltRowsBuilder, DumpsConfig, prepared
from surface_consistency_build.cards.dataset_build import BuildSettings
from surface_consistency_build.wikimedia.construction.build import CATEGORY_CAP, BuildResult
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan


@dataclass
class RedirectQADumpsConfig(DumpsConfig):
    """One way to build RedirectQA from dumps."""

    months: tuple[str, ...] | None = None
    """Months of pageviews as "YYYYMM"; None for all that are there."""

    triples: int = 500_000
    """Candidate triples that are drawn."""

    category_cap: int | None = CATEGORY_CAP
    """Instances at which a category is down-sampled; None for no balancing."""

    unambiguous: Literal["subject", "both"] = "subject"
    """Whose canonical surface form must be that of one entity alone."""

    def settings(self) -> BuildSettings:
        """Turn the configuration into settings of a build.

        Returns:
            The settings.
        """
        return BuildSettings(
            name=self.name,
            wiki=self.wiki,
            route=self.route,
            months=tuple(self.months or ()),
            triples=self.triples,
            seed=self.seed,
            category_cap=self.category_cap,
            unambiguous=self.unambiguous,
        )


class RedirectQADumpsBuilder(BuiltRowsBuilder):
    """Rows of RedirectQA built from dumps; make it by `dumps_builder`."""

    config: RedirectQADumpsConfig

    NAME = "redirectqa"
    VERSION = datasets.Version("1.0.0")
    HOMEPAGE = "https://huggingface.co/datasets/naist-nlp/RedirectQA"
    BUILDER_CONFIG_CLASS = RedirectQADumpsConfig
    BUILDER_CONFIGS = (
        RedirectQADumpsConfig(
            name="v1.0.0", description="English Wikipedia, 16 relations, two wordings"
        ),
        RedirectQADumpsConfig(
            name="v0.1.0",
            wiki="enwiki-v0.1.0",
            description="English Wikipedia, 15 relations (no religion), one wording",
        ),
        RedirectQADumpsConfig(
            name="ja", wiki="jawiki", description="Japanese Wikipedia, redirects uncategorised"
        ),
        RedirectQADumpsConfig(
            name="zh", wiki="zhwiki", description="Chinese Wikipedia, kinds by its templates"
        ),
        RedirectQADumpsConfig(
            name="de", wiki="dewiki", description="German Wikipedia, redirects uncategorised"
        ),
        RedirectQADumpsConfig(
            name="simple", wiki="simplewiki", description="Simple English Wikipedia"
        ),
    )
    DEFAULT_CONFIG_NAME = "v1.0.0"

    def plan(self, data_dir: str | os.PathLike[str]) -> DumpPlan:
        """Find the dumps of the configuration."""
        return self.config.settings().plan(data_dir)

    def run(self, data_dir: str, work: str) -> BuildResult:
        """Build with the configuration's settings."""
        settings = self.config.settings()
        return settings.build(settings.plan(data_dir), work)


def dumps_builder(
    data_dir: str | os.PathLike[str],
    cache_dir: str | os.PathLike[str],
    *,
    name: str | None = None,
    **options: object,
) -> RedirectQADumpsBuilder:
    """Make the builder of one configuration.

    Args:
        data_dir: Folder of dump files.
        cache_dir: Where rows, and what was staged for them, are kept.
        name: Configuration, such as "v1.0.0", "v0.1.0" or "ja"; the default one when None.
        options: Fields of `RedirectQADumpsConfig` that differ from it.

    Returns:
        The builder; `download_and_prepare()` builds and `as_dataset(split="test")` gives the rows.

    Raises:
        SourceNotFoundError: If a dump is missing; names each and where to fetch it.
        ValueError: If there is no such configuration.
    """
    return RedirectQADumpsBuilder.keyed(data_dir, cache_dir, name, options)


def build_from_dumps(
    data_dir: str | os.PathLike[str],
    cache_dir: str | os.PathLike[str],
    *,
    name: str | None = None,
    **options: object,
) -> datasets.Dataset:
    """Build the data set, or take it from the cache when nothing changed.

    Args:
        data_dir: Folder of dump files.
        cache_dir: Where rows, and what was staged for them, are kept.
        name: Configuration; the default one when None.
        options: Fields of `RedirectQADumpsConfig` that differ from it.

    Returns:
        The rows, split "test".

    Raises:
        SourceNotFoundError: If a dump is missing; names each and where to fetch it.
        DataError: If a dump is broken, a step leaves no rows, or a row breaks its record.
        ValueError: If there is no such configuration.
    """
    return prepared(dumps_builder(data_dir, cache_dir, name=name, **options))
