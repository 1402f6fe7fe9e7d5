"""`count`: how often a corpus names things."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import dumps as to_json
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from pydantic import Field

from surface_consistency.cli.options import Json, Out
from surface_consistency.cli.record_command import record_command
from surface_consistency.errors import DataError
from surface_consistency.schemas import QuestionRealization
from surface_consistency.schemas.settings import Settings, name_flags
from surface_consistency.studies.redirectqa.instances import entity_id, instance_rows
from surface_consistency_build.counting.engines import EngineName
from surface_consistency_build.counting.runs import CorpusSettings, CountResult, CountRun
from surface_consistency_build.counting.surfaces import SurfaceTable, refuse_half_characters
from surface_consistency_build.counting.tasks import (
    CountTask,
    NameSettings,
    NameTask,
    NgramSettings,
    NgramTask,
    PairSettings,
)
from surface_consistency_build.linking.link_counts import LinkSettings, LinkTask, make_linker

_READER_FLAGS: Final = {"text": "--text-field", "id": "--id-field"}
"""Flags of the fields that `read_documents` calls otherwise than the settings of a corpus."""

_SCORES: Final = (
    *("true_positives", "false_positives", "false_negatives"),
    *("precision", "recall", "f1"),
)


class NameSource(Settings):
    """Whose names are counted."""

    data: str | None = None
    """Questions of RedirectQA whose names are counted: hub id, folder or file."""

    names: Path | None = None
    """File of names instead: columns entity_id, surface and, if you like, role (canonical,
    redirect, alias, answer, or blocker to keep shorter names out of it)."""

    @property
    def questions(self) -> Sequence[QuestionRealization]:
        """The questions, if there are any; refuses both sources or none."""
        if (self.data is None) == (self.names is None):
            raise ValueError("give either `data` or `names`: whose names are counted")
        if self.data is None:
            return ()
        from surface_consistency.studies.redirectqa.data import SAMPLE_PATH, load_redirectqa

        return load_redirectqa(SAMPLE_PATH if self.data == "sample" else self.data).questions

    @property
    def task_inputs(self) -> tuple[SurfaceTable, Any, tuple[tuple[str, str], ...]]:
        """The names, the instances of the questions, and the pairs of their facts."""
        questions = self.questions
        if self.names is not None:
            return _read_names(self.names), None, ()
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


class LinkSource(NameSource):
    """Whose mentions are counted."""

    titles: Path | None = None
    """File of titles or DBpedia URIs, columns entity_id and title, for entities that the linker
    knows by another title than their first name."""


class EntitySource(LinkSource):
    """Whose documents are looked up in an entity map."""

    entity_map: Path
    """The npz file, such as the_pile_entity_map.npz of nkandpa2/pretraining_entities."""

    pairs: Path | None = None
    """File of pairs, columns subject_id and object_id; subject and object of each fact of --data by
    default."""


class GoldSource(Settings):
    """What people labelled."""

    gold: Path
    """Labelled texts in ELEVANT's format (JSONL: text, labels with span and entity_id)."""

    titles: Path | None = None
    """File of the titles of labelled entities, columns entity_id and title, where labels are
    Wikidata items and the linker knows titles."""


class LookupSettings(Settings):
    """Where names are looked up."""

    index: str
    """infini-gram:INDEX or infini-gram-mini:INDEX (web services), or local:FOLDER (an index of
    infini-gram)."""

    tokenizer: str | None = None
    """File tokenizer.json of the index, or a folder with one; needed by local indexes, and for
    names with AND or OR."""

    url: str | None = None
    """Address of the web service; its own by default."""

    cache: Path | None = None
    """File of the service's answers, on a disk of this machine; lookups.sqlite in --out by
    default."""


class WorkSettings(Settings):
    """Who does the work."""

    shard: int | None = Field(default=None, ge=0)
    """Number of the one part to count now, from 0; all that are not done, and the tables, by
    default."""

    workers: int | None = Field(default=None, ge=1)
    """Processes at most; one a core by default."""

    engine: EngineName = "auto"
    """What finds names: numba and ahocorasick count the same; auto takes the first that is
    installed."""


