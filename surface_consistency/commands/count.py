"""`count`: how often a corpus names things."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from pydantic import Field

from surface_consistency.commands.options import Json, Out
from surface_consistency.commands.record_command import record_command
from surface_consistency.errors import DataError
from surface_consistency.frequency.engines import EngineName
from surface_consistency.frequency.instances import instance_rows
from surface_consistency.frequency.runs import CorpusSettings, CountResult, CountRun
from surface_consistency.frequency.surfaces import SurfaceTable
from surface_consistency.frequency.tasks import (
    CountTask,
    NameSettings,
    NameTask,
    NgramSettings,
    NgramTask,
    PairSettings,
)
from surface_consistency.settings_options import Settings

__all__ = ["NameSource", "NgramSource", "PairSource", "WorkSettings", "add"]


class NameSource(Settings):
    """Whose names are counted."""

    data: str | None = None
    """Questions of RedirectQA whose names are counted: hub id, folder or file."""

    names: Path | None = None
    """File of names instead: columns entity_id, surface and, if you like, role (canonical,
    redirect, alias, answer, or blocker to keep shorter names out of it)."""

    @property
    def task_inputs(self) -> tuple[SurfaceTable, Any, tuple[tuple[str, str], ...]]:
        """The names, the instances of the questions, and the pairs of their facts."""
        if (self.data is None) == (self.names is None):
            raise ValueError("give either `data` or `names`: whose names are counted")
        if self.names is not None:
            return _read_names(self.names), None, ()
        from surface_consistency.data.redirectqa import SAMPLE_PATH, load_redirectqa

        source = str(SAMPLE_PATH) if self.data == "sample" else self.data
        questions = load_redirectqa(str(source)).questions
        instances = instance_rows(questions)
        pairs = zip(instances["subject_id"], instances["object_id"], strict=True)
        return SurfaceTable.from_questions(questions), instances, tuple(dict.fromkeys(pairs))


class PairSource(NameSource):
    """Whose names are counted, and which entities together."""

    pairs: Path | None = None
    """File of pairs, columns subject_id and object_id; subject and object of each fact of --data by
    default."""


class NgramSource(Settings):
    """Whose n-grams are counted."""

    data: Path
    """File of test instances: JSONL, CSV, TSV or Parquet."""

    instance_text: str = "text"
    """Field of the text of an instance."""

    instance_id: str = "id"
    """Field of its id."""


class WorkSettings(Settings):
    """Who does the work."""

    shard: int | None = Field(default=None, ge=0)
    """Number of the one part to count now, from 0; all that are not done, and the tables, by
    default."""

    workers: int | None = Field(default=None, ge=1)
    """Processes at most; one a core by default."""

    engine: EngineName = "auto"
    """What finds names: numba, ahocorasick and python count the same; auto takes the first that is
    installed."""


def add(count: App) -> None:
    """Describe `count` and what it counts.

    Args:
        count: The command `count`.
    """
    common: dict[str, Any] = {"corpus": CorpusSettings, "work": WorkSettings}
    names = common | {"names": NameSettings}
    count.command(record_command(_surfaces, source=NameSource, **names), name="surfaces")
    pairs = names | {"together": PairSettings}
    count.command(record_command(_pairs, source=PairSource, **pairs), name="pairs")
    ngrams = common | {"ngrams": NgramSettings}
    count.command(record_command(_ngrams, source=NgramSource, **ngrams), name="ngrams")
    count.command(_merge, name="merge")


def _surfaces(
    *,
    out: Out,
    json: Json = False,
    source: NameSource,
    names: NameSettings,
    corpus: CorpusSettings,
    work: WorkSettings,
) -> None:
    """Count names of entities in a corpus.

    Written are surfaces.parquet, entities.parquet and, of --data, instances.parquet, ready for
    frequency_analysis. A stopped count goes on where it was.
    """
    table, instances, _ = source.task_inputs
    _count(NameTask(table, names, instances=instances), out, corpus, work, as_json=json)


def _pairs(
    *,
    out: Out,
    json: Json = False,
    source: PairSource,
    names: NameSettings,
    together: PairSettings,
    corpus: CorpusSettings,
    work: WorkSettings,
) -> None:
    """Count names, and documents that name both entities of a pair.

    Written is what `count surfaces` writes, and pairs.parquet.
    """
    table, instances, pairs = source.task_inputs
    if source.pairs is not None:
        pairs = _read_pairs(source.pairs)
    elif source.names is not None:
        raise ValueError("`names` needs `pairs`: which of its entities are counted together")
    else:
        alike = sum(first == second for first, second in pairs)
        pairs = tuple((first, second) for first, second in pairs if first != second)
        if alike:
            print(
                f"note: {alike} facts whose subject is their object have no pair", file=sys.stderr
            )
    _count(NameTask(table, names, pairs, together, instances), out, corpus, work, as_json=json)


def _ngrams(
    *,
    out: Out,
    json: Json = False,
    source: NgramSource,
    ngrams: NgramSettings,
    corpus: CorpusSettings,
    work: WorkSettings,
) -> None:
    """Count the n-grams of test instances in a corpus, for lexical popularity.

    Written is ngrams.parquet: for each instance the counts of its distinct n-grams, as
    fit_popularity_scale takes them.
    """
    instances = {}
    for place, row in _rows(source.data):
        given = [row.get(name) for name in (source.instance_id, source.instance_text)]
        if given[0] is None or not isinstance(given[1], str):
            raise DataError(
                f"{place}: an instance needs {source.instance_id!r} and the text "
                f"{source.instance_text!r}; it has {', '.join(map(str, row))}. Name the fields "
                "with --instance-id and --instance-text"
            )
        if str(given[0]) in instances:
            raise DataError(
                f"{place}: the instance {given[0]!r} stands twice; ids must be distinct"
            )
        instances[str(given[0])] = given[1]
    if not instances:
        raise DataError(f"{source.data} holds no instances")
    _count(NgramTask(instances, ngrams), out, corpus, work, as_json=json)


def _merge(
    folder: Annotated[Path, Parameter(help="Folder of the count.")], *, json: Json = False
) -> None:
    """Add the parts of a count that were counted apart, and write its tables."""
    _tell(CountRun.open(folder).merge(), as_json=json)


def _count(
    task: CountTask, out: Path, corpus: CorpusSettings, work: WorkSettings, *, as_json: bool
) -> None:
    """Plan a run, count, and write the tables where all is counted."""
    run = CountRun.plan(out, task, corpus)
    if work.shard is None:
        run.run_all(n_workers=work.workers, engine=work.engine)
        _tell(run.merge(), as_json=as_json)
        return
    is_new = run.run(work.shard, engine=work.engine)
    done = "counted" if is_new else "was counted before"
    missing = run.missing()
    rest = (
        f"{len(missing)} of {run.n_shards} are left"
        if missing
        else f"all are done: surface-consistency count merge {out}"
    )
    print(f"shard {work.shard} {done}; {rest}")


def _tell(result: CountResult, *, as_json: bool) -> None:
    """Print what was counted, and what was wrong with the documents."""
    report = result.report
    for line in report.lines():
        print(f"warning: {line}", file=sys.stderr)
    told = {"documents": report.documents, "n_bytes": report.n_bytes, **result.counted}
    if as_json:
        import json

        faults = {"faults": report.faults, "not_sampled": report.not_sampled}
        print(json.dumps({"out": str(result.folder), **told, **faults}))
        return
    width = max(map(len, told))
    for name, value in told.items():
        print(f"{name:<{width}}  {value:>16,}")
    print(f"\ntables: {result.folder}")


def _read_names(path: Path) -> SurfaceTable:
    """Read names from a file."""
    if path.suffix.lower() == ".parquet":
        return SurfaceTable.read(path)
    try:
        return SurfaceTable.from_records(row for _, row in _rows(path))
    except DataError as error:
        raise type(error)(f"{path}: {error}") from error


def _read_pairs(path: Path) -> tuple[tuple[str, str], ...]:
    """Read pairs from a file."""
    pairs = []
    for place, row in _rows(path):
        given = [row.get(name) for name in ("subject_id", "object_id")]
        if not all(isinstance(name, str) and name for name in given):
            raise DataError(
                f"{place}: a pair needs subject_id and object_id; it has {', '.join(map(str, row))}"
            )
        pairs.append((str(given[0]), str(given[1])))
    return tuple(pairs)


def _rows(path: Path) -> Iterable[tuple[object, Mapping[str, object]]]:
    """Read the rows of a file."""
    from surface_consistency.data.readers import read_rows

    return read_rows(path)
