"""WordNet, read from its own database files.

The files are those of WordNet 3.0 and 3.1 (`index.noun`, `data.noun`, `noun.exc` and so on; see
wndb(5WN)), as Debian's package `wordnet-base`, `nltk_data/corpora/wordnet` and the download of
Princeton hold them.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import shown
from surface_consistency.studies.lexical.records import PartOfSpeech

_FILES: Final[Mapping[PartOfSpeech, str]] = {
    "noun": "noun",
    "verb": "verb",
    "adjective": "adj",
    "adverb": "adv",
}
_KEYS: Final[Mapping[PartOfSpeech, tuple[str, ...]]] = {
    "noun": ("1",),
    "verb": ("2",),
    "adjective": ("3", "5"),
    "adverb": ("4",),
}
"""Number of the part of speech in a sense key; that of satellites besides."""

_SUFFIXES: Final[Mapping[PartOfSpeech, tuple[tuple[str, str], ...]]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adjective": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adverb": (),
}
"""Endings of inflected forms and what takes their place, as of morphy(7WN)."""

_MARKERS: Final = ("(p)", "(a)", "(ip)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synset:
    """Words of one meaning."""

    id: str
    """Byte offset in its data file and letter of its type, such as "02084071-n"; "s" is a
    satellite, an adjective that means nearly what its head does."""

    pos: PartOfSpeech
    """Part of speech."""

    lemmas: tuple[str, ...]
    """Its words as they are written, several words of one lemma parted by spaces."""

    definition: str
    """What they mean, without examples."""


class _SortedLines:
    """Lines that begin with their key, sorted by its bytes."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()

    def find(self, key: str, *, end: bytes = b" ") -> Iterator[str]:
        """Yield the lines whose key is `key`, up to the byte that ends it."""
        data, wanted = self._data, key.encode() + end
        low, high = 0, len(data)
        while low < high:
            middle = (low + high) // 2
            start = data.rfind(b"\n", 0, middle) + 1
            stop = data.find(b"\n", middle)
            stop = len(data) if stop < 0 else stop
            if data[start:stop] < wanted:
                low = stop + 1
            else:
                high = start
        while data.startswith(wanted, low):
            stop = data.find(b"\n", low)
            stop = len(data) if stop < 0 else stop
            yield data[low:stop].decode()
            low = stop + 1


