"""Frequencies of words, and selection of synonyms of about the same frequency or rarer ones."""

import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import shown
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.studies.lexical.perturbation.wordnet import WordNet
from surface_consistency.studies.lexical.records import PartOfSpeech

WordFrequency = Callable[[str, PartOfSpeech], float]
"""Function that returns the frequency of a lemma as a part of speech; NaN if it was not counted."""

_COLUMNS: Final = ("word", "count")


def corpus_frequencies(source: WordNet | str | os.PathLike[str]) -> WordFrequency:
    """Return the function of word frequencies.

    Args:
        source: Counts of words in a corpus, as for `read_word_counts`, for all parts of speech
            together; or WordNet, with the frequency of the most frequent sense of a word in its
            tagged corpora, which is coarse and 0 for most words.

    Returns:
        The function.

    Raises:
        SourceNotFoundError: As `read_word_counts`.
        DataError: As `read_word_counts`.
    """
    if isinstance(source, WordNet):
        return cache(lambda lemma, pos: float(source.sense_count(lemma, pos)))
    counts = read_word_counts(source)
    return lambda lemma, pos: counts.get(lemma, math.nan)


def read_word_counts(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read counts of words.

    Args:
        path: Folder of `count names` (its bounded occurrences are used), or of `count ngrams
            --n 1` with words as instances; or a table of words: CSV or Parquet with the columns
            word and count.

    Returns:
        Counts by word, in lower case; counts of words that differ only in case are added.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If it does not contain counts of words, or a count is negative or missing.
    """
    import pandas as pd

    given = Path(path).expanduser()
    names = ("surfaces.parquet", "ngrams.parquet")
    place = next((given / name for name in names if (given / name).is_file()), given)
    if not place.is_file():
        raise SourceNotFoundError(
            f"{given} has no counts of words; give a folder of `count names` or `count ngrams "
            "--n 1`, or a CSV or Parquet file with the columns word and count"
        )
    try:
        if place.suffix == ".parquet":
            with open_parquet(place) as file:
                frame = file.read().to_pandas()
        else:
            frame = pd.read_csv(place, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{place} is not a table of counts: {error}") from error
    if "n_bounded" in frame:
        frame = frame.drop_duplicates("surface").rename(
            columns={"surface": "word", "n_bounded": "count"}
        )
    elif "counts" in frame:
        several = frame[frame["counts"].map(len) > 1]
        if len(several):
            raise DataError(
                f"{place}: {shown(several['instance_id'].iloc[0])} has "
                f"{len(several['counts'].iloc[0])} n-grams, so it is not a word; count words with "
                "`count ngrams --n 1`"
            )
        first = frame["counts"].map(lambda counts: counts[0] if len(counts) else math.nan)
        frame = frame.assign(word=frame["instance_id"], count=first)
        frame = frame[frame["count"].notna()]
    if missing := [name for name in _COLUMNS if name not in frame]:
        raise DataError(
            f"{place} lacks the column {', '.join(missing)}; a table of words needs word and count"
        )
    numbers = pd.to_numeric(frame["count"], errors="coerce")
    if not (numbers >= 0).all():
        word = frame.loc[~(numbers >= 0), "word"].iloc[0]
        raise DataError(f"{place}: the count of {shown(word)} is not a number of at least 0")
    words = frame["word"].astype(str).str.lower()
    return {str(word): float(n) for word, n in numbers.groupby(words).sum().items()}


def match_frequency(
    frequency: WordFrequency, arm: Literal["frequent", "rarer"], *, within: float = 2.0
) -> Callable[[str, PartOfSpeech, Sequence[str]], list[str]]:
    """Return a function that selects synonyms of about the same frequency as a word, or rarer ones.

    Words that have only one kind of synonyms are not replaced in either arm. The wordings of the
    two arms therefore replace the same words, and differ only in the frequency of the synonyms.

    Args:
        frequency: Frequencies of words.
        arm: Kind of synonyms to select.
        within: A synonym has about the same frequency if 1 + its count is within this factor of 1 +
            the word's count; it is rarer if 1 + its count is below that range.

    Returns:
        A function of a lemma, its part of speech and its synonyms that returns the selected ones,
        without the lemma; the list is empty if either kind is missing.

    Raises:
        ValueError: If `within` is below 1.

    Examples:
        >>> counts = {"use": 999, "apply": 799, "utilise": 9}
        >>> rarer = match_frequency(lambda lemma, pos: counts[lemma], "rarer")
        >>> rarer("use", "verb", ["use", "apply", "utilise"])
        ['utilise']
    """
    if not within >= 1.0:
        raise ValueError(f"within must be a factor of at least 1, got {within}")

    def matched(lemma: str, pos: PartOfSpeech, synonyms: Sequence[str]) -> list[str]:
        """Select the synonyms of the arm."""
        own = 1.0 + frequency(lemma, pos)
        ratios = {
            other: (1.0 + frequency(other, pos)) / own
            for other in synonyms
            if other.lower() != lemma
        }
        frequent = [other for other, ratio in ratios.items() if 1.0 / within <= ratio <= within]
        rarer = [other for other, ratio in ratios.items() if ratio < 1.0 / within]
        if not (frequent and rarer):
            return []
        return frequent if arm == "frequent" else rarer

    return matched
