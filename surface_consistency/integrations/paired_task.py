"""A study as a task for another tool: its prompts, the scoring of replies, and the metrics."""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.choices import add_choices, whole_plan
from surface_consistency.engine.judging.judges import Judge, judge_targets
from surface_consistency.engine.plan import Plan
from surface_consistency.engine.settings import JudgeScoring, OptionSettings, StudySettings
from surface_consistency.engine.study import Study, find_study, make_judge, make_plan, pair_outcomes
from surface_consistency.errors import DataError, DataWarning
from surface_consistency.metrics import PAIRED_RATES, paired_by
from surface_consistency.models.reasoning import separate_stored
from surface_consistency.models.runner import Runner
from surface_consistency.runs.answers import answer_frame, join_answers
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas import Generation, GenerationParams, Prompt
from surface_consistency.schemas.settings import made_from

Verdicts = Mapping[str, bool | None]
"""Correctness labels by target id: True, False, or None if the answer is unscored."""

_RATES: Final = {
    "consistency": "consistency",
    "accuracy_{first}": "first_accuracy",
    "accuracy_{second}": "second_accuracy",
    "accuracy_difference": "accuracy_difference",
    "only_{first}": "negative_flip_rate",
    "only_{second}": "positive_flip_rate",
    "signed_alignment": "signed_alignment",
}
"""Name of each number, and its rate in `metrics.PAIRED_RATES`."""
_ENDS: Final = ("", "_low", "_high")

_Prompts = Mapping[str, tuple[Prompt, GenerationParams]]
"""Prompts and their decoding parameters by document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One prompt of a study, and its facts that are scored."""

    id: str
    """Identifier of the prompt."""

    question: str | None
    """The question; None if a prompt contains several."""

    answers: tuple[str, ...]
    """Accepted answers of the first fact of the prompt."""

    facts: tuple[str, ...]
    """Facts of the prompt."""

    cluster: str
    """Cluster of the intervals, such as the subject."""


