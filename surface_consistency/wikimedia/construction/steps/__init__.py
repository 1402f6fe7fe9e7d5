"""The steps of the construction: each reads tables of one DuckDB and makes one table.

A step knows nothing of dumps, folders or other steps: only the names and columns of its tables,
which its docstring lists. So each can be run on tables made by hand.
"""

from surface_consistency.wikimedia.construction.steps.articles import join_articles
from surface_consistency.wikimedia.construction.steps.balance import balance
from surface_consistency.wikimedia.construction.steps.candidates import candidate_triples
from surface_consistency.wikimedia.construction.steps.categories import keep_categories
from surface_consistency.wikimedia.construction.steps.given import (
    insert_facts,
    pair_given_facts,
)
from surface_consistency.wikimedia.construction.steps.instances import pair_with_surfaces
from surface_consistency.wikimedia.construction.steps.names import find_shared_names
from surface_consistency.wikimedia.construction.steps.object_names import name_objects
from surface_consistency.wikimedia.construction.steps.resolve import resolve_redirects
from surface_consistency.wikimedia.construction.steps.sample import sample_triples
from surface_consistency.wikimedia.construction.steps.surfaces import keep_surfaces
from surface_consistency.wikimedia.construction.steps.views import sum_views

__all__ = [
    "balance",
    "candidate_triples",
    "find_shared_names",
    "insert_facts",
    "join_articles",
    "keep_categories",
    "keep_surfaces",
    "name_objects",
    "pair_given_facts",
    "pair_with_surfaces",
    "resolve_redirects",
    "sample_triples",
    "sum_views",
]
