"""Base class of the builders of rows from dumps."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from surface_consistency import __version__
from surface_consistency_build.builders.common import RowsBuilder
from surface_consistency_build.cards.build_records import (
    BuildManifest,
    Row,
    SourceFile,
    describe_file,
)
from surface_consistency_build.cards.dataset_folder import Subset, make_folder
from surface_consistency_build.wikimedia.construction.build import BuildResult
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan
from surface_consistency_build.wikimedia.construction.progress import BuildProgress
from surface_consistency_build.wikimedia.construction.rows import BuiltRow
from surface_consistency_build.wikimedia.wikis import WikiConfig

ROW_KEY: Final = (
    "triplet_id",
    "subject_surface",
    "subject_redirect_wiki_title",
    "object_surface",
    "object_redirect_wiki_title",
    "template",
)
"""Fields that identify a row of a built data set."""


class DumpsBuilder(RowsBuilder):
    """A builder whose source is a folder of dumps; a stopped build resumes from its work folder."""

    record = BuiltRow
    KEY = ROW_KEY
    WHERE = "the dumps are published at https://dumps.wikimedia.org; `plan` lists the files"

    @cached_property
    def plan(self) -> DumpPlan:
        """The existing and the missing dump files."""
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
            work: Folder for staged tables.

        Returns:
            The rows, and a description of the excluded rows.
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
        """Return the settings that determine the rows, including the wiki's configuration."""
        settings, plan = self.config.settings, self.plan
        return {
            "wiki": Path(settings.wiki).name,
            **self.own_options(),
            "category_cap": settings.category_cap or None,
            "allow_truncated": settings.allow_truncated,
            "require_end_mark": settings.require_end_mark,
            # Months and days with summed views.
            "months": [path.name.split("-")[1] for path in plan.files.pageviews],
            "route": plan.route,
            "notes": self.wiki.notes,
            "configuration": self.wiki.model_dump(mode="json"),
        }

    @abstractmethod
    def own_options(self) -> dict[str, JsonValue]:
        """Return the settings that other builders do not have.

        Returns:
            Value by name.
        """

    def claim(self) -> dict[str, JsonValue]:
        """Return the settings that identify a folder, without those that do not change the rows."""
        permissions = ("allow_truncated", "require_end_mark", "configuration")
        known = {name: value for name, value in self.options().items() if name not in permissions}
        # Single fields of the wiki, so that an error names the field that differs.
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
        """Describe the dumps, and report the progress of checksums, which read all bytes."""
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
