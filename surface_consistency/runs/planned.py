"""Records of the rows of targets and pairs, and the check of their ids."""

import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency.schemas._record import Items, NonEmpty, Record


class ItemRow(Record):
    """Columns of every target; further columns, which the scorer of a study reads, are allowed."""

    target_id: NonEmpty
    """Id of the target, unique in a plan."""

    prompt_id: NonEmpty
    """Id of the prompt whose answer is scored."""

    references: Items[str]
    """The accepted answers, the reference first."""

    item: NonEmpty
    """The fact of the question."""


class PairRow(Record):
    """Columns of every pair; a further column is a field of the outcome record, or a target."""

    pair: NonEmpty
    """Id of the pair, unique in a plan."""

    item: NonEmpty
    """The fact of the questions of both conditions."""

    first_target: str | None
    """Target under the first condition; None if there is no prompt for it."""

    second_target: str | None
    """Target under the second condition; None if there is no prompt for it."""


class TargetRow(ItemRow):
    """Columns of every target of a run folder."""

    prompt_key: NonEmpty
    """Hash of the prompt (`Prompt.key`); the prompt id for predictions made elsewhere."""

    group: str
    """Group of prompts with the same decoding parameters."""


def is_target(column: object) -> bool:
    """Return whether a column of pairs contains ids of targets."""
    return str(column).endswith("_target")


def check_targets(targets: pd.DataFrame, pairs: pd.DataFrame, where: str) -> None:
    """Raise an error if a pair names an unknown target.

    Args:
        targets: The targets.
        pairs: The pairs.
        where: Description of the pairs, for messages.

    Raises:
        DataError: If a pair names an unknown target; names column and target.
    """
    known = pd.Index(targets["target_id"])
    for column in filter(is_target, pairs.columns):
        named = pairs.loc[pairs[column].notna(), column]
        strange = named[known.get_indexer(pd.Index(named)) < 0]
        if len(strange):
            raise DataError(
                f"{where}: pair column {column!r} has {shown(strange.iloc[0])}, which is not a "
                "target_id"
            )
