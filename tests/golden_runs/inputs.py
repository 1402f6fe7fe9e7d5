"""Scripted models and small inputs that do not depend on the code that runs a study.

Answers depend only on the content of the prompt. They are therefore the same in any order of the
prompts and for any batch size.
"""

import hashlib
import json
import re

from surface_consistency.models.runner import Runner


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that depends only on the content."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


class Scripted(Runner):
    """A runner with answers of a function of the prompt and of whether the prompt is a repeat.

    An answer of None is a failed request.
    """

    def __init__(self, name, answer, *, again=False):
        self.name, self._answer, self._again = name, answer, again

    def fingerprint(self):
        return {"runner": "scripted", "name": self.name, "again": self._again}

    def rebatched(self, seed):
        return type(self)(self.name, self._answer, again=True)

    def generate(self, prompts, params):
        from surface_consistency.schemas import Generation

        for prompt in prompts:
            text = self._answer(prompt, self._again)
            failed = {} if text is not None else {"finish_reason": "error", "error": "no luck"}
            yield Generation(prompt_id=prompt.id, text=text, **failed)


def redirect_model(name, questions, *, knows, fails=0.0):
    """Return a model that knows a proportion of the facts, mostly under all their names.

    Some of its answers are different when a prompt is repeated.
    """
    by_id = {question.id: question for question in questions}
    others = [question.triple.answers[0] for question in questions]

    def answer(prompt, again):
        question = by_id[prompt.id]
        key = (name, question.triple.id, question.question)
        if chance("fails", *key) < fails:
            return None
        draw = "again" if again and chance("turns", *key) < 0.15 else "first"
        is_correct = chance(name, question.triple.id) < knows
        if chance("slips", draw, *key) < 0.25:
            is_correct = not is_correct
        other = others[int(chance("other", *key) * len(others))]
        accepted = question.triple.answers
        alias = accepted[int(chance("alias", *key) * len(accepted))]
        shape = int(chance("shape", *key) * 6)
        generated = alias if is_correct else (other, "I do not know", "", alias[:-1])[shape % 4]
        before = "It is " if shape == 1 else ""
        after = ("", ".", f", not {other}", "\nQ: What else?", "s", f" or\n{alias}")[shape]
        return f"{before}{generated}{after}"

    return Scripted(name, answer)


def slaq_states(name, prompt_id, question, *, knows, again=False):
    """Return whether an answer contains a fact; long answers contain fewer facts."""
    rate = knows if prompt_id.endswith("/short") else knows - 0.2
    key = (name, prompt_id, question.id)
    draw = "again" if again and chance("turns", *key) < 0.2 else "first"
    return (chance("fact", name, question.id) + chance(draw, *key)) / 2 < rate


def slaq_questions(prompt_id, topics):
    """Return the questions that a prompt asks, by its id, which is also in every outcome."""
    prefix = re.sub(r"/(short|free|long/\d+)$", "", prompt_id)
    return [
        question
        for topic in topics
        for question in topic.questions
        if prefix in (topic.id, question.id)
    ]


def slaq_model(name, topics, *, knows, fails=0.0):
    """Return a model that knows fewer facts in long answers; an answer is a list of facts."""

    def answer(prompt, again):
        if chance("fails", name, prompt.id) < fails:
            return None
        generated = [
            question.answer
            for question in slaq_questions(prompt.id, topics)
            if slaq_states(name, prompt.id, question, knows=knows, again=again)
        ]
        return "; ".join(generated) or "I do not know."

    return Scripted(name, answer)


def slaq_judge(name):
    """Return a judge that searches for references, with some errors and some invalid replies."""

    def answer(prompt, again):
        system, user = prompt.messages[0].content, prompt.messages[1].content
        key = (name, prompt.id)
        if chance("unread", *key) < 0.04:
            return "Perhaps."
        text = user.split("<answer>\n")[1]
        found = [
            (reference in text) != (chance("errs", *key, reference) < 0.08)
            for reference in re.findall(r"Reference: (.*)", user)
        ]
        if "absent" in system:
            silent = [chance("silent", *key, place) < 0.5 for place in range(len(found))]
            states = [
                "right" if is_there else "absent" if is_silent else "wrong"
                for is_there, is_silent in zip(found, silent, strict=True)
            ]
            return json.dumps(states)
        return str(int(found[0])) if len(found) == 1 else str([int(one) for one in found])

    return Scripted(name, answer)


