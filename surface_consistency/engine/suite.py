"""A suite runs: told before it starts, resumable, one failure not stopping the rest, one page.

Each run of it is an ordinary run folder, so that `report`, `compare` and `score` take them. A suite
that outgrows one machine runs as steps of a datatrove pipeline, local, on Slurm or Ray, its runs
whole or in shards; the merge refuses what is not of one plan.
"""

import gc
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

import surface_consistency
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.run import WHOLE, ProgressOption, Shard, merge_shards
from surface_consistency.engine.score import score_run
from surface_consistency.engine.study import Study, find_study
from surface_consistency.engine.suite_file import StudyEntry, Suite, SuiteRun, read_suite
from surface_consistency.engine.sweep import ask_sweep
from surface_consistency.errors import DataError, SurfaceConsistencyError
from surface_consistency.models.revisions import find_revisions
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Block, Finding, Link, Page, Prose, Section
from surface_consistency.report.table import Column, Table
from surface_consistency.runs.files import output_folder, write_json, write_text
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.locks import FileLock

__all__ = [
    "CellState",
    "SuiteMergeStep",
    "SuiteStep",
    "report_suite",
    "run_suite",
    "suite_states",
    "takes_device",
]

_FAILED: Final = "failed.txt"
_SHARDS: Final = "shards"

_CELL: Final = "cell.json"
_WITHOUT_DEVICE: Final = ("fake", "openai", "stored", "stored-scores")

State = Literal["new", "begun", "done", "unanswered", "failed", "same weights"]
_JUDGED: Final = ("done", "unanswered")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """How far a run of a suite is."""

    cell: SuiteRun
    """The run."""

    state: State
    """Whether it is to be asked, was begun, is judged, is judged but for prompts without an answer,
    failed, or has another's weights."""

    told: str = ""
    """Why it failed, or the revision that has the same weights."""


def suite_states(suite: Suite, out: str | os.PathLike[str]) -> list[CellState]:
    """Tell how far each run of a suite is; nothing is loaded, asked or written.

    Weights of revisions are compared here. A model whose revisions cannot be found has failed.

    Args:
        suite: The suite.
        out: Its folder.

    Returns:
        One state a run, in the order in which they are asked.
    """
    home = Path(out)
    twins: dict[str, Mapping[str, str]] = {}
    lacking: dict[str, str] = {}
    for model in suite.models:
        if not model.revision_names:
            continue
        name = model.name(None)
        try:
            found = find_revisions(str(model.model), model.revision_names)
            twins[name] = {one.name: one.same_as for one in found if one.same_as is not None}
        except (SurfaceConsistencyError, ValueError, OSError) as error:
            lacking[name] = str(error)
    states = []
    for cell in suite.cells:
        name, folder = cell.model.name(None), home / cell.folder
        other = twins.get(name, {}).get(cell.revision or "")
        state: State = "new"
        told = ""
        if name in lacking:
            state, told = "failed", lacking[name]
        elif other is not None:
            state, told = "same weights", other
        elif changed := _changes(cell, home):
            state, told = "failed", changed
        elif (folder / _FAILED).is_file():
            state, told = "failed", (folder / _FAILED).read_text(encoding="utf-8").strip()
        elif folder.exists():
            state = _progress(cell, home)
        states.append(CellState(cell=cell, state=state, told=told))
    return states


def _progress(cell: SuiteRun, home: Path) -> State:
    """Tell how far a run is that was begun and did not fail."""
    runs = _run_folders(cell, home)
    scorings = [run.read_scoring() for run in runs]
    known = [scoring for scoring in scorings if scoring is not None]
    wanted = cell.entry.scoring.model_dump(mode="json")
    if not runs or len(known) < len(runs) or any(one.settings != wanted for one in known):
        return "begun"
    return "unanswered" if any(one.n_unanswered for one in known) else "done"


def _described(cell: SuiteRun) -> dict[str, Any]:
    """Write down what a run is made of; how it is judged may be chosen anew."""
    return {
        "study": cell.entry.study,
        "source": cell.entry.source.model_dump(mode="json"),
        "settings": cell.settings.model_dump(mode="json"),
        "model": cell.model.model_dump(mode="json", exclude={"revisions", "device"}),
        "revision": cell.revision,
    }


