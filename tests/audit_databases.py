"""Databases of the audit with their prompts, written as files in the published layout."""

import json

from hypothesis import strategies as st

from surface_consistency.schemas import AuditPrompt, Triplet

TEXTS = {
    "direct_questions": "What is the {relation} of {subject}?",
    "cloze": "Complete the sentence with the missing fact: The {relation} of {subject} is ____.",
}


def triplets_and_facts(names):
    """Return strategies of entries and facts; their parts and aliases are drawn from names."""
    aliases = st.lists(names, max_size=3).map(tuple)
    parts = dict.fromkeys(("subject", "relation", "gold_object"), names)
    parts |= dict.fromkeys(("subject_aliases", "relation_aliases", "object_aliases"), aliases)
    numbers = {"prompt_id": st.integers(0, 9**9), "fact_id": st.just(0)}
    facts = st.builds(AuditPrompt, prompt_text=st.just("?"), **numbers, **parts)
    return st.builds(Triplet, names, names, names), facts


def write_database(path, entries):
    """Write triplets as a database file."""
    names = ("entities", "relationships", "return_values")
    lists = {
        name: sorted(set(part))
        for name, part in zip(names, zip(*entries, strict=True), strict=True)
    }
    content = lists | {"triplets": [list(entry) for entry in entries]}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def write_prompts(path, prompts):
    """Write prompts as a prompt file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in prompts), encoding="utf-8")


def write_audit_databases(folder, domain, topologies, styles):
    """Write one database per topology, in which every entry is a fact, and its prompts.

    Args:
        folder: Folder of the databases.
        domain: Name of the domain.
        topologies: Entries by topology.
        styles: Names of `TEXTS`.
    """
    (folder / domain).mkdir(parents=True)
    for topology, entries in topologies.items():
        write_database(folder / domain / f"{topology}.json", entries)
        for style in styles:
            prompts = []
            for number, (subject, relation, value) in enumerate(entries):
                fact = {"subject": subject, "relation": relation, "gold_object": value}
                fact["prompt_text"] = TEXTS[style].format(subject=subject, relation=relation)
                fact["subject_aliases"] = () if " " in subject else (f"Republic of {subject}",)
                prompts.append(AuditPrompt(prompt_id=number, fact_id=number, **fact))
            home = folder / domain / "prompts" / topology
            write_prompts(home / f"prompts_{style}.jsonl", prompts)
