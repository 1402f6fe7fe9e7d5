"""Tests of the fast runner on tiny random models: answers equal those of prompts one by one."""

import functools
import json
import os
import shutil

import pytest

from surface_consistency.engine.generate import run_prompts
from surface_consistency.errors import RunnerError, RunnerOutOfMemoryError, SourceNotFoundError
from surface_consistency.models._decoding import cut_at_stop
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.schemas import GenerationParams, Message, Prompt

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

N_NEW = 12
PARAMS = GenerationParams(max_new_tokens=N_NEW, stop=())
TEMPLATE = (
    "{% for turn in messages %}{% if turn.role == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}[{{ turn.role }}] {{ turn.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{{ suffix | default('') }}{% endif %}"
)


@pytest.fixture(scope="session")
def loaded(tiny_models):
    """Return a model and its tokenizer as transformers loads them, loaded once."""

    @functools.cache
    def load(family):
        path = tiny_models(family)
        model = transformers.AutoModelForCausalLM.from_pretrained(path)
        return model, transformers.AutoTokenizer.from_pretrained(path)

    return load


@pytest.fixture(scope="session")
def one_by_one(loaded, shot_prompts):
    """Return the new tokens of each prompt by `generate` without batch, padding or reuse."""

    @functools.cache
    def ask(family, **options):
        return {one.id: naive(*loaded(family), one.text, **options) for one in shot_prompts}

    return ask


def naive(model, tokenizer, text, **options):
    """Return the new tokens of one text, or of its ids."""
    row = torch.tensor([tokenizer(text)["input_ids"] if isinstance(text, str) else text])
    options = {"max_new_tokens": N_NEW, "do_sample": False, **options}
    out = model.generate(input_ids=row, attention_mask=torch.ones_like(row), **options)
    return out[0, row.shape[1] :].tolist()


def decoded(tokenizer, answers):
    """Return the text of each row of new tokens."""
    return {name: tokenizer.decode(ids, skip_special_tokens=True) for name, ids in answers.items()}


def ask(runner, prompts, params=PARAMS):
    """Return the text of each prompt by id."""
    return {answer.prompt_id: answer.text for answer in runner.generate(prompts, params)}


@pytest.fixture(scope="session")
def neox(tiny_models):
    return TransformersRunner(tiny_models("gpt_neox"), device="cpu")


FAMILIES = ["gpt_neox", "llama", "gpt2", "olmo2", "qwen2", "bloom"]


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_agree_with_generate_one_by_one(
    tiny_models, loaded, one_by_one, shot_prompts, family
):
    expected = decoded(loaded(family)[1], one_by_one(family))
    assert len(set(expected.values())) > 0.7 * len(expected)

    runner = TransformersRunner(tiny_models(family), device="cpu")

    assert runner.fingerprint()["prefix_reuse"] == "on"
    assert ask(runner, shot_prompts) == expected


@pytest.mark.parametrize("options", [{"batch_size": 1}, {"batch_size": 5}, {"shuffle_seed": 3}])
@pytest.mark.parametrize("reuse_prefix", [True, False])
def test_answers_do_not_depend_on_the_batches(
    tiny_models, loaded, one_by_one, shot_prompts, options, reuse_prefix
):
    runner = TransformersRunner(
        tiny_models("llama"), device="cpu", reuse_prefix=reuse_prefix, **options
    )

    # Single prompts are four times as slow and do not depend on other prompts.
    asked = shot_prompts[::4] if options.get("batch_size") == 1 else shot_prompts
    expected = decoded(loaded("llama")[1], one_by_one("llama"))
    assert ask(runner, asked) == {prompt.id: expected[prompt.id] for prompt in asked}


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("mistral", "not possible: the model caches with DynamicSlidingWindowLayer"),
        ("mamba", "not possible: the model "),
        ("mpt", "not possible: outputs change with it"),
    ],
)
def test_models_without_prefix_reuse_run_in_plain_batches(
    tiny_models, loaded, one_by_one, shot_prompts, family, reason
):
    """Sliding windows, recurrent states and positions by column are detected and reported."""
    runner = TransformersRunner(tiny_models(family), device="cpu")

    assert runner.fingerprint()["prefix_reuse"].startswith(reason)
    assert ask(runner, shot_prompts) == decoded(loaded(family)[1], one_by_one(family))


