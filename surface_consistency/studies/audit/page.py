"""The page of audits: three states, the paired square, origins, traces, guards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import page as paired
from surface_consistency.engine.paired.checks import (
    IMPORTED,
    Tables,
    judge_checks,
    key_facts,
    published_checks,
    reply_checks,
    rows_of,
)
from surface_consistency.engine.paired.tables import (
    COUNTS,
    against_noise,
    compare_models,
    label_columns,
    noise_counts,
    same_answers,
    scored_pairs,
)
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.metrics import paired_table
from surface_consistency.report.page import (
    AlluvialPlot,
    Answer,
    Block,
    Check,
    Dot,
    ForestPlot,
    MosaicPlot,
    MosaicPlots,
    Prose,
    Section,
    StackedBars,
)
from surface_consistency.report.texts import Texts
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.runs.loader import Run
from surface_consistency.studies.audit.attribution import KIND_MEANINGS, KIND_TITLES, KINDS
from surface_consistency.studies.audit.tables import (
    AUDIT_GROUPINGS,
    GUARDS,
    STATE_COLUMNS,
    audit_tables,
    closure_note,
)
from surface_consistency.studies.audit.trace import load_traces, surviving_facts
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.table import Column, Table

_TEXTS: Final = Texts("surface_consistency.studies.audit")
_STORIES: Final = 6
_STATES: Final = {"FULL": "full database", "DEL-ON": "fact deleted", "DEL-OFF": "and retrieval off"}
_GROUPS: Final = {
    "overall": "all facts",
    "by_topology": "by topology",
    "by_style": "by prompt style",
    "by_domain": "by domain",
    "by_database": "by database",
    "by_condition": "by database and prompt style",
}
_NAMES: Final = {"aliases": "the fact’s own names", "groups": "all names that any fact joins"}
_JUDGES: Final = ("judge_against_rule", "judge_agreement")
_COLOURS: Final = dict(
    zip(
        KINDS,
        ("both", "first_only", "second_only", "neither", "other", "other", "other"),
        strict=True,
    )
)
_CELL_RATES: Final = ("both_rate", "retrieval_mediated", "interference", "neither_rate")
"""Proportions of the cells."""
_ASKED: Final = "n_full? n_del_on? n_del_off?"
_CONDITION: Final = ("database", "domain", "topology", "style")
_SCORES: Final = {
    "exact_match": "correct",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
}
"""Scores of a condition, and their columns in the table of correctness labels."""
_LABELS: Final = {"attribution": {str(kind): title for kind, title in KIND_TITLES.items()}}

Row = Mapping[Any, Any]


# Tables.


def audit_report_tables(report: Report) -> dict[str, Table]:
    """Compute the tables of `audit_tables` run by run, and how several runs differ.

    Args:
        report: The runs.

    Returns:
        Tables by name; with several runs also "settings", in which they differ, "sweep", the rates
        by retriever, threshold and topology, and "contrasts"; and "same_answer".
    """
    parts = [_computed(run, report) for run in report.runs]
    tables = {}
    for name in parts[0]:
        # Empty ones would turn counts into floats.
        frames = [part[name] for part in parts if len(part[name])] or [parts[0][name]]
        tables[name] = _table(report, name, pd.concat(frames, ignore_index=True))
    others: dict[str, Table | None] = {}
    if len(parts) > 1:
        tables |= {"settings": _settings(report), "sweep": _sweep(report, parts)}
        others["contrasts"] = compare_models(report)
    others |= same_answers(report)
    return tables | {
        name: replace(table, note=f"{table.note} {_incomplete(report)}".strip())
        for name, table in others.items()
        if table is not None
    }


def _computed(run: Run, report: Report) -> dict[str, pd.DataFrame]:
    """Compute the tables of a run; its numbers do not depend on the other runs."""
    frame = run.outcomes.assign(model=run.manifest.model)
    tables = audit_tables(frame, report.intervals, cluster=report.cluster)
    tables["states_by_condition"] = _scores_by_condition(run)
    return {
        name: table.assign(model=run.label) if len(table) else table
        for name, table in tables.items()
    }


def _scores_by_condition(run: Run) -> pd.DataFrame:
    """Average the scores of each condition by state; empty if the run has no table of scores."""
    if not (run.folder.verdicts.is_file() and run.folder.targets.is_file()):
        return pd.DataFrame(columns=[*_CONDITION, "state", "n", *_SCORES])
    names = ["target_id", *_CONDITION, "state"]
    with open_parquet(run.folder.verdicts) as file:
        verdicts = file.read(["target_id", *_SCORES.values()]).to_pandas()
    judged = run.folder.read_plan()[0][names].merge(verdicts, on="target_id")
    judged = judged.dropna(subset=["correct"])
    scores = judged[[*_SCORES.values()]].astype(float).set_axis([*_SCORES], axis=1)
    groups = scores.assign(n=1).groupby([judged[name] for name in names[1:]], sort=False)
    return groups.agg({"n": "sum", **dict.fromkeys(_SCORES, "mean")}).reset_index()


def _table(report: Report, name: str, frame: pd.DataFrame) -> Table:
    """Describe a table by its kind."""
    kind, _, rest = name.partition("_by_") if "_by_" in name else (name, "", "")
    grouping = f"by_{rest}" if rest else name if name in AUDIT_GROUPINGS else "overall"
    if kind == "survivors":
        return _plain(report, frame, "Answers that survived")
    labels = label_columns(report.design, [*AUDIT_GROUPINGS[grouping], "model"])
    entry = {"attribution": "origins", "states": "states"}.get(kind, "rates")
    return _described(report, entry, frame, labels, group=_GROUPS[grouping])


def _described(
    report: Report, entry: str, frame: pd.DataFrame, labels: Sequence[str | Column], **values: str
) -> Table:
    """Describe a table, with the incomplete deletions in its note."""
    first = [one for one in labels if isinstance(one, str) or one.key in frame]
    is_asked = "states_note" in frame and frame["states_note"].any()
    return _TEXTS.table(
        entry,
        frame,
        first,
        titles={"exact_match": _right(report)} if entry == "states" and len(frame) else {},
        facts="n_facts" if report.cluster == "base_fact" else "n_clusters",
        labels=_LABELS,
        incomplete=_incomplete(report),
        asked=_ASKED if is_asked else "",
        **values,
    )


def _plain(report: Report, frame: pd.DataFrame, caption: str) -> Table:
    """Describe a table of texts."""
    columns = [Column(key=str(key), title=str(key).replace("_", " ")) for key in frame]
    return Table(
        frame=frame,
        caption=caption,
        columns=columns,
        note=_incomplete(report),
        model="model" if "model" in frame else None,
    )


def _right(report: Report) -> str:
    """Return the title of the proportion of correct answers: exact match if only rules score."""
    judges = {_judging(run, "judge") or "rule" for run in report.runs}
    return "Exact match" if judges == {"rule"} else "Correct"


def _incomplete(report: Report) -> str:
    """Name the runs whose deletions are incomplete, for the note of every table."""
    return " ".join(f"{run.label}: {note}." for run in report.runs if (note := closure_note(run)))


def _settings(report: Report) -> Table:
    """List the settings in which the runs differ."""
    rows = [
        {"model": run.label, "folder": run.folder.path.name}
        | {name: _setting(value) for name, value in run.varying.items()}
        for run in report.runs
    ]
    return _plain(report, pd.DataFrame(rows), "Settings in which the runs differ")


def _sweep(report: Report, parts: Sequence[Mapping[str, pd.DataFrame]]) -> Table:
    """List the rates of all runs by retriever and threshold."""
    rows = []
    for run, part in zip(report.runs, parts, strict=True):
        settings: Any = run.manifest.settings
        options = {name: _setting(settings.get(name)) for name in ("retriever", "threshold")}
        whole = part["overall"].assign(topology="all")
        for table in (whole, part["by_topology"]):
            rows.append(table.assign(**options, model=run.manifest.model))
    frame = pd.concat(rows, ignore_index=True)
    first = ["model", "retriever", "threshold", "topology"]
    frame = frame[[*first, *(column for column in frame if column not in first)]]
    return _described(report, "rates", frame, first, group="by retriever and threshold")


# Sentences.


def _finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report the answers that survive deletion, with retrieval on and off, and their origins."""
    rows = paired.first_panel(report, tables)
    leads = [one for row in rows for one in _after_deletion(report, row)]
    details = [one for row in rows for one in _survival(report, tables, row)]
    quantity = "accuracy after deletion with retrieval on"
    between = paired.model_sentences(
        report, tables, "first_accuracy", quantity, rows, unit="prompts"
    )
    return paired.headed(between, leads, details)


