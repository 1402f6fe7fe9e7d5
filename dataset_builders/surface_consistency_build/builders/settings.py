"""Settings of the builders: the options of `build_dataset` and of `build`."""

import os
from pathlib import Path

from pydantic import Field

from surface_consistency.schemas.settings import Settings
from surface_consistency_build.wikimedia.construction.build import (
    CATEGORY_CAP,
    BuildResources,
    BuildResult,
    build_redirectqa,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan, Route, find_dumps
from surface_consistency_build.wikimedia.construction.progress import BuildHook
from surface_consistency_build.wikimedia.construction.steps import Unambiguous


class RowsSettings(Settings):
    """Which rows of a source are read."""

    split: str = "test"
    """Split of the source, and of the data set that is written."""


class DumpSettings(Settings):
    """How dumps are read and drawn from."""

    wiki: str = "enwiki"
    """A known wiki, or a TOML or JSON file that describes one."""

    route: Route | None = None
    """Where redirects and their categories come from; the wiki's best by default."""

    months: tuple[str, ...] = Field(default=(), strict=False)
    """Months of pageviews to sum, as YYYYMM; all that are there by default."""

    seed: int = 0
    """Seed of all draws."""

    category_cap: int | None = Field(default=None, ge=0)
    """Instances at which a category is down-sampled; 0 or none for no balancing."""

    memory_limit: str = "2GB"
    """Memory for DuckDB; beyond it spills to disk."""

    threads: int | None = Field(default=None, ge=1)
    """Threads for reading and for DuckDB; all processors by default."""

    allow_truncated: bool = False
    """Whether a dump that ends early counts as far as it goes."""

    require_end_mark: bool = False
    """Whether a plain dump whose format cannot tell that it is whole is refused."""

    work: Path | None = Field(default=None, strict=False)
    """Folder for what is staged; OUT.work by default."""

    checksums: bool = True
    """Whether the card names the SHA-1 of the sources."""

    def plan(self, dumps: str | os.PathLike[str], *, needs_views: bool = True) -> DumpPlan:
        """Look for the dump files of this build.

        Args:
            dumps: Folder of dump files.
            needs_views: Whether the build cannot do without pageviews; PopQA's facts can.

        Returns:
            The files that are there, and those that are missing.
        """
        return find_dumps(
            dumps, self.wiki, route=self.route, months=self.months or None, needs_views=needs_views
        )

    def resources(self, progress: BuildHook | None) -> BuildResources:
        """Gather what the build may use.

        Args:
            progress: Called as dumps are read and before each step.

        Returns:
            The options of `build_redirectqa` that change no row.
        """
        return {
            "memory_limit": self.memory_limit,
            "threads": self.threads,
            "allow_truncated": self.allow_truncated,
            "require_end_mark": self.require_end_mark,
            "progress": progress,
        }


class BuildSettings(DumpSettings):
    """How RedirectQA is built."""

    triples: int = Field(default=500_000, ge=1)
    """Candidate triples that are drawn."""

    category_cap: int | None = Field(default=CATEGORY_CAP, ge=0)
    """Instances at which a category is down-sampled; 0 or none for no balancing."""

    unambiguous: Unambiguous = "subject"
    """Whose canonical surface form must be that of one entity alone."""

    def build(
        self, plan: DumpPlan, work: str | os.PathLike[str], *, progress: BuildHook | None = None
    ) -> BuildResult:
        """Build the rows.

        Args:
            plan: The dump files, of `plan`.
            work: Folder for what is staged; builds of one wiki may share it.
            progress: Called as dumps are read and before each step.

        Returns:
            The rows, and a description of the excluded rows.

        Raises:
            SourceNotFoundError: If a dump is missing.
            DataError: If a dump is broken or a step leaves no rows.
        """
        return build_redirectqa(
            plan.files,
            work,
            config=plan.config,
            triples=self.triples,
            seed=self.seed,
            category_cap=self.category_cap or None,
            unambiguous=self.unambiguous,
            **self.resources(progress),
        )


class PopQASettings(DumpSettings):
    """How PopQA is augmented."""

    popqa: str = "akariasai/PopQA"
    """Hub id, folder or file of PopQA's rows."""

    revision: str | None = None
    """Commit, tag or branch of PopQA's rows; pin it in work to be repeated."""

    def plan(self, dumps: str | os.PathLike[str], *, needs_views: bool = False) -> DumpPlan:
        """Look for the dump files of this build; page views are optional."""
        return super().plan(dumps, needs_views=needs_views)
