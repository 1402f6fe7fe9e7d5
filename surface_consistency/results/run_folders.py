"""Runs of this package as results: one row a question that was judged."""

from pathlib import Path

import numpy as np
import pandas as pd

from surface_consistency.results.tables import Part, content_of, text_or_none

_KNOWN = ("target_id", "prompt_id", "question", "answers", "prompt_key", "group")


def is_run(path: Path) -> bool:
    """Tell the folder of a run that was scored."""
    if not path.is_dir():
        return False
    from surface_consistency.runs.folder import RunFolder

    folder = RunFolder(path)
    return folder.manifest.is_file() and folder.verdicts.is_file()


def run_part(path: Path) -> Part:
    """Read the verdicts of a run.

    Args:
        path: Its folder.

    Returns:
        Its questions by their ids, with study, model, prediction, accepted answers, and the fact
        and whatever else its plan says of a question; those without a verdict have the reason for
        an error. The metric is "correct".

    Raises:
        RunLogError: If the manifest breaks its schema.
    """
    from surface_consistency.runs.folder import RunFolder

    folder = RunFolder.open(path)
    manifest = folder.read_manifest()
    verdicts = pd.read_parquet(folder.verdicts)
    asked = pd.read_parquet(folder.targets).drop_duplicates("target_id").set_index("target_id")
    asked = asked.reindex(verdicts["target_id"]).reset_index(drop=True)
    parts = {
        "item": verdicts["target_id"].astype("str"),
        "prediction": text_or_none(verdicts["prediction"], blank=True),
        "error": text_or_none(verdicts["reason"]),
    }
    if "question" in asked:
        parts["question"] = text_or_none(asked["question"])
    if "answers" in asked:
        parts["references"] = pd.Series([tuple(map(str, one)) for one in asked["answers"]])
    content = content_of(parts.get("question"), parts.get("references"), len(verdicts))
    further = asked.drop(columns=[name for name in _KNOWN if name in asked])
    samples = pd.DataFrame(parts).assign(task=manifest.study, model=manifest.model, content=content)
    samples = samples.join(further.drop(columns=samples.columns, errors="ignore"))
    scores = verdicts["is_correct"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    return Part(samples, {"correct": (np.arange(len(samples)), scores)})
