"""What limits the numbers of a paired study, and how they were made."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, ClassVar, Final

import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.engine.paired.answers import TEXTS
from surface_consistency.engine.paired.contrasts import scored_pairs
from surface_consistency.engine.paired.tables import PairedTables, is_hardly_right
from surface_consistency.engine.paired.wording import WORDING
from surface_consistency.errors import RecordError
from surface_consistency.reading import json_objects
from surface_consistency.report.page import Check, Provenance
from surface_consistency.report.wording import Wording
from surface_consistency.runs.loader import Run
from surface_consistency.tables.numbers import sentence_text
from surface_consistency.tables.table import Table
from surface_consistency.text import has_unspaced_script

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

    wording: ClassVar[Wording] = WORDING
    """Where the method of the study is told, and in what its models differ."""

    compared_rate: ClassVar[str] = "flip_rate"
    """The rate in which models are compared first: one of `metrics.PAIRED_RATES`."""

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Ask what limits the numbers.

        Args:
            tables: The tables.

        Returns:
            "warning" first.
        """
        checks = [*self._check_missing(), *self._check_replies(), *self._check_judges()]
        checks += [*self._check_noise(tables), *self._check_sizes(tables)]
        return sorted(checks, key=lambda check: check.level != "warning")

    def _check_missing(self) -> Iterator[Check]:
        """Tell of pairs without a verdict, and what mars the answers of each run."""
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
        """Tell how many replies hold reasoning, which hold no answer, and which were cut off."""
        for run in self.report.runs:
            for name in ("replies", "cut_answers"):
                if name in run.checks:
                    row = run.checks[name].iloc[0].to_dict()
                    yield from WORDING.checks(name, label=run.label, row=row)

    def _check_judges(self) -> list[Check]:
        """Tell when runs were judged by different rules, so that they do not compare."""
        judged = {run.label: run.judged_by for run in self.report.runs}
        return WORDING.checks(
            "judges", judged=judged.items() if len(set(judged.values())) > 1 else ()
        )

    def _check_noise(self, tables: Mapping[str, Table]) -> Iterable[Check]:
        """Hold the flip rate of each model and panel against the noise floor."""
        given = {
            run.label for run in self.report.runs if run.manifest.runner.get("runner") == "verdicts"
        }
        noise = [
            (row["label"], self._nearest_noise(tables, row), row["model"] not in given)
            for row in self._labelled(tables)
        ]
        return WORDING.checks("noise", noise=noise, clusters=self.clusters)

    def _nearest_noise(
        self, tables: Mapping[str, Table], row: Mapping[Any, Any]
    ) -> Mapping[Any, Any] | None:
        """Find the stratum of the noise that a row of "overall" exceeds least; None for none."""
        rows = self._rows_of(tables, "above_noise", row)
        return max(rows, key=lambda one: (one["p_value_holm"], -one["difference"]), default=None)

    def _rows_of(
        self, tables: Mapping[str, Table], name: str, row: Mapping[Any, Any]
    ) -> list[dict[Any, Any]]:
        """Choose the rows of a table that are of the model and panel of a row; none without it."""
        if name not in tables:
            return []
        frame = tables[name].frame
        keys = [key for key in ("model", self.facet) if key in frame and key in row]
        return frame[(frame[keys] == [row[key] for key in keys]).all(axis=1)].to_dict("records")

    def _check_sizes(self, tables: Mapping[str, Table]) -> list[Check]:
        """Tell where few clusters or a low accuracy limit what can be said."""
        return WORDING.checks(
            "sizes",
            rows=[
                row | {"is_hardly_right": is_hardly_right(row)} for row in self._labelled(tables)
            ],
            few=FEW_CLUSTERS,
            clusters=self.clusters,
        )

    def _labelled(self, tables: Mapping[str, Table]) -> Iterator[dict[Any, Any]]:
        """Yield the rows of "overall" that hold a pair, with what model and panel are called."""
        for row in tables["overall"].frame.to_dict("records"):
            if row["n"]:
                yield row | {"label": f"{row['model']}{self._panel(tables, row)}"}

    def _panel(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> str:
        """Name the panel of a row in brackets; "" where there is a single one."""
        if self.facet is None or tables["overall"].frame[self.facet].nunique() < 2:
            return ""
        name = str(row[self.facet])
        label = self.design.labels.get(self.facet, {}).get(name, name)
        return f" ({self.facet}: {label.replace('_', ' ')})"

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
        report = self.report.settings.model_dump(mode="json", exclude={"figures", "page"})
        report["cluster"] = self.report.cluster
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
        facts = {"first": first, "second": second, "clusters": self.clusters, "report": self}
        return [sentence_text(one) for one in self.wording.paragraphs("method", **facts)]

    def warning(self) -> str:
        """Say what forbids quoting the numbers, or that they were planted.

        Returns:
            A sentence, or nothing.
        """
        return warning_of(self.report.runs)

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


def warning_of(runs: Sequence[Run]) -> str:
    """Say what forbids quoting the numbers of runs, or that they were planted.

    Args:
        runs: The runs.

    Returns:
        A sentence, or nothing.
    """
    named = [{run.manifest.model, _last(run.manifest.runner)} for run in runs]
    # Runs made before its name was "toy_model" say "organism".
    if all(names & {"toy_model", "organism"} for names in named):
        return (
            "The truth is known: a small model was taught these facts on purpose, so that the "
            "numbers test the method; they are not those of a model in use."
        )
    if any(run.manifest.data.is_sample for run in runs):
        return "Asked on the bundled sample: the numbers say nothing about a model."
    return ""


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
        n_unspaced=_count(texts, has_unspaced_script)
        if takes_phrases or rule in _PARTS_OF_WORDS
        else 0,
        segmented=_by_words(run, rule),
        n_affixing=_count(texts, _AFFIXING.search) if rule in _WHOLE_WORDS else 0,
        is_plain=bool(texts) and _judges_text(run) and _asks_in_plain_text(run),
    )


def _by_words(run: Run, rule: str) -> Mapping[Any, Any] | None:
    """Find how many verdicts change where words are cut; None where nobody counted."""
    table = run.checks.get("rules", pd.DataFrame(columns=["first_rule", "second_rule"]))
    rows = table[(table["first_rule"] == rule) & (table["second_rule"] == "segmented")]
    return None if rows.empty else rows.iloc[0].to_dict()


def _count(texts: Counter[str], is_one: Callable[[str], object]) -> int:
    """Count the texts that are something."""
    return sum(n for text, n in texts.items() if is_one(text))


def _judges_text(run: Run) -> bool:
    """Tell whether a model with a chat template wrote what was judged, rather than chose it."""
    reads = run.manifest.settings.get("read", "generate")
    return bool(run.manifest.runner.get("chat_template")) and reads == "generate"


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
