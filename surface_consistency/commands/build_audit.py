"""`build audit`: the databases of the audit of forgetting and their prompts."""

import argparse

from surface_consistency.commands.options import Commands
from surface_consistency.data.audit_topologies import PUBLISHED_TOPOLOGIES, TOPOLOGIES
from surface_consistency.data.fact_tables import DOMAINS
from surface_consistency.prompts.audit_styles import AUDIT_STYLES

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Describe `build audit`."""
    audit = commands.add_parser(
        "audit",
        help="databases of the audit of forgetting, with their prompts",
        description="Write DOMAIN/TOPOLOGY.json and DOMAIN/prompts/TOPOLOGY/prompts_STYLE.jsonl in "
        "the published layout, from the tables that come with the package or from your own.",
    )
    audit.add_argument("--out", required=True, help="folder of the databases")
    audit.add_argument(
        "--domains",
        nargs="+",
        default=list(DOMAINS),
        metavar="DOMAIN",
        help=f"{', '.join(DOMAINS)}, or the folder of a table of your own (facts.tsv, aliases.tsv, "
        "and noise.tsv and collision.tsv if you have them; default: all that come along)",
    )
    audit.add_argument(
        "--topologies",
        nargs="+",
        choices=TOPOLOGIES,
        default=list(PUBLISHED_TOPOLOGIES),
        help="how facts are stored (default: %(default)s)",
    )
    audit.add_argument(
        "--styles", nargs="+", choices=AUDIT_STYLES, default=list(AUDIT_STYLES), help="of prompts"
    )
    audit.add_argument("--seed", type=int, default=0, help="seed of drawn near misses")
    audit.set_defaults(handle=_build)


def _build(arguments: argparse.Namespace) -> None:
    """Build the databases and say what was written."""
    from surface_consistency.data.audit_databases import build_audit_databases
    from surface_consistency.data.fact_tables import read_fact_table
    from surface_consistency.prompts.audit_styles import style_writers

    built = build_audit_databases(
        arguments.out,
        domains=[
            domain if domain in DOMAINS else read_fact_table(domain) for domain in arguments.domains
        ],
        topologies=arguments.topologies,
        styles=style_writers(arguments.styles),
        seed=arguments.seed,
    )
    for item in built:
        print(
            f"{item.path}: {item.n_triplets} triplets, {item.n_facts} facts in "
            f"{len(item.prompt_paths)} prompt styles"
        )
