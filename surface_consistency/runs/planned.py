"""Rows of what is judged and of what is compared, and what connects them."""

import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency.schemas._record import Items, NonEmpty, Record


class ItemRow(Record):
    """What every target has; whatever else a study's judge reads may stand beside it."""

    target_id: NonEmpty
    """What is judged, once in a plan."""

    prompt_id: NonEmpty
    """The prompt whose answer is judged."""

    references: Items[str]
    """The accepted answers, the reference first."""

    item: NonEmpty
    """The fact that is asked for."""


class PairRow(Record):
    """What every pair has; a further column is a field of the outcome record, or a target."""

    pair: NonEmpty
    """What is compared, once in a plan."""

    item: NonEmpty
    """The fact that both conditions ask for."""

    first_target: str | None
    """Target under the first condition; None where it is not asked under it."""

    second_target: str | None
    """Target under the second condition; None where it is not asked under it."""


class TargetRow(ItemRow):
    """What every target of a run folder has."""

    prompt_key: NonEmpty
    """Hash of the prompt (`Prompt.key`); the prompt id for predictions made elsewhere."""

    group: str
    """Group of prompts that are decoded alike."""


def is_target(column: object) -> bool:
    """Return whether a column of pairs names targets."""
    return str(column).endswith("_target")


def check_targets(targets: pd.DataFrame, pairs: pd.DataFrame, where: str) -> None:
    """Refuse pairs of what is not judged.

    Args:
        targets: What is judged.
        pairs: What is compared.
        where: What the pairs are, for messages.

    Raises:
        DataError: If a column of targets names another one; names column and target.
    """
    known = pd.Index(targets["target_id"])
    for column in filter(is_target, pairs.columns):
        named = pairs.loc[pairs[column].notna(), column]
        strange = named[known.get_indexer(pd.Index(named)) < 0]
        if len(strange):
            raise DataError(
                f"{where}: pair column {column!r} names {shown(strange.iloc[0])}, which is no "
                "target_id"
            )
