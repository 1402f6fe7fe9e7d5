"""The bundled sample: a small set of real facts for trying things out, not for results."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa

__all__ = ["SAMPLE_ID", "SAMPLE_PATH", "load_sample"]

SAMPLE_ID: Final = "redirectqa-sample"
"""Its name in manifests, wherever the package is installed."""

SAMPLE_PATH: Final = Path(__file__).parent / "sample" / "redirectqa"
"""Folder of the sample, in the hub's layout."""


def load_sample() -> RedirectQA:
    """Load the sample, without network, cache or the `datasets` library.

    Returns:
        Questions over all 16 relations with redirects in all 33 categories, and their pairs.

    Examples:
        >>> sample = load_sample()
        >>> len({question.triple.relation for question in sample.questions})
        16
    """
    data = load_redirectqa(SAMPLE_PATH / "test.jsonl")
    return replace(data, source=data.source.model_copy(update={"id": SAMPLE_ID}))
