"""A suite runs: told before it starts, resumable, one failure not stopping the rest, one page.

Each run of it is an ordinary run folder, so that `report`, `compare` and `score` take them.
"""

import gc
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

import surface_consistency
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.run import WHOLE, ProgressOption, Shard, merge_shards
from surface_consistency.engine.score import score_run
from surface_consistency.engine.study import Answerer, Study, find_study
from surface_consistency.engine.suite.file import Cell, StudyEntry, Suite
from surface_consistency.engine.suite.sweep import ask_sweep
from surface_consistency.errors import SurfaceConsistencyError
from surface_consistency.models.revisions import find_revisions
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Finding, Link, Page, Part, Prose, Section
from surface_consistency.runs.files import output_folder, write_json, write_text
from surface_consistency.runs.folder import RunFolder
from surface_consistency.tables.table import Column, Table

_FAILED: Final = "failed.txt"
_SHARDS: Final = "shards"

_CELL: Final = "cell.json"
_WITHOUT_DEVICE: Final = ("fake", "openai", "stored", "stored-scores")

State = Literal["new", "begun", "done", "unanswered", "failed", "same weights"]
_JUDGED: Final = ("done", "unanswered")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """How far a run of a suite is."""

    cell: Cell
    """The run."""

    state: State
    """Whether it is to be asked, was begun, is judged, is judged but for prompts without an answer,
    failed, or has another's weights."""

    why: str = ""
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
            revisions = find_revisions(str(model.model), model.revision_names)
            twins[name] = {one.name: one.same_as for one in revisions if one.same_as is not None}
        except (SurfaceConsistencyError, ValueError, OSError) as error:
            lacking[name] = str(error)
    states = []
    for cell in suite.cells:
        name = cell.model.name(None)
        state: State = "failed"
        if twin := twins.get(name, {}).get(cell.revision or ""):
            state, why = "same weights", twin
        elif not (why := lacking.get(name) or _changes(cell, home) or _failure(cell, home)):
            state = _progress(cell, home)
        states.append(CellState(cell=cell, state=state, why=why))
    return states


def _failure(cell: Cell, home: Path) -> str:
    """Read why a run failed; "" where it did not."""
    path = home / cell.folder / _FAILED
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _progress(cell: Cell, home: Path) -> State:
    """Tell how far a run is that did not fail."""
    if not (home / cell.folder).exists():
        return "new"
    runs = _run_folders(cell, home)
    scorings = [run.read_scoring() for run in runs]
    known = [scoring for scoring in scorings if scoring is not None]
    wanted = cell.entry.scoring.model_dump(mode="json")
    if not runs or len(known) < len(runs) or any(one.settings != wanted for one in known):
        return "begun"
    return "unanswered" if any(one.n_unanswered for one in known) else "done"


def _described(cell: Cell) -> dict[str, Any]:
    """Write down what a run is made of; how it is judged may be chosen anew."""
    return {
        "study": cell.entry.study,
        "source": cell.entry.source.model_dump(mode="json"),
        "settings": cell.settings.model_dump(mode="json"),
        "model": cell.model.model_dump(mode="json", exclude={"revisions", "device"}),
        "revision": cell.revision,
    }


