"""Scored runs in the formats of others: a data set of the hub, a model's card, evaluation results.

References:
    huggingface.co/docs/hub/datasets-cards, /model-cards (`model-index`) and /eval-results
    (`.eval_results/*.yaml`), as huggingface_hub 2.4 writes them.
"""

import ast
import inspect
import math
import os
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.data.sources import is_hub_id
from surface_consistency.engine.compare.verdicts import Verdicts
from surface_consistency.engine.design import Report, ReportSettings
from surface_consistency.engine.features import make_features
from surface_consistency.engine.paired.tables import paired_rates
from surface_consistency.engine.report import cluster_of, study_of_runs
from surface_consistency.engine.study import Study
from surface_consistency.errors import (
    DataError,
    UndefinedMetricWarning,
    UnscoredWarning,
    UnsupportedVersionError,
)
from surface_consistency.runs.files import as_file_name, output_folder, subfolder, write_text
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas._record import Record
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.text import one_line

_RATES: Final = {
    "consistency": "Consistency",
    "first_accuracy": "Accuracy, {first}",
    "second_accuracy": "Accuracy, {second}",
    "accuracy_difference": "Accuracy, {second} less {first}",
}
_DATA: Final = "data/outcomes-00000-of-00001.parquet"
_MARK: Final = "Written by surface-consistency"


