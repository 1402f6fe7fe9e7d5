"""Builder of PopQA with redirects: the preliminary experiment of RedirectQA (appendix B.1).

Facts, canonical names and accepted answers are PopQA's own; the redirects of their subjects come
from dumps in `data_dir`. `popqa_redirect_builder` makes a builder whose cache is keyed by PopQA's
rows, the dumps' content, the configuration and the versions of builder and package.
"""

import os
from dataclasses import dataclass

import datasets

from surface_consistency.data.popqa import PopQA, load_popqa
from surface_consistency_build.builders.common import BuiltRowsBuilder, DumpsConfig, prepared
from surface_consistency_build.wikimedia.construction.build import BuildResult
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan, find_dumps
from surface_consistency_build.wikimedia.construction.popqa import augment_popqa


@dataclass
class PopQARedirectConfig(DumpsConfig):
    """One way to augment PopQA."""

    popqa: str = "akariasai/PopQA"
    """Hub id, folder or file of PopQA's rows."""

    revision: str | None = None
    """Commit of the hub repository; pin it in work to be repeated."""

    templates: tuple[str, ...] = ("original",)
    """Wordings; the paper's experiment has PopQA's own alone."""


class PopQARedirectBuilder(BuiltRowsBuilder):
    """Rows of PopQA with redirects; make it by `popqa_redirect_builder`."""

    NAME = "popqa_redirect"
    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = PopQARedirectConfig
    BUILDER_CONFIGS = (
        PopQARedirectConfig(name="original", description="PopQA's wording"),
        PopQARedirectConfig(
            name="two-wordings",
            templates=("original", "paraphrase"),
            description="PopQA's wording and a paraphrase",
        ),
    )
    DEFAULT_CONFIG_NAME = "original"

    def plan(self, data_dir: str | os.PathLike[str]) -> DumpPlan:
        """Find the dumps of the configuration."""
        config = self.config
        return find_dumps(data_dir, config.wiki, route=config.route, needs_views=False)

    def other_sources(self) -> tuple[str, ...]:
        """Name the content of PopQA's rows."""
        return (load_config_popqa(self.config).source.digest,)

    def run(self, data_dir: str, work: str) -> BuildResult:
        """Augment with the configuration's settings."""
        plan = self.plan(data_dir)
        wordings = {"question_templates": self.config.templates}
        return augment_popqa(
            [question.triple for question in load_config_popqa(self.config).questions],
            plan.files,
            work,
            config=plan.config.model_copy(update=wordings),
            seed=self.config.seed,
            category_cap=self.config.category_cap,
        )


def popqa_redirect_builder(
    data_dir: str | os.PathLike[str],
    cache_dir: str | os.PathLike[str],
    *,
    name: str | None = None,
    **options: object,
) -> PopQARedirectBuilder:
    """Make the builder of one configuration.

    Args:
        data_dir: Folder of dump files.
        cache_dir: Where rows, and what was staged for them, are kept.
        name: Configuration; the default one, with PopQA's wording alone, when None.
        options: Fields of `PopQARedirectConfig` that differ from it, such as `popqa`.

    Returns:
        The builder; `download_and_prepare()` builds and `as_dataset(split="test")` gives the rows.

    Raises:
        SourceNotFoundError: If PopQA's rows or a dump are missing.
        DataError: If PopQA's rows are broken.
        ValueError: If there is no such configuration.
    """
    return PopQARedirectBuilder.keyed(data_dir, cache_dir, name, options)


def build_popqa_redirect(
    data_dir: str | os.PathLike[str],
    cache_dir: str | os.PathLike[str],
    *,
    name: str | None = None,
    **options: object,
) -> datasets.Dataset:
    """Augment PopQA, or take it from the cache when nothing changed.

    Args:
        data_dir: Folder of dump files.
        cache_dir: Where rows, and what was staged for them, are kept.
        name: Configuration; the default one when None.
        options: Fields of `PopQARedirectConfig` that differ from it, such as `popqa`.

    Returns:
        The rows, split "test".

    Raises:
        SourceNotFoundError: If PopQA's rows or a dump are missing.
        DataError: If PopQA's rows or a dump are broken, or no fact has a redirect.
        ValueError: If there is no such configuration.
    """
    return prepared(popqa_redirect_builder(data_dir, cache_dir, name=name, **options))


def load_config_popqa(config: PopQARedirectConfig) -> PopQA:
    """Load the rows of PopQA that a configuration names.

    Args:
        config: The configuration.

    Returns:
        The questions.

    Raises:
        SourceNotFoundError: If the source is missing or out of reach.
        DataError: If its rows are broken.
    """
    return load_popqa(config.popqa, revision=config.revision)
