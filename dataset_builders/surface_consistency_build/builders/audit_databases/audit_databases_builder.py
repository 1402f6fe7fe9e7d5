"""Builder of the audit databases: their prompts, or their triplets, as one data set.

It reads a folder that `databases.build_audit_databases` wrote, or the
folder of databases that the audit publishes: `<domain>/<topology>.json` and
`<domain>/prompts/<topology>/prompts_<style>.jsonl`.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import datasets

from surface_consistency import __version__
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.schemas import AuditPrompt, Record
from surface_consistency.studies.audit.files import read_audit_prompts, read_database
from surface_consistency.studies.audit.retrieval.verification import database_coverage
from surface_consistency_build.builders.common import only_split, prepared

_NAME: Final = "audit_databases"
_PREFIX: Final = "prompts_"


class AuditPromptRow(AuditPrompt):
    """A prompt and the database that it belongs to."""

    domain: str
    """Name of the table of facts."""

    topology: str
    """How the facts are stored."""

    style: str
    """Style of the prompt."""


class AuditTripletRow(Record):
    """An entry of a database."""

    domain: str
    """Name of the table of facts."""

    topology: str
    """How the facts are stored."""

    index: int
    """Place of the entry in its database."""

    subject: str
    """What is looked up."""

    relation: str
    """What is asked of it."""

    object: str
    """The value that a lookup returns."""


_ROWS: Final[dict[str, type[Record]]] = {"prompts": AuditPromptRow, "triplets": AuditTripletRow}


@dataclass
class AuditDatabasesConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """Where the databases lie."""

    source: str = ""
    """Folder of the databases."""


class AuditDatabasesBuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """Prompts or triplets, validated one by one; use `build` rather than this class."""

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = AuditDatabasesConfig
    BUILDER_CONFIGS = tuple(AuditDatabasesConfig(name=name) for name in _ROWS)

    def _info(self) -> datasets.DatasetInfo:
        """Describe the columns."""
        return datasets.DatasetInfo(features=make_features(_ROWS[self.config.name]))

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        """Offer one split."""
        return only_split(source=Path(self.config.source))

    def _generate_examples(self, source: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the validated rows under keys that no two share."""
        rows = _prompt_rows if self.config.name == "prompts" else _triplet_rows
        seen: set[str] = set()
        for key, row in rows(source):
            if key in seen:
                raise DataError(f"row {key!r} stands twice in {source}")
            seen.add(key)
            yield key, row.model_dump(mode="json")


def build(
    source: str | os.PathLike[str], cache_dir: str | os.PathLike[str], *, rows: str = "prompts"
) -> datasets.Dataset:
    """Build the data set, or take it from the cache when nothing changed.

    Args:
        source: Folder of databases and prompts.
        cache_dir: Where the built data set is kept.
        rows: "prompts" or "triplets".

    Returns:
        The rows, split "test".

    Raises:
        SourceNotFoundError: If there are no databases in the folder.
        DataError: If a file is broken, or prompts do not belong to their database.
        ValueError: If `rows` is neither.
    """
    if rows not in _ROWS:
        raise ValueError(f"rows must be one of {', '.join(_ROWS)}, got {rows!r}")
    folder = Path(source).resolve()
    builder = AuditDatabasesBuilder(
        cache_dir=os.fspath(cache_dir),
        dataset_name=_NAME,
        config_name=rows,
        hash=_source_hash(folder),
        source=str(folder),
    )
    return prepared(builder)


def _databases(source: Path) -> list[Path]:
    """List the database files."""
    files = sorted(source.glob("*/*.json"))
    if not files:
        raise SourceNotFoundError(
            f"no databases <domain>/<topology>.json in {source}; write some with "
            "build_audit_databases"
        )
    return files


def _prompt_files(database: Path) -> list[Path]:
    """List the prompt files of a database."""
    return sorted((database.parent / "prompts" / database.stem).glob(f"{_PREFIX}*.jsonl"))


def _source_hash(source: Path) -> str:
    """Name what a build depends on: names and bytes of the files, and the code's version."""
    digest = hashlib.sha256(f"{AuditDatabasesBuilder.VERSION} {__version__}\n".encode())
    for database in _databases(source):
        for file in (database, *_prompt_files(database)):
            inner = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(source).as_posix()} {inner}\n".encode())
    return digest.hexdigest()


def _prompt_rows(source: Path) -> Iterator[tuple[str, Record]]:
    """Read the prompts of all databases, each checked against its own."""
    for file in _databases(source):
        database = read_database(file)
        place = {"domain": file.parent.name, "topology": file.stem}
        for prompt_file in _prompt_files(file):
            prompts = read_audit_prompts(prompt_file)
            database_coverage(database, prompts)
            style = prompt_file.stem.removeprefix(_PREFIX)
            for prompt in prompts:
                row = AuditPromptRow.model_validate(prompt.model_dump() | place | {"style": style})
                yield f"{file.parent.name}/{file.stem}/{style}/{prompt.prompt_id}", row


def _triplet_rows(source: Path) -> Iterator[tuple[str, Record]]:
    """Read the entries of all databases."""
    for file in _databases(source):
        place = {"domain": file.parent.name, "topology": file.stem}
        for index, entry in enumerate(read_database(file)):
            row = AuditTripletRow(index=index, **place, **entry._asdict())
            yield f"{file.parent.name}/{file.stem}/{index}", row
