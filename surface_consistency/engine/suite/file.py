"""A suite: models x revisions x studies x settings, written down in one TOML file.

The keys of a model and of a study are the options of the command line, without dashes before them;
a typo is told with the nearest right key.
"""

import difflib
import json
import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from surface_consistency.engine.design import ReportSettings
from surface_consistency.engine.judging.chosen_judges import JudgeScoring
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.study import Study, StudySettings, find_study
from surface_consistency.errors import DataError, PluginError
from surface_consistency.models.loading import DTYPES
from surface_consistency.models.registry import check_runner
from surface_consistency.plugins import STUDIES
from surface_consistency.reading import decode_text, existing_file, parse_toml, read_document
from surface_consistency.runs.files import as_file_name
from surface_consistency.schemas.settings import (
    RecordOption,
    Settings,
    record_from_options,
    record_options,
)

_TOP: Final = ("title", "models", "studies")
_OWN: Final = ("study", "name", "variants")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyEntry:
    """A study of a suite, under one or more settings."""

    name: str
    """Name of its folder, unique in the suite."""

    study: str
    """Name of the study, as for `find_study`."""

    source: Settings
    """Where the data come from."""

    variants: Mapping[str, StudySettings]
    """How to ask, by name of the variant; "" where there is one."""

    scoring: JudgeScoring
    """How to judge."""

    reporting: ReportSettings
    """How to compute tables and page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of a suite, or one sweep where its settings stand for several runs."""

    entry: StudyEntry
    """The study."""

    variant: str
    """Name of the settings; "" where there is one."""

    model: ModelSettings
    """Who answers."""

    revision: str | None
    """Revision of the model, of several; None where the suite names none."""

    @property
    def settings(self) -> StudySettings:
        """How to ask."""
        return self.entry.variants[self.variant]

    @property
    def label(self) -> str:
        """The model in tables."""
        name = self.model.name(None)
        return name if self.revision is None else f"{name}@{self.revision}"

    @property
    def folder(self) -> str:
        """Folder of the run below that of the suite."""
        parts = [self.label, self.variant] if self.variant else [self.label]
        return f"{self.entry.name}/{'--'.join(map(as_file_name, parts))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What a suite file says."""

    path: Path
    """The file."""

    title: str
    """What it is called."""

    models: Sequence[ModelSettings]
    """The models."""

    studies: Sequence[StudyEntry]
    """The studies."""

    @property
    def cells(self) -> list[Cell]:
        """All runs, those of a model and revision after each other, so that it is loaded once."""
        return [
            Cell(entry=entry, variant=variant, model=model, revision=revision)
            for model in self.models
            for revision in (*model.revision_names,) or (None,)
            for entry in self.studies
            for variant in entry.variants
        ]


def read_suite(path: str | os.PathLike[str]) -> Suite:
    """Read and check a suite file; nothing is loaded or asked.

    Args:
        path: The TOML file: `title`; a table `[[models]]` a model, whose keys are the options of
            "Who answers"; a table `[[studies]]` a study with `study`, perhaps `name`, and the
            options of that study, and below it `[[studies.variants]]` with `name` and the options
            in which a variant differs.

    Returns:
        The suite.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If it is not TOML, holds a key that is none (the nearest right one is told) or
            a value that its option does not take, or two runs would have one folder.
    """
    file = existing_file(Path(path), "a suite", "*.toml")
    content = parse_toml(decode_text(read_document(file), str(file)), str(file))
    _refuse_unknown(str(file), content, _TOP)
    models, studies = (_tables(file, content, name) for name in ("models", "studies"))
    entries = [
        _study(f"{file}: study {place}", table) for place, table in enumerate(studies, start=1)
    ]
    own = {name for entry in entries for name in find_study(entry.study).runners}
    suite = Suite(
        path=file,
        title=str(content.get("title", file.stem)),
        models=[
            _model(f"{file}: model {place}", table, own)
            for place, table in enumerate(models, start=1)
        ],
        studies=entries,
    )
    seen: dict[str, Cell] = {}
    for cell in suite.cells:
        if cell.folder in seen:
            same = cell.entry is not seen[cell.folder].entry
            what = f"studies are called {cell.entry.name!r}" if same else f"runs are {cell.folder}"
            raise DataError(
                f"{file}: two {what}; give each study a `name`, and each model a `label`, of its "
                "own"
            )
        seen[cell.folder] = cell
    return suite