def _words(report: Report) -> dict[str, Any]:
    """Return the names of observations and clusters, and the confidence level, for sentences."""
    return report.words | {"unit": "prompts"}


def _after_deletion(report: Report, row: Row) -> Iterator[say.Sentence]:
    """Report the accuracy of a model after deletion, with retrieval on and off."""
    model, words = row["model"], _words(report)
    if row["n"]:
        if say.direction(row, "retrieval_effect") is None:
            n, both = int(row["n"]), int(row["both"])
            right = {"on": both + int(row["first_only"]), "off": both + int(row["second_only"])}
            what = f"correct answers of {model} after deletion with retrieval"
            records = [say.count(of, n, f"{what} {state}") for state, of in right.items()]
            counts = {"n": n, "n_on": right["on"], "n_off": right["off"]}
            yield [*records, *_TEXTS.sentence("counts", model=model, **counts)]
        else:
            on = f"accuracy of {model} after deletion with retrieval on"
            off = f"leakage (L) of {model}, its accuracy after deletion with retrieval off,"
            yield say.rate(row, "del_on_accuracy", on, **words)
            yield say.rate(row, "leakage", off, **words)
        yield say.difference(
            row,
            "retrieval_effect",
            f"accuracy of {model} after deletion",
            "retrieval off",
            "retrieval on",
            "with {}",
            p="p_value",
            **words,
        )
    if row["states_note"]:
        yield [f"{model}: {row['states_note']}."]


