"""Count the n-grams of test instances in a corpus, for lexical popularity."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surface_consistency.text import tokenize as words_of
from surface_consistency_build.counting.texts import (
    PackedTexts,
    comparable,
    comparable_texts,
    offsets_of,
)

Int64s = npt.NDArray[np.int64]

Tokenizer = Callable[[str], Sequence[Hashable]]
"""Function that splits a text into tokens: words, or the ids of a model's tokenizer."""

_UNKNOWN: Final = -1
_MULTIPLIERS: Final = range(0x9E3779B97F4A7C15, 0x9E3779B97F4A7C15 + 64, 2)


class NgramCounter:
    """Counts the n-grams of some instances in documents.

    Args:
        instances: The texts of a test set.
        n: Number of tokens of an n-gram; 7 in the paper.
        tokenize: Function that splits instances and documents into tokens; None for
            `surface_consistency.text.tokenize`, words between white space. If it has a method
            `batch`, from texts to their tokens, documents are tokenized together.

    Raises:
        ValueError: If `n` is below 1.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 4.

    Examples:
        >>> counter = NgramCounter(["a b c", "b"], n=2)
        >>> counter.feed(["a b a b c", "b c"])
        >>> [counts.tolist() for counts in counter.result()]
        [[2, 2], []]
    """

    def __init__(
        self, instances: Iterable[str], *, n: int = 7, tokenize: Tokenizer | None = None
    ) -> None:
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        self.n = n
        """Number of tokens of an n-gram."""
        self._tokenize = words_of if tokenize is None else tokenize
        self._ids: dict[Hashable, int] = {}
        numbers: dict[tuple[int, ...], int] = {}
        self._of_instance: list[list[int]] = []
        for text in instances:
            tokens = [self._ids.setdefault(t, len(self._ids)) for t in self._tokens(text)]
            grams = dict.fromkeys(zip(*(tokens[k:] for k in range(n)), strict=False))
            self._of_instance.append([numbers.setdefault(gram, len(numbers)) for gram in grams])
        self._grams = np.array(list(numbers), dtype=np.int64).reshape(-1, n)
        self._counts = np.zeros(len(numbers), dtype=np.int64)
        self._multiplier, self._hashes, self._order = self._hashed()
        self.documents = 0
        """Documents read."""

    def feed(self, texts: Iterable[str | bytes] | PackedTexts) -> None:
        """Count n-grams in more documents; n-grams do not extend over two documents."""
        packed = texts if isinstance(texts, PackedTexts) else PackedTexts.pack(texts)
        self.documents += len(packed)
        if not self._counts.size:
            return
        ids = self._word_ids(packed) if self._tokenize is words_of else self._token_ids(packed)
        if ids.size < self.n:
            return
        windows = np.lib.stride_tricks.sliding_window_view(ids, self.n)
        n_known = offsets_of(ids >= 0)
        candidates = np.flatnonzero(n_known[self.n :] - n_known[: -self.n] == self.n)
        hashes = _hash(windows[candidates], self._multiplier)
        places = np.searchsorted(self._hashes, hashes)
        places[places == self._hashes.size] = 0
        is_equal = self._hashes[places] == hashes
        grams = self._order[places[is_equal]]
        is_same = (self._grams[grams] == windows[candidates[is_equal]]).all(axis=1)
        self._counts += np.bincount(grams[is_same], minlength=self._counts.size)

    def result(self) -> list[Int64s]:
        """Return the counts so far.

        Returns:
            For each instance the counts of its distinct n-grams in order of appearance, as
            `fit_popularity_scale` (joined) and `instance_popularity` accept them; empty for an
            instance of fewer than n tokens.
        """
        return [self._counts[grams] for grams in self._of_instance]

    def ngrams(self) -> list[tuple[Hashable, ...]]:
        """Return the tokens of the distinct n-grams of all instances, in the order of `counts`."""
        tokens = list(self._ids)
        return [tuple(tokens[number] for number in gram) for gram in self._grams.tolist()]

    @property
    def counts(self) -> Int64s:
        """Counts of the distinct n-grams of all instances."""
        return self._counts.copy()

    def state(self) -> dict[str, Int64s]:
        """Return the counts in the form in which a run stores them."""
        return {"counts": self.counts}

    def add(self, counts: Int64s) -> None:
        """Add the counts of another part of the corpus.

        Args:
            counts: `counts` of a counter of the same instances.

        Raises:
            ValueError: If they belong to other instances.
        """
        if counts.shape != self._counts.shape:
            raise ValueError(
                f"counts must have {self._counts.size} n-grams, those of the same instances, got "
                f"{counts.size}"
            )
        self._counts += counts

    def _word_ids(self, texts: PackedTexts) -> Int64s:
        """Number the words of documents, with an unknown word after each document."""
        plain = comparable_texts(texts, "exact")
        unspaced = {i: " ".join(words_of(plain[i])) for i in _may_lack_spaces(plain)}
        words = pc.utf8_split_whitespace(plain.changed(unspaced).to_arrow())
        numbers = pc.index_in(words.flatten(), value_set=pa.array(self._ids, pa.large_string()))
        sizes = np.diff(words.offsets.to_numpy())
        ids = np.full(sizes.sum() + sizes.size, _UNKNOWN)
        places = np.arange(sizes.sum()) + np.repeat(np.arange(sizes.size), sizes)
        ids[places] = numbers.fill_null(_UNKNOWN).to_numpy()
        return ids

    def _token_ids(self, texts: PackedTexts) -> Int64s:
        """Number the tokens of documents, with an unknown token after each document."""
        plain = [*comparable_texts(texts, "exact")]
        batch: Callable[[list[str]], Iterable[Sequence[Hashable]]] | None
        batch = getattr(self._tokenize, "batch", None)
        tokens = map(self._tokenize, plain) if batch is None else batch(plain)
        ends = chain.from_iterable(chain(row, (None,)) for row in tokens)
        return np.fromiter((self._ids.get(token, _UNKNOWN) for token in ends), np.int64)

    def _tokens(self, text: str) -> Sequence[Hashable]:
        """Split a text in NFC into tokens."""
        return self._tokenize(comparable(text))

    def _hashed(self) -> tuple[int, npt.NDArray[np.uint64], Int64s]:
        """Hash the n-grams without collisions."""
        for multiplier in _MULTIPLIERS:
            hashes = _hash(self._grams, multiplier)
            order = np.argsort(hashes)
            if (np.diff(hashes[order]) != 0).all():
                return multiplier, hashes[order], order
        raise ValueError("the hashes of n-grams collide; divide the instances into several files")


