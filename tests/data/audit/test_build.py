import pytest

from surface_consistency.data.audit import (
    TOPOLOGIES,
    FactTable,
    build_audit_databases,
    check_prompts_fit,
    read_audit_prompts,
    read_database,
)
from surface_consistency.errors import ContaminationWarning
from surface_consistency.prompts.audit_styles import AUDIT_STYLES, style_writers
from surface_consistency.schemas import Triplet


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
        fit = check_prompts_fit(database, read_audit_prompts(item.prompt_paths[0]))
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

    with pytest.warns(ContaminationWarning, match="equals base"):
        made = build_audit_databases(tmp_path, domains=[table], topologies=["base", "alias"])

    base, alias = (read_database(item.path).triplets for item in made)
    assert list(base) == list(alias)
