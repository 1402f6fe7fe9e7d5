"""A run whose model is written by hand: one head answers in one form, and none in another."""

import pandas as pd

from surface_consistency.engine import Design, Plan, PromptGroup, Study, run_study, score_run
from surface_consistency.models import FakeRunner
from surface_consistency.schemas import DataSource, GenerationParams, Prompt

SUBJECTS, OBJECTS = (*range(4), *range(11, 31)), (*range(4, 8), *range(31, 51))
WORDS = {8: "short", 9: "long", 10: "ask"}
WORDS |= {token: f"s{place}" for place, token in enumerate(SUBJECTS)}
WORDS |= {token: f"o{place}" for place, token in enumerate(OBJECTS)}

SILENT, KNOWN = "silent", "known"
"""Facts that the weights do not bear out: one that no head knows, and one known in both forms."""


def save_planted(path, *, noise=0.0):
    """Write the weights and their tokenizer: head 2 of layer 1 copies a subject to its object.

    It works where the text begins with "short", and reads the first word alone after "long". Noise
    of that standard deviation is added to all weights of the layers.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from tests.studies.mechanism.ablation.conftest import SHORT, planted

    vocabulary = {WORDS[token]: token for token in range(len(WORDS))}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="ask"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=raw).save_pretrained(path)
    objects = dict(zip(SUBJECTS, OBJECTS, strict=True))
    model = planted([(1, 2, SHORT)], objects=objects, width=128)
    torch.manual_seed(5)
    for weight in model.transformer.h.parameters():
        weight.data += noise * torch.randn_like(weight)
    model.save_pretrained(path)
    return path


class FormsStudy(Study):
    """A subject's object, asked in a short and in a long form."""

    name = "forms"
    design = Design(title="Forms", conditions=("short form", "long form"))

    def load(self, source):
        return [f"s{place}" for place in range(len(SUBJECTS))]

    def plan(self, data, settings, *, runner=None):
        rows = [
            (f"{fact}/{form}", f"{form} {fact} ask", fact, [fact.replace("s", "o")])
            for fact in data
            for form in ("short", "long")
        ]
        rows += [
            (f"{SILENT}/{form}", f"{form} ask ask", SILENT, ["o9"]) for form in ("short", "long")
        ]
        rows += [
            (f"{KNOWN}/short", "short s0 ask", KNOWN, ["o0"]),
            (f"{KNOWN}/long", "short s0 s0 ask", KNOWN, ["o0"]),
        ]
        items = pd.DataFrame(rows, columns=["target_id", "question", "fact_id", "answers"])
        items["prompt_id"] = items["target_id"]
        pairs = pd.DataFrame({"fact_id": items["fact_id"].unique()})
        pairs["pair_id"] = pairs["fact_id"]
        pairs["first_target"] = pairs["fact_id"] + "/short"
        pairs["second_target"] = pairs["fact_id"] + "/long"
        prompts = [Prompt(id=name, text=text) for name, text, *_ in rows]
        source = DataSource(id="forms", revision=None, digest="0", n_questions=len(rows))
        group = PromptGroup(prompts=prompts, params=GenerationParams(max_new_tokens=1))
        return Plan(data=source, groups={"": group}, items=items, pairs=pairs)


def right_answer(prompt):
    """Answer both forms right."""
    fact, _ = prompt.id.split("/")
    return {SILENT: " o9", KNOWN: " o0"}.get(fact, f" {fact.replace('s', 'o')}")


def answer_in_one_form(prompt):
    """Answer the short form as the planted head does, the long one with another word."""
    return right_answer(prompt) if prompt.id.endswith("short") else " ask"


def make_forms_run(folder, *, facts=None, answer=answer_in_one_form):
    """Ask, and judge; `facts` are how many of the subjects are asked for."""
    study = FormsStudy()
    made = run_study(
        study,
        study.load(None)[:facts],
        FakeRunner(answer),
        folder,
        model="planted",
        progress=False,
    )
    score_run(made, study=study)
    return made
