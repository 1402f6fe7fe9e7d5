"""Read the files of the audit of forgetting in their published layout (arXiv 2607.00605).

A database is one JSON object with four lists: `entities`, `relationships` and `return_values` name
the distinct subjects, relations and objects; `triplets` contains lists of three strings
(kilian-group/LMLM). A prompt file contains one target fact in one prompt style per line.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.reading import parse_json, shown
from surface_consistency.schemas import AuditPrompt, Triplet, read_jsonl
from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.memory import MemoryState, RetrievalTrace
from surface_consistency.studies.audit.retrieval.closure import relations_of
from surface_consistency.studies.audit.retrieval.parquet import read_parquet
from surface_consistency.studies.audit.retrieval.triplets import Triplets

LISTS: Final = ("entities", "relationships", "return_values")
"""Lists of the distinct subjects, relations and objects in a database file."""

_KEYS: Final = (*LISTS, "triplets")
_LONGEST: Final = 10_000
ALIASES: Final = ("subject_aliases", "relation_aliases", "object_aliases")
"""Fields of a prompt that list other names."""


def _number(value: object) -> object:
    """Convert a string to its number, or any other string to a number made from its digest."""
    if not isinstance(value, str) or not value.strip():
        return value
    text = value.strip()
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _names(value: object) -> object:
    """Convert a single alias to a tuple, and null to an empty one."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


_Number = Annotated[int, BeforeValidator(_number)]
_Names = Annotated[Items[str], BeforeValidator(_names)]


class AuditPromptRow(Record):
    """A row of a prompt file under any of the names that the audit reads."""

    prompt_id: _Number
    """Number of the row in its file; a string that is not a number is numbered by its digest."""

    fact_id: _Number
    """Number of the fact, in the same format."""

    subject: NonEmpty
    """Subject as the prompt names it."""

    relation: str | None = None
    """Relation as the prompt names it; None to take it from the database."""

    gold_object: NonEmpty
    """The correct object."""

    prompt_text: NonEmpty
    """Text of the prompt."""

    subject_aliases: _Names = ()
    """Other names of the subject."""

    relation_aliases: _Names = ()
    """Other names of the relation."""

    object_aliases: _Names = ()
    """Other names of the object."""

    gold_object_aliases: _Names = ()
    """Further names of the object."""

    answer_aliases: _Names = ()
    """Further names of the object."""

    base_fact: NonEmpty | None = None
    """The fact before renaming; missing in the published files."""


class AuditResult(Record):
    """One answer, as the published audit writes it (`*_results.jsonl`)."""

    fact_id: _Number
    """Number of the fact; a string that is not a number is numbered by its digest."""

    subject: NonEmpty
    """Subject as the prompt names it."""

    subject_aliases: _Names = ()
    """Other names of the subject."""

    relation: str | None = None
    """Relation as the prompt names it."""

    relation_aliases: _Names = ()
    """Other names of the relation."""

    state: MemoryState
    """State of the store."""

    prompt: str
    """Text of the prompt."""

    ground_truth: NonEmpty
    """The correct object."""

    object_aliases: _Names = ()
    """Other names of the object, which count as correct."""

    model_output: str
    """The cleaned answer, which is scored."""

    retrieval_trace: RetrievalTrace | None = None
    """Trace of the first lookup."""

    raw_output: str | None = Field(default=None)
    """Output of the model with its lookups; written by this package, not by the published audit."""

    base_fact: NonEmpty | None = None
    """The fact before renaming; written by this package, not by the published audit."""


