"""`score`: judge a run again, or predictions made elsewhere."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from surface_consistency.commands.options import Json
from surface_consistency.commands.output import finish
from surface_consistency.commands.record_command import record_command
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.engine import report_runs, score_files, score_run
from surface_consistency.studies.study import ReportSettings, find_study

__all__ = ["make_score"]

_DEFAULT = "redirectqa"


def make_score(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command for the study of the run that the arguments name.

    Args:
        argv: Arguments after `score`.

    Returns:
        The command: its options are the scoring settings of that study, and those of its data.
    """
    study = find_study(_study_of(argv))

    def score(
        run: Annotated[Path | None, Parameter(help="Folder of a run, to judge it again.")] = None,
        *,
        predictions: Annotated[
            tuple[Path, ...],
            Parameter(
                help="Files of predictions made elsewhere, one a model: JSONL, CSV, or samples of "
                "lm-evaluation-harness.",
                consume_multiple=True,
                negative=(),
            ),
        ] = (),
        id_column: Annotated[str | None, Parameter(help="Column of ids or question texts.")] = None,
        text_column: Annotated[str | None, Parameter(help="Column of generated text.")] = None,
        label: Annotated[
            str | None, Parameter(help="Name of the model in tables; the file's by default.")
        ] = None,
        study_name: Annotated[
            str, Parameter(name="--study", help="Study whose data the predictions answer.")
        ] = _DEFAULT,
        out: Annotated[
            Path | None, Parameter(help="Folder of the new run, with --predictions.")
        ] = None,
        json: Json = False,
        source: Any,  # noqa: ANN401
        settings: Any,  # noqa: ANN401
        scoring: Any,  # noqa: ANN401
        reporting: ReportSettings,
    ) -> None:
        if (run is None) == (not predictions):
            raise ValueError("give either the folder of a run or --predictions FILE, one of them")
        if run is not None:
            _refuse_data_options(
                source, settings, out=out, label=label, id_column=id_column, text_column=text_column
            )
            folder = RunFolder.open(run)
            score_run(folder, study=study, scoring=scoring)
            folders, home = [folder], run
        else:
            if out is None:
                raise ValueError("--predictions needs --out, the folder for the verdicts")
            folders, home = (
                score_files(
                    study,
                    study.load(source),
                    predictions,
                    out,
                    label=label,
                    id_column=id_column,
                    text_column=text_column,
                    settings=settings,
                    source=source,
                    scoring=scoring,
                ),
                out,
            )
        reported = report_runs([f.path for f in folders], home, study=study, settings=reporting)
        finish(reported, home, as_json=json)

    return record_command(
        score,
        help_text="Judge a run again, or judge predictions made elsewhere.\n\nWith RUN: judge its "
        "answers again, by another rule or judge; nothing is asked anew. With --predictions: judge "
        "files of outputs against the data, into --out.",
        source=study.source,
        settings=study.settings,
        scoring=study.scoring,
        reporting=ReportSettings,
    )


def _study_of(argv: Sequence[str]) -> str:
    """Find the study: that of the run, or the one that --study names."""
    for place, word in enumerate(argv):
        if word == "--study" and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith("--study="):
            return word.partition("=")[2]
        if (Path(word) / "manifest.json").is_file() and (place == 0 or argv[place - 1] != "--out"):
            return RunFolder.open(word).read_manifest().study
    return _DEFAULT


def _refuse_data_options(source: Any, settings: Any, **own: object) -> None:  # noqa: ANN401
    """Refuse options that scoring a run again would not heed."""
    foreign = [name for name, value in own.items() if value is not None]
    for record in (source, settings):
        fields = type(record).model_fields
        foreign += [
            name
            for name in record.model_fields_set
            if getattr(record, name) != fields[name].get_default(call_default_factory=True)
        ]
    if foreign:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
        raise ValueError(
            f"{named} belong to --predictions; a run is scored where it is, against its own "
            "questions"
        )
