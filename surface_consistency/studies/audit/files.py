"""Files of the audit of forgetting, in the layout in which it publishes them (arXiv 2607.00605).

A database is one JSON object with four lists: `entities`, `relationships` and `return_values` name
the distinct subjects, relations and objects; `triplets` holds lists of three strings
(kilian-group/LMLM). A prompt file holds one target fact in one prompt style a line.
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
    """Take a number that is written as a string, or number any other string by its digest."""
    if not isinstance(value, str) or not value.strip():
        return value
    text = value.strip()
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _names(value: object) -> object:
    """Take one alias that stands in no list, and none that is null."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


_Number = Annotated[int, BeforeValidator(_number)]
_Names = Annotated[Items[str], BeforeValidator(_names)]


class AuditPromptRow(Record):
    """A row of a prompt file under any of the names that the audit reads."""

    prompt_id: _Number
    """Number of the row in its file; a string that is no number is numbered by its digest."""

    fact_id: _Number
    """Number of the fact, as of the row."""

    subject: NonEmpty
    """Subject as the prompt names it."""

    relation: str | None = None
    """Relation as the prompt names it; None where the database must tell."""

    gold_object: NonEmpty
    """The object that is right."""

    prompt_text: NonEmpty
    """What the model reads."""

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
    """The fact before renaming; the published files do not name it."""


class AuditResult(Record):
    """One answer, as the published audit writes it (`*_results.jsonl`)."""

    fact_id: _Number
    """Number of the fact; a string that is no number is numbered by its digest."""

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
    """What the model read."""

    ground_truth: NonEmpty
    """The object that is right."""

    object_aliases: _Names = ()
    """Other names of the object, which count as right."""

    model_output: str
    """The cleaned answer: what is judged."""

    retrieval_trace: RetrievalTrace | None = None
    """What the first lookup saw."""

    raw_output: str | None = Field(default=None)
    """What the model wrote, lookups included; the audit does not publish it, this package does."""

    base_fact: NonEmpty | None = None
    """The fact before renaming, which this package publishes and the audit does not."""