def read_database(path: str | os.PathLike[str]) -> Triplets:
    """Read a database file.

    Args:
        path: The JSON file, UTF-8; or Parquet, as of `retrieval.read_parquet`.

    Returns:
        The database; entries keep the file's order.

    Raises:
        SourceNotFoundError: If the file does not exist.
        ColumnNotFoundError: If a Parquet file lacks a column.
        DataError: If the file is not JSON or not UTF-8 or lacks a list; if an entry is not three
            non-empty strings, has a part of more than 10,000 characters or occurs twice; or if the
            lists and the entries name different subjects, relations or objects.
    """
    file = Path(path)
    if file.suffix == ".parquet":
        return read_parquet(file)
    data = _load(file)
    missing = [key for key in _KEYS if not isinstance(data.get(key), list)]
    if missing:
        raise DataError(
            f"{file}: no list {', '.join(map(repr, missing))}; a database contains "
            f"{', '.join(_KEYS)}, this file contains {', '.join(map(repr, data)) or 'nothing'}"
        )
    entries = tuple(_entry(item, f"{file}: triplet {i}") for i, item in enumerate(data["triplets"]))
    if not entries:
        raise DataError(f"{file}: no triplets; a database needs at least one")
    check_entries(entries, str(file))
    for place, key in enumerate(LISTS):
        _check_list(data[key], {entry[place] for entry in entries}, f"{file}: {key}")
    return Triplets.of(entries)


def read_audit_prompts(
    path: str | os.PathLike[str], *, database: Triplets | None = None
) -> list[AuditPrompt]:
    """Read a prompt file.

    Names of the object are read from `object_aliases`, `gold_object_aliases` and `answer_aliases`,
    as a list or one string. Numbers may be strings; a string that is not a number is numbered by
    its digest, so that a fact has one number in all files.

    Args:
        path: The JSON-lines file.
        database: The database of the prompts. A row without `relation` gets the relations of the
            entries with its subject and object: the first as its relation, others as aliases.

    Returns:
        The rows, in order.

    Raises:
        SourceNotFoundError: If the file does not exist.
        RecordError: If a line is not a prompt row, an alias is empty, a prompt number occurs
            twice, or a row does not have a relation and the database does not contain it.
    """
    rows = read_jsonl(path, AuditPromptRow)
    prompts = list(check_prompts((_to_prompt(row, database, str(path)) for row in rows), str(path)))
    if not prompts:
        raise RecordError(f"{path}: no prompts; the file needs at least one line")
    return prompts


def read_audit_results(path: str | os.PathLike[str]) -> list[AuditResult]:
    """Read the answers of an audit, published or written by this package.

    Args:
        path: The JSON-lines file, such as `prompts_cloze_results.jsonl`.

    Returns:
        The rows, in order.

    Raises:
        SourceNotFoundError: If the file does not exist.
        RecordError: If a line is not a result row, or the file is empty.
    """
    results = list(read_jsonl(path, AuditResult))
    if not results:
        raise RecordError(f"{path}: no results; the file needs at least one line")
    return results


def _to_prompt(row: AuditPromptRow, database: Triplets | None, source: str) -> AuditPrompt:
    """Convert a row to its record."""
    others = dict.fromkeys((*row.gold_object_aliases, *row.answer_aliases))
    objects = (*row.object_aliases, *(name for name in others if name not in row.object_aliases))
    subjects, relations = row.subject_aliases, row.relation_aliases
    relation = (row.relation or "").strip() and row.relation
    if not relation:
        names = (row.subject, *row.subject_aliases)
        found = (
            [] if database is None else relations_of(database, names, (row.gold_object, *objects))
        )
        if not found:
            raise RecordError(
                f"{source}: prompt_id {row.prompt_id} has no relation, and "
                + ("no database was given" if database is None else "the database has no entry")
                + f" of {shown(row.subject)} and {shown(row.gold_object)} to take it from; add "
                "the relation"
            )
        relation, relations = found[0], (*relations, *found[1:])
    return AuditPrompt(
        prompt_id=row.prompt_id,
        fact_id=row.fact_id,
        subject=row.subject,
        relation=relation,
        gold_object=row.gold_object,
        prompt_text=row.prompt_text,
        subject_aliases=subjects,
        relation_aliases=relations,
        object_aliases=objects,
        base_fact=row.base_fact,
    )