def _survival(report: Report, tables: Tables, row: Row) -> Iterator[say.Sentence]:
    """Report the accuracy of a model before deletion, and the origins of its survivors."""
    model = row["model"]
    if say.direction(row, "full_accuracy") is not None:
        quantity = f"accuracy of {model} with the full database"
        yield say.rate(row, "full_accuracy", quantity, **_words(report))
    if say.direction(row, "survival_given_full") is not None:
        yield _given_full(report, row)
    run = next(run for run in report.runs if run.label == model)
    right = run.outcomes[run.outcomes["first_correct"].eq(True).fillna(False).astype(bool)]
    if len(right):
        counts = right["attribution"].value_counts()
        kinds = [f"{KIND_TITLES[kind]} {counts[kind]:,}" for kind in KINDS if kind in counts]
        unknown = len(right) - int(counts.sum())
        kinds += [f"of unknown origin {unknown:,}"] * bool(kinds and unknown)
        n = right[report.cluster].nunique()
        n_all = run.outcomes[report.cluster].nunique()
        origins = f"; by origin: {', '.join(kinds)}" if kinds else ""
        what = f"{report.clusters} of {model} with an answer that is correct after deletion"
        yield [
            say.count(n, n_all, what),
            *_TEXTS.sentence(
                "survivors",
                n=len(right),
                n_clusters=n,
                n_all=n_all,
                clusters=report.clusters,
                kinds=origins,
            ),
        ]
    yield say.repeats(
        rows_of(tables, "noise_floor", {"model": model}), of=f" of {model}", label="state"
    )


def _given_full(report: Report, row: Row) -> say.Sentence:
    """Report the proportion of correct answers that stay correct after deletion."""
    quantity = f"proportion of correct answers of {row['model']} that stay correct after deletion"
    return say.rate(row, "survival_given_full", quantity, **_words(report))


def _facts(report: Report) -> list[tuple[str, str]]:
    """Collect the facts below the finding, with retrieval and deletion."""
    settings = [run.manifest.settings for run in report.runs]
    n_styles = max(run.outcomes["style"].nunique() for run in report.runs)
    facts = [("styles", str(n_styles))]
    for name, title in (("retriever", "retriever"), ("threshold", "threshold")):
        values = dict.fromkeys(_setting(one.get(name)) for one in settings if name in one)
        facts += [(title, ", ".join(values))] if values else []
    names = dict.fromkeys(_NAMES[str(one["closure"])] for one in settings if "closure" in one)
    facts += [("deleted by", ", ".join(names))] if names else []
    data, pairs, *rest = key_facts(report)
    return [data, pairs, *facts, *rest]


# Sections.


