"""Examples of the linking probe: true pairs of names, and false pairs made from them."""

import hashlib
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.data.questions import plain_values
from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.data.selection import warn_limited
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import decode_text, read_lines, shown
from surface_consistency.studies.linking.records import LinkingKind
from surface_consistency.taxonomy import CATEGORIES
from surface_consistency.text import normalized

NameEncoder = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Function that returns vectors of names, shape (n_names, n_dimensions); similar names are near."""

SurfaceNegative = Literal["one-character", "other-entity-same-shape"]
"""Method of making a surface negative: one character of one name is replaced, or the redirect is
replaced by a redirect of the same shape to another entity."""

_DISPUTABLE: Final = frozenset({"spelling_variants", "typical_errors"})
_BLOCK: Final = 1_024
_NGRAM_DIMENSIONS: Final = 2_048
_TRIES: Final = 200
_NEAREST: Final = 20


_EXAMPLE_COLUMNS: Final = (
    *("id", "source_id", "item", "subject_id", "kind", "redirect", "canonical", "category"),
    *("types", "is_main", "is_disputable"),
)


class _Pair(NamedTuple):
    """A true pair of names."""

    id: str
    item: str
    entity: str
    canonical: str
    redirect: str
    categories: tuple[str, ...]


def linking_examples(
    data: RedirectQA,
    *,
    encode: NameEncoder,
    limit: int | None = None,
    seed: int = 0,
    surface_negative: SurfaceNegative = "one-character",
) -> pd.DataFrame:
    """Make the examples of RedirectQA's linking probe.

    Each canonical-redirect pair of names is a positive example. A surface negative replaces one
    character of one of its names. A semantic negative replaces the canonical name by that of the
    nearest other entity. A negative never contains two known names of one entity; such a negative
    is drawn again. A pair of several categories has examples in the wording of each category;
    totals count only those of the first.

    Args:
        data: The questions; wordings and facts of one pair of names are combined.
        encode: Function that returns vectors of names; their squared distance defines the nearest
            entity.
        limit: Maximum number of pairs of names, in a random order given by the seed; None for all.
        seed: Random seed of the characters and of `limit`.
        surface_negative: Method of making surface negatives: "one-character", as in the paper, or
            "other-entity-same-shape", which uses a redirect to another entity. That redirect has
            the same shape (order of capitals, small letters, digits and signs, with any run
            lengths), the nearest length and, if available, the same category. The negative is never
            disputable.

    Returns:
        One row per example: for each pair and category a positive, a surface negative and a
        semantic negative. A negative that cannot be made, for names of one letter or a single
        entity, is omitted. Columns: id, unique; source_id, the true pair of the example; item, a
        fact that RedirectQA has under both names; subject_id, the Wikidata item of the pair's
        entity, or its title; kind, one of `LinkingKind`; redirect and canonical, the names or their
        replacements; category, the redirect category whose wording is used, None for the wording of
        the same entity; types, those of the category; is_main, whether the category is the first of
        the pair, so that each pair counts once in totals; is_disputable, whether the answer "no" is
        disputable, because a name with one character replaced is a misspelling.

    Raises:
        DataError: If there is no pair of two different names.

    Notes:
        The answer "no" to a surface negative of a spelling variant or an error is disputable,
        because a replaced character is a misspelling; `is_disputable` marks these examples.

    References:
        Appendix B.5 of arXiv 2604.21882.
    """
    pairs = _pairs(data)
    if not pairs:
        raise DataError(f"{data.source.id} contains no pair of two different names")
    known = _known_names(data)
    names = list(dict.fromkeys(pair.canonical for pair in pairs))
    if limit is not None:
        n_pairs = len(pairs)
        pairs = sorted(pairs, key=lambda pair: _draw(seed, pair.id).random())[:limit]
        warn_limited(limit, len(pairs), n_pairs, "pairs of names")
    nearest = _nearest(sorted({pair.canonical for pair in pairs}), names, encode)
    by_shape = _by_shape(_pairs(data)) if surface_negative == "other-entity-same-shape" else None
    examples = [
        example
        for pair in pairs
        for example in _examples(pair, known, nearest, by_shape, seed=seed)
    ]
    made = pd.DataFrame(examples, columns=list(_EXAMPLE_COLUMNS), dtype=object)
    return made.astype({"is_main": bool, "is_disputable": bool})


def _pairs(data: RedirectQA) -> list[_Pair]:
    """Collect the distinct pairs of names, each with its first fact."""
    pairs: dict[tuple[str, str, str], _Pair] = {}
    columns = ("item", "subject_id", "canonical_surface", "surface", "categories")
    for item, subject_id, canonical, redirect, categories in plain_values(data.pairs, columns):
        if _folded(canonical, case=False) != _folded(redirect, case=False):
            key = (subject_id or canonical, canonical, redirect)
            name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:12]
            pairs.setdefault(key, _Pair(name, item, *key, categories))
    return list(pairs.values())


def _known_names(data: RedirectQA) -> Mapping[str, frozenset[str]]:
    """Collect the known entities of each name, ignoring letter case."""
    names: dict[str, set[str]] = {}
    columns = ("subject_id", "subject_name", "surface", "subject_aliases")
    for subject_id, title, surface, aliases in plain_values(data.rows, columns):
        for name in (surface, title, *aliases):
            names.setdefault(_folded(name), set()).add(subject_id or title)
    return {name: frozenset(entities) for name, entities in names.items()}


def _examples(
    pair: _Pair,
    known: Mapping[str, frozenset[str]],
    nearest: Mapping[str, Sequence[str]],
    by_shape: Mapping[str, Sequence[_Pair]] | None,
    *,
    seed: int,
) -> Iterator[tuple[Any, ...]]:
    """Make the examples of one pair, in the wording of each of its categories."""
    made: dict[LinkingKind, tuple[str, str]] = {"positive": (pair.redirect, pair.canonical)}
    if by_shape is None:
        surface = _replaced(pair, known, _draw(seed, pair.id))
    else:
        surface = _of_same_shape(pair, known, by_shape, _draw(seed, pair.id))
    if surface is not None:
        made["surface_negative"] = surface
    for other in nearest.get(pair.canonical, ()):
        if pair.entity not in known.get(_folded(other), frozenset()):
            made["semantic_negative"] = (pair.redirect, other)
            break
    for place, category in enumerate(pair.categories or (None,)):
        types = (CATEGORIES[category].type,) if category in CATEGORIES else ()
        for kind, (redirect, canonical) in made.items():
            is_disputable = by_shape is None and not _DISPUTABLE.isdisjoint(types)
            yield (
                *(f"{pair.id}/{place}/{kind}", pair.id, pair.item, pair.entity, kind),
                *(redirect, canonical, category, types, place == 0),
                kind == "surface_negative" and is_disputable,
            )


def _replaced(
    pair: _Pair, known: Mapping[str, frozenset[str]], rng: random.Random
) -> tuple[str, str] | None:
    """Replace one letter or digit of a name so that no known name results; None if impossible."""
    for _ in range(_TRIES):
        sides = [pair.redirect, pair.canonical]
        side = rng.randrange(2)
        name = sides[side]
        places = [place for place, character in enumerate(name) if character.isalnum()]
        if len(places) < 2:
            continue
        place = rng.choice(places)
        name = name[:place] + _another(name[place], rng) + name[place + 1 :]
        if _folded(name) in known or _folded(name) == _folded(sides[1 - side]):
            continue
        sides[side] = name
        return sides[0], sides[1]
    return None


def _by_shape(pairs: Iterable[_Pair]) -> dict[str, list[_Pair]]:
    """Group pairs by the shape of their redirects."""
    by_shape: dict[str, list[_Pair]] = {}
    for pair in pairs:
        by_shape.setdefault(_shape(pair.redirect), []).append(pair)
    return by_shape


def _shape(name: str) -> str:
    """Return the kinds of characters of a name, each run once: "Aa A. Aa" for "Ada B. Lee"."""
    kinds = "".join(
        "A" if c.isupper() else "0" if c.isdigit() else "a" if c.isalpha() else c
        for c in normalized("NFC", name)
    )
    return re.sub(r"([Aa0])\1+", r"\1", kinds)


def _of_same_shape(
    pair: _Pair,
    known: Mapping[str, frozenset[str]],
    by_shape: Mapping[str, Sequence[_Pair]],
    rng: random.Random,
) -> tuple[str, str] | None:
    """Draw a redirect of the same shape to another entity; None if there is no such redirect."""
    others = sorted(
        {
            (
                pair.categories != other.categories,
                abs(len(other.redirect) - len(pair.redirect)),
                other.redirect,
            )
            for other in by_shape[_shape(pair.redirect)]
            if pair.entity not in known.get(_folded(other.redirect), frozenset((other.entity,)))
            and other.entity != pair.entity
        }
    )
    best = [name for *rank, name in others if tuple(rank) == others[0][:2]]
    return (rng.choice(best), pair.canonical) if best else None


def _another(character: str, rng: random.Random) -> str:
    """Draw another character of the same kind: a digit, a capital, or a small letter."""
    if character.isdigit():
        pool = "0123456789"
    elif character.isupper():
        pool = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    else:
        pool = "abcdefghijklmnopqrstuvwxyz"
    return rng.choice([other for other in pool if other != character])


def _nearest(
    wanted: Sequence[str], names: Sequence[str], encode: NameEncoder
) -> dict[str, list[str]]:
    """Find the names nearest to each name by squared distance, nearest first, without itself."""
    if len(names) < 2:
        return {}
    vectors = np.asarray(encode(names), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise DataError(
            f"the vectors of {len(names)} names have shape {vectors.shape}; return one row per name"
        )
    squares = np.einsum("ij,ij->i", vectors, vectors)
    row_of = {name: row for row, name in enumerate(names)}
    n_nearest = min(_NEAREST, len(names) - 1)
    nearest: dict[str, list[str]] = {}
    for start in range(0, len(wanted), _BLOCK):
        part = wanted[start : start + _BLOCK]
        rows = np.array([row_of[name] for name in part])
        # Squared distance minus the name's own square, which does not change the order.
        distances = squares[None, :] - 2.0 * (vectors[rows] @ vectors.T)
        distances[np.arange(len(rows)), rows] = np.inf
        near = np.argpartition(distances, n_nearest - 1, axis=1)[:, :n_nearest]
        for name, of_name, row in zip(part, near, distances, strict=True):
            # Ties are sorted by name, so the order of the data has no effect.
            nearest[name] = sorted(
                (names[column] for column in of_name),
                key=lambda other, row=row: (row[row_of[other]], other),  # type: ignore[misc]
            )
    return nearest


def ngram_vectors(names: Sequence[str]) -> npt.NDArray[np.float32]:
    """Make vectors of the character trigrams of names; names with similar spelling are near.

    Args:
        names: The names.

    Returns:
        Unit vectors of counts of hashed trigrams, ignoring letter case, shape (n_names, 2048).

    Examples:
        >>> near, far = ngram_vectors(["Lisbon", "Lisbun"]), ngram_vectors(["Lisbon", "Oslo"])
        >>> bool(near[0] @ near[1] > far[0] @ far[1])
        True
    """
    vectors = np.zeros((len(names), _NGRAM_DIMENSIONS), dtype=np.float32)
    for row, name in enumerate(names):
        padded = f"  {_folded(name)} "
        for start in range(len(padded) - 2):
            digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=4).digest()
            vectors[row, int.from_bytes(digest) % _NGRAM_DIMENSIONS] += 1.0
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = vectors / np.maximum(norms, np.float32(1e-12))
    return unit


def word_vectors(path: str | os.PathLike[str]) -> NameEncoder:
    """Read word vectors in the text format of fastText and word2vec.

    Args:
        path: File of lines "word number number ...", in UTF-8, unpacked if its name ends in .gz. A
            first line of two numbers and byte order marks are skipped. Only vectors of words that
            occur in the names are kept in memory.

    Returns:
        An encoder: the mean of the vectors of a name's words, as written or else in lower case; a
        name without a known word has a vector of zeros.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If two lines have different numbers of values, or a line is not UTF-8; the
            message has the line number.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"file {file} not found; pass a text file of word vectors (.vec)")

    def encode(names: Sequence[str]) -> npt.NDArray[np.float32]:
        words = [name.split() for name in names]
        wanted = {form for name in words for word in name for form in (word, word.lower())}
        vectors = dict(_read_vectors(file, wanted))
        if not vectors:
            raise DataError(f"{file} has no vector of any word of the {len(names)} names")
        size = len(next(iter(vectors.values())))
        made = np.zeros((len(names), size), dtype=np.float32)
        for row, name in enumerate(words):
            known = [vectors.get(word, vectors.get(word.lower())) for word in name]
            word_vectors = [vector for vector in known if vector is not None]
            if word_vectors:
                made[row] = np.mean(word_vectors, axis=0)
        return made

    return encode


def _read_vectors(
    file: Path, wanted: Iterable[str]
) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """Read the vectors of some words."""
    words, size = frozenset(wanted), None
    for number, line in read_lines(file):
        name, *values = line.rstrip().split(b" ")
        if number == 1 and len(values) == 1:
            continue
        if size not in (None, len(values)):
            raise DataError(
                f"{file}:{number}: {len(values)} numbers, but the line before has {size}; the "
                "file is truncated or does not contain word vectors"
            )
        size = len(values)
        if (word := decode_text(name, f"{file}:{number}")) in words:
            try:
                yield word, np.array(values, dtype=np.float32)
            except ValueError as error:
                raise DataError(
                    f"{file}:{number}: not a word vector ({shown(str(error))}); write one word and "
                    "its numbers per line"
                ) from error


def _folded(name: str, *, case: bool = True) -> str:
    """Normalise a name: composed characters and, if `case`, case-folded."""
    composed = normalized("NFC", name)
    return composed.casefold() if case else composed


def _draw(seed: int, name: str) -> random.Random:
    """Make the random generator of one pair, which is independent of the other pairs."""
    return random.Random(f"{seed}|{name}")
