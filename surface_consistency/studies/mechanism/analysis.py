"""Do two answers to one fact use the same parts of the model? SLAQ's section 5.

Any paired run will do: short against long queries, titles against redirects, states of a store.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine import Analysis, LLMJudge, Report
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.models import load_runner
from surface_consistency.report import Block, Heat, Prose, Section, Table
from surface_consistency.runs import Run, write_parquet
from surface_consistency.schemas import values_of_items
from surface_consistency.studies.mechanism.measure import (
    MEASURED_BY,
    Measured,
    MeasuredRun,
    Store,
    measure_answer,
    replacement_maker,
)
from surface_consistency.studies.mechanism.sample import (
    Answer,
    Sample,
    SampledPair,
    sample_pairs,
)
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.similarity import (
    FEATURES,
    difference_rows,
    pair_similarity,
    prediction_rows,
)
from surface_consistency.studies.mechanism.spans import (
    Span,
    SpanRequest,
    align_span,
    judged_spans,
    read_span_sheet,
    whole_span,
    write_span_sheet,
)
from surface_consistency.studies.mechanism.tables import (
    heat_maps,
    make_notes,
    pairs_table,
    prediction_dots,
    prediction_table,
    sample_table,
    sensitivity_table,
    sets_table,
    similarity_dots,
    similarity_table,
)

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.texts import LoadedModel

__all__ = ["MechanismAnalysis"]

_PERMUTATIONS: Final = 10_000


class MechanismAnalysis(Analysis):
    """Which heads and MLPs each answer needs, and whether two answers to a fact need the same."""

    name = "mechanism"
    title = "Mechanism"
    settings = MechanismSettings
    reading = (
        "Each head and each MLP is taken away by itself, and every token of an answer is read "
        "again. What one component’s absence changes is no proof that it holds the fact: others "
        "may stand in for it, and what is taken away also feeds what comes after."
    )

    def __init__(self) -> None:
        self._maps: list[Heat] = []
        self._notes: list[str] = []

    def tables(self, report: Report, settings: MechanismSettings) -> Mapping[str, Table]:
        """Take every component away from every sampled answer, and compare the two of each pair.

        Returns:
            "mechanism_similarity" (figure 4 of the paper), one row a model and feature;
            "mechanism_sensitivity", the same by the other way of matching tokens and over whole
            answers; "mechanism_prediction" (figure 5), one row a feature and kind of folds;
            "mechanism_sets", one row a model and condition; "mechanism_sample" and
            "mechanism_pairs". Similarities are in [-1, 1], shares in [0, 1].

        Raises:
            DataError: If a run has no pair to look into, or nothing tells its model.
            RunMismatchError: If the weights are not those that answered, or the store holds answers
                that were looked into otherwise.
            UnsupportedModelError: If the model's components cannot be told apart.
            RunnerError: If a model cannot be loaded or read.
        """
        if settings.spans == "judge" and settings.judge_model is None:
            raise ValueError("--spans judge needs --judge-model, the model that copies spans")
        n_models, n_runs = len(settings.model), len(report.runs)
        if n_models not in (0, n_runs):
            raise ValueError(
                f"--model names {n_models} models for {n_runs} runs; give one for each, in order"
            )
        measured = [
            _measure_run(run, report, settings, settings.model[place] if n_models else None)
            for place, run in enumerate(report.runs)
        ]
        similarity = pd.concat([one.similarity for one in measured], ignore_index=True)
        frame = difference_rows(
            similarity,
            n_permutations=_PERMUTATIONS,
            rng=report.settings.bootstrap_seed,
        )
        is_main = (similarity["aggregation"] == "transport") & (similarity["tokens"] == "span")
        predicted, reason = prediction_rows(
            similarity[is_main], n_folds=settings.folds, rng=settings.seed
        )
        self._maps = [heat for one in measured for heat in heat_maps(one, settings.heat_maps)]
        self._notes = [note for note in (*make_notes(measured, settings), reason) if note]
        main = (frame["aggregation"] == "transport") & (frame["tokens"] == "span")
        return {
            "mechanism_similarity": similarity_table(frame[main], settings),
            "mechanism_sensitivity": sensitivity_table(frame[~main]),
            "mechanism_prediction": prediction_table(predicted),
            "mechanism_sets": sets_table(measured, settings),
            "mechanism_sample": sample_table(measured),
            "mechanism_pairs": pairs_table(similarity[is_main]),
        }

    def sections(self, report: Report, tables: Mapping[str, Table]) -> list[Section]:
        """Leave tables without rows out; see `Analysis.sections`."""
        (section,) = super().sections(report, tables)
        blocks = [b for b in section.blocks if not (isinstance(b, Table) and b.frame.empty)]
        return [replace(section, blocks=blocks)]

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Draw the paper's figures 4 and 5 and heat maps, after the notes on how they were made."""
        yield from (Prose(parts=[note]) for note in self._notes)
        yield from similarity_dots(tables["mechanism_similarity"].frame, report.index)
        yield from prediction_dots(tables["mechanism_prediction"].frame)
        yield from self._maps