def _states(report: Report, tables: Tables) -> Section | None:
    """Show how correctness changes from state to state."""
    blocks: list[Block] = []
    for run in report.runs:
        rows = {row["state"]: row for row in rows_of(tables, "states", {"model": run.label})}
        names = [f"{STATE_COLUMNS[state]}_correct" for state in STATE_COLUMNS if state in rows]
        judged = run.outcomes[run.outcomes[names].notna().all(axis=1)][names].astype(bool)
        blocks.append(
            AlluvialPlot(
                name=f"states-{report.index[run.label]}",
                title=run.label,
                states=[
                    (state, meaning, interval_value(rows[state], "exact_match"))
                    for state, meaning in _STATES.items()
                    if state in rows
                ],
                counts=Counter(judged.itertuples(index=False, name=None)),
            )
        )
    return paired.section(
        "states", "Three states of memory", blocks, lead=_TEXTS.sentence("states")
    )


def _squares(report: Report, tables: Tables) -> Section:
    """Show the square of DEL-ON against DEL-OFF: all prompts, and those correct under FULL."""
    rows = [row for row in paired.first_panel(report, tables) if row["n"]]
    squares = [
        replace(
            paired.square(report, row, facts=_square_facts(row)),
            title=f"{row['model']}: all {int(row['n']):,} prompts",
        )
        for row in rows
    ]
    given = [
        one for run in report.runs if (one := _square_given_full(report, run, tables)) is not None
    ]
    return Section(
        anchor="squares",
        title="DEL-ON versus DEL-OFF",
        lead=_TEXTS.sentence("squares"),
        blocks=[
            MosaicPlots(
                squares=shown,
                conditions=report.design.conditions,
                cells=report.design.cells,
                size="small" if len(shown) > 4 else "figure",
            )
            for shown in (squares, given)
            if shown
        ],
    )


def _square_facts(row: Row) -> list[paired.Fact]:
    """Return the lines below a square."""
    effect = interval_value(row, "retrieval_effect", kind="difference")
    return [
        ("leakage", interval_value(row, "leakage"), "L"),
        ("retrieval-mediated", interval_value(row, "retrieval_mediated"), "R"),
        ("interference", interval_value(row, "interference"), "I"),
        ("retrieval on minus off", effect, "R − I"),
        ("test of R − I", paired.p_value_of(row, "p_value"), "t, clustered"),
    ]


def _square_given_full(report: Report, run: Run, tables: Tables) -> MosaicPlot | None:
    """Draw the contingency table of the prompts that are correct under FULL."""
    pairs = run.outcomes[["full_correct", "first_correct", "second_correct"]]
    known = pairs[pairs.notna().all(axis=1)].astype(bool)
    known = known[known["full_correct"]]
    if known.empty:
        return None
    table = paired_table(known["first_correct"], known["second_correct"])
    row = next(row for row in paired.first_panel(report, tables) if row["model"] == run.label)
    names = ("survival", "leakage", "retrieval_mediated", "interference")
    return MosaicPlot(
        title=f"{run.label}: the {len(known):,} correct under FULL",
        model=report.index[run.label],
        **asdict(table),
        facts=paired.inferred(
            (name.replace("_", "-"), interval_value(row, f"{name}_given_full"), "given FULL")
            for name in names
        ),
        filters={"model": run.label},
    )


def _judge(report: Report, tables: Tables) -> Section | None:
    """Show how often an LLM judge agrees with the rule, or with human labels."""
    labels = label_columns(report.design, ["model"])
    return paired.section(
        "judge",
        "The judge",
        [
            _TEXTS.table(name, tables[name].frame, labels, cluster_column=None)
            for name in _JUDGES
            if name in tables
        ],
    )


def _origins(report: Report, tables: Tables) -> Section | None:
    """Show the origins of the answers that are correct under DEL-ON."""
    blocks: list[Block] = []
    for by in ("model", "topology", "style"):
        name = "overall" if by == "model" else f"by_{by}"
        rates = [row for row in tables[name].frame.to_dict("records") if row["n"]]
        if rates:
            blocks.append(_bars(report, f"deletion-by-{by}", by, rates))
        kinds = tables["attribution" if by == "model" else f"attribution_by_{by}"]
        if by == "model" and not kinds.frame.empty:
            blocks += _origin_bars(report, kinds.frame)
    survivors = tables["survivors"].frame
    if len(survivors):
        fact = "fact" if report.cluster == "item" else report.cluster
        counted = survivors.groupby(["model", "relation"], sort=False)[fact]
        relations = counted.agg(["size", "nunique"]).reset_index()
        relations = relations.sort_values("size", ascending=False, kind="stable")
        blocks.append(_TEXTS.table("relations", relations, incomplete=_incomplete(report)))
    blocks += [
        table
        for name, table in tables.items()
        if name.startswith("attribution") and not table.frame.empty
    ]
    meanings = "; ".join(f"{KIND_TITLES[kind]}: {text}" for kind, text in KIND_MEANINGS.items())
    return paired.section(
        "origins",
        "Origins of the survivors",
        [*blocks, Prose(parts=[f"{meanings}."])],
        lead=_TEXTS.sentence("origins"),
    )


