"""Make the data set card: the YAML header that `load_dataset` reads, and a description."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from surface_consistency.tables.markdown import Markdown, markdown_code, markdown_rows
from surface_consistency.taxonomy import RELATIONS, TYPES, parse_category
from surface_consistency_build.cards.build_records import BuildManifest, RowCounts
from surface_consistency_build.wikimedia.construction.progress import StepCount

if TYPE_CHECKING:
    import datasets

_TEMPLATE: Final = Path(__file__).with_name("dataset_card.md.jinja")
_SIZES: Final = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_PAPERS: Final = Path(__file__).with_name("dataset_papers.bib")
"""BibTeX of the papers of RedirectQA, PopQA, SLAQ and the audit, separated by blank lines."""

_SUMMARY: Final = """
Questions about facts of Wikidata, with the title of the subject's Wikipedia article and with titles
of pages that redirect to it, each redirect with its kind of name. Built with `surface-consistency`
from Wikimedia's dumps, after the construction of RedirectQA (arXiv 2604.21882, section 2.3). Rows
of one `triplet_id` are one fact; canonical rows have the category `__MAIN__`.
"""
_POPQA_SUMMARY: Final = """
The questions of PopQA, with the subject's name in PopQA and with titles of pages that redirect to
its Wikipedia article, as in the preliminary experiment of RedirectQA (arXiv 2604.21882, appendix
B.1). Built with `surface-consistency` from PopQA's rows and Wikimedia's dumps. Rows of one
`triplet_id` are one question of PopQA; canonical rows have the category `__MAIN__`.
"""
_LICENSES: Final = """
- The data set, and titles and redirects from Wikipedia: CC BY-SA 4.0.
- Facts, labels and aliases from Wikidata: CC0 1.0.
- Pageviews from Wikimedia's analytics dumps: CC0 1.0.
"""
_WORDINGS_LICENSE: Final = "- Question templates in English, adapted from PopQA's: MIT.\n"
_POPQA_LICENSE: Final = "- Questions and accepted answers from PopQA: MIT.\n"
_SLAQ_SUMMARY: Final = """
Topics of SLAQ (arXiv 2510.11218, figure 6), one row each: five short questions with their answers,
one long question that lists the five, and one long answer. The columns are those of the release.
"""
_SLAQ_LICENSE: Final = """
The licence of the rows is not known. The paper announces "an open scientific license" (appendix
A.1) and does not name it, and the source of these rows states none. Ask the authors of SLAQ before
you publish the rows.
"""
_TOPICS_SUMMARY: Final = """
Topics that a model wrote from articles, with `surface-consistency`, in the columns of SLAQ (arXiv
2510.11218): five short questions with their answers, one long question that lists the five, and one
long answer.
"""
_TOPICS_LICENSE: Final = """
No licence is stated: the questions and answers were written from articles by a model. The licence
of the articles (CC BY-SA 4.0 for Wikipedia) and the terms of the model apply. State the licence
here before you publish the rows.
"""
_AUDIT_SUMMARY: Final = """
Databases from which single facts are deleted, and the prompts that query these facts: the setting
of the audit of forgetting (arXiv 2607.00605). The same facts are stored in several topologies. The
configuration `prompts` has one row per prompt, with the domain, the topology and the prompt style;
`triplets` has one row per entry of a database.
"""
_AUDIT_LICENSE: Final = """
The authors publish databases and prompts under the MIT licence (repository raeesiarya/LMLMAudit);
the wordings of the prompts that `surface-consistency` writes are theirs. Databases from other
tables of facts keep the licence of these tables.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardText:
    """Text of a card, without the counts."""

    pretty_name: str
    """Display name."""

    summary: str
    """Description of the data set, in Markdown."""

    languages: tuple[str, ...]
    """Language codes."""

    license: str
    """Identifier of the hub, such as "cc-by-sa-4.0"."""

    license_notes: str
    """Licences of the parts, in Markdown."""

    citation: str
    """BibTeX."""

    task_categories: tuple[str, ...] = ("question-answering",)
    """Task categories of the hub."""

    tags: tuple[str, ...] = ()
    """Free tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSubset:
    """One configuration of a card."""

    name: str
    """Its name."""

    counts: RowCounts
    """Counts of its rows."""

    data_files: Mapping[str, str]
    """Split to the pattern of its files."""

    features: "datasets.Features"
    """Columns and their types."""

    n_bytes: int
    """Size of the files."""

    digest: str
    """Digest of the files. `datasets` does not compare the content of local files: the key of its
    cache is the card, so the card must change with the rows."""

    meanings: Mapping[str, str] = field(default_factory=dict)
    """Column to its description, in Markdown; omitted if empty."""

    attrition: Sequence[StepCount] = ()
    """Rows that the build excluded."""

    manifest: BuildManifest | None = None
    """Settings of the build."""


def render_card(text: CardText, subsets: Sequence[CardSubset], *, default: str) -> str:
    """Write the README of a data set repository.

    Args:
        text: The text, without the counts.
        subsets: The configurations, in order.
        default: The default configuration of `load_dataset`.

    Returns:
        The card: YAML between lines of dashes, then Markdown.

    Raises:
        ValueError: If `subsets` is empty, or the default is not one of them.
    """
    names = [subset.name for subset in subsets]
    if default not in names:
        raise ValueError(f"the default {default!r} is not one of the subsets ({', '.join(names)})")
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCard, DatasetCardData

    n_rows = sum(subset.counts.rows.total() for subset in subsets)
    data = DatasetCardData(
        pretty_name=text.pretty_name,
        language=list(text.languages) or None,
        license=text.license,
        task_categories=list(text.task_categories),
        size_categories=next((name for top, name in _SIZES if n_rows < top), "n>10M"),
        tags=list(text.tags) or None,
        configs=[
            {
                "config_name": subset.name,
                "description": f"rows {subset.digest}",
                **({"default": True} if subset.name == default else {}),
                "data_files": [
                    {"split": split, "path": path} for split, path in subset.data_files.items()
                ],
            }
            for subset in subsets
        ],
    )
    infos = {subset.name: _info(subset) for subset in subsets}
    DatasetInfosDict(infos).to_dataset_card_data(data)
    card = DatasetCard.from_template(
        data,
        template_path=str(_TEMPLATE),
        text=text,
        subsets=subsets,
        default=default,
        split=next(iter(subsets[names.index(default)].data_files)),
        table=markdown_table,
        splits=_split_rows,
        types=_type_rows,
        categories=_category_rows,
        relations=_relation_rows,
        columns=_column_rows,
        attrition=_attrition_rows,
        settings=_setting_rows,
        sources=_source_rows,
    )
    return f"{card.content.rstrip()}\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; integers have separators and are right-aligned.

    Args:
        header: Names of the columns.
        rows: Cells; markup is escaped in texts that are not `Markdown`.

    Returns:
        The table, without a final line feed.
    """
    lines = [list(row) for row in rows]
    columns = [[line[place] for line in lines] for place in range(len(header))]
    numeric = [
        bool(cells) and all(isinstance(x, int) and not isinstance(x, bool) for x in cells)
        for cells in columns
    ]
    shown = (
        [
            f"{cell:,}" if is_number else cell if isinstance(cell, Markdown) else str(cell)
            for cell, is_number in zip(line, numeric, strict=True)
        ]
        for line in lines
    )
    return markdown_rows(header, shown, "".join("lr"[is_number] for is_number in numeric))