def read_database(path: str | os.PathLike[str]) -> Triplets:
    """Read a database file.

    Args:
        path: The JSON file, UTF-8; or Parquet, as of `retrieval.read_parquet`.

    Returns:
        The database; entries keep the file's order.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a Parquet file lacks a column.
        DataError: If the file is not JSON or not UTF-8, lacks a list, holds an entry that is not
            three filled strings, has a part of more than 10,000 characters or stands twice, or
            lists that name other subjects, relations or objects than the entries do.
    """
    file = Path(path)
    if file.suffix == ".parquet":
        return read_parquet(file)
    data = _load(file)
    missing = [key for key in _KEYS if not isinstance(data.get(key), list)]
    if missing:
        raise DataError(
            f"{file}: no list {', '.join(map(repr, missing))}; a database holds "
            f"{', '.join(_KEYS)}, this file holds {', '.join(map(repr, data)) or 'nothing'}"
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

    Names of the object may stand under `object_aliases`, `gold_object_aliases` and
    `answer_aliases`, as a list or one string. Numbers may be strings; a string that is no number is
    numbered by its digest, so that a fact has one number in all files.

    Args:
        path: The JSON-lines file.
        database: The database of the prompts. A row without `relation` gets those under which the
            database holds its subject and object: the first as its relation, others as aliases.

    Returns:
        The rows, in order.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is not a prompt row, an alias is empty, a prompt number stands
            twice, or a row has no relation and no database tells it.
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
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is no such row, or there is none.
    """
    results = list(read_jsonl(path, AuditResult))
    if not results:
        raise RecordError(f"{path}: no results; the file needs at least one line")
    return results


def _to_prompt(row: AuditPromptRow, database: Triplets | None, source: str) -> AuditPrompt:
    """Bring a row under the names of its record."""
    others = dict.fromkeys((*row.gold_object_aliases, *row.answer_aliases))
    objects = (*row.object_aliases, *(name for name in others if name not in row.object_aliases))
    subjects, relations = row.subject_aliases, row.relation_aliases
    relation = (row.relation or "").strip() and row.relation
    if not relation:
        spoken = (row.subject, *row.subject_aliases)
        relations_held = (
            [] if database is None else relations_of(database, spoken, (row.gold_object, *objects))
        )
        if not relations_held:
            raise RecordError(
                f"{source}: prompt_id {row.prompt_id} has no relation, and "
                + ("no database was given" if database is None else "the database has no entry")
                + f" of {shown(row.subject)} and {shown(row.gold_object)} to take it from; name "
                "the relation"
            )
        relation, relations = relations_held[0], (*relations, *relations_held[1:])
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
        raise SourceNotFoundError(f"no database file {file}; check the path (in {Path.cwd()})")
    # A store of millions of triplets is larger than other documents may be.
    data = parse_json(file.read_bytes(), str(file), remedy="a database is one JSON object")
    if not isinstance(data, dict):
        raise DataError(
            f"{file}: a database is one JSON object with {', '.join(_KEYS)}, this file holds a "
            f"{type(data).__name__}"
        )
    return data


def _entry(item: object, place: str) -> Triplet:
    """Take a list of three strings as an entry."""
    if not isinstance(item, list) or len(item) != 3 or not all(isinstance(x, str) for x in item):
        raise DataError(
            f"{place} must be three strings (subject, relation, object), got {_shown(item)}"
        )
    return Triplet(*item)


def check_entries(
    entries: tuple[Triplet, ...], place: str, *, longest: int | None = _LONGEST
) -> None:
    """Refuse empty parts, parts that are too long, characters that no file can hold, repetition.

    Args:
        entries: The entries.
        place: What contains them, for errors.
        longest: Maximum length of a part in characters; None for no limit.

    Raises:
        DataError: If an entry is broken; names it.
    """
    first: dict[Triplet, int] = {}
    for index, entry in enumerate(entries):
        for role, part in zip(Triplet._fields, entry, strict=True):
            if not part.strip():
                raise DataError(f"{place}: triplet {index} {_shown(entry)} has an empty {role}")
            if longest is not None and len(part) > longest:
                raise DataError(
                    f"{place}: the {role} of triplet {index} has {len(part):,} characters, more "
                    f"than the {longest:,} allowed ({_shown(part)}); mend the file, or convert a "
                    "correct one to Parquet, which has no limit"
                )
            _check_characters(part, f"{place}: the {role} of triplet {index}")
        if entry in first:
            raise DataError(
                f"{place}: triplet {index} repeats triplet {first[entry]}: {_shown(entry)}; drop "
                "one of them"
            )
        first.setdefault(entry, index)


def _check_characters(part: str, place: str) -> None:
    """Refuse half a surrogate pair, which JSON can spell and UTF-8 cannot."""
    if not part.isascii() and any("\ud800" <= character <= "\udfff" for character in part):
        raise DataError(f"{place} holds half a character ({_shown(part)}); mend the file")


def _check_list(items: list[Any], names: set[str], place: str) -> None:
    """Refuse a list that does not name what the entries name."""
    wrong = [item for item in items if not isinstance(item, str)]
    if wrong:
        raise DataError(f"{place} must hold strings, got {_shown(wrong[0])}")
    repeated = len(items) - len(set(items))
    lacking, extra = sorted(names - set(items)), sorted(set(items) - names)
    if lacking or extra or repeated:
        shown = _shown((lacking or extra or items)[0])
        raise DataError(
            f"{place} does not fit the triplets: {len(lacking)} missing, {len(extra)} that no "
            f"triplet has, {repeated} repeated (such as {shown}); list each name of the triplets "
            "once"
        )


def _shown(value: object, limit: int = 80) -> str:
    """Show a value, cut short."""
    text = repr(tuple(value) if isinstance(value, Triplet) else value)
    return text if len(text) <= limit else text[:limit] + "..."


def check_prompts(prompts: Iterable[AuditPrompt], source: str) -> Iterator[AuditPrompt]:
    """Refuse empty aliases and prompt numbers that occur twice.

    Args:
        prompts: The rows.
        source: What contains them, for errors.

    Yields:
        The rows.

    Raises:
        RecordError: If a row is broken; names it.
    """
    seen: set[int] = set()
    for prompt in prompts:
        if prompt.prompt_id in seen:
            raise RecordError(
                f"{source}: prompt_id {prompt.prompt_id} occurs twice; give each row a "
                "number of its own"
            )
        seen.add(prompt.prompt_id)
        for field in ALIASES:
            if not all(alias.strip() for alias in getattr(prompt, field)):
                raise RecordError(
                    f"{source}: prompt_id {prompt.prompt_id} has an empty name in {field}; drop it"
                )
        yield prompt
