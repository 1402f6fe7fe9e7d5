import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from surface_consistency_build.counting import SurfaceTable, surfaces

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.schemas import Entity
from surface_consistency.studies.redirectqa.instances import entity_id, instance_rows
from tests.surface_consistency_build.made_records import fact_questions

ROWS = [
    ("Q90", " Paris ", "canonical"),
    ("Q90", "City\u3000of  Light", "redirect"),
    ("Q830149", "Paris", "canonical"),
    ("Q90", "Paris", "canonical"),
    ("Q36153", "Beyonce\u0301", "canonical"),
]


def test_names_are_stripped_collapsed_and_composed():
    table = SurfaceTable.from_records(ROWS)

    assert list(table.keys) == ["Paris", "City of Light", "Beyoncé"]
    assert list(table.entities) == ["Q90", "Q830149", "Q36153"]
    assert (len(table), table.n_repeated) == (4, 1)
    others = ([("Q1", "a")], [("Q2", "a")], [("Q1", "b")], [("Q1", "a", "answer")])
    assert len({SurfaceTable.from_records(rows).digest for rows in others}) == 4


def test_mappings_frames_arrow_and_files_give_the_same_table(tmp_path):
    table = SurfaceTable.from_records(ROWS)
    records = [dict(zip(("entity_id", "surface", "role"), row, strict=True)) for row in ROWS]
    table.write(tmp_path / "names.parquet")
    reordered = pa.Table.from_pylist(records).select(["role", "surface", "entity_id"])
    pq.write_table(reordered, tmp_path / "reordered.parquet")

    for other in (
        SurfaceTable.read(tmp_path / "reordered.parquet"),
        SurfaceTable.from_records(records),
        SurfaceTable.from_frame(pd.DataFrame(records)),
        SurfaceTable.from_frame(pa.Table.from_pylist(records)),
        SurfaceTable.read(tmp_path / "names.parquet"),
    ):
        assert other.digest == table.digest
        assert other.to_arrow().to_pylist() == table.to_arrow().to_pylist()


def test_tables_do_not_depend_on_the_number_of_chunks(monkeypatch):
    rows = [(f"Q{i % 50}", f"name {i % 80}") for i in range(300)]
    frame = pd.DataFrame(rows, columns=["entity_id", "surface"])
    whole = SurfaceTable.from_records(rows)
    monkeypatch.setattr(surfaces, "_CHUNK", 7)

    in_chunks = SurfaceTable.from_frame(frame)

    assert in_chunks.digest == whole.digest
    assert in_chunks.n_repeated == whole.n_repeated == 300 - len(set(rows))
    offsets, entities = in_chunks.owners
    of_first = {in_chunks.entities[n] for n in entities[offsets[0] : offsets[1]]}
    assert of_first == {entity for entity, name in rows if name == "name 0"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no names to count"),
        ([("Q1", "a"), ("Q1", " \n")], "row 2: the surface of 'Q1' is empty"),
        ([("Q1", None)], "row 1: surface must be a text, got None"),
        ([("", "a")], "row 1: entity_id must be a text, got ''"),
        ([("Q1", "a", "name")], "row 1: role must be one of canonical, redirect"),
        ([("Q1", "a\x00b")], "contains a control character or a lone surrogate"),
        ([("Q1", "a\ud800")], "contains a control character or a lone surrogate"),
        ([("Q\ud800", "a")], r"row 1: 'Q\\ud800' contains a lone surrogate; correct or omit it"),
    ],
)
def test_invalid_rows_are_rejected(rows, message):
    with pytest.raises(DataError, match=message):
        SurfaceTable.from_records(rows)


def test_missing_columns_and_files_raise_an_error(tmp_path):
    with pytest.raises(ColumnNotFoundError, match="row 1 lacks surface; it has entity_id"):
        SurfaceTable.from_records([{"entity_id": "Q1"}])
    with pytest.raises(ColumnNotFoundError, match="lacks the column surface; it has entity_id"):
        SurfaceTable.from_frame(pd.DataFrame({"entity_id": ["Q1"]}))
    with pytest.raises(SourceNotFoundError, match=r"table of names .* not found"):
        SurfaceTable.read(tmp_path / "none.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match=r"broken\.parquet: cannot be read as Parquet"):
        SurfaceTable.read(tmp_path / "broken.parquet")


def test_unsafe_names_are_flagged():
    names = ["up", "The Beatles", "Beatles", "Paris", "Washington, D.C.", "!!!", "東京都", "東京"]
    table = SurfaceTable.from_records([("Q1", name) for name in names] + [("Q2", "Paris")])

    assert list(table.keys) == names
    assert list(map(" ".join, table.diagnose()["flags"])) == [
        *("single_token short lower_case", "", "single_token inside_longer", "shared single_token"),
        *("punctuation_end", "single_token no_letter punctuation_end", "single_token"),
        "single_token short inside_longer",
    ]


def test_table_and_instances_of_questions_contain_all_names():
    given = {"aliases": ("Little Stevie",), "object": "soul", "answers": ("soul", "soul music")}
    names = ("Stevie Wonder", "Little  Stevie")
    questions = fact_questions(1, names, **given)
    questions += fact_questions(1, names[:1], template="paraphrase", **given)

    table, rows = SurfaceTable.from_questions(questions), instance_rows(questions)

    roles = {(r["entity_id"], r["surface"], r["role"]) for r in table.to_arrow().to_pylist()}
    assert roles == {
        *(("Q1", "Stevie Wonder", role) for role in ("canonical", "alias")),
        *(("Q1", "Little Stevie", role) for role in ("alias", "redirect")),
        *(("name:soul", answer, "answer") for answer in ("soul", "soul music")),
    }
    assert entity_id(Entity(id=None, name="soul")) == "name:soul"
    assert rows["surface_id"].tolist() == ["f1|Stevie Wonder", "f1|Little Stevie"]
    assert rows["is_canonical"].tolist() == [True, False]


def test_a_saved_table_is_opened_unchanged(tmp_path):
    table = SurfaceTable.from_records(
        [("Q90", "Paris", "canonical"), ("Q1", "Zoë"), ("Q1", "Paris")]
    )
    table.save(tmp_path)

    opened = SurfaceTable.open(tmp_path)

    assert opened.digest == table.digest
    assert opened.to_arrow().equals(table.to_arrow())
    assert not opened.keys.buffer.flags.writeable
    with pytest.raises(DataError, match=r"names\.arrow cannot be read"):
        SurfaceTable.open(tmp_path / "elsewhere")
