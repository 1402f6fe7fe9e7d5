"""A page with every kind of block and with hostile answers of models."""

import math
import random
from itertools import product

import pandas as pd

from surface_consistency.report import page as parts
from surface_consistency.report.page import Dot, ForestPlot, Page, Section
from surface_consistency.tables import Column, Table, interval_column
from surface_consistency.tables.numbers import Value

CONDITIONS = ("title", "redirect")
CELLS = ("right under both names", "title only", "redirect only", "wrong under both")
LONG = "an-organisation/a-model-with-a-very-long-name-that-goes-on-and-on_v0.1-instruct-ab"
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror=window.hacked=1>"
TEXTS = (
    ("東京", "とうきょう", "日本の首都はどこですか"),
    ("القدس", "مدينة القدس", "ما هي عاصمة البلاد؟"),
    (HOSTILE, "\x00\x1b[31mred\ud800", "Who wrote </textarea> & “Q<u>”?"),
    ("Stone Town", "Três Corações", "In what city was Freddie Mercury born?"),
)
TYPES = {
    "alternatives": ("Alternative names and abbreviations", 70),
    "spelling": ("Spelling variants", 53),
    "errors": ("Typical errors", 27),
}
CATEGORIES = {
    "alternatives": (
        ("from birth names", 16), ("from long names", 16), ("from alternative names", 15),
        ("from former names", 9), ("from short names", 9), ("from personal names", 4),
    ),
    "spelling": (("from modifications", 15), ("from numerals", 9), ("with diacritics", 3)),
    "errors": (("from misspellings", 16), ("from miscapitalisations", 9)),
}  # fmt: skip
COUNTS = ((126, 34, 0, 36), (39, 15, 3, 139), (80, 20, 10, 86), (0, 0, 0, 0))
LABELS = ("toy_model", "SmolLM2-135M-it", LONG, "nothing-answered")
LABELS += tuple(f"run-{n}" for n in range(5, 51))


def flip(count: int, n: int, *, low: float = 0.6, high: float = 1.5) -> Value:
    rate = count / n if n else float("nan")
    return Value(value=rate, low=rate * low, high=min(1.0, rate * high))


def interval(value: float, low: float, high: float, kind: str = "rate", **more: str) -> Value:
    return Value(value=value, low=low, high=high, kind=kind, **more)


def squares(n_models: int, *, size: str = "figure") -> parts.MosaicPlots:
    found = []
    for index, label in enumerate(LABELS[:n_models]):
        counts = COUNTS[index % len(COUNTS)]
        n, same = sum(counts), counts[0] + counts[3]
        facts = [
            ("same label", flip(same, n, low=0.9, high=1.05), ""),
            ("redirect minus title", interval(-0.173, -0.231, -0.121, "difference"), ""),
            ("kappa", interval(0.58, 0.41, 0.70, "number"), ""),
            ("flips lean to one side", Value(value=2e-5, kind="p_value"), "Obuchowski"),
        ]
        cells = dict(zip(("both", "first_only", "second_only", "neither"), counts, strict=True))
        model = {"title": label, "model": index, "filters": {"model": label}}
        found.append(parts.MosaicPlot(**model, **cells, facts=facts))
    difference = interval(-0.082, -0.153, -0.01, "difference", tone="strong")
    p_value = Value(value=0.032, kind="p_value")
    note = ["On the same pairs SmolLM2-135M-it flips ", difference]
    note += [" against toy_model (", p_value, ")."]
    shown = {"conditions": CONDITIONS, "cells": CELLS, "size": size, "note": note}
    return parts.MosaicPlots(squares=found, **shown)


