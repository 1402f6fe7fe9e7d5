"""Generate the sample's rows from its tables.

Run from the root of the repository, after any change of a table:

    python -m scripts.redirectqa_sample.build_sample

With `--check` nothing is written, and the exit status is 0 if the sample is up to date.
"""

import argparse
import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.redirectqa_sample.tables import (
    Fact,
    Redirect,
    Tables,
    check_tables,
    read_tables,
    surface_of,
)

TABLES_FOLDER: Final = Path(__file__).resolve().parent
"""Folder of the tables."""

SAMPLE_FOLDER: Final = TABLES_FOLDER.parents[1] / "surface_consistency/data/samples/redirectqa"
"""Folder of the sample."""


def build_rows(tables: Tables) -> Iterator[dict[str, Any]]:
    """Realise every fact under each of its surfaces and both templates.

    Args:
        tables: The tables of the sample, free of faults.

    Yields:
        Rows in the layout of RedirectQA v1.0.0: facts in the order of their table, the canonical
        surface before its redirects, the original template before the paraphrase.
    """
    for fact in tables.facts:
        redirects = tables.redirects[fact.title]
        pages = (fact.title, *(redirect.title for redirect in redirects))
        aliases = sorted(map(surface_of, pages))
        for redirect in (None, *redirects):
            subject = _subject_columns(fact, redirect, aliases)
            yield from _realisations(fact, tables, subject)


def render_sample(folder: Path) -> dict[str, str]:
    """Generate the files of the sample.

    Args:
        folder: Folder of the tables.

    Returns:
        File name, relative to the sample's folder, to content.

    Raises:
        ValueError: If the tables have faults.
    """
    tables = read_tables(folder)
    check_tables(tables)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in build_rows(tables))
    types = io.StringIO()
    writer = csv.writer(types, lineterminator="\n")
    writer.writerow(("redirect_category", "type"))
    writer.writerows(tables.category_types.items())
    return {
        "test.jsonl": "".join(lines),
        "metadata/redirect_category_to_type.csv": types.getvalue(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sample, or check that it is up to date.

    Args:
        arguments: Command line; that of the process by default.

    Raises:
        SystemExit: If `--check` finds a file that differs from what the tables give.
    """
    parser = argparse.ArgumentParser(description="Generate the RedirectQA sample.")
    parser.add_argument("--out", type=Path, default=SAMPLE_FOLDER, help="folder of the sample")
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    options = parser.parse_args(arguments)
    for name, content in render_sample(TABLES_FOLDER).items():
        path: Path = options.out / name
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
        elif not path.is_file() or path.read_bytes() != content.encode():
            raise SystemExit(
                f"{path} is not what the tables give; "
                "run python -m scripts.redirectqa_sample.build_sample"
            )


def _subject_columns(
    fact: Fact, redirect: Redirect | None, aliases: Sequence[str]
) -> dict[str, Any]:
    """Fill the subject's columns, for the canonical surface when there is no redirect."""
    page = fact.title if redirect is None else redirect.title
    return {
        "subject_id": fact.subject_id,
        "subject_surface": surface_of(page),
        "subject_surface_category": ["__MAIN__"] if redirect is None else [*redirect.categories],
        "subject_wiki_title": fact.title,
        "subject_redirect_wiki_title": None if redirect is None else page.replace(" ", "_"),
        "subject_pageviews": None,
        "subject_aliases": [*aliases],
    }


def _realisations(fact: Fact, tables: Tables, subject: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Word the question about one surface under both templates."""
    relation = tables.relations[fact.relation]
    for name, template in relation.templates.items():
        yield {
            "triplet_id": fact.triplet_id,
            **subject,
            "relation": fact.relation,
            "relation_id": relation.relation_id,
            "object_id": fact.object_id,
            "object_surface": fact.answers[0],
            "object_aliases": [*fact.answers],
            "template": name,
            "question": template.replace("{}", subject["subject_surface"]),
        }


if __name__ == "__main__":
    main()
