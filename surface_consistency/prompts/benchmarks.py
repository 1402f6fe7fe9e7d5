"""Prompts of benchmark instances, zero-shot, word for word those of lm-evaluation-harness."""

from surface_consistency.schemas.benchmarks import BenchmarkInstance
from surface_consistency.schemas.prompts import Prompt

__all__ = ["benchmark_prompt"]

_CONNECTIVES = {"cause": "because", "effect": "therefore"}


def benchmark_prompt(prompt_id: str, instance: BenchmarkInstance) -> Prompt:
    """Ask an instance by the probability of its options.

    Args:
        prompt_id: Identifier of the prompt.
        instance: The instance, of a task of `data.load_benchmark`.

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
