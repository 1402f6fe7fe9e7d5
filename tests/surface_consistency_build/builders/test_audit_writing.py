import pytest
from hypothesis import given, strategies as st
from surface_consistency_build.builders.audit_databases.databases import (
    build_audit_databases,
    write_audit_prompts,
    write_database,
)
from surface_consistency_build.builders.audit_databases.fact_tables import (
    DOMAINS,
    FactTable,
    load_fact_table,
)
from surface_consistency_build.builders.audit_databases.styles import AUDIT_STYLES, style_writers
from surface_consistency_build.builders.audit_databases.topologies import (
    TOPOLOGIES,
    build_topology,
    make_database,
)

from surface_consistency.errors import DataError, DataWarning, RecordError
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit import conditions, study
from surface_consistency.studies.audit.files import read_audit_prompts, read_database
from surface_consistency.studies.audit.retrieval import (
    alias_closures,
    closure_counts,
    verify_closures,
)
from surface_consistency.studies.audit.retrieval.verification import database_coverage
from tests.made_data import published  # noqa: F401 - fixtures


def test_bundled_sample_equals_the_build(tmp_path):
    build_audit_databases(tmp_path, domains=["countries"], styles=style_writers())

    made, kept = (
        {file.relative_to(root): file.read_bytes() for file in root.rglob("*.json*")}
        for root in (tmp_path, study._SAMPLE)
    )
    assert made == kept


def test_styles_of_the_study_have_the_order_of_the_builder():
    assert conditions.STYLES == AUDIT_STYLES


def test_build_writes_the_published_layout(published, tmp_path):
    """Twelve databases, 72 prompt files and 11,628 prompts, compared file by file."""
    made = build_audit_databases(tmp_path, styles=style_writers())

    files = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.json*")}
    root = published["countries/base"][0].parents[1]
    assert files == {file.relative_to(root).as_posix() for file in root.rglob("*.json*")}
    assert sum(item.n_facts * len(item.prompt_paths) for item in made) == 11_628


def test_all_topologies_can_be_built_and_read(tmp_path):
    made = build_audit_databases(tmp_path, topologies=TOPOLOGIES, styles=style_writers(["cloze"]))

    assert len(made) == 18
    for item in made:
        database = read_database(item.path)
        fit = database_coverage(database, read_audit_prompts(item.prompt_paths[0]))
        assert fit["n_missing"] == 0
        assert (len(database), fit["n_prompts"]) == (item.n_triplets, item.n_facts)


def test_build_is_deterministic_for_custom_tables(tmp_path, rivers):
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        options = {"topologies": TOPOLOGIES, "styles": style_writers(), "seed": 3}
        build_audit_databases(folder, domains=[rivers], **options)
        made.append({path.name: path.read_bytes() for path in folder.rglob("*.json*")})

    assert made[0] == made[1]
    assert len(list((tmp_path / "one").rglob("*.jsonl"))) == 6 * len(AUDIT_STYLES)


def test_build_warns_if_alias_equals_base(tmp_path):
    table = FactTable(name="bare", facts=(Triplet("Rhine", "Mouth", "North Sea"),))

    with pytest.warns(DataWarning, match="is identical to base"):
        made = build_audit_databases(tmp_path, domains=[table], topologies=["base", "alias"])

    base, alias = (list(read_database(item.path)) for item in made)
    assert list(base) == list(alias)


@given(st.sets(st.tuples(*[st.text(st.characters(codec="utf-8"), min_size=1)] * 3), min_size=1))
def test_written_databases_are_read_back_unchanged(tmp_path_factory, parts):
    entries = [Triplet(*part) for part in sorted(parts) if all(map(str.strip, part))]
    if not entries:
        return
    file = tmp_path_factory.mktemp("round") / "database.json"
    database = make_database(entries)

    write_database(file, database)

    assert list(read_database(file)) == entries


def test_published_files_are_written_back_unchanged(published, tmp_path):
    """12 databases and 78 files of prompts with 12,228 rows."""
    n_files = n_prompts = 0
    for name, (database, folder) in published.items():
        if name != "released":
            write_database(tmp_path / "copy.json", read_database(database))
            assert (tmp_path / "copy.json").read_bytes() == database.read_bytes()
        for file in sorted(folder.glob("*.jsonl")):
            n_prompts += write_audit_prompts(tmp_path / "copy.jsonl", read_audit_prompts(file))
            assert (tmp_path / "copy.jsonl").read_bytes() == file.read_bytes()
            n_files += 1

    assert (n_files, n_prompts) == (78, 12_228)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_facts_of_built_databases_are_deleted_completely(domain, topology):
    made = build_topology(load_fact_table(domain), topology)

    closures = alias_closures(made.database, made.targets)
    verified = verify_closures(made.database, made.targets, closures)

    counts = closure_counts(verified)
    assert (counts["n_incomplete"], counts["n_absent"]) == (0, 0)
    if domain == "countries" and topology in ("noise", "paraphrase"):
        # Paraphrases are deleted with their fact; decoys without a declared alias survive.
        row = verified.set_index(["subject", "relation"]).loc[("Japan", "Capital")]
        counts_of_row = (row["n_deleted"], row["n_same_object"])
        assert counts_of_row == {"noise": (1, 2), "paraphrase": (3, 0)}[topology]


def test_invalid_databases_are_rejected(tmp_path, rivers):
    with pytest.raises(ValueError, match="domains must have distinct names"):
        build_audit_databases(tmp_path, domains=[rivers, rivers])
    with pytest.raises(ValueError, match="topology must be one of"):
        build_audit_databases(tmp_path, domains=[rivers], topologies=["star"])
    with pytest.raises(DataError, match="triplet 1 repeats triplet 0"):
        make_database([Triplet("a", "b", "c")] * 2)
    given = {"prompt_id": 3, "fact_id": 7, "relation": "Capital", "gold_object": "Ankara"}
    nameless = AuditPrompt(**given, subject="Türkiye", prompt_text="?", subject_aliases=(" ",))
    with pytest.raises(RecordError, match="prompt_id 3 has an empty name in subject_aliases"):
        write_audit_prompts(tmp_path / "p.jsonl", [nameless])
    assert list(tmp_path.iterdir()) == []
