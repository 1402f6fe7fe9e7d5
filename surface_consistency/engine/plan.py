"""What is asked, what is judged and what is compared: frames whose columns are declared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from surface_consistency.errors import DataError, PluginError
from surface_consistency.models.runner import Runner
from surface_consistency.runs.frames import check_frame
from surface_consistency.schemas import DataSource, GenerationParams, PairedOutcome, Prompt
from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.text import did_you_mean

_TARGET: Final = "_target"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptGroup:
    """Prompts that are decoded alike."""

    prompts: Sequence[Prompt]
    """The prompts; ids are unique in the run."""

    params: GenerationParams
    """How to decode."""

    is_shared: bool = False
    """Whether the answers depend on the model alone, so that the runs of a sweep share them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What is asked, what is judged and what is compared.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If a column holds another kind of value, an id stands twice, or a pair compares
            what is not judged.
    """

    data: DataSource
    """Which rows were used."""

    groups: Mapping[str, PromptGroup]
    """Prompts by group; one group is named ""."""

    items: pd.DataFrame
    """What is judged, one row a target: the columns of `ItemRow`, and whatever the judge and the
    noise floor read besides, such as question. The engine adds group and prompt_key."""

    pairs: pd.DataFrame
    """What is compared, one row a pair: the columns of `PairRow`, and those of the outcome record
    that are known before anyone is asked. A further `<name>_target` gives the verdict of a third
    condition. Any other column is refused."""

    settings: Any = None
    """The study's settings with what depends on the data settled, such as the number of
    demonstrations; None where nothing does."""

    checks: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables on what goes in, which a reader must see beside the numbers."""

    prepare: Callable[[Any], Runner] | None = None
    """Puts what the study brings between the engine and the runner that the user named, such as a
    store of facts; None where that runner is asked as it is."""

    def __post_init__(self) -> None:
        """Refuse a plan that does not hold together."""
        for name, frame, record in (("items", self.items, ItemRow), ("pairs", self.pairs, PairRow)):
            check_frame(frame, record, f"the {name} of a plan")
            key = next(iter(record.model_fields))
            repeated = frame[key].duplicated()
            if repeated.any():
                raise DataError(
                    f"the {name} of a plan hold {frame.loc[repeated, key].iloc[0]!r} twice "
                    f"in column {key}; each needs an id of its own"
                )
        known = pd.Index(self.items["target_id"])
        for column in filter(_is_target, self.pairs.columns):
            strange = self.pairs.loc[self.pairs[column].notna(), column]
            strange = strange[known.get_indexer(pd.Index(strange)) < 0]
            if len(strange):
                raise DataError(
                    f"pair column {column!r} names {strange.iloc[0]!r}, which is no target_id"
                )


def check_pair_columns(pairs: pd.DataFrame, outcome: type[PairedOutcome]) -> None:
    """Refuse columns of pairs that would be dropped, or be refused once all is asked and judged.

    Args:
        pairs: `Plan.pairs`.
        outcome: The study's outcome record.

    Raises:
        DataError: If a column is neither a field of the record nor a target, or holds what its
            field does not allow; names it and the nearest field.
    """
    foreign = [
        str(name)
        for name in pairs.columns
        if name not in outcome.model_fields and not _is_target(name)
    ]
    if foreign:
        raise DataError(
            f"the pairs of a plan: column {', '.join(map(repr, foreign))} is no field of "
            f"{outcome.__name__}{did_you_mean(foreign[0], outcome.model_fields)} and no "
            "<name>_target; declare it in the record, or drop it"
        )
    check_frame(pairs, outcome, "the pairs of a plan", is_whole=False)


def check_groupings(groupings: object, outcome: type[PairedOutcome], owner: str) -> None:
    """Refuse groupings that are none, or are by columns that the outcomes do not have.

    Args:
        groupings: Name of each further table to the columns that group it.
        outcome: The study's outcome record.
        owner: Whose they are, for messages.

    Raises:
        PluginError: If it is not a mapping of names to tuples of fields of the record; names the
            grouping.
    """
    if not isinstance(groupings, Mapping):
        raise PluginError(
            f"{owner}: groupings must map the name of each table to a tuple of columns, got "
            f"{groupings!r}"
        )
    for name, columns in groupings.items():
        is_tuple = isinstance(columns, tuple) and all(isinstance(one, str) for one in columns)
        if not isinstance(name, str) or not is_tuple or not columns:
            raise PluginError(
                f"{owner}: groupings[{name!r}] must be a tuple of columns such as "
                f"('category',), got {columns!r}"
            )
        for column in columns:
            if column not in outcome.model_fields:
                raise PluginError(
                    f"{owner}: groupings[{name!r}] is by the column {column!r}, which is no field "
                    f"of {outcome.__name__}{did_you_mean(column, outcome.model_fields)}; declare "
                    "it in the record"
                )


def _is_target(column: object) -> bool:
    """Tell whether a column of pairs names targets."""
    return str(column).endswith(_TARGET)