def _bars(report: Report, name: str, by: str, rows: Sequence[Row]) -> StackedBars:
    """Stack the cells of each group."""
    several = len(report.runs) > 1 and by != "model"
    return StackedBars(
        name=name,
        title=f"Correct after deletion, by {by}",
        parts=[(label, cell) for cell, label in zip(COUNTS, report.design.cells, strict=True)],  # type: ignore[misc]
        rows=[
            (
                f"{row[by] if by == 'model' else _label(row[by])}"
                f"{', ' + row['model'] if several else ''}",
                report.index[str(row["model"])],
                [int(row[cell]) for cell in COUNTS],
            )
            for row in rows
        ],
        shares=[[interval_value(row, name) for name in _CELL_RATES] for row in rows],
    )


def _origin_bars(report: Report, kinds: pd.DataFrame) -> Iterator[StackedBars]:
    """Stack the origins of the answers of each model, if answers are attributed."""
    rows, shares = [], []
    for label in report.labels:
        of_kind = kinds[kinds["model"] == label].set_index("attribution").to_dict("index")
        if any(row["count"] for row in of_kind.values()):
            counts = [int(of_kind[kind]["count"]) for kind in KINDS]
            rows.append((label, report.index[label], counts))
            shares.append([interval_value(of_kind[kind], "share") for kind in KINDS])
    if rows:
        yield StackedBars(
            name="origins",
            title="Origins of the correct answers after deletion",
            parts=[(KIND_TITLES[kind], _COLOURS[kind]) for kind in KINDS],  # type: ignore[misc]
            rows=rows,
            shares=shares,
        )


def _traces(report: Report, tables: Tables) -> Section | None:
    """Show the traces of the first facts of each run that were answered after deletion."""
    return paired.section("traces", "Facts that survived", _stories(report))


def _stories(report: Report) -> Iterator[Block]:
    """Yield the traces."""
    for run in report.runs:
        pair_ids = surviving_facts(run, _STORIES)
        if not pair_ids:
            if run.outcomes["first_correct"].notna().any():
                text = f"{run.label}: no answer was correct with retrieval on after deletion."
                yield Prose(parts=[text])
            continue
        try:
            yield from (trace.to_block() for trace in load_traces(run, pair_ids))
        except (DataError, SourceNotFoundError) as error:
            yield Prose(parts=[f"{run.label}: {error}"])


def _numbers(report: Report, tables: Tables) -> Section | None:
    """Show the differences in settings between the runs, then the rates."""
    published = [run.label for run in report.runs if _judging(run, "support") == "published"]
    words = _TEXTS.sentence("published", runs=", ".join(published)) if published else ""
    before = _known(tables, "settings", "sweep", "contrasts")
    return paired.section(
        "numbers",
        "What survives deletion",
        [*before, *paired.highlight_blocks(report), *_known(tables, *_GROUPS, "same_answer")],
        lead=_TEXTS.sentence("numbers", published=words),
    )


def _tests(report: Report, tables: Tables) -> Section | None:
    """Show the tests of the tables of rates, and whether the rates add up."""
    blocks = [_tested(report, name, tables[name]) for name in _GROUPS if name in tables]
    return paired.section("tests", "Tests and identity", blocks, is_folded=True)


def _tested(report: Report, name: str, table: Table) -> Table:
    """Show the tests of a table of rates."""
    frame = table.frame.assign(l_plus_r=table.frame["leakage"] + table.frame["retrieval_mediated"])
    if "artifacts_equal_del_on" in frame:
        equal = frame["artifacts_equal_del_on"]
        frame["artifacts_equal_del_on"] = equal.map({True: "yes", False: "no"})
    labels = [column for column in table.columns if column.kind == "label"]
    confidence = report.settings.confidence
    power = say.detectable_note(frame, "retrieval_effect", confidence=confidence)
    return _described(report, "tests", frame, labels, group=_GROUPS[name], detectable=power)