def redirectqa_card(
    languages: Sequence[str] = ("en",), *, pretty_name: str = "RedirectQA"
) -> CardText:
    """Return the card's text for a build of RedirectQA.

    Args:
        languages: Codes of the languages of the questions.
        pretty_name: Display name.

    Returns:
        The text.
    """
    return CardText(
        pretty_name=pretty_name,
        summary=_SUMMARY,
        languages=tuple(languages),
        license="cc-by-sa-4.0",
        license_notes=_LICENSES.rstrip() + "\n" + (_WORDINGS_LICENSE if "en" in languages else ""),
        citation=_citation(0, 1) if "en" in languages else _citation(0),
        tags=("factual-consistency", "entity", "wikipedia-redirects", "wikidata"),
    )


def popqa_redirect_card(*, pretty_name: str = "PopQA with redirects") -> CardText:
    """Return the card's text for PopQA with redirects.

    Args:
        pretty_name: Display name.

    Returns:
        The text.
    """
    return CardText(
        pretty_name=pretty_name,
        summary=_POPQA_SUMMARY,
        languages=("en",),
        license="cc-by-sa-4.0",
        license_notes=_LICENSES.rstrip() + "\n" + _POPQA_LICENSE,
        citation=_citation(0, 1),
        tags=("factual-consistency", "entity", "wikipedia-redirects", "popqa"),
    )


def _citation(*places: int) -> str:
    """Read the papers to cite, by their positions in the file."""
    papers = _PAPERS.read_text(encoding="utf-8").strip().split("\n\n")
    return "\n\n".join(papers[place] for place in places)


def slaq_card(*, pretty_name: str = "SLAQ") -> CardText:
    """Return the card's text for topics of SLAQ.

    Args:
        pretty_name: Display name.

    Returns:
        The text.
    """
    return CardText(
        pretty_name=pretty_name,
        summary=_SLAQ_SUMMARY,
        languages=("en",),
        license="unknown",
        license_notes=_SLAQ_LICENSE,
        citation=_citation(2),
        tags=("factual-consistency", "short-and-long-answers"),
    )


def written_topics_card() -> CardText:
    """Return the card's text for topics that a model wrote from articles.

    Returns:
        The text.
    """
    return replace(
        slaq_card(pretty_name="Topics in the layout of SLAQ"),
        summary=_TOPICS_SUMMARY,
        license="other",
        license_notes=_TOPICS_LICENSE,
    )