def test_negative_controls_change_answers(loaded, one_by_one, shot_prompts):
    """The comparison detects a prefix that is cut as a string, and padding that is attended."""
    model, tokenizer = loaded("gpt_neox")
    expected = one_by_one("gpt_neox")
    n_same = {"cut string": 0, "attended padding": 0}
    for prompt in shot_prompts:
        of_group = [other.text for other in shot_prompts if other.group == prompt.group]
        cut = len(os.path.commonprefix(of_group))  # noqa: RUF071
        pieces = tokenizer([prompt.text[:cut], prompt.text[cut:]])["input_ids"]
        padded = [0] * 4 + tokenizer(prompt.text)["input_ids"]
        for control, ids in zip(n_same, (pieces[0] + pieces[1], padded), strict=True):
            n_same[control] += naive(model, tokenizer, ids) == expected[prompt.id]

    assert max(n_same.values()) < 0.5 * len(expected)


def test_prompts_of_small_groups_share_a_batch(tiny_models, loaded, one_by_one, shot_prompts):
    by_name = [
        prompt.model_copy(update={"group": f"{prompt.group}{number % 3}"})
        for number, prompt in enumerate(shot_prompts)
    ]
    runner = TransformersRunner(tiny_models("gpt_neox"), device="cpu", batch_size=16)
    batches = list(runner.plan(by_name, PARAMS))
    seen = []
    prefill = runner._engine._prefill
    runner._engine._prefill = lambda batch: (seen.append(len(batch.prefixes)), prefill(batch))[1]

    answers = {}
    for batch in batches:
        answers |= ask(runner, batch)

    assert len(seen) == len(batches) == 3
    assert min(seen) > 1
    assert answers == decoded(loaded("gpt_neox")[1], one_by_one("gpt_neox"))


def test_a_prefix_is_computed_once_for_all_batches_of_a_group(neox, shot_prompts, monkeypatch):
    runner = TransformersRunner.rebatched(neox, 5)
    runner._planner.batch_size = 4
    seen = []
    prefill = runner._engine._prefill
    monkeypatch.setattr(
        runner._engine, "_prefill", lambda batch: (seen.append(batch.prefixes), prefill(batch))[1]
    )

    batches = list(runner.plan(shot_prompts, PARAMS))
    for batch in batches:
        ask(runner, batch)

    assert len(batches) > 12
    assert len(seen) == len(set(seen)) == 4


def test_stop_strings_cut_answers(neox, loaded, one_by_one, shot_prompts):
    tokenizer = loaded("gpt_neox")[1]
    params = GenerationParams(max_new_tokens=N_NEW, stop=("a", "Q:"))

    answers = {answer.prompt_id: answer for answer in neox.generate(shot_prompts, params)}

    reasons = set()
    for name, ids in one_by_one("gpt_neox").items():
        steps = [tokenizer.decode(ids[: n + 1], skip_special_tokens=True) for n in range(N_NEW)]
        ends = [n for n, text in enumerate(steps) if cut_at_stop(text, params.stop) is not None]
        answer = answers[name]
        assert answer.finish_reason == ("stop" if ends else "length")
        assert answer.n_new_tokens == (ends[0] + 1 if ends else N_NEW)
        assert answer.text == (cut_at_stop(steps[ends[0]], params.stop) if ends else steps[-1])
        reasons.add(answer.finish_reason)
    assert reasons == {"stop", "length"}


def edited(path, target, name="generation_config.json", **settings):
    """Copy a model folder and change settings in a file."""
    file = shutil.copytree(path, target) / name
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    return target


def test_end_tokens_end_answers(tiny_models, loaded, one_by_one, shot_prompts, tmp_path):
    tokenizer = loaded("gpt_neox")[1]
    answers = one_by_one("gpt_neox")
    written = [ids[4] for ids in answers.values()]
    ends = [0, *sorted(set(written), key=written.count)[-2:]]
    folder = edited(tiny_models("gpt_neox"), tmp_path / "m", eos_token_id=ends)

    runner = TransformersRunner(folder, device="cpu")
    found = {answer.prompt_id: answer for answer in runner.generate(shot_prompts, PARAMS)}

    n_ended = 0
    for name, ids in answers.items():
        stops = [n for n, token in enumerate(ids) if token in ends]
        kept = ids[: stops[0]] if stops else ids
        assert found[name].text == tokenizer.decode(kept, skip_special_tokens=True)
        assert found[name].finish_reason == ("stop" if stops else "length")
        n_ended += bool(stops)
    assert n_ended > 0
    assert runner.fingerprint()["generation_config"]["eos_token_id"] == ends


