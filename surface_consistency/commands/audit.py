"""`audit`: what survives the deletion of facts, by which way, and from where."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.commands.audit_options import (
    LOOKUP,
    SAMPLE_DOMAINS,
    SAMPLE_VARIANTS,
    STATES,
    add_data,
    add_memory,
    add_organism,
    add_scoring,
)
from surface_consistency.commands.options import (
    SAMPLE,
    Commands,
    add_model,
    add_output,
    runner_options,
)
from surface_consistency.commands.output import as_json, as_text, finish_audit_page

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.studies.audit import AuditCell, AuditSettings, RunnerFactory

__all__ = ["add"]

_SHOWN: Final = (
    *("model", "retriever", "threshold", "variant", "n", "full_accuracy", "del_on_accuracy"),
    *("leakage", "retrieval_mediated", "interference", "artifact_rate", "closure_is_complete"),
)


def add(commands: Commands) -> None:
    """Describe `audit`."""
    audit = commands.add_parser(
        "audit",
        help="delete facts from a store and see which answers survive, and why",
        description="Ask every fact of databases with the database whole (FULL), with the fact "
        "deleted (DEL-ON), and with retrieval off besides (DEL-OFF); score leakage, "
        "retrieval-mediated correctness and artifacts, and attribute every answer that survives. "
        "Several retrievers or thresholds make a sweep. The same command goes on where it stopped.",
    )
    add_data(audit)
    add_model(audit)
    audit.set_defaults(runner=LOOKUP)
    add_organism(audit)
    add_memory(audit)
    add_scoring(audit)
    add_output(audit)
    audit.set_defaults(handle=_audit)


def _audit(arguments: argparse.Namespace) -> None:
    """Run one audit or a sweep, and say what came out."""
    from surface_consistency.studies.audit import finish_audit, run_audit, sweep_audit
    from surface_consistency.studies.audit.folder import check_single, check_sweep
    from surface_consistency.studies.audit.retrievers import Retrievers, retrievers_by_name

    settings = _settings(arguments)
    _check_model(arguments)
    out = Path(arguments.out)
    is_sweep = len(arguments.retriever) * len(arguments.threshold) > 1
    (check_sweep if is_sweep else check_single)(out)
    cells = _cells(arguments, out)
    runner, model = _runner(arguments, cells, out)
    label = arguments.label or model

    def find(name: str) -> Retrievers:
        """Find retrievers with the chosen device and cache."""
        return retrievers_by_name(name, device=arguments.device, cache_dir=arguments.index_cache)

    rules = {"cleaner": arguments.cleaner, "equivalence": arguments.equivalence}
    if is_sweep:
        swept = sweep_audit(
            cells,
            runner,
            out,
            model=label,
            data=arguments.databases,
            settings=settings,
            retrievers=arguments.retriever,
            thresholds=arguments.threshold,
            find_retrievers=find,
            n_resamples=arguments.resamples,
            progress=not arguments.json,
            **rules,
        )
        page, _ = finish_audit_page([folder.path for folder in swept.folders], out=out)
        _tell({"sweep": swept.table}, arguments, out, swept.table, page=page)
        return
    folder = run_audit(
        cells,
        runner,
        out,
        model=label,
        data=arguments.databases,
        settings=settings,
        retrievers=find(arguments.retriever[0]),
        progress=not arguments.json,
    )
    tables = finish_audit(folder, n_resamples=arguments.resamples, **rules)
    page, _ = finish_audit_page([folder.path], out=out)
    import pandas as pd

    shown = pd.concat([tables["overall"].assign(variant="all"), tables["by_variant"]])
    _tell(tables, arguments, out, shown, page=page, attribution=tables["attribution"])


def _settings(arguments: argparse.Namespace) -> "AuditSettings":
    """Gather how the audit is run."""
    from surface_consistency.schemas import GenerationParams
    from surface_consistency.studies.audit import AuditSettings

    for name in ("max_new_tokens", "resamples"):
        if (count := getattr(arguments, name)) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be 1 or more, got {count}")
    return AuditSettings(
        states=tuple(state for state in STATES if state in arguments.states),
        retriever=arguments.retriever[0],
        k=arguments.k,
        threshold=arguments.threshold[0],
        fallback=arguments.fallback,
        off_mode=arguments.off_mode,
        closure=arguments.closure,
        closure_key=arguments.closure_key,
        closure_scope=tuple(arguments.closure_scope),
        radius=arguments.radius,
        radius_same_object=arguments.radius_same_object,
        canonical=arguments.canonical,
        query=arguments.query,
        params=GenerationParams(
            max_new_tokens=arguments.max_new_tokens, stop=() if arguments.no_stop else ("\n",)
        ),
    )


def _check_model(arguments: argparse.Namespace) -> None:
    """Refuse a command that names no model, or two."""
    if arguments.organism and (arguments.model is not None or arguments.runner != LOOKUP):
        raise ValueError("--organism trains a model of its own; leave out --model and --runner")
    if not arguments.organism and arguments.leaked:
        raise ValueError("--leaked says what an organism is taught; it needs --organism")
    if not arguments.organism and arguments.runner == LOOKUP and arguments.model is None:
        raise ValueError(
            "--runner lookup needs --model, the folder or hub id of a limited-memory model; or "
            "give --organism to train a small one, or another --runner, whose prompts get the "
            "facts that the store finds"
        )


def _cells(arguments: argparse.Namespace, out: Path) -> "Sequence[AuditCell]":
    """Find the databases, building the sample first."""
    from surface_consistency.studies.audit import find_cells

    databases = arguments.databases
    if databases == SAMPLE:
        from surface_consistency.data.audit_databases import build_audit_databases
        from surface_consistency.prompts.audit_styles import AUDIT_STYLES, style_writers

        databases = out / "databases"
        build_audit_databases(
            databases,
            domains=arguments.domains or SAMPLE_DOMAINS,
            topologies=arguments.variants or SAMPLE_VARIANTS,
            styles=style_writers(arguments.styles or AUDIT_STYLES),
        )
    return find_cells(
        databases,
        domains=arguments.domains or (SAMPLE_DOMAINS if arguments.databases == SAMPLE else None),
        variants=arguments.variants or (SAMPLE_VARIANTS if arguments.databases == SAMPLE else None),
        styles=arguments.styles,
        limit=arguments.limit,
        max_missing=arguments.max_missing,
    )


def _runner(
    arguments: argparse.Namespace, cells: "Sequence[AuditCell]", out: Path
) -> "tuple[RunnerFactory, str]":
    """Find who answers, and what to call it."""
    from surface_consistency.inference.registry import load_runner
    from surface_consistency.studies.audit import augmented_runners, lookup_runners

    options = runner_options(arguments)
    if arguments.organism:
        from surface_consistency.studies.memory_organism import train_memory_organism

        prompts = [prompt for cell in cells for prompt in cell.prompts]
        facts = list(dict.fromkeys((prompt.subject, prompt.relation) for prompt in prompts))
        if not 0 <= arguments.leaked <= len(facts):
            raise ValueError(f"--leaked must be 0 to {len(facts)}, got {arguments.leaked}")
        folder = train_memory_organism(
            prompts, out / "organism", leaked=facts[: arguments.leaked], steps=arguments.steps
        )
        return lookup_runners(folder, **options), "organism"
    if arguments.runner == LOOKUP:
        return lookup_runners(arguments.model, **options), arguments.model
    inner = load_runner(arguments.runner, model=arguments.model, options=options)
    return augmented_runners(inner, n_facts=arguments.n_facts), arguments.model or inner.name


def _tell(
    tables: "dict[str, pd.DataFrame]",
    arguments: argparse.Namespace,
    out: Path,
    shown: "pd.DataFrame",
    *,
    page: Path,
    attribution: "pd.DataFrame | None" = None,
) -> None:
    """Print the main table and where the files are."""
    if arguments.json:
        print(json.dumps(as_json(out, page, tables), ensure_ascii=False))
        return
    columns = [name for name in _SHOWN if name in shown]
    if shown["states_note"].any():
        place = columns.index("n")
        columns[place : place + 1] = ["n_full", "n_del_on", "n_del_off"]
    print(as_text(shown[columns]))
    for name in ("states_note", "closure_note"):
        for note in dict.fromkeys(note for note in shown[name] if note):
            print(f"note: {note}")
    if attribution is not None and not attribution.empty:
        found = attribution[attribution["count"] > 0]
        print("\nright answers after deletion come from:")
        told = ["attribution", "count", "n_also_right_without_retrieval", "share"]
        print(as_text(found[told]) if len(found) else "nowhere")
    print(f"\nreport: {page}\ntables: {out / 'tables'}")
    if attribution is not None:
        print(f"outcomes: {out / 'outcomes.parquet'}\nanswers with traces: {out / 'results'}")
        print(f"checks: {out / 'checks'}")
