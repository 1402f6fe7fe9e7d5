"""Tasks of a run: count names, with or without pairs of entities, or n-grams."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, TypeAdapter

from surface_consistency.errors import DataError, MissingDependencyError, SourceNotFoundError
from surface_consistency.plugins import Plugins
from surface_consistency.reading import shown, within
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.runs.files import write_json, write_parquet
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.counting import tables
from surface_consistency_build.counting.boundaries import BoundaryRule
from surface_consistency_build.counting.counter import Counts, SurfaceCounter
from surface_consistency_build.counting.finder import Hits, Segmenter
from surface_consistency_build.counting.ngrams import NgramCounter
from surface_consistency_build.counting.pairs import Occurrences, PairCounter, PairCounts
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.texts import Case, PackedTexts

if TYPE_CHECKING:
    import pandas as pd

State = Mapping[str, npt.NDArray[Any]]
"""The counts of a shard, by name."""

_Counts = TypeVar("_Counts", Counts, PairCounts)

_SEGMENTERS: Final = Plugins("surface_consistency.segmenters", "segmenter")


def _read_json(path: Path, kind: Any) -> Any:  # noqa: ANN401
    """Read a file of a run, whose content has the given type."""
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except ValueError as error:
        raise DataError(
            f"{path} is damaged ({shown(str(error).partition(chr(10))[0])}); count again in a new "
            "folder"
        ) from error


class NameSettings(Settings):
    """Settings for counting names."""

    case: Case = "exact"
    """Distinguish upper and lower case in names (exact), or ignore it (fold)."""

    boundary: BoundaryRule = "word"
    """Rule for the characters next to a name: word for scripts with spaces; longest or script also
    for Chinese, Japanese, Thai, Lao, Burmese and Khmer; substring; or segmented."""

    segmenter: str | None = None
    """Function module:attribute from a text to its words, for --boundary segmented."""

    folded: bool = False
    """Also count occurrences without regard to case, which takes twice as long."""


class PairSettings(Settings):
    """Settings for counting pairs."""

    occurrences: Occurrences = "longest"
    """Occurrences that name an entity: those outside longer names (longest), or all (bounded)."""


class NgramSettings(Settings):
    """Settings of n-grams."""

    n: int = Field(default=7, ge=1)
    """Number of tokens of an n-gram."""

    tokenizer: str | None = None
    """File tokenizer.json of the model, or a folder with this file; by default texts are split at
    white space."""


class ShardCounter(Protocol):
    """Counts the documents of a shard."""

    def feed(self, texts: PackedTexts) -> None:
        """Count more documents."""
        ...

    def state(self) -> State:
        """Return the counts."""
        ...


class NameCounter:
    """The counters of a name task, which count the same documents."""

    def __init__(self, task: "NameTask") -> None:
        names = task.settings
        segmenter: Segmenter | None = (
            None if names.segmenter is None else _SEGMENTERS.load(names.segmenter)
        )
        options: dict[str, Any] = names.model_dump(include={"case", "boundary"})
        options["segmenter"] = segmenter
        self.pairs: PairCounter | None = None
        if task.pairs:
            together = task.pair_settings.model_dump()
            self.pairs = PairCounter(task.table, task.pairs, **together, **options)
            self.surfaces = self.pairs.surfaces
        else:
            self.surfaces = SurfaceCounter(task.table, **options)
        self.folded: SurfaceCounter | None = None
        if names.folded:
            self.folded = SurfaceCounter(task.table, **(options | {"case": "fold"}))

    def sibling(self) -> "NameCounter":
        """Return counters with zero counts that use the tables of these."""
        other = copy(self)
        other.pairs = None if self.pairs is None else self.pairs.sibling()
        other.surfaces = self.surfaces.sibling() if other.pairs is None else other.pairs.surfaces
        other.folded = None if self.folded is None else self.folded.sibling()
        return other

    def feed(self, texts: PackedTexts) -> None:
        """Count more documents."""
        self.locate(texts)

    def state(self) -> State:
        """Return the counts."""
        state = _columns(self.surfaces.result())
        if self.folded is not None:
            state["n_folded"] = self.folded.result().n_bounded
        if self.pairs is not None:
            state |= _columns(self.pairs.result())
        return state

    def locate(self, texts: PackedTexts) -> tuple[PackedTexts, Hits]:
        """Count more documents, and return the positions of names."""
        if self.folded is not None:
            self.folded.feed(texts)
        if self.pairs is not None:
            return self.pairs.locate(texts)
        return self.surfaces.locate(texts)


@dataclass(eq=False)
class NameTask:
    """Task of counting names of entities, and pairs of entities if there are any."""

    table: SurfaceTable
    """The names."""

    settings: NameSettings = field(default_factory=NameSettings)
    """Settings for counting names."""

    pairs: tuple[tuple[str, str], ...] = ()
    """(subject id, object id); empty to count only names."""

    pair_settings: PairSettings = field(default_factory=PairSettings)
    """Settings for counting pairs."""

    instances: "pd.DataFrame | None" = None
    """Rows of `instance_rows`, for the table of instances."""

    @property
    def kind(self) -> str:
        """Name of the kind of run."""
        return "pairs" if self.pairs else "surfaces"

    @classmethod
    def load(cls, folder: Path, described: Mapping[str, Any]) -> "NameTask":
        """Read the files of `save`.

        Args:
            folder: Folder of the run.
            described: Result of `describe`.

        Returns:
            The task.
        """
        inputs = folder / "inputs"
        place, instances = within(inputs, "instances.parquet"), None
        if place.is_file():
            with open_parquet(place) as file:
                instances = file.read().to_pandas()
        pairs = within(inputs, "pairs.json")
        return cls(
            SurfaceTable.open(inputs),
            NameSettings.model_validate(described["names"]),
            tuple(map(tuple, _read_json(pairs, list[tuple[str, str]]))) if pairs.is_file() else (),
            PairSettings.model_validate(described.get("together", {})),
            instances,
        )

    def describe(self) -> dict[str, Any]:
        """Return settings and digests of the task, as JSON."""
        described: dict[str, Any] = {
            "names": self.settings.model_dump(mode="json"),
            "table": self.table.digest,
        }
        if self.pairs:
            described["together"] = self.pair_settings.model_dump(mode="json")
            described["pairs"] = _digest(sorted(self.pairs))
        if self.instances is not None:
            described["instances"] = _digest(self.instances.astype(str).to_numpy().tolist())
        return described

    def save(self, folder: Path) -> None:
        """Write the task to the folder of the run."""
        inputs = folder / "inputs"
        inputs.mkdir(exist_ok=True)
        self.table.save(inputs)
        # A segmenter is loaded when it is used.
        if self.settings.segmenter is None:
            built = self.name_counter()
            for counter in (built.surfaces, built.folded):
                if counter is not None:
                    counter.save(inputs)
        if self.pairs:
            write_json(inputs / "pairs.json", self.pairs, indent=None)
        if self.instances is not None:
            write_parquet(inputs / "instances.parquet", self.instances)

    def counter(self) -> ShardCounter:
        """Make a counter with zero counts; tables that are slow to build are built once."""
        return self.name_counter()

    def name_counter(self) -> NameCounter:
        """Make a counter of the names with zero counts."""
        return self._built.sibling()

    @cached_property
    def _built(self) -> NameCounter:
        """Counters of the names, whose tables all other counters use."""
        return NameCounter(self)

    def mentions(self, counts: Counts, totals: State) -> tables.MentionCounts | None:
        """Return the linked mentions; None if only names are counted."""
        return None

    def write(self, folder: Path, totals: State) -> dict[str, Any]:
        """Write the tables of the summed states of all shards, and return the numbers counted."""
        counts = _counts_from_totals(Counts, totals)
        pairs: pa.Table | None = None
        if self.pairs:
            together = _counts_from_totals(PairCounts, totals)
            pairs = tables.pair_table(self.pairs, together)
            write_parquet(folder / "pairs.parquet", pairs)
        linked = self.mentions(counts, totals)
        n_folded = totals.get("n_folded")
        names = tables.surface_table(self.table, counts, n_folded=n_folded, mentions=linked)
        write_parquet(folder / "surfaces.parquet", names)
        entities = tables.entity_table(self.table, counts, mentions=linked)
        write_parquet(folder / "entities.parquet", entities)
        if self.instances is not None:
            rows = tables.instance_table(self.instances, self.table, counts, pairs, mentions=linked)
            write_parquet(folder / "instances.parquet", rows)
        return {
            "n_names": self.table.n_keys,
            "n_names_seen": int((counts.n_bounded > 0).sum()),
            "n_bounded": int(counts.n_bounded.sum()),
            "n_longest": int(counts.n_longest.sum()),
        }


@dataclass(eq=False)
class NgramTask:
    """Task of counting the n-grams of test instances."""

    instances: Mapping[str, str]
    """Texts by the id of their instance."""

    settings: NgramSettings = field(default_factory=NgramSettings)
    """Settings of n-grams."""

    @property
    def kind(self) -> str:
        """Name of the kind of run."""
        return "ngrams"

    @classmethod
    def load(cls, folder: Path, described: Mapping[str, Any]) -> "NgramTask":
        """Read the files of `save`; see `NameTask.load`."""
        texts = _read_json(within(folder / "inputs", "instances.json"), dict[str, Any])
        return cls(texts, NgramSettings.model_validate(described["ngrams"]))

    def describe(self) -> dict[str, Any]:
        """Return settings and digests of the task, as JSON."""
        described: dict[str, Any] = {
            "ngrams": self.settings.model_dump(mode="json"),
            "instances": _digest(list(self.instances.items())),
        }
        if self.settings.tokenizer is not None:
            file = _tokenizer_file(self.settings.tokenizer)
            described["tokenizer"] = hashlib.sha256(file.read_bytes()).hexdigest()
        return described

    def save(self, folder: Path) -> None:
        """Write the task to the folder of the run."""
        (folder / "inputs").mkdir(exist_ok=True)
        write_json(folder / "inputs" / "instances.json", dict(self.instances), indent=None)

    def counter(self) -> NgramCounter:
        """Make a counter with zero counts."""
        name = self.settings.tokenizer
        tokenize = None if name is None else ModelTokenizer(name)
        return NgramCounter(self.instances.values(), n=self.settings.n, tokenize=tokenize)

    def write(self, folder: Path, totals: State) -> dict[str, Any]:
        """Write the table of the summed states of all shards, and return the numbers counted."""
        counter = self.counter()
        counter.add(totals["counts"])
        counts = counter.result()
        table = pa.table(
            {
                "instance_id": pa.array(list(self.instances), pa.string()),
                "n_ngrams": pa.array([row.size for row in counts], pa.int64()),
                "counts": pa.array([row.tolist() for row in counts], pa.list_(pa.int64())),
            }
        )
        write_parquet(folder / "ngrams.parquet", table)
        return {
            "n_instances": len(counts),
            "n_ngrams": int(counter.counts.size),
            "n_ngrams_seen": int((counter.counts > 0).sum()),
        }


CountTask = NameTask | NgramTask
"""Task of a run."""


class ModelTokenizer:
    """Token ids of a model's tokenizer, without special tokens.

    Args:
        place: A file tokenizer.json, or a folder with one.

    Raises:
        SourceNotFoundError: If the file does not exist.
        MissingDependencyError: If `tokenizers` is not installed.
        DataError: If the file is not a tokenizer.
    """

    def __init__(self, place: str) -> None:
        file = _tokenizer_file(place)
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingDependencyError("--tokenizer", "tokenizers", "inference") from error
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:
            # The library raises plain Exceptions.
            raise DataError(f"{file} is not a tokenizer.json ({error})") from error

    def __call__(self, text: str) -> Sequence[int]:
        """Split a text into the ids of its tokens."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Split many texts at once, which is faster."""
        # Without the positions of tokens, which are not used.
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]


def _tokenizer_file(place: str) -> Path:
    """Return the path of a tokenizer's file."""
    path = Path(place)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise SourceNotFoundError(f"{file} not found; give a tokenizer.json or its folder")
    return file


def _digest(value: Iterable[Any]) -> str:
    """Return the SHA-256 of JSON values."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()


def _columns(counts: Counts | PairCounts) -> dict[str, npt.NDArray[Any]]:
    """Return counts as arrays by name."""
    return {item.name: np.asarray(getattr(counts, item.name)) for item in fields(counts)}


def _counts_from_totals(kind: type[_Counts], totals: State) -> _Counts:
    """Return counts from the totals of a run, single numbers as scalars."""
    values: dict[str, Any] = {
        name: array if array.ndim else int(array)
        for name, array in ((item.name, totals[item.name]) for item in fields(kind))
    }
    return kind(**values)
