"""A study laid out for another tool: what it asks, how a reply is judged, and the numbers."""

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
"""Verdicts by target id: right, wrong, or None where an answer could not be judged."""

_RATES: Final = {
    "consistency": "consistency",
    "accuracy_{first}": "first_accuracy",
    "accuracy_{second}": "second_accuracy",
    "accuracy_difference": "accuracy_difference",
    "only_{first}": "negative_flip_rate",
    "only_{second}": "positive_flip_rate",
    "signed_alignment": "signed_alignment",
}
"""Name of a number to the rate of `metrics.PAIRED_RATES` that it is."""
_ENDS: Final = ("", "_low", "_high")

_Prompts = Mapping[str, tuple[Prompt, GenerationParams]]
"""Prompts and their decoding by document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One prompt of a study, and what is judged of its answer."""

    id: str
    """Identifier of the prompt."""

    question: str | None
    """The question; None where a prompt asks several."""

    answers: tuple[str, ...]
    """Accepted answers of the first fact that the prompt asks."""

    facts: tuple[str, ...]
    """Facts that the prompt asks."""

    cluster: str
    """What intervals take as a whole, such as the subject."""


class PairedTask:
    """A study on its data, for tools that ask prompts one by one and add up numbers at the end.

    Documents come cluster by cluster, so that the first so many of them are whole facts, and the
    clusters in an order drawn by their names, so that these are a sample of all.

    Args:
        study: The study.
        data: What its `load` returned.
        settings: How to ask; None for the study's defaults.
        scoring: How to judge; None for the study's defaults.
        tool: Who asks, for messages.
        runner: Who asks, for studies whose prompts depend on what fits a model; None where that is
            not known.
        folder: Where a judge that is a model keeps its log; None for a temporary one.

    Raises:
        DataError: If nothing is left to ask, or the settings ask for several panels, such as two
            templates, whose pairs are never pooled.
    """

    def __init__(
        self,
        study: Study,
        data: Any,  # noqa: ANN401 - what `Study.load` returned
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
        self._runner = runner or _Outside(tool)
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
                f"these settings ask under {facet} {facets}, whose pairs are never pooled; "
                "ask each in a task of its own"
            )
        self.cluster = next(iter(study.design.clusters))
        """Column of what intervals take as a whole."""
        self._last: tuple[dict[str, bool | None], dict[str, float]] | None = None

    @classmethod
    def load(
        cls,
        study: str | Study,
        options: Mapping[str, object] = MappingProxyType({}),
        *,
        data: Any = None,  # noqa: ANN401 - what `Study.load` returned, or a source
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
            data: What the study's `load` returned, or the option `source`; None to go by the
                options.
            defaults: Options that count where `options` do not have them, if the study does.
            tool: As for the class.
            runner: As for the class.
            folder: As for the class.

        Returns:
            The task.

        Raises:
            PluginError: If there is no such study.
            ValueError: If an option is unknown, with the nearest known one, or its value is wrong.
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
        """Demonstrations before each question; None in studies without."""
        return getattr(self.settings, "shots", None)

    @cached_property
    def targets(self) -> pd.DataFrame:
        """What is judged: the targets of the plan that stand in a pair, in the documents' order."""
        sides = ["first_target", "second_target"]
        in_pairs = pd.unique(self.pairs[sides].to_numpy().ravel())
        place = pd.Series(range(len(in_pairs)), index=in_pairs)
        targets = self._plan.items.assign(
            _cluster=self._cluster_of(self._plan.items),
            _place=place.reindex(self._plan.items["target_id"]).to_numpy(),
        ).dropna(subset=["_place"])
        order = {name: _drawn(name) for name in targets["_cluster"].unique()}
        targets["_drawn"] = targets["_cluster"].map(order)
        targets["_first"] = targets.groupby("prompt_id", sort=False)["_place"].transform("min")
        ordered = targets.sort_values(["_drawn", "_first", "_place"], kind="stable")
        return ordered.drop(columns=["_place", "_drawn", "_first"]).reset_index(drop=True)

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """What is asked, in order."""
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
        return (*rates, *counts, *self._without_verdicts)

    @cached_property
    def higher_is_better(self) -> dict[str, bool]:
        """Whether more of a number is better, of those of which it can be said."""
        first_only, second_only = (name for name in self._rates if name.startswith("only_"))
        better = dict.fromkeys(self._rates, True) | {first_only: False, second_only: False}
        del better["accuracy_difference"]
        of_pairs = {f"{name}{end}": is_so for name, is_so in better.items() for end in _ENDS}
        further = [name for name in self._without_verdicts if name.startswith("accuracy_")]
        return of_pairs | dict.fromkeys(further, True)

    def prompt(
        self, document_id: str, *, chat: bool | None = None, shots: int | None = None
    ) -> Prompt:
        """Give the prompt of a document.

        All members of a pair have the same demonstrations.

        Args:
            document_id: The document.
            chat: Whether it is a conversation rather than text; None for the study's settings.
            shots: Demonstrations, in studies that have some; None for the study's settings.

        Returns:
            The prompt, with options where answers are read as multiple choice.
        """
        return self._planned(chat, shots)[1][document_id][0]

    def params(self, document_id: str, *, chat: bool | None = None) -> GenerationParams:
        """Say how the answer to a document is decoded.

        Args:
            document_id: The document.
            chat: As for `prompt`.

        Returns:
            The decoding.
        """
        return self._planned(chat, None)[1][document_id][1]

    def judge(self, replies: Mapping[str, str | None]) -> pd.DataFrame:
        """Judge replies as the study does.

        Args:
            replies: What was written, by document id; None where there is no answer.

        Returns:
            One row a target of these documents, columns of the study's verdict record.

        Raises:
            DataError: If nobody says whether replies without a tag of reasoning are answers.
        """
        texts = pd.Series(dict(replies), dtype=object)
        return self._judged(
            separate_stored(texts, self.settings.with_reasoning(GenerationParams())), list(replies)
        )

    def judge_generations(self, generations: Iterable[Generation]) -> pd.DataFrame:
        """Judge what a runner wrote, whose reasoning is separated already.

        Args:
            generations: One for each document that was asked.

        Returns:
            As `judge`.
        """
        answers = answer_frame(generations)
        return self._judged(answers, answers["prompt_id"].tolist())

    def outcomes(self, verdicts: pd.DataFrame, *, model: str) -> pd.DataFrame:
        """Lay verdicts out as the outcomes frame, without pairs of which a member was not asked.

        Args:
            verdicts: What `judge` returned.
            model: Label of the model.

        Returns:
            One row a pair, columns of the study's outcome record.
        """
        is_asked = self._n_asked(frozenset(verdicts["target_id"])) == 2
        whole = self.pairs[is_asked].reset_index(drop=True)
        return pair_outcomes(self.study, whole, verdicts, model=model)

    def numbers(self, verdicts: Verdicts) -> dict[str, float]:
        """Compute what the pairs tell: values and bounds of `metrics.paired_by`.

        Args:
            verdicts: Verdicts by target id; a target that is not there was not asked.

        Returns:
            By name: consistency, accuracy_<condition> and only_<condition> of both conditions,
            accuracy_difference (second less first), signed_alignment, each with `_low` and `_high`,
            the bounds of its 95 % interval over clusters; p_value; n_pairs, those that
            count; n_clusters; n_unscored, pairs with an answer that could not be judged; n_cut,
            pairs of which only one member was asked; and those of `PageSpec.metrics`, which
            take no cluster that was cut apart. NaN where nothing is left to count.

        Warns:
            DataWarning: If pairs were cut apart.
            UnscoredWarning: If answers could not be judged.
            UndefinedMetricWarning: If a number is NaN.
        """
        given = dict(verdicts)
        if self._last is not None and self._last[0] == given:
            return self._last[1]
        n_asked = self._n_asked(frozenset(given))
        n_cut = int(np.count_nonzero(n_asked == 1))
        clusters = self.pairs[self.cluster]
        is_whole = (n_asked == 2) & ~clusters.isin(clusters[n_asked < 2]).to_numpy()
        if n_cut:
            n_clusters = clusters[n_asked == 1].nunique()
            further = (
                f"; numbers that take {self.study.design.clusters[self.cluster]} as wholes leave "
                f"out those cut apart too ({n_clusters})"
            )
            warnings.warn(
                f"{n_cut} of {n_cut + int(np.count_nonzero(n_asked == 2))} pairs were cut apart: "
                "only one of their members was asked, as a limit on documents does; they are left "
                f"out{further if self._without_verdicts else ''}",
                DataWarning,
                stacklevel=2,
            )
        whole = self.pairs[n_asked == 2]
        results = dict.fromkeys(self.names, float("nan")) | {"n_cut": float(n_cut), "n_pairs": 0.0}
        if len(whole):
            results |= self._counted(whole, given)
        if self._without_verdicts and is_whole.any():
            results |= self.study.report.metrics(_with_verdicts(self.pairs[is_whole], given))
        self._last = (given, results)
        return results

    def _counted(self, pairs: pd.DataFrame, verdicts: Verdicts) -> dict[str, float]:
        """Compute the numbers of whole pairs."""
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
        """Name the rates by what the two conditions are called."""
        first, second = (
            str(self.pairs[f"{side}_condition"].iloc[0])
            if f"{side}_condition" in self.pairs
            else self.study.design.conditions[place].replace(" ", "_")
            for place, side in enumerate(("first", "second"))
        )
        return {name.format(first=first, second=second): rate for name, rate in _RATES.items()}

    @cached_property
    def _without_verdicts(self) -> dict[str, float]:
        """The further numbers of the study where nothing is judged: their names."""
        return dict(self.study.report.metrics(_with_verdicts(self.pairs, {})))

    def _n_asked(self, targets: frozenset[str]) -> npt.NDArray[np.int64]:
        """Count the members of each pair that were asked."""
        sides = [self.pairs[f"{side}_target"].isin(targets) for side in ("first", "second")]
        n_asked: npt.NDArray[np.int64] = np.sum(sides, axis=0)
        return n_asked

    def _cluster_of(self, targets: pd.DataFrame) -> pd.Series:
        """Tell the cluster of each target by that of its fact."""
        if self.cluster in targets:
            return targets[self.cluster].astype(str)
        facts = self.pairs.drop_duplicates("item").set_index("item")[self.cluster]
        return targets["item"].map(facts).astype(str)

    def _judged(self, replies: pd.DataFrame, documents: Sequence[str]) -> pd.DataFrame:
        """Judge the replies to documents; what has none has no verdict."""
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
        """Make the judge; the folder is there once one that keeps a log writes to it."""
        return make_judge(self.study, self._scoring, RunFolder(self._folder))

    def _planned(self, chat: bool | None, shots: int | None) -> tuple[Plan, _Prompts]:
        """Plan with prompts in a form, and lay them out, once."""
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
            asking = plan.settings or settings
            prompts = {
                prompt.id: (prompt, asking.with_reasoning(group.params))
                for group in plan.groups.values()
                for prompt in group.prompts
            }
            self._plans[key] = plan, prompts
        return self._plans[key]


def to_verdicts(judged: pd.DataFrame) -> dict[str, bool | None]:
    """Read what `PairedTask.judge` returned as verdicts by target id.

    Args:
        judged: One row a target.

    Returns:
        The verdicts.
    """
    known = judged["correct"].astype(object).where(judged["correct"].notna(), None)
    return dict(zip(judged["target_id"], known, strict=True))


def _with_verdicts(pairs: pd.DataFrame, verdicts: Verdicts) -> pd.DataFrame:
    """Put the verdicts on both members beside each pair."""
    columns = {
        f"{side}_correct": pd.array(
            [verdicts.get(name) for name in pairs[f"{side}_target"]], dtype="boolean"
        )
        for side in ("first", "second")
    }
    return pairs.reset_index(drop=True).assign(**columns)


class _Outside(Runner):
    """Stands for a model that another tool asks."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fingerprint(self) -> dict[str, Any]:
        """Tell who asks."""
        return {"runner": self.name}


def _drawn(name: str) -> str:
    """Draw a place for a cluster by its name alone."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
