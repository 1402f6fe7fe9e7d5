"""Reference implementation of counts, which looks up every span of every text in a dictionary."""

from surface_consistency_build.counting.boundaries import boundary_tables, character_classes
from surface_consistency_build.counting.texts import comparable


def spans(names, text, boundary):
    """Return (start, stop, number of the name) of every occurrence under a rule, in order."""
    rule, classes = boundary_tables(boundary), character_classes() & 0x0F
    keys = {name: number for number, name in enumerate(names)}
    kinds = [0, *(classes[ord(letter)] for letter in text), 0]
    return [
        (start, start + length, keys[text[start : start + length]])
        for start in range(len(text))
        for length in sorted({len(name) for name in keys})
        if start + length <= len(text)
        and text[start : start + length] in keys
        and rule.begins[kinds[start], kinds[start + 1]]
        and rule.ends[kinds[start + length], kinds[start + length + 1]]
    ]


def longest(found):
    """Return the longest span at each position, from the start, without overlaps."""
    chosen, until = [], 0
    for start, stop, key in found:
        if start >= until and not any(s == start and e > stop for s, e, _ in found):
            chosen.append((start, stop, key))
            until = stop
    return chosen


def reference_counts(table, documents, *, boundary="word", case="exact"):
    """Count the names of a table and the documents of its entities."""
    folded = [comparable(name, case) for name in table.keys]
    distinct = list(dict.fromkeys(folded))
    of_name = [distinct.index(name) for name in folded]
    counts = {name: [0] * len(distinct) for name in ("bounded", "longest", "documents")}
    entities = dict.fromkeys(table.entities, 0)
    owners = [(row["surface"], row["entity_id"]) for row in table.to_arrow().to_pylist()]
    for document in documents:
        found = spans(distinct, comparable(document, case), boundary)
        for _, _, key in found:
            counts["bounded"][key] += 1
        for _, _, key in longest(found):
            counts["longest"][key] += 1
        seen = {distinct[key] for _, _, key in found}
        for key, name in enumerate(distinct):
            counts["documents"][key] += name in seen
        for entity in {entity for name, entity in owners if comparable(name, case) in seen}:
            entities[entity] += 1
    rows = {name: [values[key] for key in of_name] for name, values in counts.items()}
    return rows | {"entities": list(entities.values())}
