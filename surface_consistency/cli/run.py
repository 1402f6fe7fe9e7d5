"""The command `run STUDY`: a study end to end on one model or on several in sequence."""

import gc
import json as json_
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from surface_consistency.cli.options import Json, Out, naming, source_flag
from surface_consistency.cli.record_command import flag_of, record_command
from surface_consistency.engine.model_settings import (
    ModelSettings,
    ModelsSettings,
    paper_differences,
)
from surface_consistency.engine.settings import (
    JudgeScoring,
    ReportSettings,
    SideModel,
    SourceSettings,
    StudyRecords,
    StudySettings,
    ToyModelSettings,
    study_records,
)
from surface_consistency.errors import SurfaceConsistencyError
from surface_consistency.models.registry import contact_of
from surface_consistency.reading import within
from surface_consistency.runs.command import COMMAND
from surface_consistency.schemas.settings import Settings

if TYPE_CHECKING:
    from surface_consistency.engine.study import Study
    from surface_consistency.models.runner import Runner
    from surface_consistency.runs.folder import RunFolder

_TOY_MODEL = "toy_model"
_DEMO = "redirectqa"
_DESCRIBED = "asked.json"
_OF_ONE_COMMAND = ("--model", "--out", "--print-commands", "--shards")

_Shards = Annotated[
    int,
    Parameter(
        help="Number of parts into which each run is divided, for several processes or machines. "
        "With --print-commands, print one command per part; with --shard, run one part; "
        "with neither, merge the finished parts, score and report."
    ),
]
_Shard = Annotated[int | None, Parameter(help="Part to run, from 1 to --shards.")]
_PrintCommands = Annotated[
    bool,
    Parameter(
        help="Print commands instead of running them: one per model and part, then the command "
        "that writes the report. The servers that they contact are printed to standard "
        "error.",
        negative=(),
        show_default=False,
    ),
]


def make_run(name: str) -> Callable[..., object]:
    """Make the command that runs a study.

    Args:
        name: The study, as for `find_study`.

    Returns:
        The command: its options are the fields of the settings records of the study. The study is
        loaded when the command is called.
    """
    records = study_records(name)

    def run(
        *,
        out: Out,
        shards: _Shards = 1,
        shard: _Shard = None,
        print_commands: _PrintCommands = False,
        json: Json = False,
        source: SourceSettings,
        model: ModelsSettings,
        settings: StudySettings,
        scoring: JudgeScoring,
        reporting: ReportSettings,
        **further: Settings,
    ) -> int:
        toy_model = cast("ToyModelSettings | None", further.get(_TOY_MODEL))
        given = settings.model_dump(mode="json")
        _check_shards(shards, shard, model)
        _check_toy_model(name, records, model, toy_model)
        homes = _homes([one.as_published(records, given) for one in model.each()], out)
        scoring = records.judged(scoring, given, is_new_run=True)
        if print_commands:
            print("\n".join(_commands(model.model, [home for _, home in homes], out, shards)))
            _print_contacts(records, [one for one, _ in homes], settings, scoring)
            return 0
        settings = settings.for_command(out)
        models = _Models(name, out, source, settings, scoring, toy_model, shards, shard, not json)
        return models.run(homes, reporting, as_json=json)

    further: dict[str, Any] = {}
    if records.toy_model is not None:
        further[_TOY_MODEL] = records.toy_model
    return record_command(
        run,
        help_text=f"{records.summary}\n\nSend the prompts of the study to a model, score the "
        "answers and write a report. Repeat the command to resume a stopped run. Several models "
        "run in sequence, each with a folder in --out, and one report covers all."
        f"{_of_papers(records)}",
        source=records.source,
        model=ModelsSettings,
        settings=records.settings,
        scoring=records.scoring,
        reporting=ReportSettings,
        **further,
    )


def _of_papers(records: StudyRecords) -> str:
    """List the defaults that differ from the papers of a study, for its help."""
    texts = []
    for paper, found in paper_differences(records).items():
        shown = [
            f"{one.name} {one.default} ({one.paper})"
            for one in found
            if one.section and one.table != "unmatched"
        ]
        silent = [one.name for one in found if one.table == "unstated"]
        texts.append(
            f"\n\nDefaults that differ from {paper}, with the paper's value in parentheses: "
            f"{', '.join(shown)}. Settings that the paper does not state: {', '.join(silent)}."
        )
    return "".join(texts) + (
        "\n\nUse --as-published to set the values of the paper." if texts else ""
    )