def _changes(cell: SuiteRun, home: Path) -> str:
    """Say in what the suite file has changed since a run was begun; "" for nothing."""
    path = home / cell.folder / _CELL
    if not path.is_file():
        return ""
    before, now = json.loads(path.read_bytes()), _described(cell)
    told = []
    for name, value in now.items():
        old = before.get(name)
        pairs = (
            [(key, old.get(key), value.get(key)) for key in value if old.get(key) != value.get(key)]
            if isinstance(value, dict) and isinstance(old, dict)
            else [(name, old, value)] * (old != value)
        )
        told += [f"{key} was {one!r} and is {other!r}" for key, one, other in pairs]
    if not told:
        return ""
    return (
        f"{home / cell.folder} was begun with other settings ({'; '.join(told)}); set them back, "
        "give the study or the model another name, or choose another --out"
    )


def run_suite(
    suite: Suite, out: str | os.PathLike[str], *, progress: ProgressOption = True
) -> list[CellState]:
    """Run what is not done of a suite, one run after the other, and report all of it.

    Args:
        suite: The suite.
        out: Its folder; each run has one of its own below it, and the page is `report.html`.
        progress: Whether to show a progress bar on a terminal, or a function that is told.

    Returns:
        How far each run is; those that failed say why, and are tried again by the next start.
    """
    home = output_folder(out)
    loader = _Loader()
    for one in suite_states(suite, home):
        if _is_waiting(one, home):
            _attempt(one.cell, home, loader, progress=progress)
    loader.let_go()
    return report_suite(suite, home)


def report_suite(suite: Suite, out: str | os.PathLike[str]) -> list[CellState]:
    """Report the runs of a suite that are done: a page for each study, and one over all.

    Args:
        suite: The suite.
        out: Its folder.

    Returns:
        How far each run is.
    """
    home, states = Path(out), suite_states(suite, out)
    sections = [_states_section(states)]
    for entry in suite.studies:
        folders = [
            run.path
            for one in states
            if one.cell.entry is entry and one.state in _JUDGED
            for run in _run_folders(one.cell, home)
        ]
        if folders:
            sections.append(_study_section(entry, folders, home))
    write_page(_page(suite, states, sections), home / "report.html")
    return states


