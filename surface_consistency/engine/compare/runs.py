"""Two runs side by side: the same questions, answered by two models.

What a study compares within a model, this compares between models: the same weights in 8 and in 16
bits, before and after fine-tuning, unlearning or editing, at two checkpoints. `results` compares
the scores of any runs; this stands beside it since it refuses other prompts, decoding and rules,
keeps the groups, clusters and noise floor of the study, and tells what was lost from what was
gained.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pandas as pd

from surface_consistency.engine.compare.table import (
    Comparison,
    TableSettings,
    VerdictColumns,
    compare_verdicts,
)
from surface_consistency.engine.compare.verdicts import (
    RunsSettings,
    RunsSource,
    label_list,
    write_verdicts,
)
from surface_consistency.engine.design import ReportSettings
from surface_consistency.engine.report import cluster_of, study_of_runs
from surface_consistency.engine.study import Study
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import read_frame
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import PairedOutcome, Prompt, read_jsonl

_SIDE: Final = "_target"
_CONDITION: Final = "condition"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRuns(Comparison):
    """Result of `read_two_runs`.

    One row of the frame is a question: pair_id, fact_id (what intervals take whole), question, both
    verdicts and predictions, and the columns of `by` with tuples of labels.
    """

    rates: ClassVar[Sequence[str]] = (
        "negative_flip_rate",
        "positive_flip_rate",
        "consistency_given_first_correct",
        "accuracy_difference",
    )
    """What was lost and gained of all questions, and kept of those known."""

    runs: tuple[Run, Run]
    """The runs."""

    labels: Mapping[str, Mapping[str, str]]
    """Wording of the labels of a group, by its column."""

    clusters: str
    """What intervals take whole, in the plural."""

    differing: Mapping[str, tuple[Any, Any]]
    """Settings in which the runs differ, by name."""

    def tables(self, settings: TableSettings) -> list[list[dict[str, Any]]]:
        """Compute what is printed; see `Comparison.tables`.

        Returns:
            The rows of the table and, without groups, those of a table by condition.
        """
        chosen = [settings]
        if not settings.by and self.frame[_CONDITION].nunique() > 1:
            # What is lost under one condition, such as a deletion, may be meant to be lost.
            chosen.append(settings.model_copy(update={"by": (_CONDITION,)}))
        return [compare_verdicts(self.frame, one, rates=self.rates) for one in chosen]

    def to_folder(
        self, frame: pd.DataFrame, out: str | os.PathLike[str], by: Sequence[str]
    ) -> RunFolder:
        """Make a scored run folder of two runs; see `Comparison.to_folder`."""
        (before, after), (first, second) = self.runs, self.conditions
        noise = [
            run.checks["noise_floor"].drop(columns="model", errors="ignore").assign(run=name)
            for run, name in zip(self.runs, self.conditions, strict=True)
            if "noise_floor" in run.checks
        ]
        differing = pd.DataFrame(
            [(name, str(one), str(other)) for name, (one, other) in self.differing.items()],
            columns=["setting", "first", "second"],
        )
        judged = before.scoring or Scoring(judged_by=before.judged_by)
        return write_verdicts(
            frame,
            out,
            RunsSettings(
                by=tuple(by),
                first=first,
                second=second,
                wording={
                    f"{name}:{label}": wording
                    for name in by
                    for label, wording in self.labels.get(name, {}).items()
                },
                repeat=0,
            ),
            origin=self.origin,
            model=f"{second} against {first}",
            source=RunsSource(first=str(before.folder.path), second=str(after.folder.path)),
            runner={"runner": "runs", "first": before.signature, "second": after.signature},
            scoring=Scoring(judged_by=judged.judged_by, settings=judged.settings),
            checks={
                "settings_that_differ": differing,
                **({"noise_of_runs": pd.concat(noise, ignore_index=True)} if noise else {}),
            },
        )


def read_two_runs(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    columns: VerdictColumns | None = None,
    *,
    common: bool = False,
) -> TwoRuns:
    """Put the verdicts of two runs side by side, question by question.

    Args:
        first: Folder of the run that is compared with, such as that before fine-tuning.
        second: Folder of the other run.
        columns: What to call the runs, which is their labels by default, and what intervals take as
            a whole, a cluster of the study and by default its first.
        common: Whether questions that one run asked alone are left out, rather than refused.

    Returns:
        The pairs.

    Raises:
        SourceNotFoundError: If a folder is not that of a run.
        ValueError: If they are of different studies, one folder twice, or the cluster is none.
        DataError: If a run was not judged, or holds no answers of its own.
        RunMismatchError: If questions, accepted answers, prompts, decoding or rule differ; names
            them, and says what to do.
    """
    columns = columns or VerdictColumns()
    study = study_of_runs([first, second])
    if not isinstance(study, Study):
        raise DataError(
            f"{first} holds verdicts without prompts and answers; give the files of verdicts "
            "themselves to `surface-consistency compare`"
        )
    before, after = runs = load_runs([first, second], outcome=study.outcome)
    _refuse_other_rules(before, after)
    frames = [_judged(run, study) for run in runs]
    notes = _refuse_other_questions(before, after, frames, common=common)
    both = frames[0].add_suffix("_first").join(frames[1].add_suffix("_second"), how="inner")
    notes += _refuse_other_prompts(before, after, both)
    described, by = _groups(before, study)
    described = described.reindex(both.index)
    whole = _cluster(study, columns.cluster, described)
    facts = both["fact_id_first"].astype(str)
    questions = {
        "pair_id": both.index.astype(str),
        "fact_id": facts if whole == "fact_id" else described[whole].fillna(facts).astype(str),
        "question": both["question_first"],
        "first_correct": both["is_correct_first"],
        "second_correct": both["is_correct_second"],
        "first_prediction": both["prediction_first"],
        "second_prediction": both["prediction_second"],
        **{name: described[name].map(_label_tuple) for name in by},
    }
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
        frame=pd.DataFrame(questions).reset_index(drop=True),
        conditions=(columns.first or before.label, columns.second or after.label),
        origin=before.manifest.data.id,
        by=by,
        notes=notes,
        runs=(before, after),
        labels={name: study.design.labels[name] for name in by if name in study.design.labels},
        clusters=study.design.clusters[whole],
        differing=differing,
    )


def _judged(run: Run, study: Study) -> pd.DataFrame:
    """Read targets and verdicts of a run, one row a target, by target_id."""
    targets, _ = run.folder.read_plan()
    remedy = f"judge the run with `surface-consistency score {run.folder.path}`"
    verdicts = read_frame(run.folder.verdicts, study.verdict, remedy=remedy)
    columns = ["fact_id", "answers", "prompt_id", "prompt_key", "group"]
    frame = targets.set_index("target_id")[columns].copy()
    frame["question"] = _questions(run, targets).to_numpy(dtype=object)
    return frame.join(verdicts.set_index("target_id")[["is_correct", "prediction"]])


def _questions(run: Run, targets: pd.DataFrame) -> pd.Series:
    """Find what each target was asked: its question, else the end of its prompt."""
    if "question" in targets:
        texts = targets["question"]
    else:
        prompts = read_jsonl(run.folder.prompts, Prompt) if run.folder.prompts.is_file() else ()
        texts = targets["prompt_id"].map({prompt.id: _last_part(prompt) for prompt in prompts})
    texts = texts.astype(object)
    return texts.where(texts.notna(), None)


def _last_part(prompt: Prompt) -> str:
    """Return the end of a prompt, below its demonstrations."""
    text = prompt.text if prompt.text is not None else (prompt.messages or ())[-1].content
    return text.strip().rpartition("\n\n")[2]


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """List the entries in which two mappings differ."""
    return {
        name: (first.get(name), second.get(name))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    }


def _refuse_other_rules(before: Run, after: Run) -> None:
    """Refuse runs that were judged differently."""
    first, second = before.scoring, after.scoring
    if first is None or second is None:
        return
    differing = [
        f"{name} {one!r} and {other!r}"
        for name, (one, other) in _differences(first.settings, second.settings).items()
    ]
    if first.judged_by != second.judged_by:
        differing.insert(0, f"judged by {first.judged_by} and {second.judged_by}")
    if differing:
        raise RunMismatchError(
            f"{before.folder.path} and {after.folder.path} are judged differently "
            f"({'; '.join(differing)}), so that a flip may be one of judges; judge one as "
            f"the other with `surface-consistency score {after.folder.path}` and the options of "
            "the first"
        )


def _refuse_other_questions(
    before: Run, after: Run, frames: Sequence[pd.DataFrame], *, common: bool
) -> list[str]:
    """Refuse runs of other questions, or other accepted answers; say what is left out."""
    first, second = (frame.index for frame in frames)
    both = first.intersection(second)
    notes = []
    alone = "; ".join(
        f"{len(ids):,} are in {run.folder.path} alone, such as {ids[0]!r}"
        for run, ids in ((before, first.difference(second)), (after, second.difference(first)))
        if len(ids)
    )
    if alone and not (common and len(both)):
        remedy = "run both on the same data"
        if len(both):
            remedy = f"compare the {len(both):,} that both asked with --common"
        raise RunMismatchError(
            f"the runs did not ask the same questions: {alone}"
            f"{_settings_that_differ(before, after)}; {remedy}, or run one again with the "
            "settings of the other"
        )
    if alone:
        notes.append(f"compared are the {len(both):,} questions that both runs asked: {alone}")
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
    differing = _differences(before.manifest.decoding, after.manifest.decoding)
    if differing:
        one, other = next(iter(differing.values()))
        raise RunMismatchError(
            f"the runs decode differently ({', '.join(differing)}: {one} and {other}), so that a "
            "flip may be one of decoding; run one again with the settings of the other"
        )
    return []


def _settings_that_differ(before: Run, after: Run) -> str:
    """Name the settings and data in which runs differ, for a message."""
    differing = [
        f"{name.removeprefix('settings.')} {one!r} and {other!r}"
        for name, (one, other) in before.manifest.differences(after.manifest).items()
        if name.split(".")[0] in ("settings", "data") and name != "data.digest"
    ]
    return f" ({', '.join(differing)})" if differing else ""


def _groups(run: Run, study: Study) -> tuple[pd.DataFrame, list[str]]:
    """Describe each target by the groups and clusters of its pairs; one row a target."""
    _, pairs = run.folder.read_plan()
    design = study.design
    grouped = [column for columns in design.groupings.values() for column in columns]
    named = dict.fromkeys([*filter(None, (design.facet,)), *grouped])
    # What tells the condition of a target apart from others stands in a column of its own.
    by = [name for name in named if name not in PairedOutcome.model_fields]
    wanted = list(dict.fromkeys([*by, *(name for name in design.clusters if name != "fact_id")]))
    names = dict(zip(("first", "second"), design.conditions, strict=True))
    outcomes = run.outcomes.set_index("pair_id")
    parts = []
    for column in (name for name in pairs.columns if name.endswith(_SIDE)):
        side = column.removesuffix(_SIDE)
        rows = pairs.loc[pairs[column].notna(), ["pair_id", column]]
        of_pairs = outcomes.reindex(rows["pair_id"])
        part = of_pairs[wanted].set_axis(rows[column].to_numpy(), axis=0)
        if side == "first":
            # What describes the name of a redirect says nothing of the title beside it.
            part[[name for name in design.second_condition_columns if name in wanted]] = None
        label = f"{side}_condition"
        condition = of_pairs[label].to_numpy() if label in of_pairs else names.get(side, side)
        parts.append(part.assign(**{_CONDITION: condition}))
    described = pd.concat(parts)
    return described[~described.index.duplicated()], [_CONDITION, *by]


def _cluster(study: Study, cluster: str | None, described: pd.DataFrame) -> str:
    """Choose what intervals take as a whole."""
    if cluster is not None:
        return cluster_of(study, ReportSettings(cluster=cluster))
    clusters = study.design.clusters
    known = (name for name in clusters if name == "fact_id" or described[name].notna().all())
    return next(known, "fact_id")


def _label_tuple(value: object) -> tuple[str, ...]:
    """Read the labels of a cell, as a key."""
    return tuple(label_list(value))