def add(count: App) -> None:
    """Describe `count` and what it counts.

    Args:
        count: The command `count`.
    """
    common: dict[str, Any] = {"corpus": CorpusSettings, "work": WorkSettings}
    names = common | {"names": NameSettings}
    count.command(record_command(_surfaces, source=NameSource, **names), name="mentions")
    pairs = names | {"together": PairSettings}
    count.command(record_command(_pairs, source=PairSource, **pairs), name="pairs")
    ngrams = common | {"ngrams": NgramSettings}
    count.command(record_command(_ngrams, source=NgramSource, **ngrams), name="ngrams")
    linked = names | {"link": LinkSettings}
    count.command(record_command(_link, source=LinkSource, **linked), name="linked")
    gold = record_command(_score_linker, source=GoldSource, link=LinkSettings)
    count.command(gold, name="score-linker")
    count.command(record_command(_entities, source=EntitySource), name="entity-map")
    lookup = record_command(_lookup, source=NameSource, settings=LookupSettings)
    count.command(lookup, name="index")
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

    Written is what `count mentions` writes, and pairs.parquet.
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
        refuse_half_characters(place, str(given[0]), given[1])
        instances[str(given[0])] = given[1]
    if not instances:
        raise DataError(f"{source.data} holds no instances")
    _count(NgramTask(instances, ngrams), out, corpus, work, as_json=json)


def _link(
    *,
    out: Out,
    json: Json = False,
    source: LinkSource,
    names: NameSettings,
    corpus: CorpusSettings,
    work: WorkSettings,
    link: LinkSettings,
) -> None:
    """Count names, and the mentions of their entities that a linker finds.

    Written is what `count mentions` writes, with linked mentions and, of --mentions, expected ones:
    --measure linked and expected of `analyse frequency`.
    """
    table, instances, _ = source.task_inputs
    titles = _entity_titles(source)
    cached = link.model_copy(update={"cache": link.cache or out / "spotlight.sqlite"})
    task = LinkTask(table, names, instances=instances, link=cached, titles=titles)
    _count(task, out, corpus, work, as_json=json)


def _score_linker(*, json: Json = False, source: GoldSource, link: LinkSettings) -> None:
    """Hold a linker against texts that people labelled: precision, recall and F1."""
    from surface_consistency_build.linking.gold import read_gold, score_linker

    documents = list(read_gold(source.gold))
    given = {} if source.titles is None else _read_titles(source.titles)
    linker = make_linker(link, given, only=False)
    score = score_linker(linker, documents)
    numbers = {
        "documents": score.n_documents,
        "documents_not_linked": score.n_failed,
        **{name: getattr(score, name) for name in _SCORES},
    }
    if json:
        print(to_json({name: None if value != value else value for name, value in numbers.items()}))
        return
    for name, value in numbers.items():
        print(f"{name:<22}{value:>10,}" if isinstance(value, int) else f"{name:<22}{value:>10.3f}")


def _entities(*, out: Out, json: Json = False, source: EntitySource) -> None:
    """Look up in a published entity map in how many documents entities were linked.

    Written are linked_entities.parquet, linked_pairs.parquet and coverage.json. These are numbers
    of documents, never of mentions.
    """
    from surface_consistency.runs.files import write_json, write_parquet
    from surface_consistency_build.linking.entity_maps import (
        EntityMap,
        map_entity_table,
        map_pair_table,
    )

    titles, pairs = _titles(source)
    with EntityMap.open(source.entity_map) as linked:
        entities = map_entity_table(linked, titles)
        together = map_pair_table(linked, titles, pairs)
        numbers = {
            "entities": len(titles),
            "entities_not_found": len(titles) - sum(entities["is_found"].to_pylist()),
            "pairs": len(together),
            "entities_in_map": len(linked),
            **{f"documents {key}": n for key, n in linked.failures.items()},
        }
    out.mkdir(parents=True, exist_ok=True)
    write_parquet(out / "linked_entities.parquet", entities)
    write_parquet(out / "linked_pairs.parquet", together)
    write_json(out / "coverage.json", {"entity_map": str(source.entity_map), **numbers})
    _print_counts(numbers, out, as_json=json)


def _lookup(*, out: Out, json: Json = False, source: NameSource, settings: LookupSettings) -> None:
    """Look names up in an index of tokens, where the corpus itself cannot be read.

    Written are lookups.parquet and, of --data, instances.parquet with the measure lookup. These are
    counts of tokens or substrings, not of whole words.
    """
    from surface_consistency.runs.files import output_folder, write_json, write_parquet
    from surface_consistency_build.counting.indexes import lookup_table, open_index
    from surface_consistency_build.counting.tables import lookup_instances
    from surface_consistency_build.counting.tasks import ModelTokenizer

    table, instances, _ = source.task_inputs
    folder = output_folder(out)
    cache = settings.cache or folder / "lookups.sqlite"
    index = open_index(settings.index, cache=cache, url=settings.url)
    tokenize = None if settings.tokenizer is None else ModelTokenizer(settings.tokenizer)
    rows = lookup_table(table, index, tokenize=tokenize)
    write_parquet(folder / "lookups.parquet", rows)
    if instances is not None:
        made = lookup_instances(instances, table, rows)
        write_parquet(folder / "instances.parquet", made)
    counts = rows["count"].to_pylist()
    numbers = {
        "n_names": table.n_keys,
        "n_lookups": len(rows),
        "n_not_counted": sum(n is None for n in counts),
        "n_approximate": sum(rows["is_approximate"].to_pylist()),
    }
    described = settings.model_dump(mode="json")
    write_json(folder / "lookup.json", {**described, "table": table.digest, "counted": numbers})
    _print_counts(numbers, folder, as_json=json)


