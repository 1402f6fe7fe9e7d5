"""A small world with planted truth: a corpus, a benchmark, and a model that is made of the corpus.

A quarter of the instances is memorized: the right sentence stands in the corpus twenty times in the
original words, and in other words the wrong one stands there. A quarter is known in both wordings,
each seen twice; a quarter is known wrongly, and one is not in the corpus.
"""

import re
from collections import Counter, defaultdict

import numpy as np

from surface_consistency.models.runner import Runner
from surface_consistency.schemas.scoring import ScoredText

NOUNS = {"dog": "hound", "story": "history", "registration": "enrolment", "crime": "offense"}
GROUPS = ("memorized", "known", "mistaken", "unseen")
_TOKEN = re.compile(r"\s*[^\s]+")
_ORDER = 6
_WEIGHT = 0.1


def instances(n=48):
    """Return rows of a minimal-pair task and the group of each."""
    rows, groups = [], []
    nouns = list(NOUNS)
    for number in range(n):
        noun, group = nouns[number % 4], GROUPS[(number // 4) % 4]
        name = f"Na{number:02d}el"
        rows.append(
            {
                "sentence_good": f"Near {name} that {noun} of {name} was helpful to {name}.",
                "sentence_bad": f"Near {name} that {noun} of {name} were helpful to {name}.",
                "UID": "anaphor_number_agreement",
            }
        )
        groups.append(group)
    return rows, groups


def corpus(n=48):
    documents = []
    for row, group in zip(*instances(n), strict=True):
        good, bad = row["sentence_good"], row["sentence_bad"]
        noun = good.split()[3]
        other, other_bad = (text.replace(noun, NOUNS[noun], 1) for text in (good, bad))
        if group == "memorized":
            documents += [good] * 20 + [other_bad]
        elif group == "known":
            documents += [good, other] * 2
        elif group == "mistaken":
            documents += [bad, other_bad] * 2
    return documents


class CorpusModel(Runner):
    """Foretells a word by those before it, as often as the corpus has it; shorter ones back it."""

    name = "corpus"

    def __init__(self, model=None):
        texts = [["<s>", *self._tokens(text)] for text in corpus()]
        asked = [text for row in instances()[0] for text in list(row.values())[:2]]
        asked += [text.replace(noun, other) for text in asked for noun, other in NOUNS.items()]
        words = {word for text in [*texts, *map(self._tokens, asked)] for word in text}
        self._ids = {word: number for number, word in enumerate(sorted(words))}
        self._next = defaultdict(Counter)
        for text in texts:
            for place in range(1, len(text)):
                for length in range(min(place, _ORDER) + 1):
                    before = tuple(text[place - length : place])
                    self._next[before][self._ids[text[place]]] += 1

    def _tokens(self, text):
        return [token.strip() for token in _TOKEN.findall(text)]

    def fingerprint(self):
        return {"runner": self.name}

    def generate(self, prompts, params):
        raise AssertionError("nothing is to be written")

    def _distribution(self, before):
        told = np.full(len(self._ids), 1.0 / len(self._ids))
        for length in range(len(before) + 1):
            seen = self._next.get(tuple(before[len(before) - length :]))
            if seen:
                counts = np.zeros(len(self._ids))
                counts[list(seen)] = list(seen.values())
                told = (counts + _WEIGHT * told) / (counts.sum() + _WEIGHT)
        return told

    def score(self, requests):
        for request in requests:
            context = ["<s>", *self._tokens(request.context)]
            scored = self._tokens(request.continuation)
            text, told = [*context, *scored], []
            for place in range(len(context), len(text)):
                told.append(self._distribution(text[max(0, place - _ORDER) : place]))
            ids = [self._ids[word] for word in scored]
            logs = [np.log(of_place) for of_place in told]
            means = [float((np.exp(log) * log).sum()) for log in logs]
            spreads = [
                float(np.sqrt((np.exp(log) * (log - mean) ** 2).sum()))
                for log, mean in zip(logs, means, strict=True)
            ]
            yield ScoredText(
                request_id=request.id,
                token_ids=ids,
                log_probabilities=[
                    min(0.0, float(log[word])) for log, word in zip(logs, ids, strict=True)
                ],
                is_greedy=all(log.argmax() == word for log, word in zip(logs, ids, strict=True)),
                n_context_tokens=len(context),
                vocabulary_means=means if request.vocabulary_moments else None,
                vocabulary_deviations=spreads if request.vocabulary_moments else None,
            )
