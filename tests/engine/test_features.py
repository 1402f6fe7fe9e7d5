from typing import Literal

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.features import make_features, read_parquet, to_parquet
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import (
    Entity,
    Generation,
    GenerationParams,
    Prompt,
    QuestionRealization,
    Record,
    Verdict,
)
from surface_consistency.studies.redirectqa.study import RedirectOutcome
from tests.made_data import own_caches, rows, write_lines  # noqa: F401 - fixtures

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
entities = st.builds(
    Entity,
    id=st.none() | text,
    name=text,
    aliases=st.lists(text, max_size=3).map(tuple),
    pageviews=st.none() | st.integers(0, 2**62),
)


class Everything(Record):
    """One field of each type that a column can hold."""

    text: str
    number: int
    ratio: float
    is_true: bool
    word: Literal["a", "b"]
    perhaps: float | None
    words: tuple[str, ...]
    entity: Entity | None
    entities: tuple[Entity, ...]


def test_features_of_records_have_one_column_per_field_in_order():
    for record in (Prompt, Generation, Verdict, QuestionRealization, RedirectOutcome):
        assert list(make_features(record)) == list(record.model_fields)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (dict[str, int], r"column cannot have the type dict\[str, int\]; use str, int"),
        (int | str, r"Odd\.field: a column cannot have the type int \| str"),
        (tuple[int, str], r"Odd\.field: a column cannot have the type"),
        (list[str], r"Odd\.field: a column cannot have the type"),
        (Literal[1], r"Odd\.field: a column cannot have the type"),
        (bytes, r"Odd\.field: a column cannot have the type"),
        (RunManifest, r"RunManifest\.schema_version: a column cannot have the type"),
    ],
)
def test_make_features_rejects_unsupported_types(annotation, message):
    odd = type("Odd", (Record,), {"__annotations__": {"field": annotation}, "__module__": __name__})

    with pytest.raises(TypeError, match=message):
        make_features(odd)


@given(st.lists(entities, max_size=20))
@example([])
@example([Entity(id=None, name="a", pageviews=2**40)])
def test_parquet_round_trip_is_lossless(tmp_path_factory, items):
    path = tmp_path_factory.mktemp("parquet") / "entities.parquet"

    assert to_parquet(path, items, Entity) == len(items)
    assert list(read_parquet(path, Entity)) == items
    assert pq.read_schema(path).names == ["id", "name", "aliases", "pageviews"]


def test_parquet_keeps_nested_records_and_infinite_floats(tmp_path, rows):
    questions = load_redirectqa(rows).questions
    entity = Entity(id=None, name="a", aliases=("b",))
    base = {"text": "x", "number": -1, "is_true": True, "word": "a", "words": ()}
    odd = [
        Everything(**base, ratio=np.inf, perhaps=None, entity=None, entities=()),
        Everything(**base, ratio=0.1, perhaps=-np.inf, entity=entity, entities=(entity, entity)),
    ]

    to_parquet(tmp_path / "questions.parquet", questions, QuestionRealization)
    to_parquet(tmp_path / "odd.parquet", odd, Everything)

    assert tuple(read_parquet(tmp_path / "questions.parquet", QuestionRealization)) == questions
    assert list(read_parquet(tmp_path / "odd.parquet", Everything)) == odd


def test_to_parquet_agrees_with_the_datasets_library(tmp_path, rows):
    questions = load_redirectqa(rows).questions
    path = tmp_path / "questions.parquet"
    to_parquet(path, questions, QuestionRealization)

    loaded = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))

    assert loaded.features == make_features(QuestionRealization)
    assert loaded.to_list() == [question.model_dump(mode="json") for question in questions]


def test_to_parquet_writes_a_generator_in_row_groups(tmp_path):
    path = tmp_path / "many.parquet"
    items = (Entity(id=None, name=f"n{number}") for number in range(20_000))

    assert to_parquet(path, items, Entity) == 20_000

    with pq.ParquetFile(path) as file:
        assert file.num_row_groups == 3
    names = [item.name for item in read_parquet(path, Entity)]
    assert names == [f"n{number}" for number in range(20_000)]


def test_failed_to_parquet_leaves_the_existing_file_unchanged(tmp_path):
    path = tmp_path / "entities.parquet"
    old = [Entity(id=None, name="old")]
    to_parquet(path, old, Entity)

    def failing():
        yield Entity(id=None, name="new")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        to_parquet(path, failing(), Entity)
    with pytest.raises(TypeError, match="expected Entity records, got GenerationParams"):
        to_parquet(path, [GenerationParams()], Entity)

    assert list(read_parquet(path, Entity)) == old
    assert [file.name for file in tmp_path.iterdir()] == ["entities.parquet"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": ["a", ""]}, r"rows\.parquet:2: not a Entity: field 'name': .*at least 1 char"),
        ({"name": ["a", "b"], "pageviews": ["1", "2"]}, r"rows\.parquet:1: .*'pageviews'.*'1'"),
        ({"name": ["a", "b"], "views": [1, 2]}, r"rows\.parquet:1: .*'views': Extra inputs"),
        ({"name": [b"a", b"b"]}, r"rows\.parquet:1: not a Entity: .*bytes is not JSON serializ"),
    ],
)
def test_errors_of_invalid_parquet_rows_name_the_row(columns, message, tmp_path):
    path = tmp_path / "rows.parquet"
    table = {"id": ["Q1", "Q2"], "aliases": [[], []], "pageviews": [1, 2]} | columns
    pq.write_table(pa.table(table), path)

    with pytest.raises(RecordError, match=message):
        list(read_parquet(path, Entity))


PARAMS = GenerationParams(temperature=1.0, seed=None)
VERDICT = Verdict(target_id="a", judged_by="exact on whole", prediction="b", correct=False)


@pytest.mark.parametrize(
    ("record", "column", "cell", "message"),
    [
        (PARAMS, "temperature", pa.array([np.nan]), r"\.parquet:1: .*'temperature': .*got nan"),
        (VERDICT, "correct", pa.nulls(1, pa.bool_()), r":1: .*`reason` must be given exactly if"),
    ],
)
def test_parquet_rows_that_violate_a_record_are_rejected(tmp_path, record, column, cell, message):
    path = tmp_path / "records.parquet"
    to_parquet(path, [record], type(record))
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, cell), path)

    with pytest.raises(RecordError, match=message):
        list(read_parquet(path, type(record)))


def test_read_parquet_rejects_other_formats_and_missing_files(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_text("{}")

    with pytest.raises(DataError, match=r"rows\.parquet is not a readable Parquet file"):
        list(read_parquet(path, Entity))
    with pytest.raises(
        SourceNotFoundError, match=r"file .*absent not found; it needs rows of Entity"
    ):
        list(read_parquet(tmp_path / "absent", Entity))
