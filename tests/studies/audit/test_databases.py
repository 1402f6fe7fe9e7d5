import warnings
from itertools import product

import pytest

from surface_consistency.errors import DataError, DataWarning
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.databases import build_audit_databases
from surface_consistency.studies.audit.fact_tables import FactTable, load_fact_table
from surface_consistency.studies.audit.files import make_database, read_audit_prompts, read_database
from surface_consistency.studies.audit.retrieval import database_coverage
from surface_consistency.studies.audit.styles import AUDIT_STYLES, style_writers
from surface_consistency.studies.audit.topologies import TOPOLOGIES, build_topology
from tests.made_data import published  # noqa: F401 - fixtures


def test_build_writes_the_published_layout(published, tmp_path):
    """Twelve databases, 72 prompt files and 11,628 prompts, file by file where they lie."""
    made = build_audit_databases(tmp_path, styles=style_writers())

    files = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.json*")}
    root = published["countries/base"][0].parents[1]
    assert files == {file.relative_to(root).as_posix() for file in root.rglob("*.json*")}
    assert sum(item.n_facts * len(item.prompt_paths) for item in made) == 11_628


def test_built_base_database_is_the_published_file(published, tmp_path):
    build_audit_databases(tmp_path, domains=["countries"], topologies=["base"])

    built = (tmp_path / "countries" / "base.json").read_bytes()
    assert built == published["countries/base"][0].read_bytes()


def test_all_topologies_can_be_built_and_read(tmp_path):
    made = build_audit_databases(tmp_path, topologies=TOPOLOGIES, styles=style_writers(["cloze"]))

    assert len(made) == 18
    for item in made:
        database = read_database(item.path)
        fit = database_coverage(database, read_audit_prompts(item.prompt_paths[0]))
        assert fit.missing == ()
        assert (len(database.triplets), fit.n_prompts) == (item.n_triplets, item.n_facts)


def test_build_is_the_same_twice(tmp_path, rivers):
    for name in ("one", "two"):
        build_audit_databases(
            tmp_path / name, domains=[rivers], topologies=TOPOLOGIES, styles=style_writers(), seed=3
        )

    one, two = (
        {file.name: file.read_bytes() for file in (tmp_path / name).rglob("*.json*")}
        for name in ("one", "two")
    )
    assert one == two
    assert len(list((tmp_path / "one").rglob("*.jsonl"))) == 6 * len(AUDIT_STYLES)


def test_build_rejects_domains_of_one_name(tmp_path, rivers):
    with pytest.raises(ValueError, match="domains must differ in name"):
        build_audit_databases(tmp_path, domains=[rivers, rivers])


def test_build_rejects_unknown_topologies(tmp_path, rivers):
    with pytest.raises(ValueError, match="topology must be one of"):
        build_audit_databases(tmp_path, domains=[rivers], topologies=["star"])


def test_build_warns_where_alias_equals_base(tmp_path):
    table = FactTable(name="bare", facts=(Triplet("Rhine", "Mouth", "North Sea"),))

    with pytest.warns(DataWarning, match="equals base"):
        made = build_audit_databases(tmp_path, domains=[table], topologies=["base", "alias"])

    base, alias = (read_database(item.path).triplets for item in made)
    assert list(base) == list(alias)


def test_published_prompts_fit_their_databases(published):
    """Every one of the 12,228 is an entry of its database, word for word."""
    for file, folder in published.values():
        database = read_database(file)
        for prompts in map(read_audit_prompts, sorted(folder.glob("*.jsonl"))):
            fit = database_coverage(database, prompts)
            assert fit.n_verbatim == fit.n_prompts


def test_prompts_of_another_domain_are_rejected(published):
    for (name, (file, _)), (other, (_, folder)) in product(published.items(), repeat=2):
        if name.split("/")[0] != other.split("/")[0]:
            prompts = read_audit_prompts(folder / "prompts_cloze.jsonl")
            with pytest.raises(DataError, match="they belong to another database"):
                database_coverage(read_database(file), prompts)


def test_some_missing_facts_warn():
    made = build_topology(load_fact_table("sports"), "base")
    database = make_database(made.database.triplets[:-3])

    with pytest.warns(DataWarning, match="3 of 100 prompts ask for facts"):
        fit = database_coverage(database, made.targets)

    assert fit.missing == (97, 98, 99)
    assert fit.missing_share == 0.03
    with pytest.raises(DataError, match="prompt_id 97, 98, 99"):
        database_coverage(database, made.targets, max_missing=0.02)


def test_alias_forms_fit():
    table = load_fact_table("countries")
    base, pointer = build_topology(table, "base"), build_topology(table, "pointer")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = database_coverage(base.database, pointer.targets)

    assert (fit.n_verbatim, fit.n_by_alias) == (0, 200)


def test_no_prompts_are_rejected():
    with pytest.raises(ValueError, match="at least one prompt"):
        database_coverage(make_database([]), [])
