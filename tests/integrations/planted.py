"""Answers that are correct or incorrect by the hash of the question."""

import hashlib
from dataclasses import replace

import pandas as pd

from surface_consistency.metrics import paired_by
from surface_consistency.studies.datasets import load_dataset, score_predictions

SAMPLE = load_dataset("redirectqa", source="sample")
DATA = SAMPLE.content.select(templates="original")
BY_QUESTION = {question.question: question for question in DATA.questions}


def reply(question_text: str) -> str:
    """Return an answer, which is correct for two thirds of all questions."""
    digest = hashlib.sha256(question_text.encode()).digest()
    return BY_QUESTION[question_text].triple.answers[0] if digest[0] % 3 else "nobody knows"


def last_question(prompt: str) -> str:
    """Return the question at the end of a prompt."""
    return prompt.rpartition("Q: ")[2].removesuffix(" A:")


def expected(limit: int | None = None) -> pd.Series:
    """Return the row of `paired_by` over all pairs of the sample, or of `limit` facts."""
    data = DATA if limit is None else DATA.select(limit=limit)
    replies = {question.question: reply(question.question) for question in data.questions}
    outcomes = score_predictions(replace(SAMPLE, content=data), replies, model="planted")
    return paired_by(outcomes, cluster="subject_id").iloc[0]


NAMES = {
    "consistency": "consistency",
    "accuracy_canonical": "first_accuracy",
    "accuracy_redirect": "second_accuracy",
    "accuracy_difference": "accuracy_difference",
    "only_canonical": "negative_flip_rate",
    "only_redirect": "positive_flip_rate",
    "signed_alignment": "signed_alignment",
}
"""Column of `paired_by` by metric of a task."""
