"""An inventory of a wiki's redirects as files: counts, and a draft of the mapping for a build."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pydantic import Field

from surface_consistency.errors import DataError
from surface_consistency.runs.files import output_folder, staged, write_csv, write_json, write_text
from surface_consistency.schemas.settings import Settings
from surface_consistency.tables.table import Column, Table
from surface_consistency.taxonomy import CATEGORIES, RELATIONS, TEMPLATES, TYPES
from surface_consistency.text import one_line, printable
from surface_consistency_build.inventory.counts import RedirectInventory, take_inventory
from surface_consistency_build.inventory.plan import KINDS, InventoryPlan, Kind, plan_inventory
from surface_consistency_build.wikimedia.streams import ProgressHook
from surface_consistency_build.wikimedia.wikis import WIKIS, WikiConfig, load_wiki

MAPPING_FILE: Final = "mapping.toml"
"""Name of the draft in the folder of an inventory."""

_MOST_DRAFTED: Final = 300
_WIDTH: Final = 96
_FIELDS: Final = {"category": "categories", "template": "templates"}
_YES_OR_NO: Final[Mapping[Any, str]] = {True: "yes", False: "no"}
_TYPE_TITLES: Final = {name: kind.title for name, kind in TYPES.items()}
_ROUTES: Final = {"category": "sql", "template": "xml"}


class InventorySettings(Settings):
    """How an inventory is taken."""

    wiki: str | None = None
    """A known wiki, a TOML or JSON file that describes one, or any database name such as frwiki;
    the only one of the folder by default."""

    least: int = Field(default=10, ge=1)
    """Redirects that carry a name at least, for it to be listed and drafted; inventory.csv has
    all."""

    memory_limit: str = "2GB"
    """Memory for DuckDB; beyond it spills to disk."""

    threads: int | None = Field(default=None, ge=1)
    """Threads for reading and for DuckDB; all processors by default."""

    allow_truncated: bool = False
    """Whether a dump that ends early counts as far as it goes."""

    require_end_mark: bool = False
    """Whether a plain dump whose format cannot tell that it is whole is refused."""

    overwrite: bool = False
    """Whether a draft that is in --out already is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenInventory:
    """An inventory and where it lies."""

    inventory: RedirectInventory
    """The counts."""

    folder: Path
    """Folder of inventory.csv, inventory.json and mapping.toml."""


def write_inventory(
    dumps: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: InventorySettings | None = None,
    *,
    progress: ProgressHook | None = None,
) -> WrittenInventory:
    """Take an inventory of a wiki's redirects, and draft a configuration of it.

    Args:
        dumps: Folder of dump files, under the names by which Wikimedia publishes them.
        out: Folder to write: inventory.csv (every category and template), inventory.json (the
            sums) and mapping.toml (the draft, for `load_wiki` and `build redirectqa --wiki`).
        settings: How; None for the defaults.
        progress: Called as the dumps are read.

    Returns:
        The inventory and the folder.

    Raises:
        SourceNotFoundError: If a dump is missing.
        DataError: If `out` holds a draft already, the wiki has no redirect, a dump is broken, or
            the tables are not of one wiki.
    """
    settings = settings or InventorySettings()
    plan = plan_inventory(dumps, settings.wiki)
    folder = output_folder(out)
    if (folder / MAPPING_FILE).exists() and not settings.overwrite:
        raise DataError(
            f"{folder / MAPPING_FILE} is there already and may hold your own lines; take another "
            "--out, or replace it with --overwrite"
        )
    inventory = take_inventory(
        plan,
        work=folder,
        memory_limit=settings.memory_limit,
        threads=settings.threads,
        allow_truncated=settings.allow_truncated,
        require_end_mark=settings.require_end_mark,
        progress=progress,
    )
    with staged(folder, last=MAPPING_FILE) as part:
        write_csv(part / "inventory.csv", _rows(inventory.names))
        write_json(part / "inventory.json", _sums(inventory))
        write_text(part / MAPPING_FILE, draft_mapping(inventory, least=settings.least))
    # What cannot be read back is no draft.
    load_wiki(folder / MAPPING_FILE)
    return WrittenInventory(inventory=inventory, folder=folder)


