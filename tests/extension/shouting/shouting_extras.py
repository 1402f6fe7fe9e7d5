"""A custom rule, runner and analysis."""

import os
import time

import pandas as pd
from shouting import FACTS

from surface_consistency.engine import Analysis
from surface_consistency.matching import ExactRule
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import Generation
from surface_consistency.tables.table import Column, Table


class VowelRule(ExactRule):
    """Scores an answer as correct if its vowels are those of a reference."""

    name = "vowels"

    def keys(self, texts):
        """Return the vowels of each text."""
        return ["".join(letter for letter in text.lower() if letter in "aeiou") for text in texts]


class DeafRunner(Runner):
    """Returns the capital, or only its first letter for a prompt with many exclamation marks."""

    name = "deaf"

    def __init__(self, model=None, *, deafness=2, wait=0.0):
        self.deafness, self.wait = deafness, wait

    def fingerprint(self):
        """Return the settings that change the answers."""
        return {"runner": self.name, "deafness": self.deafness}

    def plan(self, prompts, params):
        """Return batches of one prompt."""
        return ([prompt] for prompt in prompts)

    def generate(self, prompts, params):
        """Generate the answers; the option `wait` delays each one."""
        for prompt in prompts:
            time.sleep(self.wait)
            with open(os.environ.get("DEAF_LOG", os.devnull), "a") as log:
                log.write(prompt.id + "\n")
            answer = FACTS[prompt.id.rstrip("!")]
            is_lost = prompt.id.count("!") >= self.deafness + len(answer) % 2
            yield Generation(prompt_id=prompt.id, text=answer[0] if is_lost else answer)


class Loudness(Analysis):
    """Counts the pairs of each model."""

    name = "loudness"
    title = "Loudness"
    studies = ("shouting",)

    def tables(self, report, settings):
        """Return one table with the number of pairs per model."""
        frame = report.frame.groupby("model", as_index=False)["marks"].count()
        columns = [
            Column(key="model", title="Model"),
            Column(key="marks", title="Marks", kind="count"),
        ]
        return {"loudness": Table(frame=pd.DataFrame(frame), caption="Marks", columns=columns)}
