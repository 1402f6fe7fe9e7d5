"""Who answers and who analyses in the fault tests: always the same, by content alone."""

import zlib

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.report.table import Column, Table
from surface_consistency.schemas import Generation
from surface_consistency.studies import Analysis


class Echo:
    """Answers with one of a few words, chosen by the prompt; some rules find them right."""

    name = "echo"

    def __init__(self, model=None):
        answers = [one.triple.answers[0] for one in load_sample().select(limit=2).questions]
        self.words = [f"{answer}, I think" for answer in dict.fromkeys(answers)]

    def fingerprint(self):
        return {"runner": "echo"}

    def generate(self, prompts, params):
        for prompt in prompts:
            place = zlib.crc32(prompt.key.encode()) % len(self.words)
            yield Generation(prompt_id=prompt.id, text=self.words[place])


class Counting(Analysis):
    """How many pairs each run has."""

    name = "counting"
    title = "Counting"

    def tables(self, report, settings):
        frame = report.frame.groupby("model").size().rename("n").reset_index()
        columns = [Column(key="model", title="Model"), Column(key="n", title="n", kind="count")]
        return {"counting": Table(frame=frame, caption="Pairs", columns=columns)}
