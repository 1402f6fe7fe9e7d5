"""Keys that several rules share."""

from collections.abc import Callable, Sequence

from surface_consistency.text import normalize as default_normalize
from surface_consistency.text import padded_words, tokenize

__all__ = ["Normalizer", "padded_keys", "plain_keys"]

Normalizer = Callable[[str], str]
"""A function that returns the form in which a text is compared."""


def plain_keys(texts: Sequence[str], normalize: Normalizer | None) -> list[str]:
    """Return the texts, normalised when asked; what normalises to nothing stays as it is."""
    if normalize is None:
        return list(texts)
    return [normalize(text) or text.strip() for text in texts]


def padded_keys(texts: Sequence[str], normalize: Normalizer | None) -> list[str]:
    """Return the words of each text between single spaces, with a space at both ends."""
    if normalize is default_normalize:
        return padded_words(texts)
    forms = plain_keys(texts, normalize)
    return [f" {' '.join(tokenize(form))} " for form in forms]
