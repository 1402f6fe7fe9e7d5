"""What is asked, what is judged and what is compared: frames whose columns are declared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from surface_consistency.engine.design import Design
from surface_consistency.errors import ColumnNotFoundError, DataError, PluginError
from surface_consistency.models.runner import Runner
from surface_consistency.reading import first_names, shown
from surface_consistency.runs.frames import check_frame, refuse_repeated
from surface_consistency.runs.planned import ItemRow, PairRow, check_targets, is_target
from surface_consistency.schemas import DataSource, GenerationParams, PairedOutcome, Prompt
from surface_consistency.text import did_you_mean


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
            refuse_repeated(frame, record, f"the {name} of a plan")
        check_targets(self.items, self.pairs, "the pairs of a plan")


def check_pair_columns(
    pairs: pd.DataFrame, outcome: type[PairedOutcome], where: str = "the pairs of a plan"
) -> None:
    """Refuse columns of pairs that would be dropped, or be refused once all is asked and judged.

    Args:
        pairs: `Plan.pairs`.
        outcome: The study's outcome record.
        where: What the pairs are, for messages.

    Raises:
        DataError: If a column is neither a field of the record nor a target, or holds what its
            field does not allow; names it and the nearest field.
    """
    foreign = [
        str(name)
        for name in pairs.columns
        if name not in outcome.model_fields and not is_target(name)
    ]
    if foreign:
        raise DataError(
            f"{where}: column {', '.join(map(repr, foreign))} is no field of "
            f"{outcome.__name__}{did_you_mean(foreign[0], outcome.model_fields)} and no "
            "<name>_target; declare it in the record, or drop it"
        )
    check_frame(pairs, outcome, where, is_whole=False)


def check_target_columns(targets: pd.DataFrame, design: Design, where: str) -> None:
    """Refuse stored targets without the stratum of the noise floor, and lists as its labels.

    Args:
        targets: The targets of a run folder.
        design: The design of its study.
        where: The file, for messages.

    Raises:
        ColumnNotFoundError: If the column of the stratum is missing.
        DataError: If the stratum or a cluster has lists or structures; names the column.
    """
    if design.stratum is not None and design.stratum not in targets:
        raise ColumnNotFoundError(
            f"{where}: no column {design.stratum!r}, by which the noise floor is computed; there "
            f"are {first_names(targets.columns)}"
        )
    for name in {*design.clusters, design.stratum}.intersection(targets.columns):
        strange = [cell for cell in targets[name] if pd.api.types.is_list_like(cell)]
        if strange:
            raise DataError(
                f"{where}: column {name!r} must have one label per row, got {shown(strange[0])}"
            )


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
