"""Fixed texts of a page, from the `page.toml` of a study: captions, notes, checks, method.

The file has four tables. `tables.<name>` describes a table: caption, columns (see
`surface_consistency.tables.tabulation.describe`) and note. `checks.<name>` describes a check:
level, title, text and the anchor of its evidence. `papers.<name>` describes a table in the form of
a paper; see `surface_consistency.tables.papers`. `texts` contains paragraphs. Placeholders such as
`{label}` are filled by the caller; there are no conditions in the file.
`surface_consistency.tables.sentences` makes statistical sentences.
"""

import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from string import Formatter
from typing import Any

import pandas as pd

from surface_consistency.report.page import Check
from surface_consistency.tables.numbers import Claim, Link, Part, Value, sentence_text
from surface_consistency.tables.papers import paper_table
from surface_consistency.tables.sentences import listing
from surface_consistency.tables.table import Column, Table
from surface_consistency.tables.tabulation import describe


class Texts:
    """The texts of a package.

    Args:
        package: Importable name of the package that contains `page.toml`.
    """

    def __init__(self, package: str) -> None:
        text = resources.files(package).joinpath("page.toml").read_text("utf-8")
        self._texts: Mapping[str, Any] = tomllib.loads(text)

    def sentence(self, name: str, /, **values: object) -> list[Part]:
        """Return a text of `texts` as one paragraph.

        Args:
            name: Name of the text.
            values: Values of its placeholders.

        Returns:
            Its texts and numbers.
        """
        return fill(self._texts["texts"][name], values)

    def paragraphs(self, name: str, /, **values: object) -> list[str]:
        """Return a text of `texts` as paragraphs, which blank lines separate.

        Args:
            name: Name of the text.
            values: Values of its placeholders.

        Returns:
            One text per paragraph.
        """
        parts = self._texts["texts"][name].split("\n\n")
        return [sentence_text(fill(part, values)) for part in parts if part.strip()]

    def check(self, name: str, /, **values: object) -> Check:
        """Return a check of `checks`.

        Args:
            name: Name of the check.
            values: Values of its placeholders; `level` overrides its level.

        Returns:
            The check.
        """
        spec = self._texts["checks"][name]
        return Check(
            level=values.get("level", spec.get("level", "warning")),  # type: ignore[arg-type]
            title=spec["title"],
            text=fill(spec["text"], values),
            anchor=spec.get("anchor"),
        )

    def table(
        self,
        name: str,
        /,
        frame: pd.DataFrame,
        first: Iterable[str | Column] = (),
        *,
        titles: Mapping[str, str] | None = None,
        labels: Mapping[str, Mapping[str, str]] | None = None,
        model: str | None = "model",
        cluster_column: str | None = "n_clusters",
        **values: object,
    ) -> Table:
        """Describe a frame by an entry of `tables`.

        Args:
            name: Name of the entry.
            frame: The numbers.
            first: Columns before those of the entry.
            titles: Headings of this table by column, in addition to those of the entry.
            labels: Wording of the labels in a column, by column.
            model: Column of the name of the run; None if rows do not belong to single runs.
            cluster_column: Column of the number of clusters, by which rows are faded.
            values: Values of the placeholders of caption, columns and note.

        Returns:
            The table.
        """
        spec = self._texts["tables"][name]
        texts = (sentence_text(fill(spec.get(k, ""), values)) for k in ("caption", "note"))
        caption, note = map(str.strip, texts)
        return describe(
            frame,
            caption,
            [*first, spec["columns"].format(**values)],
            titles={**spec.get("titles", {}), **(titles or {})},
            labels={**spec.get("labels", {}), **(labels or {})},
            note=note,
            model=model,
            cluster_column=cluster_column,
        )

    def papers(self, tables: Mapping[str, Table]) -> tuple[dict[str, Table], list[str]]:
        """Make the tables of `papers`, which have the form of a paper.

        Args:
            tables: The tables of the study by name.

        Returns:
            The tables by name; and for tables that cannot be made, sentences on their requirements.
        """
        made, lacking = {}, dict[str, list[str]]()
        for entry, spec in self._texts.get("papers", {}).items():
            table = paper_table(f"paper_{entry}", spec, tables)
            if table is None:
                lacking.setdefault(spec["needs"], []).append(spec["caption"].partition(":")[0])
            else:
                made[f"paper_{entry}"] = table
        return made, [
            f"{listing(names)} {'needs' if len(names) == 1 else 'need'} {needs}."
            for needs, names in lacking.items()
        ]


def fill(text: str, values: Mapping[str, object]) -> list[Part]:
    """Fill the placeholders of a text.

    Args:
        text: The text; runs of white space count as one space.
        values: Texts, numbers of things, `Value`s, links, or lists of these, by placeholder.

    Returns:
        Texts and numbers; neighbouring texts are joined.

    Raises:
        KeyError: If a placeholder has no value.

    Examples:
        >>> fill("{n} pairs of {model}", {"n": 1200, "model": "gpt2"})
        ['1,200 pairs of gpt2']
    """
    parts: list[Part] = []
    for literal, name, *_ in Formatter().parse(" ".join(text.split())):
        value = "" if name is None else values[name]
        for part in (literal, *(value if isinstance(value, list) else [value])):
            if not isinstance(part, Value | Link | Claim):
                part = f"{part:,}" if isinstance(part, int) else str(part)
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            elif part != "":
                parts.append(part)
    return parts
