"""Runs of this package as results: one row a question that was judged."""

from pathlib import Path

import numpy as np
import pandas as pd

from surface_consistency.models.results.tables import Part, content_of
from surface_consistency.runs.folder import RunFolder

_KNOWN = ("target_id", "prompt_id", "question", "answers", "prompt_key", "group")


def is_run(path: Path) -> bool:
    """Tell the folder of a run that was scored."""
    folder = RunFolder(path)
    return path.is_dir() and folder.manifest.is_file() and folder.verdicts.is_file()


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
    folder = RunFolder.open(path)
    manifest = folder.read_manifest()
    verdicts = pd.read_parquet(folder.verdicts)
    asked = pd.read_parquet(folder.targets).drop_duplicates("target_id").set_index("target_id")
    asked = asked.reindex(verdicts["target_id"]).reset_index(drop=True)
    parts = {
        "item": verdicts["target_id"].astype("str"),
        "task": manifest.study,
        "model": manifest.model,
        "prediction": verdicts["prediction"]
        .astype(object)
        .where(verdicts["prediction"].notna(), None),
        "error": verdicts["reason"].astype(object).where(verdicts["reason"].notna(), None),
    }
    if "question" in asked:
        parts["question"] = asked["question"].astype(object).where(asked["question"].notna(), None)
    if "answers" in asked:
        parts["references"] = pd.Series([tuple(map(str, one)) for one in asked["answers"]])
    parts["content"] = content_of(parts.get("question"), parts.get("references"), len(verdicts))
    further = {name: asked[name] for name in asked if name not in _KNOWN}
    samples = pd.DataFrame({**parts, **further})
    scores = verdicts["is_correct"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    return Part(samples, {"correct": (np.arange(len(samples)), scores)})
