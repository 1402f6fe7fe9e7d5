"""How a continuation is chosen and where it ends."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.schemas.prompts import GenerationParams

if TYPE_CHECKING:
    import torch

__all__ = ["SeededSampling", "StopTracker", "cut_at_stop"]


def cut_at_stop(text: str, stop: Sequence[str]) -> str | None:
    r"""Cut a continuation before its first stop string; None when it holds none.

    Line breaks before the answer never stop it, so an answer after a blank line is kept.

    Examples:
        >>> cut_at_stop("\n\nLondon\nQ: Who", ["\n"])
        '\n\nLondon'
        >>> cut_at_stop(" London", ["\n"]) is None
        True
    """
    start = len(text) - len(text.lstrip("\n"))
    ends = [end for end in (text.find(item, start) for item in stop) if end >= 0]
    return text[: min(ends)] if ends else None


class StopTracker:
    """Tells `generate` which rows have ended, and remembers where: a stopping criterion.

    Args:
        tokenizer: A tokenizer of transformers.
        stop: Stop strings.
        eos: End-of-sequence tokens.
        n_rows: Rows of the batch.
        n_prompt: Columns before the first new token.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401
        *,
        stop: Sequence[str],
        eos: frozenset[int],
        n_rows: int,
        n_prompt: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._stop = stop
        self._eos = eos
        self._n_prompt = n_prompt
        self._rows: list[list[int]] = [[] for _ in range(n_rows)]
        self._texts: list[str | None] = [None] * n_rows

    def __call__(
        self, input_ids: "torch.Tensor", scores: object, **kwargs: object
    ) -> "torch.Tensor":
        """Look at the newest tokens."""
        import torch

        for row, ids in enumerate(input_ids[:, self._n_prompt :].tolist()):
            if self._texts[row] is None:
                self._rows[row] = ids
                self._texts[row] = self._ended(ids)
        ended = [text is not None for text in self._texts]
        return torch.tensor(ended, device=input_ids.device)

    def results(self) -> list[tuple[str, bool, int]]:
        """Return for each row its text, whether it ended by itself, and its number of tokens."""
        return [
            (self._decode(ids) if text is None else text, text is not None, len(ids))
            for text, ids in zip(self._texts, self._rows, strict=True)
        ]

    def _ended(self, ids: list[int]) -> str | None:
        """Return the text of a row that ends here, else None."""
        if ids[-1] in self._eos:
            return self._decode(ids[:-1])
        return cut_at_stop(self._decode(ids), self._stop) if self._stop else None

    def _decode(self, ids: list[int]) -> str:
        """Turn tokens into text as they are: no special tokens, no tidying of spaces."""
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text


class SeededSampling:
    """Draws each row's tokens with a generator of its own: a logits processor.

    Greedy choice then picks the token drawn here. What a prompt gets depends on the seed and on
    its content alone, not on the prompts beside it.

    Args:
        params: Temperature, nucleus mass and seed.
        keys: `Prompt.key` of each row.
    """

    def __init__(self, params: GenerationParams, keys: Sequence[str]) -> None:
        self._temperature = params.temperature
        self._top_p = params.top_p
        self._draws = [
            random.Random(None if params.seed is None else f"{params.seed}:{key}") for key in keys
        ]

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Leave one token of each row possible."""
        import torch

        probabilities = torch.softmax(scores.double() / self._temperature, dim=-1)
        ordered, tokens = probabilities.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        ordered = ordered.masked_fill(before >= self._top_p, 0.0)
        mass = ordered.cumsum(dim=-1)
        uniform = torch.tensor([draw.random() for draw in self._draws], dtype=torch.float64)
        target = uniform.to(scores.device).unsqueeze(-1) * mass[:, -1:]
        position = torch.searchsorted(mass, target, right=True).clamp(max=mass.shape[-1] - 1)
        chosen = tokens.gather(-1, position)
        return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)
