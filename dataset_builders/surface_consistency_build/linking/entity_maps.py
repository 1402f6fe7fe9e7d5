"""Read published maps from entities to the documents of a corpus that were linked to them.

The maps of Kandpal et al. 2023 (`nkandpa2/pretraining_entities` on the hub: the Pile, C4, ROOTS,
OpenWebText, Wikipedia) are npz files with an array of document numbers for each DBpedia URI. They
contain the documents in which an entity was linked, not the number of mentions or their names.
"""

import io
import math
import os
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib import format as npy

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import UnpackedSize, shown, unpacked
from surface_consistency_build.linking.dbpedia import resource_title

FAILURE_KEYS: Final = ("__SPOTLIGHT_EXCEPTION__", "__CONNECTION_ERROR__", "__HTTP_ERROR__")
"""Keys that are not entities, but list documents without a reply of the linker. The first also
lists documents without mentions, for which pyspotlight raises an error."""

_MAX_CACHED: Final = 1 << 28
_LARGEST: Final = 1 << 30
_ALWAYS_ALLOWED: Final = 1 << 26
_MAX_RATIO: Final = 50
"""Increasing numbers of documents compress to a third, zeros to a thousandth."""
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
"""Errors of `zipfile` and numpy on files that are damaged, encrypted or not arrays."""


class EntityMap:
    """An entity map that is read one entity at a time; use it as a context manager.

    Opening it reads the list of names once, and a lookup reads one array. The most recently read
    arrays are kept in memory, up to 256 MiB; the list needs about 1 kB per entity.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "map.npz"
        >>> np.savez(path, **{
        ...     "http://dbpedia.org/resource/Paris": np.array([7, 2, 5], dtype=np.int32),
        ...     "http://dbpedia.org/resource/%C3%89dith_Piaf": np.array([5, 9], dtype=np.int32),
        ...     "__HTTP_ERROR__": np.array([1], dtype=np.int32)})
        >>> with EntityMap.open(path) as linked:
        ...     linked.count("Paris"), linked.pair_count("Paris", "Édith Piaf"), linked.failures
        (3, 1, {'__HTTP_ERROR__': 1})
    """

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        """Index an open archive; see `open`."""
        self._archive, self._path = archive, path
        self._members: dict[str, list[zipfile.ZipInfo]] = {}
        for member in archive.infolist():
            self._members.setdefault(_key(member.filename), []).append(member)
        self._cached: OrderedDict[str, npt.NDArray[np.int64]] = OrderedDict()
        self._n_cached = 0
        failures = {key: self._members.pop(key, []) for key in FAILURE_KEYS}
        self.failures: Mapping[str, int] = {
            key: self._read(members).size for key, members in failures.items() if members
        }
        """Number of documents per failure key, which the map does not cover."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a map.

        Args:
            path: The npz file.

        Returns:
            The map.

        Raises:
            SourceNotFoundError: If the file does not exist.
            DataError: If it is not an npz file, or contains no entities.
        """
        place = Path(path)
        if not place.is_file():
            raise SourceNotFoundError(f"entity map {place} not found; check the path")
        try:
            archive = zipfile.ZipFile(place)
        except _DAMAGED as error:
            raise DataError(
                f"{place} is not an npz file of arrays by entity ({error}); download it again"
            ) from error
        try:
            made = cls(archive, place)
            if not len(made):
                raise DataError(
                    f"{place} contains no entities, only "
                    f"{', '.join(made.failures) or 'nothing'}: the linker failed for all "
                    "documents; link them again"
                )
        except BaseException:
            archive.close()
            raise
        return made

    def __enter__(self) -> Self:
        """Return the map."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._archive.close()

    def __len__(self) -> int:
        """Return the number of entities; keys that are spellings of one title count once."""
        return len(self._members)

    def __contains__(self, entity: str) -> bool:
        """Check whether an entity was linked in any document."""
        return resource_title(entity) in self._members

    def documents(self, entity: str) -> npt.NDArray[np.int64]:
        """List the documents that were linked to an entity.

        Args:
            entity: Title of its article, with spaces or underscores, or DBpedia URI.

        Returns:
            Their distinct numbers, in increasing order; empty for an unknown entity.

        Raises:
            DataError: If the array is damaged, or does not contain document numbers.
        """
        title = resource_title(entity)
        if title in self._cached:
            self._cached.move_to_end(title)
            return self._cached[title]
        found = self._read(self._members.get(title, ()))
        self._cached[title] = found
        self._n_cached += found.nbytes
        while self._n_cached > _MAX_CACHED and len(self._cached) > 1:
            self._n_cached -= self._cached.popitem(last=False)[1].nbytes
        return found

    def count(self, entity: str) -> int:
        """Count the documents that were linked to an entity.

        Args:
            entity: As for `documents`.

        Returns:
            Number of documents, not of mentions; 0 for an unknown entity.
        """
        return self.documents(entity).size

    def pair_count(self, first: str, second: str) -> int:
        """Count the documents that were linked to both of two entities.

        Args:
            first: As for `documents`.
            second: As for `documents`.

        Returns:
            Number of documents.
        """
        short, long = sorted((self.documents(first), self.documents(second)), key=len)
        if not long.size:
            return 0
        # Looking up the shorter array in the longer one is faster than merging the two.
        place = np.minimum(np.searchsorted(long, short), long.size - 1)
        return int(np.count_nonzero(long[place] == short))

    def _read(self, members: Iterable[zipfile.ZipInfo]) -> npt.NDArray[np.int64]:
        """Read the arrays of an entity, whose numbers are not sorted."""
        parts = [np.empty(0, dtype=np.int64)]
        for member in members:
            try:
                documents = np.unique(_array(self._archive, member))
            except _DAMAGED as error:
                raise DataError(
                    f"{self._path}: the array {shown(member.filename)} is damaged ({error}); "
                    "download the map again"
                ) from error
            if documents.dtype.kind not in "iu" or (documents.size and documents[0] < 0):
                raise DataError(
                    f"{self._path}: {shown(member.filename)} must contain numbers of documents, "
                    f"integers from 0; it contains {documents.dtype} from {documents[:1].tolist()}"
                )
            parts.append(documents.astype(np.int64))
        return np.unique(np.concatenate(parts))


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Read one array; raise one of `_DAMAGED` if it is not a one-dimensional array of numbers."""
    most = min(_LARGEST, max(_ALWAYS_ALLOWED, _MAX_RATIO * member.compress_size))
    if member.file_size > most:
        raise ValueError(f"its plain size is {member.file_size:,} bytes; the maximum is {most:,}")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("its compression is not that of numpy")
    with unpacked(archive.open(member), UnpackedSize(Path(str(archive.filename))), b"") as file:
        content = io.BytesIO(file.read())
    version = npy.read_magic(content)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, kind = read(content)
    if len(shape) != 1 or kind.hasobject:
        raise ValueError(f"it must be a 1-D array of numbers; it is {kind} of shape {shape}")
    data = content.read()
    if len(data) != math.prod(shape) * kind.itemsize:
        raise ValueError(
            f"its header declares {shape[0]:,} numbers, but {len(data):,} bytes follow"
        )
    return np.frombuffer(data, dtype=kind)


