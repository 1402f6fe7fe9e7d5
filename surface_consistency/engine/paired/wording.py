"""What the page of any paired study says: its sentences, checks and notes."""

from typing import Final

from surface_consistency.report.wording import Wording
from surface_consistency.tables.numbers import sentence_text

WORDING: Final = Wording("surface_consistency.engine.paired")
"""The template `page.md.jinja`."""


def note(block: str, **facts: object) -> str:
    """Set what stands below a table.

    Args:
        block: Its name in the template.
        facts: What its sentences are made of.

    Returns:
        The text; "" where there is nothing to say.
    """
    return sentence_text(WORDING.sentence(block, **facts))
