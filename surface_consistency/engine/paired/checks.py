"""What limits the numbers of a paired study, and how they were made."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.paired.answers import TEXTS
from surface_consistency.engine.paired.contrasts import scored_pairs
from surface_consistency.engine.paired.tables import PairedTables, is_hardly_right
from surface_consistency.engine.paired.wording import WORDING
from surface_consistency.errors import RecordError
from surface_consistency.reading import json_objects
from surface_consistency.report.numbers import sentence_text
from surface_consistency.report.page import Check, Provenance
from surface_consistency.report.table import Table
from surface_consistency.runs.loader import Run
from surface_consistency.text import has_unspaced_script

__all__ = ["PairedChecks", "check_answers"]

_FEW_CLUSTERS: Final = 20
_FROM_PYTHON: Final = "# from Python, with these settings"
_PARTS_OF_WORDS: Final = ("popqa", "boundary", "token_f1", "fuzzy")
_WHOLE_PHRASES: Final = ("squad_f1",)
_WHOLE_WORDS: Final = ("boundary", "segmented", "token_f1", "squad_f1")
_AFFIXING: Final = re.compile(
    "[\u1100-\u11ff\u3131-\u318e\uac00-\ud7af\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3]"
)
"""Letters of Hangul, Hebrew and Arabic, in which short words are written onto nouns."""
_MANY: Final = 0.02
"""Share of answers from which on a flaw of theirs is told."""


class PairedChecks(PairedTables):
    """Asks what limits the numbers of a study's runs, and tells how they were made."""

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Ask what limits the numbers.

        Args:
            tables: The tables.

        Returns:
            "warning" first.
        """
        checks = [*self._check_missing(), *self._check_replies(), *self._check_cut()]
        checks += self._check_judges()
        checks += [*self._check_noise(tables), *self._check_sizes(tables)]
        return sorted(checks, key=lambda check: check.level != "warning")

    def _check_missing(self) -> Iterator[Check]:
        """Tell how many pairs have no verdict, and what mars the answers."""
        n_all_missing = 0
        for run in self.report.runs:
            n = len(run.outcomes)
            n_missing = n - len(scored_pairs(run.outcomes))
            n_all_missing += n_missing
            yield from WORDING.checks("missing", label=run.label, n_missing=n_missing, n=n)
            yield from check_answers(run)
        if not n_all_missing:
            yield from WORDING.checks("all_judged")

    def _check_replies(self) -> Iterator[Check]:
        """Tell how many replies hold reasoning, and which hold no answer."""
        for run in self.report.runs:
            if "replies" in run.checks:
                counts = run.checks["replies"].iloc[0].to_dict()
                yield from WORDING.checks("replies", label=run.label, counts=counts)

    def _check_cut(self) -> Iterator[Check]:
        """Tell how many wrong answers are the beginning of a right one."""
        for run in self.report.runs:
            if "cut_answers" in run.checks:
                row = run.checks["cut_answers"].iloc[0].to_dict()
                yield from WORDING.checks("cut", label=run.label, row=row)

    def _check_judges(self) -> list[Check]:
        """Tell when runs were judged by different rules, so that they do not compare."""
        judged = {run.label: run.judged_by for run in self.report.runs}
        return WORDING.checks(
            "judges", judged=judged.items() if len(set(judged.values())) > 1 else ()
        )

    def _check_noise(self, tables: Mapping[str, Table]) -> Iterable[Check]:
        """Hold the flip rate against the noise floor."""
        noise = [(row["model"], self._nearest_noise(tables, row)) for row in self._rows(tables)]
        return WORDING.checks("noise", noise=noise)

    def _nearest_noise(
        self, tables: Mapping[str, Table], row: Mapping[Any, Any]
    ) -> Mapping[Any, Any] | None:
        """Find the stratum of the noise that a row of "overall" exceeds least; None for none."""
        if "above_noise" not in tables:
            return None
        rows = self._rows_of(tables["above_noise"].frame, row).to_dict("records")
        return max(rows, key=lambda one: (one["p_value_holm"], -one["difference"]), default=None)

    def _rows_of(self, frame: pd.DataFrame, row: Mapping[Any, Any]) -> pd.DataFrame:
        """Choose the rows of a table that are of the model and panel of a row of "overall"."""
        keys = ["model", *filter(None, (self.facet,))]
        return frame[(frame[keys] == [row[key] for key in keys]).all(axis=1)]

    def _check_sizes(self, tables: Mapping[str, Table]) -> list[Check]:
        """Tell where few clusters or a low accuracy limit what can be said."""
        return WORDING.checks(
            "sizes",
            rows=[row | {"is_hardly_right": is_hardly_right(row)} for row in self._rows(tables)],
            few=_FEW_CLUSTERS,
            clusters=self.clusters,
        )

    def provenance(self) -> list[Provenance]:
        """Say how each run was made.

        Returns:
            Settings, command and signature of each run.
        """
        return [self._provenance(run) for run in self.report.runs]

    def _provenance(self, run: Run) -> Provenance:
        """Say how one run was made."""
        manifest = run.manifest
        scoring = {} if run.scoring is None else run.scoring.settings
        report = self.report.settings.model_dump(mode="json") | {"cluster": self.report.cluster}
        settings = {**manifest.source, **manifest.settings, **scoring, **report}
        shown: dict[str, object] = {
            "model": manifest.model,
            "data": manifest.data.id,
            "questions": f"{manifest.data.n_questions:,}",
            **{name.replace("_", " "): value for name, value in settings.items()},
            "revision": manifest.data.revision or f"digest {manifest.data.digest[:12]}",
            **{f"runner {name}": value for name, value in manifest.runner.items()},
            "judged by": run.judged_by,
            "started": manifest.created_at,
            "version": manifest.package_version,
        }
        return Provenance(
            label=run.label,
            settings={name: _setting(value) for name, value in shown.items()},
            command=self.command(run),
            signature=run.signature,
        )

    def command(self, run: Run) -> str:
        """Say by what a run was made.

        Args:
            run: The run.

        Returns:
            The command line that made it, and that which judged it when it is another, a line each.
        """
        judged = None if run.scoring is None else run.scoring.command
        made = dict.fromkeys([run.manifest.command, judged])
        return "\n".join(line or _FROM_PYTHON for line in made)

    def method(self) -> list[str]:
        """Write the method as prose for an appendix.

        Returns:
            Paragraphs.
        """
        first, second = self.design.conditions
        paragraphs = WORDING.paragraphs(
            "method", first=first, second=second, clusters=self.clusters
        )
        return [sentence_text(one) for one in paragraphs]

    def warning(self) -> str:
        """Say what forbids quoting the numbers.

        Returns:
            A sentence, or nothing.
        """
        if any(run.manifest.data.is_sample for run in self.report.runs):
            return "Asked on the bundled sample: the numbers say nothing about a model."
        named = [{run.manifest.model, _last(run.manifest.runner)} for run in self.report.runs]
        # Runs made before its name was "toy_model" say "organism".
        if any(names & {"toy_model", "organism"} for names in named):
            return "A small model trained for this demo: the numbers say nothing about a model."
        return ""

    def key_facts(self) -> list[tuple[str, str]]:
        """Gather the facts under the finding.

        Returns:
            Names and values.
        """
        first = self.report.runs[0]
        n_pairs = max(len(run.outcomes) for run in self.report.runs)
        n_clusters = max(run.outcomes[self.report.cluster].nunique() for run in self.report.runs)
        return [
            ("data", first.manifest.data.id),
            ("pairs", f"{n_pairs:,} on {n_clusters:,} {self.clusters}"),
            ("judged by", " / ".join(dict.fromkeys(run.judged_by for run in self.report.runs))),
            ("run", first.manifest.created_at[:10]),
            ("version", first.manifest.package_version),
        ]


def check_answers(run: Run) -> list[Check]:
    """Ask what mars the answers of a run, whatever their verdicts.

    Args:
        run: The run; its outcomes hold the judged answers.

    Returns:
        What deserves a look: judged parts that are empty; scripts without spaces under a rule that
        takes parts of words for words, or phrases; scripts that write particles and prepositions
        onto nouns under a rule that wants the noun alone; and plain text given to a model that has
        a chat template.
    """
    columns = [run.outcomes[name].dropna() for name in TEXTS if name in run.outcomes]
    texts = Counter(text for column in columns for text in column.to_numpy(dtype=object))
    rule = run.judged_by.split(" on ")[0].removeprefix("matcher:")
    takes_phrases = rule in _WHOLE_PHRASES
    return WORDING.checks(
        "answers",
        label=run.label,
        judged_by=run.judged_by,
        most=_MANY,
        n_texts=texts.total(),
        n_empty=sum(n for text, n in texts.items() if not text.strip()),
        is_first_line=run.judged_by.endswith(" on first_line"),
        takes_phrases=takes_phrases,
        unspaced=_share(texts, has_unspaced_script)
        if takes_phrases or rule in _PARTS_OF_WORDS
        else 0.0,
        segmented=_by_words(run, rule),
        affixing=_share(texts, _AFFIXING.search) if rule in _WHOLE_WORDS else 0.0,
        is_plain=bool(run.manifest.runner.get("chat_template")) and _asks_in_plain_text(run),
    )


def _by_words(run: Run, rule: str) -> Mapping[Any, Any] | None:
    """Find how many verdicts change where words are cut; None where nobody counted."""
    table = run.checks.get("rules", pd.DataFrame(columns=["first_rule", "second_rule"]))
    rows = table[(table["first_rule"] == rule) & (table["second_rule"] == "segmented")]
    return None if rows.empty else rows.iloc[0].to_dict()


def _share(texts: Counter[str], is_one: Callable[[str], object]) -> float:
    """Compute the share of texts that are something."""
    return sum(n for text, n in texts.items() if is_one(text)) / max(1, texts.total())


def _asks_in_plain_text(run: Run) -> bool:
    """Tell whether the first prompt of a run is a text to continue."""
    try:
        return next(json_objects(run.folder.prompts))[1].get("text") is not None
    except (OSError, RecordError, StopIteration):
        return False


def _last(runner: Mapping[str, Any]) -> str:
    """Name the folder of a runner's model, as `train_toy_model` chose it."""
    return PurePath(str(runner.get("model", ""))).name


def _setting(value: object) -> str:
    """Write a setting for people."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_setting(item)}" for name, item in value.items()) or "none"
    if value is None:
        return "none"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
