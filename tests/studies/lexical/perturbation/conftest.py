"""The handwritten lexicon, and Debian's WordNet if it is installed."""

from pathlib import Path

import pytest

from surface_consistency.studies.lexical.perturbation import WordNet

DEBIAN = Path("/usr/share/wordnet")


@pytest.fixture(scope="session")
def lexicon() -> WordNet:
    """Twenty synsets; see `make_wordnet.py`."""
    return WordNet(Path(__file__).parent / "wordnet")


@pytest.fixture(scope="session")
def wordnet() -> WordNet:
    """WordNet 3.0 of the Debian package `wordnet-base`."""
    if not (DEBIAN / "index.noun").is_file():
        pytest.skip("needs the Debian package wordnet-base")
    return WordNet(DEBIAN)
