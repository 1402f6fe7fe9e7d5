"""The command `score`: score a run again, or score predictions made elsewhere."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin

from cyclopts import Parameter

from surface_consistency.cli.options import Json, naming, source_flag
from surface_consistency.cli.record_command import SETTING, flag_of, record_command
from surface_consistency.engine.settings import (
    JudgeScoring,
    ReportSettings,
    StudySettings,
    study_records,
)
from surface_consistency.errors import PluginError
from surface_consistency.plugins import STUDIES
from surface_consistency.results.columns import PredictionSettings
from surface_consistency.schemas.settings import Settings

if TYPE_CHECKING:
    from surface_consistency.engine.study import Study

_DEFAULT = "redirectqa"
_NO_RUN_AFTER = ("--out", "--label", "--source")
"""Options whose value may be a folder with a manifest that is not the run to score."""


def make_score(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command for the study of the run that the arguments name.

    Args:
        argv: Arguments after `score`.

    Returns:
        The command: its options are the scoring settings and the data settings of that study.

    Raises:
        ValueError: If a setting belongs only to another study; the message names it.
    """
    name = _study_of(argv)
    records = study_records(name)
    known = (records.source, records.settings, records.scoring, ReportSettings, PredictionSettings)
    own = {flag_of(*field) for record in known for field in record.model_fields.items()}
    words = [part for one in argv for part in one.split("=", int(one.startswith(f"{SETTING}=")))]
    for before, word in pairwise(words):
        flag = f"{SETTING} {word.partition('=')[0]}"
        if before == SETTING and flag not in own and (message := foreign_option(argv, flag)):
            raise ValueError(message)

    def score(
        run: Annotated[Path | None, Parameter(help="Folder of a run to score again.")] = None,
        /,
        *,
        predictions: Annotated[
            tuple[Path, ...],
            Parameter(
                help="Files of predictions made elsewhere, one per model: JSONL, JSON, CSV (also "
                ".gz), Parquet, a saved `datasets` folder, results of OpenAI batches, samples of "
                "lm-evaluation-harness, or logs of inspect_ai.",
                consume_multiple=True,
                negative=(),
                show_default=False,
            ),
        ] = (),
        label: Annotated[
            str | None, Parameter(help="Name of the model in tables; by default that of the file.")
        ] = None,
        study_name: Annotated[
            str, Parameter(name="--study", help="Study whose data the predictions answer.")
        ] = _DEFAULT,
        out: Annotated[
            Path | None, Parameter(help="Folder of the new run, with --predictions.")
        ] = None,
        json: Json = False,
        reading: PredictionSettings,
        source: Settings | None,
        settings: StudySettings,
        scoring: JudgeScoring,
        reporting: ReportSettings,
    ) -> int:
        if (run is None) == (not predictions):
            raise ValueError("pass either the folder of a run or --predictions FILE")
        from surface_consistency.cli.output import finish
        from surface_consistency.engine.report import report_runs
        from surface_consistency.engine.score import score_files, score_run
        from surface_consistency.engine.study import find_study
        from surface_consistency.runs.folder import RunFolder

        study = find_study(name)
        if run is not None:
            _check_data_options(source, settings, reading, out=out, label=label)
            folder = RunFolder.open(run)
            score_run(folder, study=study, scoring=scoring)
            folders, home = [folder], run
        else:
            if out is None:
                raise ValueError("--predictions requires --out, the folder of the new run")
            source = source or records.source.model_validate({})
            with naming(source_flag(records.source)):
                data = study.load(source)
            _check_unused(study, data, settings)
            folders, home = (
                score_files(
                    study,
                    data,
                    predictions,
                    out,
                    label=label,
                    reading=reading,
                    settings=settings,
                    source=source,
                    scoring=scoring,
                ),
                out,
            )
        reported = report_runs([f.path for f in folders], home, study=study, settings=reporting)
        return finish(reported, home, as_json=json)

    return record_command(
        score,
        help_text="Score a run again, or score predictions made elsewhere.\n\nWith RUN: score its "
        "answers again with another rule or LLM judge; no prompt is sent again. With "
        "--predictions: score files of outputs on the data and write a new run to --out.",
        optional=("source",),
        reading=PredictionSettings,
        source=records.source,
        settings=records.settings,
        scoring=records.scoring,
        reporting=ReportSettings,
    )


