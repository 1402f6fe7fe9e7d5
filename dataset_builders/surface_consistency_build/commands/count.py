"""The command `count`: counts of names, pairs, n-grams and links in a corpus."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter
from pydantic import Field

from surface_consistency.cli.options import Json, Out
from surface_consistency.cli.record_command import name_flags, record_command
from surface_consistency.errors import DataError
from surface_consistency.reading import first_names, shown, within
from surface_consistency.schemas import QuestionRealization
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.redirectqa.instances import entity_id, instance_rows
from surface_consistency_build.counting import tasks
from surface_consistency_build.counting.runs import CorpusSettings, CountResult, CountRun
from surface_consistency_build.counting.surfaces import SurfaceTable, reject_lone_surrogates
from surface_consistency_build.linking.link_counts import LinkSettings, LinkTask, count_link_rows

if TYPE_CHECKING:
    import pandas as pd

_READER_FLAGS: Final = {"text": "--text-field", "id": "--id-field"}
"""Flags of the fields whose names differ between `read_documents` and the settings of a corpus."""


class NameSource(Settings):
    """Source of the names to count."""

    data: str | None = None
    """Questions of RedirectQA that contain the names to count: hub id, folder or file."""

    names: Path | None = None
    """File of names instead of questions: columns entity_id, surface and optionally role
    (canonical, redirect, alias, answer, or blocker, which prevents counts of shorter names inside
    it)."""

    @property
    def questions(self) -> Sequence[QuestionRealization]:
        """The questions, if there are any; raises ValueError unless exactly one source is given."""
        if (self.data is None) == (self.names is None):
            raise ValueError("give either `data` or `names`, the source of the names to count")
        if self.data is None:
            return ()
        from surface_consistency.data.redirectqa import load_redirectqa

        return load_redirectqa(self.data).questions

    @property
    def task_inputs(
        self,
    ) -> tuple[SurfaceTable, "pd.DataFrame | None", tuple[tuple[str, str], ...]]:
        """The names, the instances of the questions, and the pairs of their facts."""
        questions = self.questions
        if self.names is not None:
            return _read_names(self.names), None, ()
        instances = instance_rows(questions)
        pairs = zip(instances["subject_id"], instances["object_id"], strict=True)
        return SurfaceTable.from_questions(questions), instances, tuple(dict.fromkeys(pairs))


class PairSource(NameSource):
    """Source of the names to count, and pairs of entities."""

    pairs: Path | None = None
    """File of pairs with columns subject_id and object_id; by default the subject and object of
    each fact of --data."""


class NgramSource(Settings):
    """Source of the n-grams to count."""

    data: Path
    """File of test instances: JSONL, CSV, TSV or Parquet."""

    instance_text: str = "text"
    """Field of the text of an instance."""

    instance_id: str = "id"
    """Field of the id of an instance."""


class LinkSource(PairSource):
    """Source of the mentions to count."""

    titles: Path | None = None
    """File of titles or DBpedia URIs, columns entity_id and title, for entities whose title in the
    linker or the entity map differs from their first name."""

    sparql: str | None = None
    """SPARQL endpoint that resolves DBpedia URIs to Wikidata ids, such as
    https://dbpedia.org/sparql; by default URIs are matched by the titles of entities. Not used for
    entity maps."""


class LookupSettings(Settings):
    """Settings for queries of an index of tokens."""

    url: str | None = None
    """Address of the web service; by default the public one."""

    cache: Path | None = None
    """File that stores the answers of the service, on a local disk; by default lookups.sqlite in
    --out."""


class WorkSettings(Settings):
    """Distribution of the work."""

    shard: int | None = Field(default=None, ge=0)
    """Number of the only part to count now, from 0; by default all unfinished parts and the
    tables."""

    workers: int | None = Field(default=None, ge=1)
    """Maximum number of processes; by default one per core."""


def add(count: App) -> None:
    """Add the subcommands of `count`.

    Args:
        count: The command `count`.
    """
    common: dict[str, Any] = {"corpus": CorpusSettings, "work": WorkSettings}
    names = common | {"names": tasks.NameSettings}
    count.command(record_command(_surfaces, source=NameSource, **names), name="names")
    pairs = names | {"together": tasks.PairSettings}
    count.command(record_command(_pairs, source=PairSource, **pairs), name="pairs")
    ngrams = common | {"ngrams": tasks.NgramSettings, "lookup": LookupSettings}
    count.command(
        record_command(_ngrams, optional=("corpus",), source=NgramSource, **ngrams), name="ngrams"
    )
    linked = names | {"link": LinkSettings}
    count.command(
        record_command(_link, optional=("corpus",), source=LinkSource, **linked), name="linked"
    )
    count.command(_merge, name="merge")


def _surfaces(
    *,
    out: Out,
    json: Json = False,
    source: NameSource,
    names: tasks.NameSettings,
    corpus: CorpusSettings,
    work: WorkSettings,
) -> None:
    """Count names of entities in a corpus.

    Writes surfaces.parquet, entities.parquet and, with --data, instances.parquet for `analyse
    frequency`. Repeat the command to resume a stopped count.
    """
    table, instances, _ = source.task_inputs
    _count(tasks.NameTask(table, names, instances=instances), out, corpus, work, as_json=json)


def _pairs(
    *,
    out: Out,
    json: Json = False,
    source: PairSource,
    names: tasks.NameSettings,
    together: tasks.PairSettings,
    corpus: CorpusSettings,
    work: WorkSettings,
) -> None:
    """Count names, and documents that name both entities of a pair.

    Writes the files of `count names`, and pairs.parquet.
    """
    table, instances, pairs = source.task_inputs
    if source.pairs is not None:
        pairs = _read_pairs(source.pairs)
    elif source.names is not None:
        raise ValueError("`names` needs `pairs`, the entities to count together")
    else:
        alike = sum(first == second for first, second in pairs)
        pairs = tuple((first, second) for first, second in pairs if first != second)
        if alike:
            print(
                f"note: {alike} facts have one entity as subject and object, and are not counted "
                "as pairs",
                file=sys.stderr,
            )
    _count(
        tasks.NameTask(table, names, pairs, together, instances), out, corpus, work, as_json=json
    )


def _ngrams(
    *,
    out: Out,
    json: Json = False,
    index: Annotated[
        str | None,
        Parameter(
            name="--from",
            help="Index of tokens instead of a corpus: infini-gram:INDEX or "
            "infini-gram-mini:INDEX (web services), or local:FOLDER (an index of infini-gram).",
        ),
    ] = None,
    source: NgramSource,
    ngrams: tasks.NgramSettings,
    corpus: CorpusSettings | None,
    work: WorkSettings,
    lookup: LookupSettings,
) -> None:
    """Count the n-grams of test instances in a corpus, for lexical popularity.

    Writes ngrams.parquet: for each instance the counts of its distinct n-grams, which `analyse
    popularity` reads. With --from the counts come from an index of the corpus, as in the paper.
    """
    instances = {}
    for place, row in _rows(source.data):
        given = [row.get(name) for name in (source.instance_id, source.instance_text)]
        if given[0] is None or not isinstance(given[1], str):
            raise DataError(
                f"{place}: an instance needs {shown(source.instance_id)} and the text "
                f"{shown(source.instance_text)}; it has {first_names(row)}. Name the fields with "
                "--instance-id and --instance-text"
            )
        if str(given[0]) in instances:
            raise DataError(
                f"{place}: the instance {shown(given[0])} occurs twice; ids must be distinct"
            )
        reject_lone_surrogates(place, str(given[0]), given[1])
        instances[str(given[0])] = given[1]
    if not instances:
        raise DataError(f"{source.data} contains no instances; pass a file with at least one row")
    task = tasks.NgramTask(instances, ngrams)
    if index is None:
        _count(task, out, _corpus(corpus), work, as_json=json)
        return
    _reject_corpus(corpus)
    from surface_consistency.runs.files import claim_files, output_folder, write_json
    from surface_consistency_build.counting.indexes import lookup_counts, open_index

    folder = output_folder(out)
    opened = open_index(
        index, cache=lookup.cache or within(folder, "lookups.sqlite"), url=lookup.url
    )
    counts = lookup_counts(task.counter().ngrams(), opened)
    claim_files(folder, ["ngrams.parquet", "instances.parquet", "lookup.json"])
    numbers = task.write(folder, {"counts": counts})
    write_json(folder / "lookup.json", {"from": index, "task": task.describe(), "counted": numbers})
    _print_counts(numbers, folder, as_json=json)


def _link(
    *,
    out: Out,
    json: Json = False,
    given: Annotated[
        str | None,
        Parameter(
            name="--from",
            help="Instead of a corpus: rows of a linker (columns uri or entity_id, surface, and "
            "document), or a published entity map (.npz).",
        ),
    ] = None,
    source: LinkSource,
    names: tasks.NameSettings,
    corpus: CorpusSettings | None,
    work: WorkSettings,
    link: LinkSettings,
) -> None:
    """Count mentions of entities found by a linker, for --measure linked of `analyse frequency`.

    With --corpus and --url a server of DBpedia Spotlight links the corpus, and the files of `count
    names` are written with linked mentions. With --from the mentions are rows of any linker. For an
    entity map, which has numbers of documents and not of mentions, the command writes
    linked_entities.parquet, linked_pairs.parquet and coverage.json.
    """
    table, instances, _ = source.task_inputs
    if given is not None:
        _reject_corpus(corpus)
        if given.endswith(".npz"):
            _look_up(given, source, out, as_json=json)
        else:
            _count_rows(given, source, table, instances, out, as_json=json)
        return
    entities = _linked_names(source, out)
    cached = link.model_copy(update={"cache": link.cache or within(out, "spotlight.sqlite")})
    task = LinkTask(table, names, instances=instances, link=cached, entities=entities)
    _count(task, out, _corpus(corpus), work, as_json=json)


def _corpus(corpus: CorpusSettings | None) -> CorpusSettings:
    """Return the corpus, or raise an error if it is missing."""
    if corpus is None:
        raise ValueError("give either `corpus` or --from, the source of the counts")
    return corpus


def _reject_corpus(corpus: CorpusSettings | None) -> None:
    """Reject a corpus if counts are looked up in an index."""
    if corpus is not None:
        raise ValueError("give either `corpus` or --from, not both")


def _count_rows(
    given: str,
    source: LinkSource,
    table: SurfaceTable,
    instances: "pd.DataFrame | None",
    out: Path,
    *,
    as_json: bool,
) -> None:
    """Count the rows of a linker."""
    from surface_consistency.runs.files import claim_files, output_folder, write_json, write_parquet
    from surface_consistency_build.counting.tables import linked_instances, linked_tables

    folder = output_folder(out)
    mentions = count_link_rows(given, table, _linked_names(source, folder))
    entities, surfaces = linked_tables(table, mentions)
    tables = ("entities.parquet", "surfaces.parquet", "instances.parquet")
    claim_files(folder, [*tables, "linked.json"])
    write_parquet(folder / "entities.parquet", entities)
    write_parquet(folder / "surfaces.parquet", surfaces)
    if instances is not None:
        made = linked_instances(instances, table, mentions)
        write_parquet(folder / "instances.parquet", made)
    linked = entities["entity_linked"].to_pylist()
    numbers = {"n_entities": len(linked), "n_entities_seen": sum(n > 0 for n in linked)}
    numbers["n_linked"] = sum(linked)
    write_json(folder / "linked.json", {"from": given, "table": table.digest, "counted": numbers})
    _print_counts(numbers, folder, as_json=as_json)


def _look_up(path: str, source: LinkSource, out: Path, *, as_json: bool) -> None:
    """Look entities and pairs up in a published entity map."""
    from surface_consistency.runs.files import claim_files, write_json, write_parquet
    from surface_consistency_build.linking.entity_maps import (
        EntityMap,
        map_entity_table,
        map_pair_table,
    )

    titles, pairs = _titles(source)
    with EntityMap.open(path) as linked:
        entities = map_entity_table(linked, titles)
        together = map_pair_table(linked, titles, pairs)
        numbers = {
            "entities": len(titles),
            "entities_not_found": len(titles) - sum(entities["is_found"].to_pylist()),
            "pairs": len(together),
            "entities_in_map": len(linked),
            **{f"documents {key}": n for key, n in linked.failures.items()},
        }
    claim_files(out, ["linked_entities.parquet", "linked_pairs.parquet", "coverage.json"])
    write_parquet(out / "linked_entities.parquet", entities)
    write_parquet(out / "linked_pairs.parquet", together)
    write_json(out / "coverage.json", {"entity_map": path, **numbers})
    _print_counts(numbers, out, as_json=as_json)


def _linked_names(source: LinkSource, out: Path) -> dict[str, str]:
    """Return the entity of each title or DBpedia URI that a linker may return."""
    titles = _entity_titles(source)
    entities = {title: entity for entity, title in reversed(list(titles.items()))}
    if source.sparql is None:
        return entities
    from surface_consistency_build.linking.dbpedia import dbpedia_uris

    out.mkdir(parents=True, exist_ok=True)
    items = [entity for entity in titles if not entity.startswith("name:")]
    return entities | dbpedia_uris(
        items, endpoint=source.sparql, cache=within(out, "dbpedia.sqlite")
    )


def _titles(source: LinkSource) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the titles of entities, and the pairs to look up together."""
    titles = _entity_titles(source)
    triples = [question.triple for question in source.questions]
    pairs = [(entity_id(triple.subject), entity_id(triple.object)) for triple in triples]
    if source.pairs is not None:
        pairs = list(_read_pairs(source.pairs))
        for name in (name for pair in pairs for name in pair if name not in titles):
            raise DataError(f"{source.pairs}: {shown(name)} has no title; add it with --titles")
    return titles, [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]


