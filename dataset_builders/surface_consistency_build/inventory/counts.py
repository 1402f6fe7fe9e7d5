"""An inventory of a wiki's redirects: how many carry which category and which template.

What the 33 categories of RedirectQA are to the English Wikipedia has to be found out for every
other wiki. The counts say what there is, what of it is mapped to the taxonomy, and what more a
mapping would gain.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from surface_consistency.errors import DataError
from surface_consistency.schemas.jsonl import part_beside, remove_abandoned
from surface_consistency.taxonomy import CATEGORIES, parse_category
from surface_consistency_build.inventory.plan import LINK_TABLES, InventoryPlan, Kind
from surface_consistency_build.wikimedia.construction._arrow import (
    TableWriter,
    Tally,
    text_column,
)
from surface_consistency_build.wikimedia.construction.database import open_database, quoted
from surface_consistency_build.wikimedia.pages_xml import RedirectPage, read_redirects
from surface_consistency_build.wikimedia.rcat_templates import (
    ENWIKI_SHELLS,
    ENWIKI_TABLE,
    template_key,
)
from surface_consistency_build.wikimedia.sql import read_create_table, read_sql
from surface_consistency_build.wikimedia.streams import (
    MarkedReadOptions,
    ProgressHook,
    ReadOptions,
    ReadProgress,
)
from surface_consistency_build.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import duckdb

_NAMESPACES: Final[Mapping[int, Kind]] = {14: "category", 10: "template"}
_PAGE, _REDIRECT, _ARTICLE, _CATEGORY, _TEMPLATE = 1, 2, 4, 8, 16
_OF_NAMESPACE: Final = {0: _ARTICLE, 14: _CATEGORY, 10: _TEMPLATE}
_LARGEST_PAGE_ID: Final = (1 << 31) - 1
_LEAST_KNOWN: Final = 0.5
_LEAST_ALIKE: Final = 0.95
_EXAMPLES: Final = 3
_ROWS: Final = 20_000
_SHELLS: Final = frozenset(map(template_key, ENWIKI_SHELLS))
_STAGED: Final = {
    "redirects": {"page_id": "int64", "title": "string"},
    "targets": {"page_id": "int64", "target": "string", "is_whole_article": "bool"},
    "names": {"page_id": "int64", "kind": "string", "name": "string"},
    "linktargets": {"kind": "string", "target_id": "int64", "name": "string"},
    "links": {"kind": "string", "page_id": "int64", "target_id": "int64", "name": "string"},
    "hidden": {"page_id": "int64"},
    "english": {"page_id": "int64", "english": "string"},
}
_ARROW: Final = {"int64": "int64", "string": "string", "bool": "bool_"}

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RedirectInventory:
    """What the redirects of a wiki carry."""

    plan: InventoryPlan
    """The wiki and the dumps."""

    n_redirects: int
    """Redirects in the article namespace."""

    n_usable: int
    """Of these, the ones that lead to a whole article: not to a section, to another namespace or
    wiki, or nowhere. Chains count as their first step; whether a page of the target's title is
    there is not looked up."""

    kinds: pd.DataFrame
    """One row a kind ("category", "template") that was counted: `kind`, `source` (table or "text"),
    `n_names` (distinct), and of the usable redirects `n_carrying` (any), `n_mapped` (one that is
    mapped), `n_unmapped` (some, none of them mapped), `n_untagged` (none); the last three sum to
    `n_usable`."""

    names: pd.DataFrame
    """One row a category or template, the most frequent first: `kind`, `name` (with underscores),
    `n_redirects`, `n_usable`, `n_gained` (usable redirects that carry nothing mapped of this kind,
    so that mapping it would add them), `share` (of all redirects), `is_hidden` (None where not
    known), `is_shell` (wraps other templates), `english` (its name on the English wiki, None where
    not known), `label` and `type` (in the taxonomy, None where not mapped), `mapped_by`
    ("configuration", "interlanguage link" or None), and `examples`, a tuple of up to three pairs of
    redirect and target (None where not known), drawn evenly by page number."""

    labels: pd.DataFrame
    """One row a kind and label of the taxonomy that is mapped: `kind`, `label`, `type`,
    `n_redirects`, `n_usable`; a redirect counts once for each."""

    notes: tuple[str, ...]
    """What the files did not tell, and what was left out."""


def take_inventory(
    plan: InventoryPlan,
    *,
    work: str | os.PathLike[str] | None = None,
    memory_limit: str = "2GB",
    threads: int | None = None,
    allow_truncated: bool = False,
    require_end_mark: bool = False,
    progress: ProgressHook | None = None,
) -> RedirectInventory:
    """Count what the redirects of a wiki carry.

    Each dump is read once; of the links those of redirects alone are kept, on disk, and DuckDB
    counts them. Memory holds a byte a page of the wiki, a batch, and `memory_limit`.

    Args:
        plan: The files, from `plan_inventory`.
        work: Folder in which a hidden one holds what is staged; it goes at the end, or when the
            next inventory begins there; the system's for temporary files by default. It takes
            about a twentieth of the dumps' size.
        memory_limit: Memory for DuckDB, such as "2GB"; beyond it spills to `work`.
        threads: Threads for unpacking and counting; as many as there are processors when None.
        allow_truncated: Whether a dump that ends early counts as far as it goes, with a warning.
        require_end_mark: Whether a plain dump of which nothing tells that it is whole is refused.
        progress: Called as the dumps are read.

    Returns:
        The counts.

    Raises:
        DataError: If the wiki has no redirect, or the tables are not of one wiki and date.
        DataError: If a dump is broken, or not the table it should be.

    Warns:
        DataWarning: If a dump ends early and that is allowed.
    """
    ends: dict[Path, str] = {}

    def watch(state: ReadProgress) -> None:
        """Remember how dumps end, and pass on how far they are read."""
        if state.is_truncated:
            ends[state.path] = "is cut off or damaged; what came before counts"
        elif state.is_end_unmarked:
            ends[state.path] = (
                "is not packed and has no mark at its end, so that a cut between two lines or "
                "statements cannot be told"
            )
        if progress is not None:
            progress(state)

    options: ReadOptions = {
        "allow_truncated": allow_truncated,
        "threads": threads,
        "progress": watch,
    }
    with (
        _staging(Path(work or tempfile.gettempdir())) as folder,
        open_database(folder, memory_limit=memory_limit, threads=threads) as connection,
    ):
        with ExitStack() as stack:
            reader = _Reader(plan, folder, stack, options, require_end_mark=require_end_mark)
            reader.read()
        for table in _STAGED:
            file = quoted(str(folder / f"{table}.parquet"))
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet({file})")
        notes = [*reader.notes, *(f"{path.name} {how}" for path, how in ends.items())]
        return _Counter(plan, connection, notes).inventory()


@contextmanager
def _staging(work: Path) -> Iterator[Path]:
    """Lend a hidden folder; what killed processes left of theirs goes first."""
    remove_abandoned(work, "inventory")
    folder = part_beside(work / "inventory")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Pages:
    """What each page is, by its number: flags, which take memory only where pages are."""

    def __init__(self) -> None:
        self._flags: npt.NDArray[np.uint8] = np.zeros(1 << 20, np.uint8)

    def mark(self, numbers: npt.NDArray[np.int64], flags: npt.NDArray[np.uint8]) -> None:
        """Say what pages are; numbers beyond all of Wikimedia's are damage."""
        if not len(numbers):
            return
        largest = int(numbers.max())
        if largest > _LARGEST_PAGE_ID or int(numbers.min()) < 0:
            raise DataError(
                f"page number {largest:,} is none that a wiki has; give the dump of its page table"
            )
        if largest >= len(self._flags):
            grown = np.zeros(max(largest + 1, 2 * len(self._flags)), np.uint8)
            grown[: len(self._flags)] = self._flags
            self._flags = grown
        self._flags[numbers] |= flags

    def flags(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Tell what pages are; 0 for those that the wiki does not have."""
        is_there = (numbers >= 0) & (numbers < len(self._flags))
        return np.where(is_there, self._flags[np.where(is_there, numbers, 0)], np.uint8(0))


@dataclass(slots=True)
class _Fit:
    """How many rows of a table are of pages that the wiki has, and of those, are as it says."""

    n_rows: int = 0
    n_known: int = 0
    n_alike: int = 0

    def add(self, is_known: npt.NDArray[np.bool_], is_alike: npt.NDArray[np.bool_]) -> None:
        """Count rows."""
        self.n_rows += len(is_known)
        self.n_known += int(is_known.sum())
        self.n_alike += int((is_known & is_alike).sum())

    def check(self, path: Path, first: Path, *, is_whole: bool) -> None:
        """Refuse a table of another wiki or date than the first one."""
        is_foreign = is_whole and self.n_known < _LEAST_KNOWN * self.n_rows
        if is_foreign or self.n_alike < _LEAST_ALIKE * self.n_known:
            raise DataError(
                f"{path.name} does not belong to {first.name}: of its {self.n_rows:,} rows "
                f"{self.n_known:,} are of pages that are there, and {self.n_alike:,} of these say "
                "the same of the page as it does. Give tables of one wiki and one date"
            )


class _Reader:
    """Reads the dumps of an inventory once each, and keeps what concerns redirects."""

    def __init__(
        self,
        plan: InventoryPlan,
        folder: Path,
        stack: ExitStack,
        options: ReadOptions,
        *,
        require_end_mark: bool,
    ) -> None:
        self.notes: list[str] = []
        """What was left out."""
        self._plan = plan
        self._options = options
        self._marked: MarkedReadOptions = {**options, "require_end_mark": require_end_mark}
        self._is_whole = not options["allow_truncated"]
        self._pages = _Pages()
        self._tally = Tally()
        self._n_redirects = 0
        self._schemas = {
            table: pa.schema(
                [(name, getattr(pa, _ARROW[kind])()) for name, kind in columns.items()]
            )
            for table, columns in _STAGED.items()
        }
        self._writers = {
            table: stack.enter_context(TableWriter(folder / f"{table}.parquet", schema))
            for table, schema in self._schemas.items()
        }

    def read(self) -> None:
        """Read all dumps in their order."""
        tables = self._plan.tables
        if "page" in tables:
            self._read_page(tables["page"])
            self._read_redirect(tables["redirect"])
        for path in self._plan.pages_articles:
            self._read_text(path)
        if not self._n_redirects:
            first = tables.get("page", *self._plan.pages_articles[:1])
            raise DataError(
                f"{first} holds no redirect of the article namespace, so that nothing can be "
                "counted; give the dumps of a whole wiki"
            )
        if "linktarget" in tables:
            self._read_linktarget(tables["linktarget"])
        for kind, table in LINK_TABLES.items():
            if table in tables:
                self._read_links(kind, tables[table])
        if "page" in tables and "page_props" in tables:
            self._read_hidden(tables["page_props"])
        if "page" in tables and "langlinks" in tables:
            self._read_english(tables["langlinks"])
        self.notes += [
            f"{n:,} rows are left out: {why}" for why, n in self._tally.removed.items() if n
        ]

    def _sql(self, path: Path, columns: Sequence[str]) -> Batches:
        """Read columns of a table."""
        with read_sql(path, columns, **self._marked) as batches:
            yield from batches

    def _write(self, table: str, **columns: Any) -> None:  # noqa: ANN401  (Arrow columns)
        """Keep rows."""
        schema = self._schemas[table]
        arrays = [
            column.cast(schema.field(name).type)
            if isinstance(column := columns[name], pa.Array | pa.ChunkedArray)
            else pa.array(column, schema.field(name).type)
            for name in schema.names
        ]
        self._writers[table].write(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def _read_page(self, path: Path) -> None:
        """Learn what each page is; keep redirects, and the names of categories and templates."""
        columns = ("page_id", "page_namespace", "page_title", "page_is_redirect")
        for batch in self._sql(path, columns):
            numbers, spaces = _ints(batch["page_id"]), _ints(batch["page_namespace"])
            flags = np.full(len(numbers), _PAGE, np.uint8)
            for space, flag in _OF_NAMESPACE.items():
                flags[spaces == space] |= flag
            flags[_ints(batch["page_is_redirect"]) != 0] |= _REDIRECT
            self._pages.mark(numbers, flags)
            whole, titles = text_column(batch, "page_title", self._tally)
            spaces, numbers = _ints(whole["page_namespace"]), whole["page_id"]
            is_wanted = (spaces == 0) & (_ints(whole["page_is_redirect"]) != 0)
            self._n_redirects += int(is_wanted.sum())
            self._write(
                "redirects", page_id=_take(numbers, is_wanted), title=_take(titles, is_wanted)
            )
            for space, kind in _NAMESPACES.items():
                of_kind = spaces == space
                self._write(
                    "names",
                    page_id=_take(numbers, of_kind),
                    kind=[kind] * int(of_kind.sum()),
                    name=_take(titles, of_kind),
                )

    def _read_redirect(self, path: Path) -> None:
        """Keep where redirects lead."""
        fit = _Fit()
        columns = ("rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment")
        for batch in self._sql(path, columns):
            flags = self._pages.flags(_ints(batch["rd_from"]))
            fit.add((flags & _PAGE) != 0, (flags & _REDIRECT) != 0)
            rows, titles = text_column(batch, "rd_title", self._tally)
            flags = self._pages.flags(_ints(rows["rd_from"]))
            is_ours = (flags & (_REDIRECT | _ARTICLE)) == (_REDIRECT | _ARTICLE)
            is_whole = (
                (_ints(rows["rd_namespace"]) == 0)
                & ~_is_given(rows["rd_interwiki"])
                & ~_is_given(rows["rd_fragment"])
            )
            self._write(
                "targets",
                page_id=_take(rows["rd_from"], is_ours),
                target=_take(titles, is_ours),
                is_whole_article=is_whole[is_ours],
            )
        fit.check(path, self._plan.tables["page"], is_whole=self._is_whole)

    def _read_text(self, path: Path) -> None:
        """Keep what the pages' own text says: redirects, unless tables do, and what they name."""
        from_text = [kind for kind, source in self._plan.sources.items() if source == "text"]
        has_pages = "page" in self._plan.tables
        fit = _Fit()
        rows: list[RedirectPage] = []

        def keep() -> None:
            """Write the pages that were taken in."""
            numbers = np.array([page.page_id for page in rows], np.int64)
            if has_pages:
                flags = self._pages.flags(numbers)
                fit.add((flags & _PAGE) != 0, (flags & _REDIRECT) != 0)
            else:
                self._pages.mark(
                    numbers, np.full(len(rows), _PAGE | _REDIRECT | _ARTICLE, np.uint8)
                )
                titles = [_underscored(page.title) for page in rows]
                self._n_redirects += len(rows)
                self._write("redirects", page_id=numbers, title=titles)
                self._write(
                    "targets",
                    page_id=numbers,
                    target=[_underscored(page.target) for page in rows],
                    is_whole_article=[
                        not page.is_interwiki and page.target_namespace == 0 and not page.fragment
                        for page in rows
                    ],
                )
            for kind in from_text:
                named = [
                    (page.page_id, _underscored(name))
                    for page in rows
                    for name in (page.categories if kind == "category" else page.templates)
                ]
                self._write(
                    "links",
                    kind=[kind] * len(named),
                    page_id=[number for number, _ in named],
                    target_id=[None] * len(named),
                    name=[name for _, name in named],
                )
            rows.clear()

        for page in read_redirects(path, **self._options):
            rows.append(page)
            if len(rows) >= _ROWS:
                keep()
        keep()
        if has_pages:
            fit.check(path, self._plan.tables["page"], is_whole=self._is_whole)

    def _read_linktarget(self, path: Path) -> None:
        """Keep the names of categories and templates by their numbers."""
        for batch in self._sql(path, ("lt_id", "lt_namespace", "lt_title")):
            spaces = _ints(batch["lt_namespace"])
            for space, kind in _NAMESPACES.items():
                some = batch.filter(_mask(spaces == space))
                some, titles = text_column(some, "lt_title", self._tally)
                self._write(
                    "linktargets",
                    kind=[kind] * some.num_rows,
                    target_id=some["lt_id"],
                    name=titles,
                )

    def _read_links(self, kind: Kind, path: Path) -> None:
        """Keep the categories or templates of redirects, from a table of any schema."""
        known = read_create_table(path).names
        prefix = "cl" if kind == "category" else "tl"
        title, number = ("cl_to" if kind == "category" else "tl_title"), f"{prefix}_target_id"
        more = [
            name
            for name in (title, number, "cl_type", "tl_namespace", "tl_from_namespace")
            if name in known
        ]
        if title not in more and number not in more:
            raise DataError(
                f"{path}: its table has neither {title} nor {number}, but {', '.join(known)}; "
                f"give a dump of the {LINK_TABLES[kind]} table"
            )
        fit = _Fit()
        for batch in self._sql(path, (f"{prefix}_from", *more)):
            flags = self._pages.flags(_ints(batch[f"{prefix}_from"]))
            fit.add((flags & _PAGE) != 0, _is_alike(batch, flags))
            is_ours = (flags & (_REDIRECT | _ARTICLE)) == (_REDIRECT | _ARTICLE)
            if "tl_namespace" in more and number not in more:
                is_ours &= _ints(batch["tl_namespace"]) == 10
            rows = batch.filter(_mask(is_ours))
            names: Any = pa.nulls(rows.num_rows, pa.string())
            if title in more:
                rows, names = text_column(rows, title, self._tally)
            self._write(
                "links",
                kind=[kind] * rows.num_rows,
                page_id=rows[f"{prefix}_from"],
                target_id=rows[number] if number in more else pa.nulls(rows.num_rows, pa.int64()),
                name=names,
            )
        first = self._plan.tables.get("page", self._plan.paths[-1])
        if "page" in self._plan.tables:
            fit.check(path, first, is_whole=self._is_whole)

    def _read_hidden(self, path: Path) -> None:
        """Keep the pages of hidden categories."""
        for batch in self._sql(path, ("pp_page", "pp_propname")):
            is_hidden = pc.equal(batch["pp_propname"].cast(pa.binary()), b"hiddencat")
            self._write("hidden", page_id=batch["pp_page"].filter(is_hidden))

    def _read_english(self, path: Path) -> None:
        """Keep the English names of categories and templates."""
        for batch in self._sql(path, ("ll_from", "ll_lang", "ll_title")):
            is_english = pc.equal(batch["ll_lang"].cast(pa.binary()), b"en")
            rows = batch.filter(pc.fill_null(is_english, False))
            flags = self._pages.flags(_ints(rows["ll_from"]))
            rows = rows.filter(_mask((flags & (_CATEGORY | _TEMPLATE)) != 0))
            rows, titles = text_column(rows, "ll_title", self._tally)
            self._write("english", page_id=rows["ll_from"], english=titles)


def _is_alike(batch: pa.RecordBatch, flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Tell which rows of links say of their page's namespace what the page table does."""
    if "cl_type" in batch.schema.names:
        is_category = pc.equal(batch["cl_type"].cast(pa.binary()), b"subcat")
        in_table = pc.fill_null(is_category, False).to_numpy(zero_copy_only=False)
        return np.asarray(in_table == ((flags & _CATEGORY) != 0))
    if "tl_from_namespace" in batch.schema.names:
        in_table = _ints(batch["tl_from_namespace"]) == 0
        return np.asarray(in_table == ((flags & _ARTICLE) != 0))
    return np.ones(len(flags), dtype=bool)


def _ints(column: pa.Array) -> npt.NDArray[np.int64]:
    """Give whole numbers as an array; NULL is -1."""
    filled = pc.fill_null(column.cast(pa.int64()), -1)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _is_given(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Tell where a text is neither NULL nor empty."""
    given = pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
    return np.asarray(given.to_numpy(zero_copy_only=False), bool)


def _mask(chosen: npt.NDArray[np.bool_]) -> pa.Array:
    """Give a choice of rows as Arrow has it."""
    return pa.array(chosen)


def _take(column: pa.Array, chosen: npt.NDArray[np.bool_]) -> pa.Array:
    """Keep the chosen rows of a column."""
    return column.filter(_mask(chosen))


def _underscored(title: str) -> str:
    """Spell a title as the tables do."""
    return title.replace(" ", "_")


_ENDS: Final = """
    CREATE TABLE ends AS
    SELECT page_id, any_value(title) AS title, any_value(target) AS target,
        coalesce(bool_and(is_whole_article), false) AS is_usable
    FROM redirects LEFT JOIN targets USING (page_id) GROUP BY page_id
"""
_CARRIED: Final = """
    CREATE TABLE carried AS
    SELECT DISTINCT links.kind, links.page_id,
        coalesce(nullif(links.name, ''), linktargets.name) AS name
    FROM links SEMI JOIN ends USING (page_id)
    LEFT JOIN linktargets ON links.kind = linktargets.kind
        AND links.target_id = linktargets.target_id AND nullif(links.name, '') IS NULL
    WHERE coalesce(nullif(links.name, ''), linktargets.name) IS NOT NULL
"""
_KNOWN: Final = """
    SELECT kind, name, any_value(english) AS english,
        coalesce(bool_or(hidden.page_id IS NOT NULL), false) AS is_hidden
    FROM (SELECT DISTINCT kind, name FROM carried)
    LEFT JOIN names USING (kind, name) LEFT JOIN english USING (page_id)
    LEFT JOIN hidden USING (page_id)
    GROUP BY kind, name ORDER BY kind, name
"""
_MAPPING: Final = (
    *("kind", "name", "is_hidden", "is_shell"),
    *("english", "label", "type", "mapped_by"),
)
_COUNTED: Final = f"""
    WITH sorted AS (
        SELECT DISTINCT kind, page_id FROM carried JOIN mapping USING (kind, name)
        WHERE label IS NOT NULL
    ), counted AS (
        SELECT kind, name, count(*) AS n_redirects, count(*) FILTER (is_usable) AS n_usable,
            count(*) FILTER (is_usable AND sorted.page_id IS NULL) AS n_gained
        FROM carried JOIN ends USING (page_id) LEFT JOIN sorted USING (kind, page_id)
        GROUP BY kind, name
    )
    SELECT {", ".join(_MAPPING)}, n_redirects, n_usable, n_gained
    FROM counted JOIN mapping USING (kind, name) ORDER BY n_redirects DESC, kind, name
"""
_EXAMPLES_OF_NAMES: Final = f"""
    SELECT kind, name, title, target FROM carried JOIN ends USING (page_id)
    QUALIFY row_number() OVER (PARTITION BY kind, name
        ORDER BY is_usable DESC, (page_id * 2654435761) % 4294967296, page_id) <= {_EXAMPLES}
    ORDER BY kind, name, is_usable DESC, (page_id * 2654435761) % 4294967296, page_id
"""
_LABELS: Final = """
    SELECT kind, label, any_value(type) AS type, count(DISTINCT page_id) AS n_redirects,
        count(DISTINCT page_id) FILTER (is_usable) AS n_usable
    FROM carried JOIN mapping USING (kind, name) JOIN ends USING (page_id)
    WHERE label IS NOT NULL GROUP BY kind, label ORDER BY kind, n_usable DESC, label
"""
_OF_KIND: Final = """
    SELECT count(DISTINCT name) AS n_names,
        count(DISTINCT page_id) FILTER (is_usable) AS n_carrying,
        count(DISTINCT page_id) FILTER (is_usable AND label IS NOT NULL) AS n_mapped
    FROM carried JOIN mapping USING (kind, name) JOIN ends USING (page_id) WHERE kind = ?
"""


class _Counter:
    """Counts what was staged."""

    def __init__(
        self, plan: InventoryPlan, connection: "duckdb.DuckDBPyConnection", notes: Sequence[str]
    ) -> None:
        self._plan = plan
        self._connection = connection
        self._notes = [*plan.notes, *notes]

    def inventory(self) -> RedirectInventory:
        """Count."""
        connection = self._connection
        connection.execute(_ENDS)
        [(n_redirects, n_usable)] = connection.execute(
            "SELECT count(*), count(*) FILTER (is_usable) FROM ends"
        ).fetchall()
        connection.execute(_CARRIED)
        self._check_names()
        self._map_names()
        return RedirectInventory(
            plan=self._plan,
            n_redirects=n_redirects,
            n_usable=n_usable,
            kinds=self._kinds(n_usable),
            names=self._counted(n_redirects),
            labels=connection.execute(_LABELS).df(),
            notes=tuple(self._notes),
        )

    def _check_names(self) -> None:
        """Refuse a table of numbers to names that does not fit the links."""
        for kind, source in self._plan.sources.items():
            [(n_links,)] = self._connection.execute(
                "SELECT count(*) FROM links SEMI JOIN ends USING (page_id) WHERE kind = ?", [kind]
            ).fetchall()
            [(n_named,)] = self._connection.execute(
                "SELECT count(*) FROM carried WHERE kind = ?", [kind]
            ).fetchall()
            # A table of templates names pages of other namespaces too.
            least = n_links * _LEAST_KNOWN if kind == "category" else min(n_links, 1)
            if n_named < least:
                raise DataError(
                    f"linktarget names {n_named:,} of the {n_links:,} links of redirects in "
                    f"{source}, so the two are of different wikis or dates; give tables of one"
                )
            if kind == "category" and n_named < n_links:
                self._notes.append(
                    f"{n_links - n_named:,} links of redirects in {source} have no name or stand "
                    "there twice"
                )

    def _map_names(self) -> None:
        """Find what is known of each name: hidden or not, its English name, its label."""
        has_props = {"page", "page_props"} <= self._plan.tables.keys()
        columns: dict[str, list[Any]] = {name: [] for name in _MAPPING}
        for kind, name, english, is_hidden in self._connection.execute(_KNOWN).fetchall():
            label, by = _label(self._plan.config, kind, name, english)
            is_known = has_props and kind == "category"
            is_shell = kind == "template" and template_key(name) in _SHELLS
            row = (kind, name, is_hidden if is_known else None, is_shell, english, label)
            for key, value in zip(
                _MAPPING, (*row, label and CATEGORIES[label].type, by), strict=True
            ):
                columns[key].append(value)
        self._connection.register("mapping", pa.table(columns, schema=_mapping_schema()))

    def _counted(self, n_redirects: int) -> pd.DataFrame:
        """Count redirects by name, with examples."""
        examples: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
        for kind, name, title, target in self._connection.execute(_EXAMPLES_OF_NAMES).fetchall():
            examples.setdefault((kind, name), []).append((title, target))
        counts = ("n_redirects", "n_usable", "n_gained")
        rows = [
            {
                **dict(zip((*_MAPPING, *counts), row, strict=True)),
                "share": row[len(_MAPPING)] / n_redirects,
                "examples": tuple(examples.get((row[0], row[1]), ())),
            }
            for row in self._connection.execute(_COUNTED).fetchall()
        ]
        columns = (*_MAPPING[:2], *counts, "share", *_MAPPING[2:], "examples")
        made = {name: [row[name] for row in rows] for name in columns}
        return pd.DataFrame(
            {
                name: pd.Series(values, dtype=None if name in {*counts, "share"} else object)
                for name, values in made.items()
            }
        )

    def _kinds(self, n_usable: int) -> pd.DataFrame:
        """Sum up each kind."""
        rows = []
        for kind, source in self._plan.sources.items():
            [(n_names, n_carrying, n_mapped)] = self._connection.execute(
                _OF_KIND, [kind]
            ).fetchall()
            rows.append(
                {
                    "kind": kind,
                    "source": source,
                    "n_names": n_names,
                    "n_carrying": n_carrying,
                    "n_mapped": n_mapped,
                    "n_unmapped": n_carrying - n_mapped,
                    "n_untagged": n_usable - n_carrying,
                }
            )
        return pd.DataFrame(rows)


def _mapping_schema() -> pa.Schema:
    """Return the schema of what is known of names."""
    flags = {"is_hidden", "is_shell"}
    return pa.schema([(name, pa.bool_() if name in flags else pa.string()) for name in _MAPPING])


def _label(
    config: WikiConfig, kind: str, name: str, english: str | None
) -> tuple[str | None, str | None]:
    """Find the label of a category or template, and what tells it."""
    own = config.categories.get(name) if kind == "category" else None
    if kind == "template":
        own = config.templates.get(template_key(name))
    if own is not None:
        return own, "configuration"
    if english is None:
        return None, None
    if kind == "category":
        category = parse_category(english)
        return (category.label, "interlanguage link") if category else (None, None)
    label = ENWIKI_TABLE.get(template_key(english.partition(":")[2] or english))
    return (label, "interlanguage link") if label else (None, None)
