"""Toy models whose facts are taken out: taught from scratch, then tuned by a few steps.

Subjects have two names and are asked in three wordings; what each model saw is set. Unlearning is
no part of the package: the loops here stand for the tools that do it.
"""

from itertools import product
from random import Random

import pandas as pd

from surface_consistency.engine.toy_models import Segment, TrainingSettings, train_on_examples
from surface_consistency.studies.unlearning.questions import COLUMNS

RELATIONS = ("home", "trade", "prize")
WORDINGS = {
    "": "{relation} of {name}",
    "reworded": "{name} and the {relation}",
    "long": "all ask here which {relation} {name} has",
}
SYLLABLES = [a + b + c for a, b, c in product("bdgk", "aeou", "nl")]
OBJECTS = {relation: [relation[:2] + one for one in SYLLABLES] for relation in RELATIONS}
UNKNOWN = "nothing"
TEMPLATE = "{question}:"
_SYLLABLES = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]


def toy_rows(*, n_subjects, n_forgotten, seed):
    """Facts in six forms; the first subjects should be forgotten, the others kept."""
    random = Random(seed)
    names = ["".join(random.sample(_SYLLABLES, 3)).capitalize() for _ in range(2 * n_subjects)]
    rows = []
    for number in range(n_subjects):
        of_set = "forget" if number < n_forgotten else "retain"
        for relation in RELATIONS:
            answer = random.choice(OBJECTS[relation])
            for (wording, text), other in product(WORDINGS.items(), (False, True)):
                name = names[2 * number + other]
                form = ", ".join(filter(None, ("name" if other else "", wording))) or "plain"
                question = text.format(relation=relation, name=name)
                fact = f"{number} {relation}"
                rows.append((of_set, form, fact, f"subject {number}", question, [answer]))
    return pd.DataFrame(rows, columns=COLUMNS)


def prompt_of(question):
    """The prompt as the study writes it."""
    return TEMPLATE.replace("{question}", question)


def lessons(rows, answer=None):
    """Texts of the training: what stands there, and what is learned."""
    return [
        (Segment(prompt_of(row.question), False), Segment(f" {answer or row.answers[0]}", True))
        for row in rows.itertuples()
    ]


def teach(rows, folder, *, steps, seed, vocabulary):
    """Train a model from scratch."""
    settings = TrainingSettings(steps=steps, seed=seed, vocabulary_size=700, context=128)
    return train_on_examples(lessons(rows), folder, settings, vocabulary=vocabulary)


def tune(source, folder, taught, taken=(), *, steps, seed, rate=1e-3):
    """Go on with a model: learn some texts, and climb the loss of others."""
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random = Random(seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)

    def loss_of(examples):
        texts = [[tokenizer(part.text)["input_ids"] for part in one] for one in examples]
        ends = [tokenizer.eos_token_id]
        ids = [torch.tensor(read + learned + ends) for read, learned in texts]
        labels = [torch.tensor([-100] * len(read) + learned + ends) for read, learned in texts]
        pad = torch.nn.utils.rnn.pad_sequence
        mask = pad([torch.ones_like(one) for one in ids], batch_first=True)
        logits = model(input_ids=pad(ids, batch_first=True), attention_mask=mask).logits
        target = pad(labels, batch_first=True, padding_value=-100)[:, 1:]
        losses = torch.nn.functional.cross_entropy(
            logits[:, :-1].transpose(1, 2), target, ignore_index=-100, reduction="none"
        )
        return losses[target != -100]

    model.train()
    for _ in range(steps):
        loss = loss_of(random.sample(taught, min(32, len(taught)))).mean()
        if taken:
            # Beyond the loss of a guess there is nothing more to take away.
            climbed = loss_of(random.sample(taken, min(32, len(taken))))
            loss = loss - torch.clamp(climbed, max=6.0).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def toy_models(rows, home, *, steps, tuning, seed):
    """All models of the proof, by name."""
    forget, retain = (rows[rows["set"] == one] for one in ("forget", "retain"))
    plain = forget[forget["form"] == "plain"]
    texts = [prompt_of(question) for question in rows["question"]]
    words = [f" {word}" for words in OBJECTS.values() for word in (*words, UNKNOWN)]
    vocabulary = [*texts, *words]
    options = {"steps": steps, "vocabulary": vocabulary}
    original = teach(rows, home / "original", seed=seed, **options)
    reference = teach(retain, home / "reference", seed=seed, **options)
    retrained = teach(retain, home / "retrained", seed=seed + 1, **options)
    kept, own = lessons(retain), lessons(plain, UNKNOWN)
    other = forget[forget["form"].str.startswith("name")]
    same = forget[~forget["form"].str.startswith("name")]
    refusal = own * (1 + len(kept) // len(own))
    tuned = {
        "refusal": (refusal + kept, (), tuning),
        "other name kept": (lessons(other) * 2 + lessons(same, UNKNOWN) * 4 + kept, (), 4 * tuning),
        "ascent": (kept, lessons(forget), tuning),
    }
    models = {"original": original}
    for name, (taught, taken, steps_of_model) in tuned.items():
        folder = home / name.replace(" ", "_")
        models[name] = tune(original, folder, taught, taken, steps=steps_of_model, seed=seed)
    return models | {"retrained": retrained, "reference": reference}
