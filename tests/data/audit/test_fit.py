import warnings
from itertools import product

import pytest

from surface_consistency.data.audit import (
    build_topology,
    check_prompts_fit,
    load_fact_table,
    make_database,
    read_audit_prompts,
    read_database,
)
from surface_consistency.errors import ContaminationWarning, DataError


def test_published_prompts_fit_their_databases(published):
    """Every one of the 12,228 is an entry of its database, word for word."""
    for file, folder in published.values():
        database = read_database(file)
        for prompts in map(read_audit_prompts, sorted(folder.glob("*.jsonl"))):
            fit = check_prompts_fit(database, prompts)
            assert fit.n_verbatim == fit.n_prompts


def test_prompts_of_another_domain_are_rejected(published):
    for (name, (file, _)), (other, (_, folder)) in product(published.items(), repeat=2):
        if name.split("/")[0] != other.split("/")[0]:
            prompts = read_audit_prompts(folder / "prompts_cloze.jsonl")
            with pytest.raises(DataError, match="they belong to another database"):
                check_prompts_fit(read_database(file), prompts)


def test_some_missing_facts_warn():
    made = build_topology(load_fact_table("sports"), "base")
    database = make_database(made.database.triplets[:-3])

    with pytest.warns(ContaminationWarning, match="3 of 100 prompts ask for facts"):
        fit = check_prompts_fit(database, made.targets)

    assert fit.missing == (97, 98, 99)
    assert fit.missing_share == 0.03
    with pytest.raises(DataError, match="prompt_id 97, 98, 99"):
        check_prompts_fit(database, made.targets, max_missing=0.02)


def test_alias_forms_fit():
    table = load_fact_table("countries")
    base, pointer = build_topology(table, "base"), build_topology(table, "pointer")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = check_prompts_fit(base.database, pointer.targets)

    assert (fit.n_verbatim, fit.n_by_alias) == (0, 200)


def test_no_prompts_are_rejected():
    with pytest.raises(ValueError, match="at least one prompt"):
        check_prompts_fit(make_database([]), [])