def slaq_labels(name, topics, *, knows, n_permutations):
    """Return simulated human labels for a third of all facts, mostly correct, as CSV."""
    lines = ["prompt_id,question_id,correct,is_recalled"]
    for topic in topics:
        long = [f"{topic.id}/long/{k}" for k in range(n_permutations)] + [f"{topic.id}/free"]
        for question in topic.questions:
            for prompt_id in (f"{question.id}/short", *long):
                key = (name, prompt_id, question.id)
                if chance("labelled", *key) >= 0.33:
                    continue
                states = slaq_states(name, prompt_id, question, knows=knows)
                is_correct = states != (chance("label", *key) < 0.05)
                is_recalled = is_correct or chance("recalled", *key) < 0.5
                recalled = int(is_recalled) if prompt_id.endswith("/free") else ""
                lines.append(f"{prompt_id},{question.id},{int(is_correct)},{recalled}")
    return "\n".join(lines) + "\n"


COUNTRIES = {
    **{"Arania": ("Lumo", ".aq"), "Beldova": ("Serrin", ".bd"), "Corvia": ("Tallow", ".cv")},
    **{"Dunmark": ("Ostby", ".dk"), "Esteria": ("Quill", ".et"), "Fenland": ("Marsh End", ".fn")},
    **{"Gorlund": ("Lumo", ".gl"), "Hestria": ("Brackwater", ".hs")},
}
DECOYS = ("Arania", "Beldova", "Corvia")
RELATIONS = ("Capital", "Internet TLD")
TOPOLOGIES = ("base", "alias", "noise", "collision")
STYLES = ("direct_questions", "cloze")


def audit_reader(prompts):
    """Return a model that answers with the first fact in its context, or with its own knowledge."""
    golds = {prompt.prompt_text: prompt.gold_object for prompt in prompts}

    def answer(prompt, again):
        shown = re.findall(r"(?m)^[^|\n]+ \| [^|\n]+ \| ([^|\n]+)$", prompt.text)
        question = prompt.text.rpartition("\n\n")[2]
        gold = next((golds[text] for text in golds if text in prompt.text), "nothing")
        if chance("fails", question, len(shown)) < 0.03:
            return None
        if chance("knows", question) < 0.15:
            return f" {gold}."
        if not shown or chance("deaf", prompt.text) < 0.1:
            return ("unknown", "I do not know.", " Ostby", "")[int(chance("wrong", question) * 4)]
        return f"It is {shown[0]}. Is there more?"

    return Scripted("reader", answer)


class ScriptedScorer(Scripted):
    """A runner that does not generate; a function returns the log-probability of each scored word.

    The arguments of the function are the context, the scored text, and whether it is a repeat.
    """

    def generate(self, prompts, params):
        raise AssertionError("a scorer does not generate")

    def score(self, requests):
        from surface_consistency.schemas.scoring import ScoredText

        for request in requests:
            values = self._answer(request.context, request.continuation, self._again)
            moments = {
                "vocabulary_means": [-4.0 - chance("mean", value) for value in values],
                "vocabulary_deviations": [1.0 + chance("spread", value) for value in values],
            }
            yield ScoredText(
                request_id=request.id,
                token_ids=list(range(len(values))),
                log_probabilities=values,
                is_greedy=all(value > -1.0 for value in values),
                n_context_tokens=len(request.context.split()),
                **(moments if request.vocabulary_moments else {}),
            )


LEXICAL_NOUNS = ("dog", "story", "registration", "crime", "use", "child", "hour", "apple")
LEXICAL_VERBS = ("choose", "use", "commit", "see")
LEXICAL_COUNTS = {
    **{"dog": 100, "hound": 40, "story": 90, "history": 80, "use": 200, "employ": 150},
    **{"utilise": 3, "choose": 60, "select": 50, "crime": 30, "offense": 2},
}


def lexical_rows():
    """Return rows of three benchmarks; the small lexicon of the tests has synonyms of the words."""
    pairs = [(noun, number) for number in range(6) for noun in LEXICAL_NOUNS]
    blimp = [
        {
            "sentence_good": f"Near Na{number}el that {noun} of it was helpful to Na{number}el.",
            "sentence_bad": f"Near Na{number}el that {noun} of it were helpful to Na{number}el.",
            "UID": f"anaphor_{('number', 'gender')[number % 2]}_agreement",
        }
        for noun, number in pairs
    ]
    piqa = [
        {
            "goal": f"To {verb} the {noun} in place {number},",
            "sol1": f"go to the {noun} quickly.",
            "sol2": f"sleep for one large {noun}.",
            "label": number % 2,
        }
        for number, noun in enumerate(LEXICAL_NOUNS)
        for verb in LEXICAL_VERBS
    ]
    lambada = [
        {"text": f"Tom{number} had a {noun} and wanted to see that {noun}"}
        for noun, number in pairs[:24]
    ]
    return {"anaphor_agreement": blimp, "piqa": piqa, "lambada": lambada}


