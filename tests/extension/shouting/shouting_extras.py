"""A rule, a runner and an analysis of one's own."""

import os
import time

import pandas as pd
from shouting import FACTS

from surface_consistency.engine import Analysis
from surface_consistency.matching import ExactRule
from surface_consistency.schemas import Generation
from surface_consistency.tables.table import Column, Table


class VowelRule(ExactRule):
    """Right where the vowels are."""

    name = "vowels"

    def keys(self, texts):
        """Keep the vowels."""
        return ["".join(letter for letter in text.lower() if letter in "aeiou") for text in texts]


class DeafRunner:
    """Knows every capital; what is shouted loudly it answers by its first letter alone."""

    name = "deaf"

    def __init__(self, model=None, *, deafness=2, wait=0.0):
        self.deafness, self.wait = deafness, wait

    def fingerprint(self):
        """Tell how deaf it is."""
        return {"runner": self.name, "deafness": self.deafness}

    def plan(self, prompts, params):
        """Ask one prompt at a time."""
        return ([prompt] for prompt in prompts)

    def generate(self, prompts, params):
        """Answer, slowly if told."""
        for prompt in prompts:
            time.sleep(self.wait)
            with open(os.environ.get("DEAF_LOG", os.devnull), "a") as log:
                log.write(prompt.id + "\n")
            answer = FACTS[prompt.id.rstrip("!")]
            is_lost = prompt.id.count("!") >= self.deafness + len(answer) % 2
            yield Generation(prompt_id=prompt.id, text=answer[0] if is_lost else answer)


class Loudness(Analysis):
    """Counts marks."""

    name = "loudness"
    title = "Loudness"
    studies = ("shouting",)

    def tables(self, report, settings):
        """Count pairs by model."""
        frame = report.frame.groupby("model", as_index=False)["marks"].count()
        columns = [
            Column(key="model", title="Model"),
            Column(key="marks", title="Marks", kind="count"),
        ]
        return {"loudness": Table(frame=pd.DataFrame(frame), caption="Marks", columns=columns)}
