"""How a data set is built from dumps, and what of it decides the rows."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from surface_consistency.data.popqa import PopQA
from surface_consistency.wikimedia.construction import (
    CATEGORY_CAP,
    DumpPlan,
    Route,
    Variant,
    find_dumps,
)
from surface_consistency.wikimedia.construction.steps_facts import Unambiguous
from surface_consistency.wikimedia.wikis import WikiConfig

__all__ = ["BuildSettings", "popqa_options", "redirectqa_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """One way to build RedirectQA from dumps."""

    name: str = "default"
    """Name of the configuration in the folder."""

    wiki: str = "enwiki"
    """Name of a wiki's configuration, or a TOML or JSON file with one."""

    route: Route | None = None
    """Where redirects and their categories come from; None for the wiki's best."""

    months: Sequence[str] | None = None
    """Months of pageviews as "YYYYMM"; None for all that are there."""

    triples: int = 500_000
    """Candidate triples that are drawn."""

    seed: int = 0
    """Seed of the draws."""

    category_cap: int | None = CATEGORY_CAP
    """Instances at which a category is down-sampled; None for no balancing."""

    variant: Variant = "subject"
    """Whose surface form varies."""

    unambiguous: Unambiguous = "subject"
    """Whose canonical surface form must be that of one entity alone."""

    memory_limit: str = "2GB"
    """Memory for DuckDB; beyond it spills to disk."""

    threads: int | None = None
    """Threads for reading and for DuckDB; None for all processors."""

    allow_truncated: bool = False
    """Whether a dump that ends early counts as far as it goes."""

    def plan(self, dumps: str | os.PathLike[str], *, needs_views: bool = True) -> DumpPlan:
        """Look for the dump files of this build.

        Args:
            dumps: Folder of dump files.
            needs_views: Whether the build cannot do without pageviews; PopQA's facts can.

        Returns:
            The files that are there, and those that are missing.
        """
        return find_dumps(
            dumps, self.wiki, route=self.route, months=self.months, needs_views=needs_views
        )

    def described(self) -> dict[str, JsonValue]:
        """List what decides the rows beside the dumps, for the card."""
        return {
            "wiki": Path(self.wiki).name,
            "triples": self.triples,
            "category_cap": self.category_cap,
            "vary": self.variant,
            "unambiguous": self.unambiguous,
            "allow_truncated": self.allow_truncated,
        }


def redirectqa_options(build: BuildSettings, plan: DumpPlan) -> dict[str, JsonValue]:
    """List what decides the rows of RedirectQA, the wiki's configuration included."""
    return {
        **build.described(),
        "months": _months(plan),
        "route": plan.route,
        "notes": plan.config.notes,
        "configuration": plan.config.model_dump(mode="json"),
    }


def popqa_options(
    popqa: PopQA, build: BuildSettings, plan: DumpPlan, wiki: WikiConfig
) -> dict[str, JsonValue]:
    """List what decides the rows of PopQA with redirects."""
    source = popqa.source
    return {
        "popqa": Path(source.id).name if Path(source.id).exists() else source.id,
        "popqa_revision": source.revision,
        "popqa_digest": source.digest,
        "wiki": Path(build.wiki).name,
        "months": _months(plan),
        "route": plan.route,
        "category_cap": build.category_cap,
        "allow_truncated": build.allow_truncated,
        "templates": list(wiki.question_templates),
        "notes": wiki.notes,
        "configuration": wiki.model_dump(mode="json"),
    }


def _months(plan: DumpPlan) -> list[JsonValue]:
    """List the months and days whose views are summed."""
    return [path.name.split("-")[1] for path in plan.files.pageviews]