class WordNet:
    """The lexical database WordNet, opened by byte offset: nothing is parsed that is not asked for.

    Args:
        folder: The folder with `index.*`, `data.*` and `*.exc` of nouns, verbs, adjectives and
            adverbs; `cntlist.rev`, how often each sense was seen, is used where it is there.

    Raises:
        SourceNotFoundError: If the folder or a file is missing.

    Notes:
        Debian's package `wordnet-base` has it in /usr/share/wordnet, nltk's data package in
        nltk_data/corpora/wordnet.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        """The folder."""
        wanted = [
            name
            for stem in _FILES.values()
            for name in (f"index.{stem}", f"data.{stem}", f"{stem}.exc")
        ]
        missing = [name for name in wanted if not (self.folder / name).is_file()]
        if missing:
            raise SourceNotFoundError(
                f"{self.folder} is no folder of WordNet: it lacks {', '.join(missing)}; name the "
                "folder of its database files, such as /usr/share/wordnet of the Debian package "
                "wordnet-base, or nltk_data/corpora/wordnet"
            )
        self._index = {
            pos: _SortedLines(self.folder / f"index.{stem}") for pos, stem in _FILES.items()
        }
        self._data = {
            pos: (self.folder / f"data.{stem}").read_bytes() for pos, stem in _FILES.items()
        }
        self._exceptions = {
            pos: dict(_exceptions(self.folder / f"{stem}.exc")) for pos, stem in _FILES.items()
        }
        counts = self.folder / "cntlist.rev"
        self._counts = _SortedLines(counts) if counts.is_file() else None
        self._entry = lru_cache(maxsize=None)(self._read_entry)
        self._senses = lru_cache(maxsize=None)(self._read_senses)

    def synsets(self, lemma: str, pos: PartOfSpeech) -> tuple[Synset, ...]:
        """Find the senses of a word.

        Args:
            lemma: Base form, case aside; the words of a lemma of several parted by spaces.
            pos: Part of speech.

        Returns:
            Its senses, the most frequent first; none where WordNet has no such word.

        Raises:
            DataError: If a line of the files is broken.
        """
        return self._senses(lemma, pos)

    def base_forms(self, form: str, pos: PartOfSpeech) -> tuple[str, ...]:
        """Find what an inflected form can be a form of.

        Args:
            form: A form, case aside.
            pos: Part of speech.

        Returns:
            Base forms that WordNet has, in lower case: those of the exception list, which then are
            all; else the form itself and what is left without an ending.

        References:
            morphy(7WN).
        """
        key = _key(form)
        listed = self._exceptions[pos].get(key, ())
        bases = [base for base in (key, *listed) if self._entry(base, pos)[0]]
        if not listed:
            bases += [
                base
                for ending, instead in _SUFFIXES[pos]
                if key.endswith(ending)
                and len(key) > len(ending)
                and not (pos == "noun" and key.endswith("ss"))
                and self._entry(base := key.removesuffix(ending) + instead, pos)[0]
            ]
        return tuple(dict.fromkeys(base.replace("_", " ") for base in bases))

    def sense_count(self, lemma: str, pos: PartOfSpeech) -> int:
        """Tell how often a word was seen with its most frequent sense.

        Args:
            lemma: Base form.
            pos: Part of speech.

        Returns:
            Uses in the corpora that the authors of WordNet tagged; without `cntlist.rev` the number
            of its senses that were seen at all. 0 where it was not seen.
        """
        key = _key(lemma)
        if self._counts is None:
            return self._entry(key, pos)[1]
        numbers = _KEYS[pos]
        best = 0
        for line in self._counts.find(key, end=b"%"):
            sense, _, count = line.split(" ")
            if sense[len(key) + 1] in numbers:
                best = max(best, int(count))
        return best

    def _read_entry(self, key: str, pos: PartOfSpeech) -> tuple[tuple[int, ...], int]:
        """Read the offsets of a word's senses, and how many of them were seen."""
        for line in self._index[pos].find(key):
            fields = line.split()
            try:
                n_senses = int(fields[2])
                n_seen = int(fields[5 + int(fields[3])])
                offsets = tuple(map(int, fields[len(fields) - n_senses :]))
            except (IndexError, ValueError) as error:
                raise DataError(
                    f"{self.folder / f'index.{_FILES[pos]}'}: the line of {shown(key)} is no index "
                    "line of WordNet (lemma, pos, counts, pointers, counts, offsets); take the "
                    "files anew"
                ) from error
            return offsets, n_seen
        return (), 0

    def _read_senses(self, lemma: str, pos: PartOfSpeech) -> tuple[Synset, ...]:
        """Read the synsets of a word."""
        return tuple(self._read_synset(pos, place) for place in self._entry(_key(lemma), pos)[0])

    def _read_synset(self, pos: PartOfSpeech, offset: int) -> Synset:
        """Read a synset from its line."""
        data = self._data[pos]
        stop = data.find(b"\n", offset)
        line, _, gloss = data[offset : stop if stop >= 0 else None].decode().partition(" | ")
        fields = line.split(" ")
        try:
            if int(fields[0]) != offset:
                raise ValueError(fields[0])
            words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            kind = fields[2]
        except (IndexError, ValueError) as error:
            raise DataError(
                f"{self.folder / f'data.{_FILES[pos]}'}: no synset begins at byte {offset}, where "
                f"index.{_FILES[pos]} has one; take both files from one version, unchanged (line "
                "ends too)"
            ) from error
        return Synset(
            id=f"{offset:08d}-{kind}",
            pos=pos,
            lemmas=tuple(_written(word) for word in words),
            definition=gloss.partition('; "')[0].strip(),
        )


def _key(lemma: str) -> str:
    """Write a lemma as the index does."""
    return lemma.lower().replace(" ", "_")


def _written(word: str) -> str:
    """Write a word of a data file for people, without the marker of its syntax."""
    for marker in _MARKERS:
        word = word.removesuffix(marker)
    return word.replace("_", " ")


def _exceptions(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read an exception list; a form that stands twice has the bases of both lines."""
    listed: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        form, *bases = line.split()
        if not bases:
            raise DataError(
                f"{path}: {shown(form)} has no base form; each line holds a form and its bases"
            )
        listed.setdefault(form, []).extend(bases)
    for form, bases in listed.items():
        yield form, tuple(dict.fromkeys(bases))