def dots(n_models: int, *, has_noise: bool = True) -> ForestPlot:
    rng = random.Random(0)

    def group(n: int) -> list[Dot]:
        found = []
        for index in range(n_models):
            count = rng.randrange(0, max(1, n // 3))
            value = flip(count, n) if count else Value(value=0.0, low=0.0, high=0.0)
            found.append(Dot(model=index, value=value, n=2 * n, n_clusters=n, is_certain=count > 8))
        return found

    rows = [("All pairs", 0, group(96))]
    for kind, (title, n) in TYPES.items():
        rows.append((title, 0, group(n)))
        rows += [(name, 1, group(size)) for name, size in CATEGORIES[kind]]
    noise = {0: 0.013, 1: 0.07} if n_models > 1 else {0: 0.013}
    names = {"name": "flips-by-type", "title": "Types and categories", "axis": "flip rate, %"}
    note = "A pair with several labels counts in each."
    return ForestPlot(**names, rows=rows, noise=noise if has_noise else {}, note=note)


def group_table(n_models: int, *, by: str = "type") -> Table:
    rng = random.Random(1)
    groups = [(key, n) for key, (_, n) in TYPES.items()]
    if by == "category":
        groups = [found for part in CATEGORIES.values() for found in part]
    cells = ("both", "first_only", "second_only", "neither")
    bounds = [
        f"{name}{end}" for name in ("flip_rate", "difference") for end in ("", "_low", "_high")
    ]
    rows = []
    for label, n in groups:
        for model in LABELS[:n_models]:
            first = rng.randrange(0, n)
            rate = 0.0 if first == 0 else n / (2 * n + first)
            flips = (rate, rate * 0.7, min(1.0, rate * 1.3), -rate / 2, -rate, rate / 4)
            p_value = math.nan if n < 5 else rng.random() ** 6
            rows.append(
                (label, model, 2 * n + first, n, n, first, n - first, first, *flips, p_value)
            )
    names = [by, "model", "n", "n_clusters", *cells, *bounds, "p_value"]
    columns = [
        Column(key=by, title=by.capitalize(), labels={k: t for k, (t, _) in TYPES.items()}),
        Column(key="model", title="Model"),
        Column(key="n", title="Pairs", kind="count"),
        Column(key="n_clusters", title="Facts", kind="count", on_phones=False),
        Column(key="square", title="Square", kind="square", cells=cells),
        interval_column("flip_rate", "Flips", "rate", "%", direction="lower"),
        interval_column("difference", "Difference", "difference", "points", direction="higher"),
        Column(key="p_value", title="p", kind="p_value", unit="Holm"),
    ]
    caption = "Types" if by == "type" else "Categories"
    options = {"note": "p is Obuchowski’s clustered McNemar test.", "cluster_column": "n_clusters"}
    frame = pd.DataFrame(rows, columns=names)
    return Table(frame=frame, caption=caption, columns=columns, **options)


def answers(n_models: int, n: int = 60, *, length: int = 0) -> parts.Answers:
    names = ("first_only", "second_only", "both", "neither", "missing")
    correct = {"first_only": (True, False), "second_only": (False, True), "both": (True, True)}
    relations = ("occupation", "place of birth", "capital")
    kinds = ("from long names", "from birth names")
    found = []
    for index, place in product(range(n_models), range(n)):
        gold, other, question = TEXTS[place % len(TEXTS)]
        cell = names[place * len(names) // n]
        first, second = (gold if one else other for one in correct.get(cell, (False, False)))
        one = parts.Answer(
            model=index,
            pair=f"Q{place}/P106 {'x' * (place % 3)}",
            cell=cell,
            question=question + " la" * length,
            surfaces=("Freddie Mercury", "Farrokh Bulsara"),
            answers=(first, None if cell == "missing" else second),
            accepted=(gold, "a", "b", "c", "d"),
            labels={"relation": [relations[place % 3]], "type": [kinds[place % 2]]},
            note="copied from the prompt" if place % 7 == 0 else "",
        )
        found.append(one)
    n_pairs = dict.fromkeys(range(n_models), 10 * n)
    shown = {"conditions": CONDITIONS, "cells": CELLS, "filters": ("relation", "type")}
    return parts.Answers(answers=found, n_pairs=n_pairs, **shown)


def curves(name: str = "slots", *, has_band: bool = False) -> parts.Lines:
    rates = (0.778, 0.519, 0.481, 0.358, 0.173)
    points = [
        parts.Point(
            x=float(place + 1),
            value=interval(rate, max(0.0, rate - 0.08), rate + 0.08),
            n=[40, 28, 13, 6, 2][place] if has_band else None,
        )
        for place, rate in enumerate(rates)
    ]
    xs = (1.0, 2.0, 3.0, 4.0, 5.0) if has_band else ()
    return parts.Lines(
        name=name,
        title="After a run of right slots" if has_band else "Right in the long answer, by slot",
        x_title="slot in the long query",
        series=[parts.Series(label="toy_model", model=0, points=points)],
        band=[(x, 0.3 - x / 20, 0.5, 0.6 + x / 15) for x in xs],
        reference=None if has_band else ("asked alone", interval(0.852, 0.774, 0.922)),
        facts=[("slope a slot", interval(-0.137, -0.161, -0.112, "difference"), "")],
    )


def flow() -> parts.AlluvialPlot:
    return parts.AlluvialPlot(
        name="states",
        title="Three states of memory",
        states=[
            ("FULL", "database whole", interval(222 / 1080, 0.15, 0.264)),
            ("DEL-ON", "fact deleted", interval(73 / 1080, 0.036, 0.103)),
            ("DEL-OFF", "and retrieval off", interval(0.0, 0.0, 0.021)),
        ],
        counts={(True, True, False): 73, (True, False, False): 149, (False, False, False): 858},
        note="Height is the number of prompts.",
    )


def origins() -> parts.StackedBars:
    names = ("both right", "retrieval only", "parameters only", "neither", "other")
    cells = ("both", "first_only", "second_only", "neither", "other")
    return parts.StackedBars(
        name="origins",
        title="Where the survivors came from",
        parts=list(zip(names, cells, strict=True)),
        rows=[("toy_model", 0, (30, 40, 20, 100, 1)), ("none", None, (0, 0, 0, 0, 0))],
    )


def trace() -> parts.Trace:
    gold, other = "Brazil · Currency · Brazilian Real", "Central Bank of Brazil · Brazilian Real"
    full = [("1.00", gold, "selected"), ("0.79", "Central Bank of Brazil", "")]
    deleted = [("1.00", gold, "deleted"), ("0.79", other, "selected")]
    return parts.Trace(
        title="What currency does Brazil use?",
        facts=[("gold", "Brazilian Real"), ("deleted", "Brazil · Currency")],
        steps=[
            ("FULL", "looks up Brazil, Currency", full, "Brazilian Real", True),
            ("DEL-ON", "the same lookup, 1 entry deleted", deleted, "Brazilian Real", True),
            ("DEL-OFF", "no lookup allowed", [], "unknown", False),
        ],
        note="Read from another entry: the deletion left it in reach.",
    )


def matrix() -> parts.Matrix:
    cells = [
        ("Joseph Weizenbaum", "stated", "both"),
        ("Carl Rogers", "never correct", "neither"),
        ("Eliza Doolittle", "lost", "first_only"),
        ("DOCTOR", "gained", "second_only"),
        ("MIT", "not scored", ""),
    ]
    return parts.Matrix(
        title="One topic in five orders",
        columns=[f"slot {place}" for place in range(1, 6)],
        rows=[(f"order {order}", cells) for order in range(1, 4)],
    )


def part(anchor: str, title: str, *blocks: parts.Block, lead: str = "") -> Section:
    return Section(anchor=anchor, title=title, blocks=blocks, lead=[lead] if lead else [])


def sections(n_models: int, *, has_noise: bool = True, has_all: bool = True) -> list[Section]:
    lead = "Area is share. Choose a cell to read its answers."
    first = part("squares", "The same fact, asked under both names", squares(n_models), lead=lead)
    tables = group_table(n_models), group_table(n_models, by="category")
    found = [
        part("flips", "Where verdicts flip", dots(n_models, has_noise=has_noise)),
        part("numbers", "The numbers by group", *tables),
        part("answers", "Read the answers", answers(n_models)),
    ]
    if not has_all:
        return [first, *found]
    small = squares(min(n_models, 4), size="small")
    prose = parts.Prose(parts=["Altogether ", Value(value=14489, kind="count"), " pairs."])
    return [
        first,
        part("taught", "What toy_model was taught", small),
        *found,
        part("slots", "Alone and among five", curves(), curves("momentum", has_band=True)),
        part("states", "Three states", flow(), origins(), trace(), matrix(), prose),
    ]


def page(n_models: int = 2, *, has_noise: bool = True, has_all: bool = True) -> Page:
    finding = parts.Finding(
        sentence=[
            "A redirect in place of the title flips ",
            interval(34 / 196, 0.121, 0.231, tone="lost"),
            " of toy_model’s verdicts, ",
            interval(18 / 196, 0.05, 0.139, tone="lost"),
            " of SmolLM2-135M-it’s.",
        ],
        summary=[
            "All 34 flips of toy_model go from right to wrong: it answers ",
            Value(value=160 / 196, tone="strong"),
            " under the title. Identical prompts asked twice flip ",
            interval(0.0, 0.0, 0.013, tone="strong"),
            ".",
        ],
        definition="A pair is one item (fact) under two conditions; a flip has one correct answer.",
        warning="A small model trained for this demo: the numbers say nothing about a model.",
        facts=[("data", "redirectqa-sample"), ("pairs", "196 on 96 facts")],
    )
    noise = ["Identical prompts flip up to ", Value(value=0.07), "."]
    return Page(
        title="RedirectQA: toy_model, SmolLM2-135M-it",
        study="RedirectQA",
        question="the same fact under its article’s title and under a redirect to it",
        models=LABELS[:n_models],
        finding=finding,
        sections=sections(n_models, has_noise=has_noise, has_all=has_all),
        checks=[
            parts.Check(level="ok", title="All judged", text=["Every pair has both verdicts."]),
            parts.Check(level="warning", title="Near the noise", text=noise, anchor="flips"),
            parts.Check(level="warning", title="Near the noise", text=["And once more."]),
        ],
        provenance=[
            parts.Provenance(
                label=label,
                settings={"data": "redirectqa-sample", "shots": str(3 + index)},
                command=f"surface-consistency run redirectqa --model {label}",
                signature="study:redirectqa|data:redirectqa-sample@5fdcce94e877|n:292",
            )
            for index, label in enumerate(LABELS[:n_models])
        ],
        method=["Every pair asks one fact twice.", "Brackets are 95 % intervals; p < 0.05 & so."],
        citation="@article{a_paper,\n  title = {A paper}\n}",
    )