def test_penalties_of_the_model_are_applied_and_its_sampling_is_not(
    tiny_models, loaded, one_by_one, shot_prompts, tmp_path
):
    own = {"repetition_penalty": 1.5, "do_sample": True, "temperature": 0.6, "top_p": 0.9}
    folder = edited(tiny_models("gpt_neox"), tmp_path / "m", top_k=20, max_length=77, **own)

    runner = TransformersRunner(folder, device="cpu")

    expected = one_by_one("gpt_neox", repetition_penalty=1.5)
    assert expected != one_by_one("gpt_neox")
    assert ask(runner, shot_prompts) == decoded(loaded("gpt_neox")[1], expected)
    assert runner.fingerprint()["generation_config"]["repetition_penalty"] == 1.5
    assert "temperature" not in runner.fingerprint()["generation_config"]


def test_samples_depend_on_the_seed_and_not_on_the_batch(neox, shot_prompts):
    hot = GenerationParams(max_new_tokens=N_NEW, stop=(), temperature=1.5, top_p=0.95, seed=1)

    batched = ask(neox, shot_prompts, hot)
    alone = {}
    for prompt in shot_prompts[::6]:
        alone |= ask(neox, [prompt], hot)
    other = ask(neox, shot_prompts, hot.model_copy(update={"seed": 2}))

    assert alone == {name: batched[name] for name in alone}
    assert sum(batched[name] != other[name] for name in batched) > 0.9 * len(batched)
    assert batched != ask(neox, shot_prompts)


def test_tokens_are_counted_and_batches_sorted_by_them(neox, loaded, shot_prompts):
    tokenizer = loaded("gpt_neox")[1]

    answers = {answer.prompt_id: answer for answer in neox.generate(shot_prompts[:3], PARAMS)}
    batches = list(neox.plan(shot_prompts, PARAMS))

    for prompt in shot_prompts[:3]:
        n_tokens = len(tokenizer(prompt.text)["input_ids"])
        assert answers[prompt.id].n_prompt_tokens == n_tokens == neox.count_tokens(prompt)
        assert answers[prompt.id].n_new_tokens == N_NEW
    assert [len(batch) for batch in batches] == [24, 24]
    assert not {p.group for p in batches[0]} & {p.group for p in batches[1]}
    lengths = [neox.count_tokens(prompt) for prompt in batches[0][:12]]
    assert lengths == sorted(lengths, reverse=True)


def test_another_layout_shares_the_model_and_mixes_the_batches(neox, shot_prompts):
    """The second run of the noise floor has equal weights, other batches and fingerprint."""
    other = neox.rebatched(7)

    assert other._engine is neox._engine
    assert other.fingerprint() == neox.fingerprint() | {"layout": "shuffled 7"}
    first, second = (
        [[prompt.id for prompt in batch] for batch in runner.plan(shot_prompts, PARAMS)]
        for runner in (neox, other)
    )
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    assert ask(other, shot_prompts) == ask(neox, shot_prompts)


def test_prompts_longer_than_the_context_raise_an_error_before_any_work(neox, shot_prompts):
    long = Prompt(id="long", text=shot_prompts[0].text * 6)
    longer = Prompt(id="longer", text=shot_prompts[0].text * 7)
    n_tokens = neox.count_tokens(longer)

    with pytest.raises(
        RunnerError,
        match=rf"prompt 'longer' has {n_tokens} tokens; gpt_neox accepts 500 \(512 minus 12 new"
        r" ones\)\. 2 of 3 prompts are too long: use fewer shots if the study has them, or use a",
    ):
        neox.plan([shot_prompts[0], long, longer], PARAMS)
    # A prompt that allows fewer new tokens, such as in SLAQ, is run with that number.
    n_left = 512 - neox.count_tokens(shot_prompts[0])
    with pytest.raises(RunnerError, match=f"too long: set at most {n_left} new tokens, use fewer"):
        neox.plan(shot_prompts[:1], PARAMS.model_copy(update={"max_new_tokens": n_left + 1}))
    neox.plan(shot_prompts[:1], PARAMS.model_copy(update={"max_new_tokens": n_left}))
    with pytest.raises(RunnerError, match="prompt 'long' has"):
        list(neox.generate([long], PARAMS))
    assert neox.fits(shot_prompts[0], PARAMS)
    assert not neox.fits(long, PARAMS)


