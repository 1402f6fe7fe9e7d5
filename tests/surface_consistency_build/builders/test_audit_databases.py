import re
from collections import Counter
from pathlib import Path

import datasets
import pytest
from surface_consistency_build import build_dataset
from surface_consistency_build.builders import common as builders
from surface_consistency_build.builders.audit_databases.audit_databases_builder import (
    AuditPromptRow,
)
from surface_consistency_build.builders.audit_databases.databases import build_audit_databases
from surface_consistency_build.builders.audit_databases.fact_tables import DOMAINS, load_fact_table
from surface_consistency_build.builders.audit_databases.styles import style_writers
from surface_consistency_build.builders.audit_databases.topologies import TOPOLOGIES, build_topology

from scripts.audit_differences.write_differences import PAGE, main
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, SourceNotFoundError

FOLDER = PAGE.parent


@pytest.fixture
def source(tmp_path):
    """A small folder of databases."""
    folder, styles = tmp_path / "source", style_writers(["cloze", "continuations"])
    build_audit_databases(folder, domains=["sports"], topologies=["base", "noise"], styles=styles)
    return folder


@pytest.fixture
def custom(data_files):
    """The published databases."""
    return data_files / "lmlm_audit" / "data" / "custom_databases"


def test_build_writes_every_prompt_and_every_triplet_once(source, tmp_path):
    build_dataset("lmlm-audit", source, tmp_path / "out")
    prompts, triplets = (
        datasets.load_dataset(str(tmp_path / "out"), name, split="test")
        for name in ("prompts", "triplets")
    )

    assert prompts.features == make_features(AuditPromptRow)
    assert set(prompts["domain"]) == {"sports"}
    assert Counter(zip(prompts["topology"], prompts["style"], strict=True)) == {
        (topology, style): n_prompts
        for topology, n_prompts in (("base", 100), ("noise", 160))
        for style in ("cloze", "continuations")
    }
    made = build_topology(load_fact_table("sports"), "noise").database
    rows = [row for row in triplets if row["topology"] == "noise"]
    assert [(row["subject"], row["relation"], row["object"]) for row in rows] == [
        tuple(entry) for entry in made
    ]


def test_committed_list_of_differences_equals_that_of_the_tables(custom, tmp_path):
    """The page is not edited manually, and every difference has a reason."""
    main([str(custom), "--out", str(tmp_path / "page.md")])

    page = (FOLDER / "DIFFERENCES.md").read_text(encoding="utf-8")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page
    assert "left out |" not in page.replace("in the place of one that is left out |", "")
    assert "other names" not in page


def test_card_states_the_sizes_of_the_databases():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")

    for domain in DOMAINS:
        cells = re.search(rf"^\| {domain} \|(.*)\|$", card, re.M)[1]
        table = load_fact_table(domain)
        made = [len(build_topology(table, name).database) for name in TOPOLOGIES]
        assert [int(cell) for cell in cells.split("|")] == made


def test_build_rejects_empty_folders_and_prompts_of_another_database(source, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceNotFoundError, match=r"empty contains no database with prompts"):
        build_dataset("lmlm-audit", tmp_path / "empty", tmp_path / "out")
    build_audit_databases(tmp_path / "other", domains=["countries"], topologies=["base"])
    (tmp_path / "other" / "countries" / "base.json").replace(source / "sports" / "base.json")
    with pytest.raises(DataError, match="they belong to another database"):
        build_dataset("lmlm-audit", source, tmp_path / "out")
    assert not list(tmp_path.rglob("*.parquet"))


def test_builder_modules_have_other_names_than_their_folders():
    """`load_dataset` rejects a folder with a script of the same name."""
    files = list(Path(builders.__file__).parent.glob("*/*.py"))
    assert files
    assert not {file.stem for file in files} & {file.parent.name for file in files}