def _may_lack_spaces(texts: PackedTexts) -> list[int]:
    """List the texts with a character from U+0E00 on, except punctuation and symbols."""
    block = texts.buffer
    # Most texts have a dash or a quotation mark of U+2000 to U+2E7F, whose first byte is 0xE2.
    places = np.flatnonzero(block >= 0xE0)
    places = places[(block[places] != 0xE2) | (block[places + 1] >= 0xBA)]
    found: list[int] = np.unique(np.searchsorted(texts.offsets, places, side="right") - 1).tolist()
    return found


def _hash(rows: Int64s, multiplier: int) -> npt.NDArray[np.uint64]:
    """Hash each row of token ids."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        hashes = (hashes + column.astype(np.uint64) + np.uint64(1)) * np.uint64(multiplier)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def count_ngrams(
    instances: Iterable[str],
    documents: Iterable[PackedTexts | Iterable[str | bytes]],
    *,
    n: int = 7,
    tokenize: Tokenizer | None = None,
) -> list[Int64s]:
    """Count the n-grams of test instances in a corpus.

    Args:
        instances: The texts of a test set.
        documents: Batches of documents, as from `read_documents`.
        n: Number of tokens of an n-gram.
        tokenize: As `NgramCounter`.

    Returns:
        For each instance the counts of its distinct n-grams.

    Raises:
        ValueError: If `n` is below 1.

    Examples:
        >>> counts = count_ngrams(["to be or", "not to be"], [["to be or not to be"]], n=2)
        >>> [row.tolist() for row in counts]
        [[2, 1], [1, 2]]
    """
    counter = NgramCounter(instances, n=n, tokenize=tokenize)
    for batch in documents:
        counter.feed(batch)
    return counter.result()
