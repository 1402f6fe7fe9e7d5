"""Writes `DIFFERENCES.md`: how the databases of this package differ from the published ones.

Run as `python -m scripts.audit_differences.write_differences PUBLISHED`,
with the folder of the published databases (`data/custom_databases` of raeesiarya/LMLMAudit).
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from surface_consistency_build.builders.audit_databases.databases import prompt_file_name
from surface_consistency_build.builders.audit_databases.fact_tables import DOMAINS, load_fact_table
from surface_consistency_build.builders.audit_databases.topologies import (
    PUBLISHED_TOPOLOGIES,
    build_topology,
)

from scripts.audit_differences.differences import Difference, compare_databases
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.files import read_audit_prompts

FOLDER: Final = Path(__file__).parent
PAGE: Final = (
    FOLDER.parents[1]
    / "dataset_builders/surface_consistency_build/builders/audit_databases/DIFFERENCES.md"
)
_STYLE: Final = "direct_questions"
_HEAD: Final = """# How these databases differ from the published ones

The facts are the same wherever the published ones are right (arXiv 2607.00605). Every difference is
listed here, with its reason; `write_differences.py` writes this page. Aliases that differ alike in
several facts share a line, which counts them.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page.

    Args:
        arguments: Command line; None for the process's.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("published", type=Path, help="folder of the published databases")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    write_text(options.out, differences_page(options.published))


def differences_page(published: Path) -> str:
    """Compare all databases.

    Args:
        published: Folder of the published databases.

    Returns:
        The page, as Markdown.
    """
    reasons, alias_reasons = read_corrections(FOLDER / "corrections.tsv")
    sections = []
    overview = [
        "| database | facts | other triplets | facts with other aliases |",
        "|---|---|---|---|",
    ]
    for domain in DOMAINS:
        table = load_fact_table(domain)
        for topology in PUBLISHED_TOPOLOGIES:
            folder = published / domain / "prompts" / topology
            other = read_audit_prompts(folder / prompt_file_name(_STYLE))
            differences = compare_databases(
                build_topology(table, topology).targets,
                other,
                reasons=reasons,
                alias_reasons=alias_reasons,
            )
            triplets = sum(item.kind == "triplet" and not item.ours for item in differences)
            facts = len({item.fact for item in differences if item.kind != "triplet"})
            overview.append(f"| {domain}/{topology} | {len(other)} | {triplets} | {facts} |")
            sections.append("\n".join([f"## {domain}/{topology}", "", *_section(differences)]))
    return "\n\n".join([_HEAD.rstrip("\n"), "\n".join(overview), *sections]) + "\n"


def read_corrections(file: Path) -> tuple[dict[Triplet, str], dict[str, str]]:
    """Read the reasons that cannot be derived automatically.

    Args:
        file: Table with the columns kind, subject_or_alias, relation, object, reason.

    Returns:
        Reasons by fact, and reasons by alias.
    """
    reasons: dict[Triplet, str] = {}
    alias_reasons: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        kind, name, relation, value, reason = line.split("\t")
        if kind == "alias":
            alias_reasons[name] = reason
        else:
            reasons[Triplet(name, relation, value)] = reason
    return reasons, alias_reasons


def _section(differences: Iterable[Difference]) -> Iterator[str]:
    """Write the differences of one database as a table."""
    lines: Counter[tuple[str, str, str, str]] = Counter()
    for item in differences:
        if item.kind == "triplet":
            lines[item.kind, _listed(item.ours), _listed(item.other), item.reason] += 1
        else:
            name = {"subject_aliases": 0, "relation_aliases": 1, "object_aliases": 2}[item.kind]
            kind = f"{item.kind.replace('_', ' ')} of {item.fact[name]}"
            lines[kind, _listed(item.ours), _listed(item.other), item.reason] += 1
    if not lines:
        yield "No difference."
        return
    yield "| what | here | published | reason | facts |"
    yield "|---|---|---|---|---|"
    for (kind, ours, other, reason), count in lines.items():
        yield f"| {kind} | {ours} | {other} | {reason} | {count} |"


def _listed(names: tuple[str, ...]) -> str:
    """Write names side by side."""
    return "; ".join(names) or "none"


if __name__ == "__main__":
    main()
