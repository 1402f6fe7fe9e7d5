"""Run of one study on one model: planned, logged line by line, and resumable."""

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pandas as pd

import surface_consistency
from surface_consistency.engine.choices import add_choices, whole_plan
from surface_consistency.engine.generate import Progress, run_prompts
from surface_consistency.engine.plan import Plan
from surface_consistency.engine.settings import OptionSettings, StudySettings
from surface_consistency.engine.study import Study, make_plan
from surface_consistency.errors import DataError, RecordError, RunError, UnscoredWarning
from surface_consistency.models.options import MultipleChoiceRunner
from surface_consistency.models.runner import Runner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.reading import first_names, parse_json, shown
from surface_consistency.runs.answers import count_replies
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.files import write_json, write_text
from surface_consistency.runs.folder import RunFolder, read_tables
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, Prompt, write_jsonl
from surface_consistency.schemas.settings import Settings

SWEEP_FILE = "sweep.json"
SHARD_FILE = "shard.json"
"""Name of the file that marks a finished shard of a run."""

_MAXIMUM_SHARDS: Final = 100_000

ProgressOption = bool | Callable[[Progress], None]

Shard = tuple[int, int]
"""Number of a shard, and number of shards."""

WHOLE: Final[Shard] = (0, 1)
"""The single shard of a run that is not divided."""


def run_study(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `Study.load`
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: StudySettings | None = None,
    source: Settings | None = None,
    progress: ProgressOption = True,
    shared: RunFolder | None = None,
    shard: Shard = WHOLE,
) -> RunFolder:
    """Send the prompts of a study to a model, and a sample of them twice.

    A call with the same arguments resumes a stopped run. If a run fails before its first answer,
    the folder can be used with other settings.

    Args:
        study: The study.
        data: The data that its `load` returned.
        runner: The runner of the model.
        out: Folder of the run.
        model: Label of the model in tables.
        settings: How to prompt; None for the study's defaults.
        source: Source of the data, for the manifest.
        progress: Whether to show a progress bar on a terminal, or a function that receives each
            `Progress`.
        shared: A run of the same sweep. Its answers to groups that depend only on the model are
            copied, including those of repeated prompts.
        shard: Run only the batches of this shard: the batches of each group are numbered from 0,
            and shard i of n has those whose number modulo n is i. The folder is then a part of a
            run; `merge_shards` merges the parts.

    Returns:
        The run folder, with targets, pairs, prompts, generations and manifest.

    Raises:
        DataError: If no prompt is left, or a prompt cannot be answered by options.
        RunnerError: If answers are chosen among options and the runner has no log-probabilities.
        RunError: If the folder contains a run with other settings or a sweep, or `shared` is
            a run of another model or decoding; names them.
        RunError: If another process writes to this run.
        RunnerError: If a prompt does not fit the model.
    """
    _reject_sweep(Path(out))
    plan, settings = _decoded_plan(study, data, settings or study.records.settings(), runner)
    prompts = [prompt for group in plan.groups.values() for prompt in group.prompts]
    if any(prompt.options for prompt in prompts):
        _reject_reasoning(settings)
        runner = _choosing(runner, settings)
    backend = _prepared(runner, plan)
    manifest = make_manifest(
        study.name,
        plan.data,
        model=model,
        settings=settings.model_dump(mode="json"),
        decoding={
            name or "answers": group.params.model_dump(mode="json")
            for name, group in plan.groups.items()
        },
        runner=backend.fingerprint(),
        source=source,
    )
    _warn_uncovered(backend, prompts)
    if shared is not None:
        _check_shared(shared, plan, manifest)
    folder = RunFolder.create(out)
    is_new = not folder.manifest.is_file()
    # Stored answers do not vary between repetitions.
    scored = set() if backend.is_stored or not settings.repeat else set(plan.items["prompt_id"])
    twice = {
        name
        for name, group in plan.groups.items()
        if any(prompt.id in scored for prompt in group.prompts)
    }
    with ExitStack() as stack:
        logs = {
            (name, repeat): stack.enter_context(
                RunLog.open(
                    folder.log(name, repeat=repeat), manifest, manifest_path=folder.manifest
                )
            )
            for name in plan.groups
            for repeat in ((False, True) if name in twice else (False,))
        }
        if is_new:
            stack.enter_context(_withdrawn_if_failed(folder, [log.path for log in logs.values()]))
        _write_plan(folder, plan)
        again = backend.rebatched(1)
        for (name, repeat), log in logs.items():
            group, chosen = plan.groups[name], plan.groups[name].prompts
            if repeat:
                chosen = sample_prompts(chosen, settings.repeat, seed=settings.seed)
            if shared is not None and group.is_shared:
                _copy_answers(shared.log(name, repeat=repeat), chosen, log)
            by = again if repeat else backend
            run_prompts(by, chosen, group.params, log, progress=progress, shard=shard)
        if shard == WHOLE:
            _record_replies(folder, plan.groups)
        else:
            write_json(folder.path / SHARD_FILE, {"shard": shard[0], "of": shard[1]})
    return folder


