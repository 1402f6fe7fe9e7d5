"""Scripted models and small inputs, which know nothing of how a study is run.

All that they say depends on content alone, so that it stays as it is whoever asks, in whatever
order and batches.
"""

import hashlib
import re


def chance(*parts: object) -> float:
    """Draw from [0, 1) by content alone."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


class Scripted:
    """A runner whose answers a function of the prompt and of being asked again tells.

    It is asked again in other batches under either name of the protocol. An answer of None is a
    request that failed.
    """

    def __init__(self, name, answer, *, again=False):
        self.name, self._answer, self._again = name, answer, again

    def fingerprint(self):
        return {"runner": "scripted", "name": self.name, "again": self._again}

    def relaid(self, seed):
        return Scripted(self.name, self._answer, again=True)

    rebatched = relaid

    def generate(self, prompts, params):
        from surface_consistency.schemas import Generation

        for prompt in prompts:
            text = self._answer(prompt, self._again)
            failed = {} if text is not None else {"finish_reason": "error", "error": "no luck"}
            yield Generation(prompt_id=prompt.id, text=text, **failed)


def redirect_model(name, questions, *, knows, fails=0.0):
    """Knows a share of the facts, mostly under all their names; changes its mind now and then."""
    by_id = {question.id: question for question in questions}
    others = [question.triple.answers[0] for question in questions]

    def answer(prompt, again):
        question = by_id[prompt.id]
        key = (name, question.triple.id, question.question)
        if chance("fails", *key) < fails:
            return None
        turn = "again" if again and chance("turns", *key) < 0.15 else "first"
        is_right = chance(name, question.triple.id) < knows
        if chance("slips", turn, *key) < 0.25:
            is_right = not is_right
        wrong = others[int(chance("other", *key) * len(others))]
        accepted = question.triple.answers
        right = accepted[int(chance("alias", *key) * len(accepted))]
        shape = int(chance("shape", *key) * 6)
        said = right if is_right else (wrong, "I do not know", "", right[:-1])[shape % 4]
        before = "It is " if shape == 1 else ""
        after = ("", ".", f", not {wrong}", "\nQ: What else?", "s", f" or\n{right}")[shape]
        return f"{before}{said}{after}"

    return Scripted(name, answer)


def slaq_states(name, prompt_id, question, *, knows, again=False):
    """Tell whether a model states a fact in an answer: less often in long ones."""
    share = knows if prompt_id.endswith("/short") else knows - 0.2
    key = (name, prompt_id, question.id)
    turn = "again" if again and chance("turns", *key) < 0.2 else "first"
    return (chance("fact", name, question.id) + chance(turn, *key)) / 2 < share


def slaq_asked(prompt_id, topics):
    """Find what a prompt asks for, by its name, which every outcome bears as well."""
    home = re.sub(r"/(short|free|long/\d+)$", "", prompt_id)
    return [
        question
        for topic in topics
        for question in topic.questions
        if home in (topic.id, question.id)
    ]


def slaq_model(name, topics, *, knows, fails=0.0):
    """Knows fewer facts in long answers; an answer is its statements in a row."""

    def answer(prompt, again):
        if chance("fails", name, prompt.id) < fails:
            return None
        said = [
            question.answer
            for question in slaq_asked(prompt.id, topics)
            if slaq_states(name, prompt.id, question, knows=knows, again=again)
        ]
        return "; ".join(said) or "I do not know."

    return Scripted(name, answer)


def slaq_judge(name):
    """Reads references, errs now and then, and once in a while writes what cannot be read."""

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
            states = [
                "right"
                if is_there
                else "absent"
                if chance("silent", *key, place) < 0.5
                else "wrong"
                for place, is_there in enumerate(found)
            ]
            return "[" + ", ".join(f'"{state}"' for state in states) + "]"
        return str(int(found[0])) if len(found) == 1 else str([int(one) for one in found])

    return Scripted(name, answer)


def slaq_labels(name, topics, *, knows, n_permutations):
    """Labels of people for a third of all facts, mostly true, as a CSV file."""
    lines = ["prompt_id,question_id,is_correct,is_recalled"]
    for topic in topics:
        long = [f"{topic.id}/long/{k}" for k in range(n_permutations)] + [f"{topic.id}/free"]
        for question in topic.questions:
            for prompt_id in (f"{question.id}/short", *long):
                key = (name, prompt_id, question.id)
                if chance("labelled", *key) >= 0.33:
                    continue
                states = slaq_states(name, prompt_id, question, knows=knows)
                is_right = states != (chance("label", *key) < 0.05)
                is_recalled = is_right or chance("recalled", *key) < 0.5
                recalled = int(is_recalled) if prompt_id.endswith("/free") else ""
                lines.append(f"{prompt_id},{question.id},{int(is_right)},{recalled}")
    return "\n".join(lines) + "\n"


COUNTRIES = {
    "Arania": ("Lumo", ".aq"),
    "Beldova": ("Serrin", ".bd"),
    "Corvia": ("Tallow", ".cv"),
    "Dunmark": ("Ostby", ".dk"),
    "Esteria": ("Quill", ".et"),
    "Fenland": ("Marsh End", ".fn"),
    "Gorlund": ("Lumo", ".gl"),
    "Hestria": ("Brackwater", ".hs"),
}
DECOYS = ("Arania", "Beldova", "Corvia")
RELATIONS = ("Capital", "Internet TLD")
TOPOLOGIES = ("base", "alias", "noise", "collision")
STYLES = ("direct_questions", "cloze")


def audit_reader(prompts):
    """Says the first fact that stands before its prompt, or what it knows by itself."""
    golds = {prompt.prompt_text: prompt.gold_object for prompt in prompts}

    def answer(prompt, again):
        shown = re.findall(r"(?m)^[^|\n]+ \| [^|\n]+ \| ([^|\n]+)$", prompt.text)
        question = prompt.text.rpartition("\n\n")[2]
        gold = next((golds[asked] for asked in golds if asked in prompt.text), "nothing")
        if chance("fails", question, len(shown)) < 0.03:
            return None
        if chance("knows", question) < 0.15:
            return f" {gold}."
        if not shown or chance("deaf", prompt.text) < 0.1:
            return ("unknown", "I do not know.", " Ostby", "")[int(chance("wrong", question) * 4)]
        return f"It is {shown[0]}. Is there more?"

    return Scripted("reader", answer)
