"""Two runs side by side: the same questions, answered by two models.

What a study compares within a model, this compares between models: the same weights in 8 and in 16
bits, before and after fine-tuning, unlearning or editing, at two checkpoints.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.report import study_of_runs
from surface_consistency.engine.study import Study
from surface_consistency.engine.verdicts import RunsSettings, RunsSource, import_verdicts
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import read_frame
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import PairedOutcome, Prompt, read_jsonl

__all__ = ["TwoRuns", "import_two_runs", "read_two_runs"]

_SIDE: Final = "_target"
_CONDITION: Final = "condition"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRuns:
    """Result of `read_two_runs`."""

    runs: tuple[Run, Run]
    """The runs."""

    frame: pd.DataFrame
    """One row a question: pair_id, fact_id (what intervals take whole), question, both verdicts and
    predictions, and the columns of `by` with tuples of labels."""

    by: tuple[str, ...]
    """Columns that make groups."""

    labels: Mapping[str, Mapping[str, str]]
    """Wording of the labels of a group, by its column."""

    clusters: str
    """What intervals take whole, in the plural."""

    differing: Mapping[str, tuple[Any, Any]]
    """Settings in which the runs differ, by name."""

    notes: Sequence[str]
    """What a reader must know before the numbers, in sentences."""

    @property
    def names(self) -> tuple[str, str]:
        """What the runs are called, in the order given."""
        return self.runs[0].label, self.runs[1].label


def read_two_runs(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    cluster: str | None = None,
    common: bool = False,
) -> TwoRuns:
    """Put the verdicts of two runs side by side, question by question.

    Args:
        first: Folder of the run that is compared with, such as that before fine-tuning.
        second: Folder of the other run.
        cluster: What intervals take as a whole, a cluster of the study; None for its first.
        common: Whether questions that one run asked alone are left out, rather than refused.

    Returns:
        The pairs.

    Raises:
        SourceNotFoundError: If a folder is not that of a run.
        ValueError: If they are of different studies, one folder twice, or `cluster` is none.
        DataError: If a run was not judged, or holds no answers of its own.
        RunMismatchError: If questions, accepted answers, prompts, decoding or rule differ; names
            them, and says what to do.
    """
    study = study_of_runs([first, second])
    if not isinstance(study, Study):
        raise DataError(
            f"{first} holds verdicts without prompts and answers; give the files of verdicts "
            "themselves to `surface-consistency compare`"
        )
    before, after = load_runs([first, second], outcome=study.outcome)
    _refuse_other_rules(before, after)
    frames = [_judged(run, study) for run in (before, after)]
    notes = _refuse_other_questions(before, after, frames, common=common)
    both = frames[0].add_suffix("_first").join(frames[1].add_suffix("_second"), how="inner")
    notes += _refuse_other_prompts(before, after, both)
    described, by = _groups(before, study)
    described = described.reindex(both.index)
    whole = _cluster(study, cluster, described)
    facts = both["fact_id_first"].astype(str)
    columns: dict[str, Any] = {
        "pair_id": both.index.astype(str),
        "fact_id": facts if whole == "fact_id" else described[whole].fillna(facts).astype(str),
        "question": both["question_first"],
        "first_correct": both["is_correct_first"],
        "second_correct": both["is_correct_second"],
        "first_prediction": both["prediction_first"],
        "second_prediction": both["prediction_second"],
    }
    columns |= {name: described[name].map(_label_tuple) for name in by}
    differing = {
        name: values
        for name, values in before.manifest.differences(after.manifest).items()
        if name.split(".")[0] in ("model", "runner")
    }
    if not any(name.startswith("runner.") for name in differing):
        notes.append(
            "the runs tell of no difference between their models, so that flips may be noise alone"
        )
    return TwoRuns(
        runs=(before, after),
        frame=pd.DataFrame(columns).reset_index(drop=True),
        by=tuple(by),
        labels={name: study.design.labels[name] for name in by if name in study.design.labels},
        clusters=study.design.clusters[whole],
        differing=differing,
        notes=notes,
    )


def import_two_runs(
    compared: TwoRuns,
    out: str | os.PathLike[str],
    *,
    first: str,
    second: str,
    by: Sequence[str],
) -> RunFolder:
    """Make a scored run folder of two runs, for `report_runs`.

    Args:
        compared: The pairs.
        out: Folder of the new run.
        first: What to call the first run.
        second: What to call the second run.
        by: Columns that make groups.

    Returns:
        The run folder.

    Raises:
        ColumnNotFoundError: If a column of `by` is not there.
        DataError: If there is no pair, or the folder holds a run of a study.
    """
    before, after = compared.runs
    settings = RunsSettings(
        by=tuple(by),
        first=first,
        second=second,
        wording={
            f"{name}:{label}": wording
            for name in by
            for label, wording in compared.labels.get(name, {}).items()
        },
        repeat=0,
    )
    noise = [
        run.checks["noise_floor"].drop(columns="model", errors="ignore").assign(run=name)
        for run, name in zip(compared.runs, (first, second), strict=True)
        if "noise_floor" in run.checks
    ]
    differing = pd.DataFrame(
        [(name, str(one), str(other)) for name, (one, other) in compared.differing.items()],
        columns=["setting", "first", "second"],
    )
    judged = before.scoring or Scoring(judged_by=before.judged_by)
    return import_verdicts(
        compared.frame,
        out,
        origin=before.manifest.data.id,
        first=first,
        second=second,
        by=by,
        model=f"{second} against {first}",
        runs=settings,
        source=RunsSource(first=str(before.folder.path), second=str(after.folder.path)),
        runner={"runner": "runs", "first": before.signature, "second": after.signature},
        scoring=Scoring(judged_by=judged.judged_by, settings=judged.settings),
        checks={
            "settings_that_differ": differing,
            **({"noise_of_runs": pd.concat(noise, ignore_index=True)} if noise else {}),
        },
    )


def _judged(run: Run, study: Study) -> pd.DataFrame:
    """Read targets and verdicts of a run, one row a target, by target_id."""
    targets, _ = run.folder.read_plan()
    remedy = f"judge the run with `surface-consistency score {run.folder.path}`"
    verdicts = read_frame(run.folder.verdicts, study.verdict, remedy=remedy)
    columns = ["fact_id", "answers", "prompt_id", "prompt_key", "group"]
    frame = targets.set_index("target_id")[columns].copy()
    frame["question"] = _questions(run, targets).to_numpy(dtype=object)
    held = verdicts.set_index("target_id")[["is_correct", "prediction"]]
    return frame.join(held)


def _questions(run: Run, targets: pd.DataFrame) -> pd.Series:
    """Find what each target was asked: its question, else the end of its prompt."""
    if "question" in targets:
        return targets["question"].astype(object).where(targets["question"].notna(), None)
    asked: dict[str, str] = {}
    if run.folder.prompts.is_file():
        for prompt in read_jsonl(run.folder.prompts, Prompt):
            messages = prompt.messages or ()
            text = prompt.text if prompt.text is not None else messages[-1].content
            asked[prompt.id] = text.strip().rpartition("\n\n")[2]
    return targets["prompt_id"].map(asked).astype(object).where(lambda found: found.notna(), None)


def _refuse_other_rules(before: Run, after: Run) -> None:
    """Refuse runs that were judged differently."""
    first, second = before.scoring, after.scoring
    if first is None or second is None:
        return
    names = sorted(first.settings.keys() | second.settings.keys())
    told = [
        f"{name} {first.settings.get(name)!r} and {second.settings.get(name)!r}"
        for name in names
        if first.settings.get(name) != second.settings.get(name)
    ]
    if first.judged_by != second.judged_by:
        told.insert(0, f"judged by {first.judged_by} and {second.judged_by}")
    if told:
        raise RunMismatchError(
            f"{before.folder.path} and {after.folder.path} are judged differently "
            f"({'; '.join(told)}), so that a flip may be one of judges; judge one as the other "
            f"with `surface-consistency score {after.folder.path}` and the options of the first"
        )


def _refuse_other_questions(
    before: Run, after: Run, frames: Sequence[pd.DataFrame], *, common: bool
) -> list[str]:
    """Refuse runs of other questions, or other accepted answers; say what is left out."""
    first, second = (frame.index for frame in frames)
    alone = [first.difference(second), second.difference(first)]
    notes = []
    if len(alone[0]) or len(alone[1]):
        told = "; ".join(
            f"{len(ids):,} are in {run.folder.path} alone, such as {ids[0]!r}"
            for run, ids in zip((before, after), alone, strict=True)
            if len(ids)
        )
        shared = len(first) - len(alone[0])
        if not common or not shared:
            remedy = (
                f"compare the {shared:,} that both asked with --common"
                if shared
                else "run both on the same data"
            )
            raise RunMismatchError(
                f"the runs did not ask the same questions: {told}"
                f"{_settings_that_differ(before, after)}; {remedy}, or run one again with the "
                "settings of the other"
            )
        notes.append(f"compared are the {shared:,} questions that both runs asked: {told}")
    both = first.intersection(second)
    one, other = (frame.loc[both, "answers"].map(_label_tuple) for frame in frames)
    changed = both[(one != other).to_numpy()]
    if len(changed):
        raise RunMismatchError(
            f"the accepted answers of {len(changed):,} questions differ between the runs, such as "
            f"those of {changed[0]!r}: the data changed in between; run both on the same revision "
            "of the data (--revision)"
        )
    return notes


def _refuse_other_prompts(before: Run, after: Run, both: pd.DataFrame) -> list[str]:
    """Refuse runs that put the same questions in other words, or decoded in another way."""
    without = [run for run in (before, after) if not run.folder.prompts.is_file()]
    if without:
        return [
            f"{run.folder.path} holds predictions made elsewhere, whose prompts are not known"
            for run in without
        ]
    changed = both.index[(both["prompt_key_first"] != both["prompt_key_second"]).to_numpy()]
    if len(changed):
        raise RunMismatchError(
            f"{len(changed):,} of {len(both):,} prompts differ between the runs, such as that of "
            f"{changed[0]!r}{_settings_that_differ(before, after)}, so that a flip may be one of "
            "prompts; run one again with the settings of the other"
        )
    first, second = before.manifest.decoding, after.manifest.decoding
    if differing := sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    ):
        raise RunMismatchError(
            f"the runs decode differently ({', '.join(differing)}: "
            f"{first.get(differing[0])} and {second.get(differing[0])}), so that a flip may be one "
            "of decoding; run one again with the settings of the other"
        )
    return []


def _settings_that_differ(before: Run, after: Run) -> str:
    """Name the settings and data in which runs differ, for a message."""
    found = before.manifest.differences(after.manifest)
    told = [
        f"{name.removeprefix('settings.')} {one!r} and {other!r}"
        for name, (one, other) in found.items()
        if name.split(".")[0] in ("settings", "data") and name != "data.digest"
    ]
    return f" ({', '.join(told)})" if told else ""


def _groups(run: Run, study: Study) -> tuple[pd.DataFrame, list[str]]:
    """Describe each target by the groups and clusters of its pairs; one row a target."""
    _, pairs = run.folder.read_plan()
    grouped = [column for columns in study.design.groupings.values() for column in columns]
    named = dict.fromkeys([*filter(None, (study.design.facet,)), *grouped])
    # What tells the condition of a target apart from others stands in a column of its own.
    by = [name for name in named if name not in PairedOutcome.model_fields]
    whole = [name for name in study.design.clusters if name != "fact_id"]
    wanted = list(dict.fromkeys([*by, *whole]))
    names = {"first": study.design.conditions[0], "second": study.design.conditions[1]}
    outcomes = run.outcomes.set_index("pair_id")
    parts = []
    for column in (name for name in pairs.columns if name.endswith(_SIDE)):
        side = column.removesuffix(_SIDE)
        rows = pairs.loc[pairs[column].notna(), ["pair_id", column]]
        held = outcomes.reindex(rows["pair_id"])
        part = held[wanted].set_axis(rows[column].to_numpy(), axis=0)
        if side == "first":
            # What describes the name of a redirect says nothing of the title beside it.
            part[[name for name in study.design.second_condition_columns if name in wanted]] = None
        told = f"{side}_condition"
        condition = held[told].to_numpy() if told in held else names.get(side, side)
        parts.append(part.assign(**{_CONDITION: condition}))
    described = pd.concat(parts)
    described = described[~described.index.duplicated()]
    return described, [_CONDITION, *by]


def _cluster(study: Study, cluster: str | None, described: pd.DataFrame) -> str:
    """Choose what intervals take as a whole."""
    clusters = study.design.clusters
    if cluster is None:
        known = (name for name in clusters if name == "fact_id" or described[name].notna().all())
        return next(known, "fact_id")
    if cluster not in clusters:
        raise ValueError(
            f"--cluster must be one of {', '.join(clusters)} for runs of {study.name}; got "
            f"{cluster!r}"
        )
    return cluster


def _label_tuple(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - a cell
    """Read the labels of a cell."""
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(str(item) for item in value)
    return () if value is None or pd.isna(value) or value == "" else (str(value),)
