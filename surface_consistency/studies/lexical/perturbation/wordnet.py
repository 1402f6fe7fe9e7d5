"""Reader of the database files of WordNet.

The files are those of WordNet 3.0 and 3.1 (`index.noun`, `data.noun`, `noun.exc` and so on; see
wndb(5WN)), as in the Debian package `wordnet-base`, in `nltk_data/corpora/wordnet` and in the
download of Princeton.
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
"""Number of the part of speech in a sense key; adjectives also have that of satellites."""

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
"""Endings of inflected forms and their replacements, from morphy(7WN)."""

_MARKERS: Final = ("(p)", "(a)", "(ip)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synset:
    """A set of words with the same meaning."""

    id: str
    """Byte offset in its data file and letter of its type, such as "02084071-n"; "s" is a
    satellite, an adjective with nearly the meaning of its head."""

    pos: PartOfSpeech
    """Part of speech."""

    lemmas: tuple[str, ...]
    """Its lemmas as written; a lemma of several words contains spaces."""

    definition: str
    """Its definition, without examples."""


class _SortedLines:
    """Lines that begin with a key, sorted by the bytes of the key."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()

    def find(self, key: str, *, end: bytes = b" ") -> Iterator[str]:
        """Yield the lines with the key `key`, which `end` terminates in the line."""
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
    """The lexical database WordNet. Entries are read by byte offset and parsed on demand.

    Args:
        folder: The folder with `index.*`, `data.*` and `*.exc` of nouns, verbs, adjectives and
            adverbs; `cntlist.rev`, the frequencies of the senses, is used if it exists.

    Raises:
        SourceNotFoundError: If the folder or a file is missing.

    Notes:
        The folder of the Debian package `wordnet-base` is /usr/share/wordnet, that of nltk's data
        package nltk_data/corpora/wordnet.
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
                f"{self.folder} is not a folder of WordNet: it lacks {', '.join(missing)}; name "
                "the folder of its database files, such as /usr/share/wordnet of the Debian "
                "package wordnet-base, or nltk_data/corpora/wordnet"
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
            lemma: Base form, case-insensitive; several words are separated by spaces.
            pos: Part of speech.

        Returns:
            Its senses, the most frequent first; empty if the word is not in WordNet.

        Raises:
            DataError: If a line of the files is invalid.
        """
        return self._senses(lemma, pos)

    def base_forms(self, form: str, pos: PartOfSpeech) -> tuple[str, ...]:
        """Find the base forms of an inflected form.

        Args:
            form: A form, case-insensitive.
            pos: Part of speech.

        Returns:
            Base forms in WordNet, in lower case: the form itself, and those of the exception list;
            without an entry there, those that result from the rules for endings.

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
        """Return the frequency of a word with its most frequent sense.

        Args:
            lemma: Base form.
            pos: Part of speech.

        Returns:
            Number of occurrences in the corpora that the authors of WordNet tagged; without
            `cntlist.rev` the number of its senses that occur there. 0 if it does not occur.
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
        """Read the offsets of a word's senses, and the number of those in the tagged corpora."""
        for line in self._index[pos].find(key):
            fields = line.split()
            try:
                n_senses = int(fields[2])
                n_seen = int(fields[5 + int(fields[3])])
                offsets = tuple(map(int, fields[len(fields) - n_senses :]))
            except (IndexError, ValueError) as error:
                raise DataError(
                    f"{self.folder / f'index.{_FILES[pos]}'}: the line of {shown(key)} is not an "
                    "index line of WordNet (lemma, pos, counts, pointers, counts, offsets); "
                    "download the files again"
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
                f"{self.folder / f'data.{_FILES[pos]}'}: no synset begins at byte {offset}, to "
                f"which index.{_FILES[pos]} refers; use both files of one version, unchanged "
                "(including line ends)"
            ) from error
        return Synset(
            id=f"{offset:08d}-{kind}",
            pos=pos,
            lemmas=tuple(_written(word) for word in words),
            definition=gloss.partition('; "')[0].strip(),
        )


def _key(lemma: str) -> str:
    """Return a lemma as it is written in the index."""
    return lemma.lower().replace(" ", "_")


def _written(word: str) -> str:
    """Return a word of a data file with spaces and without its syntactic marker."""
    for marker in _MARKERS:
        word = word.removesuffix(marker)
    return word.replace("_", " ")


def _exceptions(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read an exception list; a form in two lines has the bases of both."""
    listed: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        form, *bases = line.split()
        if not bases:
            raise DataError(
                f"{path}: {shown(form)} has no base form; each line must have a form and its bases"
            )
        listed.setdefault(form, []).extend(bases)
    for form, bases in listed.items():
        yield form, tuple(dict.fromkeys(bases))