def no_preset(name: str) -> str:
    """Return the message for --prompts of a study that has no preset of prompts.

    Args:
        name: The study, as for `find_study`.

    Returns:
        The problem with --prompts, with the source of the prompts of the paper, and the remedy.
    """
    from surface_consistency.engine.study import find_study

    study = find_study(name)
    remark = study.design.paper_prompts or "the wording of its paper is not known"
    return f"--prompts: {study.name} has no preset of prompts: {remark}; omit --prompts"


@dataclass(frozen=True, slots=True)
class _Models:
    """A study with its settings, for any number of models."""

    name: str
    out: Path
    source: SourceSettings
    settings: StudySettings
    scoring: JudgeScoring
    toy_model: ToyModelSettings | None
    shards: int
    shard: int | None
    has_progress: bool

    def run(
        self,
        homes: Sequence[tuple[ModelSettings, Path]],
        reporting: ReportSettings,
        *,
        as_json: bool,
    ) -> int:
        """Run the models one after the other and report them; return the exit code."""
        from surface_consistency.cli.output import finish
        from surface_consistency.engine.report import cluster_of, report_runs
        from surface_consistency.engine.study import find_study

        study = find_study(self.name)
        cluster_of(study, reporting)
        for model, _ in homes:
            if model.model == _TOY_MODEL and model.runner not in (None, study.records.runner):
                raise ValueError("--model toy_model trains its own model; omit --runner")
        folders: list[RunFolder] = []
        failures: dict[Path, str] = {}
        data: list[object] = []
        for model, home in homes:
            if len(homes) > 1 and self.has_progress:
                print(f"model {model.name(None)} in {home}", flush=True)
            try:
                if self.shards > 1 and self.shard is None:
                    folders += self._merged(study, home)
                elif len(homes) > 1 and self._is_done(study, model, home):
                    folders += self._folders(study, home)
                else:
                    if not data:
                        with naming(source_flag(type(self.source))):
                            data.append(study.load(self.source))
                    folders += self._run_model(study, data[0], model, home)
            except Exception as error:
                # An error of a model, plugin or library does not stop the other models.
                if len(homes) == 1:
                    raise
                is_ours = isinstance(error, SurfaceConsistencyError)
                failures[home] = f"{'' if is_ours else type(error).__name__ + ': '}{error}"
            gc.collect()
        code = 0
        if folders and self.shard is None:
            paths = [folder.path for folder in folders]
            reported = report_runs(paths, self.out, study=study, settings=reporting)
            code = finish(reported, self.out, as_json=as_json)
        for home, why in failures.items():
            print(f"error: {home}: {' '.join(why.split())}", file=sys.stderr)
        return 2 if failures else code

    def _run_model(
        self, study: "Study", data: object, model: ModelSettings, home: Path
    ) -> "list[RunFolder]":
        """Run a model, or one part of its run, and score complete runs."""
        from surface_consistency.engine.run import WHOLE
        from surface_consistency.engine.sweep import run_sweep
        from surface_consistency.runs.files import write_text

        part = home
        if self.shard is not None:
            part = _part(home, self.shard, self.shards)
        with naming("--model"):
            runner = self._runner(study, data, model, home)
        folders = run_sweep(
            study,
            data,
            runner,
            part,
            model=model.name(runner),
            settings=self.settings,
            source=self.source,
            scoring=self.scoring,
            progress=self.has_progress,
            shard=WHOLE if self.shard is None else (self.shard - 1, self.shards),
        )
        if self.shard is None and home != self.out:
            write_text(home / _DESCRIBED, self._description(model))
        return folders

    def _runner(self, study: "Study", data: object, model: ModelSettings, home: Path) -> "Runner":
        """Load the model, or train the study's toy model."""
        from surface_consistency.runs.files import output_folder

        if model.model != _TOY_MODEL or self.toy_model is None:
            return model.load(study)
        folder = output_folder(home) / _TOY_MODEL
        return self.toy_model.train(data, self.settings, folder, options=model.options)

    def _merged(self, study: "Study", home: Path) -> "list[RunFolder]":
        """Merge the parts of a run and score it."""
        from surface_consistency.engine.run import merge_shards
        from surface_consistency.engine.score import score_run

        parts = [_part(home, number, self.shards) for number in range(1, self.shards + 1)]
        folders = []
        for name, _ in self.settings.variants():
            folders.append(merge_shards([part / name for part in parts], home / name))
            score_run(folders[-1], study=study, scoring=self.scoring)
        return folders

    def _folders(self, study: "Study", home: Path) -> "list[RunFolder]":
        """List the run folders of a model."""
        from surface_consistency.runs.folder import RunFolder

        return [RunFolder(home / name) for name, _ in self.settings.variants()]

    def _is_done(self, study: "Study", model: ModelSettings, home: Path) -> bool:
        """Return whether the same command is finished, so that the model is not loaded."""
        file = within(home, _DESCRIBED)
        if not file.is_file() or file.read_text(encoding="utf-8") != self._description(model):
            return False
        scorings = [folder.read_scoring() for folder in self._folders(study, home)]
        return all(one is not None and not one.n_unanswered for one in scorings)

    def _description(self, model: ModelSettings) -> str:
        """Describe how a model is run and scored, as JSON."""
        records = [self.source, self.settings, self.scoring, model]
        return json_.dumps([record.model_dump(mode="json") for record in records], indent=1)