def _entity_titles(source: LinkSource) -> dict[str, str]:
    """Return the titles of entities by their ids."""
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
    folder: Annotated[Path, Parameter(help="Folder of the count.")], /, *, json: Json = False
) -> None:
    """Merge the partial counts of a run, and write its tables."""
    _print_result(CountRun.open(folder).merge(), as_json=json)


def _count(
    task: tasks.CountTask, out: Path, corpus: CorpusSettings, work: WorkSettings, *, as_json: bool
) -> None:
    """Plan a run, count, and write the tables if all parts are counted."""
    try:
        run = CountRun.plan(out, task, corpus, shard=work.shard)
        if work.shard is None:
            run.run_all(n_workers=work.workers)
            _print_result(run.merge(), as_json=as_json)
            return
        is_new = run.run(work.shard)
    except DataError as error:
        raise type(error)(name_flags(str(error), _READER_FLAGS)) from error
    done = "counted" if is_new else "was counted before"
    missing = run.missing()
    rest = (
        f"{len(missing)} of {run.n_shards} are left"
        if missing
        else f"all parts are done: surface-consistency count merge {out}"
    )
    print(f"shard {work.shard} {done}; {rest}")


def _print_result(result: CountResult, *, as_json: bool) -> None:
    """Print the counts, and the problems with documents."""
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
    """Print the counts, and the folder of the tables."""
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
    """Yield cells that must be texts, with the places of their rows."""
    for place, row in _rows(path):
        cells = [cell for name in columns if isinstance(cell := row.get(name), str) and cell]
        if len(cells) < len(columns):
            raise DataError(
                f"{place}: {what} needs {' and '.join(columns)}; it has {first_names(row)}"
            )
        reject_lone_surrogates(place, *cells)
        yield cells, row


def _rows(path: Path) -> Iterable[tuple[object, Mapping[str, object]]]:
    """Read the rows of a file."""
    from surface_consistency.rows.readers import read_rows

    return read_rows(path)
