"""Planted frequencies: two worlds that a corpus cannot distinguish.

Both worlds have the same mentions of the same names. In the world "surface" a fact is told under
a name in a proportion of the mentions of that name; in the world "entity" under each name in a
proportion of the mentions of the entity. So accuracy follows the frequency of the surface in the
one, of the entity in the other, and the analysis has to find out which.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, Literal, get_args

import numpy as np
import pandas as pd
from surface_consistency_build.counting.runs import CorpusSettings, CountRun
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.tasks import NameTask

from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.errors import DataError
from surface_consistency.metrics import frequency_analysis
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import Entity, FactualTriple, QuestionRealization, SurfaceForm
from surface_consistency.studies.redirectqa.instances import instance_rows

World = Literal["surface", "entity"]
"""What the number of times that a fact is told under a name follows."""

WORLDS: Final[tuple[World, ...]] = get_args(World)
"""The worlds."""

_FEWEST, _MOST = 6, 300
_TOLD_OF_SURFACE, _TOLD_OF_ENTITY = 0.3, 0.12
_LEAST_SHARE = 0.12
_RECALL: Final = (1.8, 2.2)
_CONFUSED: Final = 0.5
_SENTENCES_A_DOCUMENT: Final = 5
_CATEGORY: Final = "Redirects_from_alternative_names"
_ASKED: Final = {
    "genre": "What genre is {}?",
    "capital": "What is the capital of {}?",
    "color": "What color is {}?",
    "sport": "What sport does {} play?",
}
_ONSETS: Final = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr")
_VOWELS: Final = ("a", "e", "i", "o", "u")
_FILLERS: Final = ("{} was seen.", "They spoke of {}.", "Then came {} again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedName:
    """A name of an entity, and how often the text has it."""

    entity_id: str
    """The entity."""

    surface: str
    """The name."""

    role: Literal["canonical", "redirect", "alias"]
    """The first two are asked with; an "alias" is a name that two entities share."""

    n_mentions: int
    """Mentions of the entity under this name."""


@dataclass(frozen=True, eq=False)
class FrequencyPlan:
    """Names, how often each is mentioned, and the questions about their entities."""

    names: tuple[PlantedName, ...]
    """The names; one that two entities share stands twice."""

    data: RedirectQA
    """A question a fact and asked name."""

    seed: int
    """Seed of the order of the text."""

    def table(self) -> SurfaceTable:
        """Return the names as they are counted; answers keep them apart from other words."""
        rows = [(name.entity_id, name.surface, name.role) for name in self.names]
        return SurfaceTable.from_records(rows)

    def sentences(self, world: World) -> list[str]:
        """Write the text of a world.

        Args:
            world: What telling follows.

        Returns:
            One sentence a mention, in the order of the names: solved questions where the fact is
            told, other sentences where it is not.
        """
        totals: dict[str, int] = {}
        for name in self.names:
            totals[name.entity_id] = totals.get(name.entity_id, 0) + name.n_mentions
        asked = {(q.triple.subject.id, q.surface.text): q for q in self.data.questions}
        written = []
        for name in self.names:
            question = asked.get((name.entity_id, name.surface))
            told = 0
            if question is not None:
                follows = (
                    _TOLD_OF_SURFACE * name.n_mentions
                    if world == "surface"
                    else _TOLD_OF_ENTITY * totals[name.entity_id]
                )
                told = min(round(follows), name.n_mentions)
                written += [f"Q: {question.question} A: {question.triple.answers[0]}"] * told
            written += [
                _FILLERS[k % len(_FILLERS)].format(name.surface)
                for k in range(name.n_mentions - told)
            ]
        return written

    def write_corpus(self, path: str | os.PathLike[str], world: World) -> None:
        """Write the text of a world as JSON lines, some sentences a document, in mixed order.

        Args:
            path: The file; its folder must exist.
            world: What telling follows.
        """
        sentences = self.sentences(world)
        Random(self.seed).shuffle(sentences)
        lines = [
            json.dumps({"text": "\n".join(sentences[k : k + _SENTENCES_A_DOCUMENT])})
            for k in range(0, len(sentences), _SENTENCES_A_DOCUMENT)
        ]
        write_text(path, "".join(f"{line}\n" for line in lines))


def plan_frequencies(n_entities: int = 120, *, seed: int = 0) -> FrequencyPlan:
    """Draw names of made-up entities and how often each is mentioned.

    The mentions of entities are log-uniform from 6 to 300; those of an entity's title and redirect
    are shares of them, drawn apart. Half of the entities share a third name with another one.

    Args:
        n_entities: Entities, 8 or more.
        seed: Seed of names, frequencies and answers.

    Returns:
        The plan.

    Raises:
        ValueError: If there are fewer entities.
    """
    if n_entities < 8:
        raise ValueError(f"n_entities must be 8 or more, got {n_entities}")
    random, rng = Random(seed), np.random.default_rng(seed)
    words = _words(4 * n_entities + 12 * len(_ASKED), random)
    totals = np.exp(rng.uniform(np.log(_FEWEST), np.log(_MOST), n_entities)).round().astype(int)
    answers = {relation: [words.pop().lower() for _ in range(12)] for relation in _ASKED}
    n_sharing = n_entities // 2 // 2 * 2
    shared = [words.pop() for _ in range(n_sharing // 2)]
    names: list[PlantedName] = []
    questions: list[QuestionRealization] = []
    for number, total in enumerate(totals.tolist()):
        entity, relation = f"Q{number + 1}", list(_ASKED)[number % len(_ASKED)]
        title, redirect = f"{words.pop()} {words.pop()}", words.pop()
        third = shared[number // 2] if number < n_sharing else None
        shares = rng.dirichlet([1.0, 1.0, 0.5] if third else [1.0, 1.0])
        shares = _LEAST_SHARE + (1 - shares.size * _LEAST_SHARE) * shares
        own = np.maximum(1, np.floor(total * shares)).astype(int).tolist()
        given = zip((title, redirect, third), ("canonical", "redirect", "alias"), own, strict=False)
        names += [
            PlantedName(entity_id=entity, surface=str(name), role=role, n_mentions=n)  # type: ignore[arg-type]
            for name, role, n in given
        ]
        questions += _questions(entity, relation, title, redirect, random.choice(answers[relation]))
    data = RedirectQA.from_questions(questions, source="planted")
    return FrequencyPlan(tuple(names), data, seed)


def _questions(
    entity: str, relation: str, title: str, redirect: str, answer: str
) -> list[QuestionRealization]:
    """Ask a fact under both names."""
    triple = FactualTriple(
        id=f"{entity}-{relation}",
        subject=Entity(id=entity, name=title, aliases=(redirect,)),
        relation=relation,
        object=Entity(id=f"A-{answer}", name=answer),
        answers=(answer,),
    )
    forms = (
        SurfaceForm(text=title, is_canonical=True),
        SurfaceForm(text=redirect, is_canonical=False, categories=(_CATEGORY,)),
    )
    return [
        QuestionRealization(
            id=f"{triple.id}-{form.text}",
            triple=triple,
            surface=form,
            template="original",
            question=_ASKED[relation].format(form.text),
        )
        for form in forms
    ]


def _words(n: int, random: Random) -> list[str]:
    """Make up distinct words of two or three syllables, with a capital."""
    made: dict[str, None] = {}
    while len(made) < n:
        parts = [
            random.choice(_ONSETS) + random.choice(_VOWELS) for _ in range(random.randint(2, 3))
        ]
        made["".join(parts).capitalize()] = None
    return list(made)


def planted_instances(plan: FrequencyPlan) -> pd.DataFrame:
    """Give each asked name its planted frequencies.

    Args:
        plan: The plan.

    Returns:
        Rows as of `instance_table`, measure "planted": the frequency of the entity counts its
        mentions under a shared name and not those of the other entity.
    """
    return _instances(plan, [name.n_mentions for name in plan.names], "planted")


def linked_instances(plan: FrequencyPlan, *, seed: int, measure: str = "linked") -> pd.DataFrame:
    """Degrade the planted frequencies as a linker does.

    Each name is found with a recall of its own, drawn around 0.45, and half of the mentions of the
    other entity that are found under a shared name are taken for this one's.

    Args:
        plan: The plan.
        seed: Seed of the linker: another one errs elsewhere.
        measure: What the column `measure` says.

    Returns:
        Rows as of `planted_instances`.
    """
    rng = np.random.default_rng(seed)
    true = np.array([name.n_mentions for name in plan.names])
    found = rng.binomial(true, rng.beta(*_RECALL, true.size))
    owners: dict[str, list[int]] = {}
    for place, name in enumerate(plan.names):
        owners.setdefault(name.surface, []).append(place)
    linked = found.copy()
    for places in owners.values():
        if len(places) == 2:
            first, second = places
            moved = rng.binomial(found[[first, second]], _CONFUSED)
            linked[first] += moved[1] - moved[0]
            linked[second] += moved[0] - moved[1]
    return _instances(plan, linked.tolist(), measure)


def _instances(plan: FrequencyPlan, mentions: Sequence[int], measure: str) -> pd.DataFrame:
    """Sum mentions by entity and put them beside those of each asked name."""
    of_name: dict[tuple[str, str], int] = {}
    of_entity: dict[str, int] = {}
    for name, n in zip(plan.names, mentions, strict=True):
        of_name[name.entity_id, name.surface] = n
        of_entity[name.entity_id] = of_entity.get(name.entity_id, 0) + n
    rows = instance_rows(plan.data.questions)
    keys = zip(rows["subject_id"], rows["surface"], strict=True)
    return rows[["fact_id", "surface_id", "is_canonical"]].assign(
        entity_frequency=rows["subject_id"].map(of_entity),
        surface_frequency=[of_name[key] for key in keys],
        measure=measure,
    )


def count_plan(
    plan: FrequencyPlan, world: World, folder: str | os.PathLike[str]
) -> tuple[Path, pd.DataFrame]:
    """Write the text of a world, count its names, and hold the counts against the plan.

    Args:
        plan: The plan.
        world: What telling follows.
        folder: Where; corpus.jsonl and the folder counts are written.

    Returns:
        The folder of the counts, and its table of names.

    Raises:
        DataError: If a name stands in the text another number of times than planned; names it.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    corpus = home / "corpus.jsonl"
    if not corpus.is_file():
        plan.write_corpus(corpus, world)
    task = NameTask(plan.table(), instances=instance_rows(plan.data.questions))
    run = CountRun.plan(home / "counts", task, CorpusSettings(corpus=(str(corpus),), shards=1))
    run.run_all(n_workers=1)
    run.merge()
    counts = pd.read_parquet(home / "counts" / "surfaces.parquet")
    planned: dict[str, int] = {}
    for name in plan.names:
        planned[name.surface] = planned.get(name.surface, 0) + name.n_mentions
    for surface, n_bounded, n_longest in zip(
        counts["surface"], counts["n_bounded"], counts["n_longest"], strict=True
    ):
        if not n_bounded == n_longest == planned[surface]:
            raise DataError(
                f"{surface!r} is planned {planned[surface]} times and stands {n_bounded} times in "
                f"{corpus}, {n_longest} times outside longer names; delete the folder, and plan "
                "with another seed"
            )
    return home / "counts", counts


