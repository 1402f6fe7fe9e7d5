"""Runs of a study as results, for comparisons of models.

Examples are the same weights in 8 and 16 bits, before and after fine-tuning, unlearning or editing,
or at several checkpoints. They are compared like other results. This module adds checks that files
of other tools do not allow (rule, prompts and decoding must be the same), and groups, clusters and
the noise floor of the study.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from surface_consistency.analysis.labels import label_list
from surface_consistency.engine.report import cluster_of, study_of_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.engine.study import Study
from surface_consistency.errors import DataError, RunError
from surface_consistency.metrics.forms.repeats import repeats_by
from surface_consistency.results.columns import ResultColumns, need_labels
from surface_consistency.results.frame import Results, read_results
from surface_consistency.results.tables import COLUMNS
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import PairedOutcome, Prompt, read_jsonl

_SIDE: Final = "_target"
_CONDITION: Final = "condition"
_NOISE: Final = ("flip_rate", "flip_rate_low", "flip_rate_high")
_NO_VERDICT: Final = ("agreement", "labelling_sheet", "labelling_sample", "labelling_seed")
"""Scoring settings that do not change a score."""
_COUNTS: Final = ("n_repeated", "n_verdict_flips", "n_text_changes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunResults:
    """Results of runs of one study."""

    results: Results
    """One row per question and run, as returned by `read_results`; with a column of lists of labels
    for each group of the study, and a column for `cluster`."""

    runs: Mapping[str, Run]
    """The runs, by the names of the models."""

    study: Study
    """The study of the runs."""

    by: Sequence[str]
    """Columns that make groups."""

    cluster: str
    """Clustering column of the intervals."""

    cluster_note: str
    """Description of the clusters."""

    notes: Sequence[str]
    """Notes on the comparison, in sentences."""

    def noise(self) -> pd.DataFrame:
        """Gather the noise floors of the runs, from samples if prompts have several.

        Returns:
            One row per run and stratum: model, metric, n, flip_rate with its bounds.
        """
        parts = []
        frame = self.results.frame
        for label, run in self.runs.items():
            own = frame[frame["model"] == label]
            if "sample" in own and own["sample"].nunique() > 1:
                table = repeats_by(own, prompt=["fact", "form"], repeat="sample", score="score",
                                   cluster=self.cluster)  # fmt: skip
                renamed = {f"test_retest_{name}": name for name in _NOISE} | {"n_prompts": "n"}
                parts.append(table.rename(columns=renamed).assign(model=label, metric="correct"))
                continue
            if (floor := run.checks.get("noise_floor")) is None:
                continue
            strata = [name for name in floor if name not in {"model", *_NOISE, *_COUNTS}]
            names = [
                f"{label} ({', '.join(map(str, row))})" if len(floor) > 1 else label
                for row in floor[strata].itertuples(index=False, name=None)
            ]
            parts.append(
                floor[list(_NOISE)].assign(model=names, metric="correct", n=floor["n_repeated"])
            )
        empty = pd.DataFrame(columns=["model", "metric", "n", *_NOISE])
        shown = [part[list(empty)] for part in parts]
        return pd.concat(shown, ignore_index=True) if parts else empty


def read_runs(
    folders: Sequence[str | os.PathLike[str]], columns: ResultColumns | None = None
) -> RunResults:
    """Read scored runs of one study as results.

    Args:
        folders: Their folders.
        columns: Names of the runs (`names`), by default their labels, and the clustering column,
            by default the first cluster of the study.

    Returns:
        The results, including questions that only one run has.

    Raises:
        SourceNotFoundError: If a folder is not a run folder.
        ValueError: If they are of different studies, a folder or label is given twice, the cluster
            is not one of the study, or a column is named that runs do not have.
        DataError: If a run was not scored, has no answers, or its questions have other accepted
            answers.
        RunError: If rule, prompts or decoding differ; names them and gives a remedy.
    """
    columns = columns or ResultColumns()
    if flags := sorted(columns.model_fields_set - {"names", "cluster", "metrics"}):
        raise ValueError(
            f"`{'`, `'.join(flags)}` cannot be set for runs, whose columns are fixed; omit them"
        )
    study = study_of_runs(folders)
    if not isinstance(study, Study):
        raise DataError(
            f"{folders[0]} contains correctness labels without prompts and answers; give the "
            "original files to `surface-consistency compare`"
        )
    runs = load_runs(folders, outcome=study.records.outcome)
    need_labels(columns, len(runs))
    labels = columns.names or tuple(run.label for run in runs)
    if len({*labels}) < len(labels):
        raise ValueError(f"`names` must be distinct; got {', '.join(labels)}")
    notes = [note for run in runs[1:] for note in _check_comparable(runs[0], run)]
    paths = [run.folder.path for run in runs]
    results = read_results(paths, ResultColumns(names=labels, metrics=columns.metrics))
    groups, by = _groups(runs, study)
    named = _cluster(study, columns.cluster, groups)
    # In results an item is a prompt, and the item of a study is the fact of its prompts.
    cluster = "fact" if named == "item" else named
    frame = results.frame
    described = groups.reindex(frame["item"])
    added = {name: pd.Series(described[name].map(label_list).array) for name in by}
    added |= {name: added[name].map("; ".join) for name in by if name in COLUMNS}
    if frame["question"].isna().all():
        texts = pd.concat([_questions(run) for run in runs])
        added["question"] = texts[~texts.index.duplicated()].reindex(frame["item"]).array
    if named != "item":
        known = pd.Series(described[cluster].array)
        added[cluster] = known.where(known.notna(), frame["fact"]).astype(str)
    of_models = {str((run.manifest.model, run.manifest.runner)) for run in runs}
    if len(of_models) == 1 < len(runs):
        notes.append(
            "the manifests of the runs describe the same model, so that flips may be only noise"
        )
    return RunResults(
        results=replace(results, frame=frame.assign(**added)),
        runs=dict(zip(labels, runs, strict=True)),
        study=study,
        by=by,
        cluster=cluster,
        cluster_note=f"{study.design.clusters[named]}, as defined by the study",
        notes=tuple(dict.fromkeys(notes)),
    )


def _questions(run: Run) -> pd.Series:
    """Return the question of each target, for plans without questions: the end of its prompt."""
    targets, _ = run.folder.read_plan()
    prompts = read_jsonl(run.folder.prompts, Prompt) if run.folder.prompts.is_file() else ()
    texts = targets["prompt_id"].map({prompt.id: _last_part(prompt) for prompt in prompts})
    return texts.astype(object).where(texts.notna(), None).set_axis(targets["target_id"])


def _last_part(prompt: Prompt) -> str:
    """Return the end of a prompt, below its demonstrations."""
    text = prompt.text if prompt.text is not None else (prompt.messages or ())[-1].content
    return text.strip().rpartition("\n\n")[2]


def _check_comparable(before: Run, after: Run) -> Iterator[str]:
    """Raise an error if scoring, prompts or decoding differ; yield notes if that is unknown."""
    one, other = (
        {}
        if run.scoring is None
        else {"scored by": run.judged_by, **run.scoring.settings} | dict.fromkeys(_NO_VERDICT)
        for run in (before, after)
    )
    differing = _unequal(one, other) if one and other else ""
    if differing:
        raise RunError(
            f"{before.folder.path} and {after.folder.path} are scored differently "
            f"({differing}), so that a flip may be due to scoring; score both in the same way with "
            f"`surface-consistency score {after.folder.path}` and the options of the first"
        )
    without = [run for run in (before, after) if not run.folder.prompts.is_file()]
    for run in without:
        yield f"{run.folder.path} contains predictions made elsewhere, whose prompts are unknown"
    if without:
        return
    remedy = "run one again with the settings of the other"
    keys = [_prompt_keys(run) for run in (before, after)]
    both = keys[0].index.intersection(keys[1].index)
    changed = both[(keys[0][both] != keys[1][both]).to_numpy()]
    if len(changed):
        settings = _unequal(before.varying, after.varying) or "no setting differs"
        raise RunError(
            f"{len(changed):,} of {len(both):,} prompts differ between the runs, such as that of "
            f"{changed[0]!r} ({settings}), so that a flip may be due to prompts; {remedy}"
        )
    decoded = _unequal(before.manifest.decoding, after.manifest.decoding)
    if decoded:
        raise RunError(
            f"the runs decode differently ({decoded}), so that a flip may be due to decoding; "
            f"{remedy}"
        )


def _prompt_keys(run: Run) -> pd.Series:
    """Read the hash of the prompt of each target."""
    targets = run.folder.read_plan()[0].drop_duplicates("target_id")
    return targets.set_index("target_id")["prompt_key"]


def _unequal(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """List the entries in which two mappings differ."""
    names = [n for n in sorted(first.keys() | second.keys()) if first.get(n) != second.get(n)]
    return "; ".join(f"{name} {first.get(name)!r} and {second.get(name)!r}" for name in names)


def _groups(runs: Sequence[Run], study: Study) -> tuple[pd.DataFrame, list[str]]:
    """Return the groups and clusters of the pairs of each target; one row per target."""
    design = study.design
    grouped = [column for columns in design.groupings.values() for column in columns]
    named = dict.fromkeys([*filter(None, (design.facet,)), *grouped])
    # The condition of a target is in a separate column.
    by = [name for name in named if name not in PairedOutcome.model_fields]
    wanted = list(dict.fromkeys([*by, *(name for name in design.clusters if name != "item")]))
    names = dict(zip(("first", "second"), design.conditions, strict=True))
    parts = []
    for run in runs:
        _, pairs = run.folder.read_plan()
        outcomes = run.outcomes.set_index("pair")
        for column in (name for name in pairs.columns if name.endswith(_SIDE)):
            side = column.removesuffix(_SIDE)
            rows = pairs.loc[pairs[column].notna(), ["pair", column]]
            of_pairs = outcomes.reindex(rows["pair"])
            part = of_pairs[wanted].set_axis(rows[column].to_numpy(), axis=0)
            if side == "first":
                # Columns of the redirect do not describe the title.
                part[[name for name in design.second_condition_columns if name in wanted]] = None
            label = f"{side}_condition"
            condition = of_pairs[label].to_numpy() if label in of_pairs else names.get(side, side)
            parts.append(part.assign(**{_CONDITION: condition}))
    described = pd.concat(parts)
    return described[~described.index.duplicated()], [_CONDITION, *by]


def _cluster(study: Study, named: Sequence[str], groups: pd.DataFrame) -> str:
    """Choose the clustering column."""
    if len(named) > 1:
        raise ValueError(f"`cluster` must be one column for runs; got {', '.join(named)}")
    if named:
        return cluster_of(study, ReportSettings(cluster=named[0]))
    clusters = study.design.clusters
    known = (name for name in clusters if name == "item" or groups[name].notna().all())
    return next(known, "item")
