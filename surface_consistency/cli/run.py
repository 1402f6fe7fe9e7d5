"""`run STUDY`: a study end to end on a model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from surface_consistency.cli.options import Json, Out, naming, source_flag
from surface_consistency.cli.output import finish
from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.design import ReportSettings
from surface_consistency.engine.judging.chosen_judges import JudgeScoring
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.study import (
    SourceSettings,
    Study,
    StudySettings,
    find_study,
)
from surface_consistency.engine.suite.sweep import run_sweep
from surface_consistency.models.revisions import Revision, find_revisions
from surface_consistency.models.runner import Runner
from surface_consistency.runs.files import output_folder
from surface_consistency.schemas.settings import Settings, record_options

_TOY_MODEL = "toy_model"
_DEMO = "redirectqa"


def make_run(name: str) -> Callable[..., object]:
    """Make the command that runs a study.

    Args:
        name: The study, as for `find_study`.

    Returns:
        The command: its options are the fields of the study's settings records.
    """
    study = find_study(name)

    def run(
        *,
        out: Out,
        json: Json = False,
        source: SourceSettings,
        model: ModelSettings,
        settings: StudySettings,
        scoring: JudgeScoring,
        reporting: ReportSettings,
        **further: Settings,
    ) -> int:
        toy_model = further.get("toy_model")
        _check_toy_model(study, model, toy_model)
        chosen = settings.model_dump(mode="json")
        scoring = scoring.resolved(chosen, is_new_run=True)
        placed = study.with_output_dir(out)
        with naming("--model"):
            revisions = _revisions(model, quiet=json)
        with naming(source_flag(study)):
            data = placed.load(source)
        runner: Runner | Callable[[Revision], Runner]
        if revisions:
            label = model.name(None)
            runner = lambda one: model.load(placed, revision=one.name)  # noqa: E731
        else:
            with naming("--model"):
                runner = _runner(placed, data, settings, model, out, toy_model)
            label = model.name(runner)
        swept = run_sweep(
            placed,
            data,
            runner,
            out,
            model=label,
            revisions=revisions,
            settings=settings,
            source=source,
            scoring=scoring,
            report=reporting,
            progress=not json,
        )
        return finish(swept.reported, out, as_json=json)

    records: dict[str, Any] = {
        "source": study.source,
        "model": ModelSettings,
        "settings": study.settings,
        "scoring": study.scoring,
        "reporting": ReportSettings,
    }
    if study.toy_model is not None:
        records["toy_model"] = study.toy_model.settings
    return record_command(
        run,
        help_text=f"{(type(study).__doc__ or study.name).strip().splitlines()[0]}\n\nAsk a model "
        "every fact under both conditions, score, report. Started again with the same options, a "
        "stopped run goes on where it was.",
        **records,
    )


def no_preset(name: str) -> str:
    """Say where a paper's words are that a study has no preset of.

    Args:
        name: The study, as for `find_study`.

    Returns:
        What is wrong with --prompts, and what to do.
    """
    study = find_study(name)
    remark = study.design.paper_prompts or "no paper's words are known of it"
    return f"--prompts: {study.name} has no preset of prompts: {remark}; leave --prompts out"


def _runner(
    study: Study,
    data: object,
    settings: StudySettings,
    model: ModelSettings,
    out: Path,
    toy_model: Settings | None,
) -> Runner:
    """Load who answers, or train the study's toy model."""
    if model.model != _TOY_MODEL or study.toy_model is None:
        return model.load(study)
    output_folder(out)
    return study.toy_model.train(data, settings, toy_model, out / _TOY_MODEL, options=model.options)


def _revisions(model: ModelSettings, *, quiet: bool) -> list[Revision]:
    """Find the revisions that are asked, and tell which have the same weights."""
    if not model.revisions:
        return []
    revisions = find_revisions(str(model.model), model.revision_names)
    for one in revisions if not quiet else ():
        if one.same_as is not None:
            print(
                f"revision {one.name} has the very weights of {one.same_as}: it is not asked again"
            )
    return revisions


def _check_toy_model(study: Study, model: ModelSettings, toy_model: Settings | None) -> None:
    """Refuse a toy model that the study does not have, and options that would do nothing."""
    if model.model != _TOY_MODEL:
        given = set() if toy_model is None else toy_model.model_fields_set
        for option in record_options(study.toy_model.settings) if study.toy_model else ():
            if option.path[0] in given:
                raise ValueError(
                    f"{option.flags[0]} says what a model is taught; it needs --model toy_model"
                )
        return
    if study.toy_model is None:
        raise ValueError(
            f"--model toy_model: the study {study.name} has no toy model; name a model"
            + ("; `surface-consistency demo` trains one" if study.name == _DEMO else "")
        )
    if model.runner not in (None, ModelSettings().runner_of(study)):
        raise ValueError("--model toy_model trains a model of its own; leave out --runner")