def test_batches_are_halved_if_the_device_is_out_of_memory(
    neox, loaded, one_by_one, shot_prompts, tmp_path, manifest, monkeypatch
):
    """If the device is full, the run continues with smaller batches and equal answers."""
    generate = neox._engine.generate
    sizes = []

    def small(batch, config, **options):
        sizes.append(len(batch.suffixes))
        if len(batch.suffixes) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return generate(batch, config, **options)

    monkeypatch.setattr(neox._engine, "generate", small)
    with pytest.raises(RunnerOutOfMemoryError, match=r"12 prompts of up to \d+ tokens do not fit"):
        list(neox.generate(shot_prompts[:12], PARAMS))
    with RunLog.open(tmp_path / "log.jsonl", manifest) as log:
        summary = run_prompts(neox, shot_prompts, PARAMS, log, progress=False)

    assert summary.n_errors == 0
    assert sizes[:6] == [12, 24, 12, 6, 3, 3]
    assert max(sizes[4:]) == 3
    texts = {item.prompt_id: item.text for item in read_generations(log.path)}
    assert texts == decoded(loaded("gpt_neox")[1], one_by_one("gpt_neox"))


NO_ROOM = "[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes"


@pytest.mark.parametrize(
    ("message", "kind", "remedy"),
    [
        (NO_ROOM, RunnerOutOfMemoryError, "do not fit into"),
        ("MPS backend out of memory (allocated: 9 GB)", RunnerOutOfMemoryError, "do not fit into"),
        ("The size of tensor a (3) must match that of b (4)", RuntimeError, "must match"),
    ],
)
def test_a_full_memory_is_distinguished_from_other_failures(
    neox, shot_prompts, monkeypatch, message, kind, remedy
):
    def fail(batch, config, **options):
        raise RuntimeError(message)

    monkeypatch.setattr(neox._engine, "generate", fail)

    with pytest.raises(kind, match=remedy) as raised:
        list(neox.generate(shot_prompts[:2], PARAMS))
    assert type(raised.value) is kind


def with_template(path, target, **changes):
    """Copy a model folder and give its tokenizer a chat template."""
    shutil.copytree(path, target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(target)
    for name, value in {"chat_template": TEMPLATE, **changes}.items():
        setattr(tokenizer, name, value)
    tokenizer.save_pretrained(target)
    return target


def chat(*contents, role="user"):
    turns = tuple(Message(role=role, content=content) for content in contents)
    return Prompt(id="chat", messages=turns)


def test_conversations_are_rendered_by_the_chat_template(tiny_models, tmp_path, shot_prompts):
    folder = with_template(tiny_models("gpt_neox"), tmp_path / "m")
    runner = TransformersRunner(folder, device="cpu", chat_options={"suffix": " So:"})
    text = Prompt(id="chat", text="[user] What is it?\n[assistant] So:")

    assert ask(runner, [chat("What is it?")]) == ask(runner, [text])
    plain = TransformersRunner(folder, device="cpu")
    assert runner.fingerprint()["chat_template"] != plain.fingerprint()["chat_template"]
    assert len(ask(plain, [chat("What is it?").model_copy(update={"id": "c"}), text])) == 2


def test_a_template_that_writes_the_start_token_gets_one(tiny_models, tmp_path):
    folder = with_template(tiny_models("gpt_neox"), tmp_path / "m")
    raw = json.loads((folder / "tokenizer.json").read_text())
    start = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}
    row = [start, {"Sequence": {"id": "A", "type_id": 0}}]
    raw["post_processor"] = {"type": "TemplateProcessing", "single": row, "pair": row}
    name = "<|endoftext|>"
    special = {name: {"id": name, "ids": [0], "tokens": [name]}}
    raw["post_processor"]["special_tokens"] = special
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    runner = TransformersRunner(folder, device="cpu")

    bare = TransformersRunner(tiny_models("gpt_neox"), device="cpu")
    text = Prompt(id="t", text="[user] hey\n[assistant]")
    assert runner.count_tokens(text) == bare.count_tokens(text) + 1
    assert runner.count_tokens(chat("hey")) == bare.count_tokens(text)


def test_conversations_need_a_template_that_accepts_them(neox, tiny_models, tmp_path):
    runner = TransformersRunner(
        with_template(tiny_models("gpt_neox"), tmp_path / "m"), device="cpu"
    )

    with pytest.raises(RunnerError, match=r"gpt_neox has no chat template, .* prompt 'chat'; omi"):
        list(neox.generate([chat("hey")], PARAMS))
    with pytest.raises(RunnerError, match="template of m rejects prompt 'chat': no system; change"):
        list(runner.generate([chat("Be brief.", role="system")], PARAMS))


