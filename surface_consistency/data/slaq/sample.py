"""The bundled sample: a small set of true facts for trying things out, not for results."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from surface_consistency.data.slaq.load import Slaq, load_slaq

__all__ = ["SLAQ_SAMPLE_ID", "SLAQ_SAMPLE_PATH", "load_slaq_sample"]

SLAQ_SAMPLE_ID: Final = "slaq-sample"
"""Its name in manifests, wherever the package is installed."""

SLAQ_SAMPLE_PATH: Final = Path(__file__).parents[1] / "sample" / "slaq"
"""Folder of the sample, in the hub's layout."""


def load_slaq_sample() -> Slaq:
    """Load the sample, without network, cache or the `datasets` library.

    Returns:
        Topics over twelve categories of the paper, half of them popular.

    Examples:
        >>> sample = load_slaq_sample()
        >>> len(sample.topics), len(sample.questions)
        (24, 120)
    """
    data = load_slaq(SLAQ_SAMPLE_PATH / "test.csv")
    return replace(data, source=data.source.model_copy(update={"id": SLAQ_SAMPLE_ID}))