@contextmanager
def _withdrawn_if_failed(folder: RunFolder, logs: Sequence[Path]) -> Iterator[None]:
    """Remove the files of a start that failed before the first answer."""
    try:
        yield
    except Exception:
        if not any(log.stat().st_size for log in logs):
            planned = (folder.plan, folder.targets, folder.pairs, folder.prompts, folder.manifest)
            for path in (*logs, *planned):
                path.unlink(missing_ok=True)
            shutil.rmtree(folder.checks, ignore_errors=True)
        raise


def _decoded_plan(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `Study.load`
    settings: StudySettings,
    runner: Runner,
) -> tuple[Plan, StudySettings]:
    """Make the plan, add options if answers are chosen, and set the decoding of each group."""
    plan = make_plan(study, data, settings, runner)
    if plan.pairs.empty:
        raise DataError(f"no pair of prompts in {plan.data.id}; change the settings")
    settled: StudySettings = plan.settings or settings
    if isinstance(settled, OptionSettings) and settled.read != "generate":
        plan = add_choices(plan, settled, whole_plan(study, data, settled))
    groups = {
        name: replace(group, params=settled.with_reasoning(group.params))
        for name, group in plan.groups.items()
    }
    return replace(plan, groups=groups), settled


def _choosing(runner: Runner, settings: StudySettings) -> MultipleChoiceRunner:
    """Make the runner that reads answers from the probabilities of options."""
    if not isinstance(settings, OptionSettings):
        return MultipleChoiceRunner(runner, spellings=settings.options_are_spellings)
    is_majority = settings.read == "log-odds"
    return MultipleChoiceRunner(runner, option_score=settings.option_score, majority=is_majority)


def _prepared(runner: Runner, plan: Plan) -> Runner:
    """Apply `Plan.prepare` to the runner."""
    backend = runner if plan.prepare is None else plan.prepare(runner)
    if not isinstance(backend, Runner):
        raise TypeError(
            f"{type(backend).__name__} is not a Runner; derive the class from "
            "surface_consistency.models.Runner"
        )
    return backend


