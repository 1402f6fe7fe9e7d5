import pytest
from surface_consistency_build.builders.audit_databases.fact_tables import (
    DOMAINS,
    Aliases,
    FactTable,
    load_fact_table,
    read_fact_table,
)

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.schemas import Triplet
from surface_consistency.text import folded

FACT = Triplet("Rhine", "Mouth", "North Sea")


def write(folder, **tables):
    """Write a table's files."""
    for name, lines in tables.items():
        text = "\n".join("\t".join(line) for line in lines)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder


HEAD = ("subject", "relation", "object")
NAMED = ("name", "roles", "aliases", "relations")
NEAR = (*HEAD, "fact_subject", "fact_relation")


@pytest.mark.parametrize("domain", DOMAINS)
def test_names_are_unique_per_relation_and_per_object(domain):
    """A later registration would overwrite an earlier one and merge two answers to one
    question."""
    table = load_fact_table(domain)
    owners = {}
    for subject, relation, gold in table.facts:
        assert table.names_of("subject", subject, relation=relation)
        assert len(table.names_of("relation", relation, relation=relation)) == 2
        for name in table.forms_of("relation", relation, relation=relation):
            owners.setdefault(folded(name), set()).add(relation)
        for name in table.forms_of("object", gold, relation=relation):
            owners.setdefault((relation, folded(name)), set()).add(gold)

    assert [name for name, owned in owners.items() if len(owned) > 1] == []


def test_entries_of_one_name_are_combined():
    table = FactTable(
        name="t",
        facts=(FACT,),
        aliases=(
            Aliases(name="Rhine", aliases=("Rhein", "RHINE")),
            Aliases(name="Rhine", aliases=("Rhin", "rhein"), roles=("subject",)),
        ),
    )

    assert table.names_of("subject", "Rhine", relation="Mouth") == ("Rhein", "Rhin")
    assert table.names_of("subject", "Rhin", relation="Mouth") == ("rhein", "Rhine")


def test_aliases_can_apply_to_some_relations_only():
    table = load_fact_table("sports")

    assert table.names_of("object", "Barcelona", relation="Iconic Club") == ("Barça", "Barca")
    assert table.names_of("object", "Barcelona", relation="City") == ()


def test_table_is_read_from_files(tmp_path):
    write(
        tmp_path,
        facts=[HEAD, FACT, ("", "", "")],
        aliases=[NAMED, ("Rhine", "subject | object", "Rhein | Rhin", "")],
        noise=[NEAR, ("Rhine delta", "Lies At", "North Sea", "Rhine", "Mouth")],
    )

    assert read_fact_table(tmp_path).name == tmp_path.name
    table = read_fact_table(tmp_path, name="rivers")

    assert (table.name, table.facts, table.collision) == ("rivers", (FACT,), ())
    assert table.names_of("subject", "Rhine", relation="Mouth") == ("Rhein", "Rhin")
    assert table.noise[0].near == ("Rhine", "Mouth")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"facts": [HEAD]}, "has no facts; it needs at least one"),
        ({"facts": [HEAD, FACT, FACT]}, "occurs twice; drop one"),
        ({"facts": [("s", "r", "o"), FACT]}, "the header must be subject <tab> relation"),
        ({"facts": [HEAD, FACT[:2]]}, "2 cells under 3 columns"),
        ({"facts": [HEAD, ("Rhine", "Mouth", " ")]}, "object is empty; fill it or drop the line"),
        (
            {"facts": [HEAD, FACT], "aliases": [NAMED, ("a", "verb", "b", "")]},
            "the roles of 'a' are subject, relation, object, got 'verb'",
        ),
        (
            {"facts": [HEAD, FACT], "noise": [NEAR, ("a", "b", "c", "Elbe", "Mouth")]},
            r"no fact has subject and relation \('Elbe', 'Mouth'\)",
        ),
    ],
)
def test_invalid_files_of_tables_are_rejected(tmp_path, tables, message):
    with pytest.raises(DataError, match=message):
        read_fact_table(write(tmp_path, **tables))


LATIN = b"subject\trelation\tobject\nK\xf6ln\tRiver\tRhine\n"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda folder: read_fact_table(folder), DataError, "not UTF-8 at byte 25"),
        (lambda folder: read_fact_table(folder / "a"), SourceNotFoundError, r"facts\.tsv not"),
        (lambda _: load_fact_table("rivers"), ValueError, "domain must be one of countries, pol"),
    ],
)
def test_invalid_tables_are_rejected(tmp_path, call, error, message):
    (tmp_path / "facts.tsv").write_bytes(LATIN)
    with pytest.raises(error, match=message):
        call(tmp_path)
    with pytest.raises(DataError, match="has an empty part; fill or drop it"):
        FactTable(name="t", facts=(Triplet("a", "", "c"),))
    for name in ("", ".", "..", "../rivers", "a/b", "/rivers"):
        with pytest.raises(DataError, match="the name of a table must be a folder"):
            FactTable(name=name, facts=(FACT,))
