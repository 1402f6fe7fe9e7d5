"""Published maps from entities to the documents of a corpus that were linked to them.

Those of Kandpal et al. 2023 (`nkandpa2/pretraining_entities` on the hub: the Pile, C4, ROOTS,
OpenWebText, Wikipedia) are npz files with an array of document numbers for each DBpedia URI. They
tell in how many documents an entity was linked, not how often and under which name.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency_build.linking._npz_archive import ArrayArchive, BrokenArchiveError

FAILURE_KEYS: Final = ("__SPOTLIGHT_EXCEPTION__", "__CONNECTION_ERROR__", "__HTTP_ERROR__")
"""Keys that stand for no entity but for documents without a reply of the linker. The first holds
documents in which it found nothing, too: pyspotlight raises for these."""

_RESOURCE: Final = "dbpedia.org/resource/"
_MOST_HELD: Final = 1 << 28


class EntityMap:
    """An entity map that is read an entity at a time; use it as a context manager.

    Opening it goes through the list of names once, a look-up reads the one array. Of the arrays
    that were read last 256 MiB are kept; the list takes 16 bytes an entity.

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

    def __init__(self, archive: ArrayArchive, path: Path) -> None:
        """Read what failed of an open archive; see `open`."""
        self._archive, self._path = archive, path
        self._held: OrderedDict[str, npt.NDArray[np.int64]] = OrderedDict()
        self._n_held = 0
        failures = {key: archive.find(key) for key in FAILURE_KEYS}
        self._n_failures = sum(bool(places) for places in failures.values())
        self.failures: Mapping[str, int] = {
            key: self._read(places).size for key, places in failures.items() if places
        }
        """Documents under each failure key: what the map does not cover."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a map.

        Args:
            path: The npz file.

        Returns:
            The map.

        Raises:
            SourceNotFoundError: If there is no such file.
            DataError: If it is no npz file, or holds no entity.
        """
        place = Path(path)
        if not place.is_file():
            raise SourceNotFoundError(f"there is no entity map {place}")
        try:
            archive = ArrayArchive(place, _key)
        except (BrokenArchiveError, OSError) as error:
            raise DataError(
                f"{place} is no npz file of arrays by entity ({error}); download it again"
            ) from error
        try:
            made = cls(archive, place)
            if not len(made):
                raise DataError(
                    f"{place} holds no entity, only {', '.join(made.failures) or 'nothing'}: the "
                    "linker failed on every document"
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
        """Count the entities; keys that are spellings of one title are one."""
        return len(self._archive) - self._n_failures

    def __contains__(self, entity: str) -> bool:
        """Tell whether an entity was linked in any document."""
        return bool(self._archive.find(resource_title(entity)))

    def documents(self, entity: str) -> npt.NDArray[np.int64]:
        """List the documents that were linked to an entity.

        Args:
            entity: Title of its article, with spaces or underscores, or DBpedia URI.

        Returns:
            Their numbers, rising, each once; none for an entity that is not there.

        Raises:
            DataError: If the array is damaged, or holds no document numbers.
        """
        title = resource_title(entity)
        if title in self._held:
            self._held.move_to_end(title)
            return self._held[title]
        found = self._read(self._archive.find(title))
        self._held[title] = found
        self._n_held += found.nbytes
        while self._n_held > _MOST_HELD and len(self._held) > 1:
            self._n_held -= self._held.popitem(last=False)[1].nbytes
        return found

    def count(self, entity: str) -> int:
        """Count the documents that were linked to an entity.

        Args:
            entity: As for `documents`.

        Returns:
            Documents, not mentions; 0 for an entity that is not there.
        """
        return self.documents(entity).size

    def pair_count(self, first: str, second: str) -> int:
        """Count the documents that were linked to both of two entities.

        Args:
            first: As for `documents`.
            second: Likewise.

        Returns:
            Documents.
        """
        short, long = sorted((self.documents(first), self.documents(second)), key=len)
        if not long.size:
            return 0
        # Looking the shorter up in the longer spares merging the two.
        place = np.minimum(np.searchsorted(long, short), long.size - 1)
        return int(np.count_nonzero(long[place] == short))

    def _read(self, places: Iterable[int]) -> npt.NDArray[np.int64]:
        """Read the arrays of an entity, whose numbers stand in no order."""
        parts = [np.empty(0, dtype=np.int64)]
        for place in places:
            try:
                name, array = self._archive.read(place)
            except (BrokenArchiveError, OSError) as error:
                raise DataError(
                    f"{self._path}: an array is damaged ({error}); download the map again"
                ) from error
            documents = np.unique(array)
            if documents.size and documents[0] < 0:
                raise DataError(
                    f"{self._path}: {name!r} must hold numbers of documents, integers from 0; "
                    f"{documents[0]} is none"
                )
            parts.append(documents.astype(np.int64))
        return np.unique(np.concatenate(parts))


def _key(name: str) -> str:
    """Return what a member of the archive is looked up by: its title, or the failure that it is."""
    return name if name in FAILURE_KEYS else resource_title(name)


def resource_title(key: str) -> str:
    """Return the title that a DBpedia URI or a title of either spelling stands for.

    Args:
        key: The URI or title.

    Returns:
        The title with spaces.
    """
    _, is_uri, rest = key.partition(_RESOURCE)
    # The percent signs of a title are its own.
    return (unquote(rest) if is_uri else key).replace("_", " ").strip()


def map_entity_table(linked: EntityMap, titles: Mapping[str, str]) -> pa.Table:
    """Count the documents of entities.

    Args:
        linked: The map.
        titles: Title or DBpedia URI of each entity, by its id. A map has the titles of its DBpedia
            release: where articles were moved since, give the titles of then.

    Returns:
        entity_id, title, is_found (whether the map has it), linked_documents (0 where not).
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
    # In the order of subjects an array is read once for all their pairs.
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