def audit_card(*, pretty_name: str = "Databases for auditing forgetting") -> CardText:
    """Return the card's text for databases of the audit of forgetting and their prompts.

    Args:
        pretty_name: Display name.

    Returns:
        The text.
    """
    return CardText(
        pretty_name=pretty_name,
        summary=_AUDIT_SUMMARY,
        languages=("en",),
        license="mit",
        license_notes=_AUDIT_LICENSE,
        citation=_citation(3),
        tags=("unlearning", "retrieval", "knowledge-bases"),
    )


def stated_license(text: CardText, license_id: str | None) -> CardText:
    """Set the licence that the card of the source states.

    Args:
        text: The card's text.
        license_id: Identifier of the licence; None if the source does not state it.

    Returns:
        The text with that licence, or unchanged.
    """
    if license_id is None:
        return text
    notes = f"The card of the source states the licence {markdown_code(license_id)} for its rows."
    return replace(text, license=license_id, license_notes=notes)


_Cells = Iterator[tuple[object, ...]]


def _split_rows(counts: RowCounts) -> _Cells:
    """Count rows, facts and instances by split."""
    for name, n_rows in counts.rows.items():
        numbers = (counts.facts[name], counts.canonical[name], counts.redirects[name])
        yield name, n_rows, *(numbers if counts.facts else ())


def _type_rows(counts: RowCounts) -> _Cells:
    """Count instances by type, in the taxonomy's order; an instance of two types counts twice."""
    for name in _in_order(counts.types, TYPES):
        yield TYPES[name].title if name in TYPES else name, counts.types[name]


def _category_rows(counts: RowCounts) -> _Cells:
    """Count instances by category, the largest first within a type."""
    known = {label: parse_category(label) for label in counts.categories}
    places = {name: place for place, name in enumerate(TYPES)}

    def order(label: str) -> tuple[int, int, str]:
        category = known[label]
        place = places[category.type] if category else len(TYPES)
        return place, -counts.categories[label], label

    for label in sorted(known, key=order):
        category = known[label]
        title = TYPES[category.type].title if category else "unknown"
        yield markdown_code(label), title, counts.categories[label]


def _relation_rows(counts: RowCounts) -> _Cells:
    """Count facts by relation, in the taxonomy's order."""
    for name in _in_order(counts.relations, RELATIONS):
        property_id = RELATIONS[name].property_id if name in RELATIONS else ""
        yield name, property_id, counts.relations[name]


def _in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names of the taxonomy in its order, followed by the others."""
    present, order = set(names), list(known)
    return [*(name for name in order if name in present), *sorted(present - set(order))]


def _column_rows(subset: CardSubset) -> _Cells:
    """List the columns with their descriptions, if known."""
    for name, feature in subset.features.items():
        kind = _type_name(feature)
        meaning = Markdown(" ".join(subset.meanings.get(name, "").split()))
        yield (name, kind, meaning) if subset.meanings else (name, kind)


def _type_name(feature: object) -> str:
    """Return a readable name of a column's type."""
    inner = getattr(feature, "feature", None)
    return (
        f"list of {_type_name(inner)}"
        if inner is not None
        else str(getattr(feature, "dtype", feature))
    )


def _info(subset: CardSubset) -> "datasets.DatasetInfo":
    """Describe types and sizes for `datasets`."""
    import datasets

    splits = datasets.SplitDict(dataset_name=subset.name)
    for name, n_rows in subset.counts.rows.items():
        n_bytes = subset.counts.n_bytes[name]
        splits.add(datasets.SplitInfo(name, num_bytes=n_bytes, num_examples=n_rows))
    return datasets.DatasetInfo(
        features=subset.features,
        splits=splits,
        download_size=subset.n_bytes,
        dataset_size=subset.counts.n_bytes.total(),
    )


def _attrition_rows(subset: CardSubset) -> _Cells:
    """Return the rows that each step read, kept and dropped."""
    for line in subset.attrition:
        yield line.step, line.unit, line.rows_in, line.rows_out, line.reason or "", line.removed


def _setting_rows(manifest: BuildManifest) -> _Cells:
    """List the settings of a build, except tables, which are only in `build.json`."""
    yield "builder", f"{manifest.builder} {manifest.builder_version}"
    yield "package", f"surface-consistency {manifest.package_version}"
    if manifest.seed is not None:
        yield "seed", manifest.seed
    for name, value in manifest.options.items():
        if not isinstance(value, dict):
            yield name, _plain(value)


def _plain(value: JsonValue) -> object:
    """Return a readable form of a setting."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else value


def _source_rows(manifest: BuildManifest) -> _Cells:
    """List the files that a build read."""
    for source in manifest.sources:
        yield source.name, source.date or "", source.n_bytes, source.sha1 or ""
