"""One study is asked of one model: planned, logged line by line, and continued where it stopped."""

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
"""Marks a part of a run that was asked to its end."""

_MAXIMUM_SHARDS: Final = 100_000

ProgressOption = bool | Callable[[Progress], None]

Shard = tuple[int, int]
"""Number of a shard, and how many there are."""

WHOLE: Final[Shard] = (0, 1)
"""The one shard of a run that is not cut up."""


def run_study(
    study: Study,
    data: Any,  # noqa: ANN401 - what `Study.load` returned
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
    """Ask a model what a study plans, and a sample of it twice.

    Started again with the same arguments it goes on where it was stopped. A start that fails before
    the first answer leaves the folder free for other settings.

    Args:
        study: The study.
        data: What its `load` returned.
        runner: The runner of the model.
        out: Folder of the run.
        model: Label of the model in tables.
        settings: How to ask; None for the study's defaults.
        source: Where the data came from, for the manifest.
        progress: Whether to show a progress bar on a terminal, or a function that is told.
        shared: A run of the same sweep, whose answers to groups that depend on the model alone,
            the repeated ones too, are taken over.
        shard: Ask only the batches of this shard: of the batches of each group, numbered from 0,
            those whose number leaves the shard's over. The folder is then a part of a run, which
            `merge_shards` puts together.

    Returns:
        The run folder, with targets, pairs, prompts, generations and manifest.

    Raises:
        DataError: If nothing is left to ask, or a prompt cannot be answered by options.
        RunnerError: If options are to be chosen among and the runner tells no log-probabilities.
        RunError: If the folder holds a run with other settings or a sweep, or `shared` is
            a run of another model or decoding; names them.
        RunError: If another process writes to this run.
        RunnerError: If a prompt does not fit the model.
    """
    _refuse_sweep(Path(out))
    plan, settings = _decoded_plan(study, data, settings or study.records.settings(), runner)
    prompts = [prompt for group in plan.groups.values() for prompt in group.prompts]
    if any(prompt.options for prompt in prompts):
        _refuse_reasoning(settings)
        runner = _choosing(runner, settings)
    answerer = _prepared(runner, plan)
    manifest = make_manifest(
        study.name,
        plan.data,
        model=model,
        settings=settings.model_dump(mode="json"),
        decoding={
            name or "answers": group.params.model_dump(mode="json")
            for name, group in plan.groups.items()
        },
        runner=answerer.fingerprint(),
        source=source,
    )
    _warn_uncovered(answerer, prompts)
    if shared is not None:
        _check_shared(shared, plan, manifest)
    folder = RunFolder.create(out)
    is_new = not folder.manifest.is_file()
    # What is stored is what it was, however often it is read.
    judged = set() if answerer.is_stored or not settings.repeat else set(plan.items["prompt_id"])
    twice = {
        name
        for name, group in plan.groups.items()
        if any(prompt.id in judged for prompt in group.prompts)
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
        again = answerer.rebatched(1)
        for (name, repeat), log in logs.items():
            group, asking = plan.groups[name], plan.groups[name].prompts
            if repeat:
                asking = sample_prompts(asking, settings.repeat, seed=settings.seed)
            if shared is not None and group.is_shared:
                _take_over(shared.log(name, repeat=repeat), asking, log)
            by = again if repeat else answerer
            run_prompts(by, asking, group.params, log, progress=progress, shard=shard)
        if shard == WHOLE:
            _record_replies(folder, plan.groups)
        else:
            write_json(folder.path / SHARD_FILE, {"shard": shard[0], "of": shard[1]})
    return folder


@contextmanager
def _withdrawn_if_failed(folder: RunFolder, logs: Sequence[Path]) -> Iterator[None]:
    """Remove what a start wrote that failed before the first answer."""
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
    data: Any,  # noqa: ANN401 - what `Study.load` returned
    settings: StudySettings,
    runner: Runner,
) -> tuple[Plan, StudySettings]:
    """Plan, offer options where answers are chosen, and settle how each group is decoded."""
    plan = make_plan(study, data, settings, runner)
    if plan.pairs.empty:
        raise DataError(f"no pair to ask in {plan.data.id} with these settings")
    settled: StudySettings = plan.settings or settings
    if isinstance(settled, OptionSettings) and settled.read != "generate":
        plan = add_choices(plan, settled, whole_plan(study, data, settled))
    groups = {
        name: replace(group, params=settled.with_reasoning(group.params))
        for name, group in plan.groups.items()
    }
    return replace(plan, groups=groups), settled


def _choosing(runner: Runner, settings: StudySettings) -> MultipleChoiceRunner:
    """Read answers off the probabilities of options, compared as the settings say."""
    if not isinstance(settings, OptionSettings):
        return MultipleChoiceRunner(runner, spellings=settings.options_are_spellings)
    is_majority = settings.read == "log-odds"
    return MultipleChoiceRunner(runner, option_score=settings.option_score, majority=is_majority)


def _prepared(runner: Runner, plan: Plan) -> Runner:
    """Put what the study brings between the engine and the runner."""
    answerer = runner if plan.prepare is None else plan.prepare(runner)
    if not isinstance(answerer, Runner):
        raise TypeError(
            f"{type(answerer).__name__} is not a Runner; derive the class from "
            "surface_consistency.models.Runner"
        )
    return answerer


def merge_shards(
    shards: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> RunFolder:
    """Put the shards of a run together, as if it had been asked in one piece.

    Args:
        shards: Folders that `run_study` filled with a `shard`, all of a run, in any order.
        out: Folder of the run; what it has of the answers already stays.

    Returns:
        The run folder, ready for `score_run`.

    Raises:
        ValueError: If no folder is given.
        RunError: If shards are of different settings or plans, or of other ones than the
            run in `out`; names them.
        DataError: If a shard is missing, or was not asked to its end.
    """
    if not shards:
        raise ValueError("no shard is given; give the folders of all shards of a run")
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
    """Say which shards are missing."""
    return DataError(
        f"{missing} of {Path(out)} not asked to the end; start the same command again, then merge"
    )


def _missing_shards(parts: Sequence[RunFolder]) -> str:
    """Name the shards that are not there or not asked to their end; "" for none."""
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
    """Write down what makes a run.

    Args:
        study: Name of the study.
        data: Which rows were used.
        model: Label of the model.
        runner: The runner's fingerprint.
        settings: The study's settings, dumped whole; None when predictions were made elsewhere.
        decoding: Decoding by group; None when predictions were made elsewhere.
        source: Where the data came from.

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
    """Put the counts of a run's replies into its manifest."""
    manifest = folder.read_manifest()
    counts = count_replies(folder.read_answers(groups))
    if manifest.replies != counts:
        counted = manifest.model_copy(update={"replies": counts})
        write_text(folder.manifest, counted.model_dump_json(indent=2) + "\n")


def sample_prompts(prompts: Sequence[Prompt], n: int, *, seed: int = 0) -> list[Prompt]:
    """Choose prompts to ask again, by the hash of their content.

    Args:
        prompts: All prompts of a group.
        n: How many; all of them when there are no more.
        seed: Seed of the choice.

    Returns:
        Distinct prompts, in an order that has nothing to do with the run's.
    """
    distinct = {prompt.key: prompt for prompt in reversed(prompts)}

    def rank(key: str) -> bytes:
        return hashlib.sha256(f"{seed}|{key}".encode()).digest()

    return [distinct[key] for key in sorted(distinct, key=rank)[:n]]


def _refuse_sweep(out: Path) -> None:
    """Refuse to write a single run into the folder of a sweep."""
    if (out / SWEEP_FILE).is_file():
        raise RunError(
            f"{out} holds a sweep, a folder a run, whose tables a single run would replace; choose "
            "another `out`, or give several values again to go on with the sweep"
        )


def _write_plan(folder: RunFolder, plan: Plan) -> None:
    """Write what is asked, judged and compared."""
    keys, groups = {}, {}
    for name, group in plan.groups.items():
        for prompt in group.prompts:
            keys[prompt.id], groups[prompt.id] = prompt.key, name
    prompt_ids = plan.items["prompt_id"]
    missing = prompt_ids[pd.Index(list(keys)).get_indexer(pd.Index(prompt_ids)) < 0]
    if len(missing):
        raise DataError(f"target of prompt {missing.iloc[0]!r}, which the plan does not ask")
    write_targets(folder, plan, prompt_ids.map(keys), prompt_ids.map(groups))
    write_jsonl(
        folder.prompts, (prompt for group in plan.groups.values() for prompt in group.prompts)
    )


def write_targets(folder: RunFolder, plan: Plan, keys: pd.Series, groups: pd.Series | str) -> None:
    """Write targets with the keys of their prompts, pairs, and the checks of what goes in."""
    folder.write_checks(plan.checks)
    folder.write_plan(plan.items.assign(prompt_key=keys, group=groups), plan.pairs)


def _refuse_reasoning(settings: StudySettings) -> None:
    """Refuse what is said of reasoning where options are scored and nothing is written."""
    for name in ("max_reasoning_tokens", "reasoning_opened"):
        if value := getattr(settings, name):
            raise ValueError(
                f"{name}={value} is for answers that are written; the probabilities of options "
                "are read right after the prompt, where such a model would still think: ask with "
                f"`read=generate`, or leave `{name}` out"
            )


def _check_shared(shared: RunFolder, plan: Plan, manifest: RunManifest) -> None:
    """Refuse to take answers over that this run's model would not give."""
    groups = tuple(
        f"decoding.{name or 'answers'}." for name, group in plan.groups.items() if group.is_shared
    )
    differing = [
        name
        for name in shared.read_manifest().differences(manifest)
        if name == "model"
        or name.startswith(groups)
        # Another store has no bearing on groups that depend on the model alone.
        or (name.startswith("runner.") and not name.endswith(".source.sha256"))
    ]
    if groups and differing:
        raise RunError(
            f"the answers in {shared.path} were made with another {', '.join(differing)}; take a "
            "run of the same model and decoding, or none"
        )


def _take_over(source: Path, prompts: Sequence[Prompt], log: RunLog) -> None:
    """Copy the answers that another run of the sweep has to some prompts."""
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
    """Say which prompts stored predictions lack, and which predictions are of other questions."""
    if isinstance(runner, StoredRunner):
        gaps = runner.gaps(prompts)
        if gaps is not None:
            warnings.warn(gaps, UnscoredWarning, stacklevel=3)
