"""A small table of facts with decoys, its databases, and a model that looks facts up."""

import pytest

from surface_consistency.data.audit_databases import build_audit_databases
from surface_consistency.data.fact_tables import Aliases, FactTable, RelatedFact
from surface_consistency.inference.fact_store import LookupRequest
from surface_consistency.prompts.audit_styles import style_writers
from surface_consistency.retrieval import FuzzyRetriever
from surface_consistency.schemas import Generation, LookupQuery, Triplet
from surface_consistency.studies.audit import AuditSettings, Retrievers, find_cells, run_audit

STYLES = ("direct_questions", "cloze")
COUNTRIES = {
    "Arania": ("Lumo", ".aq"),
    "Beldova": ("Serrin", ".bd"),
    "Corvia": ("Tallow", ".cv"),
    "Dunmark": ("Ostby", ".dk"),
    "Esteria": ("Quill", ".et"),
    "Fenland": ("Marsh End", ".fn"),
}
DECOYS = ("Arania", "Beldova")
SETTINGS = AuditSettings(retriever="fuzzy", threshold=0.5)


def fact_table():
    """Twelve facts with objects of their own, and a decoy beside two of them."""
    facts = [
        Triplet(name, relation, value)
        for name, values in COUNTRIES.items()
        for relation, value in zip(("Capital", "Internet TLD"), values, strict=True)
    ]
    decoys = [
        RelatedFact(
            triplet=Triplet(f"{name} State", "Capital City", COUNTRIES[name][0]),
            near=(name, "Capital"),
        )
        for name in DECOYS
    ]
    aliases = [
        Aliases(name=name, aliases=(f"Republic of {name}",), roles=("subject",))
        for name in COUNTRIES
    ]
    return FactTable(name="lands", facts=tuple(facts), aliases=tuple(aliases), noise=tuple(decoys))


class Asking:
    """A model that looks its fact up and says what it is given, or what it knows by itself.

    Args:
        source: The store.
        known: Values that it knows, by subject and relation.
        dies_after: Prompts after which it is killed; None for never.
    """

    name = "asking"

    def __init__(self, source, known=(), dies_after=None):
        self.source = source
        self.known = dict(known)
        self.left = dies_after
        self.asked = []

    def fingerprint(self):
        return {"runner": self.name, "source": self.source.fingerprint()}

    def generate(self, prompts, params):
        for prompt in prompts:
            if self.left is not None and len(self.asked) >= self.left:
                raise KeyboardInterrupt
            self.asked.append(prompt.id)
            yield self._answer(prompt)

    def _answer(self, prompt):
        fact = self.source.query(prompt)
        knows = self.known.get((fact.entity, fact.relation))
        if self.source.mode(prompt) != "answer":
            return Generation(prompt_id=prompt.id, text=f"{knows or 'unknown'}.", lookups=())
        query = LookupQuery(entity=fact.entity, relation=fact.relation)
        (lookup,) = self.source.look_up([LookupRequest(prompt, query)])
        value = lookup.value or "unknown"
        text = (
            f"<|db_entity|> {query.entity}<|db_relationship|> {query.relation}<|db_return|> "
            f"{value}<|db_end|>{'' if lookup.value or not knows else f' {knows}'}."
        )
        return Generation(prompt_id=prompt.id, text=text, lookups=(lookup,))


@pytest.fixture
def table():
    return fact_table()


@pytest.fixture
def databases(table, tmp_path):
    """A folder of the base and noise databases."""
    folder = tmp_path / "databases"
    build_audit_databases(
        folder, domains=[table], topologies=("base", "noise"), styles=style_writers(STYLES)
    )
    return folder


@pytest.fixture
def cells(databases):
    return find_cells(databases)


@pytest.fixture
def asking():
    """The class of the model."""
    return Asking


@pytest.fixture
def fuzzy():
    """Retrievers that compare letters."""
    return Retrievers(make=lambda database: FuzzyRetriever(database.triplets))


@pytest.fixture
def audit(cells, fuzzy, tmp_path):
    """Runs an audit of the cells."""

    def run(name="run", *, known=(), chosen=None, retrievers=None, **options):
        return run_audit(
            cells if chosen is None else chosen,
            lambda source: Asking(source, known),
            tmp_path / name,
            retrievers=retrievers or fuzzy,
            progress=False,
            **{"model": "asking", "settings": SETTINGS} | options,
        )

    return run
