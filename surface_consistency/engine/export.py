"""Export of scored runs as a data set of the hub: a Parquet file with its card.

References:
    huggingface.co/docs/hub/datasets-cards, as huggingface_hub 2.4 writes them.
"""

import ast
import inspect
import os
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.data.sources import is_hub_id
from surface_consistency.engine.compare.verdicts import Verdicts
from surface_consistency.engine.features import make_features
from surface_consistency.engine.report import study_of_runs
from surface_consistency.engine.study import Study
from surface_consistency.runs.files import output_folder, reject_foreign, subfolder, write_text
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas._record import Record
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.tables.markdown import (
    Markdown,
    markdown_code,
    markdown_rows,
    markdown_text,
)

_DATA: Final = "data/outcomes-00000-of-00001.parquet"
_MARK: Final = "Written by surface-consistency"


def export_dataset(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> list[Path]:
    """Write the outcomes of runs as a folder that `datasets.load_dataset` reads, with a card.

    Args:
        folders: Scored runs of one study.
        out: Folder of the data set; a card or data that were not written here are not replaced.

    Returns:
        The files: the Parquet file of all outcomes, one row per pair and model, and `README.md`,
        which describes the columns and the runs.

    Raises:
        DataError: If a run cannot be read, or a file would be replaced that was not written here.
        ValueError: If no run is given, or runs of several studies are given.
    """
    study = study_of_runs(folders)
    runs = load_runs(folders, outcome=study.records.outcome)
    home = output_folder(out)
    card, data = home / "README.md", home / _DATA
    is_known = card.is_file() and _MARK in card.read_text(encoding="utf-8", errors="replace")
    reject_foreign(home, [] if is_known else [card.name, _DATA])
    features = make_features(study.records.outcome)
    frame = pd.concat([run.outcomes for run in runs], ignore_index=True)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    table = pa.Table.from_pylist(rows, schema=features.arrow_schema)
    subfolder(home, data.parent.name)
    # The card is written first: it marks the data as written here.
    write_text(card, _dataset_card(study, runs))
    with atomic_path(data) as part:
        pq.write_table(table, part)
    return [data, card]


def _dataset_card(study: Study | Verdicts, runs: Sequence[Run]) -> str:
    """Write the card of outcomes."""
    from huggingface_hub import DatasetCardData

    data = dict.fromkeys(run.manifest.data.id for run in runs)
    header = DatasetCardData(
        pretty_name=f"Outcomes of {study.design.title}",
        tags=["surface-consistency", study.name],
        source_datasets=[name for name in data if is_hub_id(name)] or None,
        configs=[
            {
                "config_name": "outcomes",
                "default": True,
                "data_files": [{"split": "test", "path": "data/outcomes-*.parquet"}],
            }
        ],
    ).to_yaml()
    meanings = _field_docs(study.records.outcome)
    columns = markdown_rows(
        ("column", "meaning"),
        (
            (markdown_code(name), Markdown(" ".join(meanings.get(name, "").split())))
            for name in study.records.outcome.model_fields
        ),
    )
    made = "\n".join(
        f"- {markdown_code(run.label)}: {len(run.outcomes):,} pairs; {markdown_code(run.signature)}"
        for run in runs
    )
    title, question, first, second = map(
        markdown_text, (study.design.title, study.design.question, *study.design.conditions)
    )
    return f"""---
{header}
---

# Outcomes of {title}

One row per pair and model: {question}. `first_correct` is the correctness label (0/1) under the
{first}, `second_correct` that under the {second}; a missing label means no score. Questions and
names are from {", ".join(map(markdown_code, data))} and have its licence.

```python
from datasets import load_dataset

import surface_consistency as sc

outcomes = load_dataset("<this repository or folder>", split="test").to_pandas()
sc.paired(outcomes)
```

{columns}

## Runs

{made}

{_MARK}.
"""


def _field_docs(record: type[Record]) -> dict[str, str]:
    """Read the docstrings of the fields of a record and of its base classes."""
    docs: dict[str, str] = {}
    for kind in record.__mro__:
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        except (OSError, TypeError, SyntaxError):
            continue  # Created at run time, such as the record of imported columns.
        for field, text in pairwise(getattr(body, "body", ())):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(doc))),
                ):
                    docs.setdefault(name, doc)
    return docs
