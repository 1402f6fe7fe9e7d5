"""What a model is told besides the question."""

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_INSTRUCTIONS", "SlaqInstructions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaqInstructions:
    """The wording around a question, one for each form.

    In each text `{topic}` and `{question}` are replaced; other braces stay as they are.

    Raises:
        ValueError: If a text leaves no place for the question.
    """

    short: str = (
        "Give a factual answer to this question on the topic: {topic}. Write one sentence.\n"
        "Question: {question}"
    )
    """For one question alone."""

    long: str = (
        "Answer the question. Cover everything that it asks for, be clear and concise, and add "
        "nothing that it does not ask for.\n"
        "Question: {question}"
    )
    """For the query that lists five."""

    free: str = (
        "Answer the question with the most important facts, clearly and concisely.\n"
        "Question: {question}"
    )
    """For the query that lists none."""

    def __post_init__(self) -> None:
        """Refuse a wording without the question."""
        for name in ("short", "long", "free"):
            if "{question}" not in getattr(self, name):
                raise ValueError(
                    f"the {name} instruction needs {{question}} where the question goes"
                )

    def fill(self, form: str, *, topic: str, question: str) -> str:
        """Write the instruction of a form with its question.

        Args:
            form: "short", "long" or "free".
            topic: Name of the topic.
            question: The question or query.

        Returns:
            The text; braces within topic and question are left alone.

        Raises:
            ValueError: If there is no such form.

        Examples:
            >>> SlaqInstructions(short="On {topic}: {question}").fill(
            ...     "short", topic="sets", question="Is {question} a set?"
            ... )
            'On sets: Is {question} a set?'
        """
        if form not in ("short", "long", "free"):
            raise ValueError(f"form must be one of short, long, free; got {form!r}")
        text: str = getattr(self, form)
        before, _, after = text.partition("{question}")
        return f"{before.replace('{topic}', topic)}{question}{after.replace('{topic}', topic)}"


DEFAULT_INSTRUCTIONS: Final = SlaqInstructions()
"""Own words for what table 4 of the paper asks: one sentence; everything asked, and no more."""
