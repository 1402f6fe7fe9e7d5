"""Zero-shot prompts of benchmark instances, identical to those of lm-evaluation-harness.

The module also contains the prompts of the LLM judge of meaning, and of the texts whose
memorization is measured.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from surface_consistency.errors import RecordError
from surface_consistency.reading import existing_file, first_names, json_objects
from surface_consistency.schemas.prompts import Message, Prompt
from surface_consistency.studies.lexical.records import BenchmarkInstance

MEMORISATION: Final = "memorisation"
"""Name of the group of prompts of whole texts, and of the analysis."""

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
    """Build the prompt by which the options of an instance are scored.

    Args:
        prompt_id: Identifier of the prompt.
        instance: The instance, of a task of `studies.lexical.load_benchmark`.

    Returns:
        The prompt, with the options in their order. The options of WinoGrande are within the
        sentence: the probabilities of the end of the sentence after each option are compared.

    References:
        lm-evaluation-harness 0.4.13, tasks piqa, lambada_openai, copa (SuperGLUE), winogrande and
        blimp, including two spaces before COPA's options and one before BLiMP's sentences.

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
    """Build the prompt of an LLM judge of whether two texts have the same meaning.

    Args:
        prompt_id: Identifier of the prompt.
        first: A text.
        second: The text in other words.

    Returns:
        The prompt, a conversation.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, appendix A.3, verbatim.
    """
    request = _MEANING.format(first=first, second=second)
    return Prompt(
        id=prompt_id,
        messages=(
            Message(role="system", content=_MEANING_SYSTEM),
            Message(role="user", content=request),
        ),
    )


def parse_meaning(reply: str) -> bool | None:
    """Read the reply to `meaning_prompt`.

    Args:
        reply: The reply.

    Returns:
        True for "same" and False for "different", ignoring case and surrounding punctuation; None
        for any other reply.

    Examples:
        >>> parse_meaning("Same."), parse_meaning("different"), parse_meaning("the same, I think")
        (True, False, None)
    """
    match = _MEANING_REPLY.fullmatch(reply.strip())
    return None if match is None else match[1].lower() == "same"


def memorization_prompts(
    name: str, instance: BenchmarkInstance, neighbours: Mapping[str, Sequence[str]]
) -> Iterator[Prompt]:
    """Build the prompts of an instance's whole texts, their second halves and their neighbours.

    Args:
        name: Name of the instance, unique in the run.
        instance: The instance.
        neighbours: Versions of each text with some words replaced, by text; texts may be missing.

    Yields:
        For each option the prompts `NAME/OPTION/text`, `NAME/OPTION/half` if the text has at least
        two words, and `NAME/OPTION/neighbours` if it has neighbours. The first half has half of the
        words, rounded down; the paper does not state the unit.
    """
    for number, text in enumerate(instance.texts):
        prefix = f"{MEMORISATION}/{name}/{number}"
        yield Prompt(id=f"{prefix}/text", text="", options=(text,), vocabulary_moments=True)
        words = text.split(" ")
        if len(words) > 1:
            half = len(words) // 2
            yield Prompt(
                id=f"{prefix}/half",
                text=" ".join(words[:half]),
                options=(" " + " ".join(words[half:]),),
            )
        others = tuple(dict.fromkeys(other for other in neighbours.get(text, ()) if other != text))
        if others:
            yield Prompt(id=f"{prefix}/neighbours", text="", options=others)


def read_neighbours(path: Path) -> dict[str, tuple[str, ...]]:
    """Read neighbours from a file, such as those of a masked language model.

    Args:
        path: JSONL with `text` and `neighbours`, a list of texts.

    Returns:
        Neighbours by text.

    Raises:
        SourceNotFoundError: If the file does not exist.
        RecordError: If a field of a line is missing or has another type.
    """
    neighbours: dict[str, tuple[str, ...]] = {}
    for number, row in json_objects(existing_file(path, "neighbours of texts", "*.jsonl")):
        text, others = row.get("text"), row.get("neighbours")
        if (
            not isinstance(text, str)
            or not isinstance(others, list)
            or not all(isinstance(other, str) and other for other in others)
        ):
            raise RecordError(
                f"{path}:{number}: a line must have text and neighbours, a list of texts, got the "
                f"fields {first_names(row) or 'none'}"
            )
        neighbours[text] = tuple(others)
    return neighbours