def _tables(file: Path, content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Read an array of tables that must not be empty."""
    tables = content.get(name)
    if not isinstance(tables, list) or not tables:
        raise DataError(f"{file}: holds no [[{name}]]; a suite has at least one of them")
    if not all(isinstance(table, dict) for table in tables):
        raise DataError(f"{file}: {name} must be tables, each under a line [[{name}]]")
    return tables


def _model(where: str, table: Mapping[str, Any], own: Container[str]) -> ModelSettings:
    """Read a model, whose runner may be a study's own."""
    made: ModelSettings = _records(where, table, {"model": ModelSettings})["model"]
    if made.model is None and made.label is None:
        raise DataError(f"{where}: needs `model`, or a `label` where the runner needs none")
    if made.model == "toy_model":
        raise DataError(f"{where}: a suite asks models that are there, and trains no toy model")
    if made.runner is not None and made.runner not in own:
        try:
            check_runner(made.runner)
        except ValueError as error:
            raise DataError(f"{where}: runner: {error}") from error
    if made.runner in (None, "transformers") and made.dtype not in (None, *DTYPES):
        raise DataError(f"{where}: dtype is one of {', '.join(DTYPES)}, got {made.dtype!r}")
    return made


def _study(where: str, table: Mapping[str, Any]) -> StudyEntry:
    """Read a study with its variants."""
    if not isinstance(table.get("study"), str):
        names = ", ".join(STUDIES.names())
        raise DataError(f"{where}: needs `study`, one of {names}")
    try:
        study = find_study(table["study"])
    except PluginError as error:
        raise DataError(f"{where}: {error}") from error
    where = f"{where} ({study.name})"
    records = _records_of(study)
    shared = {key: value for key, value in table.items() if key not in _OWN}
    variants: dict[str, StudySettings] = {}
    made = _records(where, shared, records, own=_OWN)
    for place, variant in enumerate(table.get("variants", [{"name": ""}]), start=1):
        here = where if "variants" not in table else f"{where}, variant {place}"
        if not isinstance(variant, dict) or not isinstance(variant.get("name"), str):
            raise DataError(f"{here}: needs a `name`, and options in which it differs")
        name = variant["name"]
        if name in variants:
            raise DataError(f"{here}: a variant {name!r} is there already")
        own = {key: value for key, value in variant.items() if key != "name"}
        settings = {"settings": records["settings"]}
        _refuse_unknown(here, own, _keys(settings))
        both = {key: shared[key] for key in shared if key in _keys(settings)} | own
        variants[name] = _records(here, both, settings)["settings"]
    return StudyEntry(
        name=as_file_name(str(table.get("name", study.name))),
        study=table["study"],
        source=made["source"],
        variants=variants,
        scoring=made["scoring"],
        reporting=made["reporting"],
    )


def _records_of(study: Study) -> dict[str, type[BaseModel]]:
    """Name the records whose fields a study's table may set."""
    return {
        "source": study.source,
        "settings": study.settings,
        "scoring": study.scoring,
        "reporting": ReportSettings,
    }


def _keys(records: Mapping[str, type[BaseModel]]) -> dict[str, tuple[str, RecordOption]]:
    """List the keys of records: flags without dashes."""
    return {
        flag.lstrip("-").replace("-", "_"): (name, option)
        for name, record in records.items()
        for option in record_options(record)
        for flag in option.flags
    }


def _records(
    where: str,
    table: Mapping[str, Any],
    records: Mapping[str, type[BaseModel]],
    own: Iterable[str] = (),
) -> dict[str, Any]:
    """Make records of the keys of a table, each of its own."""
    keys = _keys(records)
    _refuse_unknown(where, table, [*own, *keys])
    given: dict[str, dict[str, object]] = {name: {} for name in records}
    for key, value in table.items():
        name, option = keys[key.replace("-", "_")]
        given[name][option.argument] = _value(f"{where}: {key}", value, option)
    made = {}
    for name, record in records.items():
        try:
            made[name] = record_from_options(record, given[name])
        except ValueError as error:
            text = re.sub(r"--([a-z][\w-]*)", lambda flag: flag[1].replace("-", "_"), str(error))
            raise DataError(f"{where}: {text}") from error
    return made


def _value(where: str, value: object, option: RecordOption) -> object:
    """Read a value as the command line would: texts of mappings, and paths."""
    if option.is_mapping:
        if not isinstance(value, dict):
            raise DataError(f"{where} is a table, such as {{ name = 'value' }}; got {value!r}")
        return {
            name: item if isinstance(item, str) else json.dumps(item)
            for name, item in value.items()
        }
    if isinstance(value, str) and get_origin(option.annotation) is tuple:
        return (value,)
    if "Path" in str(option.annotation):
        try:
            return TypeAdapter(option.annotation).validate_python(value)
        except ValidationError as error:
            raise DataError(f"{where} names files, got {value!r}") from error
    return tuple(value) if isinstance(value, list) else value


def _refuse_unknown(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Name a key that is none, and the nearest that is."""
    keys = list(known)
    for key in table:
        if key.replace("-", "_") in keys:
            continue
        near = difflib.get_close_matches(key.replace("-", "_"), keys, n=1, cutoff=0.5)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys))}"
        raise DataError(f"{where}: no key {key!r}; {remedy}")