class PairedTask:
    """A study on its data, for tools that send prompts one by one and aggregate numbers at the end.

    Documents are ordered by cluster, so that the first N documents contain complete facts. The
    order of the clusters is pseudo-random by their names, so that these are a sample of all.

    Args:
        study: The study.
        data: The data that the study's `load` returned.
        settings: Settings of the prompts; None for the study's defaults.
        scoring: Settings of the scoring; None for the study's defaults.
        tool: Name of the tool that sends the prompts, for messages.
        runner: The runner, for studies whose prompts depend on the model's context; None if it is
            unknown.
        folder: Folder of the log of an LLM judge; None for a temporary one.

    Raises:
        DataError: If no prompts are left, or the settings select several panels, such as two
            templates, whose pairs are not pooled.
    """

    def __init__(
        self,
        study: Study,
        data: Any,  # noqa: ANN401 - returned by `Study.load`
        settings: StudySettings | None = None,
        *,
        scoring: JudgeScoring | None = None,
        tool: str = "another tool",
        runner: Runner | None = None,
        folder: Path | None = None,
    ) -> None:
        self.study = study
        self._folder = folder or Path(tempfile.gettempdir(), f"surface-consistency-{uuid4().hex}")
        self._data = data
        self._scoring = scoring or study.records.scoring()
        self._runner = runner or _ExternalModel(tool)
        self._plans: dict[tuple[tuple[str, object], ...], tuple[Plan, _Prompts]] = {}
        self.settings = settings or study.records.settings()
        self._plan, _ = self._planned(None, None)
        self.settings = self._plan.settings or self.settings
        self._scoring = study.records.judged(self._scoring, self.settings.model_dump(mode="json"))
        self.pairs = self._plan.pairs
        facet = study.design.facet
        if facet is not None and self.pairs[facet].nunique() > 1:
            facets = ", ".join(map(repr, self.pairs[facet].unique()))
            raise DataError(
                f"these settings select {facet} {facets}, whose pairs are not pooled; "
                "use a separate task for each"
            )
        self.cluster = next(iter(study.design.clusters))
        """Column of the clusters of intervals."""
        self._last: tuple[dict[str, bool | None], dict[str, float]] | None = None

    @classmethod
    def load(
        cls,
        study: str | Study,
        options: Mapping[str, object] = MappingProxyType({}),
        *,
        data: Any = None,  # noqa: ANN401 - returned by `Study.load`, or a source
        defaults: Mapping[str, object] = MappingProxyType({}),
        tool: str = "another tool",
        runner: Runner | None = None,
        folder: Path | None = None,
    ) -> "PairedTask":
        """Load a study and its data by name.

        Args:
            study: The study, or its name as for `find_study`.
            options: Fields of the study's source, settings and scoring records by name, such as
                {"source": "sample", "shots": 5, "rule": "boundary"}.
            data: The data that the study's `load` returned, or the option `source`; None to load
                the data by the options.
            defaults: Values of options that are not in `options`, used if the study has the option.
            tool: As for the class.
            runner: As for the class.
            folder: As for the class.

        Returns:
            The task.

        Raises:
            PluginError: If the study does not exist.
            ValueError: If an option is unknown (the message names the nearest) or invalid.
            DataError: If the data cannot be read.
        """
        chosen = find_study(study) if isinstance(study, str) else study
        if isinstance(data, str | os.PathLike):
            options, data = {**options, "source": os.fspath(data)}, None
        kinds = (chosen.records.source, chosen.records.settings, chosen.records.scoring)
        fields = {name for kind in kinds for name in kind.model_fields}
        options = {name: defaults[name] for name in defaults if name in fields} | {**options}
        source, settings, scoring = made_from(kinds, options, chosen.name, strict=False)
        data = chosen.load(source) if data is None else data
        return cls(chosen, data, settings, scoring=scoring, tool=tool, runner=runner, folder=folder)

    @property
    def shots(self) -> int | None:
        """Number of demonstrations before each question; None in studies without."""
        return getattr(self.settings, "shots", None)

    @cached_property
    def targets(self) -> pd.DataFrame:
        """The scored targets: those of the plan that are in a pair, in the order of documents."""
        sides = ["first_target", "second_target"]
        in_pairs = pd.unique(self.pairs[sides].to_numpy().ravel())
        place = pd.Series(range(len(in_pairs)), index=in_pairs)
        targets = self._plan.items.assign(
            _cluster=self._cluster_of(self._plan.items),
            _place=place.reindex(self._plan.items["target_id"]).to_numpy(),
        ).dropna(subset=["_place"])
        order = {name: _sort_key(name) for name in targets["_cluster"].unique()}
        targets["_drawn"] = targets["_cluster"].map(order)
        targets["_first"] = targets.groupby("prompt_id", sort=False)["_place"].transform("min")
        ordered = targets.sort_values(["_drawn", "_first", "_place"], kind="stable")
        return ordered.drop(columns=["_place", "_drawn", "_first"]).reset_index(drop=True)

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The documents, in order."""
        made = []
        for prompt_id, part in self.targets.groupby("prompt_id", sort=False):
            questions = part["question"].tolist() if "question" in part else [None]
            made.append(
                Document(
                    id=str(prompt_id),
                    question=questions[0] if len(part) == 1 else None,
                    answers=tuple(part["references"].iloc[0]),
                    facts=tuple(part["item"]),
                    cluster=str(part["_cluster"].iloc[0]),
                )
            )
        return tuple(made)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that `numbers` returns, in order."""
        rates = [f"{name}{end}" for name in self._rates for end in _ENDS]
        counts = ("p_value", "n_pairs", "n_clusters", "n_unscored", "n_cut")
        return (*rates, *counts, *self._further)

    @cached_property
    def higher_is_better(self) -> dict[str, bool]:
        """Whether a higher number is better, for the numbers with a direction."""
        first_only, second_only = (name for name in self._rates if name.startswith("only_"))
        better = dict.fromkeys(self._rates, True) | {first_only: False, second_only: False}
        del better["accuracy_difference"]
        of_pairs = {f"{name}{end}": is_so for name, is_so in better.items() for end in _ENDS}
        further = [name for name in self._further if name.startswith("accuracy_")]
        return of_pairs | dict.fromkeys(further, True)

    def prompt(
        self, document_id: str, *, chat: bool | None = None, shots: int | None = None
    ) -> Prompt:
        """Return the prompt of a document.

        All members of a pair have the same demonstrations.

        Args:
            document_id: The document.
            chat: Whether it is a conversation rather than text; None for the study's settings.
            shots: Number of demonstrations, if the study has any; None for the study's settings.

        Returns:
            The prompt, with options if answers are read as multiple choice.
        """
        return self._planned(chat, shots)[1][document_id][0]

    def params(self, document_id: str, *, chat: bool | None = None) -> GenerationParams:
        """Return the decoding parameters of a document.

        Args:
            document_id: The document.
            chat: As for `prompt`.

        Returns:
            The parameters.
        """
        return self._planned(chat, None)[1][document_id][1]

    def judge(self, replies: Mapping[str, str | None]) -> pd.DataFrame:
        """Score replies as the study does.

        Args:
            replies: The replies by document id; None if there is no answer.

        Returns:
            One row per target of these documents, with the columns of the study's verdict record.

        Raises:
            DataError: If it is unknown whether replies without a tag of reasoning are answers.
        """
        texts = pd.Series(dict(replies), dtype=object)
        return self._score(
            separate_stored(texts, self.settings.with_reasoning(GenerationParams())), list(replies)
        )

    def judge_generations(self, generations: Iterable[Generation]) -> pd.DataFrame:
        """Score the generations of a runner, whose reasoning is already separated.

        Args:
            generations: One per evaluated document.

        Returns:
            As `judge`.
        """
        answers = answer_frame(generations)
        return self._score(answers, answers["prompt_id"].tolist())

    def outcomes(self, verdicts: pd.DataFrame, *, model: str) -> pd.DataFrame:
        """Return the outcomes frame, without pairs of which one or both members were not evaluated.

        Args:
            verdicts: The frame that `judge` returned.
            model: Label of the model.

        Returns:
            One row per pair, with the columns of the study's outcome record.
        """
        is_evaluated = self._count_evaluated(frozenset(verdicts["target_id"])) == 2
        whole = self.pairs[is_evaluated].reset_index(drop=True)
        return pair_outcomes(self.study, whole, verdicts, model=model)

    def numbers(self, verdicts: Verdicts) -> dict[str, float]:
        """Compute the metrics of the pairs: values and bounds of `metrics.paired_by`.

        Args:
            verdicts: Correctness labels by target id; targets not in it were not evaluated.

        Returns:
            By name: consistency, accuracy_<condition> and only_<condition> of both conditions,
            accuracy_difference (second minus first), signed_alignment, each with `_low` and
            `_high`, the bounds of its 95 % confidence interval over clusters; p_value; n_pairs, the
            counted pairs; n_clusters; n_unscored, pairs with an unscored answer; n_cut, pairs of
            which only one member was evaluated; and those of `PageSpec.metrics`, which exclude
            incomplete clusters. NaN if no pairs are left.

        Warns:
            DataWarning: If only one member of a pair was evaluated.
            UnscoredWarning: If answers are unscored.
            UndefinedMetricWarning: If a number is NaN.
        """
        given = dict(verdicts)
        if self._last is not None and self._last[0] == given:
            return self._last[1]
        n_members = self._count_evaluated(frozenset(given))
        n_cut = int(np.count_nonzero(n_members == 1))
        clusters = self.pairs[self.cluster]
        is_whole = (n_members == 2) & ~clusters.isin(clusters[n_members < 2]).to_numpy()
        if n_cut:
            n_clusters = clusters[n_members == 1].nunique()
            further = (
                f"; numbers clustered by {self.study.design.clusters[self.cluster]} also exclude "
                f"the incomplete ones ({n_clusters})"
            )
            warnings.warn(
                f"{n_cut} of {n_cut + int(np.count_nonzero(n_members == 2))} pairs are incomplete: "
                "only one member was evaluated, such as with a limit on documents; they are "
                f"excluded{further if self._further else ''}",
                DataWarning,
                stacklevel=2,
            )
        whole = self.pairs[n_members == 2]
        results = dict.fromkeys(self.names, float("nan")) | {"n_cut": float(n_cut), "n_pairs": 0.0}
        if len(whole):
            results |= self._counted(whole, given)
        if self._further and is_whole.any():
            results |= self.study.report.metrics(_with_verdicts(self.pairs[is_whole], given))
        self._last = (given, results)
        return results

    def _counted(self, pairs: pd.DataFrame, verdicts: Verdicts) -> dict[str, float]:
        """Compute the numbers of complete pairs."""
        row = paired_by(
            _with_verdicts(pairs, verdicts),
            cluster=self.cluster,
            rates={rate: PAIRED_RATES[rate] for rate in self._rates.values()},
        ).iloc[0]
        return {
            **{
                f"{name}{end}": float(row[f"{rate}{end}"])
                for name, rate in self._rates.items()
                for end in _ENDS
            },
            "p_value": float(row["p_value"]),
            "n_pairs": float(row["n"]),
            "n_clusters": float(row["n_clusters"]),
            "n_unscored": float(row["n_missing"]),
        }

    @cached_property
    def _rates(self) -> dict[str, str]:
        """Return the rates by names that contain the names of the two conditions."""
        first, second = (
            str(self.pairs[f"{side}_condition"].iloc[0])
            if f"{side}_condition" in self.pairs
            else self.study.design.conditions[place].replace(" ", "_")
            for place, side in enumerate(("first", "second"))
        )
        return {name.format(first=first, second=second): rate for name, rate in _RATES.items()}

    @cached_property
    def _further(self) -> dict[str, float]:
        """Names of the further numbers of the study, computed without labels."""
        return dict(self.study.report.metrics(_with_verdicts(self.pairs, {})))

    def _count_evaluated(self, targets: frozenset[str]) -> npt.NDArray[np.int64]:
        """Count the evaluated members of each pair."""
        sides = [self.pairs[f"{side}_target"].isin(targets) for side in ("first", "second")]
        n_members: npt.NDArray[np.int64] = np.sum(sides, axis=0)
        return n_members

    def _cluster_of(self, targets: pd.DataFrame) -> pd.Series:
        """Return the cluster of each target, that of its fact."""
        if self.cluster in targets:
            return targets[self.cluster].astype(str)
        facts = self.pairs.drop_duplicates("item").set_index("item")[self.cluster]
        return targets["item"].map(facts).astype(str)

    def _score(self, replies: pd.DataFrame, documents: Sequence[str]) -> pd.DataFrame:
        """Score the replies to documents; targets without reply are unscored."""
        targets = self._by_document.loc[list(documents)].reset_index(drop=True)
        return judge_targets(
            self._judge, join_answers(targets, replies), self.study.records.verdict
        )

    @cached_property
    def _by_document(self) -> pd.DataFrame:
        """The targets by document."""
        return self.targets.drop(columns=["_cluster"]).set_index("prompt_id", drop=False)

    @cached_property
    def _judge(self) -> Judge:
        """The judge; its folder is created when it first writes to its log."""
        return make_judge(self.study, self._scoring, RunFolder(self._folder))

    def _planned(self, chat: bool | None, shots: int | None) -> tuple[Plan, _Prompts]:
        """Return the plan and prompts of a prompt format, computed once."""
        fields = type(self.settings).model_fields
        changed: dict[str, object] = {}
        if chat is not None:
            changed |= {"chat": chat} if "chat" in fields else {}
            changed |= {"completion": not chat} if "completion" in fields else {}
        if shots is not None and "shots" in fields:
            changed["shots"] = shots
        now = {name: getattr(self.settings, name) for name in changed}
        key = () if changed == now else tuple(changed.items())
        if key not in self._plans:
            settings = self.settings.model_copy(update=changed)
            plan = make_plan(self.study, self._data, settings, self._runner)
            if isinstance(settings, OptionSettings) and settings.read == "multiple-choice":
                plan = add_choices(plan, settings, whole_plan(self.study, self._data, settings))
            planned = plan.settings or settings
            prompts = {
                prompt.id: (prompt, planned.with_reasoning(group.params))
                for group in plan.groups.values()
                for prompt in group.prompts
            }
            self._plans[key] = plan, prompts
        return self._plans[key]


def to_verdicts(judged: pd.DataFrame) -> dict[str, bool | None]:
    """Convert the frame that `PairedTask.judge` returned to labels by target id.

    Args:
        judged: One row per target.

    Returns:
        The labels.
    """
    known = judged["correct"].astype(object).where(judged["correct"].notna(), None)
    return dict(zip(judged["target_id"], known, strict=True))


def _with_verdicts(pairs: pd.DataFrame, verdicts: Verdicts) -> pd.DataFrame:
    """Add the labels of both members to each pair."""
    columns = {
        f"{side}_correct": pd.array(
            [verdicts.get(name) for name in pairs[f"{side}_target"]], dtype="boolean"
        )
        for side in ("first", "second")
    }
    return pairs.reset_index(drop=True).assign(**columns)


class _ExternalModel(Runner):
    """Represents a model that another tool queries."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fingerprint(self) -> dict[str, Any]:
        """Return the name of the tool."""
        return {"runner": self.name}


def _sort_key(name: str) -> str:
    """Return a pseudo-random sort key of a cluster, determined by its name."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
