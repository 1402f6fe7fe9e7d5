"""Runners and an analysis of the fault tests; their results depend only on the content."""

import json
import zlib

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine import Analysis
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import Generation
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.tables.table import Column, Table


class Echo(Runner):
    """Returns one of a few answers, selected by a hash of the prompt; some are correct."""

    name = "echo"

    def __init__(self, model=None):
        answers = [
            one.triple.answers[0] for one in load_redirectqa("sample").select(limit=2).questions
        ]
        self.words = [f"{answer}, I think" for answer in dict.fromkeys(answers)]

    def fingerprint(self):
        return {"runner": "echo"}

    def generate(self, prompts, params):
        for prompt in prompts:
            place = zlib.crc32(prompt.key.encode()) % len(self.words)
            yield Generation(prompt_id=prompt.id, text=self.words[place])


class Yes(Runner):
    """Answers "yes" to every prompt."""

    name = "yes"

    def __init__(self, model=None):
        pass

    def fingerprint(self):
        return {"runner": "yes"}

    def plan(self, prompts, params):
        return ([prompt] for prompt in sorted(prompts, key=lambda prompt: prompt.id))

    def generate(self, prompts, params):
        return (Generation(prompt_id=prompt.id, text="yes") for prompt in prompts)


class Writer(Runner):
    """Writes the topics of the sample of SLAQ, and paraphrases of questions of RedirectQA."""

    name = "writer"

    def __init__(self, model=None):
        self.topics = {one.id: one for one in load_slaq("sample").topics}
        self.questions = [one.question for one in load_redirectqa("sample").questions]

    def fingerprint(self):
        return {"runner": "writer"}

    def generate(self, prompts, params):
        for prompt in prompts:
            topic = self.topics.get(prompt.id.split("/")[0])
            text = self.paraphrase(prompt) if topic is None else self.topic(topic)
            yield Generation(prompt_id=prompt.id, text=text)

    def paraphrase(self, prompt):
        request = prompt.messages[-1].content
        return "1. Tell me, " + next(one for one in self.questions if one in request)

    def topic(self, topic):
        written = {"LongQ": topic.long_question, "LongA": topic.long_answer}
        for one in topic.questions:
            written[f"ShortQ{one.index}"], written[f"ShortA{one.index}"] = one.question, one.answer
            written[f"ShortQ{one.index}_Entity"] = int(one.is_entity)
        return json.dumps(written)


class Scorer(Runner):
    """Returns a log-probability for each text, which depends only on its content."""

    name = "scorer"

    def __init__(self, model=None):
        pass

    def fingerprint(self):
        return {"runner": "scorer"}

    def generate(self, prompts, params):
        raise AssertionError("a scorer does not generate")

    def score(self, requests):
        for request in requests:
            value = -(zlib.crc32(f"{request.context}{request.continuation}".encode()) % 97) / 7
            yield ScoredText(request_id=request.id, token_ids=(1,), log_probabilities=(value,))


class Counting(Analysis):
    """Counts the pairs of each run."""

    name = "counting"
    title = "Counting"

    def tables(self, report, settings):
        frame = report.frame.groupby("model").size().rename("n").reset_index()
        columns = [Column(key="model", title="Model"), Column(key="n", title="n", kind="count")]
        return {"counting": Table(frame=frame, caption="Pairs", columns=columns)}