def test_an_empty_prompt_needs_a_start_token(neox, tiny_models, tmp_path):
    empty = Prompt(id="e", text="")
    with pytest.raises(RunnerError, match="prompt 'e' has no tokens and gpt_neox has no start tok"):
        neox.count_tokens(empty)

    folder = with_template(tiny_models("gpt_neox"), tmp_path / "m", bos_token="<|endoftext|>")
    runner = TransformersRunner(folder, device="cpu")
    assert runner.count_tokens(empty) == 1
    assert len(ask(runner, [empty, Prompt(id="x", text="Q: x A:")])) == 2


def test_a_tokenizer_of_another_model_raises_an_error(tiny_models, tmp_path):
    folder = shutil.copytree(tiny_models("gpt_neox"), tmp_path / "m")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(folder)
    runner = TransformersRunner(folder, device="cpu")

    with pytest.raises(RunnerError, match=r"of m returns token \d+ for prompt 'x', but the vocab"):
        runner.count_tokens(Prompt(id="x", text="a <new> b"))


def test_the_fingerprint_contains_the_determinants_of_the_answers(neox, tiny_models):
    shown = neox.fingerprint()
    expected = {
        **{"model": "gpt_neox", "revision": None, "dtype": "float32", "device": "cpu"},
        **{"batch_size": 32, "padding": "left", "torch": torch.__version__},
        "transformers": transformers.__version__,
    }

    assert {name: shown[name] for name in expected} == expected
    assert shown == json.loads(json.dumps(shown))
    assert shown == TransformersRunner(tiny_models("gpt_neox"), device="cpu").fingerprint()
    low = TransformersRunner(tiny_models("gpt_neox"), device="cpu", dtype="bfloat16").fingerprint()
    assert (low["dtype"], low["prefix_reuse"]) == ("bfloat16", "on")


def test_error_names_models_that_cannot_be_loaded(tiny_models, tmp_path):
    folder = shutil.copytree(tiny_models("gpt_neox"), tmp_path / "m")
    weights, tokenizer = folder / "model.safetensors", folder / "tokenizer.json"
    torn = weights.read_bytes()[:-100]
    for damage, message in (
        (lambda: weights.write_bytes(torn), r"the model of m cannot be loaded \(SafetensorError: "),
        (weights.unlink, r"the model of m cannot be loaded \(OSError: .*check tha"),
        (lambda: tokenizer.write_text("{"), r"the tokenizer of m cannot be loaded \("),
    ):
        damage()
        with pytest.raises(RunnerError, match=message):
            TransformersRunner(folder, device="cpu")

    tokenizer.unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(SourceNotFoundError, match="m contains a model but no tokenizer"):
        TransformersRunner(folder, device="cpu")


def test_a_model_with_custom_code_needs_trust_remote_code(tiny_models, tmp_path):
    names = {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}
    own = {"model_type": "mine", "auto_map": names}
    folder = edited(tiny_models("gpt_neox"), tmp_path / "m", "config.json", **own)

    with pytest.raises(RunnerError, match="m contains its own code; read it, then pass trust_rem"):
        TransformersRunner(folder, device="cpu")


def test_the_runner_rejects_invalid_options(tiny_models):
    with pytest.raises(ValueError, match="`batch_size` must be at least 1, got 0"):
        TransformersRunner(tiny_models("gpt_neox"), batch_size=0)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "least"), [("float32", 1.0), ("bfloat16", 0.7)])
def test_answers_on_a_gpu_equal_those_of_single_prompts(tiny_models, shot_prompts, dtype, least):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU")
    first, second = (
        ask(
            TransformersRunner(tiny_models("llama"), device="cuda", dtype=dtype, **how),
            shot_prompts,
        )
        for how in ({}, {"batch_size": 1, "reuse_prefix": False})
    )

    assert sum(first[name] == second[name] for name in first) / len(first) >= least


def test_a_context_shorter_than_the_probe_is_not_an_error(tmp_path, tiny_models):
    config = transformers.GPT2Config(n_embd=48, n_layer=2, n_head=4, n_positions=16)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_models("gpt2"))
    config.vocab_size = len(tokenizer)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)

    runner = TransformersRunner(str(tmp_path), device="cpu")

    assert "refuses the probe" in str(runner.fingerprint())
