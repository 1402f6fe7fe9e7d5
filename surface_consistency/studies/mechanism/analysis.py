"""Analyse whether two answers to one fact use the same parts of the model (SLAQ, section 5).

It applies to any paired run: short and long queries, titles and redirects, states of a database.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from surface_consistency.engine import Analysis, Report
from surface_consistency.errors import DataError, RunError
from surface_consistency.report import Prose, Section
from surface_consistency.report.page import Block
from surface_consistency.runs import Run
from surface_consistency.runs.files import write_parquet
from surface_consistency.schemas.settings import values_of_items
from surface_consistency.studies.mechanism.figures import heat_maps, make_figures
from surface_consistency.studies.mechanism.measure import measure_answer, replacement_maker
from surface_consistency.studies.mechanism.sample import sample_pairs
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.similarity import similarity_frame
from surface_consistency.studies.mechanism.spans import find_spans
from surface_consistency.studies.mechanism.store import Measured, MeasuredRun, Store
from surface_consistency.studies.mechanism.tables import make_finding, make_notes, make_tables
from surface_consistency.tables import Table
from surface_consistency.tables.numbers import Part

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.texts import LoadedModel


class MechanismAnalysis(Analysis):
    """Find the heads and MLPs that each answer needs, and compare the two answers to a fact."""

    name = "mechanism"
    title = "Mechanism"
    settings = MechanismSettings
    caveat = (
        "Each head and each MLP is ablated separately, or its value is replaced, and the readout "
        "of every token of an answer is computed again. A change does not prove that the component "
        "stores the fact: others can compensate, and an ablation also changes later components."
    )

    def __init__(self) -> None:
        self._prose: list[Sequence[Part]] = []
        self._figures: list[Block] = []

    def tables(self, report: Report, settings: MechanismSettings) -> Mapping[str, Table]:
        """Ablate every component for every sampled answer, and compare the two answers of a pair.

        Returns:
            "mechanism_similarity" (figure 4 of the paper), one row per model and feature;
            "mechanism_sensitivity", the same with the other method of matching tokens and over
            whole answers; "mechanism_prediction" (figure 5), one row per feature and kind of folds;
            "mechanism_sets", one row per model and condition; "mechanism_sample" and
            "mechanism_pairs". Similarities are in [-1, 1], proportions in [0, 1].

        Raises:
            DataError: If no pair of a run can be analysed, or the weights of its model are unknown.
            RunError: If the weights are not those of the run, or the store contains answers that
                were analysed with other settings.
            RunnerError: If the model's components are not found.
            RunnerError: If a model cannot be loaded or run.
        """
        if settings.spans == "judge" and settings.judge_model is None:
            raise ValueError("`spans=judge` needs `judge_model`, the model that copies spans")
        n_models, n_runs = len(settings.model), len(report.runs)
        if n_models not in (0, n_runs):
            raise ValueError(
                f"`model` names {n_models} models for {n_runs} runs; pass one per run, in order"
            )
        models = settings.model or (None,) * n_runs
        runs = [
            _measure_run(run, report, settings, model)
            for run, model in zip(report.runs, models, strict=True)
        ]
        confidence = report.settings.confidence
        made, reason = make_tables(runs, settings, confidence)
        finding = make_finding(made["mechanism_similarity"].frame, confidence)
        self._prose = [finding, *make_notes(runs, settings), [reason]]
        maps = [heat for one in runs for heat in heat_maps(one, settings.heat_maps)]
        self._figures = [*make_figures(made, report.index), *maps]
        return made

    def sections(self, report: Report, tables: Mapping[str, Table]) -> list[Section]:
        """Omit tables without rows; see `Analysis.sections`."""
        (section,) = super().sections(report, tables)
        blocks = [b for b in section.blocks if not (isinstance(b, Table) and b.frame.empty)]
        return [replace(section, blocks=blocks)]

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Yield the finding and the notes, then the paper's figures 4 and 5 and heat maps."""
        yield from (Prose(parts=parts) for parts in self._prose if any(parts))
        yield from self._figures


def _measure_run(
    run: Run, report: Report, settings: MechanismSettings, named: str | None
) -> MeasuredRun:
    """Sample the pairs of one run, find spans, measure the answers and compare them."""
    name = run.folder.path.resolve().name
    home = settings.store / name if settings.store else run.folder.path / "mechanism"
    sample = sample_pairs(
        run, per_class=settings.per_class, seed=settings.seed, cluster=report.cluster
    )
    spans = find_spans(run, sample, settings, home)
    loaded = _load(run, settings, named)
    store = Store(home, settings, loaded)
    measured: dict[str, Measured] = {}
    for side in ("first", "second"):
        answers = {a.id: a for a in (getattr(pair, side) for pair in sample.pairs)}
        readable = [answer for answer in answers.values() if spans[answer.id].is_found]
        replacement = replacement_maker(loaded, readable, spans, settings)
        for answer in readable:
            measured[answer.id] = measure_answer(
                loaded, answer, spans[answer.id], settings, store=store, replacement=replacement
            )
    components = loaded.model.map
    similarity = similarity_frame(run.label, sample.pairs, spans, measured, components)
    write_parquet(home / "similarity.parquet", similarity)
    return MeasuredRun(
        label=run.label,
        sample=sample,
        spans=spans,
        measured=measured,
        similarity=similarity,
        components=components,
        fingerprint=loaded.model.fingerprint(),
    )


def _load(run: Run, settings: MechanismSettings, named: str | None) -> "LoadedModel":
    """Load the weights of the run, and compare their digest with that in the manifest."""
    from surface_consistency.studies.mechanism.ablation.texts import load_ablation_model

    runner = run.manifest.runner
    asks = runner.get("asks")
    runner = asks if isinstance(asks, dict) else runner
    revision = runner.get("revision")
    if settings.trust_remote_code and named is None:
        raise ValueError(
            "`trust_remote_code` runs code of the model, and a manifest may name any model; "
            "pass `model` too"
        )
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
        raise RunError(
            f"the weights in {model} (digest {loaded.source.digest}) are not those of the run "
            f"{run.folder.path} (digest {answered}); pass the weights of the run as `model`"
        )
    return loaded


def _known_model(run: Run, runner: Mapping[str, Any]) -> str:
    """Find the weights that the manifest names, or raise an error with the option to name them."""
    if (run.folder.path / "toy_model" / "config.json").is_file():
        return str(run.folder.path / "toy_model")
    if runner.get("revision") and runner.get("model"):
        return str(runner["model"])
    by = runner.get("runner", "another program")
    raise DataError(
        f"the weights of {run.folder.path} are unknown (runner {by}, model {run.manifest.model}): "
        "answers of a server or a file can only be analysed with the same weights on this machine; "
        "pass their folder or hub id as `model`"
    )
