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
    """Rows to read from a source."""

    split: str = "test"
    """Split of the source and of the written data set."""


class DumpSettings(Settings):
    """Settings for reading dumps and drawing from them."""

    wiki: str = "enwiki"
    """A known wiki, or a TOML or JSON file that describes one."""

    route: Route | None = None
    """Source of redirects and their categories; by default the best one of the wiki."""

    months: tuple[str, ...] = Field(default=(), strict=False)
    """Months of pageviews to sum, as YYYYMM; by default all existing files."""

    seed: int = 0
    """Random seed of all draws."""

    category_cap: int | None = Field(default=None, ge=0)
    """Number of instances above which a category is down-sampled; 0 or none for no balancing."""

    memory_limit: str = "2GB"
    """Memory limit of DuckDB; further data spill to disk."""

    threads: int | None = Field(default=None, ge=1)
    """Number of threads for reading and for DuckDB; by default the number of processors."""

    allow_truncated: bool = False
    """Read a dump that ends early up to that place."""

    require_end_mark: bool = False
    """Reject an uncompressed dump without an end marker, because it may be incomplete."""

    work: Path | None = Field(default=None, strict=False)
    """Folder for staged tables; by default OUT.work."""

    checksums: bool = True
    """Add the SHA-1 checksums of the sources to the card."""

    def plan(self, dumps: str | os.PathLike[str], *, needs_views: bool = True) -> DumpPlan:
        """Find the dump files of this build.

        Args:
            dumps: Folder of dump files.
            needs_views: Whether the build needs pageviews; PopQA's facts do not.

        Returns:
            The existing and the missing files.
        """
        return find_dumps(
            dumps, self.wiki, route=self.route, months=self.months or None, needs_views=needs_views
        )

    def resources(self, progress: BuildHook | None) -> BuildResources:
        """Return the resources of the build.

        Args:
            progress: Called as dumps are read and before each step.

        Returns:
            The options of `build_redirectqa` that do not change the rows.
        """
        return {
            "memory_limit": self.memory_limit,
            "threads": self.threads,
            "allow_truncated": self.allow_truncated,
            "require_end_mark": self.require_end_mark,
            "progress": progress,
        }


class BuildSettings(DumpSettings):
    """Settings for building RedirectQA."""

    triples: int = Field(default=500_000, ge=1)
    """Number of candidate triples to draw."""

    category_cap: int | None = Field(default=CATEGORY_CAP, ge=0)
    """Number of instances above which a category is down-sampled; 0 or none for no balancing."""

    unambiguous: Unambiguous = "subject"
    """Entities whose canonical surface form must be unique: subject, or subject and object
    (both)."""

    def build(
        self, plan: DumpPlan, work: str | os.PathLike[str], *, progress: BuildHook | None = None
    ) -> BuildResult:
        """Build the rows.

        Args:
            plan: The dump files, of `plan`.
            work: Folder for staged tables; builds of one wiki may share it.
            progress: Called as dumps are read and before each step.

        Returns:
            The rows, and a description of the excluded rows.

        Raises:
            SourceNotFoundError: If a dump is missing.
            DataError: If a dump is damaged or no rows remain after a step.
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
    """Settings for augmenting PopQA."""

    popqa: str = "akariasai/PopQA"
    """Hub id, folder or file of PopQA's rows."""

    revision: str | None = None
    """Commit, tag or branch of PopQA's rows; set it for reproducible builds."""

    def plan(self, dumps: str | os.PathLike[str], *, needs_views: bool = False) -> DumpPlan:
        """Find the dump files of this build; page views are optional."""
        return super().plan(dumps, needs_views=needs_views)