def lexical_corpus(rows):
    """Return documents that contain a few of the texts often and most of them never."""
    texts = [row["sentence_good"] for row in rows["anaphor_agreement"]]
    texts += [row["sentence_bad"] for row in rows["anaphor_agreement"]]
    texts += [
        f"{row['goal']} {row[side]}".replace("dog", other)
        for row in rows["piqa"]
        for side in ("sol1", "sol2")
        for other in ("dog", "hound")
    ]
    texts += [row["text"] for row in rows["lambada"]]
    return [text for text in texts for _ in range(int(12 * chance("seen", text) ** 3))]


def ngram_counts(documents, texts, n=4):
    """Return the counts in documents of the word n-grams of each text."""
    counts = {}
    for document in documents:
        words = document.lower().split()
        for place in range(len(words) - n + 1):
            gram = tuple(words[place : place + n])
            counts[gram] = counts.get(gram, 0) + 1
    split = [text.lower().split() for text in texts]
    return [
        [counts.get(tuple(words[place : place + n]), 0) for place in range(len(words) - n + 1)]
        for words in split
    ]


def lexical_model(name, documents, *, weight):
    """Return a model that prefers texts of the corpus and, to a lesser degree, correct grammar."""
    seen = {}
    for document in documents:
        words = document.lower().split()
        for first, second in zip(["", *words], words, strict=False):
            seen[first, second] = seen.get((first, second), 0) + 1

    def values(context, continuation, again):
        words = continuation.lower().split()
        before = (["", *context.lower().split()])[-1]
        draw = "again" if again and chance("turns", name, context, continuation) < 0.2 else "first"
        found = []
        for word in words:
            known = min(1.0, seen.get((before, word), 0) / 20)
            error = 0.8 * (word in ("were", "sleep"))
            noise = chance(name, draw, context, continuation, len(found))
            found.append(-0.1 - weight * (1 - known) - error - noise)
            before = word
        return found

    return ScriptedScorer(name, values)


def linking_model(name, pairs, *, knows, habit):
    """Return a model that links the names of some entities, with a bias (`habit`) towards yes."""
    known = [pair for pair in pairs if chance("links", name, *pair) < knows]

    def values(context, continuation, again):
        question = context.rpartition("Q: ")[2]
        draw = "again" if again and chance("turns", name, question) < 0.2 else "first"
        is_known = any(first in question and second in question for first, second in known)
        is_empty = "N/A" in question
        odds = habit + (1.5 if is_known else -1.5) * (not is_empty)
        odds += 4 * (chance(name, draw, question) - 0.5) * (not is_empty)
        word = continuation.strip()
        yes = odds if word.casefold() == "yes" else 0.0
        return [yes - 0.5 * word[0].isupper() - 20.0]

    return ScriptedScorer(name, values)


def count_rows(questions, *, measure):
    """Return simulated corpus counts of each name; redirects have lower counts than titles."""
    rows = {}
    for question in questions:
        fact, surface = question.triple.id, question.surface
        subject = question.triple.subject
        key = (measure, surface.text)
        scale = 400 if surface.is_canonical else 60
        rows[fact, surface.text] = {
            "item": fact,
            "surface": surface.text,
            "surface_id": f"{fact}|{surface.text}",
            "is_canonical": surface.is_canonical,
            "surface_frequency": int(scale * chance(*key) ** 3),
            "pageviews": int(10_000 * chance("views", subject.name) ** 2) + 1,
            "measure": measure,
        }
    found = list(rows.values())
    for row in found:
        same = [other for other in found if other["item"] == row["item"]]
        row["entity_frequency"] = sum(other["surface_frequency"] for other in same)
        row["pair_documents"] = row["entity_frequency"] // 3
    return found


def reduced_model(name, questions, *, knows, forgets):
    """Return the model "ada" with some names removed and some new correct answers."""
    full = redirect_model("ada", questions, knows=knows)
    by_id = {question.id: question for question in questions}

    def answer(prompt, again):
        question = by_id[prompt.id]
        value = chance("forgets", question.triple.id, question.surface.text)
        if value < forgets:
            return "I do not know"
        if forgets and value > 0.95:
            return question.triple.answers[0]
        return full._answer(prompt, again)

    return Scripted(name, answer)
