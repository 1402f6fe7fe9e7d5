"""A tiny limited-memory model trained on a table, random ones, and a store in three states."""

import pytest

from surface_consistency.inference.lookup_settings import LookupSettings
from surface_consistency.schemas import Prompt
from surface_consistency.schemas.memory import AuditPrompt, Lookup
from surface_consistency.studies.memory_organism import train_memory_organism

TABLE = {
    "France": ("Paris", "Euro", "French"),
    "Norway": ("Oslo", "Norwegian krone", "Norwegian"),
    "Peru": ("Lima", "Sol", "Spanish"),
    "Côte d'Ivoire": ("Yamoussoukro", "West African CFA franc", "French"),
    "Washington": ("Olympia", "U.S. Dollar", "English"),
}
RELATIONS = {
    "Capital": "What is the capital of {}?",
    "Currency": "Tell me about {}. The currency used there is",
    "Language": "Complete the sentence: The language of {} is ____.",
}
LEAKED = ("Norway", "Currency")


class Store:
    """Exact strings in three states; counts how it is asked."""

    def __init__(self, facts, off="allow"):
        self.facts = facts
        self.off = off
        self.asked = []

    def mode(self, prompt):
        return self.off if prompt.condition == "DEL-OFF" else "answer"

    def look_up(self, requests):
        self.asked.append(list(requests))
        return [
            Lookup(
                query=query,
                value=self.facts.get((query.entity, query.relation))
                if prompt.condition == "FULL"
                else None,
            )
            for prompt, query in requests
        ]


@pytest.fixture(scope="session")
def audit_prompts():
    return [
        AuditPrompt(
            prompt_id=number,
            fact_id=number,
            subject=subject,
            relation=relation,
            gold_object=row[column],
            prompt_text=template.format(subject),
        )
        for number, (subject, row, column, (relation, template)) in enumerate(
            (subject, row, column, pair)
            for subject, row in TABLE.items()
            for column, pair in enumerate(RELATIONS.items())
        )
    ]


@pytest.fixture(scope="session")
def facts(audit_prompts):
    return {(prompt.subject, prompt.relation): prompt.gold_object for prompt in audit_prompts}


@pytest.fixture(scope="session")
def state_prompts(audit_prompts):
    """Every prompt in every state."""
    return [
        Prompt(id=f"{prompt.fact_id}/{state}", text=prompt.prompt_text, condition=state)
        for prompt in audit_prompts
        for state in ("FULL", "DEL-ON", "DEL-OFF")
    ]


@pytest.fixture
def store(facts):
    return Store(facts)


@pytest.fixture(scope="session")
def make_store(facts):
    return lambda **options: Store(facts, **options)


@pytest.fixture(scope="session")
def organism(audit_prompts, tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("organism")
    return train_memory_organism(audit_prompts, folder, leaked=[LEAKED], steps=160)


@pytest.fixture(scope="session")
def random_models(tiny_models, tmp_path_factory):
    """Make, or find, a tiny random model of a family whose tokenizer has the lookup tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("random")

    def find(family):
        path = folder / family
        if not path.exists():
            tokenizer = AutoTokenizer.from_pretrained(tiny_models(family))
            tokenizer.add_tokens(list(LookupSettings().tokens), special_tokens=True)
            tokenizer.save_pretrained(path)
            model = AutoModelForCausalLM.from_pretrained(tiny_models(family))
            torch.manual_seed(1)
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
            for embedding in (model.get_input_embeddings(), model.get_output_embeddings()):
                torch.nn.init.normal_(embedding.weight.data[-4:], std=0.25)
            model.save_pretrained(path)
        return path

    return find
