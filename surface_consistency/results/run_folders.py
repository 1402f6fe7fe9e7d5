"""Read run folders of this package as results, with one row per scored question.

They are read like results of any tool, by the names of files in the folder, so that this reader
does not depend on the code that writes runs.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import parse_json, read_document, shown, within
from surface_consistency.results.tables import Part, content_of, text_or_none
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.schemas.run_format import check_run_format

_MANIFEST = "manifest.json"
_VERDICTS = "verdicts.parquet"
_TARGETS = "targets.parquet"
_KNOWN = ("target_id", "prompt_id", "question", "references", "prompt_key", "group")


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a run that was scored."""
    return (path / _MANIFEST).is_file() and (path / _VERDICTS).is_file()


def run_part(path: Path) -> Part:
    """Read the correctness labels of a run.

    Args:
        path: Its folder.

    Returns:
        The questions of the run by their ids, with study, model, prediction, accepted answers, and
        the fact and other columns of the plan. If a question has no label, its error is the reason.
        The metric is "correct".

    Raises:
        DataError: If the manifest does not name study and model, or the version of the folder is
            not supported.
    """
    file, made, planned = (within(path, name) for name in (_MANIFEST, _VERDICTS, _TARGETS))
    manifest = parse_json(read_document(file), str(file), remedy="copy the run again")
    if not isinstance(manifest, dict) or not {"study", "model"} <= manifest.keys():
        raise DataError(f"{file} is not a manifest with study and model; copy the run again")
    try:
        check_run_format(manifest.get("schema_version"))
    except ValueError as error:
        raise DataError(f"{file}: {error}") from error
    with open_parquet(made) as outcomes, open_parquet(planned) as targets:
        verdicts, plan = outcomes.read().to_pandas(), targets.read().to_pandas()
    plan = plan.drop_duplicates("target_id").set_index("target_id")
    if len(strange := verdicts["target_id"][~verdicts["target_id"].isin(plan.index)]):
        raise DataError(
            f"{made}: column 'target_id' has {shown(strange.iloc[0])}, which is not a target of "
            f"{planned}; copy the run again"
        )
    plan = plan.reindex(verdicts["target_id"]).reset_index(drop=True)
    parts = {
        "item": verdicts["target_id"].astype("str"),
        "prediction": text_or_none(verdicts["prediction"], blank=True),
        "error": text_or_none(verdicts["reason"]),
    }
    if "question" in plan:
        parts["question"] = text_or_none(plan["question"])
    if "references" in plan:
        parts["references"] = pd.Series([tuple(map(str, one)) for one in plan["references"]])
    content = content_of(parts.get("question"), parts.get("references"), len(verdicts))
    further = plan.drop(columns=[name for name in _KNOWN if name in plan])
    samples = pd.DataFrame(parts).assign(
        task=manifest["study"], model=manifest["model"], content=content
    )
    further = further.rename(columns={"item": "fact"})
    samples = samples.join(further.drop(columns=samples.columns, errors="ignore"))
    scores = verdicts["correct"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    return Part(samples, {"correct": (np.arange(len(samples)), scores)})