def export_dataset(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> list[Path]:
    """Write the outcomes of runs as a folder that `datasets.load_dataset` reads, with its card.

    Args:
        folders: Scored runs of one study.
        out: Folder of the data set; a card of another hand in it is not replaced.

    Returns:
        The files: the Parquet file of all outcomes, one row a pair and model, and `README.md`,
        which says what the columns are and how the runs were made.

    Raises:
        DataError: If a run cannot be read, or the folder holds a card that was not written here.
        ValueError: If no run is given, or runs of several studies.
    """
    study, runs = _runs(folders)
    home = output_folder(out)
    card, data = home / "README.md", home / _DATA
    _refuse_foreign(card)
    features = make_features(study.outcome)
    frame = pd.concat([run.outcomes for run in runs], ignore_index=True)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    table = pa.Table.from_pylist(rows, schema=features.arrow_schema)
    subfolder(home, data.parent.name)
    with atomic_path(data) as part:
        pq.write_table(table, part)
    write_text(card, _dataset_card(study, runs))
    return [data, card]


def export_model_index(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> list[Path]:
    """Write the results of each run as the `model-index` of a model card.

    Args:
        folders: Scored runs of one study.
        out: Folder; each model gets one of its own in it.

    Returns:
        A `README.md` a model, whose header `huggingface_hub.metadata_update` merges into the card
        of the model's repository.

    Raises:
        DataError: If a run cannot be read or asked the bundled sample, or a card is there that was
            not written here.
        ValueError: If no run is given, or runs of several studies.
    """
    from huggingface_hub import EvalResult, ModelCardData

    study, runs = _runs(folders)
    _refuse_samples(study, runs)
    first, second = study.design.conditions
    written = []
    for run, rows in _overall(study, runs):
        results = [
            EvalResult(
                task_type="text-generation",
                task_name=study.design.title,
                dataset_type=run.manifest.data.id,
                dataset_name=", ".join(
                    filter(None, (study.design.title, run.manifest.data.id, _part_asked(run)))
                ),
                dataset_config=_panel(study, row),
                dataset_revision=run.manifest.data.revision,
                metric_type=name,
                metric_name=title.format(first=first, second=second),
                metric_value=round(float(row[name]), 6),
                metric_args=_arguments(run, row, name),
            )
            for row in rows
            for name, title in _RATES.items()
            if not math.isnan(row[name])
        ]
        header = ModelCardData(model_name=run.label, eval_results=results).to_yaml()
        card = subfolder(output_folder(out), as_file_name(run.label)) / "README.md"
        _refuse_foreign(card)
        write_text(card, f"---\n{header}\n---\n\n{_MARK}: `{_in_code(run.signature)}`\n")
        written.append(card)
    return written


def export_eval_results(
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    source_url: str | None = None,
) -> list[Path]:
    """Write the results of each run as `.eval_results/*.yaml` of a model's repository.

    Args:
        folders: Scored runs of one study, on data of the hub.
        out: Folder; each model gets one of its own in it, whose content goes into the model's
            repository.
        source_url: Where the evaluation can be seen, such as an uploaded page.

    Returns:
        A file a model. A rate's `task_id` is "<study>_<rate>", with the wording before it where
        there are several; values are fractions.

    Raises:
        DataError: If a run cannot be read, or did not ask data of the hub, or only a part of them.
        UnsupportedVersionError: If huggingface-hub is older than 1.4, which brought them.
        ValueError: If no run is given, or runs of several studies.
    """
    study, runs = _runs(folders)
    _refuse_samples(study, runs)
    for run in runs:
        data = run.manifest.data
        if not is_hub_id(data.id) or data.revision is None:
            raise DataError(
                f"{run.folder.path} asked {data.id}, but evaluation results of the hub belong to a "
                "data set there (owner/name), at a commit; ask that, or export a model-index"
            )
        if part := _part_asked(run):
            raise DataError(
                f"{run.folder.path} asked {part} of {data.id}, but evaluation results of the hub "
                "are shown as those on the whole data set; ask all of it, or export a model-index, "
                "which says what was asked"
            )
    import huggingface_hub
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    try:
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    except ImportError as error:
        raise UnsupportedVersionError(
            "exporting evaluation results", "huggingface-hub", huggingface_hub.__version__, ">=1.4"
        ) from error

    written = []
    for run, rows in _overall(study, runs):
        entries = [
            EvalResultEntry(
                dataset_id=run.manifest.data.id,
                task_id="_".join(filter(None, (study.name, _panel(study, row), name))),
                value=round(float(row[name]), 6),
                dataset_revision=run.manifest.data.revision,
                date=run.manifest.created_at,
                source_url=source_url,
                source_name=None if source_url is None else "surface-consistency",
                notes=_note(run, row, name),
            )
            for row in rows
            for name in _RATES
            if not math.isnan(row[name])
        ]
        home = subfolder(output_folder(out), f"{as_file_name(run.label)}/.eval_results")
        path = home / f"surface-consistency-{study.name}.yaml"
        write_text(path, yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False))
        written.append(path)
    return written


def _runs(folders: Sequence[str | os.PathLike[str]]) -> tuple[Study | Verdicts, list[Run]]:
    """Read runs with their study."""
    study = study_of_runs(folders)
    return study, load_runs(folders, outcome=study.outcome)


def _refuse_samples(study: Study | Verdicts, runs: Sequence[Run]) -> None:
    """Keep results on a bundled sample from the hub, where they would pass for real ones."""
    for run in runs:
        if run.manifest.data.is_sample:
            raise DataError(
                f"{run.folder.path} asked the sample that comes with the package "
                f"({run.manifest.data.id}), whose numbers say nothing about a model; run "
                f"{study.name} on the data set (--source, or the study's own by default) and "
                "export that, or take --to dataset for the outcomes"
            )


def _part_asked(run: Run) -> str:
    """Say which part of the data a run asked; nothing where it asked all of them."""
    settings = run.manifest.settings
    parts = [f"{name} {settings[name]}" for name in ("limit", "sample") if settings.get(name)]
    return f"a part ({', '.join(parts)})" if parts else ""


def _overall(
    study: Study | Verdicts, runs: Sequence[Run]
) -> Iterator[tuple[Run, list[dict[Any, Any]]]]:
    """Compute the rates of each run, a row a panel, as the page has them."""
    settings = ReportSettings()
    cluster = cluster_of(study, settings, runs=runs)
    report = Report(runs=runs, design=study.design, settings=settings, cluster=cluster)
    with warnings.catch_warnings():
        # What is missing or undefined stands beside the numbers, or is left out.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        frame = paired_rates(report, report.design.keys())
    for run in runs:
        yield run, frame[frame["model"] == run.label].to_dict("records")


def _panel(study: Study | Verdicts, row: Mapping[Any, Any]) -> str | None:
    """Name what is never pooled, such as the wording."""
    facet = study.design.facet
    return None if facet is None else str(row[study.design.shown(facet)])


def _arguments(run: Run, row: Mapping[Any, Any], name: str) -> dict[str, Any]:
    """Say how sure a rate is, and by which rule."""
    low, high = (round(float(row[f"{name}_{end}"]), 6) for end in ("low", "high"))
    interval = {"confidence_level": 0.95, "low": low, "high": high}
    return {
        "judged_by": run.judged_by,
        "n_pairs": int(row["n"]),
        "n_clusters": int(row["n_clusters"]),
        **({} if math.isnan(low) or math.isnan(high) else interval),
    }


def _note(run: Run, row: Mapping[Any, Any], name: str) -> str:
    """Say the same in a sentence."""
    known = _arguments(run, row, name)
    interval = f", 95 % interval {known['low']} to {known['high']}" if "low" in known else ""
    return (
        f"{known['n_pairs']} pairs in {known['n_clusters']} clusters{interval}; judged by "
        f"{known['judged_by']}"
    )


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
    meanings = _field_docs(study.outcome)
    columns = "\n".join(
        f"| `{name}` | {_as_line(meanings.get(name, ''))} |" for name in study.outcome.model_fields
    )
    made = "\n".join(
        f"- {one_line(run.label)}: {len(run.outcomes):,} pairs; `{_in_code(run.signature)}`"
        for run in runs
    )
    first, second = study.design.conditions
    return f"""---
{header}
---

# Outcomes of {study.design.title}

One row a pair and model: {study.design.question}. `first_correct` is the verdict under the {first},
`second_correct` that under the {second}; a missing one could not be judged. Questions and names are
those of {", ".join(map(one_line, data))}, whose licence holds for them.

```python
from datasets import load_dataset

from surface_consistency import paired_by

outcomes = load_dataset("<this repository or folder>", split="test").to_pandas()
paired_by(outcomes, by=["model"])
```

| column | meaning |
| --- | --- |
{columns}

## Runs

{made}

{_MARK}.
"""


def _refuse_foreign(card: Path) -> None:
    """Keep a card that somebody else wrote."""
    if card.exists() and _MARK not in card.read_text(encoding="utf-8", errors="replace"):
        raise DataError(f"{card} was not written here and stays as it is; choose another --out")


def _field_docs(record: type[Record]) -> dict[str, str]:
    """Read the docstrings below the fields of a record and of those that it is made from."""
    docs: dict[str, str] = {}
    for kind in record.__mro__:
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        except (OSError, TypeError, SyntaxError):
            continue  # Made in memory, such as the record of someone's columns.
        for field, text in pairwise(getattr(body, "body", ())):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(doc))),
                ):
                    docs.setdefault(name, doc)
    return docs


def _as_line(text: str) -> str:
    """Set a text in a cell of a table."""
    return one_line(" ".join(text.split())).replace("|", "\\|")


def _in_code(text: str) -> str:
    """Set a text between backticks."""
    return one_line(text).replace("`", "'")
