"""Builders of rows from dumps: their settings, and what they share."""

import os
import time
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import Field, JsonValue

from surface_consistency import __version__
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.builders.common import RowsBuilder
from surface_consistency_build.cards.build_records import (
    BuildManifest,
    Row,
    SourceFile,
    describe_file,
)
from surface_consistency_build.cards.dataset_folder import Subset, make_folder
from surface_consistency_build.wikimedia.construction.build import (
    CATEGORY_CAP,
    BuildResources,
    BuildResult,
    build_redirectqa,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan, Route, find_dumps
from surface_consistency_build.wikimedia.construction.progress import BuildHook, BuildProgress
from surface_consistency_build.wikimedia.construction.rows import BuiltRow
from surface_consistency_build.wikimedia.construction.steps import Unambiguous
from surface_consistency_build.wikimedia.wikis import WikiConfig

ROW_KEY: Final = (
    "triplet_id",
    "subject_surface",
    "subject_redirect_wiki_title",
    "object_surface",
    "object_redirect_wiki_title",
    "template",
)
"""Fields that no two rows of a built data set share."""


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
            The rows and what was left out on the way.

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


class DumpsBuilder(RowsBuilder):
    """A builder whose source is a folder of dumps; a stopped build resumes from its work folder."""

    record = BuiltRow
    KEY = ROW_KEY
    WHERE = "the dumps are published at https://dumps.wikimedia.org; `plan` lists the files"

    @cached_property
    def plan(self) -> DumpPlan:
        """The dump files that are there, and those that are missing."""
        plan: DumpPlan = self.config.settings.plan(self.config.source)
        return plan

    @property
    def wiki(self) -> WikiConfig:
        """The configuration of the wiki."""
        return self.plan.config

    @abstractmethod
    def build(self, work: Path) -> BuildResult:
        """Build the rows.

        Args:
            work: Folder for what is staged.

        Returns:
            The rows and what was left out on the way.
        """

    @cached_property
    def result(self) -> BuildResult:
        """The finished build."""
        home = self.config.settings.work or Path(self._cache_dir_root, "dumps-work")
        return self.build(make_folder(home, "work") / self.plan.config.wiki)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the build; see `RowsBuilder.rows`."""
        return (row.model_dump(mode="json") for row in self.result.rows())

    def options(self) -> dict[str, JsonValue]:
        """List what decides the rows, the wiki's configuration included."""
        settings, plan = self.config.settings, self.plan
        return {
            "wiki": Path(settings.wiki).name,
            **self.own_options(),
            "category_cap": settings.category_cap or None,
            "allow_truncated": settings.allow_truncated,
            "require_end_mark": settings.require_end_mark,
            # Months and days whose views are summed.
            "months": [path.name.split("-")[1] for path in plan.files.pageviews],
            "route": plan.route,
            "notes": self.wiki.notes,
            "configuration": self.wiki.model_dump(mode="json"),
        }

    @abstractmethod
    def own_options(self) -> dict[str, JsonValue]:
        """List the settings that other builders do not have.

        Returns:
            Value by name.
        """

    def claim(self) -> dict[str, JsonValue]:
        """List what a folder is known by, without permissions that change no row."""
        permissions = ("allow_truncated", "require_end_mark", "configuration")
        known = {name: value for name, value in self.options().items() if name not in permissions}
        # The wiki's fields one by one, so that an error names the field that differs.
        wiki = {f"wiki.{name}": value for name, value in self.wiki.model_dump(mode="json").items()}
        dumps: list[JsonValue] = [path.name for path in self.plan.files.paths]
        seed = self.config.settings.seed
        return {"builder": self.NAME, **known, "seed": seed, "dumps": dumps, **wiki}

    def subset(self, name: str) -> Subset:
        """Build, and describe the configuration; see `RowsBuilder.subset`."""
        settings, result = self.config.settings, self.result
        manifest = BuildManifest(
            builder=self.NAME,
            builder_version=str(self.VERSION),
            package_version=__version__,
            seed=settings.seed,
            options=self.options(),
            sources=tuple(self._described(checksums=settings.checksums)),
        )
        return self._subset(name, self.rows(), attrition=result.attrition, manifest=manifest)

    def _described(self, *, checksums: bool) -> Iterator[SourceFile]:
        """Describe the dumps, and report how far the checksums are: they read every byte."""
        sizes = {path: path.stat().st_size for path in self.plan.files.paths}
        start, done = time.perf_counter(), 0
        for path, size in sizes.items():
            if checksums and self.progress is not None:
                self.progress(
                    BuildProgress(
                        stage=f"checksum {path.name}",
                        path=path,
                        read_bytes=done,
                        total_bytes=sum(sizes.values()),
                        steps_done=0,
                        steps_total=0,
                        seconds=time.perf_counter() - start,
                        new_bytes=done,
                    )
                )
            yield describe_file(path, checksum=checksums)
            done += size
