"""Do two answers to one fact use the same parts of the model? SLAQ's section 5.

Any paired run will do: short against long queries, titles against redirects, states of a store.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from surface_consistency.engine.design import Report
from surface_consistency.engine.judging.judges import LLMJudge
from surface_consistency.engine.paired_tables import interval_value
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.models.registry import load_runner
from surface_consistency.report.page import (
    Block,
    Dot,
    ForestPlot,
    Heatmap,
    Prose,
    Section,
    Value,
)
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.files import write_parquet
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings, values_of_items
from surface_consistency.studies.mechanism.measure import (
    MEASURED_BY,
    Measured,
    Store,
    measure_answer,
    replacing,
)
from surface_consistency.studies.mechanism.sample import (
    Answer,
    Sample,
    SampledPair,
    sample_pairs,
)
from surface_consistency.studies.mechanism.similarity import (
    ALL_MODELS,
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

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.texts import LoadedModel

__all__ = ["MechanismAnalysis", "MechanismSettings"]

_PERMUTATIONS: Final = 10_000
_ONE_CLASS: Final = {"aligned": "right both times", "misaligned": "right once"}


class MechanismSettings(Settings):
    """Which pairs are looked into, and how."""

    model: Items[str] = ()
    """Hub id or folder of the weights that answered, one for each run in their order; by default
    what the run's manifest names."""

    per_class: int = Field(default=30, ge=1)
    """Pairs right both times, and as many right once, that are drawn from each run."""

    seed: int = 0
    """Seed of the draw and of the folds."""

    readout: Literal["logit", "centred_logit", "log_probability"] = "centred_logit"
    """What is read of a token: its logit, as in the paper; less the mean of all logits; or the
    logarithm of its probability."""

    positions: Literal["all", "answer"] = "all"
    """Where components are taken away: everywhere, or only where the answer is written, which is
    faster and another definition."""

    ablation: Literal["zero", "mean", "resample"] = "zero"
    """What stands in for a component: nothing, as in the paper; its mean over the sampled prompts;
    or what it does in the next sampled answer."""

    unit: Literal["head", "kv_group"] = "head"
    """Query heads, or groups of them that share keys and values."""

    sets: Literal["run", "sum"] = "run"
    """Whether minimal sets are found by running the model with them alone, or by adding up
    importances."""

    threshold: float = Field(default=0.9, gt=0, le=1)
    """Share of the readout that a minimal set recovers."""

    target: Literal["generated", "reference"] = "generated"
    """Whose tokens are read: what the model wrote, or the reference in the span's place."""

    spans: Literal["auto", "alignment", "judge", "whole"] = "auto"
    """How the fact is found in the second answer: by the first one's content words, by a model that
    copies, or all that was judged; auto aligns SLAQ's long answers and takes others whole."""

    span_sheet: Path | None = None
    """CSV file to write, of second answers and the spans that were found, for a person to mark."""

    marked_spans: Path | None = None
    """Such a file with a person's spans, which come before those that were found."""

    judge_model: str | None = None
    """Model of --spans judge: a hub id, folder or server's id."""

    judge_runner: str = "openai"
    """Runner of --spans judge; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of that runner, its value JSON or text."""

    whole_answer: bool = True
    """Whether whole answers are compared besides spans, so that the rule of spans is seen not to
    make the result; without, reading stops where the span ends."""

    folds: int = Field(default=5, ge=2)
    """Folds of the prediction of alignment."""

    heat_maps: int = Field(default=2, ge=0)
    """Pairs of each run whose components are drawn, of either class in turn."""

    dtype: str = "float32"
    """Number format: auto, float32, bfloat16 or float16; 16 bits round many effects to nothing."""

    device: str | None = None
    """Where the model runs: cpu, cuda, cuda:1, mps; the best there is by default."""

    device_map: str | None = None
    """How weights are spread over devices: auto, balanced, balanced_low_0 or sequential."""

    max_rows: int | None = Field(default=None, ge=1)
    """Most rows of a batch; halved when memory is full."""

    chat_option: Mapping[str, str] = Field(default_factory=dict)
    """Variable of the chat template, its value JSON or text, as the run was given it."""

    trust_remote_code: bool = False
    """Whether code of the model's repository may run."""

    store: Path | None = None
    """Folder of what was measured, one Parquet file an answer, to which a stopped analysis comes
    back; "mechanism" in each run folder by default."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Looked:
    """What was found out about one run."""

    label: str
    sample: Sample
    spans: dict[str, Span]
    measured: dict[str, Measured]
    similarity: pd.DataFrame
    heads: npt.NDArray[np.int64]
    mlps: npt.NDArray[np.int64]
    names: list[str]
    fingerprint: Mapping[str, Any]


class MechanismAnalysis(Analysis):
    """Which heads and MLPs each answer needs, and whether two answers to a fact need the same."""

    name = "mechanism"
    title = "Mechanism"
    settings = MechanismSettings
    caveat = (
        "Each head and each MLP is taken away by itself, and every token of an answer is read "
        "again. What one component’s absence changes is no proof that it holds the fact: others "
        "may stand in for it, and what is taken away also feeds what comes after."
    )

    def __init__(self) -> None:
        self._maps: list[Heatmap] = []
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
        looked = [
            _look(run, report, settings, settings.model[place] if n_models else None)
            for place, run in enumerate(report.runs)
        ]
        similarity = pd.concat([one.similarity for one in looked], ignore_index=True)
        labels = [one.label for one in looked]
        rows = difference_rows(
            similarity,
            models=labels,
            n_permutations=_PERMUTATIONS,
            rng=report.settings.bootstrap_seed,
        )
        is_main = (similarity["aggregation"] == "transport") & (similarity["tokens"] == "span")
        predicted, reason = prediction_rows(
            similarity[is_main], n_folds=settings.folds, rng=settings.seed
        )
        self._maps = [heat for one in looked for heat in _heat_maps(one, settings.heat_maps)]
        self._notes = [note for note in (*_notes(looked, settings), reason) if note]
        frame = pd.DataFrame(rows, columns=_DIFFERENCE)
        main = (frame["aggregation"] == "transport") & (frame["tokens"] == "span")
        return {
            "mechanism_similarity": _similarity_table(frame[main], settings),
            "mechanism_sensitivity": _sensitivity_table(frame[~main]),
            "mechanism_prediction": _prediction_table(predicted),
            "mechanism_sets": _sets_table(looked, settings),
            "mechanism_sample": _sample_table(looked),
            "mechanism_pairs": _pairs_table(similarity[is_main]),
        }

    def sections(self, report: Report, tables: Mapping[str, Table]) -> list[Section]:
        """Leave tables without rows out; see `Analysis.sections`."""
        (section,) = super().sections(report, tables)
        held = [b for b in section.blocks if not (isinstance(b, Table) and b.frame.empty)]
        return [replace(section, blocks=held)]

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Draw the paper's figures 4 and 5 and heat maps, after the notes on how they were made."""
        yield from (Prose(parts=[note]) for note in self._notes)
        yield from _figure_4(tables["mechanism_similarity"].frame, report.index)
        yield from _figure_5(tables["mechanism_prediction"].frame)
        yield from self._maps


