"""Build a data set and write it as a folder for the hub."""

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from surface_consistency.data.sources import is_hub_id
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.rows.readers import FORMATS
from surface_consistency.rows.remote import url_of
from surface_consistency.schemas.settings import made_from
from surface_consistency.text import did_you_mean
from surface_consistency_build.builders.audit_databases.audit_databases_builder import (
    AuditDatabasesBuilder,
)
from surface_consistency_build.builders.common import RowsBuilder, SourceBuilder
from surface_consistency_build.builders.dumps import DumpsBuilder
from surface_consistency_build.builders.popqa_redirect.popqa_redirect_builder import (
    PopQARedirectBuilder,
)
from surface_consistency_build.builders.redirectqa.dumps_builder import RedirectQADumpsBuilder
from surface_consistency_build.builders.redirectqa.redirectqa_builder import RedirectQABuilder
from surface_consistency_build.builders.slaq.slaq_builder import SlaqBuilder
from surface_consistency_build.cards.dataset_folder import reserve_output_dir, write_folder
from surface_consistency_build.cards.publish import PublishPlan, check_push, publish_folder
from surface_consistency_build.wikimedia.construction.progress import BuildHook
from surface_consistency_build.wikimedia.wikis import load_wiki

DATA_SETS: Final[dict[str, tuple[type[RowsBuilder], ...]]] = {
    "redirectqa": (RedirectQADumpsBuilder, RedirectQABuilder),
    "popqa-redirect": (PopQARedirectBuilder,),
    "slaq": (SlaqBuilder,),
    "lmlm-audit": (AuditDatabasesBuilder,),
}
"""Data sets by name, and their builders; RedirectQA is built from dumps or from rows."""

_DUMP: Final = re.compile(r"\.sql\b|\.xml\b|pageviews-|-all\.json")


def build_dataset(
    name: str,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    config: str | None = None,
    push_to: str | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    progress: BuildHook | None = None,
    **options: object,
) -> PublishPlan:
    """Build a data set, write it as Parquet files with a card, and optionally upload it.

    `datasets.load_dataset(out)` returns the rows that were built. Rows of a source are validated
    and written with all their columns.

    Args:
        name: Name of the data set: "redirectqa", "popqa-redirect", "slaq" or "lmlm-audit".
        source: Folder of dumps (redirectqa, popqa-redirect); file, folder, URL or hub id of rows
            (redirectqa, slaq); folder of databases and prompts (lmlm-audit).
        out: Folder to write: new, empty, or written by the same build.
        config: Configuration. None builds the default one, or all configurations of lmlm-audit.
        push_to: Repository `owner/name` to upload the folder to; None uploads nothing.
        dry_run: Whether to return the files that a push would upload, without uploading. The folder
            is written.
        overwrite: Whether a data set of other settings in `out` may be replaced.
        progress: Called while dumps are read and before each step.
        options: Fields of the builder's settings: `BuildSettings` for RedirectQA from dumps,
            `PopQASettings`, and `split` for rows.

    Returns:
        The files that were uploaded or that a push would upload, with sizes and rows, and the
        destination.

    Raises:
        ValueError: If the data set, the configuration or an option is unknown, or `push_to` is not
            `owner/name`.
        SourceNotFoundError: If the source, or a dump in it, is missing; the message contains its
            URL.
        DataError: If the source is damaged, `out` contains other files, or `push_to` is given and
            the hub has no token.
        RunError: If `out` contains a data set of other settings.
    """
    if name not in DATA_SETS:
        near = did_you_mean(name, DATA_SETS)
        raise ValueError(f"unknown data set {name!r}{near}; data sets: {', '.join(DATA_SETS)}")
    if push_to is not None:
        check_push(push_to, dry_run=dry_run)
    kind = _builder_class(name, source)
    given, names = dict(options), _names(kind, config)
    labels = names
    if issubclass(kind, DumpsBuilder):
        target = Path(out)
        given["work"] = given.get("work") or target.with_name(f"{target.name}.work")
        if kind is RedirectQADumpsBuilder and "wiki" in given:
            if config is not None:
                raise ValueError(
                    "config and wiki both name a wiki; pass only one of them. Configurations: "
                    f"{', '.join(one.name for one in kind.BUILDER_CONFIGS)}"
                )
            labels = (load_wiki(str(given["wiki"])).name,)
    with tempfile.TemporaryDirectory() as cache:
        builders = [_make(kind, str(source), one, given, cache) for one in names]
        for builder in builders:
            builder.progress = progress
        reserve_output_dir(out, builders[0].claim(), subsets=labels, overwrite=overwrite)
        subsets = [one.subset(label) for one, label in zip(builders, labels, strict=True)]
        written = write_folder(out, subsets, card=builders[0].card())
    return publish_folder(written.folder, push_to, dry_run=dry_run)


def _builder_class(name: str, source: str | os.PathLike[str]) -> type[RowsBuilder]:
    """Choose the builder of a data set by its source, and check that the source exists."""
    kinds, path = DATA_SETS[name], Path(source)
    is_remote = url_of(source) is not None or is_hub_id(str(source))
    if not path.exists() and not (issubclass(kinds[-1], SourceBuilder) and is_remote):
        raise SourceNotFoundError(
            f"{name}: file or folder {os.fspath(source)!r} not found; {kinds[-1].WHERE}"
        )
    if len(kinds) == 1 or not path.is_dir():
        return kinds[-1]
    files = [file for file in path.rglob("*") if file.is_file()]
    has_dumps = any(_DUMP.search(file.name) for file in files)
    return kinds[0 if has_dumps or not any(file.suffix in FORMATS for file in files) else 1]


def _names(kind: type[RowsBuilder], config: str | None) -> tuple[str, ...]:
    """Choose the configurations."""
    known = [one.name for one in kind.BUILDER_CONFIGS]
    if config is not None and config not in known:
        near = did_you_mean(config, known)
        raise ValueError(
            f"{kind.NAME} has no configuration {config!r}{near} for this source; it has "
            f"{', '.join(known)}"
        )
    return (config,) if config is not None else kind.DEFAULTS or (known[0],)


def _make(
    kind: type[RowsBuilder], source: str, name: str, options: dict[str, object], cache: str
) -> RowsBuilder:
    """Create the builder of one configuration; options replace the settings of its preset."""
    preset = next(one for one in kind.BUILDER_CONFIGS if one.name == name).settings
    (settings,) = made_from((kind.SETTINGS,), preset.model_dump() | options, kind.NAME)
    return kind(
        cache_dir=cache, dataset_name=kind.NAME, config_name=name, source=source, settings=settings
    )
