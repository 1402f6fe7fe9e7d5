"""Plan of a study: prompts, items to score and pairs, as frames with declared columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from surface_consistency.engine.design import Design
from surface_consistency.errors import ColumnNotFoundError, DataError, PluginError
from surface_consistency.models.runner import Runner
from surface_consistency.reading import first_names, shown
from surface_consistency.runs.frames import check_frame, reject_repeated
from surface_consistency.runs.planned import ItemRow, PairRow, check_targets, is_target
from surface_consistency.schemas import DataSource, GenerationParams, PairedOutcome, Prompt
from surface_consistency.text import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptGroup:
    """Prompts with the same decoding parameters."""

    prompts: Sequence[Prompt]
    """The prompts; ids are unique in the run."""

    params: GenerationParams
    """How to decode."""

    is_shared: bool = False
    """Whether the answers depend only on the model, so that the runs of a sweep share them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The prompts, the items to score and the pairs to compare.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If a column has values of another type, an id occurs twice, or a pair names an
            unknown target.
    """

    data: DataSource
    """The rows that were used."""

    groups: Mapping[str, PromptGroup]
    """Prompts by group; one group is named ""."""

    items: pd.DataFrame
    """The items to score, one row per target: the columns of `ItemRow`, and further columns that
    the scorer and the noise floor read, such as question. The engine adds group and prompt_key."""

    pairs: pd.DataFrame
    """The pairs to compare, one row per pair: the columns of `PairRow`, and those of the outcome
    record that are known before the run. A further `<name>_target` adds the correctness label of a
    third condition. Any other column is an error."""

    settings: Any = None
    """The study's settings with values that depend on the data, such as the number of
    demonstrations; None if no value depends on the data."""

    checks: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables on the input data, which are shown with the results."""

    prepare: Callable[[Any], Runner] | None = None
    """Wraps the runner that the user chose, for example with a store of facts; None if the runner
    is used directly."""

    def __post_init__(self) -> None:
        """Raise an error if the plan is inconsistent."""
        for name, frame, record in (("items", self.items, ItemRow), ("pairs", self.pairs, PairRow)):
            check_frame(frame, record, f"the {name} of a plan")
            reject_repeated(frame, record, f"the {name} of a plan")
        check_targets(self.items, self.pairs, "the pairs of a plan")


def check_pair_columns(
    pairs: pd.DataFrame, outcome: type[PairedOutcome], where: str = "the pairs of a plan"
) -> None:
    """Raise an error for invalid columns of pairs before the model is run.

    Args:
        pairs: `Plan.pairs`.
        outcome: The study's outcome record.
        where: Description of the pairs, for messages.

    Raises:
        DataError: If a column is neither a field of the record nor a target, or its field does not
            allow a value of it; names it and the nearest field.
    """
    foreign = [
        str(name)
        for name in pairs.columns
        if name not in outcome.model_fields and not is_target(name)
    ]
    if foreign:
        raise DataError(
            f"{where}: column {', '.join(map(repr, foreign))} is not a field of "
            f"{outcome.__name__}{did_you_mean(foreign[0], outcome.model_fields)} and not a "
            "<name>_target; declare it in the record, or drop it"
        )
    check_frame(pairs, outcome, where, is_whole=False)


def check_target_columns(targets: pd.DataFrame, design: Design, where: str) -> None:
    """Raise an error if stored targets lack the stratum of the noise floor or have lists in it.

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
            f"{where}: column {design.stratum!r} not found; the noise floor is computed by it. "
            f"Columns: {first_names(targets.columns)}"
        )
    for name in {*design.clusters, design.stratum}.intersection(targets.columns):
        strange = [cell for cell in targets[name] if pd.api.types.is_list_like(cell)]
        if strange:
            raise DataError(
                f"{where}: column {name!r} must have one label per row, got {shown(strange[0])}"
            )


def check_groupings(groupings: object, outcome: type[PairedOutcome], owner: str) -> None:
    """Raise an error for invalid groupings, or groupings by columns that the outcomes do not have.

    Args:
        groupings: Name of each further table to the columns that group it.
        outcome: The study's outcome record.
        owner: Name of the study, for messages.

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
                    f"{owner}: groupings[{name!r}] is by the column {column!r}, which is not a "
                    f"field of {outcome.__name__}{did_you_mean(column, outcome.model_fields)}; "
                    "declare it in the record"
                )
