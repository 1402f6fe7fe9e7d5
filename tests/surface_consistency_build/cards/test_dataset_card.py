"""The card: its header is valid on the hub, and its numbers are those of the rows."""

from types import SimpleNamespace

import datasets
import pytest
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard
from surface_consistency_build.cards import dataset_card
from surface_consistency_build.cards.build_records import RowCounts
from surface_consistency_build.cards.dataset_card import (
    CardSubset,
    markdown_table,
    redirectqa_card,
    render_card,
)

NO_ROWS = {"features": datasets.Features(), "n_bytes": 0, "digest": ""}


def card_of(built_rows, **options):
    counts = RowCounts()
    list(counts.watch("test", built_rows))
    subset = CardSubset(
        name="v1.0.0",
        counts=counts,
        data_files={"test": "v1.0.0/test-*.parquet"},
        features=datasets.Features({"triplet_id": datasets.Value("int64")}),
        n_bytes=12,
        digest="ab12",
        **options,
    )
    return render_card(redirectqa_card(), [subset], default="v1.0.0")


def test_header_of_the_card_is_read_by_the_hub_client(built_rows):
    card = card_of(built_rows)
    header = DatasetCard(card).data.to_dict()

    assert header["license"] == "cc-by-sa-4.0"
    assert header["language"] == ["en"]
    assert header["task_categories"] == ["question-answering"]
    assert header["size_categories"] == "n<1K"
    assert header["pretty_name"] == "RedirectQA"
    files = [{"split": "test", "path": "v1.0.0/test-*.parquet"}]
    config = {"config_name": "v1.0.0", "description": "rows ab12", "default": True}
    assert header["configs"] == [config | {"data_files": files}]
    info = DatasetInfosDict.from_dataset_card_data(DatasetCard(card).data)["v1.0.0"]
    assert info.features == {"triplet_id": datasets.Value("int64")}
    assert (info.splits["test"].num_examples, info.download_size) == (10, 12)


@pytest.mark.parametrize(
    ("n_rows", "size"),
    [(999, "n<1K"), (1_000, "1K<n<10K"), (61_120, "10K<n<100K"), (10_000_000, "n>10M")],
)
def test_size_category_of_the_card_is_that_of_all_rows(n_rows, size):
    counts = RowCounts()
    counts.rows["test"] = n_rows
    subset = CardSubset(name="a", counts=counts, data_files={"test": "a/*"}, **NO_ROWS)
    header = DatasetCard(render_card(redirectqa_card(), [subset], default="a")).data.to_dict()

    assert header["size_categories"] == size


def test_render_card_shows_counts_attrition_and_build(built_rows, manifest):
    numbers = {"rows_in": 1234, "rows_out": 1200, "removed": 34}
    line = SimpleNamespace(step="pageviews", unit="triples", reason="no views | of it", **numbers)
    meanings = {"triplet_id": "The fact."}
    card = card_of(built_rows, attrition=[line], manifest=manifest, meanings=meanings)
    lines = card.splitlines()

    assert "| test | 10 | 2 | 2 | 3 |" in lines
    assert "| Typical errors | 1 |" in lines
    assert "| `Redirects_from_pseudonyms` | Alternative names and abbreviations | 1 |" in lines
    assert "| `place_of_birth` | `P19` | 1 |" in lines
    assert "| pageviews | triples | 1,234 | 1,200 | no views `\\|` of it | 34 |" in lines
    assert "| `enwiki-20260101-page.sql.gz` | `20260101` | 1,234 | `ab12` |" in lines
    assert "| seed | 7 |" in lines
    assert "| triples | 500000 |" in lines
    assert "| `triplet_id` | `int64` | The fact. |" in lines
    assert "| paraphrase | 5 |" in lines
    for text in ("CC BY-SA 4.0", "CC0", "eprint        = {2604.21882}"):
        assert text in card


def test_redirectqa_card_states_the_licence_of_the_english_wordings():
    """The English wordings are from PopQA; those of other languages are not."""
    english, japanese = redirectqa_card(("en", "ja")), redirectqa_card(("ja",))

    assert "MIT" in english.license_notes
    assert "mallen2023trust" in english.citation
    assert "MIT" not in japanese.license_notes
    assert "mallen2023trust" not in japanese.citation


@pytest.mark.parametrize(
    ("name", "summary", "license"),
    [
        ("popqa_redirect", "The questions of PopQA, ", "cc-by-sa-4.0"),
        ("slaq", "Topics of SLAQ ", "unknown"),
        ("written_topics", "Topics that a model wrote from articles", "other"),
        ("audit", "Databases from which single facts are deleted", "mit"),
    ],
)
def test_card_of_a_data_set_describes_its_rows(name, summary, license):
    text = getattr(dataset_card, f"{name}_card")()
    assert summary in text.summary
    assert text.license == license


def test_markdown_table_keeps_cells_in_their_columns():
    table = markdown_table(("a", "b"), [("x|y\nz", 1), ("", 12345)])

    rows = ["| a | b |", "| --- | ---: |", "| `x\\|y\\nz` | 1 |", "|  | 12,345 |"]
    assert table.splitlines() == rows
