"""A minimal runner to copy: `generate` and a forward pass of transformers."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from surface_consistency.errors import RunnerError
from surface_consistency.models.reasoning import reasoning_tags
from surface_consistency.models.runner import Runner, cut_at_stop
from surface_consistency.schemas import Generation, GenerationParams, Prompt, ScoringRequest
from surface_consistency.schemas.scoring import ScoredText


class MinimalRunner(Runner):
    """Queries a causal language model: greedy answers in batches, scores one text at a time.

    Args:
        model: Hub id or folder, as for `from_pretrained`.
        dtype: Torch dtype, such as "bfloat16"; "auto" is that of the checkpoint.
    """

    name: str = "minimal"
    """The runner's name."""

    def __init__(self, model: str, *, dtype: str = "auto") -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
        load = AutoModelForCausalLM.from_pretrained
        self._model: Any = load(model, dtype=dtype, device_map=device)
        config = self._model.config.get_text_config()
        self._context = getattr(config, "max_position_embeddings", math.inf)
        end = self._model.generation_config.eos_token_id
        end = self._tokenizer.eos_token_id if end is None else end
        self._ends = end if isinstance(end, list) else [end]

    def fingerprint(self) -> dict[str, Any]:
        """Return the settings that determine the answers; a run resumes only if they are equal."""
        config, place = self._model.config, self._model.device.type
        model = {"model": config.name_or_path, "revision": getattr(config, "_commit_hash", None)}
        return {"runner": self.name, **model, "dtype": str(self._model.dtype), "device": place}

    def render(self, prompt: Prompt) -> str:
        """Return the model's input text: the text, or the conversation by the chat template."""
        if prompt.messages is None:
            return str(prompt.text)
        turns = [turn.model_dump() for turn in prompt.messages]
        template = self._tokenizer.apply_chat_template
        return str(template(turns, add_generation_prompt=True, tokenize=False))

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer one batch; an answer ends before its first end token or stop string."""
        if params.temperature or params.max_reasoning_tokens or params.reasoning_opened is not None:
            raise RunnerError("temperature and reasoning limits require the runner transformers")
        rows = []
        for prompt in prompts:  # A chat template writes the special tokens itself.
            encoded = self._tokenizer(self.render(prompt), add_special_tokens=not prompt.messages)
            rows.append(encoded.input_ids)
            if not 0 < len(rows[-1]) <= self._context - params.max_new_tokens:
                raise RunnerError(f"{prompt.id!r} is empty or too long; set fewer new tokens")
        width = max(map(len, rows))
        output = self._model.generate(
            input_ids=self._tensor([[0] * (width - len(row)) + row for row in rows]),
            attention_mask=self._tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows]),
            max_new_tokens=params.max_new_tokens,
            do_sample=False,
            num_beams=1,
            eos_token_id=self._ends,
            pad_token_id=self._ends[0],
        )
        decode, tags = self._tokenizer.decode, reasoning_tags(params.reasoning_tags or ())
        for prompt, row, new in zip(prompts, rows, output[:, width:].tolist(), strict=True):
            if tags.is_opened_by(decode(row)) or tags.any_tag.search(decode(new)):
                error = "the model reasons before it answers; use the runner transformers"
                yield Generation(prompt_id=prompt.id, text=None, finish_reason="error", error=error)
                continue
            text = decode(new, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            cut = cut_at_stop(text, params.stop)
            is_ended = cut is not None or not {*self._ends}.isdisjoint(new)
            text = text if cut is None else cut
            yield Generation(
                prompt_id=prompt.id, text=text, finish_reason="stop" if is_ended else "length"
            )

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
            if start == 0 and special and self._tokenizer.bos_token_id is not None:
                start, ids, ends = 1, [self._tokenizer.bos_token_id, *ids], [0, *ends]
            if start == 0 or len(ids) > self._context or request.vocabulary_moments:
                raise RunnerError(f"{request.id!r} requires the runner transformers")
            with torch.inference_mode():
                logits = self._model(self._tensor([ids[:-1]])).logits[0, start - 1 :].float()
            tokens = self._tensor(ids[start:])
            logs = logits.log_softmax(-1).gather(-1, tokens[:, None])[:, 0].clamp(max=0)
            yield ScoredText(
                request_id=request.id,
                token_ids=tuple(ids[start:]),
                log_probabilities=logs.tolist(),
                is_greedy=bool((logits.argmax(-1) == tokens).all()),
                boundary="moved" if ends[start - 1] < len(request.context) else "clean",
            )

    def _tensor(self, numbers: Sequence[Any]) -> Any:  # noqa: ANN401
        """Convert numbers to a tensor on the model's device."""
        import torch

        return torch.tensor(numbers, device=self._model.device)