def world_table(plan: FrequencyPlan, answers: pd.DataFrame, counts: Path) -> pd.DataFrame:
    """Hold the answers of a toy model against planted, counted and linked frequencies.

    Args:
        plan: The plan.
        answers: Accuracy of each surface instance: surface_id, accuracy.
        counts: Folder of the counts.

    Returns:
        One row a frequency ("planted"; "counted", strings, a shared name whole to both its
        entities; "linked", by a simulated linker of recall 0.45): n, and the two partial
        correlations of all names with their intervals.
    """
    counted = pd.read_parquet(counts / "instances.parquet")
    measured = {
        "planted": planted_instances(plan),
        "counted": counted[counted["measure"] == "longest"],
        "linked": linked_instances(plan, seed=plan.seed + 101),
    }
    rows = []
    for name, frequencies in measured.items():
        frame = frequencies.merge(answers, on="surface_id")
        rows.append(_partials(name, frequency_analysis(frame)))
    return pd.DataFrame(rows)


def _partials(frequencies: str, table: pd.DataFrame) -> dict[str, object]:
    """Take the partial correlations of all names."""
    rows = table[table["subset"] == "overall"].set_index("statistic")
    made: dict[str, object] = {"frequencies": frequencies}
    for statistic in ("entity_given_surface", "surface_given_entity"):
        row = rows.loc[statistic].to_dict()
        made["n"] = int(row["n"])
        made[statistic] = row["estimate"]
        made[f"{statistic}_low"] = row["estimate_low"]
        made[f"{statistic}_high"] = row["estimate_high"]
    return made
