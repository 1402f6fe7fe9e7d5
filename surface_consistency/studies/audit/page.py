"""Tables and page of audits: three states, the paired square, origins, traces, guards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.paired.contrasts import COUNTS, detectable_note
from surface_consistency.engine.paired.page import PairedReport, inferred
from surface_consistency.engine.paired.wording import WORDING
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.metrics import paired_table
from surface_consistency.report.page import (
    AlluvialPlot,
    Answer,
    Block,
    Check,
    Dot,
    Finding,
    ForestPlot,
    MosaicPlot,
    MosaicPlots,
    Prose,
    Section,
    StackedBars,
    Value,
)
from surface_consistency.report.wording import Wording
from surface_consistency.runs.loader import Run
from surface_consistency.studies.audit.attribution import KIND_MEANINGS, KIND_TITLES, KINDS
from surface_consistency.studies.audit.settings import PUBLISHED_SCORING
from surface_consistency.studies.audit.tables import (
    AUDIT_GROUPINGS,
    STATE_COLUMNS,
    audit_tables,
    baseline_facts,
    closure_note,
)
from surface_consistency.studies.audit.trace import load_traces, surviving_facts
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.table import Column, Table, interval_column

_STORIES: Final = 6
_WORDING: Final = Wording("surface_consistency.studies.audit", default=WORDING)
_STATES: Final = {
    "FULL": "database whole",
    "DEL-ON": "fact deleted",
    "DEL-OFF": "and retrieval off",
}
_GROUPS: Final = {
    "overall": "all facts",
    "by_topology": "by topology",
    "by_style": "by prompt style",
    "by_domain": "by domain",
    "by_database": "by database",
    "by_condition": "by database and prompt style",
}
_NAMES: Final = {
    "aliases": "the fact’s own names",
    "groups": "all names that any fact joins",
}
_CAPTIONS: Final = {"attribution": "Origins", "states": "Scores by state"}
_JUDGES: Final = {
    "judge_against_rule": (
        "The judge against the rule",
        "The rule that would judge otherwise counts as true here, which it need not be: read the "
        "answers on which both differ.",
    ),
    "judge_agreement": ("The judge against people", "What people said counts as true."),
}
_COLOURS: Final = dict(
    zip(
        KINDS,
        ("both", "first_only", "second_only", "neither", "other", "other", "other"),
        strict=True,
    )
)


def _count(key: str, title: str) -> Column:
    """Describe a count."""
    return Column(key=key, title=title, kind="count")


_CELL_RATES: Final = ("both_rate", "retrieval_mediated", "interference", "neither_rate")
"""Shares of the cells."""
_INCOMPLETE: Final = _count("n_incomplete", "Incomplete deletions")
_SIZES: Final = (
    _count("n", "Pairs"),
    _count("n_clusters", "Facts"),
    _count("n_missing", "Missing"),
)
_RATES: Final = (
    Column(key="square", title="Square", kind="square", cells=COUNTS),
    interval_column("leakage", "Leakage", unit="L, %"),
    interval_column("retrieval_mediated", "Mediated", unit="R, %"),
    interval_column("interference", "Interference", unit="I, %"),
    interval_column("del_on_accuracy", "DEL-ON", unit="right, %"),
    interval_column("artifact_rate", "Artifacts", unit="A, %"),
    interval_column("full_accuracy", "FULL", unit="right, %"),
    interval_column("survival_given_full", "DEL-ON given FULL", unit="right, %"),
    _INCOMPLETE,
)
_ASKED: Final = tuple(
    _count(f"n_{name}", f"n {state}")
    for name, state in (("full", "FULL"), ("del_on", "DEL-ON"), ("del_off", "DEL-OFF"))
)
_TESTS: Final = (
    *(_count(key, title) for key, title in zip(COUNTS, "abcd", strict=True)),
    Column(key="mcnemar_method", title="McNemar"),
    Column(key="mcnemar_statistic", title="statistic", kind="number"),
    Column(key="mcnemar_p_value", title="p", kind="p_value", unit="published"),
    interval_column("retrieval_effect", "DEL-ON less DEL-OFF", "difference", "R - I, points"),
    Column(key="clustered_mcnemar_statistic", title="statistic", kind="number", unit="clustered"),
    Column(key="clustered_mcnemar_p_value", title="p", kind="p_value", unit="clustered"),
    Column(key="clustered_mcnemar_p_value_holm", title="p", kind="p_value", unit="and Holm"),
    Column(key="l_plus_r", title="Leakage + mediated", kind="rate", unit="L + R, %"),
    Column(key="identity_residual", title="DEL-ON less (L + R - c/n)", kind="number"),
    Column(key="artifacts_equal_del_on", title="Artifacts are all of DEL-ON"),
    _INCOMPLETE,
)
_ORIGINS: Final = (
    Column(key="attribution", title="Origin", labels={str(k): v for k, v in KIND_TITLES.items()}),
    _count("count", "Answers"),
    interval_column("share", "Share", unit="of right answers, %"),
    interval_column("rate", "Rate", unit="of all prompts, %"),
    _count("n_del_on_correct", "Right under DEL-ON"),
    _count("n", "Prompts"),
    _INCOMPLETE,
)
_AGREEMENT: Final = (
    COLUMNS["judge"],
    COLUMNS["state"],
    _count("n", "Answers"),
    interval_column("accuracy", "Agreement", unit="%"),
    COLUMNS["kappa"],
    _count("true_positives", "Right by both"),
    _count("false_negatives", "Wrong by the judge only"),
    _count("false_positives", "Right by the judge only"),
    _count("true_negatives", "Wrong by both"),
)


class AuditReport(PairedReport):
    """The tables and the page of audits."""

    wording = _WORDING
    compared_rate = "first_accuracy"

    def tables(self) -> dict[str, Table]:
        """Compute the tables of `audit_tables` run by run, and what several runs differ in.

        Returns:
            Tables by name; with several runs "settings", in which they differ, "sweep", the rates
            by retriever, threshold and topology, and "contrasts" as well; and "same_answer".
        """
        parts = [self._computed(run) for run in self.report.runs]
        tables = {}
        for name in parts[0]:
            # Empty ones would turn counts into floats.
            frames = [part[name] for part in parts if len(part[name])] or [parts[0][name]]
            tables[name] = self._table(name, pd.concat(frames, ignore_index=True))
        if len(parts) > 1:
            tables |= {"settings": self._settings(), "sweep": self._sweep(parts)}
            if (compared := self.compare_models()) is not None:
                note = f"{compared.note} {self._note}".strip()
                tables["contrasts"] = replace(compared, note=note)
        return tables | {
            name: replace(table, note=" ".join(filter(None, (table.note, self._note))))
            for name, table in self.same_answers().items()
        }

    def _computed(self, run: Run) -> dict[str, pd.DataFrame]:
        """Compute the tables of a run; its numbers are the same beside whichever other runs."""
        tables = audit_tables(run.outcomes.assign(model=run.manifest.model))
        return {
            name: table.assign(model=run.label) if len(table) else table
            for name, table in tables.items()
        }

    def _table(self, name: str, frame: pd.DataFrame) -> Table:
        """Describe the columns of a table by its kind."""
        kind, _, rest = name.partition("_by_") if "_by_" in name else (name, "", "")
        grouping = f"by_{rest}" if rest else name if name in AUDIT_GROUPINGS else "overall"
        labels = self.label_columns([*AUDIT_GROUPINGS[grouping], "model"])
        if kind == "survivors":
            labels, shown = [], [Column(key=str(key), title=str(key)) for key in frame]
        elif kind in _CAPTIONS:
            shown = list(_ORIGINS if kind == "attribution" else self._scores())
        else:
            shown = [*_SIZES, *(_ASKED if frame["states_note"].any() else ()), *_RATES]
        caption = "Answers that survived" if kind == "survivors" else self._caption(kind, grouping)
        return self._described(frame, [*labels, *shown], caption)

    @property
    def _right(self) -> str:
        """What the share of right answers is called: an exact match only where rules judge."""
        judges = {_judging(run, "judge") or "rule" for run in self.report.runs}
        return "Exact match" if judges == {"rule"} else "Right"

    def _scores(self) -> list[Column]:
        """Describe the columns of scores by state."""
        return [
            COLUMNS["state"],
            _count("n", "Prompts"),
            _count("n_facts", "Facts"),
            interval_column("exact_match", self._right, unit="%"),
            interval_column("f1", "Token F1", unit="%"),
            _INCOMPLETE,
        ]

    @property
    def _note(self) -> str:
        """The runs whose deletions are incomplete, to be told below every table."""
        return " ".join(
            f"{run.label}: {note}." for run in self.report.runs if (note := closure_note(run))
        )

    def _described(self, frame: pd.DataFrame, columns: Sequence[Column], caption: str) -> Table:
        """Make a table of the columns that its frame has, incomplete closures told below it."""
        sizes = [name for name in ("n_clusters", "n_facts") if name in frame]
        return Table(
            frame=frame,
            caption=caption,
            columns=[
                column
                for column in columns
                if {column.key, *(column.cells or ())} - {"square"} <= {*frame.columns}
            ],
            note=self._note,
            model="model" if "model" in frame else None,
            cluster_column=sizes[0] if sizes else None,
        )

    def _caption(self, kind: str, grouping: str) -> str:
        """Word the caption of a table."""
        return f"{_CAPTIONS.get(kind, 'What survives deletion')}, {_GROUPS[grouping]}"

    def _settings(self) -> Table:
        """Tell the settings in which the runs differ."""
        rows = [
            {"model": run.label, "folder": run.folder.path.name}
            | {name: _setting(value) for name, value in run.varying.items()}
            for run in self.report.runs
        ]
        frame = pd.DataFrame(rows)
        columns = [Column(key=str(key), title=str(key).replace("_", " ")) for key in frame]
        return self._described(frame, columns, "Settings in which the runs differ")

    def _sweep(self, parts: Sequence[Mapping[str, pd.DataFrame]]) -> Table:
        """Put the rates of all runs beside their retrievers and thresholds."""
        rows = []
        for run, part in zip(self.report.runs, parts, strict=True):
            settings: Any = run.manifest.settings
            options = {name: _setting(settings.get(name)) for name in ("retriever", "threshold")}
            whole = part["overall"].assign(topology="all")
            for table in (whole, part["by_topology"]):
                rows.append(table.assign(**options, model=run.manifest.model))
        frame = pd.concat(rows, ignore_index=True)
        first = ["model", "retriever", "threshold", "topology"]
        frame = frame[[*first, *(column for column in frame if column not in first)]]
        labels = [Column(key=key, title=key.capitalize()) for key in first]
        return self._described(frame, [*labels, *_SIZES, *_RATES], "Retrievers and thresholds")

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Show states, squares, origins, traces, numbers, tests, answers and checks."""

        def of(*names: str) -> list[Table]:
            """Take those of some tables that there are."""
            return [tables[name] for name in names if name in tables]

        groups, own = of(*_GROUPS), self._own_tables()
        numbers = [*of("settings", "sweep", "contrasts"), *self.highlight_blocks(), *groups]
        scores = [table for name, table in tables.items() if name.startswith("states")]
        judged = [self._judged(tables[name], *_JUDGES[name]) for name in _JUDGES if name in tables]
        rest: Sequence[tuple[str, str, Sequence[Block]]] = (
            ("traces", "Facts that survived", [*self._traces()]),
            ("numbers", "What survives deletion", [*numbers, *of("same_answer")]),
            ("tests", "Tests and identity", [self._tested(table) for table in groups]),
            ("scores", "Scores in the three states", [*self.dots(tables), *scores]),
            ("answers", "Answers", [self.answers()] if self.report.settings.answers else []),
            (
                "check-tables",
                "Checks in numbers",
                of(*(name for name in tables if name not in own)),
            ),
        )
        published = [
            run.label for run in self.report.runs if _judging(run, "support") == "published"
        ]
        leads = {"numbers": _WORDING.sentence("numbers", published=published)}
        return [
            self._states_section(tables),
            self.squares_section(tables),
            *([Section(anchor="judge", title="The judge", blocks=judged)] if judged else []),
            self._origins_section(tables),
            *(
                Section(
                    anchor=anchor,
                    title=title,
                    lead=leads.get(anchor, []),
                    blocks=blocks,
                    is_folded=anchor in ("tests", "check-tables"),
                )
                for anchor, title, blocks in rest
                if blocks
            ),
        ]

    def _judged(self, table: Table, caption: str, note: str) -> Table:
        """Show how often a judge agrees with the rule, or with people."""
        described = self._described(
            table.frame, [*self.label_columns(["model"]), *_AGREEMENT], caption
        )
        return replace(described, note=note, cluster_column=None)

    def _tested(self, table: Table) -> Table:
        """Show the tests of a table of rates, and whether its rates add up."""
        frame = table.frame.assign(
            l_plus_r=table.frame["leakage"] + table.frame["retrieval_mediated"],
        )
        if "artifacts_equal_del_on" in frame:
            equal = frame["artifacts_equal_del_on"]
            frame["artifacts_equal_del_on"] = equal.map({True: "yes", False: "no"})
        labels = [column for column in table.columns if column.kind == "label"]
        caption = table.caption.replace("What survives deletion", "DEL-ON against DEL-OFF")
        described = self._described(frame, [*labels, *_SIZES[:2], *_TESTS], caption)
        power = detectable_note(frame, "retrieval_effect")
        return replace(described, note=f"{described.note} {power}".strip())

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page."""
        others = {"settings", "sweep", "contrasts", "survivors", "same_answer", *_GROUPS, *_JUDGES}
        kinds = {f"{kind}_{name}" for kind in _CAPTIONS for name in _GROUPS}
        return others | kinds | {*_CAPTIONS}

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say what survives deletion, with retrieval on and off, and where it comes from."""
        noise = tables["noise_floor"].frame if "noise_floor" in tables else None
        facts = {
            "rows": self._rows(tables),
            "origins": {run.label: _origins(run) for run in self.report.runs},
            "noise": {
                label: rows.to_dict("records")
                for label, rows in (() if noise is None else noise.groupby("model", sort=False))
            },
        }
        return self._headed(
            tables,
            self._rows(tables),
            _WORDING.sentence("finding", **facts),
            _WORDING.sentence("summary", **facts),
        )

    def key_facts(self) -> list[tuple[str, str]]:
        """Gather the facts under the finding, retrieval and closure among them."""
        settings = [run.manifest.settings for run in self.report.runs]
        n_styles = max(run.outcomes["style"].nunique() for run in self.report.runs)
        chips = [("styles", str(n_styles))]
        for name, title in (("retriever", "retriever"), ("threshold", "threshold")):
            values = dict.fromkeys(_setting(one.get(name)) for one in settings if name in one)
            chips += [(title, ", ".join(values))] if values else []
        names = dict.fromkeys(_NAMES[str(one["closure"])] for one in settings if "closure" in one)
        chips += [("deleted by", ", ".join(names))] if names else []
        if any(one.get("as_published") for one in settings):
            chips.append(("asked", "as published"))
        data, pairs, *rest = super().key_facts()
        return [data, pairs, *chips, *rest]

    def _states_section(self, tables: Mapping[str, Table]) -> Section:
        """Show how verdicts go from state to state."""
        scores = tables["states"].frame
        blocks: list[Block] = []
        for run in self.report.runs:
            rows = {
                row["state"]: row for row in scores.to_dict("records") if row["model"] == run.label
            }
            names = [f"{STATE_COLUMNS[state]}_correct" for state in STATE_COLUMNS if state in rows]
            judged = run.outcomes[run.outcomes[names].notna().all(axis=1)][names].astype(bool)
            blocks.append(
                AlluvialPlot(
                    name=f"states-{self.index[run.label]}",
                    title=run.label,
                    states=[
                        (state, meaning, interval_value(rows[state], "exact_match"))
                        for state, meaning in _STATES.items()
                        if state in rows
                    ],
                    counts=Counter(judged.itertuples(index=False, name=None)),
                )
            )
        return Section(
            anchor="states",
            title="Three states of memory",
            lead=_WORDING.sentence("states"),
            blocks=blocks,
        )

    def squares_section(self, tables: Mapping[str, Table]) -> Section:
        """Show the square of DEL-ON against DEL-OFF: all prompts, and those right under FULL."""
        squares = [self.square(row) for row in self._rows(tables) if row["n"]]
        given = [
            square
            for run in self.report.runs
            if (square := self._given_full(run, tables)) is not None
        ]
        return Section(
            anchor="squares",
            title="The paired square: DEL-ON against DEL-OFF",
            lead=_WORDING.sentence("squares"),
            blocks=[
                MosaicPlots(
                    squares=shown,
                    conditions=self.design.conditions,
                    cells=self.design.cells,
                    size="small" if len(shown) > 4 else "figure",
                )
                for shown in (squares, given)
                if shown
            ],
        )

    def square(self, row: Mapping[Any, Any]) -> MosaicPlot:
        """Draw the contingency table of one model, from its row of "overall"."""
        label = str(row["model"])
        return MosaicPlot(
            title=f"{label}: all {int(row['n']):,} prompts",
            model=self.index[label],
            **{name: int(row[name]) for name in COUNTS},
            facts=inferred(
                [
                    ("leakage", interval_value(row, "leakage"), "L"),
                    ("retrieval-mediated", interval_value(row, "retrieval_mediated"), "R"),
                    ("interference", interval_value(row, "interference"), "I"),
                    (
                        "with retrieval less without",
                        interval_value(row, "retrieval_effect", kind="difference"),
                        "R − I",
                    ),
                    (
                        "test of that",
                        Value(value=float(row["clustered_mcnemar_p_value"]), kind="p_value"),
                        "t over facts",
                    ),
                ]
            ),
            filters={"model": label},
        )

    def _given_full(self, run: Run, tables: Mapping[str, Table]) -> MosaicPlot | None:
        """Draw the contingency table of the prompts that are right under FULL."""
        pairs = run.outcomes[["full_correct", "first_correct", "second_correct"]]
        known = pairs[pairs.notna().all(axis=1)].astype(bool)
        known = known[known["full_correct"]]
        if known.empty:
            return None
        table = paired_table(known["first_correct"], known["second_correct"])
        row = next(row for row in self._rows(tables) if row["model"] == run.label)
        names = ("survival", "leakage", "retrieval_mediated", "interference")
        return MosaicPlot(
            title=f"{run.label}: the {len(known):,} answered under FULL",
            model=self.index[run.label],
            **asdict(table),
            facts=inferred(
                (name.replace("_", "-"), interval_value(row, f"{name}_given_full"), "given FULL")
                for name in names
            ),
            filters={"model": run.label},
        )

    def _origins_section(self, tables: Mapping[str, Table]) -> Section:
        """Show where the answers that are right under DEL-ON came from."""
        blocks: list[Block] = []
        for by in ("model", "topology", "style"):
            name = "overall" if by == "model" else f"by_{by}"
            rates = [row for row in tables[name].frame.to_dict("records") if row["n"]]
            if rates:
                blocks.append(self._bars(f"deletion-by-{by}", by, rates))
            kinds = tables["attribution" if by == "model" else f"attribution_by_{by}"]
            if by == "model" and not kinds.frame.empty:
                blocks += self._origin_bars(kinds.frame)
        survivors = tables["survivors"].frame
        if len(survivors):
            counted = survivors.groupby(["model", "relation"], sort=False)["fact"]
            relations = counted.agg(["size", "nunique"]).reset_index()
            relations = relations.sort_values("size", ascending=False, kind="stable")
            columns = [Column(key="relation", title="Relation of the survivors")]
            columns += [_count("size", "Answers"), _count("nunique", "Facts")]
            blocks.append(
                self._described(
                    relations, [*columns, *self.label_columns(["model"])], "By relation"
                )
            )
        blocks += [
            table
            for name, table in tables.items()
            if name.startswith("attribution") and not table.frame.empty
        ]
        meanings = "; ".join(f"{KIND_TITLES[kind]}: {text}" for kind, text in KIND_MEANINGS.items())
        return Section(
            anchor="origins",
            title="Where the survivors came from",
            lead=_WORDING.sentence("origins"),
            blocks=[*blocks, Prose(parts=[f"{meanings}."])],
        )

    def _bars(self, name: str, by: str, rows: Sequence[Mapping[Any, Any]]) -> StackedBars:
        """Stack the cells of each group."""
        several = len(self.labels) > 1 and by != "model"
        return StackedBars(
            name=name,
            title=f"What is right after deletion, by {by}",
            parts=[(label, cell) for cell, label in zip(COUNTS, self.design.cells, strict=True)],  # type: ignore[misc]
            rows=[
                (
                    f"{row[by] if by == 'model' else _words(row[by])}"
                    f"{', ' + row['model'] if several else ''}",
                    self.index[str(row["model"])],
                    [int(row[cell]) for cell in COUNTS],
                )
                for row in rows
            ],
            shares=[[interval_value(row, name) for name in _CELL_RATES] for row in rows],
        )

    def _origin_bars(self, kinds: pd.DataFrame) -> Iterator[StackedBars]:
        """Stack the origins of the answers of each model, where answers are attributed."""
        rows, shares = [], []
        for label in self.labels:
            told = kinds[kinds["model"] == label].set_index("attribution").to_dict("index")
            if any(row["count"] for row in told.values()):
                counts = [int(told[kind]["count"]) for kind in KINDS]
                rows.append((label, self.index[label], counts))
                shares.append([interval_value(told[kind], "share") for kind in KINDS])
        if rows:
            yield StackedBars(
                name="origins",
                title="Origins of the right answers after deletion",
                parts=[(KIND_TITLES[kind], _COLOURS[kind]) for kind in KINDS],  # type: ignore[misc]
                rows=rows,
                shares=shares,
            )

    def dots(self, tables: Mapping[str, Table]) -> Iterator[ForestPlot]:
        """Show exact match by topology and token F1 by style: figures 6 and 5 of the paper."""
        for by, score, called in (
            ("topology", "exact_match", self._right),
            ("style", "f1", "Token F1"),
        ):
            frame = tables[f"states_by_{by}"].frame
            rows: list[tuple[str, int, Sequence[Dot]]] = []
            for label, part in frame.groupby(by, sort=False) if len(frame) else ():
                rows.append((_words(label), 0, []))
                for state, of_state in part.groupby("state", sort=False):
                    dots = [
                        Dot(
                            model=self.index[str(row["model"])],
                            value=interval_value(row, score),
                            n=int(row["n"]),
                            n_clusters=int(row["n_facts"]),
                        )
                        for row in of_state.to_dict("records")
                    ]
                    rows.append((str(state), 1, dots))
            if rows:
                name = score.replace("_", "-")
                title = f"{called} by {by} and state"
                axis = f"{called[0].lower()}{called[1:]}, %"
                yield ForestPlot(name=f"{name}-by-{by}", title=title, axis=axis, rows=rows)

    def _traces(self) -> Iterator[Block]:
        """Tell the traces of the first facts of each run that were answered after deletion."""
        for run in self.report.runs:
            pair_ids = surviving_facts(run, _STORIES)
            if not pair_ids:
                if run.outcomes["first_correct"].notna().any():
                    text = f"{run.label}: nothing was right with retrieval on after deletion."
                    yield Prose(parts=[text])
                continue
            try:
                yield from (trace.to_block() for trace in load_traces(run, pair_ids))
            except (DataError, SourceNotFoundError) as error:
                yield Prose(parts=[f"{run.label}: {error}"])

    def answer(self, run: Run, row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one fact in one style, with the origin of an answer that survived."""
        shown = super().answer(run, row, cell)
        kind = row["attribution"] if isinstance(row["attribution"], str) else None
        entry = row["attributed_to"] if isinstance(row["attributed_to"], str) else None
        title = "" if kind is None else KIND_TITLES[kind]  # type: ignore[index]
        return replace(
            shown,
            question=f"{row['subject']}, {row['relation']}",
            accepted=[str(row["gold_object"])],
            labels={**shown.labels, "relation": [str(row["relation"])], "origin": [title or "–"]},
            note=title if entry is None else f"{title}: {entry}",
        )

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Say what speaks against the numbers, gravest first."""
        listed: list[Check] = []
        for run in self.report.runs:
            facts = baseline_facts(run)
            warned = _WORDING.checks("baseline_checks", **facts)
            listed += warned or _WORDING.checks("nothing_found", **facts)
        listed += [*self._check_replies(), *self._check_judges()]
        listed += _WORDING.checks(
            "limits",
            rows=self._rows(tables),
            otherwise_judged=[run for run in self.report.runs if _is_judged_otherwise(run)],
            noise=[(run.label, self._against_noise(run)) for run in self.report.runs],
        )
        return sorted(listed, key=lambda check: check.level != "warning")

    def _against_noise(self, run: Run) -> Mapping[str, Any] | None:
        """Hold what survives against the noise floor; None without one."""
        noise = self.noise_counts(run).get("DEL-ON")
        scored = run.outcomes.dropna(subset=["first_correct", "second_correct"])
        if noise is None or scored.empty:
            return None
        return self.against_noise(scored, noise, rate="first_accuracy")


def _origins(run: Run) -> dict[str, Any]:
    """Count the answers that are right after deletion, their facts and where they came from."""
    right = run.outcomes[run.outcomes["first_correct"].eq(True).fillna(False).astype(bool)]
    kinds = right["attribution"].value_counts()
    named = [(KIND_TITLES[kind], int(kinds[kind])) for kind in KINDS if kind in kinds]
    n_unnamed = len(right) - int(kinds.sum())
    return {
        "n": len(right),
        "n_off": int(run.outcomes["second_correct"].eq(True).fillna(False).sum()),
        "n_facts": right["fact_id"].nunique(),
        "n_all": run.outcomes["fact_id"].nunique(),
        "kinds": [*named, *([("of unknown origin", n_unnamed)] if named and n_unnamed else [])],
    }


def _judging(run: Run, name: str) -> object:
    """Tell an option of a run's scoring; None where it has none."""
    return None if run.scoring is None else run.scoring.settings.get(name)


def _is_judged_otherwise(run: Run) -> bool:
    """Tell whether a run that was asked as published is not judged so."""
    differs = any(_judging(run, name) != value for name, value in PUBLISHED_SCORING.items())
    return bool(run.manifest.settings.get("as_published")) and differs


def _setting(value: object) -> str:
    """Write a setting."""
    if isinstance(value, list):
        return "+".join(map(_setting, value))
    return "none" if value is None else str(value)


def _words(label: object) -> str:
    """Word a topology, prompt style or other label."""
    text = str(label).removesuffix("_questions").replace("fewshot", "few-shot")
    return text.replace("_", " ")