def _measure_run(
    run: Run, report: Report, settings: MechanismSettings, named: str | None
) -> MeasuredRun:
    """Draw, find spans, measure and compare the pairs of one run."""
    sample = sample_pairs(
        run, per_class=settings.per_class, seed=settings.seed, cluster=report.cluster
    )
    store_of = settings.store or run.folder.path / "mechanism"
    home = store_of / run.folder.path.resolve().name if settings.store else store_of
    spans = _spans(run, sample, settings, home)
    loaded = _load(run, settings, named)
    components = loaded.model.map.components
    names = [component.name for component in components]
    store = Store(
        home,
        {name: getattr(settings, name) for name in MEASURED_BY},
        {**loaded.model.fingerprint(), "digest": loaded.source.digest or loaded.source.revision},
        pd.DataFrame([{"component": c.name, "kind": c.kind, "layer": c.layer} for c in components]),
    )
    measured: dict[str, Measured] = {}
    for side in ("first", "second"):
        answers = {a.id: a for a in (getattr(pair, side) for pair in sample.pairs)}
        readable = [answer for answer in answers.values() if spans[answer.id].is_found]
        replacement = replacement_maker(loaded, readable, spans, settings)
        for answer in readable:
            measured[answer.id] = measure_answer(
                loaded, answer, spans[answer.id], settings, store=store, replacement=replacement
            )
    heads, mlps = loaded.model.map.heads, loaded.model.map.mlps
    rows = [
        {
            "model": run.label,
            "pair_id": pair.pair_id,
            "fact_id": pair.fact_id,
            "cluster": pair.cluster,
            "is_aligned": pair.is_aligned,
            "stratum": pair.stratum,
            "first_span": spans[pair.first.id].source,
            "second_span": spans[pair.second.id].source,
            **similarity,
        }
        for pair in sample.pairs
        for similarity in _similarities(pair, measured, heads, mlps)
    ]
    similarity = pd.DataFrame(rows)
    write_parquet(home / "similarity.parquet", similarity)
    return MeasuredRun(
        label=run.label,
        sample=sample,
        spans=spans,
        measured=measured,
        similarity=similarity,
        heads=heads,
        mlps=mlps,
        names=names,
        fingerprint=loaded.model.fingerprint(),
    )


def _similarities(
    pair: SampledPair,
    measured: Mapping[str, Measured],
    heads: npt.NDArray[np.int64],
    mlps: npt.NDArray[np.int64],
) -> list[dict[str, Any]]:
    """Compare the answers of a pair; a pair whose span was not found keeps an empty row."""
    if pair.first.id in measured and pair.second.id in measured:
        return pair_similarity(
            measured[pair.first.id], measured[pair.second.id], heads=heads, mlps=mlps
        )
    return [{"aggregation": "transport", "tokens": "span", **dict.fromkeys(FEATURES, np.nan)}]


def _spans(run: Run, sample: Sample, settings: MechanismSettings, home: Path) -> dict[str, Span]:
    """Find the span of the fact in every answer."""
    rule = settings.spans
    if rule == "auto":
        rule = "alignment" if run.manifest.study == "slaq" else "whole"
    spans = {
        answer.id: whole_span(answer.text, answer.judged)
        for pair in sample.pairs
        for answer in (pair.first, pair.second)
    }
    requests = [_request(pair.first, pair.second) for pair in sample.pairs]
    if rule == "alignment":
        spans |= {request.answer_id: align_span(request) for request in requests}
    elif rule == "judge":
        runner = load_runner(
            settings.judge_runner,
            model=settings.judge_model,
            options=values_of_items(settings.judge_option, "judge_option"),
        )
        label = settings.judge_model or runner.name
        judge = LLMJudge(runner, home / "judge", model=label, max_new_tokens=256)
        spans |= judged_spans(requests, judge)
    if settings.marked_spans is not None:
        spans |= read_span_sheet(settings.marked_spans, requests)
    if settings.span_sheet is not None:
        write_span_sheet(settings.span_sheet, requests, spans)
    return spans


def _request(first: Answer, second: Answer) -> SpanRequest:
    """Ask for the fact of a pair in its second answer."""
    return SpanRequest(
        answer_id=second.id,
        short=(first.judged or first.text).strip(),
        long=second.text,
        question=second.question,
        questions=second.questions,
        topic=second.topic,
        slot=second.slot,
    )


def _load(run: Run, settings: MechanismSettings, named: str | None) -> "LoadedModel":
    """Load the weights that answered, and hold them to what the manifest tells."""
    from surface_consistency.studies.mechanism.ablation.texts import load_ablation_model

    runner = run.manifest.runner
    asks = runner.get("asks")
    runner = asks if isinstance(asks, dict) else runner
    revision = runner.get("revision")
    model = named or _known_model(run, runner)
    is_same_name = named is None or named == runner.get("model")
    loaded = load_ablation_model(
        model,
        revision=str(revision) if revision and is_same_name else None,
        dtype=settings.dtype,
        device=settings.device,
        device_map=settings.device_map,
        unit=settings.unit,
        trust_remote_code=settings.trust_remote_code,
        chat_options=values_of_items(  # type: ignore[arg-type]
            settings.chat_option, "chat_option"
        ),
    )
    answered = runner.get("digest")
    if answered and loaded.source.digest and answered != loaded.source.digest:
        raise RunMismatchError(
            f"the weights in {model} (digest {loaded.source.digest}) are not those that answered "
            f"in {run.folder.path} (digest {answered}); name those by --model"
        )
    return loaded


def _known_model(run: Run, runner: Mapping[str, Any]) -> str:
    """Find the weights that the manifest names, or say how to name them."""
    organism = run.folder.path / "organism"
    if (organism / "config.json").is_file():
        return str(organism)
    if runner.get("revision") and runner.get("model"):
        return str(runner["model"])
    by = runner.get("runner", "another program")
    raise DataError(
        f"nothing tells where the weights are that answered in {run.folder.path} (runner {by}, "
        f"model {run.manifest.model}): an answer that a server or a file gave can be looked into "
        "only with the same weights on this machine; name their folder or hub id by --model"
    )
