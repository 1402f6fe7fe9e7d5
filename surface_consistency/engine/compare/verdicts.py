"""Import of correctness labels that were made elsewhere, as an outcomes frame with a page.

The page is that of a paired study, with squares, conditional rates and both answers of each pair.
The page of several models (`results_page`) does not have these.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from pydantic import create_model

from surface_consistency.analysis.labels import label_list
from surface_consistency.engine.design import VERDICTS, Design
from surface_consistency.engine.paired.answers import TEXTS
from surface_consistency.engine.paired.page import PageSpec
from surface_consistency.engine.run import make_manifest
from surface_consistency.engine.settings import StudyRecords
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.runs.files import write_text
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import make_frame, write_frame
from surface_consistency.schemas import DataSource, PairedOutcome
from surface_consistency.schemas._record import Items

_TEXTS: Final = ("question", *TEXTS)
_QUESTION: Final = "the same facts under two conditions, scored elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """How the outcomes of a folder of imported correctness labels are compared and shown."""

    name: ClassVar[str] = VERDICTS
    """Name in the manifest."""

    design: Design
    """How the conditions are compared."""

    records: StudyRecords
    """The record of a pair, with a column of labels for each group."""

    report: ClassVar[PageSpec] = PageSpec()
    """The functions that make tables and page."""

    @classmethod
    def of(cls, design: Design, texts: Collection[str]) -> "Verdicts":
        """Make the record of a pair.

        Args:
            design: How the conditions are compared.
            texts: Columns; only the question and both answers are kept.

        Returns:
            The design and the record.
        """
        groups = [name for columns in design.groupings.values() for name in columns]
        columns: dict[str, Any] = dict.fromkeys(groups, (Items[str], ...))
        columns |= {name: (str | None, ...) for name in _TEXTS if name in texts}
        outcome = create_model("Outcome", __base__=PairedOutcome, **columns)
        return cls(design=design, records=StudyRecords(outcome=outcome))

    @classmethod
    def read(cls, folder: RunFolder) -> "Verdicts":
        """Read the design from the manifest of a folder, and the columns from its outcomes."""
        design = Design.model_validate(folder.read_manifest().design, strict=False)
        if not folder.outcomes.is_file():
            return cls.of(design, ())
        with open_parquet(folder.outcomes, groups=slice(0)) as file:
            return cls.of(design, file.schema_arrow.names)


def import_verdicts(
    frame: pd.DataFrame,
    out: str | os.PathLike[str],
    *,
    origin: str,
    first: str,
    second: str,
    by: Sequence[str] = (),
    model: str = "the model",
    **design: Any,  # noqa: ANN401
) -> RunFolder:
    """Make a scored run folder from an outcomes frame, for `report_runs`.

    Args:
        frame: One row per pair, with the columns pair, item (the cluster), first_correct and
            second_correct; cells of `by` are a label or a list of labels.
            Other columns of the outcome record are optional, as are question, first_prediction and
            second_prediction.
        out: Folder of the run; created if needed, and its files are replaced.
        origin: Source of the labels, for the manifest.
        first: Name of the first condition.
        second: Name of the second condition.
        by: Columns that make groups.
        model: Label in tables.
        design: Further fields of `Design`, such as `title` and `clusters`.

    Returns:
        The run folder.

    Raises:
        ColumnNotFoundError: If a column of `by` is missing.
        ValidationError: If a field of `design` is not a field of `Design`.
        DataError: If a column of `by` has the name of a column of outcomes, there is no pair, or
            the folder contains a run of a study.
    """
    _reject_groups(frame, by)
    if frame.empty:
        raise DataError(f"{origin} contains no pair; pass labels with at least one pair")
    only = "{} only correct".format
    compared = Design(
        **{"title": "Verdicts", "question": _QUESTION} | design,
        conditions=(first, second),
        cells=("both correct", only(first), only(second), "neither correct"),
        groupings={f"by_{name}": (name,) for name in by},
    )
    record = Verdicts.of(compared, list(map(str, frame))).records.outcome
    columns = {field: frame[field] for field in record.model_fields if field in frame} | {
        "study": VERDICTS,
        "model": model,
        "pair": frame["pair"].astype(str),
        "item": frame["item"].astype(str),
        "first_condition": first,
        "second_condition": second,
        **{column: frame[column].map(label_list) for column in by},
        **{name: frame[name].where(frame[name].notna(), None) for name in _TEXTS if name in frame},
    }
    outcomes = make_frame(columns, record)
    folder = RunFolder.create(out)
    if folder.targets.exists() or folder.prompts.exists():
        raise DataError(
            f"{folder.path} contains a run, which the labels would replace; choose another `out`"
        )
    cells = outcomes.astype(str).where(outcomes.notna(), np.nan)
    digest = int(pd.util.hash_pandas_object(cells, index=False).sum())
    data = DataSource(id=origin, revision=None, digest=f"{digest:016x}", n_questions=len(outcomes))
    manifest = make_manifest(
        VERDICTS, data, model=model, settings={}, runner={"runner": "verdicts"}
    )
    manifest = manifest.model_copy(update={"design": compared.model_dump(mode="json")})
    with folder.replacing_scores(Scoring(judged_by="correctness labels as given")) as part:
        write_frame(part.outcomes, outcomes, record)
        write_text(part.manifest, manifest.model_dump_json(indent=2) + "\n")
    return folder


def _reject_groups(frame: pd.DataFrame, by: Sequence[str]) -> None:
    """Raise an error for a grouping column that is missing, reserved, or invalid as a file name."""
    for name in by:
        if name not in frame:
            raise ColumnNotFoundError(
                f"column {name!r} not found; pass a column to group by. Columns: {list(frame)}"
            )
        if name in PairedOutcome.model_fields:
            raise DataError(f"column {name!r} is reserved and cannot make groups; rename it")
        if {"/", "\0"} & set(name):
            raise DataError(
                f"column {name!r} cannot be the name of a file; rename it, or omit `out`"
            )