def inventory_tables(
    inventory: RedirectInventory, *, least: int = 1, rows: int = 20
) -> list[Table]:
    """Lay an inventory out for people.

    Args:
        inventory: The counts.
        least: Redirects that a name is carried by at least to be listed.
        rows: Names of each kind that are listed, the most frequent first.

    Returns:
        The sums by kind, then for each kind its names; a kind that nothing carries has no table.
    """
    tables = [
        Table(
            frame=inventory.kinds,
            caption=(
                f"{inventory.n_redirects:,} redirects of {inventory.plan.config.wiki} "
                f"({inventory.plan.date}) in the article namespace; {inventory.n_usable:,} lead "
                "to a whole article"
            ),
            columns=[
                Column(key="kind", title="by"),
                Column(key="source", title="counted from"),
                Column(key="n_names", title="names", kind="count"),
                Column(key="n_mapped", title="carry a mapped one", kind="count"),
                Column(key="n_unmapped", title="others alone", kind="count"),
                Column(key="n_untagged", title="none", kind="count"),
            ],
            note="The last three count the redirects to whole articles.",
        )
    ]
    for kind in inventory.plan.sources:
        named = inventory.names[
            (inventory.names["kind"] == kind) & (inventory.names["n_redirects"] >= least)
        ]
        if named.empty:
            continue
        shown = named.head(rows).assign(
            title=[_spaced(name) for name in named["name"].head(rows)],
            mapped=named["label"].head(rows).map(_short, na_action="ignore"),
            example=[_example(pairs) for pairs in named["examples"].head(rows)],
        )
        more = len(named) - len(shown)
        has_hidden = named["is_hidden"].notna().any()
        tables.append(
            Table(
                frame=shown,
                caption=f"What redirects carry: {_FIELDS[kind]}",
                columns=[
                    Column(key="title", title=kind),
                    Column(key="n_redirects", title="redirects", kind="count"),
                    Column(key="share", title="share", kind="rate", unit="%"),
                    Column(key="n_gained", title="would add", kind="count"),
                    *(
                        [Column(key="is_hidden", title="hidden", labels=_YES_OR_NO)]
                        if has_hidden
                        else []
                    ),
                    Column(key="mapped", title="mapped to"),
                    Column(key="type", title="type", labels=_TYPE_TITLES),
                    Column(key="example", title="example"),
                ],
                note=f"{more:,} more are in inventory.csv." if more else "",
            )
        )
    return tables


def draft_mapping(inventory: RedirectInventory, *, least: int = 1) -> str:
    """Draft a configuration of the wiki that a build reads.

    What is mapped stands as a line of its own; what is not, as a comment with its counts and an
    example, so that a person who knows the wiki fills in what it is and takes the comment away.

    Args:
        inventory: The counts.
        least: Redirects that a name is carried by at least to be drafted, unless it is mapped.

    Returns:
        TOML with the fields of `WikiConfig`. A wiki of which nothing is mapped yet keeps its
        redirects uncategorised.
    """
    config = inventory.plan.config
    names = {kind: inventory.names[inventory.names["kind"] == kind] for kind in KINDS}
    is_mapped = any(frame["label"].notna().any() for frame in names.values())
    lines = [*_heading(inventory), *_fields(inventory.plan, is_mapped=is_mapped)]
    for kind, frame in names.items():
        if kind in inventory.plan.sources:
            lines += _section(kind, frame, inventory.n_redirects, least)
    if config != WIKIS.get(config.name):
        lines += _questions(config)
    return "\n".join(lines) + "\n"


def _heading(inventory: RedirectInventory) -> Iterable[str]:
    """Say what the draft is, and how to go on."""
    plan = inventory.plan
    yield f"# Draft of `surface-consistency build inventory`, {plan.config.wiki} {plan.date}, for"
    yield f"# `surface-consistency build redirectqa --wiki {MAPPING_FILE}`."
    yield (
        f"# Of {inventory.n_redirects:,} redirects in the article namespace "
        f"{inventory.n_usable:,} lead to a whole article."
    )
    for row in inventory.kinds.to_dict("records"):
        yield (
            f"# By {row['kind']} ({row['source']}): {row['n_mapped']:,} of these carry one that is "
            f"mapped, {row['n_unmapped']:,} none that is, {row['n_untagged']:,} none at all."
        )
    yield "#"
    yield '# To map a line that begins with "#? ", write what it is and take "#? " away. It may be'
    for name, kind in TYPES.items():
        of_type = ", ".join(item.name for item in CATEGORIES.values() if item.type == name)
        yield from _wrapped(f"{kind.title}: {of_type}.")
    yield "# Leave alone what says nothing about the name (maintenance, protection, subjects)."
    yield ""


def _wrapped(text: str) -> Iterable[str]:
    """Break a long comment into lines."""
    line = "#  "
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH:
            yield line
            line = "#   "
        line += f" {word}"
    yield line


def _fields(plan: InventoryPlan, *, is_mapped: bool) -> Iterable[str]:
    """Write what is not mapping: from the known wiki, or one by one."""
    config = plan.config
    if config == WIKIS.get(config.name):
        yield f"base = {_quoted(config.name)}"
        yield f"name = {_quoted(f'{config.name}-mapped')}"
    else:
        yield f"name = {_quoted(config.name)}"
        yield f"wiki = {_quoted(config.wiki)}"
        guess = "" if plan.is_known else "  # guessed from the wiki's name"
        yield f"language = {_quoted(config.language)}{guess}"
        yield f"project = {_quoted(config.project)}{guess}"
        yield f"relations = {json.dumps(list(config.relations))}"
        yield f"question_templates = {json.dumps(list(config.question_templates))}"
        yield f"parenthesis = {_quoted(config.parenthesis)}"
    if is_mapped:
        yield "uncategorised = false"
    else:
        yield "# Nothing is mapped yet, so all redirects are kept under one label; write false"
        yield "# once something is."
        yield "uncategorised = true"
    taken = f"Kinds of redirects after an inventory of {config.wiki}, {plan.date}."
    yield f"notes = {_quoted(taken if is_mapped else config.notes)}"


