"""Write the databases of an audit as a folder of files."""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from surface_consistency.errors import DataWarning
from surface_consistency.runs.files import claim_files, write_text
from surface_consistency.schemas import AuditPrompt
from surface_consistency.studies.audit.files import ALIASES, LISTS, check_prompts
from surface_consistency.studies.audit.retrieval.triplets import Triplets
from surface_consistency_build.builders.audit_databases.fact_tables import (
    DOMAINS,
    FactTable,
    load_fact_table,
)
from surface_consistency_build.builders.audit_databases.topologies import (
    PUBLISHED_TOPOLOGIES,
    AuditDatabase,
    build_topology,
)

PromptWriter = Callable[[Sequence[AuditPrompt]], Iterable[AuditPrompt]]
"""Function from targets to the same rows with another `prompt_text`."""

_NO_STYLES: Final[Mapping[str, PromptWriter]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltDatabase:
    """The files of one database."""

    domain: str
    """Name of its table."""

    topology: str
    """Topology: the way in which facts are stored."""

    path: Path
    """The database file."""

    prompt_paths: tuple[Path, ...]
    """Its prompt files, one per style."""

    n_triplets: int
    """Number of entries of the database."""

    n_facts: int
    """Number of facts in each prompt file."""


def build_audit_databases(
    out: str | os.PathLike[str],
    *,
    domains: Iterable[str | FactTable] = DOMAINS,
    topologies: Iterable[str] = PUBLISHED_TOPOLOGIES,
    styles: Mapping[str, PromptWriter] = _NO_STYLES,
    seed: int = 0,
) -> list[BuiltDatabase]:
    """Write databases and their prompts.

    The files are `<domain>/<topology>.json` and
    `<domain>/prompts/<topology>/prompts_<style>.jsonl`, as the audit publishes them. Files are
    written atomically, and the same arguments give the same bytes.

    Args:
        out: Folder; created if it does not exist. Files that were not written by this function are
            not replaced.
        domains: Names of bundled tables, or custom tables.
        topologies: Names of topologies.
        styles: Prompt writers by the name of their style (`style_writers` of the module `styles`
            returns the six of the paper); empty to write only databases.
        seed: Random seed of the near misses, for tables that do not list any.

    Returns:
        The written databases, by domain and topology.

    Raises:
        ValueError: If a domain or topology is unknown, or a domain occurs twice.
        DataError: If a table cannot be stored in a topology, or a file exists that was not written
            by this function.

    Warns:
        DataWarning: If a table has no aliases, so that alias equals base.
    """
    tables = [item if isinstance(item, FactTable) else load_fact_table(item) for item in domains]
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"domains must have distinct names, got {', '.join(names)}")
    wanted = list(topologies)
    prompts = [f"prompts/{name}/{prompt_file_name(style)}" for name in wanted for style in styles]
    files = [*(f"{name}.json" for name in wanted), *prompts]
    pairs = [(table, topology) for table in tables for topology in wanted]
    made = [_built(table, topology, seed) for table, topology in pairs]
    claim_files(Path(out), [f"{table.name}/{name}" for table in tables for name in files])
    return [
        _write(Path(out), table, topology, styles, built)
        for (table, topology), built in zip(pairs, made, strict=True)
    ]


def _built(table: FactTable, topology: str, seed: int) -> AuditDatabase:
    """Build one database."""
    made = build_topology(table, topology, seed=seed)
    if topology == "alias" and set(made.database) == set(table.facts):
        warnings.warn(
            f"table {table.name!r} has no aliases, so its topology alias is identical to base; "
            "add an aliases.tsv, or omit the topology alias",
            DataWarning,
            stacklevel=4,
        )
    return made


def _write(
    out: Path,
    table: FactTable,
    topology: str,
    styles: Mapping[str, PromptWriter],
    made: AuditDatabase,
) -> BuiltDatabase:
    """Write one database and its prompts."""
    folder = out / table.name / "prompts" / topology
    folder.mkdir(parents=True, exist_ok=True)
    path = out / table.name / f"{topology}.json"
    write_database(path, made.database)
    paths = []
    for style, writer in styles.items():
        paths.append(folder / prompt_file_name(style))
        write_audit_prompts(paths[-1], writer(made.targets))
    return BuiltDatabase(
        domain=table.name,
        topology=topology,
        path=path,
        prompt_paths=tuple(paths),
        n_triplets=len(made.database),
        n_facts=len(made.targets),
    )


def write_database(path: str | os.PathLike[str], database: Triplets) -> None:
    """Write a database file atomically, in the published layout.

    Args:
        path: The file; its folder must exist. An existing file is replaced.
        database: The database.
    """
    content: dict[str, Any] = {
        key: sorted(column.names.to_pylist())
        for key, column in zip(LISTS, database.columns.values(), strict=True)
    }
    content["triplets"] = list(map(list, database))
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_audit_prompts(path: str | os.PathLike[str], prompts: Iterable[AuditPrompt]) -> int:
    """Write a prompt file atomically, in the published layout.

    Args:
        path: The file; its folder must exist. An existing file is replaced.
        prompts: The rows.

    Returns:
        The number of rows.

    Raises:
        RecordError: If an alias is empty or a prompt number occurs twice.
    """
    lines = [_prompt_line(prompt) for prompt in check_prompts(prompts, str(Path(path)))]
    write_text(path, "".join(lines))
    return len(lines)


def prompt_file_name(style: str) -> str:
    """Return the name of the prompt file of a style.

    Examples:
        >>> prompt_file_name("cloze")
        'prompts_cloze.jsonl'
    """
    return f"prompts_{style}.jsonl"


def _prompt_line(prompt: AuditPrompt) -> str:
    """Return a prompt row as a line; aliases are written only if there are any."""
    row = prompt.model_dump(mode="json", exclude_none=True)
    filled = {key: value for key, value in row.items() if key not in ALIASES or value}
    return json.dumps(filled, ensure_ascii=False) + "\n"
