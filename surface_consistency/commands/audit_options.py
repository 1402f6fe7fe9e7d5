"""Options of `audit`."""

import argparse
from typing import Final

from surface_consistency.commands.options import SAMPLE

__all__ = [
    "LOOKUP",
    "SAMPLE_DOMAINS",
    "SAMPLE_VARIANTS",
    "STATES",
    "add_data",
    "add_memory",
    "add_organism",
    "add_scoring",
]

STATES: Final = ("FULL", "DEL-ON", "DEL-OFF")
"""States of the store."""

LOOKUP: Final = "lookup"
"""Name of the runner of models that look facts up themselves."""

SAMPLE_DOMAINS: Final = ("countries",)
"""Domains of the sample, unless told."""

SAMPLE_VARIANTS: Final = ("noise",)
"""Topologies of the sample, unless told."""

_RULES: Final = ("audit", "published")


def add_data(parser: argparse.ArgumentParser) -> None:
    """Describe what is asked."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--databases",
        required=True,
        help=f"folder of databases with their prompts, file of one, or '{SAMPLE}' (built into "
        f"--out from a table that comes along: {SAMPLE_DOMAINS[0]}/{SAMPLE_VARIANTS[0]} unless "
        "--domains and --variants say otherwise)",
    )
    data.add_argument("--domains", nargs="+", help="domains to take (default: all)")
    data.add_argument("--variants", nargs="+", help="topologies to take (default: all)")
    data.add_argument("--styles", nargs="+", help="prompt styles to take (default: all)")
    data.add_argument("--states", nargs="+", choices=STATES, default=list(STATES))
    data.add_argument("--limit", type=int, help="only the first so many prompts of each file")
    data.add_argument(
        "--max-missing",
        type=float,
        default=0.5,
        help="largest share of a file's prompts whose fact the database may lack (%(default)s)",
    )


def add_organism(parser: argparse.ArgumentParser) -> None:
    """Describe the model that is trained on the spot."""
    organism = parser.add_argument_group("model organism")
    organism.add_argument(
        "--organism",
        action="store_true",
        help="train a small model that looks facts up on these prompts and audit it: no network",
    )
    organism.add_argument(
        "--leaked", type=int, default=0, help="facts that it is also taught in plain text"
    )
    organism.add_argument("--steps", type=int, default=900, help="training steps (%(default)s)")


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Describe the store: retrieval, deletion, and what becomes of lookups without it."""
    memory = parser.add_argument_group("store")
    memory.add_argument(
        "--retriever",
        nargs="+",
        default=["minilm"],
        help="minilm, faiss, bm25, fuzzy, hybrid, or a model of sentence-transformers "
        "(default: %(default)s)",
    )
    memory.add_argument(
        "--threshold",
        nargs="+",
        type=_threshold,
        default=[0.6],
        help="lowest accepted score, or none (default: %(default)s; as published: none)",
    )
    memory.add_argument("--k", type=int, default=5, help="candidates of a trace (%(default)s)")
    memory.add_argument(
        "--fallback",
        choices=("abstain", "top1_anyway"),
        default="abstain",
        help="where no entry is accepted (default: %(default)s; as published: top1_anyway)",
    )
    memory.add_argument(
        "--off-mode",
        choices=("forbid", "allow", "null"),
        default="forbid",
        help="lookup tokens with retrieval off: not written, written freely, or answered with the "
        "null result (default: %(default)s)",
    )
    memory.add_argument(
        "--query",
        choices=("fact", "prompt"),
        default="fact",
        help="what is looked up for a runner other than 'lookup' (default: %(default)s)",
    )
    memory.add_argument(
        "--n-facts", type=int, default=5, help="facts before a prompt, for such a runner"
    )
    memory.add_argument("--index-cache", metavar="DIR", help="folder in which indices are kept")
    _add_deletion(parser)


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Describe how answers are written and judged."""
    scoring = parser.add_argument_group("answers")
    scoring.add_argument(
        "--max-new-tokens", type=int, default=64, help="longest answer (%(default)s)"
    )
    scoring.add_argument("--no-stop", action="store_true", help="write on after the newline")
    scoring.add_argument("--cleaner", choices=_RULES, default="audit", help="(%(default)s)")
    scoring.add_argument("--equivalence", choices=_RULES, default="audit", help="(%(default)s)")
    scoring.add_argument("--resamples", type=int, default=10_000, help="of facts, for intervals")


def _add_deletion(parser: argparse.ArgumentParser) -> None:
    """Describe which entries the deletion of a fact takes."""
    deletion = parser.add_argument_group("deletion")
    deletion.add_argument(
        "--closure",
        choices=("aliases", "groups"),
        default="aliases",
        help="delete by the fact's own aliases, or by the alias groups of all prompts",
    )
    deletion.add_argument("--closure-key", choices=("published", "strict"), default="published")
    deletion.add_argument(
        "--closure-scope",
        nargs="+",
        choices=("subject", "relation", "object"),
        default=["subject", "relation", "object"],
        help="parts that must be equivalent for an entry to be deleted",
    )
    deletion.add_argument(
        "--radius", type=float, help="also delete within this cosine distance of a deleted entry"
    )
    deletion.add_argument(
        "--radius-same-object", action="store_true", help="of these, only those with its object"
    )
    deletion.add_argument(
        "--canonical", action="store_true", help="rewrite databases to one name for each thing"
    )


def _threshold(text: str) -> float | None:
    """Read a threshold."""
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number or none, got {text!r}") from error
