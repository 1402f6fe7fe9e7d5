"""The data set card: the YAML header that `load_dataset` reads, and what people should know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeGuard

from pydantic import JsonValue

from surface_consistency.data.publishing._tables import markdown_table
from surface_consistency.data.publishing.counts import RowCounts
from surface_consistency.data.publishing.manifest import BuildManifest
from surface_consistency.taxonomy import RELATIONS, TYPES, parse_category

__all__ = ["AttritionLine", "CardSubset", "CardText", "render_card"]

_SIZES: Final = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)

_TYPES_NOTE: Final = (
    "An instance in several categories counts in each, and in the type of each, so that these "
    "numbers may add up to more than there are redirect instances."
)


class AttritionLine(Protocol):
    """One line of an attrition table: rows that left a step for one reason."""

    @property
    def step(self) -> str:
        """Name of the step."""

    @property
    def unit(self) -> str:
        """What its rows are."""

    @property
    def rows_in(self) -> int:
        """Rows that it looked at."""

    @property
    def rows_out(self) -> int:
        """Rows that it passed on."""

    @property
    def reason(self) -> str | None:
        """Why rows went."""

    @property
    def removed(self) -> int:
        """Rows that went for this reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardText:
    """What a card says that cannot be counted."""

    pretty_name: str
    """Name for people."""

    summary: str
    """What the data set is, in Markdown."""

    languages: tuple[str, ...]
    """Language codes."""

    license: str
    """Identifier that the hub knows, such as "cc-by-sa-4.0"."""

    license_notes: str
    """Which part is under which licence, in Markdown."""

    citation: str
    """BibTeX."""

    task_categories: tuple[str, ...] = ("question-answering",)
    """Tasks that the hub knows."""

    tags: tuple[str, ...] = ()
    """Free tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSubset:
    """One configuration, as the card shows it."""

    name: str
    """Its name."""

    counts: RowCounts
    """What is in its rows."""

    data_files: Mapping[str, str]
    """Split to the pattern of its files."""

    columns: Mapping[str, str]
    """Column to its type."""

    meanings: Mapping[str, str] = field(default_factory=dict)
    """Column to what it holds, in Markdown; not shown when empty."""

    attrition: Sequence[AttritionLine] = ()
    """What the build left out."""

    manifest: BuildManifest | None = None
    """How it was built."""


def render_card(text: CardText, subsets: Sequence[CardSubset], *, default: str) -> str:
    """Write the README of a data set repository.

    Args:
        text: What cannot be counted.
        subsets: The configurations, in order.
        default: The one that `load_dataset` takes when none is named.

    Returns:
        The card: YAML between lines of dashes, then Markdown.

    Raises:
        ValueError: If there are no subsets, or the default is none of them.
    """
    names = [subset.name for subset in subsets]
    if default not in names:
        raise ValueError(f"the default {default!r} is none of the subsets ({', '.join(names)})")
    sections = [f"# {text.pretty_name}", text.summary.strip(), _usage(default, names)]
    for subset in subsets:
        sections += _subset_sections(subset)
    sections += [
        "## Licences",
        text.license_notes.strip(),
        "## Citation",
        f"```bibtex\n{text.citation.strip()}\n```",
    ]
    return f"---\n{_header(text, subsets, default)}---\n\n" + "\n\n".join(sections) + "\n"


def _header(text: CardText, subsets: Sequence[CardSubset], default: str) -> str:
    """Write the YAML."""
    from huggingface_hub import DatasetCardData

    n_rows = sum(subset.counts.rows.total() for subset in subsets)
    configs = [
        {
            "config_name": subset.name,
            **({"default": True} if subset.name == default else {}),
            "data_files": [
                {"split": split, "path": path} for split, path in subset.data_files.items()
            ],
        }
        for subset in subsets
    ]
    data = DatasetCardData(
        pretty_name=text.pretty_name,
        language=list(text.languages),
        license=text.license,
        task_categories=list(text.task_categories),
        size_categories=next((name for top, name in _SIZES if n_rows < top), "n>10M"),
        tags=list(text.tags) or None,
        configs=configs,
    )
    return f"{data.to_yaml()}\n"


def _usage(default: str, names: Sequence[str]) -> str:
    """Show how to load it, from the repository or from this folder."""
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        "```python\nfrom datasets import load_dataset\n\n"
        f'rows = load_dataset("<this repository or folder>", "{default}", split="test")\n```\n\n'
        f"Configurations: {listed}; `{default}` where none is named."
    )


def _subset_sections(subset: CardSubset) -> list[str]:
    """Write the counts, the attrition and the build of one configuration."""
    counts = subset.counts
    sections = [f"## `{subset.name}`", _split_table(counts)]
    if counts.templates:
        sections.append(markdown_table(("wording", "rows"), counts.templates.items()))
    if counts.types:
        sections += ["### Redirect types and categories", _TYPES_NOTE, _type_table(counts)]
        sections.append(_category_table(counts))
    if counts.relations:
        sections += ["### Relations", _relation_table(counts)]
    sections += ["### Columns", _column_table(subset)]
    if subset.attrition:
        sections += ["### What the build left out", _attrition_table(subset.attrition)]
    if subset.manifest is not None:
        sections += ["### Build", *_build(subset.manifest)]
    return sections


def _split_table(counts: RowCounts) -> str:
    """Count rows, facts and instances by split."""
    return markdown_table(
        ("split", "rows", "facts", "canonical instances", "redirect instances"),
        (
            (name, n_rows, counts.facts[name], counts.canonical[name], counts.redirects[name])
            for name, n_rows in counts.rows.items()
        ),
    )


def _column_table(subset: CardSubset) -> str:
    """List the columns, with what they hold where that is known."""
    if not subset.meanings:
        return markdown_table(("column", "type"), subset.columns.items())
    return markdown_table(
        ("column", "type", "what it holds"),
        ((name, kind, subset.meanings.get(name, "")) for name, kind in subset.columns.items()),
    )


def _type_table(counts: RowCounts) -> str:
    """Count instances by type; one in two types counts twice."""
    ordered = [name for name in TYPES if name in counts.types]
    ordered += sorted(set(counts.types) - set(TYPES))
    return markdown_table(
        ("type", "instances"),
        ((TYPES[name].title if name in TYPES else name, counts.types[name]) for name in ordered),
    )


def _category_table(counts: RowCounts) -> str:
    """Count instances by category, the largest first within a type."""

    def order(label: str) -> tuple[int, int, str]:
        category = parse_category(label)
        place = list(TYPES).index(category.type) if category else len(TYPES)
        return place, -counts.categories[label], label

    return markdown_table(
        ("category", "type", "instances"),
        (
            (
                f"`{label}`",
                TYPES[category.type].title if (category := parse_category(label)) else "unknown",
                counts.categories[label],
            )
            for label in sorted(counts.categories, key=order)
        ),
    )


def _relation_table(counts: RowCounts) -> str:
    """Count facts by relation, in the taxonomy's order."""
    ordered = [name for name in RELATIONS if name in counts.relations]
    ordered += sorted(set(counts.relations) - set(RELATIONS))
    return markdown_table(
        ("relation", "property", "facts"),
        (
            (
                name,
                RELATIONS[name].property_id if name in RELATIONS else "",
                counts.relations[name],
            )
            for name in ordered
        ),
    )