def _scores(report: Report, tables: Tables) -> Section | None:
    """Show the scores by state."""
    scores = [table for name, table in tables.items() if name.startswith("states")]
    return paired.section(
        "scores", "Scores in the three states", [*_score_charts(report, tables), *scores]
    )


def _score_charts(report: Report, tables: Tables) -> Iterator[ForestPlot]:
    """Show exact match by topology and token F1 by style: figures 6 and 5 of the paper."""
    for by, score, called in (
        ("topology", "exact_match", _right(report)),
        ("style", "f1", "Token F1"),
    ):
        frame = tables[f"states_by_{by}"].frame
        rows: list[tuple[str, int, Sequence[Dot]]] = []
        for label, part in frame.groupby(by, sort=False) if len(frame) else ():
            rows.append((_label(label), 0, []))
            for state, of_state in part.groupby("state", sort=False):
                records = of_state.to_dict("records")
                dots = [paired.dot(report, row, score) for row in records]
                rows.append((str(state), 1, dots))
        if rows:
            name = score.replace("_", "-")
            title = f"{called} by {by} and state"
            axis = f"{called[0].lower()}{called[1:]}, %"
            yield ForestPlot(name=f"{name}-by-{by}", title=title, axis=axis, rows=rows)


def _answer(report: Report, run: Run, row: Row, answer: Answer) -> Answer:
    """Show one fact in one style, with the origin of an answer that survived."""
    kind = row["attribution"] if isinstance(row["attribution"], str) else None
    entry = row["attributed_to"] if isinstance(row["attributed_to"], str) else None
    title = "" if kind is None else KIND_TITLES[kind]  # type: ignore[index]
    return replace(
        answer,
        question=f"{row['subject']}, {row['relation']}",
        accepted=[str(row["gold_object"])],
        labels={**answer.labels, "relation": [str(row["relation"])], "origin": [title or "–"]},
        note=title if entry is None else f"{title}: {entry}",
    )


# Checks.