def _key(name: str) -> str:
    """Return the key of a member of the archive: its title, or a failure key."""
    key = name.removesuffix(".npy")
    return key if key in FAILURE_KEYS else resource_title(key)


def map_entity_table(linked: EntityMap, titles: Mapping[str, str]) -> pa.Table:
    """Count the documents of entities.

    Args:
        linked: The map.
        titles: Title or DBpedia URI of each entity, by its id. A map has the titles of its DBpedia
            release: give the old titles of articles that were moved since then.

    Returns:
        entity_id, title, is_found (whether it is in the map), linked_documents (0 if not).
    """
    return pa.table(
        {
            "entity_id": pa.array(list(titles), pa.string()),
            "title": pa.array(list(titles.values()), pa.string()),
            "is_found": pa.array([title in linked for title in titles.values()], pa.bool_()),
            "linked_documents": pa.array(
                [linked.count(title) for title in titles.values()], pa.int64()
            ),
        }
    )


def map_pair_table(
    linked: EntityMap, titles: Mapping[str, str], pairs: Iterable[tuple[str, str]]
) -> pa.Table:
    """Count the documents of pairs of entities.

    Args:
        linked: The map.
        titles: As for `map_entity_table`.
        pairs: (subject id, object id), each among the titles.

    Returns:
        subject_id, object_id, linked_documents_both, linked_documents_subject,
        linked_documents_object.
    """
    # In the order of subjects, an array is read once for all pairs of a subject.
    ordered = sorted(pairs)
    counts = [
        (linked.pair_count(titles[a], titles[b]), linked.count(titles[a]), linked.count(titles[b]))
        for a, b in ordered
    ]
    columns = {
        "subject_id": pa.array([first for first, _ in ordered], pa.string()),
        "object_id": pa.array([second for _, second in ordered], pa.string()),
    }
    for place, name in enumerate(("both", "subject", "object")):
        values = [row[place] for row in counts]
        columns[f"linked_documents_{name}"] = pa.array(values, pa.int64())
    return pa.table(columns)
