"""A corpus of words and names by Zipf's law, with accents and punctuation."""

import numpy as np

_CONSONANTS = "bcdfghjklmnprstvwz"
_VOWELS = ["a", "e", "i", "o", "u", "an", "er", "or", "en", "in"]
_ACCENTS = str.maketrans("aeou", "áéöü")
_SYLLABLES = [c + v for c in _CONSONANTS for v in _VOWELS]
_COMMON = (  # noqa: SIM905
    "the of and in to a was is for as on by with he that at from his it an were are which this be "
    "had also or has their first one its not after but who new they have her two been other when "
    "during there all into she more time years most some over year city only between such about "
    "later where up would known work under these may then than out part him became can many world"
).split()
_JOINTS = np.array([" ", " ", " ", " ", " ", " ", " ", ", ", ". ", " (", ") ", "\n", "-"])


class SyntheticCorpus:
    """Words and names, the same for a seed in every process.

    Args:
        n_names: Distinct names, of 1 to 8 words.
        seed: Seed of all words and names.
    """

    def __init__(self, n_names, *, n_words=300_000, seed=0):
        self._rng = np.random.default_rng(seed)
        self.words = np.array(_COMMON + [_word(number) for number in range(n_words)])
        self.names = self._names(n_names)

    def _names(self, n):
        """Make distinct names: capitalised words, some with punctuation or a number."""
        found = {}
        while len(found) < n:
            m = int((n - len(found)) * 1.2) + 100
            lengths = self._rng.choice([1, 2, 3, 4, 5, 8], m, p=[0.15, 0.5, 0.2, 0.1, 0.04, 0.01])
            picks = self._rng.integers(len(_COMMON), self.words.size, lengths.sum())
            capitals = np.char.capitalize(self.words[picks])
            ends = np.cumsum(lengths)
            kinds = self._rng.random(m)
            for start, end, kind in zip(ends - lengths, ends, kinds, strict=True):
                name = " ".join(capitals[start:end])
                if kind < 0.04:
                    name = f"{name} (film)"
                elif kind < 0.08:
                    name = name.replace(" ", "-", 1)
                elif kind < 0.1:
                    name = f"{name[0]}. {name}"
                found[name] = None
        return list(found)[:n]

    def documents(self, n_bytes, *, seed=1, share=0.15):
        """Write documents of about 3,500 bytes, with a proportion of names."""
        rng = np.random.default_rng(seed)
        documents, written = [], 0
        while written < n_bytes:
            n = int(rng.integers(100, 900))
            words = self.words[_zipf(rng, self.words.size, n)].astype(object)
            is_name = rng.random(n) < share
            words[is_name] = [self.names[i] for i in _zipf(rng, len(self.names), is_name.sum())]
            pieces = np.empty(2 * n, dtype=object)
            pieces[::2], pieces[1::2] = words, _JOINTS[rng.integers(0, _JOINTS.size, n)]
            documents.append("".join(pieces))
            written += len(documents[-1].encode())
        return documents


def _word(number):
    """Spell a number in syllables; different numbers give different words."""
    rest, digits = number + 1, []
    while rest:
        rest, digit = divmod(rest, len(_SYLLABLES))
        digits.append(_SYLLABLES[digit])
    word = "".join(digits)
    return word.translate(_ACCENTS) if number % 25 == 0 else word


def _zipf(rng, size, n):
    """Draw ranks; their frequency decreases with the rank."""
    return np.minimum(size ** rng.random(n), size - 1).astype(np.int64)


def write_names(path, n):
    """Write distinct names as Parquet, one chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"entity_id": pa.string(), "surface": pa.string()})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 100_000):
            numbers = range(start, min(start + 100_000, n))
            names = [f"{_word(i % 99_991).capitalize()} {_word(i).capitalize()}" for i in numbers]
            rows = {"entity_id": [f"Q{i}" for i in numbers], "surface": names}
            writer.write_table(pa.table(rows, schema=schema))