def guard_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report problems of each run with its databases, deletions, states and prompts."""
    for run in report.runs:
        found = list(_guards(run))
        yield from found or [_TEXTS.check("nothing_found", label=run.label)]


def _guards(run: Run) -> Iterator[Check]:
    """Yield the problems of a run."""
    label, check = run.label, _TEXTS.check
    for row in _check_rows(run, "contamination"):
        if row["is_contaminated"]:
            counts = {
                f"n_{state}": round(row[f"{state}_accuracy"] * row["n"])
                for state in ("full", "del_on")
            }
            yield check("contaminated", label=label, **row | counts)
    if run.outcomes["base_fact"].isna().any():
        yield check("no_base_facts", label=label)
    warned: set[frozenset[str]] = set()
    for row in _check_rows(run, "databases"):
        same, built = row.get("same_content_as"), row.get("retriever_content")
        group = frozenset([row["database"], *(same.split("; ") if isinstance(same, str) else ())])
        if len(group - {""}) > 1 and group not in warned:
            yield check("same_databases", label=label, same=", ".join(sorted(group)))
        warned.add(group)
        if row.get("n_unlinked"):
            yield check("unlinked", label=label, **row)
        if isinstance(built, str) and built != row["content"]:
            yield check(
                "foreign_retriever",
                label=label,
                database=row["database"],
                retriever_content=built[:12],
                content=row["content"][:12],
            )
    for row in _check_rows(run, "fit"):
        if row["n_missing"]:
            yield check("misfit", label=label, **row)
    if incomplete := closure_note(run):
        survived = run.outcomes.loc[run.outcomes["n_surviving"].gt(0), "database"].unique()
        yield check("incomplete", label=label, incomplete=incomplete, survived=", ".join(survived))
    for row in _check_rows(run, "closure"):
        if findings := "; ".join(_readable(row)):
            yield check("readable", label=label, findings=findings, **row)
    n = len(run.outcomes)
    for state, column in STATE_COLUMNS.items():
        if n_missing := int(run.outcomes[f"{column}_correct"].isna().sum()):
            name = "state_not_run" if n_missing == n else "state_missing"
            yield check(name, label=label, state=state, n_missing=n_missing, n=n)
    if absent := [name for name in GUARDS if name not in run.checks]:
        yield check("not_checked", label=label, absent=", ".join(absent))


def _readable(row: Row) -> Iterator[str]:
    """Yield the ways in which answers of deleted facts can still be read."""
    if n := row["n_absent"]:
        yield f"{n} deletions delete nothing"
    if n := row["n_shared_surface"]:
        yield (
            f"the correct answers of {n} remain in the database under another relation of the same "
            f"subject ({row['n_shared_by_punctuation']} of them only without punctuation: “.us” "
            "read as “US”)"
        )
    if n := row.get("n_other_objects"):
        yield (
            f"{n} have further objects under the same subject and relation, so that a lookup may "
            "find another true answer"
        )
    if n := row["n_echoing"]:
        yield (
            f"{n} correct answers contain their subject, so that a repetition of the question may "
            "be scored as correct"
        )


def limit_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report the noise floor, few facts, and a low accuracy under FULL."""
    for run in report.runs:
        noise = noise_counts(report, run).get("DEL-ON")
        scored = scored_pairs(run.outcomes)
        if noise is None or scored.empty:
            is_imported = run.manifest.runner.get("runner") in IMPORTED
            remedy = "" if is_imported else "; the setting `repeat` runs some prompts twice"
            yield _TEXTS.check("no_noise_floor", label=run.label, remedy=remedy)
            continue
        row: Row = against_noise(report, scored, noise, rate="first_accuracy")
        sentence = say.difference(
            {**row, "n": row["n_a"]},
            "difference",
            "proportion",
            "flips of identical prompts",
            "correct answers under DEL-ON",
            p="p_value",
            **_words(report),
        )
        confidence = report.settings.confidence
        is_above = say.direction(row, "difference", row["p_value"], confidence=confidence) == 1
        level = "ok" if is_above else "warning"
        yield _TEXTS.check("noise", level=level, label=run.label, sentence=sentence)
    for row in paired.first_panel(report, tables):
        model, worth = row["model"], row["n_effective_clusters"]
        if row["n"] and worth < FEW_CLUSTERS:
            counts = {"n_clusters": int(row["n_clusters"]), "n_effective": f"{worth:.3g}"}
            counts["clusters"] = report.clusters
            yield _TEXTS.check("few_facts", model=model, few=FEW_CLUSTERS, **counts)
        if say.direction(row, "full_accuracy") is not None and row["full_accuracy_high"] < 0.5:
            has_survival = say.direction(row, "survival_given_full") is not None
            quantity = f"accuracy of {row['model']} with the full database"
            yield _TEXTS.check(
                "low_start",
                sentence=say.rate(row, "full_accuracy", quantity, **_words(report)),
                survival=_given_full(report, row) if has_survival else "",
            )


def _check_rows(run: Run, name: str) -> list[dict[Any, Any]]:
    """Return the rows of a check; empty if the run does not have it."""
    return run.checks[name].to_dict("records") if name in run.checks else []


def _known(tables: Tables, *names: str) -> list[Table]:
    """Return the tables with these names that exist."""
    return [tables[name] for name in names if name in tables]


def _judging(run: Run, name: str) -> object:
    """Return an option of a run's scoring; None if it has none."""
    return None if run.scoring is None else run.scoring.settings.get(name)


def _setting(value: object) -> str:
    """Write a setting."""
    if isinstance(value, list):
        return "+".join(map(_setting, value))
    return "none" if value is None else str(value)


def _label(label: object) -> str:
    """Format a topology, prompt style or other label."""
    text = str(label).removesuffix("_questions").replace("fewshot", "few-shot")
    return text.replace("_", " ")


AUDIT_PAGE: Final = paired.PageSpec(
    tables=(audit_report_tables,),
    finding=_finding,
    sections=(
        _states,
        _squares,
        _judge,
        _origins,
        _traces,
        _numbers,
        _tests,
        _scores,
        partial(paired.answers_section, answer=_answer),
        partial(paired.checks_section, shown=_JUDGES),
    ),
    checks=(guard_checks, reply_checks, published_checks, judge_checks, limit_checks),
    facts=_facts,
    method=lambda report: _TEXTS.paragraphs("method", clusters=report.clusters, level=report.level),
    papers=_TEXTS,
)
"""Tables and page of audits."""
