"""How right a linker is on texts that people labelled, in the format of ELEVANT."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import existing_file, json_objects
from surface_consistency_build.counting.texts import comparable
from surface_consistency_build.linking.linkers import Linker, Mention

_BATCH = 256
_INSIDE = "'\"_"


@dataclass(frozen=True, slots=True)
class GoldLabel:
    """A mention that people labelled."""

    start: int
    """First character."""

    stop: int
    """Character after the last."""

    entity_id: str
    """The entity; one that begins with "Unknown" is in no knowledge base."""

    is_optional: bool = False
    """Whether it need not be found."""

    label_id: str = ""
    """Its id in the document."""

    parent: str | None = None
    """Id of the label around it; either that one is found, or those within."""

    @property
    def is_known(self) -> bool:
        """Whether a knowledge base has the entity."""
        return not self.entity_id.startswith("Unknown")


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """A text with its labels."""

    text: str
    """The text."""

    labels: tuple[GoldLabel, ...]
    """Its labels."""

    span: tuple[int, int]
    """The part of the text that is labelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerScore:
    """How right a linker is."""

    true_positives: int
    """Labels found with their entity."""

    false_positives: int
    """Mentions where no label is, or of another entity."""

    false_negatives: int
    """Labels not found, or with another entity."""

    n_documents: int
    """Documents."""

    n_failed: int
    """Documents that the linker failed on; their labels count as not found."""

    @property
    def precision(self) -> float:
        """Share of mentions that are right, in [0, 1]; NaN without mentions."""
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Share of labels that are found, in [0, 1]; NaN without labels."""
        return _ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]; NaN where neither has a case."""
        n = 2 * self.true_positives + self.false_positives + self.false_negatives
        return _ratio(2 * self.true_positives, n)


def _ratio(part: int, whole: int) -> float:
    """Divide; NaN by nothing."""
    return part / whole if whole else math.nan


def read_gold(path: Path) -> Iterator[GoldDocument]:
    """Read labelled texts in ELEVANT's format, or in its simple one.

    Args:
        path: JSONL, an article a line: `text`, `labels` (`span` and `entity_id`, or `start_char`,
            `end_char` and `entity_reference`; `optional`, `id` and `parent` where there are), and
            `evaluation_span` where only a part is labelled.

    Yields:
        The documents.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is broken, or a span lies beyond its text; names the line.
        DataError: If there is no document.
    """
    n = 0
    for line, row in json_objects(existing_file(path, "a file of labelled texts", "*.jsonl")):
        place = f"{path}:{line}"
        text, labels = row.get("text"), row.get("labels")
        if not isinstance(text, str) or not isinstance(labels, list):
            raise RecordError(
                f"{place}: an article needs `text` and the list `labels`; it has {', '.join(row)}"
            )
        n += 1
        span = row.get("evaluation_span") or [0, len(text)]
        made = tuple(_label(item, text, place) for item in labels)
        yield GoldDocument(text, made, _span(span, len(text) + 1, f"{place}: evaluation_span"))
    if not n:
        raise DataError(f"{path} holds no articles; give one a line with `text` and `labels`")


def _label(item: Any, text: str, place: str) -> GoldLabel:  # noqa: ANN401 - any JSON
    """Read one label."""
    if not isinstance(item, Mapping):
        raise RecordError(f"{place}: a label must be an object, got {item!r}")
    span = item.get("span") or [item.get("start_char"), item.get("end_char")]
    start, stop = _span(span, len(text), f"{place}: the span of a label")
    entity = item.get("entity_id", item.get("entity_reference"))
    if not isinstance(entity, str) or not entity:
        raise RecordError(f"{place}: a label needs `entity_id`; it has {', '.join(item)}")
    parent = item.get("parent")
    return GoldLabel(
        start,
        stop,
        entity.rpartition("/")[2] if "://" in entity else entity,
        bool(item.get("optional", False)),
        str(item.get("id", "")),
        None if parent is None else str(parent),
    )


def _span(value: Any, end: int, what: str) -> tuple[int, int]:  # noqa: ANN401 - any JSON
    """Read a span within a text."""
    whole = isinstance(value, Sequence) and len(value) == 2
    if not whole or not all(isinstance(n, int) and not isinstance(n, bool) for n in value):
        raise RecordError(f"{what} must be two numbers of characters, got {value!r}")
    if not 0 <= value[0] < value[1] <= end:
        raise RecordError(f"{what} is {value[0]} to {value[1]}, beyond its text of {end}")
    return value[0], value[1]


