"""A runner that answers every prompt with "London"."""

from surface_consistency.models import Runner
from surface_consistency.schemas import Generation


class London(Runner):
    name = "london"

    def __init__(self, model=None):
        self.model = model

    def fingerprint(self):
        return {"runner": "london", "model": self.model}

    def generate(self, prompts, params):
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text="London")