def _section(kind: Kind, frame: pd.DataFrame, n_redirects: int, least: int) -> Iterable[str]:
    """Write the table of a kind: mapped names, then the others by what they would add."""
    yield ""
    yield f"# {_FIELDS[kind].capitalize()} (route {_ROUTES[kind]})."
    yield f"[{_FIELDS[kind]}]"
    is_mapped = frame["label"].notna()
    for row in frame[is_mapped].to_dict("records"):
        yield f"# {_counts(row, n_redirects)}; by {row['mapped_by']}"
        yield f"{_quoted(_spaced(row['name']))} = {_quoted(_short(row['label']))}"
    others = frame[~is_mapped & (frame["n_redirects"] >= least)]
    others = others.sort_values(["n_gained", "n_redirects", "name"], ascending=[False, False, True])
    for row in others.head(_MOST_DRAFTED).to_dict("records"):
        kinds = (("hidden", row["is_hidden"]), ("wraps other templates", row["is_shell"]))
        marks = "".join(f"; {mark}" for mark, is_so in kinds if is_so)
        english = f"; in English: {_plain(row['english'])}" if row["english"] else ""
        yield f"# {_counts(row, n_redirects)}{marks}{english}"
        yield f'#? {_quoted(_spaced(row["name"]))} = ""'
    n_rest = int((~is_mapped).sum()) - min(len(others), _MOST_DRAFTED)
    if n_rest:
        yield f"# {n_rest:,} more are in inventory.csv."


def _counts(row: Mapping[Any, Any], n_redirects: int) -> str:
    """Tell how many redirects carry a name, with an example."""
    share = row["n_redirects"] / n_redirects
    would = "" if row["label"] else f", would add {row['n_gained']:,}"
    return f"{row['n_redirects']:,} ({share:.1%}){would}: {_example(row['examples'])}"


def _questions(config: WikiConfig) -> Iterable[str]:
    """Write the questions: those that the configuration has, or English ones to be translated."""
    mark = ""
    if not config.questions and config.language != "en":
        yield ""
        yield f"# Questions are English until all of them are given in {config.language!r}:"
        yield "# translate these and take the number signs away."
        mark = "# "
    elif not config.questions:
        return
    yield f"{mark}[questions]"
    for relation in config.relations:
        wordings = {
            name: config.questions.get(relation, {}).get(name)
            or (RELATIONS[relation].question("{}", template=name) if name in TEMPLATES else "{}")
            for name in config.question_templates
        }
        cells = ", ".join(f"{_quoted(name)} = {_quoted(text)}" for name, text in wordings.items())
        yield f"{mark}{relation} = {{ {cells} }}"


def _rows(names: pd.DataFrame) -> pd.DataFrame:
    """Lay the names out for a CSV file: an example a column, labels in short."""
    frame = names.drop(columns="examples")
    for place in range(3):
        frame[f"example_{place + 1}"] = [
            _pair(*pairs[place]) if place < len(pairs) else None for pairs in names["examples"]
        ]
    return frame


def _sums(inventory: RedirectInventory) -> dict[str, Any]:
    """Sum an inventory up for JSON."""
    plan = inventory.plan
    return {
        "wiki": plan.config.wiki,
        "date": plan.date,
        "files": [path.name for path in plan.paths],
        "n_redirects": inventory.n_redirects,
        "n_usable": inventory.n_usable,
        "kinds": inventory.kinds.to_dict("records"),
        "labels": inventory.labels.to_dict("records"),
        "notes": list(inventory.notes),
    }


def _example(pairs: tuple[tuple[str, str | None], ...]) -> str:
    """Show the first example."""
    return _pair(*pairs[0]) if pairs else ""


def _pair(redirect: str, target: str | None) -> str:
    """Show a redirect and where it leads."""
    return f"{_plain(_spaced(redirect))} -> {_plain(_spaced(target)) if target else '?'}"


def _plain(text: str) -> str:
    """Write a title so that it can stand in a line of a comment."""
    return printable(one_line(text))


def _spaced(name: str) -> str:
    """Spell a title for people."""
    return name.replace("_", " ")


def _short(label: str | None) -> str:
    """Name a label as the paper does."""
    return CATEGORIES[label].name if label else ""


def _quoted(text: str) -> str:
    """Write a string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
