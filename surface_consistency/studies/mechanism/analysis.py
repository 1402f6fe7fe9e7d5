"""Do two answers to one fact use the same parts of the model? SLAQ's section 5.

Any paired run will do: short against long queries, titles against redirects, states of a store.
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
    """Which heads and MLPs each answer needs, and whether two answers to a fact need the same."""

    name = "mechanism"
    title = "Mechanism"
    settings = MechanismSettings
    caveat = (
        "Each head and each MLP is taken away by itself, or given another value, and every token "
        "of an answer is read again. What that changes is no proof that it holds the fact: others "
        "may stand in for it, and what is changed also feeds what comes after."
    )

    def __init__(self) -> None:
        self._prose: list[Sequence[Part]] = []
        self._pictures: list[Block] = []

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
            RunError: If the weights are not those that answered, or the store holds answers
                that were looked into otherwise.
            RunnerError: If the model's components cannot be told apart.
            RunnerError: If a model cannot be loaded or read.
        """
        if settings.spans == "judge" and settings.judge_model is None:
            raise ValueError("`spans=judge` needs `judge_model`, the model that copies spans")
        n_models, n_runs = len(settings.model), len(report.runs)
        if n_models not in (0, n_runs):
            raise ValueError(
                f"`model` names {n_models} models for {n_runs} runs; give one for each, in order"
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
        self._pictures = [*make_figures(made, report.index), *maps]
        return made

    def sections(self, report: Report, tables: Mapping[str, Table]) -> list[Section]:
        """Leave tables without rows out; see `Analysis.sections`."""
        (section,) = super().sections(report, tables)
        blocks = [b for b in section.blocks if not (isinstance(b, Table) and b.frame.empty)]
        return [replace(section, blocks=blocks)]

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Draw the paper's figures 4 and 5, or none, and heat maps, after what is shown and how."""
        yield from (Prose(parts=parts) for parts in self._prose if any(parts))
        yield from self._pictures


def _measure_run(
    run: Run, report: Report, settings: MechanismSettings, named: str | None
) -> MeasuredRun:
    """Draw, find spans, measure and compare the pairs of one run."""
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
    """Load the weights that answered, and hold them to what the manifest tells."""
    from surface_consistency.studies.mechanism.ablation.texts import load_ablation_model

    runner = run.manifest.runner
    asks = runner.get("asks")
    runner = asks if isinstance(asks, dict) else runner
    revision = runner.get("revision")
    if settings.trust_remote_code and named is None:
        raise ValueError(
            "`trust_remote_code` runs code of the model: name the model by `model` too, since a "
            "manifest may name any"
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
            f"the weights in {model} (digest {loaded.source.digest}) are not those that answered "
            f"in {run.folder.path} (digest {answered}); name those by `model`"
        )
    return loaded


def _known_model(run: Run, runner: Mapping[str, Any]) -> str:
    """Find the weights that the manifest names, or say how to name them."""
    if (run.folder.path / "toy_model" / "config.json").is_file():
        return str(run.folder.path / "toy_model")
    if runner.get("revision") and runner.get("model"):
        return str(runner["model"])
    by = runner.get("runner", "another program")
    raise DataError(
        f"nothing tells where the weights are that answered in {run.folder.path} (runner {by}, "
        f"model {run.manifest.model}): an answer that a server or a file gave can be looked into "
        "only with the same weights on this machine; name their folder or hub id by `model`"
    )
