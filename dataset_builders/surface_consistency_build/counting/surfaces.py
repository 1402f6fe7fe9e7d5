"""Table of the names to count, with their entities and roles."""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.reading import first_names, shown
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.studies.redirectqa.instances import entity_id
from surface_consistency.text import counted_name
from surface_consistency_build.counting.texts import (
    PackedTexts,
    arrays_digest,
    map_arrays,
    offsets_of,
    write_arrays,
)

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.schemas import QuestionRealization

SurfaceRole = Literal["canonical", "redirect", "alias", "answer", "blocker"]
"""Role of a name for its entity; a "blocker" is counted only to exclude shorter names inside it."""

SURFACE_ROLES: Final[tuple[str, ...]] = get_args(SurfaceRole)
"""The roles."""

_COLUMNS: Final = ("entity_id", "surface", "role")
_CHUNK: Final = 100_000
_FILE: Final = "names.arrow"


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Per row: number of the entity, of the name, and of the role."""

    entity: npt.NDArray[np.int32]
    key: npt.NDArray[np.int32]
    role: npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class SurfaceTable:
    """Names of entities; a name of several entities is counted once and shared.

    Names are stripped, runs of white space become one space, and the form is NFC. Create a table
    with `from_records`, `from_frame`, `from_questions` or `read`.

    Examples:
        >>> table = SurfaceTable.from_records(
        ...     [("Q90", " Paris", "canonical"), ("Q90", "City of  Light", "redirect"),
        ...      ("Q830149", "Paris", "canonical")])
        >>> len(table), list(table.keys), table.n_entities
        (3, ['Paris', 'City of Light'], 2)
    """

    keys: PackedTexts
    """Distinct names, in order of appearance."""

    entities: PackedTexts
    """Distinct entity ids, in order of appearance."""

    rows: _Rows
    """Distinct (entity, name, role), in order of appearance."""

    n_repeated: int = 0
    """Number of repeated rows, which are kept once."""

    folder: Path | None = None
    """Folder in which it is saved, with the files of `SurfaceCounter.save`."""

    @classmethod
    def from_records(cls, rows: Iterable[Sequence[str] | Mapping[str, Any]]) -> Self:
        """Make a table from rows.

        Args:
            rows: (entity_id, surface, role), or mappings with these keys; without a role the name
                is an "alias".

        Returns:
            The table.

        Raises:
            ColumnNotFoundError: If a mapping lacks entity_id or surface.
            DataError: If `rows` is empty; if a name is empty, blank or contains a control character
                or a lone surrogate; if an entity id is empty or contains a lone surrogate; or if a
                role is unknown. The message contains the row.
        """
        return _table(cls, _chunked(_checked(n, *_cells(n, row)) for n, row in enumerate(rows, 1)))

    @classmethod
    def from_frame(cls, frame: "pd.DataFrame | pa.Table") -> Self:
        """Make a table from a frame, without a Python string for each name in memory.

        Args:
            frame: Columns entity_id and surface, and role if there is one. A `pyarrow.Table` of ten
                million names needs little more memory than their bytes.

        Returns:
            The table.

        Raises:
            ColumnNotFoundError: If a column is missing.
            DataError: As `from_records`.
        """
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)
        if missing := [name for name in _COLUMNS[:2] if name not in table.column_names]:
            raise ColumnNotFoundError(
                f"the table of names lacks the column {' and '.join(missing)}; it has "
                f"{', '.join(table.column_names)}"
            )
        columns = [name for name in _COLUMNS if name in table.column_names]
        return _table(cls, _checked_batches(table.select(columns).to_batches(max_chunksize=_CHUNK)))

    @classmethod
    def from_questions(cls, questions: "Iterable[QuestionRealization]") -> Self:
        """Make a table of all names in questions: used names, other names, and accepted answers.

        Args:
            questions: Questions; all wordings of a fact have the same names.

        Returns:
            The table: names used in the questions as "canonical" and "redirect", other names of the
            subject as "alias", names of the object and the accepted answers as "answer". The id of
            an entity is its Wikidata item, or else its name.

        Raises:
            DataError: If `questions` is empty, or a name is empty.
        """

        def rows() -> Iterator[tuple[str, str, int]]:
            for number, question in enumerate(questions, start=1):
                subject, target = question.triple.subject, question.triple.object
                role = "canonical" if question.surface.is_canonical else "redirect"
                yield _checked(number, entity_id(subject), question.surface.text, role)
                for name in (subject.name, *subject.aliases):
                    yield _checked(number, entity_id(subject), name, "alias")
                for name in (target.name, *target.aliases, *question.triple.answers):
                    yield _checked(number, entity_id(target), name, "answer")

        return _table(cls, _chunked(rows()))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table.

        Args:
            path: A Parquet file with the columns entity_id, surface and role, as `write` writes.

        Returns:
            The table.

        Raises:
            SourceNotFoundError: If the file does not exist.
            DataError: If the file is not such a table.
        """
        if not Path(path).is_file():
            raise SourceNotFoundError(f"table of names {path} not found; check the path")
        try:
            file = open_parquet(Path(path))
            given = [name for name in _COLUMNS if name in file.schema_arrow.names]
            if not {*_COLUMNS[:2]} <= {*given}:
                return cls.from_frame(file.read())
            return _table(cls, _checked_batches(file.iter_batches(_CHUNK, columns=given)))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path}: cannot be read as Parquet ({error})") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet: entity_id, surface, role.

        Args:
            path: The file; its folder must exist.
        """
        from surface_consistency.runs.files import write_parquet

        write_parquet(path, self.to_arrow())

    def save(self, folder: Path) -> None:
        """Write the table to a folder, for `open`.

        Args:
            folder: The folder; it must exist.
        """
        keys, entities, rows = self.keys, self.entities, self.rows
        texts = (keys.buffer, keys.offsets, entities.buffer, entities.offsets)
        write_arrays(folder / _FILE, *texts, rows.entity, rows.key, rows.role)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Map the files of `save` into memory, which processes of a machine share.

        Args:
            folder: The folder.

        Returns:
            The table.

        Raises:
            DataError: If the table is missing or damaged; the message contains the file.
        """
        parts = map_arrays(folder / _FILE)
        keys, entities = PackedTexts(parts[0], parts[1]), PackedTexts(parts[2], parts[3])
        return cls(keys, entities, _Rows(*parts[4:]), folder=folder)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: entity_id, surface, role."""
        roles = pa.DictionaryArray.from_arrays(self.rows.role, list(SURFACE_ROLES)).cast("string")
        return pa.table(
            {
                "entity_id": self.entities.to_arrow().take(pa.array(self.rows.entity)),
                "surface": self.keys.to_arrow().take(pa.array(self.rows.key)),
                "role": roles,
            }
        )

    def __len__(self) -> int:
        """Count the rows."""
        return self.rows.key.size

    @property
    def n_keys(self) -> int:
        """Number of distinct names."""
        return len(self.keys)

    @property
    def n_entities(self) -> int:
        """Number of distinct entities."""
        return len(self.entities)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rows; tables with equal digests are equal."""
        rows = self.rows
        return arrays_digest(self.keys, self.entities, rows.entity, rows.key, rows.role)

    @cached_property
    def owners(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Entities of each name: offsets of shape `(n_keys + 1,)`, and numbers of the entities."""
        if len(self) == self.n_keys:
            # Names are numbered in order of appearance.
            return np.arange(self.n_keys + 1), self.rows.entity
        pairs = np.unique(self.rows.key.astype(np.int64) * self.n_entities + self.rows.entity)
        offsets = offsets_of(np.bincount(pairs // self.n_entities, minlength=self.n_keys))
        return offsets, (pairs % self.n_entities).astype(np.int32)

    @cached_property
    def named(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Name, entity and first row of each distinct (name, entity) that is not only a blocker."""
        rows = np.flatnonzero(self.rows.role != SURFACE_ROLES.index("blocker"))
        code = self.rows.key[rows].astype(np.int64) * self.n_entities + self.rows.entity[rows]
        pairs, first = np.unique(code, return_index=True)
        return pairs // self.n_entities, pairs % self.n_entities, rows[first]

    def diagnose(self) -> "pd.DataFrame":
        """Flag names whose counts may be misleading.

        Returns:
            One row per name with surface, n_entities and flags: "shared" (several entities have
            it), "single_token" (one word), "short" (up to two characters), "no_letter",
            "lower_case" (no capital in a script that has them: perhaps a common word),
            "punctuation_end", and "inside_longer" (a whole-word part of another name of the table).
        """
        import pandas as pd

        from surface_consistency_build.counting.finder import NameFinder

        offsets, _ = self.owners
        n_entities = np.diff(offsets)
        hits = NameFinder(self.keys, boundary="longest").find(self.keys)
        inside = np.zeros(self.n_keys, dtype=np.bool_)
        inside[hits.keys[hits.texts != hits.keys]] = True
        flags = [
            _flags(name, int(n), bool(is_inside))
            for name, n, is_inside in zip(self.keys, n_entities, inside, strict=True)
        ]
        return pd.DataFrame({"surface": list(self.keys), "n_entities": n_entities, "flags": flags})


_Table = TypeVar("_Table", bound=SurfaceTable)
_Row = tuple[str, str, int]


def _numbered(chunks: list[pa.Array]) -> tuple[PackedTexts, npt.NDArray[np.int32]]:
    """Return the distinct strings of chunks, in order of appearance, and each string's number."""
    coded = pa.chunked_array(chunks, type=pa.large_string()).dictionary_encode()
    chunks.clear()
    # The chunks share one dictionary.
    numbers = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks])
    distinct = coded.chunk(coded.num_chunks - 1).dictionary
    return PackedTexts.from_arrow(distinct), numbers.astype(np.int32, copy=False)