def _attrition_table(lines: Sequence[AttritionLine]) -> str:
    """Lay out what each step took in, passed on and dropped."""
    return markdown_table(
        ("step", "unit", "in", "out", "reason", "removed"),
        (
            (line.step, line.unit, line.rows_in, line.rows_out, line.reason or "", line.removed)
            for line in lines
        ),
    )


def _plain(value: JsonValue) -> object:
    """Write a setting for people; long ones, which are tables, stand in `build.json` alone."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return {None: "none", True: "yes", False: "no"}[value] if _is_word(value) else value


def _is_word(value: JsonValue) -> TypeGuard[bool | None]:
    """Tell whether a value is one of the three that have a word."""
    return value is None or isinstance(value, bool)


def _build(manifest: BuildManifest) -> list[str]:
    """Write the settings and sources of a build."""
    settings = {
        "builder": f"{manifest.builder} {manifest.builder_version}",
        "package": f"surface-consistency {manifest.package_version}",
        "seed": manifest.seed,
        **{
            name: _plain(value)
            for name, value in manifest.options.items()
            if not isinstance(value, dict)
        },
    }
    sections = [markdown_table(("setting", "value"), settings.items())]
    if manifest.sources:
        sections.append(
            markdown_table(
                ("source", "date", "bytes", "SHA-1"),
                (
                    (source.name, source.date or "", source.n_bytes, source.sha1 or "")
                    for source in manifest.sources
                ),
            )
        )
    return sections