class SuiteStep:
    """Asks the runs, or shards of runs, of a suite that fall to a task; a step for `datatrove`.

    Give this step alone to an executor with any number of tasks, then `SuiteMergeStep` with one.
    A run that fails is told by the merge and does not stop the others.

    Args:
        file: The suite file, in a place that all tasks reach.
        out: Folder of the suite, too.
        shards: Parts that the prompts of each run are cut into; 1 leaves runs whole.
        devices: Where models run, such as "cuda:0" and "cuda:1": each task takes the next one that
            no other task of this suite holds on its machine. None leaves it to the suite file, or
            to what the scheduler shows a task, as Slurm and Ray do.

    Raises:
        ValueError: If `shards` is below 1.

    Examples:
        ```python
        from datatrove.executor import LocalPipelineExecutor

        ask = LocalPipelineExecutor(
            [SuiteStep("suite.toml", "runs", shards=4)],
            tasks=8,
            workers=2,
            logging_dir="logs/ask",
            skip_completed=False,
        )
        LocalPipelineExecutor(
            [SuiteMergeStep("suite.toml", "runs", shards=4)],
            tasks=1,
            logging_dir="logs/merge",
            depends=ask,
            skip_completed=False,
        ).run()
        ```
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        shards: int = 1,
        devices: Sequence[str] | None = None,
    ) -> None:
        if shards < 1:
            raise ValueError(f"`shards` is 1 or more, got {shards}")
        self.file, self.out = os.path.abspath(file), os.path.abspath(out)
        """The suite file and its folder; absolute, since tasks start elsewhere."""
        self.shards = shards
        """Parts of a run."""
        self.devices = list(devices or ())
        """Where models run."""

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Ask.

        Args:
            data: Documents of the step before; there must be none.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one gives documents, or the suite file is broken.
        """
        _refuse_documents(data, type(self).__name__)
        home = Path(self.out)
        states = suite_states(read_suite(self.file), home)
        waiting = [one.cell for one in states if _is_waiting(one, home)]
        units = [(cell, number) for cell in waiting for number in range(self.shards)]
        # What a rank asks must not hang on what others have finished meanwhile.
        every = [(one.cell, number) for one in states for number in range(self.shards)]
        mine = {_unit_name(*unit) for unit in every[rank::world_size]}
        with self._device(rank) as device:
            loader = _Loader(device)
            for cell, number in units:
                if _unit_name(cell, number) in mine:
                    shard = (number, self.shards)
                    _attempt(cell, home, loader, progress=False, shard=shard)
            loader.let_go()
        return iter(())

    @contextmanager
    def _device(self, rank: int) -> Iterator[str | None]:
        """Take a device that no other task here holds; where all are held, share one."""
        if not self.devices:
            yield None
            return
        suite = hashlib.sha256(self.out.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        first = rank % len(self.devices)
        for place in (*range(first, len(self.devices)), *range(first)):
            # Names of devices are those of one machine, as its temporary folder is.
            path = Path(tempfile.gettempdir(), f"surface-consistency-{suite}-{place}.lock")
            with suppress(_DeviceHeldError), FileLock(path, held=_DeviceHeldError):
                yield self.devices[place]
                return
        yield self.devices[first]

    def __repr__(self) -> str:
        """Name the step in the log."""
        return f"ask: {self.file}"


class SuiteMergeStep:
    """Merges the shards of each run, judges and reports, in the first task.

    Args:
        file: The suite file.
        out: Folder of the suite.
        shards: Parts of each run, as `SuiteStep` had them.
    """

    def __init__(
        self, file: str | os.PathLike[str], out: str | os.PathLike[str], *, shards: int = 1
    ) -> None:
        self.file, self.out = os.path.abspath(file), os.path.abspath(out)
        """The suite file and its folder; absolute, since tasks start elsewhere."""
        self.shards = shards
        """Parts of a run."""

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Merge.

        Args:
            data: Documents of the step before; there must be none.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one gives documents, or the suite file is broken.
        """
        _refuse_documents(data, type(self).__name__)
        if rank == 0:
            suite, home = read_suite(self.file), Path(self.out)
            if self.shards > 1:
                for cell in suite.cells:
                    _merge(cell, home, self.shards)
            report_suite(suite, home)
        return iter(())

    def __repr__(self) -> str:
        """Name the step in the log."""
        return f"merge: {self.file}"


class _DeviceHeldError(Exception):
    """Another task holds the device."""


class _Loader:
    """Keeps the data and the model that were last loaded, for runs that share them."""

    def __init__(self, device: str | None = None) -> None:
        self._device = device
        self._key: object = None
        self._runner: Any = None
        self._data: dict[str, Any] = {}

    def data(self, study: Study, entry: StudyEntry) -> Any:  # noqa: ANN401 - each study's own
        """Load the data of a study, once."""
        if entry.name not in self._data:
            self._data[entry.name] = study.load(entry.source)
        return self._data[entry.name]

    def runner(self, study: Study, cell: SuiteRun) -> Any:  # noqa: ANN401 - as the study's
        """Load the model of a run; the one before is let go first."""
        changed: dict[str, object] = {}
        if cell.revision is not None:
            changed["revision"] = cell.revision
        if self._device is not None and takes_device(cell.model, study):
            changed["device"] = self._device
        # A study that loads its own way may make something else of the same options.
        how = study.name if type(study).load_runner is not Study.load_runner else study.runner
        key = (how, cell.model, cell.revision)
        if key != self._key:
            self.let_go()
            self._runner = cell.model.load(study, **changed)
            self._key = key
        return self._runner

    def let_go(self) -> None:
        """Free the memory of the model."""
        self._key = self._runner = None
        gc.collect()


def takes_device(model: ModelSettings, study: Study) -> bool:
    """Tell whether a model runs on one device of this machine, so that a task may choose it.

    Args:
        model: The model.
        study: The study that it answers.

    Returns:
        Whether it does: not if its layers are spread, and not with a runner that asks a server or
        reads what is stored.
    """
    runner = model.runner or study.runner
    return model.device_map is None and runner not in _WITHOUT_DEVICE


def _attempt(
    cell: SuiteRun, home: Path, loader: _Loader, *, progress: ProgressOption, shard: Shard = WHOLE
) -> None:
    """Ask a run or a shard of it; write down why it failed, if it does."""
    folder = home / cell.folder
    part = folder if shard == WHOLE else _shard_folder(folder, shard)
    failed = part / _FAILED
    try:
        part.mkdir(parents=True, exist_ok=True)
        write_json(folder / _CELL, _described(cell))
        study = find_study(cell.entry.study).with_output_dir(folder)
        ask_sweep(
            study,
            loader.data(study, cell.entry),
            loader.runner(study, cell),
            part,
            model=cell.label,
            settings=cell.settings,
            source=cell.entry.source,
            scoring=cell.entry.scoring,
            progress=progress,
            shard=shard,
        )
        failed.unlink(missing_ok=True)
        (folder / _FAILED).unlink(missing_ok=True)
    except Exception as error:
        # Whatever a model, a plugin or a library raises, the other runs go on.
        loader.let_go()
        name = "" if isinstance(error, SurfaceConsistencyError) else f"{type(error).__name__}: "
        text = f"{name}{error}\n"
        write_text(failed, text)
        if part != folder:
            write_text(folder / _FAILED, text)


def _merge(cell: SuiteRun, home: Path, n_shards: int) -> None:
    """Merge and judge the shards of a run; write down why it failed, if it does."""
    folder = home / cell.folder
    parts = [_shard_folder(folder, (number, n_shards)) for number in range(n_shards)]
    if not any(part.is_dir() for part in parts):
        return
    try:
        study = find_study(cell.entry.study).with_output_dir(folder)
        for name, _ in study.sweep(cell.settings):
            merged = merge_shards([part / name for part in parts], folder / name)
            score_run(merged, study=study, scoring=cell.entry.scoring)
        (folder / _FAILED).unlink(missing_ok=True)
    except (SurfaceConsistencyError, ValueError, OSError) as error:
        told = [(part / _FAILED) for part in parts if (part / _FAILED).is_file()]
        text = told[0].read_text(encoding="utf-8") if told else f"{error}\n"
        write_text(folder / _FAILED, text)


def _shard_folder(folder: Path, shard: Shard) -> Path:
    """Name the folder of a shard."""
    return folder / _SHARDS / f"{shard[0]:05d}-of-{shard[1]:05d}"


def _unit_name(cell: SuiteRun, number: int) -> str:
    """Name a shard of a run."""
    return f"{cell.folder}#{number}"


def _is_waiting(one: CellState, home: Path) -> bool:
    """Tell whether a run is to be asked: also one that failed when it was asked before."""
    if one.state == "failed":
        return (home / one.cell.folder / _FAILED).is_file() and not _changes(one.cell, home)
    return one.state in ("new", "begun", "unanswered")


def _run_folders(cell: SuiteRun, home: Path) -> list[RunFolder]:
    """List the run folders of a cell that are there, all of them or none."""
    study = find_study(cell.entry.study)
    found = [RunFolder(home / cell.folder / name) for name, _ in study.sweep(cell.settings)]
    return found if all(run.manifest.is_file() for run in found) else []


def _states_section(states: Sequence[CellState]) -> Section:
    """Show how far each run is."""
    rows = [
        (one.cell.entry.name, one.cell.label, one.cell.variant, one.state, one.told)
        for one in states
    ]
    names = ["study", "model", "variant", "state", "why"]
    frame = pd.DataFrame(rows, columns=names)
    shown = [name for name in names if (frame[name] != "").any()]
    return Section(
        anchor="runs",
        title="The runs",
        blocks=[
            Table(
                frame=frame,
                caption="How far each run is",
                columns=[Column(key=name, title=name.capitalize()) for name in shown],
                model=None,
            )
        ],
    )


def _study_section(entry: StudyEntry, folders: Sequence[Path], home: Path) -> Section:
    """Write the page of a study, and show its main numbers with the way there."""
    try:
        reported = report_runs(folders, home / entry.name, settings=entry.reporting)
    except (SurfaceConsistencyError, ValueError, OSError) as error:
        return Section(
            anchor=f"study-{entry.name}",
            title=entry.name,
            blocks=[Prose(parts=[f"Its page cannot be made: {error}"])],
        )
    link = Link(text="the whole page", href=f"{entry.name}/report.html")
    blocks: list[Block] = [Prose(parts=[f"{len(folders)} runs; ", link, "."])]
    return Section(
        anchor=f"study-{entry.name}",
        title=entry.name,
        blocks=[*blocks, reported.tables["overall"]],
    )


def _page(suite: Suite, states: Sequence[CellState], sections: Sequence[Section]) -> Page:
    """Put the page over all runs together."""
    counts = Counter(one.state for one in states)
    told = ", ".join(f"{n} {state}" for state, n in counts.items() if state not in _JUDGED)
    n_judged = sum(counts[state] for state in _JUDGED)
    return Page(
        title=suite.title,
        study="Suite",
        question=suite.title,
        models=[],
        finding=Finding(
            sentence=[f"{n_judged} of {len(states)} runs are done."],
            summary=[f"The others: {told}."] if told else [],
            facts=[
                ("suite", suite.path.name),
                ("studies", ", ".join(entry.name for entry in suite.studies)),
                ("models", str(len(suite.models))),
                ("version", surface_consistency.__version__),
            ],
        ),
        sections=sections,
    )


def _refuse_documents(data: Iterable[object] | None, step: str) -> None:
    """Refuse documents, which no step here reads."""
    if data is not None and next(iter(data), None) is not None:
        raise DataError(f"{step} asks what its suite file says; put no reader before it")
