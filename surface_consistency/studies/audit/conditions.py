"""Find the conditions of an audit: databases, each with its prompts in several styles.

Two layouts are read, both as published (arXiv 2607.00605): `<domain>/<topology>.json` with
`<domain>/prompts/<topology>/prompts_<style>.jsonl`, and a folder of one database with its prompts
in `prompts/prompts_<style>.jsonl`. A database may be Parquet instead of JSON.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from surface_consistency.data.sources import SAMPLE
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.files import read_audit_prompts, read_database
from surface_consistency.studies.audit.retrieval.triplets import Triplets
from surface_consistency.studies.audit.retrieval.verification import database_coverage
from surface_consistency.text import did_you_mean

TOPOLOGIES: Final = ("base", "alias", "noise", "collision", "paraphrase", "pointer")
"""Topologies in the order of tables; the first four are those of the paper."""

STYLES: Final = (
    "direct_questions",
    "paraphrased_questions",
    "contextual_questions",
    "cloze",
    "continuations",
    "fewshot_questions",
)
"""Prompt styles in the order of tables."""

_PREFIX: Final = "prompts_"
_SUFFIX: Final = "_database"
_PARQUET: Final = ".parquet"


@dataclass(frozen=True, slots=True, order=True)
class ConditionLabel:
    """Domain, topology and prompt style of a condition."""

    domain: str
    """Topic of the facts."""

    topology: str
    """Topology of the database."""

    style: str
    """Prompt style."""

    @property
    def database(self) -> str:
        """Name of the database."""
        return self.domain if self.domain == self.topology else f"{self.domain}/{self.topology}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCondition:
    """A database and the prompts of one style for it."""

    label: ConditionLabel
    """Domain, topology and style."""

    database: Triplets
    """The database."""

    prompts: tuple[AuditPrompt, ...]
    """Its prompts in the style."""

    database_file: str
    """Path of the database file, relative to the folder that was searched."""

    prompt_file: str
    """Path of the prompt file, relative to the folder that was searched."""

    def limited(self, limit: int | None) -> "AuditCondition":
        """Keep only the first prompts.

        Args:
            limit: Maximum number of prompts; None for all.

        Returns:
            The condition with these prompts.
        """
        if limit is None or limit >= len(self.prompts):
            return self
        return replace(self, prompts=self.prompts[:limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditData:
    """The data of an audit: databases with their prompts."""

    id: str
    """Source of the data, for the manifest."""

    conditions: Sequence[AuditCondition]
    """Databases and prompts by style."""


def condition_label(prompt_file: str | os.PathLike[str]) -> ConditionLabel:
    """Read domain, topology and style from the path of a prompt file.

    Args:
        prompt_file: The path, in either layout.

    Returns:
        The label. For a folder of one database with its prompts, domain and topology are both the
        name of the folder without "_database".

    Raises:
        DataError: If the path has neither layout.

    Examples:
        >>> condition_label("data/countries/prompts/alias/prompts_cloze.jsonl").database
        'countries/alias'
        >>> condition_label("data/released_database/prompts/prompts_cloze.jsonl").database
        'released'
    """
    path = PurePath(prompt_file)
    style = path.stem.removeprefix(_PREFIX)
    folders = path.parent.parts
    if path.stem.startswith(_PREFIX) and style:
        if len(folders) >= 2 and folders[-1] == "prompts":
            name = folders[-2].removesuffix(_SUFFIX) or folders[-2]
            return ConditionLabel(name, name, style)
        if len(folders) >= 3 and folders[-2] == "prompts":
            return ConditionLabel(folders[-3], folders[-1], style)
    raise DataError(
        f"{path} is not a prompt file of an audit; its path must end in "
        "DOMAIN/prompts/TOPOLOGY/prompts_STYLE.jsonl or NAME/prompts/prompts_STYLE.jsonl"
    )


def find_conditions(
    databases: str | os.PathLike[str],
    *,
    domains: Sequence[str] | None = None,
    topologies: Sequence[str] | None = None,
    styles: Sequence[str] | None = None,
    max_missing: float = 0.5,
) -> list[AuditCondition]:
    """Find databases with their prompts, and check that they belong together.

    Args:
        databases: A folder of databases in either layout, at any depth, or the file of one
            database: JSON or Parquet, as of `read_database`.
        domains: Domains to use; None for all.
        topologies: Topologies to use; None for all.
        styles: Prompt styles to use; None for all.
        max_missing: Maximum proportion of a file's prompts whose fact is missing from the database,
            in [0, 1].

    Returns:
        The conditions by domain, topology and style; those of a database share it.

    Raises:
        SourceNotFoundError: If the file or folder does not exist, or has no database with prompts.
        DataError: If a file is invalid, prompts belong to another database, a domain, topology or
            style does not exist, or two databases have one name.
        ValueError: If `max_missing` is out of range.

    Warns:
        DataWarning: If a database lacks some of its prompts' facts.
    """
    if not 0.0 <= max_missing <= 1.0:
        raise ValueError(f"max_missing is a proportion and must be 0 to 1, got {max_missing}")
    root = Path(databases)
    if not root.exists():
        near = did_you_mean(str(root), [SAMPLE])
        raise SourceNotFoundError(f"database file or folder {root} not found{near}; check the path")
    files_of = _paired(root)
    chosen = files_of
    for role, names in (("domain", domains), ("topology", topologies), ("style", styles)):
        known = {getattr(label, role) for label in files_of}
        chosen = {
            label: files
            for label, files in chosen.items()
            if names is None or getattr(label, role) in names
        }
        if missing := sorted(set(names or ()) - known):
            raise DataError(
                f"{root} has no {role} {', '.join(missing)}; there are {', '.join(sorted(known))}"
            )
    if not chosen:
        raise DataError(
            f"{root} has no database of these domains, topologies and styles together; there are "
            f"{', '.join(sorted({label.database for label in files_of}))}"
        )
    base = root if root.is_dir() and root.suffix != _PARQUET else root.parent
    return _read(chosen, base, max_missing)


def _paired(root: Path) -> dict[ConditionLabel, tuple[Path, Path]]:
    """Find the database file and the prompt file of every condition."""
    is_folder = root.is_dir() and root.suffix != _PARQUET
    files = [root]
    if is_folder:
        files = sorted([*root.rglob("*.json"), *root.rglob(f"*{_PARQUET}")])
    files_of: dict[ConditionLabel, tuple[Path, Path]] = {}
    for file in files:
        for prompts in _prompt_files(file.absolute()):
            label = condition_label(prompts)
            if label in files_of:
                raise DataError(
                    f"{file} and {files_of[label][0]} are both the database {label.database}; name "
                    "one of them, or the folder of one"
                )
            files_of[label] = (file, prompts)
    if not files_of:
        raise SourceNotFoundError(
            f"{root} contains no database with prompts; the prompts of TOPOLOGY.json (or "
            ".parquet) are in prompts/TOPOLOGY/prompts_STYLE.jsonl or "
            "prompts/prompts_STYLE.jsonl next to it"
        )
    return dict(sorted(files_of.items(), key=lambda item: _place(item[0])))


def _prompt_files(database: Path) -> list[Path]:
    """List the prompt files of a database: those in its subfolder, else those of its folder."""
    folder = database.parent / "prompts"
    own = sorted((folder / database.stem).glob(f"{_PREFIX}*.jsonl"))
    return own or sorted(folder.glob(f"{_PREFIX}*.jsonl"))


def _place(label: ConditionLabel) -> tuple[str, int, str, int, str]:
    """Return the sort key: domains by name, topologies and styles in the order of the audit."""
    topology, style = label.topology, label.style
    # Names that are not listed come last.
    places = [*TOPOLOGIES, topology].index(topology), [*STYLES, style].index(style)
    return label.domain, places[0], topology, places[1], style


def _read(
    files: dict[ConditionLabel, tuple[Path, Path]], base: Path, max_missing: float
) -> list[AuditCondition]:
    """Read conditions, each database once."""
    databases: dict[Path, Triplets] = {}
    conditions = []
    for label, (file, prompt_file) in files.items():
        if file not in databases:
            databases[file] = read_database(file)
        prompts = tuple(read_audit_prompts(prompt_file, database=databases[file]))
        try:
            database_coverage(databases[file], prompts, max_missing=max_missing)
        except DataError as error:
            raise DataError(f"{prompt_file}: {error}") from error
        conditions.append(
            AuditCondition(
                label=label,
                database=databases[file],
                prompts=prompts,
                database_file=_from(file, base),
                prompt_file=_from(prompt_file, base),
            )
        )
    return conditions


def _from(file: Path, base: Path) -> str:
    """Return a path relative to the folder that was searched."""
    return Path(os.path.relpath(file, base)).as_posix()