def _look(run: Run, report: Report, settings: MechanismSettings, named: str | None) -> _Looked:
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
        found = [answer for answer in answers.values() if spans[answer.id].is_found]
        stands_in = replacing(loaded, found, spans, settings)
        for answer in found:
            measured[answer.id] = measure_answer(
                loaded, answer, spans[answer.id], settings, store=store, replacement=stands_in
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
    return _Looked(
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

    told = run.manifest.runner
    told = told["asks"] if isinstance(told.get("asks"), dict) else told  # type: ignore[assignment]
    revision = told.get("revision")
    model = named or _known_model(run, told)
    is_same_name = named is None or named == told.get("model")
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
    answered = told.get("digest")
    if answered and loaded.source.digest and answered != loaded.source.digest:
        raise RunMismatchError(
            f"the weights in {model} (digest {loaded.source.digest}) are not those that answered "
            f"in {run.folder.path} (digest {answered}); name those by --model"
        )
    return loaded


def _known_model(run: Run, told: Mapping[str, Any]) -> str:
    """Find the weights that the manifest names, or say how to name them."""
    for name in ("toy_model", "organism"):  # The latter beside runs that were made before.
        if (run.folder.path / name / "config.json").is_file():
            return str(run.folder.path / name)
    if told.get("revision") and told.get("model"):
        return str(told["model"])
    by = told.get("runner", "another program")
    raise DataError(
        f"nothing tells where the weights are that answered in {run.folder.path} (runner {by}, "
        f"model {run.manifest.model}): an answer that a server or a file gave can be looked into "
        "only with the same weights on this machine; name their folder or hub id by --model"
    )


def _notes(looked: Sequence[_Looked], settings: MechanismSettings) -> Iterator[str]:
    """Say what a reader must know of the way in which this was computed."""
    words = {"logit": "the logit", "centred_logit": "the logit less the mean of all logits"}
    readout = words.get(settings.readout, "the logarithm of the probability")
    stand_in = {"zero": "nothing", "mean": "its mean over the prompts"}.get(
        settings.ablation, "what it does in another answer"
    )
    where = "everywhere" if settings.positions == "all" else "where the answer is written alone"
    yield (
        f"Read: {readout}. In a component’s place, {where}: {stand_in}. Sets: by {settings.sets}, "
        f"{settings.threshold:.0%} of what is read."
    )
    for one in looked:
        told = one.fingerprint
        slow = [
            str(told[key])
            for key in ("batches", "read_from", "answer_positions")
            if "(" in str(told[key]) and (key != "answer_positions" or settings.positions != "all")
        ]
        slow += [str(told["uncovered"])] if told["uncovered"] else []
        if slow:
            yield f"{one.label} ({told['model_type']}): {'; '.join(slow)}."
        unfound = sum(not span.is_found for span in one.spans.values())
        if unfound:
            yield (
                f"{one.label}: the fact was not found in {unfound} of {len(one.spans)} answers; "
                "their pairs are counted and have no similarity."
            )


_DIFFERENCE: Final = [
    *("model", "aggregation", "tokens", "feature", "n_aligned", "n_misaligned", "n_clusters"),
    *("aligned", "misaligned", "difference", "difference_low", "difference_high"),
    *("relative", "p_value"),
]


def _difference_columns() -> list[Column]:
    """Columns of a difference between the classes."""
    return [
        Column(key="feature", title="Similarity", labels=FEATURES),
        Column(key="n_aligned", title="Right both times", kind="count", on_phones=False),
        Column(key="n_misaligned", title="Right once", kind="count", on_phones=False),
        Column(key="aligned", title="Right both times", kind="number", group="Mean"),
        Column(key="misaligned", title="Right once", kind="number", group="Mean"),
        interval_column("difference", "Difference", "number"),
        Column(key="p_value", title="p", kind="p_value"),
    ]


def _similarity_table(frame: pd.DataFrame, settings: MechanismSettings) -> Table:
    """Make the paper's figure 4 as numbers."""
    return Table(
        frame=frame.reset_index(drop=True),
        caption="Similarity of the two answers of a pair, by component",
        note=f"Tokens matched by optimal transport; {settings.readout.replace('_', ' ')}. p "
        "shuffles classes within models and takes clusters whole, uncorrected for the number of "
        "features. Pairs right once hold two different answers: --target reference reads the same "
        "words in both.",
        cluster_column="n_clusters",
        columns=[Column(key="model", title="Model"), *_difference_columns()],
    )


def _sensitivity_table(frame: pd.DataFrame) -> Table:
    """Show the same by other rules."""
    return Table(
        frame=frame.reset_index(drop=True),
        caption="The same by other rules: tokens matched one to one, and whole answers",
        note="A result that the rule of spans makes is there for spans and not for whole answers.",
        cluster_column="n_clusters",
        columns=[
            Column(key="model", title="Model"),
            Column(key="tokens", title="Tokens", labels={"span": "of the fact"}),
            Column(key="aggregation", title="Matched by"),
            *_difference_columns(),
        ],
    )


def _prediction_table(rows: list[dict[str, Any]]) -> Table:
    """Make the paper's figure 5 as numbers."""
    columns = ["folds", "feature", "auc", "accuracy", "coefficient", "baseline_accuracy"]
    columns += ["n", "n_aligned", "n_clusters"]
    return Table(
        frame=pd.DataFrame(rows, columns=columns),
        caption="Prediction of alignment from similarities, by logistic regression",
        note="Folds keep topics together, or, as in the paper, deal out pairs; then a topic stands "
        "on both sides. An area of 0.5 is chance.",
        model=None,
        cluster_column="n_clusters",
        columns=[
            Column(key="folds", title="Folds by"),
            Column(key="feature", title="Feature", labels=FEATURES),
            Column(key="auc", title="AUC", kind="number", unit="0.5 is chance"),
            Column(key="accuracy", title="Accuracy", kind="rate", unit="%"),
            Column(key="baseline_accuracy", title="Larger class", kind="rate", unit="%"),
            Column(key="coefficient", title="Coefficient", kind="number"),
            Column(key="n", title="Pairs", kind="count"),
        ],
    )


def _sets_table(looked: Sequence[_Looked], settings: MechanismSettings) -> Table:
    """Tell how large sets are, and how far they can be trusted."""
    rows = [
        _sets_row(one, side, condition, settings)
        for one in looked
        for side, condition in (("first", "first answer"), ("second", "second answer"))
    ]
    shares = {
        "reached": "Reached",
        "reached_by_sum": "Reached by sum",
        "floor": "Left without any",
        "joint": "Gone without the set",
        "sum_of_parts": "Sum of its parts",
        "back_each_other_up": "More together",
        "backed_up": "Others stand in",
        "ties": "Ties",
        "greedy": "Model’s own",
    }
    return Table(
        frame=pd.DataFrame(rows),
        caption="Minimal sets of the tokens of the fact, medians and shares of tokens",
        note="Reached by sum: positive importances add up to the threshold. More together: the "
        "set’s absence takes 0.25 more of the readout than those of its parts; then importances "
        "one by one are too low. Ties: changes that are exactly 0. Model’s own: tokens that the "
        "model would write; others were written with another number format, template or prompt.",
        columns=[
            Column(key="model", title="Model"),
            Column(key="side", title="Answers"),
            Column(key="n_tokens", title="Tokens", kind="count"),
            Column(key="set_size", title="Components", kind="number"),
            *(Column(key=key, title=title, kind="rate", unit="%") for key, title in shares.items()),
        ],
    )


def _sets_row(
    one: _Looked, side: str, condition: str, settings: MechanismSettings
) -> dict[str, Any]:
    """Sum up the sets of one condition."""
    answers = {getattr(pair, side).id for pair in one.sample.pairs}
    measured = [one.measured[name] for name in sorted(answers & one.measured.keys())]
    tokens = pd.DataFrame(
        [
            {
                "size": len(item.row.sets[place]),
                "is_reached": item.row.is_reached[place],
                "floor": _share(item.row.floor[place], item.row.base[place]),
                "joint": item.row.joint[place],
                "sum": item.row.sum_of_parts[place],
                "is_greedy": item.row.is_greedy[place],
                "ties": float((item.importance[place] == 0).mean()),
            }
            for item in measured
            for place in np.flatnonzero(item.in_span)
        ],
        columns=["size", "is_reached", "floor", "joint", "sum", "is_greedy", "ties"],
    )
    by_sum = [item.share_reached_by_sum(settings.threshold) for item in measured]
    sizes = [int(item.in_span.sum()) for item in measured]
    known = [(share, n) for share, n in zip(by_sum, sizes, strict=True) if not np.isnan(share)]
    n_known = sum(n for _, n in known)
    suffices = tokens["is_reached"].astype(bool) & tokens["joint"].notna()
    return {
        "model": one.label,
        "side": condition,
        "n_answers": len(measured),
        "n_tokens": len(tokens),
        "n_components": len(one.names),
        "set_size": tokens["size"].median(),
        "reached": tokens["is_reached"].mean(),
        "reached_by_sum": sum(share * n for share, n in known) / n_known if n_known else np.nan,
        "floor": tokens["floor"].median(),
        "joint": tokens["joint"].median(),
        "sum_of_parts": tokens["sum"].median(),
        "back_each_other_up": (tokens["joint"] > tokens["sum"] + 0.25).mean(),
        "backed_up": (suffices & (tokens["joint"] < 0.5 * (1 - tokens["floor"]))).mean(),
        "ties": tokens["ties"].mean(),
        "greedy": tokens["is_greedy"].mean(),
    }


def _share(value: float, base: float) -> float:
    """Tell which share of a readout is left."""
    return 1.0 - (base - value) / abs(base) if base else np.nan


def _sample_table(looked: Sequence[_Looked]) -> Table:
    """Tell what there was, what was drawn, and how spans were found."""
    rows = []
    for one in looked:
        of_second = [one.spans[pair.second.id].source for pair in one.sample.pairs]
        counts = pd.Series(of_second).value_counts()
        found = ", ".join(f"{source} {n}" for source, n in counts.items())
        unfound = sum(not one.spans[pair.second.id].is_found for pair in one.sample.pairs)
        rows.append({**one.sample.counts, "spans": found, "n_unfound": unfound})
    return Table(
        frame=pd.DataFrame(rows),
        caption="Pairs that were looked into",
        note="A fact is drawn once. Pairs wrong both times say nothing of how a fact is recalled.",
        columns=[
            Column(key="model", title="Model"),
            Column(key="n_aligned", title="Right both times", kind="count", group="In the run"),
            Column(key="n_misaligned", title="Right once", kind="count", group="In the run"),
            Column(key="drawn_aligned", title="Right both times", kind="count", group="Drawn"),
            Column(key="drawn_misaligned", title="Right once", kind="count", group="Drawn"),
            Column(key="left_out", title="Cannot be read again"),
            Column(key="spans", title="Fact in the second answer"),
            Column(key="n_unfound", title="Not found", kind="count"),
        ],
    )


def _pairs_table(similarity: pd.DataFrame) -> Table:
    """List the pairs."""
    return Table(
        frame=similarity.reset_index(drop=True),
        caption="Similarity of each pair",
        columns=[
            Column(key="model", title="Model"),
            Column(key="pair_id", title="Pair"),
            Column(
                key="is_aligned",
                title="Right",
                labels={"True": "both times", "False": "once"},
            ),
            Column(key="second_span", title="Span", on_phones=False),
            *(Column(key=key, title=title, kind="number") for key, title in FEATURES.items()),
        ],
    )


def _figure_4(frame: pd.DataFrame, place: Mapping[str, int]) -> Iterator[ForestPlot]:
    """Draw the means of both classes, and their difference."""
    shown = frame[frame["model"] != ALL_MODELS] if len(place) > 1 else frame
    means: list[tuple[str, int, list[Dot]]] = []
    differences: list[tuple[str, int, list[Dot]]] = []
    for feature, title in FEATURES.items():
        rows = shown[shown["feature"] == feature].to_dict("records")
        short = "IoU" if feature == "iou" else title
        for kind, name in (("aligned", "both right"), ("misaligned", "one right")):
            means.append((f"{short}, {name}", 0, [_dot(row, kind, place) for row in rows]))
        differences.append((title, 0, [_dot(row, "difference", place) for row in rows]))
    if shown.empty:
        return
    yield ForestPlot(
        name="mechanism-similarity",
        title="How alike two answers to a fact are computed",
        axis="similarity, × 100",
        rows=means,
        clusters="clusters",
    )
    yield ForestPlot(
        name="mechanism-difference",
        title="Similarity of pairs right both times, less that of pairs right once",
        axis="difference of similarities, × 100",
        rows=differences,
        clusters="clusters",
    )


def _dot(row: Mapping[Any, Any], key: str, place: Mapping[str, int]) -> Dot:
    """Place a number of a model."""
    return Dot(
        model=place[row["model"]],
        value=interval_value(row, key, kind="number"),
        n=row["n_aligned"] + row["n_misaligned"],
        n_clusters=row["n_clusters"],
    )


def _figure_5(frame: pd.DataFrame) -> Iterator[ForestPlot]:
    """Draw how well features predict, folded by topic."""
    rows = frame[frame["folds"] == "topic"].to_dict("records")
    if not rows:
        return
    yield ForestPlot(
        name="mechanism-prediction",
        title="How well similarity tells whether both answers are right",
        axis="area under the ROC curve, × 100; 50 is chance",
        rows=[
            (
                FEATURES.get(row["feature"], row["feature"]),
                0,
                [
                    Dot(
                        model=0,
                        value=Value(value=row["auc"], kind="number"),
                        n=row["n"],
                        n_clusters=row["n_clusters"],
                    )
                ],
            )
            for row in rows
        ],
        clusters="clusters",
        note="All runs together; folds keep clusters together.",
    )


def _heat_maps(one: _Looked, n: int) -> Iterator[Heatmap]:
    """Draw the components of some pairs: of each class those of middling similarity."""
    rows = one.similarity
    rows = rows[(rows["aggregation"] == "transport") & (rows["tokens"] == "span")]
    rows = rows[rows["iou"].notna()].sort_values(["iou", "pair_id"])
    piles = [rows[rows["is_aligned"] == kind]["pair_id"].tolist() for kind in (True, False)]
    piles = [pile[len(pile) // 2 :] + pile[: len(pile) // 2] for pile in piles]
    chosen = [name for names in zip(*piles, strict=False) for name in names]
    chosen += [name for pile in piles for name in pile if name not in chosen]
    by_id = {pair.pair_id: pair for pair in one.sample.pairs}
    for number, name in enumerate(chosen[:n]):
        pair = by_id[name]
        kind = _ONE_CLASS["aligned" if pair.is_aligned else "misaligned"]
        yield Heatmap(
            name=f"mechanism-map-{number + 1}",
            title=f"{one.label}: {pair.first.question or pair.fact_id} ({kind})",
            columns=[*map(str, range(_n_units(one))), "MLP"],
            panels=[
                (_quoted(answer, one.spans[answer.id]), _grid(one, one.measured[answer.id]))
                for answer in (pair.first, pair.second)
            ],
            row_title="Layer",
            note="Share of the readout that goes with each head and MLP, mean of the tokens of the "
            "fact; red where it goes, blue where the token gains.",
        )


def _n_units(one: _Looked) -> int:
    """Count the heads of a layer."""
    return len(one.heads) // len(one.mlps)


def _quoted(answer: Answer, span: Span) -> str:
    """Quote the span of an answer."""
    text = " ".join(answer.text[span.start : span.stop].split())
    return f"“{text if len(text) <= 60 else text[:59] + '…'}”"


def _grid(one: _Looked, measured: Measured) -> list[tuple[str, list[float]]]:
    """Lay the mean importances out by layer."""
    rows = measured.importance[measured.in_span]
    rows = rows[np.isfinite(rows).all(axis=1)]
    mean = rows.mean(axis=0) if len(rows) else np.full(len(one.names), np.nan)
    grid = mean.reshape(len(one.mlps), -1)
    return [(str(layer), values.tolist()) for layer, values in enumerate(grid)]