def _changes(cell: Cell, home: Path) -> str:
    """Say in what the suite file has changed since a run was begun; "" for nothing."""
    path = home / cell.folder / _CELL
    if not path.is_file():
        return ""
    before, now = json.loads(path.read_bytes()), _described(cell)
    changes = []
    for name, value in now.items():
        old = before.get(name)
        if not (isinstance(value, dict) and isinstance(old, dict)):
            old, value = {name: old}, {name: value}
        changes += [
            f"{key} was {old.get(key)!r} and is {value[key]!r}"
            for key in value
            if old.get(key) != value[key]
        ]
    if not changes:
        return ""
    return (
        f"{home / cell.folder} was begun with other settings ({'; '.join(changes)}); set them "
        "back, give the study or the model another name, or choose another --out"
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
    loader = Loader()
    for one in suite_states(suite, home):
        if is_waiting(one, home):
            attempt_cell(one.cell, home, loader, progress=progress)
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


class Loader:
    """Keeps the data and the model that were last loaded, for runs that share them.

    Args:
        device: Where models run; None leaves it to the suite file.
    """

    def __init__(self, device: str | None = None) -> None:
        self._device = device
        self._key: object = None
        self._runner: Answerer | None = None
        self._data: dict[str, object] = {}

    def data(self, study: Study, entry: StudyEntry) -> object:
        """Load the data of a study, once.

        Args:
            study: The study.
            entry: What the suite says of it.

        Returns:
            As `Study.load`.
        """
        if entry.name not in self._data:
            self._data[entry.name] = study.load(entry.source)
        return self._data[entry.name]

    def runner(self, study: Study, cell: Cell) -> Answerer:
        """Load the model of a run; the one before is let go first.

        Args:
            study: The study.
            cell: The run.

        Returns:
            As `ModelSettings.load`.
        """
        changed: dict[str, object] = {}
        if cell.revision is not None:
            changed["revision"] = cell.revision
        if self._device is not None and takes_device(cell.model, study):
            changed["device"] = self._device
        # A study may make something of its own of a runner's name.
        name = cell.model.runner_of(study)
        key = (study.runners.get(name, name), cell.model, cell.revision)
        if self._runner is None or key != self._key:
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
    return model.device_map is None and model.runner_of(study) not in _WITHOUT_DEVICE


def attempt_cell(
    cell: Cell, home: Path, loader: Loader, *, progress: ProgressOption, shard: Shard = WHOLE
) -> None:
    """Ask a run or a shard of it; write down why it failed, if it does.

    Args:
        cell: The run.
        home: Folder of the suite.
        loader: Loads data and model, or has them.
        progress: As for `run_suite`.
        shard: Which batches are asked.
    """
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


def merge_cell(cell: Cell, home: Path, n_shards: int) -> None:
    """Merge and judge the shards of a run; write down why it failed, if it does.

    Args:
        cell: The run.
        home: Folder of the suite.
        n_shards: Parts of the run.
    """
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
        failed = [(part / _FAILED) for part in parts if (part / _FAILED).is_file()]
        text = failed[0].read_text(encoding="utf-8") if failed else f"{error}\n"
        write_text(folder / _FAILED, text)


def _shard_folder(folder: Path, shard: Shard) -> Path:
    """Name the folder of a shard."""
    return folder / _SHARDS / f"{shard[0]:05d}-of-{shard[1]:05d}"


def is_waiting(one: CellState, home: Path) -> bool:
    """Tell whether a run is to be asked: also one that failed when it was asked before.

    Args:
        one: How far it is.
        home: Folder of the suite.

    Returns:
        Whether it is.
    """
    if one.state == "failed":
        return (home / one.cell.folder / _FAILED).is_file() and not _changes(one.cell, home)
    return one.state in ("new", "begun", "unanswered")


def _run_folders(cell: Cell, home: Path) -> list[RunFolder]:
    """List the run folders of a cell that are there, all of them or none."""
    study = find_study(cell.entry.study)
    runs = [RunFolder(home / cell.folder / name) for name, _ in study.sweep(cell.settings)]
    return runs if all(run.manifest.is_file() for run in runs) else []


def _states_section(states: Sequence[CellState]) -> Section:
    """Show how far each run is."""
    rows = [
        (one.cell.entry.name, one.cell.label, one.cell.variant, one.state, one.why)
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
    linked: list[Part] = ["; ", link] if reported.page else []
    lead = Prose(parts=[f"{len(folders)} runs", *linked, "."])
    overall = reported.tables["overall"]
    return Section(anchor=f"study-{entry.name}", title=entry.name, blocks=[lead, overall])


def _page(suite: Suite, states: Sequence[CellState], sections: Sequence[Section]) -> Page:
    """Put the page over all runs together."""
    counts = Counter(one.state for one in states)
    others = ", ".join(f"{n} {state}" for state, n in counts.items() if state not in _JUDGED)
    n_judged = sum(counts[state] for state in _JUDGED)
    return Page(
        title=suite.title,
        study="Suite",
        question=suite.title,
        models=[],
        finding=Finding(
            sentence=[f"{n_judged} of {len(states)} runs are done."],
            summary=[f"The others: {others}."] if others else [],
            facts=[
                ("suite", suite.path.name),
                ("studies", ", ".join(entry.name for entry in suite.studies)),
                ("models", str(len(suite.models))),
                ("version", surface_consistency.__version__),
            ],
        ),
        sections=sections,
    )
