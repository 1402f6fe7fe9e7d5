"""An audit, asked: every fact in every style and state, in one run.

The interventions are those of arXiv 2607.00605, section 3; deletion comes before the search, and
the policy where nothing is close enough is a setting.
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import surface_consistency
from surface_consistency.errors import RunMismatchError
from surface_consistency.inference.generate import Progress, run_prompts
from surface_consistency.inference.runner import Runner
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.schemas import DataSource, RunManifest, write_jsonl
from surface_consistency.studies.audit.cells import AuditCell
from surface_consistency.studies.audit.checks import write_inputs
from surface_consistency.studies.audit.folder import AuditFolder, check_single
from surface_consistency.studies.audit.memory import AuditMemory, build_memory
from surface_consistency.studies.audit.retrievers import Retrievers, retrievers_by_name
from surface_consistency.studies.audit.settings import AuditSettings
from surface_consistency.studies.audit.source import AuditSource

__all__ = ["RunnerFactory", "run_audit"]

RunnerFactory = Callable[[AuditSource], Runner]
"""Makes the runner that asks a store of facts: a `LookupRunner` of a model that looks facts up, or
a `RetrievalAugmentedRunner` around any other."""


def run_audit(
    cells: Sequence[AuditCell],
    runner: RunnerFactory,
    out: str | os.PathLike[str],
    *,
    model: str,
    data: str = "databases",
    settings: AuditSettings | None = None,
    retrievers: Retrievers | None = None,
    without_retrieval: AuditFolder | None = None,
    progress: bool | Callable[[Progress], None] = True,
) -> AuditFolder:
    """Ask a model every fact in every style and state.

    Started again with the same arguments it goes on where it was stopped.

    Args:
        cells: Databases with their prompts, as of `find_cells`.
        runner: Makes the runner of the store that it is given.
        out: Folder of the run.
        model: Label of the model in tables.
        data: Where the cells came from, for the manifest.
        settings: How to run; None for the defaults.
        retrievers: Makes the retriever of each database; None for those that the settings name.
        without_retrieval: An audit of the same cells by the same model; its answers with retrieval
            off, on which nothing of the store has any bearing, are taken over.
        progress: Whether to show a progress bar on a terminal, or a function that is told.

    Returns:
        The run folder, with targets, prompts, generations and the checks of what went in.

    Raises:
        ValueError: If there are no cells, or two databases have one name.
        RetrievalError: If a retriever was built over another database than its own.
        RunMismatchError: If the folder holds a sweep or a run with other settings, or
            `without_retrieval` is a run of another model or decoding; names them.
        RunLogLockedError: If another process writes to this run.
        PromptTooLongError: If a prompt does not fit the model.

    Warns:
        IncompleteClosureWarning: For each database in which a deletion leaves its fact.
        ContaminationWarning: If two databases are equal.
    """
    check_single(out)
    settings = settings or AuditSettings()
    memory = build_memory(cells, settings, retrievers or retrievers_by_name(settings.retriever))
    asked = runner(memory.source)
    manifest = RunManifest(
        study="audit",
        model=model,
        data=DataSource(
            id=data, revision=None, digest=memory.digest, n_questions=len(memory.targets)
        ),
        prompts=None,
        params=settings.params,
        runner=asked.fingerprint(),
        settings={
            **settings.described(),
            "databases": "+".join(memory.contents),
            "styles": "+".join(dict.fromkeys(cell.label.style for cell in cells)),
        },
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if without_retrieval is not None:
        _check_same(without_retrieval, manifest)
    folder = AuditFolder.create(out)
    with RunLog.open(folder.generations, manifest, manifest_path=folder.manifest) as log:
        write_jsonl(folder.targets, memory.targets)
        write_jsonl(folder.prompts, memory.prompts)
        write_inputs(folder, cells, memory)
        if without_retrieval is not None:
            _take_over(without_retrieval, memory, log)
        run_prompts(asked, memory.prompts, settings.params, log, progress=progress)
    return folder


def _check_same(folder: AuditFolder, manifest: RunManifest) -> None:
    """Refuse to take answers over that this run's model would not give without retrieval."""
    other = folder.read_manifest()
    pairs: dict[str, tuple[object, object]] = {
        "model": (other.model, manifest.model),
        "params": (other.params, manifest.params),
        "off_mode": (other.settings.get("off_mode"), manifest.settings["off_mode"]),
        "runner": (_without_store(other), _without_store(manifest)),
    }
    if differing := [name for name, (theirs, ours) in pairs.items() if theirs != ours]:
        raise RunMismatchError(
            f"the answers without retrieval in {folder.path} were made with another "
            f"{', '.join(differing)}; pass a run of the same model and decoding, or none"
        )


def _without_store(manifest: RunManifest) -> dict[str, object]:
    """Tell how a runner decodes, whatever store it asks."""
    return {name: value for name, value in manifest.runner.items() if name != "source"}


def _take_over(folder: AuditFolder, memory: AuditMemory, log: RunLog) -> None:
    """Copy the answers that another run has to the prompts with retrieval off."""
    keys = {
        prompt.key
        for prompt in memory.prompts
        if prompt.condition == "DEL-OFF" and prompt.key not in log
    }
    if not keys:
        return
    log.append(
        [
            answer
            for answer in read_generations(folder.generations)
            if answer.prompt_key in keys and answer.finish_reason != "error"
        ]
    )