def _cells(number: int, row: Sequence[str] | Mapping[str, Any]) -> Sequence[object]:
    """Return entity, name and, if given, role of a row."""
    if not isinstance(row, Mapping):
        return row
    if missing := [name for name in _COLUMNS[:2] if name not in row]:
        raise ColumnNotFoundError(
            f"row {number} lacks {' and '.join(missing)}; it has {first_names(row) or 'nothing'}"
        )
    return row["entity_id"], row["surface"], row.get("role", "alias")


def _chunked(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    """Yield rows in lists of limited length."""
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def _checked_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[list[_Row]]:
    """Check columns, one batch at a time."""
    done = 0
    for batch in batches:
        # By name, because Parquet returns columns in the order of the file.
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        given = columns.get("role", ["alias"] * batch.num_rows)
        rows = zip(columns["entity_id"], columns["surface"], given, strict=True)
        yield [_checked(done + place, *row) for place, row in enumerate(rows, start=1)]
        done += batch.num_rows


def _table(kind: type[_Table], chunks: Iterable[list[_Row]]) -> _Table:
    """Number the strings of checked rows, and drop repeated rows."""
    entity_chunks, name_chunks, roles = [], [], []
    for rows in chunks:
        entity_chunks.append(pa.array([row[0] for row in rows], pa.large_string()))
        name_chunks.append(pa.array([row[1] for row in rows], pa.large_string()))
        roles.append(np.array([row[2] for row in rows], dtype=np.uint8))
    if not sum(map(len, roles)):
        raise DataError("no names to count; give at least one row")
    entities, entity = _numbered(entity_chunks)
    names, key = _numbered(name_chunks)
    role = np.concatenate(roles)
    pa.default_memory_pool().release_unused()
    if len(names) == role.size:
        return kind(names, entities, _Rows(entity, key, role))
    code = (entity.astype(np.int64) * len(names) + key) * len(SURFACE_ROLES) + role
    _, first = np.unique(code, return_index=True)
    kept = slice(None) if first.size == role.size else np.sort(first)
    distinct = _Rows(entity[kept], key[kept], role[kept])
    return kind(names, entities, distinct, role.size - first.size)


def _checked(number: int, entity: object, surface: object, role: object = "alias") -> _Row:
    """Check a row and convert its name to the form for counting."""
    if not (isinstance(entity, str) and entity.strip()):
        raise DataError(f"row {number}: entity_id must be a text, got {shown(entity)}")
    reject_lone_surrogates(f"row {number}", entity)
    if role not in SURFACE_ROLES:
        raise DataError(
            f"row {number}: role must be one of {', '.join(SURFACE_ROLES)}, got {shown(role)}"
        )
    if not isinstance(surface, str):
        raise DataError(f"row {number}: surface must be a text, got {shown(surface)}")
    name = counted_name(surface)
    if not name:
        raise DataError(
            f"row {number}: the surface of {shown(entity)} is empty ({shown(surface)}); omit the "
            "row"
        )
    if not name.isprintable() and any(
        unicodedata.category(character) in {"Cc", "Cs"} for character in name
    ):
        raise DataError(
            f"row {number}: the surface {shown(surface)} contains a control character or a lone "
            "surrogate; correct or omit the row"
        )
    return entity, name, SURFACE_ROLES.index(str(role))


def reject_lone_surrogates(place: object, *texts: str) -> None:
    """Reject texts that cannot be stored in a file.

    Args:
        place: Place of the texts, for the message.
        texts: The texts.

    Raises:
        DataError: If a text contains a lone surrogate; the message contains the place.
    """
    for text in texts:
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise DataError(f"{place}: {shown(text)} contains a lone surrogate; correct or omit it")


def _flags(name: str, n_entities: int, is_inside: bool) -> tuple[str, ...]:
    """Return the flags of a name."""
    found = {
        "shared": n_entities > 1,
        "single_token": " " not in name,
        "short": len(name) <= 2,
        "no_letter": not any(character.isalpha() for character in name),
        "lower_case": name == name.lower() and name != name.upper(),
        "punctuation_end": unicodedata.category(name[-1])[0] in "PS",
        "inside_longer": is_inside,
    }
    return tuple(flag for flag, is_so in found.items() if is_so)
