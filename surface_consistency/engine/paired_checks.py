"""What limits the numbers of a paired study, and how they were made."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from surface_consistency.engine.answer_agreement import check_answers
from surface_consistency.engine.paired_tables import PairedTables, interval_value, is_hardly_right
from surface_consistency.report.page import Check, Provenance, Value
from surface_consistency.report.table import Table
from surface_consistency.runs.loader import Run

__all__ = ["PairedChecks"]

_FEW_CLUSTERS: Final = 20
_FROM_PYTHON: Final = "# from Python, with these settings"
_NO_ANSWER: Final = {
    "unclosed_reasoning": (
        "Reasoning without an end",
        "end within reasoning and count as not answered, not as wrong. Ask again with a larger "
        "--max-reasoning-tokens.",
    ),
    "content_filter": (
        "Filtered replies",
        "were withheld by the server’s content filter and count as not answered, not as wrong.",
    ),
    "refusal": (
        "Refusals",
        "are refusals that the server marks as such and count as not answered, not as wrong.",
    ),
}
"""Title and sentence of the check on each kind of reply that holds no answer."""


class PairedChecks(PairedTables):
    """Asks what limits the numbers of a study's runs, and tells how they were made."""

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Ask what limits the numbers.

        Args:
            tables: The tables.

        Returns:
            "warning" first.
        """
        found = [*self._check_missing(), *self._check_replies(), *self._check_cut()]
        found += self._check_judges()
        found += [*self._check_noise(tables), *self._check_sizes(tables)]
        return sorted(found, key=lambda check: check.level != "warning")

    def _check_missing(self) -> Iterator[Check]:
        """Tell how many pairs have no verdict, and what mars the answers."""
        for run in self.report.runs:
            frame = run.outcomes
            n_missing = int((frame["first_correct"].isna() | frame["second_correct"].isna()).sum())
            if n_missing:
                yield Check(
                    level="warning",
                    title="Missing verdicts",
                    text=[
                        f"{run.label}: {n_missing:,} of {len(frame):,} pairs lack a verdict and "
                        "are left out of every rate."
                    ],
                )
            yield from check_answers(run)
        if not any(
            (run.outcomes[["first_correct", "second_correct"]].isna()).any(axis=None)
            for run in self.report.runs
        ):
            yield Check(level="ok", title="All judged", text=["Every pair has both verdicts."])

    def _check_replies(self) -> Iterator[Check]:
        """Tell how many replies hold reasoning, and which hold no answer."""
        for run in self.report.runs:
            if "replies" not in run.checks:
                continue
            counts = {str(name): n for name, n in run.checks["replies"].iloc[0].items()}
            n_all, n_reasoned = int(counts["n_replies"]), int(counts["n_with_reasoning"])
            for kind, (title, sentence) in _NO_ANSWER.items():
                if n := int(counts[f"n_{kind}"]):
                    yield Check(
                        level="warning",
                        title=title,
                        text=[f"{run.label}: {n:,} of {n_all:,} replies {sentence}"],
                    )
            if n_reasoned:
                n_others = sum(
                    int(counts[f"n_{kind}"]) for kind in ("error", "content_filter", "refusal")
                )
                n_without = max(0, n_all - n_reasoned - n_others)
                rest = (
                    f" {n_without:,} hold none; if their prompts opened reasoning, they are no "
                    "answers: say so with --reasoning-opened."
                )
                yield Check(
                    level="warning" if n_without else "ok",
                    title="Reasoning",
                    text=[
                        f"{run.label}: {n_reasoned:,} of {n_all:,} replies hold reasoning, which "
                        f"was told apart from the answer and not judged.{rest if n_without else ''}"
                    ],
                )

    def _check_cut(self) -> Iterator[Check]:
        """Tell how many wrong answers are the beginning of a right one."""
        for run in self.report.runs:
            if "cut_answers" not in run.checks:
                continue
            row = run.checks["cut_answers"].iloc[0]
            yield Check(
                level="warning",
                title="Answers that were cut off",
                text=[
                    f"{run.label}: {int(row['n_cut']):,} of {int(row['n_answers']):,} answers end "
                    "at the limit of tokens in the midst of an accepted answer, and count as "
                    "wrong. Ask again with a larger --max-new-tokens: tokenizers take several "
                    "tokens for a letter of some scripts."
                ],
            )

    def _check_judges(self) -> Iterator[Check]:
        """Tell when runs were judged by different rules, so that they do not compare."""
        judged = {run.label: run.judged_by for run in self.report.runs}
        if len(set(judged.values())) > 1:
            told = "; ".join(f"{label} by {rule}" for label, rule in judged.items())
            yield Check(
                level="warning",
                title="Judged differently",
                text=[
                    f"{told}: a difference between these runs may be one of judges. Judge them "
                    "alike with `surface-consistency score`."
                ],
            )

    def _check_noise(self, tables: Mapping[str, Table]) -> Iterator[Check]:
        """Hold the flip rate against the noise floor."""
        held = tables["above_noise"].frame if "above_noise" in tables else None
        for row in self._rows(tables):
            label = str(row["model"])
            found = []
            if held is not None:
                of_row = held["model"] == label
                if self.facet is not None:
                    of_row &= held[self.facet] == row[self.facet]
                found = held[of_row].to_dict("records")
            if not found:
                yield Check(
                    level="warning",
                    title="No noise floor",
                    text=[
                        f"{label}: no prompt has a verdict on each of two answers, so a part of "
                        "the flips may be the runner’s own noise; --repeat asks some twice."
                    ],
                )
                continue
            nearest = max(found, key=lambda one: (one["p_value_holm"], -one["difference"]))
            above = nearest["difference"] > 0 and nearest["p_value_holm"] < 0.05
            yield Check(
                level="ok" if above else "warning",
                title="Above the noise" if above else "Near the noise",
                text=[
                    f"{label}: between the conditions verdicts flip by ",
                    interval_value(nearest, "difference", kind="difference"),
                    " more than those on identical prompts asked twice; ",
                    Value(value=float(nearest["p_value_holm"]), kind="p_value"),
                    "." if above else ", so chance alone may do it.",
                ],
                anchor="contrasts",
            )

    def _check_sizes(self, tables: Mapping[str, Table]) -> Iterator[Check]:
        """Tell where few clusters or a low accuracy limit what can be said."""
        for row in self._rows(tables):
            if row["n_clusters"] < _FEW_CLUSTERS:
                yield Check(
                    level="warning",
                    title="Few clusters",
                    text=[
                        f"{row['model']}: the numbers stand on {int(row['n_clusters'])} "
                        f"{self.clusters}; below {_FEW_CLUSTERS} intervals still hold but "
                        "are wide, and say little."
                    ],
                )
            if is_hardly_right(row):
                yield Check(
                    level="warning",
                    title="Hardly anything right",
                    text=[
                        f"{row['model']} is hardly ever right, so that its verdicts agree by being "
                        "wrong twice: consistency says nothing here."
                    ],
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
        told: dict[str, object] = {
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
            settings={name: _setting(value) for name, value in told.items()},
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
        return [
            f"Every pair asks one fact twice, under the {first} and under the {second}. A pair is "
            "consistent when both answers are right or both are wrong; two different wrong answers "
            "count as consistent.",
            f"Brackets are 95 % intervals that take {self.clusters} whole, since pairs of one of "
            "them share an answer: Wilson’s with the number of independent pairs that they are "
            "worth, wider where events are so few that Wilson’s would not hold, and for "
            "differences the MOVER interval from these. p tests whether flips lean to one side, by "
            "Obuchowski's form of McNemar's test where clusters hold several pairs, and by "
            "McNemar's own elsewhere; by group it is corrected by Holm's method.",
            "Two rates are compared by their difference within the same clusters, with an interval "
            "and a test that take into account how far the two go together there, never by whether "
            "their intervals overlap.",
            "The noise floor is the share of verdicts that flip when the very same prompt is asked "
            "again in other batches.",
        ]

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