def foreign_option(argv: Sequence[str], flag: str) -> str | None:
    """Return the message for an option of another study.

    Args:
        argv: Arguments after `score`.
        flag: An option that does not exist for the study of the run.

    Returns:
        The message with the options to use, or None if no study has the option.

    Raises:
        SourceNotFoundError: If the first argument is not the folder of a run.
    """
    if argv and not argv[0].startswith("-"):
        from surface_consistency.runs.folder import RunFolder

        RunFolder.open(argv[0])
    study = _study_of(argv)
    owners = [name for name in STUDIES.names() if name != study and flag in _scoring_flags(name)]
    if not owners:
        return None
    own = _scoring_flags(study)
    alike = [name for name in own if name.endswith(f"-{flag.removeprefix('--')}")]
    return (
        f"{flag} is not a scoring option of {study}; use {', '.join(alike or own)}, or --study "
        f"for predictions on the data of {', '.join(owners)}"
    )


def _scoring_flags(name: str) -> list[str]:
    """List the scoring flags of a study; an empty list if the study cannot be loaded."""
    try:
        fields = study_records(name).scoring.model_fields
    except PluginError:
        return []
    return [flag_of(name, field) for name, field in fields.items()]


def _study_of(argv: Sequence[str]) -> str:
    """Return the name of the study of the run, or the value of --study."""
    named = _DEFAULT
    for before, word in zip(("", *argv), argv, strict=False):
        if before not in _NO_RUN_AFTER and (Path(word) / "manifest.json").is_file():
            from surface_consistency.engine.study import study_of
            from surface_consistency.runs.folder import RunFolder

            return study_of(RunFolder.open(word)).name
        if before == "--study" or word.startswith("--study="):
            named = word.removeprefix("--study=")
    return named


def _check_unused(study: "Study", data: object, settings: StudySettings) -> None:
    """Raise an error for options that affect neither the scored items nor their scores."""
    from surface_consistency.engine.study import make_plan

    read = {"limit", "max_reasoning_tokens", "reasoning_tags", "reasoning_opened"}
    given = settings.model_dump(include=settings.model_fields_set - read)
    if not given:
        return
    plan = make_plan(study, data, settings)
    unused = []
    for name in given:
        rest = settings.model_dump(include=settings.model_fields_set - {name})
        field = type(settings).model_fields[name]
        # A choice without effect may equal the default, so it is compared with all choices.
        is_choice = get_origin(field.annotation) is Literal
        choices = [{name: one} for one in get_args(field.annotation)] if is_choice else []
        others = [
            make_plan(study, data, type(settings).model_validate(rest | one))
            for one in ({}, *choices)
        ]
        if all(plan.items.equals(one.items) and plan.pairs.equals(one.pairs) for one in others):
            unused.append(flag_of(name, field))
    if unused:
        raise ValueError(
            f"{', '.join(unused)} {'has' if len(unused) == 1 else 'have'} no effect on the scores "
            f"of finished predictions; omit {'it' if len(unused) == 1 else 'them'}"
        )


def _check_data_options(*records: Settings | None, **own: object) -> None:
    """Raise an error for options that have no effect when a run is scored again."""
    foreign = [f"--{name.replace('_', '-')}" for name, value in own.items() if value is not None]
    for record in filter(None, records):
        fields = type(record).model_fields
        foreign += [flag_of(name, fields[name]) for name in record.model_fields_set]
    if foreign:
        raise ValueError(
            f"{', '.join(sorted(foreign))} {'belongs' if len(foreign) == 1 else 'belong'} to "
            "--predictions; a run is scored in its folder, on its own questions"
        )