def merge_shards(
    shards: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> RunFolder:
    """Merge the shards of a run; the result equals that of an undivided run.

    Args:
        shards: Folders that `run_study` filled with a `shard`, all of a run, in any order.
        out: Folder of the run; answers that it already contains are kept.

    Returns:
        The run folder, ready for `score_run`.

    Raises:
        ValueError: If no folder is given.
        RunError: If settings or plans differ between shards, or from those of the run in `out`;
            names them.
        DataError: If a shard is missing, or is not finished.
    """
    if not shards:
        raise ValueError("no shard was given; give the folders of all shards of a run")
    parts = [RunFolder(Path(path)) for path in shards]
    missing = ", ".join(part.path.name for part in parts if not part.plan.is_file())
    if missing:
        raise _unfinished(f"shard {missing}", out)
    manifest, plan = parts[0].read_manifest(), parts[0].plan.read_bytes()
    for part in parts[1:]:
        differing = manifest.differences(part.read_manifest())
        if differing or part.plan.read_bytes() != plan:
            fields = ", ".join(
                f"{name} {shown(one)} and {shown(other)}"
                for name, (one, other) in [*differing.items()][:3]
            )
            raise RunError(
                f"{parts[0].path} and {part.path} are shards of different runs "
                f"({fields or 'their plans differ'}); merge those of one run, and remove the others"
            )
    missing = _missing_shards(parts)
    if missing:
        raise _unfinished(missing, out)
    targets, pairs = parts[0].read_plan()
    folder = RunFolder.create(out)
    for name in sorted({log.name for part in parts for log in part.logs()}):
        with RunLog.open(folder.path / name, manifest, manifest_path=folder.manifest) as log:
            for part in parts:
                path = part.path / name
                answers = read_generations(path) if path.is_file() else ()
                log.append([answer for answer in answers if answer.prompt_key not in log])
    folder.write_checks(read_tables(parts[0].checks))
    folder.write_plan(targets, pairs)
    write_text(folder.prompts, parts[0].prompts.read_text(encoding="utf-8"))
    _record_replies(folder, dict.fromkeys(targets["group"]))
    return folder


def _unfinished(missing: str, out: str | os.PathLike[str]) -> DataError:
    """Make the error for missing shards."""
    return DataError(
        f"{missing} of {Path(out)} not finished; run the same command again, then merge"
    )


def _missing_shards(parts: Sequence[RunFolder]) -> str:
    """Name the shards that are missing or not finished; "" if there are none."""
    done = [part.path / SHARD_FILE for part in parts]
    unmarked = [path.parent.name for path in done if not path.is_file()]
    if unmarked:
        return f"shard {', '.join(unmarked)}"
    marks = [_shard_of(path) for path in done]
    n_shards = max(of for _, of in marks)
    numbers = {number for number, of in marks if of == n_shards}
    absent = [number for number in range(n_shards) if number not in numbers]
    return f"shards {first_names(absent)} of {n_shards}" if absent else ""


def _shard_of(path: Path) -> tuple[int, int]:
    """Read the number of a shard, and the number of all shards."""
    match parse_json(path.read_bytes(), str(path)):
        case {"shard": int(number), "of": int(of)} if 0 <= number < of <= _MAXIMUM_SHARDS:
            return number, of
    raise RecordError(
        f"{path} does not contain the number of its shard and of all shards, which are integers; "
        "remove the file and run this shard again"
    )


def make_manifest(
    study: str,
    data: DataSource,
    *,
    model: str,
    runner: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    decoding: Mapping[str, Any] | None = None,
    source: Settings | None = None,
) -> RunManifest:
    """Make the manifest of a run.

    Args:
        study: Name of the study.
        data: The rows that were used.
        model: Label of the model.
        runner: The runner's fingerprint.
        settings: All settings of the study; None if predictions were made elsewhere.
        decoding: Decoding by group; None if predictions were made elsewhere.
        source: Source of the data.

    Returns:
        The manifest.
    """
    return RunManifest(
        study=study,
        model=model,
        data=data,
        settings=dict(settings or {}),
        decoding=dict(decoding or {}),
        source={} if source is None else source.model_dump(mode="json"),
        runner=dict(runner),
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        command=COMMAND.get(),
    )


def _record_replies(folder: RunFolder, groups: Iterable[str]) -> None:
    """Write the counts of a run's replies to its manifest."""
    manifest = folder.read_manifest()
    counts = count_replies(folder.read_answers(groups))
    if manifest.replies != counts:
        counted = manifest.model_copy(update={"replies": counts})
        write_text(folder.manifest, counted.model_dump_json(indent=2) + "\n")


def sample_prompts(prompts: Sequence[Prompt], n: int, *, seed: int = 0) -> list[Prompt]:
    """Choose the prompts that are repeated, by the hash of their content.

    Args:
        prompts: All prompts of a group.
        n: Maximum number of prompts.
        seed: Random seed.

    Returns:
        Distinct prompts, in an order that does not depend on that of the run.
    """
    distinct = {prompt.key: prompt for prompt in reversed(prompts)}

    def rank(key: str) -> bytes:
        return hashlib.sha256(f"{seed}|{key}".encode()).digest()

    return [distinct[key] for key in sorted(distinct, key=rank)[:n]]


def _reject_sweep(out: Path) -> None:
    """Raise an error if a single run would be written to the folder of a sweep."""
    if (out / SWEEP_FILE).is_file():
        raise RunError(
            f"{out} contains a sweep with one folder per run, and a single run would replace its "
            "tables; choose another `out`, or give several values again to resume the sweep"
        )


def _write_plan(folder: RunFolder, plan: Plan) -> None:
    """Write prompts, targets and pairs."""
    keys, groups = {}, {}
    for name, group in plan.groups.items():
        for prompt in group.prompts:
            keys[prompt.id], groups[prompt.id] = prompt.key, name
    prompt_ids = plan.items["prompt_id"]
    missing = prompt_ids[pd.Index(list(keys)).get_indexer(pd.Index(prompt_ids)) < 0]
    if len(missing):
        raise DataError(f"prompt {missing.iloc[0]!r} of a target is not in the plan; add it")
    write_targets(folder, plan, prompt_ids.map(keys), prompt_ids.map(groups))
    write_jsonl(
        folder.prompts, (prompt for group in plan.groups.values() for prompt in group.prompts)
    )


def write_targets(folder: RunFolder, plan: Plan, keys: pd.Series, groups: pd.Series | str) -> None:
    """Write targets with the keys of their prompts, pairs, and the checks of the plan."""
    folder.write_checks(plan.checks)
    folder.write_plan(plan.items.assign(prompt_key=keys, group=groups), plan.pairs)


def _reject_reasoning(settings: StudySettings) -> None:
    """Raise an error for reasoning settings if options are scored and no text is generated."""
    for name in ("max_reasoning_tokens", "reasoning_opened"):
        if value := getattr(settings, name):
            raise ValueError(
                f"{name}={value} is for generated answers, but the probabilities of options are "
                "read right after the prompt, before a reasoning model has finished reasoning; set "
                f"`read=generate`, or omit `{name}`"
            )


def _check_shared(shared: RunFolder, plan: Plan, manifest: RunManifest) -> None:
    """Raise an error if the answers of another run cannot be used for this run."""
    groups = tuple(
        f"decoding.{name or 'answers'}." for name, group in plan.groups.items() if group.is_shared
    )
    differing = [
        name
        for name in shared.read_manifest().differences(manifest)
        if name == "model"
        or name.startswith(groups)
        # Groups that depend only on the model are independent of the store.
        or (name.startswith("runner.") and not name.endswith(".source.sha256"))
    ]
    if groups and differing:
        raise RunError(
            f"the answers in {shared.path} were made with another {', '.join(differing)}; use a "
            "run of the same model and decoding, or omit `shared`"
        )


def _copy_answers(source: Path, prompts: Sequence[Prompt], log: RunLog) -> None:
    """Copy the answers to some prompts from another run of the sweep."""
    wanted = {prompt.key for prompt in prompts if prompt.key not in log}
    if wanted and source.is_file():
        log.append(
            [
                answer
                for answer in read_generations(source)
                if answer.prompt_key in wanted and answer.finish_reason != "error"
            ]
        )


def _warn_uncovered(runner: Runner, prompts: Sequence[Prompt]) -> None:
    """Warn about prompts without a stored prediction, and predictions of other questions."""
    if isinstance(runner, StoredRunner):
        gaps = runner.gaps(prompts)
        if gaps is not None:
            warnings.warn(gaps, UnscoredWarning, stacklevel=3)
