"""The minimal runner: `generate` and `forward` of transformers, the file to copy for your own."""

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from surface_consistency.errors import RunnerError, RunnerOutOfMemoryError
from surface_consistency.models.reasoning import reasoning_tags
from surface_consistency.models.runner import Runner, cut_at_stop
from surface_consistency.schemas import Generation, GenerationParams, Prompt, ScoringRequest
from surface_consistency.schemas.scoring import ScoredText


class MinimalRunner(Runner):
    """Queries a causal language model: greedy answers in batches, scores one text at a time.

    Args:
        model: Hub id or folder, as for `from_pretrained`.
        dtype: Number format, such as "bfloat16"; "auto" is that of the checkpoint.
        device: Such as "cuda:1" or "cpu"; None is a GPU if there is one.
    """

    name: str = "minimal"
    """The runner's name."""

    def __init__(self, model: str, *, dtype: str = "auto", device: str | None = None) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
        self._model: Any = AutoModelForCausalLM.from_pretrained(
            model, dtype=dtype, device_map=self._device
        )
        config = self._model.config.get_text_config()
        self._context = getattr(config, "max_position_embeddings", math.inf)
        if self._model.generation_config.eos_token_id is None:
            self._model.generation_config.eos_token_id = self._tokenizer.eos_token_id
        ends = self._model.generation_config.eos_token_id
        self._ends = ends if isinstance(ends, list) else [ends]

    def fingerprint(self) -> dict[str, Any]:
        """Describe what determines the answers; a run resumes only under equal values."""
        config, dtype = self._model.config, str(self._model.dtype)
        model = {"model": config.name_or_path, "revision": getattr(config, "_commit_hash", None)}
        return {"runner": self.name, **model, "dtype": dtype, "device": self._device}

    def render(self, prompt: Prompt) -> str:
        """Write a conversation as the model's chat template has it."""
        turns = [turn.model_dump() for turn in prompt.messages or ()]
        template = self._tokenizer.apply_chat_template
        return str(template(turns, add_generation_prompt=True, tokenize=False))

    def _tokens(self, prompt: Prompt) -> list[int]:
        """Tokenise a prompt; a chat template writes the special tokens itself."""
        text = self.render(prompt) if prompt.text is None else prompt.text
        return list(self._tokenizer(text, add_special_tokens=prompt.text is not None).input_ids)

    def fits(self, prompt: Prompt, params: GenerationParams) -> bool:
        """Check whether a prompt has tokens and fits the context together with its answer."""
        return 0 < len(self._tokens(prompt)) <= self._context - params.max_new_tokens

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer one batch; an answer ends before its first end token or stop string."""
        if params.temperature or params.max_reasoning_tokens or params.reasoning_opened is not None:
            raise RunnerError("temperature and limits of reasoning need the runner transformers")
        for prompt in prompts:
            if not self.fits(prompt, params):
                raise RunnerError(f"prompt {prompt.id!r} does not fit the model; use fewer shots")
        rows = [self._tokens(prompt) for prompt in prompts]
        decode, tags = self._tokenizer.decode, reasoning_tags(params.reasoning_tags or ())
        for prompt, row, new in zip(prompts, rows, self._continue(rows, params), strict=True):
            answer = list(takewhile(lambda token: token not in self._ends, new))
            if tags.is_opened_by(decode(row)) or tags.any_tag.search(decode(answer)):
                error = "the model reasons before it answers; use the runner transformers"
                yield Generation(prompt_id=prompt.id, text=None, finish_reason="error", error=error)
                continue
            text = decode(answer, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            cut = cut_at_stop(text, params.stop)
            is_unfinished = cut is None and len(answer) == params.max_new_tokens
            yield Generation(
                prompt_id=prompt.id,
                text=text if cut is None else cut,
                finish_reason="length" if is_unfinished else "stop",
            )

    def _continue(self, rows: list[list[int]], params: GenerationParams) -> list[list[int]]:
        """Write the most probable tokens after each row, rows padded on the left."""
        import torch

        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        try:
            output = self._model.generate(
                input_ids=ids.to(self._device),
                attention_mask=mask.to(self._device),
                max_new_tokens=params.max_new_tokens,
                do_sample=False,
                num_beams=1,
                pad_token_id=0,
            )
        except torch.OutOfMemoryError as error:  # The batch is sent again in halves.
            raise RunnerOutOfMemoryError(str(error)) from error
        return list(output[:, width:].tolist())

    def score(self, requests: Sequence[ScoringRequest]) -> Iterator[ScoredText]:
        """Compute the log-probability of each token of a continuation."""
        import torch

        for request in requests:
            text, special = request.context + request.continuation, request.bos == "model"
            encoded = self._tokenizer(text, add_special_tokens=special, return_offsets_mapping=True)
            # A token belongs to the continuation if it ends there; special tokens end at 0.
            ends = [end for _, end in encoded.offset_mapping]
            scored = [place for place, end in enumerate(ends) if end > len(request.context)]
            start, ids = scored[0], encoded.input_ids[: scored[-1] + 1]
            if start == 0 and request.bos == "model":
                start, ids, ends = 1, [self._tokenizer.bos_token_id, *ids], [0, *ends]
            if start == 0 or ids[0] is None or len(ids) > self._context:
                raise RunnerError(f"request {request.id!r} is too long, or no token precedes it")
            with torch.inference_mode():
                logits = self._model(torch.tensor([ids[:-1]], device=self._device)).logits
            logs = logits[0, start - 1 :].float().log_softmax(-1)
            tokens = torch.tensor(ids[start:], device=self._device)
            means = (logs.exp() * logs).sum(-1)
            deviations = (logs.exp() * (logs - means[:, None]) ** 2).sum(-1).sqrt()
            yield ScoredText(
                request_id=request.id,
                token_ids=tuple(ids[start:]),
                log_probabilities=logs.gather(-1, tokens[:, None])[:, 0].clamp(max=0).tolist(),
                is_greedy=bool((logs.argmax(-1) == tokens).all()),
                boundary="moved" if ends[start - 1] < len(request.context) else "clean",
                vocabulary_means=means.tolist() if request.vocabulary_moments else None,
                vocabulary_deviations=deviations.tolist() if request.vocabulary_moments else None,
            )
