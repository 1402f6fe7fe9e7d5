"""Which step follows which, and what each depends on."""

from surface_consistency.wikimedia.construction import steps
from surface_consistency.wikimedia.construction._pipeline import Step
from surface_consistency.wikimedia.construction.steps.candidates import Unambiguous
from surface_consistency.wikimedia.wikis import WikiConfig

__all__ = ["article_steps", "fact_steps", "naming_step", "rows_step", "surface_steps"]


def article_steps() -> tuple[Step, ...]:
    """List the steps that depend on the dumps alone."""
    return (
        Step(
            name="01_views",
            reads=("views", "pages"),
            makes=("page_views",),
            run=steps.sum_views,
        ),
        Step(
            name="02_articles",
            reads=("pages", "page_props", "entities", "page_views"),
            makes=("articles",),
            run=steps.join_articles,
        ),
        Step(
            name="03_redirects",
            reads=("redirects", "pages", "page_props", "articles"),
            makes=("resolved",),
            run=steps.resolve_redirects,
        ),
    )


def fact_steps(
    config: WikiConfig, *, triples: int, seed: int, unambiguous: Unambiguous
) -> tuple[Step, ...]:
    """List the steps that choose the facts."""
    return (
        Step(
            name="04_names",
            reads=("articles", "entities"),
            makes=("shared_names",),
            run=steps.find_shared_names,
        ),
        Step(
            name="05_candidates",
            reads=("claims", "articles", "shared_names"),
            makes=("candidates", "facts"),
            run=steps.candidate_triples,
            settings={"properties": sorted(config.properties), "unambiguous": unambiguous},
        ),
        Step(
            name="06_sample",
            reads=("candidates",),
            makes=("sample",),
            run=steps.sample_triples,
            settings={"triples": triples, "seed": seed},
        ),
    )


def surface_steps(
    config: WikiConfig, *, category_cap: int | None, seed: int, variant: str
) -> tuple[Step, ...]:
    """List the steps that give the facts their surface forms."""
    varied: dict[str, object] = {"varied": variant}
    return (
        Step(
            name="07_categories",
            reads=("sample", "resolved", "categories"),
            makes=("kinds",),
            run=steps.keep_categories,
            settings={"labels": list(config.labels), **varied},
        ),
        Step(
            name="08_surfaces",
            reads=("kinds", "articles", "entities"),
            makes=("surfaces",),
            run=steps.keep_surfaces,
        ),
        Step(
            name="09_instances",
            reads=("sample", "surfaces"),
            makes=("instances",),
            run=steps.pair_with_surfaces,
            settings=varied,
        ),
        Step(
            name="10_balance",
            reads=("instances",),
            makes=("balanced",),
            run=steps.balance,
            settings={"category_cap": category_cap, "seed": seed},
        ),
    )


def naming_step(config: WikiConfig) -> Step:
    """Describe the step that collects the accepted answers."""
    return Step(
        name="11_answers",
        reads=(
            *("sample", "balanced", "facts", "entities", "aliases"),
            *("articles", "resolved", "categories"),
        ),
        makes=("entity_names", "right_answers"),
        run=steps.name_objects,
        settings={"labels": list(config.labels)},
    )


def rows_step(config: WikiConfig, variant: str) -> Step:
    """Describe what the rows depend on."""
    return Step(
        name="12_rows",
        reads=(
            *("sample", "balanced", "articles", "surfaces", "page_views"),
            *("entity_names", "right_answers"),
        ),
        makes=(),
        run=lambda _: [],
        settings={"config": config.model_dump(mode="json"), "variant": variant},
    )