def _load(file: Path) -> dict[str, Any]:
    """Read a JSON object."""
    if not file.is_file():
        raise SourceNotFoundError(f"database file {file} not found (in {Path.cwd()})")
    # A store of millions of triplets is larger than other documents may be.
    data = parse_json(file.read_bytes(), str(file), remedy="a database is one JSON object")
    if not isinstance(data, dict):
        raise DataError(
            f"{file}: a database is one JSON object with {', '.join(_KEYS)}, this file contains a "
            f"{type(data).__name__}"
        )
    return data


def _entry(item: object, place: str) -> Triplet:
    """Convert a list of three strings to an entry."""
    if not isinstance(item, list) or len(item) != 3 or not all(isinstance(x, str) for x in item):
        raise DataError(
            f"{place} must be three strings (subject, relation, object), got {_shown(item)}"
        )
    return Triplet(*item)


def check_entries(
    entries: tuple[Triplet, ...], place: str, *, longest: int | None = _LONGEST
) -> None:
    """Check entries for empty parts, parts that are too long, invalid characters and repetition.

    Args:
        entries: The entries.
        place: File or source of the entries, for errors.
        longest: Maximum length of a part in characters; None for no limit.

    Raises:
        DataError: If an entry is invalid; the message names it.
    """
    first: dict[Triplet, int] = {}
    for index, entry in enumerate(entries):
        for role, part in zip(Triplet._fields, entry, strict=True):
            if not part.strip():
                raise DataError(f"{place}: triplet {index} {_shown(entry)} has an empty {role}")
            if longest is not None and len(part) > longest:
                raise DataError(
                    f"{place}: the {role} of triplet {index} has {len(part):,} characters, more "
                    f"than the {longest:,} allowed ({_shown(part)}); correct the file, or convert "
                    "it to Parquet, which has no limit, if the text is intended"
                )
            _check_characters(part, f"{place}: the {role} of triplet {index}")
        if entry in first:
            raise DataError(
                f"{place}: triplet {index} repeats triplet {first[entry]}: {_shown(entry)}; drop "
                "one of them"
            )
        first.setdefault(entry, index)


def _check_characters(part: str, place: str) -> None:
    """Reject half a surrogate pair, which JSON can encode and UTF-8 cannot."""
    if not part.isascii() and any("\ud800" <= character <= "\udfff" for character in part):
        raise DataError(f"{place} contains a lone surrogate ({_shown(part)}); correct the file")


def _check_list(items: list[Any], names: set[str], place: str) -> None:
    """Check that a list contains each name of the entries once, and no others."""
    others = [item for item in items if not isinstance(item, str)]
    if others:
        raise DataError(f"{place} must contain strings, got {_shown(others[0])}")
    repeated = len(items) - len(set(items))
    lacking, extra = sorted(names - set(items)), sorted(set(items) - names)
    if lacking or extra or repeated:
        shown = _shown((lacking or extra or items)[0])
        raise DataError(
            f"{place} does not match the triplets: {len(lacking)} missing, {len(extra)} that no "
            f"triplet has, {repeated} repeated (such as {shown}); list each name of the triplets "
            "once"
        )


def _shown(value: object, limit: int = 80) -> str:
    """Return the repr of a value, truncated."""
    text = repr(tuple(value) if isinstance(value, Triplet) else value)
    return text if len(text) <= limit else text[:limit] + "..."


def check_prompts(prompts: Iterable[AuditPrompt], source: str) -> Iterator[AuditPrompt]:
    """Check prompts for empty aliases and for numbers that occur twice.

    Args:
        prompts: The rows.
        source: File or source of the rows, for errors.

    Yields:
        The rows.

    Raises:
        RecordError: If a row is invalid; the message names it.
    """
    seen: set[int] = set()
    for prompt in prompts:
        if prompt.prompt_id in seen:
            raise RecordError(
                f"{source}: prompt_id {prompt.prompt_id} occurs twice; give each row a "
                "different number"
            )
        seen.add(prompt.prompt_id)
        for field in ALIASES:
            if not all(alias.strip() for alias in getattr(prompt, field)):
                raise RecordError(
                    f"{source}: prompt_id {prompt.prompt_id} has an empty name in {field}; drop it"
                )
        yield prompt
