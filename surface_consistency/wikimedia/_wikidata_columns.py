"""Decoded items as columns."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia._wikidata_decoder import EntityDecoder, best_objects
from surface_consistency.wikimedia._wikidata_shapes import Entity

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EntityColumns"]


class EntityColumns:
    """Collects items until they are taken as tables.

    Args:
        decoder: What decoded the items; its first language and its only wiki come first.
        properties: Numbers of its properties.
    """

    def __init__(self, decoder: EntityDecoder, properties: list[int]) -> None:
        self._decoder = decoder
        self._properties = properties
        self._clear()

    def __len__(self) -> int:
        """Count the items."""
        return len(self._ids)

    def add(self, number: int, entity: Entity) -> None:
        """Add one item.

        Args:
            number: The number after Q.
            entity: What the decoder made of it.
        """
        decoder = self._decoder
        label = next((text.value for text in decoder.labels(entity.labels) if text), None)
        link = decoder.sitelinks(entity.sitelinks)[0]
        self._ids.append(number)
        self._labels.append(label)
        self._titles.append(None if link is None else link.title)
        names: dict[str, None] = {}
        for texts in decoder.aliases(entity.aliases):
            if texts:
                names.update((text.value, None) for text in texts)
        if names:
            self._alias_ids.extend([number] * len(names))
            self._aliases.extend(names)
        for key, statements in zip(self._properties, decoder.claims(entity.claims), strict=True):
            if statements:
                objects = best_objects(statements)
                self._subjects.extend([number] * len(objects))
                self._keys.extend([key] * len(objects))
                self._objects.extend(objects)

    def take(self) -> tuple["pa.RecordBatch", "pa.RecordBatch", "pa.RecordBatch"]:
        """Hand out what was collected, and start afresh.

        Returns:
            Entities, aliases and claims.
        """
        import pyarrow as pa

        number, text = pa.int64(), pa.string()
        entities = pa.RecordBatch.from_arrays(
            [
                pa.array(self._ids, number),
                pa.array(self._labels, text),
                pa.array(self._titles, text),
            ],
            names=["id", "label", "title"],
        )
        aliases = pa.RecordBatch.from_arrays(
            [pa.array(self._alias_ids, number), pa.array(self._aliases, text)],
            names=["id", "alias"],
        )
        claims = pa.RecordBatch.from_arrays(
            [
                pa.array(self._subjects, number),
                pa.array(self._keys, number),
                pa.array(self._objects, number),
            ],
            names=["subject", "property", "object"],
        )
        self._clear()
        return entities, aliases, claims

    def _clear(self) -> None:
        """Start with empty columns."""
        self._ids: list[int] = []
        self._labels: list[str | None] = []
        self._titles: list[str | None] = []
        self._alias_ids: list[int] = []
        self._aliases: list[str] = []
        self._subjects: list[int] = []
        self._keys: list[int] = []
        self._objects: list[int] = []
