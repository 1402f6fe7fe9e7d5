"""Prompts of benchmark instances, zero-shot, word for word those of lm-evaluation-harness.

And the question whether an instance in other words means the same.
"""

import re

from surface_consistency.schemas.prompts import Message, Prompt
from surface_consistency.studies.lexical.records import BenchmarkInstance

__all__ = ["benchmark_prompt", "meaning_prompt", "parse_meaning"]

_MEANING_SYSTEM = (
    "You are a strict semantic evaluator. Your only task is to determine whether two sentences "
    "express the same meaning. Consider only their meaning, not style. If they convey the same "
    "meaning, output exactly: same. If they do not, output exactly: different. There might be some "
    "unusual words, but this will not affect your judgement negatively, and in this case you "
    "should output same. Synonyms are ok. Do not output anything else."
)
_MEANING = (
    'Compare the following two sentences:\nSentence A: "{first}" Sentence B: "{second}"\n'
    "Do they convey the same meaning? Respond with only one word: same or different."
)
_MEANING_REPLY = re.compile(r"\W*(same|different)\W*", re.IGNORECASE)

_CONNECTIVES = {"cause": "because", "effect": "therefore"}


def benchmark_prompt(prompt_id: str, instance: BenchmarkInstance) -> Prompt:
    """Ask an instance by the probability of its options.

    Args:
        prompt_id: Identifier of the prompt.
        instance: The instance, of a task of `studies.lexical.load_benchmark`.

    Returns:
        The prompt, with the options in their order. WinoGrande's options stand within the sentence:
        what is compared is the probability of its end after each.

    References:
        lm-evaluation-harness 0.4.13, tasks piqa, lambada_openai, copa (SuperGLUE), winogrande and
        blimp. Its two spaces before COPA's options and one before BLiMP's sentences are kept.

    Examples:
        >>> instance = BenchmarkInstance(
        ...     id="0", task="copa", kind="functional", context="He fell.",
        ...     options=("It was icy.", "He ate."), correct=0, group="cause",
        ... )
        >>> prompt = benchmark_prompt("0", instance)
        >>> prompt.text, prompt.options
        ('He fell because', ('  it was icy.', '  he ate.'))
    """
    text, options = instance.context, tuple(f" {option}" for option in instance.options)
    if instance.task == "winogrande":
        gap = text.index("_")
        end = f" {text[gap + 1 :].strip()}"
        return Prompt(
            id=prompt_id,
            text=text,
            contexts=tuple(text[:gap] + option for option in instance.options),
            options=(end,) * len(options),
        )
    if instance.task == "piqa":
        text = f"Question: {text}\nAnswer:"
    elif instance.task == "copa":
        text = f"{text.strip()[:-1]} {_CONNECTIVES[instance.group or 'cause']}"
        options = tuple(f"  {option[0].lower()}{option[1:]}" for option in instance.options)
    return Prompt(id=prompt_id, text=text, options=options)


def meaning_prompt(prompt_id: str, first: str, second: str) -> Prompt:
    """Ask whether two texts mean the same.

    Args:
        prompt_id: Identifier of the prompt.
        first: A text.
        second: The same in other words.

    Returns:
        The prompt, a conversation.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, appendix A.3, word for word.
    """
    asked = _MEANING.format(first=first, second=second)
    return Prompt(
        id=prompt_id,
        messages=(
            Message(role="system", content=_MEANING_SYSTEM),
            Message(role="user", content=asked),
        ),
    )


def parse_meaning(reply: str) -> bool | None:
    """Read the reply to `meaning_prompt`.

    Args:
        reply: The reply.

    Returns:
        True for "same" and False for "different", capitals and marks around it aside; None for
        anything else.

    Examples:
        >>> parse_meaning("Same."), parse_meaning("different"), parse_meaning("the same, I think")
        (True, False, None)
    """
    found = _MEANING_REPLY.fullmatch(reply.strip())
    return None if found is None else found[1].lower() == "same"
