"""A custom study: does a model give the same answer if a question is in capital letters?"""

import pandas as pd

from surface_consistency.engine import Design, Plan, PromptGroup, Study, StudyRecords, StudySettings
from surface_consistency.schemas import DataSource, GenerationParams, PairedOutcome, Prompt

FACTS = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi"}
MARKS = ("!", "!!", "!!!")


class ShoutingSettings(StudySettings):
    """Settings of the study."""

    polite: bool = False
    """Whether every question begins with "please"."""


class ShoutingOutcome(PairedOutcome):
    """Outcome of a question in its quiet and in its shouted form."""

    marks: str
    """Exclamation marks of the shouted form."""


class ShoutingStudy(Study):
    """The same question, quiet and shouted."""

    name = "shouting"
    design = Design(
        title="Shouting",
        question="the same question, quiet and shouted",
        conditions=("quiet", "shouted"),
        groupings={"by_loudness": ("marks",)},
    )
    records = StudyRecords(settings=ShoutingSettings, outcome=ShoutingOutcome)

    def load(self, source):
        """Read a CSV file of countries and capitals, or return the bundled facts."""
        if source.source == "sample":
            return FACTS
        return dict(pd.read_csv(source.source)[["country", "capital"]].to_numpy())

    def plan(self, data, settings, *, runner=None):
        """Plan a quiet prompt per fact, and shouted ones with one to three exclamation marks."""
        start = "please, " if settings.polite else ""
        facts = list(data.items())[: settings.limit]
        asked = [
            (f"{country}{mark}", f"{start}what is the capital of {country}?{mark}", country)
            for country, _ in facts
            for mark in ("", *MARKS)
        ]
        prompts = [
            Prompt(id=name, text=text.upper() if "!" in name else text) for name, text, _ in asked
        ]
        targets = pd.DataFrame(asked, columns=["target_id", "question", "item"])
        targets["prompt_id"] = targets["target_id"]
        targets["references"] = [[data[country]] for country in targets["item"]]
        pairs = pd.DataFrame(
            [
                {
                    "pair": country + mark,
                    "item": country,
                    "marks": mark,
                    "first_target": country,
                    "second_target": country + mark,
                }
                for country, _ in facts
                for mark in MARKS
            ]
        )
        source = DataSource(id="facts", revision=None, digest=repr(facts), n_questions=len(asked))
        group = PromptGroup(prompts=prompts, params=GenerationParams())
        return Plan(data=source, groups={"": group}, items=targets, pairs=pairs)