def _homes(models: Sequence[ModelSettings], out: Path) -> list[tuple[ModelSettings, Path]]:
    """Choose the folder of each model: `out`, or one folder per model in it."""
    from surface_consistency.runs.files import as_file_name

    if len(models) == 1:
        return [(models[0], out)]
    homes = [(model, out / as_file_name(model.name(None))) for model in models]
    for place, (model, home) in enumerate(homes):
        if home in [other for _, other in homes[:place]]:
            raise ValueError(
                f"--model {model.model}: two models have the same folder {home}; run one of them "
                "with another --out"
            )
    return homes


def _part(home: Path, number: int, n_shards: int) -> Path:
    """Return the folder of a part of a run."""
    return home / "shards" / f"{number:05d}-of-{n_shards:05d}"


def _commands(models: Sequence[str], homes: Sequence[Path], out: Path, n_shards: int) -> list[str]:
    """Return one command per model and part, then the command that reports all."""
    named = [["--model", model] for model in models] or [[]]
    words = _without(shlex.split(COMMAND.get() or ""), _OF_ONE_COMMAND)
    commands = []
    for model, home in zip(named, homes, strict=True):
        for number in range(1, n_shards + 1):
            part = ["--shards", str(n_shards), "--shard", str(number)] if n_shards > 1 else []
            commands.append([*words, *model, "--out", str(home), *part])
    if n_shards > 1:
        merged = [*chain.from_iterable(named), "--out", str(out), "--shards", str(n_shards)]
        commands.append([*words, *merged])
    elif len(homes) > 1:
        commands.append([words[0], "report", *map(str, homes), "--out", str(out)])
    return list(map(shlex.join, commands))


def _print_contacts(
    records: StudyRecords, models: Sequence[ModelSettings], *settings: Settings
) -> None:
    """Print the servers that the commands contact, and the variables that they read."""
    named = [
        (one.runner or records.runner, one.options) for one in models if one.model != _TOY_MODEL
    ]
    named += [(one.runner, one.options) for record in settings for one in SideModel.all_of(record)]
    lines = [contact_of(runner, options) for runner, options in named]
    for line in filter(None, dict.fromkeys(lines)):
        print(line, file=sys.stderr)


def _without(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Remove options and their values from the words of a command."""
    kept, is_kept = [], True
    for word in words:
        if word.startswith("--"):
            is_kept = word.partition("=")[0] not in flags
        if is_kept:
            kept.append(word)
    return kept


def _check_shards(shards: int, shard: int | None, model: ModelsSettings) -> None:
    """Raise an error for a part that does not exist, and for parts of the toy model."""
    if shards < 1:
        raise ValueError(f"--shards must be 1 or more, got {shards}")
    if shard is not None and not 1 <= shard <= shards:
        raise ValueError(f"--shard must be from 1 to --shards, {shards}; got {shard}")
    if shards > 1 and _TOY_MODEL in model.model:
        raise ValueError("--shards requires a trained model; omit it for toy_model")


def _check_toy_model(
    study: str, records: StudyRecords, model: ModelsSettings, toy_model: Settings | None
) -> None:
    """Raise an error if the study has no toy model, or if an option would have no effect."""
    if _TOY_MODEL not in model.model:
        if toy_model is not None and toy_model.model_fields_set:
            name = min(toy_model.model_fields_set)
            flag = flag_of(name, type(toy_model).model_fields[name])
            raise ValueError(f"{flag} is an option of the toy model; it requires --model toy_model")
        return
    if records.toy_model is None:
        raise ValueError(
            f"--model toy_model: the study {study} has no toy model; pass the name of a model"
            + ("; `surface-consistency demo` trains one" if study == _DEMO else "")
        )