def score_linker(linker: Linker, documents: Iterable[GoldDocument]) -> LinkerScore:
    """Count right and wrong links on labelled texts.

    As ELEVANT counts with unknown entities ignored: a mention stands for a label of the same span,
    also where both are extended to whole words; a label with another entity is a miss and a false
    link; an optional label may be missing, but not wrong; of a label and those within it the inner
    count where any of them is found.

    Args:
        linker: The linker, of all entities, which knows them by the ids of the labels
            (`MentionTable.named`).
        documents: The texts.

    Returns:
        The counts, and precision, recall and F1.
    """
    counts = [0, 0, 0]
    n_documents = n_failed = 0
    for batch in _batches(documents):
        for document, mentions in zip(batch, linker.link([d.text for d in batch]), strict=True):
            n_documents += 1
            n_failed += mentions is None
            for place, n in enumerate(_compare(document, mentions or [])):
                counts[place] += n
    return LinkerScore(
        true_positives=counts[0],
        false_positives=counts[1],
        false_negatives=counts[2],
        n_documents=n_documents,
        n_failed=n_failed,
    )


def _batches(documents: Iterable[GoldDocument]) -> Iterator[list[GoldDocument]]:
    """Take documents some hundred at a time."""
    waiting: list[GoldDocument] = []
    for document in documents:
        waiting.append(document)
        if len(waiting) == _BATCH:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _compare(document: GoldDocument, mentions: Sequence[Mention]) -> tuple[int, int, int]:
    """Count right links, wrong links and missed labels of a document."""
    text = document.text
    place = _in_nfc(text)
    whole = comparable(text)
    found = {(mention.start, mention.stop): mention.entity_id for mention in mentions}
    extended = {_to_words(span, whole): entity for span, entity in found.items()} | found

    def linked(label: GoldLabel) -> str | None:
        span = (place(label.start), place(label.stop))
        return extended.get(span, extended.get(_to_words(span, whole)))

    right = wrong = missed = 0
    for label in _counted_labels(document.labels, linked):
        entity = linked(label)
        if entity is None:
            missed += label.is_known and not label.is_optional
        elif not label.is_known:
            wrong += 1
        elif label.is_optional:
            wrong += entity != label.entity_id
        else:
            right += entity == label.entity_id
            wrong += entity != label.entity_id
            missed += entity != label.entity_id
    taken = set()
    for label in document.labels:
        span = (place(label.start), place(label.stop))
        taken |= {span, _to_words(span, whole)}
    low, high = place(document.span[0]), place(min(document.span[1], len(text)))
    wrong += sum(
        span not in taken
        and _to_words(span, whole) not in taken
        and low <= span[0]
        and span[1] <= high
        for span in found
    )
    return right, wrong, missed


def _counted_labels(
    labels: Sequence[GoldLabel], linked: Callable[[GoldLabel], str | None]
) -> Iterator[GoldLabel]:
    """Choose between labels and those within them."""
    inner: dict[str, list[GoldLabel]] = {}
    ids = {label.label_id for label in labels}
    for label in labels:
        if label.parent is not None and label.parent in ids:
            inner.setdefault(label.parent, []).append(label)

    def is_found(label: GoldLabel) -> bool:
        return linked(label) == label.entity_id

    def chosen(label: GoldLabel, depth: int) -> Iterator[GoldLabel]:
        children = inner.get(label.label_id, [])
        is_inner = depth < 16 and not is_found(label) and any(map(is_found, _below(label, inner)))
        if not is_inner:
            yield label
            return
        for child in children:
            yield from chosen(child, depth + 1)

    for label in labels:
        if label.parent is None or label.parent not in ids:
            yield from chosen(label, 0)


def _below(label: GoldLabel, inner: Mapping[str, list[GoldLabel]]) -> Iterator[GoldLabel]:
    """Yield the labels within one, to any depth."""
    waiting, seen = [label], {label.label_id}
    while waiting:
        for child in inner.get(waiting.pop().label_id, []):
            if child.label_id not in seen:
                seen.add(child.label_id)
                waiting.append(child)
                yield child


def _in_nfc(text: str) -> Callable[[int], int]:
    """Return a function from an offset in a text to the one in its NFC, where mentions count."""
    if comparable(text) == text:
        return lambda offset: offset
    return lambda offset: len(comparable(text[:offset]))


def _to_words(span: tuple[int, int], text: str) -> tuple[int, int]:
    """Extend a span to whole words, as ELEVANT does."""
    start, stop = span
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in _INSIDE):
        start -= 1
    while stop < len(text) - 1 and (text[stop].isalnum() or text[stop] in _INSIDE):
        stop += 1
    if text[start : start + 1] == '"' and '"' not in text[start + 1 : stop]:
        start += 1
    return start, stop