def _titles(source: EntitySource) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Take the titles of entities, and which of them are looked up together."""
    titles = _entity_titles(source)
    triples = [question.triple for question in source.questions]
    pairs = [(entity_id(triple.subject), entity_id(triple.object)) for triple in triples]
    if source.pairs is not None:
        pairs = list(_read_pairs(source.pairs))
        for name in (name for pair in pairs for name in pair if name not in titles):
            raise DataError(f"{source.pairs}: {name!r} has no title; name it by --titles")
    return titles, [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]


def _entity_titles(source: LinkSource) -> dict[str, str]:
    """Take the titles of entities by their ids."""
    titles: dict[str, str] = {}
    for question in source.questions:
        for entity in (question.triple.subject, question.triple.object):
            titles.setdefault(entity_id(entity), entity.name)
    if source.names is not None:
        named = _text_cells(source.names, "an entity", "entity_id", "surface")
        for (entity_name, surface), row in named:
            if row.get("role", "canonical") == "canonical":
                titles.setdefault(entity_name, surface)
    return titles | ({} if source.titles is None else _read_titles(source.titles))


def _read_titles(path: Path) -> dict[str, str]:
    """Read titles by entity from a file."""
    return {cells[0]: cells[1] for cells, _ in _text_cells(path, "a title", "entity_id", "title")}


def _merge(
    folder: Annotated[Path, Parameter(help="Folder of the count.")], *, json: Json = False
) -> None:
    """Add the parts of a count that were counted apart, and write its tables."""
    _tell(CountRun.open(folder).merge(), as_json=json)


def _count(
    task: CountTask, out: Path, corpus: CorpusSettings, work: WorkSettings, *, as_json: bool
) -> None:
    """Plan a run, count, and write the tables where all is counted."""
    try:
        run = CountRun.plan(out, task, corpus, shard=work.shard)
        if work.shard is None:
            run.run_all(n_workers=work.workers, engine=work.engine)
            _tell(run.merge(), as_json=as_json)
            return
        is_new = run.run(work.shard, engine=work.engine)
    except DataError as error:
        raise type(error)(name_flags(str(error), _READER_FLAGS)) from error
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
    numbers = {"documents": report.documents, "n_bytes": report.n_bytes, **result.counted}
    faults = {"faults": report.faults, "not_sampled": report.not_sampled}
    _print_counts(numbers, result.folder, as_json=as_json, more=faults)


def _print_counts(
    numbers: Mapping[str, int],
    folder: Path,
    *,
    as_json: bool,
    more: Mapping[str, object] | None = None,
) -> None:
    """Print what was counted, and where its tables stand."""
    if as_json:
        print(to_json({"out": str(folder), **numbers, **(more or {})}))
        return
    width = max(map(len, numbers))
    for name, value in numbers.items():
        print(f"{name:<{width}}  {value:>16,}")
    print(f"\ntables: {folder}")


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
    named = _text_cells(path, "a pair", "subject_id", "object_id")
    return tuple((cells[0], cells[1]) for cells, _ in named)


def _text_cells(
    path: Path, what: str, *columns: str
) -> Iterator[tuple[list[str], Mapping[str, object]]]:
    """Read cells that must hold a text, and the rows that they stand in."""
    for place, row in _rows(path):
        cells = [cell for name in columns if isinstance(cell := row.get(name), str) and cell]
        if len(cells) < len(columns):
            raise DataError(
                f"{place}: {what} needs {' and '.join(columns)}; it has {', '.join(map(str, row))}"
            )
        refuse_half_characters(place, *cells)
        yield cells, row


def _rows(path: Path) -> Iterable[tuple[object, Mapping[str, object]]]:
    """Read the rows of a file."""
    from surface_consistency.rows.readers import read_rows

    return read_rows(path)
