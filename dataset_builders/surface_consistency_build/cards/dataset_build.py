"""Data sets from dumps: built, validated, and written as a folder that `load_dataset` reads."""

import os
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic import Field, JsonValue

import surface_consistency
from surface_consistency.data.popqa import PopQA
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.cards import dataset_folder
from surface_consistency_build.cards.build_records import BuildManifest, SourceFile, describe_file
from surface_consistency_build.cards.dataset_card import popqa_redirect_card, redirectqa_card
from surface_consistency_build.wikimedia.construction.build import (
    CATEGORY_CAP,
    BuildResources,
    BuildResult,
    build_redirectqa,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpPlan, Route, find_dumps
from surface_consistency_build.wikimedia.construction.popqa import augment_popqa
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

_VERSION: Final = "1.0.0"


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

    name: str = "default"
    """Name of the configuration in the folder."""

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


def write_redirectqa(
    dumps: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    builds: Sequence[BuildSettings] = (BuildSettings(),),
    work: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    checksums: bool = True,
    progress: BuildHook | None = None,
) -> dataset_folder.PublishedFolder:
    """Build RedirectQA from dumps and write Parquet files with a card.

    Args:
        dumps: Folder of dump files, under the names by which Wikimedia publishes them.
        out: Folder to write; `load_dataset(out, name)` reads it.
        builds: What to build; the first one is the default of the folder.
        work: Folder for what is staged, from which a stopped build goes on; `<out>.work` by
            default.
        overwrite: Whether a data set of other settings in `out` may be replaced.
        checksums: Whether the card names the SHA-1 of each dump; computing it reads every byte.
        progress: Called as dumps are read and before each step.

    Returns:
        What was written.

    Raises:
        ValueError: If `builds` is empty or two have one name.
        SourceNotFoundError: If a dump is missing; names each and where to fetch it.
        RunError: If `out` holds a data set of other settings.
        DataError: If `out` or `work` cannot be written or `out` holds foreign files, a dump is
            broken, or a step leaves no rows.
    """
    names = [build.name for build in builds]
    if not builds or len(set(names)) < len(names):
        raise ValueError(f"builds must be at least one, each with a name of its own; got {names}")
    plans = [build.plan(dumps) for build in builds]
    files = tuple(dict.fromkeys(path for plan in plans for path in plan.files.paths))
    settings = [
        _options(build, plan, plan.config, triples=build.triples, unambiguous=build.unambiguous)
        for build, plan in zip(builds, plans, strict=True)
    ]
    dataset_folder.reserve_output_dir(
        out, _claimed("redirectqa", builds, plans, settings), subsets=names, overwrite=overwrite
    )
    results = [
        build.build(plan, _work_folder(work, out, plan), progress=progress)
        for build, plan in zip(builds, plans, strict=True)
    ]
    sources = _described(files, checksums=checksums, progress=progress)
    subsets = [
        _subset("redirectqa", build, result, options, map(sources.__getitem__, plan.files.paths))
        for build, plan, result, options in zip(builds, plans, results, settings, strict=True)
    ]
    languages = tuple(dict.fromkeys(plan.config.language for plan in plans))
    return dataset_folder.write_folder(out, subsets, card=redirectqa_card(languages))


def write_popqa_redirect(
    popqa: PopQA,
    dumps: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    build: DumpSettings | None = None,
    templates: Sequence[str] | None = None,
    work: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    checksums: bool = True,
    progress: BuildHook | None = None,
) -> dataset_folder.PublishedFolder:
    """Augment PopQA with redirects and write Parquet files with a card.

    Args:
        popqa: PopQA's questions.
        dumps: Folder of dump files; without pageviews the redirects' views are unknown.
        out: Folder to write.
        build: How; its wiki, route, seed, cap and resources are used.
        templates: Question wordings; None for those of the wiki's configuration.
        work: Folder for what is staged; `<out>.work` by default.
        overwrite: Whether a data set of other settings in `out` may be replaced.
        checksums: Whether the card names the SHA-1 of each dump.
        progress: Called as dumps are read and before each step.

    Returns:
        What was written.

    Raises:
        SourceNotFoundError: If a dump is missing.
        RunError: If `out` holds a data set of other settings.
        DataError: If `out` or `work` cannot be written or `out` holds foreign files, a dump is
            broken, or no fact has a redirect.

    Warns:
        SurfaceConsistencyWarning: If subjects have no Wikidata item, so that their names are
            taken as the titles of their articles.
    """
    build = build or DumpSettings()
    plan = build.plan(dumps, needs_views=False)
    wiki = plan.config
    if templates is not None:
        wiki = wiki.model_copy(update={"question_templates": tuple(templates)})
    files = plan.files
    source = popqa.source
    options = _options(
        build,
        plan,
        wiki,
        popqa=Path(source.id).name if Path(source.id).exists() else source.id,
        popqa_revision=source.revision,
        popqa_digest=source.digest,
        templates=list(wiki.question_templates),
    )
    settings = _claimed("popqa_redirect", [build], [plan], [options])
    dataset_folder.reserve_output_dir(out, settings, subsets=[build.name], overwrite=overwrite)
    _warn_without_items(popqa)
    result = augment_popqa(
        [question.triple for question in popqa.questions],
        files,
        _work_folder(work, out, plan),
        config=wiki,
        seed=build.seed,
        category_cap=build.category_cap or None,
        **build.resources(progress),
    )
    sources = _described(files.paths, checksums=checksums, progress=progress)
    subset = _subset("popqa_redirect", build, result, options, sources.values())
    return dataset_folder.write_folder(out, [subset], card=popqa_redirect_card())


def _options(
    build: DumpSettings, plan: DumpPlan, wiki: WikiConfig, **own: JsonValue
) -> dict[str, JsonValue]:
    """List what decides the rows, the wiki's configuration included."""
    return {
        "wiki": Path(build.wiki).name,
        **own,
        "category_cap": build.category_cap or None,
        "allow_truncated": build.allow_truncated,
        "require_end_mark": build.require_end_mark,
        # Months and days whose views are summed.
        "months": [path.name.split("-")[1] for path in plan.files.pageviews],
        "route": plan.route,
        "notes": wiki.notes,
        "configuration": wiki.model_dump(mode="json"),
    }


def _claimed(
    builder: str,
    builds: Sequence[DumpSettings],
    plans: Sequence[DumpPlan],
    options: Sequence[dict[str, JsonValue]],
) -> dict[str, JsonValue]:
    """List by what a folder's data set is known again; several subsets by their names."""
    claimed: dict[str, JsonValue] = {"builder": builder}
    for build, plan, choices in zip(builds, plans, options, strict=True):
        prefix = f"{build.name}: " if len(builds) > 1 else ""
        dumps: list[JsonValue] = [path.name for path in plan.files.paths]
        known: dict[str, JsonValue] = {**choices, "seed": build.seed, "dumps": dumps}
        # Permissions, which change no row of dumps that are whole.
        known.pop("allow_truncated")
        known.pop("require_end_mark")
        # The wiki's fields one by one, so that a difference is told in few words.
        wiki = known.pop("configuration")
        known |= (
            {f"wiki.{name}": value for name, value in wiki.items()}
            if isinstance(wiki, dict)
            else {}
        )
        claimed |= {f"{prefix}{name}": value for name, value in known.items()}
    return claimed


def _warn_without_items(popqa: PopQA) -> None:
    """Tell of subjects that can only be looked up by name."""
    n_named = sum(question.triple.subject.id is None for question in popqa.questions)
    if n_named:
        warnings.warn(
            f"{n_named:,} of {len(popqa.questions):,} facts name no Wikidata item of their subject "
            "(column s_uri); its name is taken as the title of its article, and the facts whose "
            "name is no title are left out",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )


def _subset(
    builder: str,
    build: DumpSettings,
    result: BuildResult,
    options: dict[str, JsonValue],
    sources: Iterable[SourceFile],
) -> dataset_folder.Subset:
    """Describe one configuration of a folder."""
    manifest = BuildManifest(
        builder=builder,
        builder_version=_VERSION,
        package_version=surface_consistency.__version__,
        seed=build.seed,
        options=options,
        sources=tuple(sources),
    )
    return dataset_folder.Subset(
        name=build.name,
        splits={"test": result.rows()},
        record=BuiltRow,
        key=ROW_KEY,
        attrition=result.attrition,
        manifest=manifest,
    )


def _described(
    paths: Sequence[Path], *, checksums: bool, progress: BuildHook | None
) -> dict[Path, SourceFile]:
    """Describe the dumps, and tell how far the checksums are: they read every byte."""
    sizes = {path: path.stat().st_size for path in paths}
    start, done = time.perf_counter(), 0
    described: dict[Path, SourceFile] = {}
    for path, size in sizes.items():
        if checksums and progress is not None:
            progress(
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
        described[path] = describe_file(path, checksum=checksums)
        done += size
    return described


def _work_folder(
    work: str | os.PathLike[str] | None, out: str | os.PathLike[str], plan: DumpPlan
) -> Path:
    """Name the folder of what is staged: one a wiki, so that configurations share it."""
    target = Path(out)
    home = target.with_name(f"{target.name}.work") if work is None else work
    return dataset_folder.make_folder(home, "work") / plan.config.wiki
