"""Limited-memory models: answers in batches equal those of single prompts."""

import pytest

from surface_consistency.errors import RunnerError, RunnerOutOfMemoryError
from surface_consistency.schemas import GenerationParams, Message, Prompt
from surface_consistency.schemas.memory import AuditPrompt, Lookup, LookupQuery
from surface_consistency.studies.audit.lookup import runner as module
from surface_consistency.studies.audit.lookup.runner import LookupRunner
from surface_consistency.studies.audit.lookup.settings import LookupSettings
from surface_consistency.studies.audit.matching.judgement import judge_answer
from surface_consistency.studies.audit.matching.markup import parse_lookups
from surface_consistency.studies.audit.toy_model import train_memory_toy_model

TABLE = {
    "France": ("Paris", "Euro", "French"),
    "Norway": ("Oslo", "Norwegian krone", "Norwegian"),
    "Peru": ("Lima", "Sol", "Spanish"),
    "Côte d'Ivoire": ("Yamoussoukro", "West African CFA franc", "French"),
    "Washington": ("Olympia", "U.S. Dollar", "English"),
}
RELATIONS = {
    "Capital": "What is the capital of {}?",
    "Currency": "Tell me about {}. The currency used there is",
    "Language": "Complete the sentence: The language of {} is ____.",
}
LEAKED = ("Norway", "Currency")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
PARAMS = GenerationParams(max_new_tokens=30, stop=())
TOKENS = LookupSettings().tokens
EAGER = LookupSettings(entity_bias=1.0, other_bias=3.0, repetition_penalty=1.5, max_lookups=3)


class Store:
    """A store of exact strings in three states, which counts its calls."""

    def __init__(self, facts, off="allow"):
        self.facts = facts
        self.off = off
        self.asked = []

    def mode(self, prompt):
        return self.off if prompt.condition == "DEL-OFF" else "answer"

    def look_up(self, requests):
        self.asked.append(list(requests))
        known = [self.facts if prompt.condition == "FULL" else {} for prompt, _ in requests]
        return [
            Lookup(query=query, value=facts.get((query.entity, query.relation)))
            for facts, (_, query) in zip(known, requests, strict=True)
        ]


@pytest.fixture(scope="session")
def audit_prompts():
    facts = [
        (subject, relation, gold, template.format(subject))
        for subject, row in TABLE.items()
        for gold, (relation, template) in zip(row, RELATIONS.items(), strict=True)
    ]
    names = ("subject", "relation", "gold_object", "prompt_text")
    return [
        AuditPrompt(prompt_id=number, fact_id=number, **dict(zip(names, fact, strict=True)))
        for number, fact in enumerate(facts)
    ]


@pytest.fixture(scope="session")
def facts(audit_prompts):
    return {(prompt.subject, prompt.relation): prompt.gold_object for prompt in audit_prompts}


@pytest.fixture(scope="session")
def state_prompts(audit_prompts):
    """Every prompt in every state."""
    return [
        Prompt(id=f"{prompt.fact_id}/{state}", text=prompt.prompt_text, condition=state)
        for prompt in audit_prompts
        for state in ("FULL", "DEL-ON", "DEL-OFF")
    ]


@pytest.fixture(scope="session")
def make_store(facts):
    return lambda **options: Store(facts, **options)


@pytest.fixture(scope="session")
def toy_model(audit_prompts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy_model")
    return train_memory_toy_model(audit_prompts, folder, leaked=[LEAKED], steps=160)


@pytest.fixture(scope="session")
def random_models(tiny_models, tmp_path_factory):
    """Return a function that creates or finds a tiny random model with lookup tokens."""
    model_of = transformers.AutoModelForCausalLM.from_pretrained
    folder = tmp_path_factory.mktemp("random")

    def find(family):
        path = folder / family
        if not path.exists():
            tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_models(family))
            tokenizer.add_tokens(list(TOKENS), special_tokens=True)
            tokenizer.save_pretrained(path)
            model = model_of(tiny_models(family))
            torch.manual_seed(1)
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
            for embedding in (model.get_input_embeddings(), model.get_output_embeddings()):
                torch.nn.init.normal_(embedding.weight.data[-4:], std=0.25)
            model.save_pretrained(path)
        return path

    return find


@pytest.fixture(scope="module")
def runner(toy_model, make_store):
    return LookupRunner(toy_model, store=make_store(), device="cpu")


class Echo:
    """Answers with the words of the query, so that all values differ."""

    def mode(self, prompt):
        return prompt.condition or "answer"

    def look_up(self, requests):
        names = [query.entity for _, query in requests]
        values = [None if len(name) % 3 == 0 else name[:12] for name in names]
        return [
            Lookup(query=query, value=value)
            for value, (_, query) in zip(values, requests, strict=True)
        ]


def ask(runner, prompts, params=PARAMS):
    return {answer.prompt_id: answer for answer in runner.generate(prompts, params)}


def one_by_one(runner, prompts, params=PARAMS):
    return {prompt.id: next(runner.generate([prompt], params)) for prompt in prompts}


def by_generate(runner, prompt, source, settings, n_new):
    """Complete one prompt by `generate` of transformers, from the start after each lookup."""
    model, tokenizer = runner._engine.model, runner._encoder.tokenizer
    entity, relation, result, end = tokenizer.convert_tokens_to_ids(list(settings.tokens))
    ids = list(tokenizer(prompt.text)["input_ids"])
    n_prompt, n_left, n_lookups = len(ids), n_new, 0
    while n_left:
        bias = {entity: settings.entity_bias} | dict.fromkeys(
            (relation, result, end), settings.other_bias
        )
        if n_lookups == settings.max_lookups:
            bias = dict.fromkeys(bias, float("-inf"))
        config = transformers.GenerationConfig(
            max_new_tokens=n_left,
            do_sample=False,
            repetition_penalty=settings.repetition_penalty,
            eos_token_id=sorted({result, *runner._ends}),
            pad_token_id=0,
        )
        out = model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            generation_config=config,
            logits_processor=[AddBias(bias)],
        )[0].tolist()
        n_left -= len(out) - len(ids)
        ids = out
        if ids[-1] != result:
            break
        found = parse_lookups(tokenizer.decode(ids[n_prompt:]))[-1]
        value = None
        if found.entity and found.relation:
            query = LookupQuery(entity=found.entity, relation=found.relation)
            value = source.look_up([(prompt, query)])[0].value
        shown = "unknown" if value is None else value
        ids += tokenizer(f" {shown}" if shown else "", add_special_tokens=False)["input_ids"]
        ids += [end]
        n_lookups += 1
    written = [token for token in ids[n_prompt:] if token not in runner._ends]
    return tokenizer.decode(written, clean_up_tokenization_spaces=False), n_lookups


class AddBias(transformers.LogitsProcessor):
    def __init__(self, bias):
        self.bias = bias

    def __call__(self, input_ids, scores):
        for token, value in self.bias.items():
            scores[:, token] += value
        return scores


def test_trained_model_looks_up_the_fact_of_its_prompt(runner, state_prompts, audit_prompts, facts):
    found = ask(runner, state_prompts)

    for prompt in audit_prompts:
        full, deleted, off = (
            found[f"{prompt.fact_id}/{state}"] for state in ("FULL", "DEL-ON", "DEL-OFF")
        )
        query = LookupQuery(entity=prompt.subject, relation=prompt.relation)
        assert full.lookups == (Lookup(query=query, value=facts[query.entity, query.relation]),)
        assert full.text == (
            f"<|db_entity|> {prompt.subject}<|db_relationship|> {prompt.relation}"
            f"<|db_return|> {prompt.gold_object}<|db_end|>."
        )
        assert judge_answer(full.text, prompt).correct
        assert full.finish_reason == "stop"
        assert deleted.lookups == (Lookup(query=query, value=None),)
        assert "<|db_return|> unknown<|db_end|>" in deleted.text
        assert off.lookups == ()


@pytest.mark.parametrize("off", ["allow", "forbid", "null"])
def test_batches_agree_with_one_by_one(toy_model, make_store, state_prompts, off):
    runner = LookupRunner(toy_model, store=make_store(off=off), device="cpu", batch_size=64)

    together = ask(runner, state_prompts)

    assert together == one_by_one(runner, state_prompts)
    assert together == ask(runner, state_prompts[::-1])


def some_query(reader, row):
    """Parse a query from the text of a random model."""
    written = reader.decode(row.ids[row.n_prompt :])
    return LookupQuery(entity=written[-20:], relation="r")


@pytest.mark.parametrize("family", ["llama", "gpt_neox", "gpt2", "mistral", "mamba"])
def test_random_models_agree_with_one_by_one(random_models, shot_prompts, family, monkeypatch):
    monkeypatch.setattr(module.Reader, "query", some_query)
    runner = LookupRunner(
        random_models(family), store=Echo(), settings=EAGER, device="cpu", batch_size=40
    )
    shared = family not in ("mistral", "mamba")
    prompts = [
        Prompt(id=f"{prompt.id}/{mode}", text=prompt.text[-60:], condition=mode)
        for prompt in shot_prompts[:: 5 if shared else 16]
        for mode in ("answer", "null", "allow", "forbid")
    ]

    together = ask(runner, prompts)

    assert together == one_by_one(runner, prompts)
    assert sum(len(answer.lookups) for answer in together.values()) >= 4
    forbidden = [answer.text for name, answer in together.items() if name.endswith("forbid")]
    assert not any(token in text for text in forbidden for token in TOKENS)
    assert runner.fingerprint()["batch_size"] == (40 if shared else 1)


def test_models_agree_with_generate(random_models, shot_prompts, runner, state_prompts, make_store):
    random = LookupRunner(random_models("llama"), store=Echo(), settings=EAGER, device="cpu")
    shots = [Prompt(id=prompt.id, text=prompt.text[-60:]) for prompt in shot_prompts[::3]]
    asked = [prompt for prompt in state_prompts if prompt.condition != "DEL-OFF"]

    for model, prompts, source in ((random, shots, Echo()), (runner, asked, make_store())):
        found = ask(model, prompts)

        for prompt in prompts:
            expected = by_generate(model, prompt, source, model.settings, PARAMS.max_new_tokens)
            one = found[prompt.id]
            assert (one.text, len(one.lookups)) == expected


def test_lookups_are_sent_together_and_identical_prompts_are_one_row(
    toy_model, state_prompts, make_store, monkeypatch
):
    store, n_rows, decode = make_store(), [], module.decode
    runner = LookupRunner(toy_model, store=store, device="cpu", batch_size=64)

    def counted(engine, rows, *args, **options):
        n_rows.append(len(rows))
        return decode(engine, rows, *args, **options)

    monkeypatch.setattr(module, "decode", counted)

    (batch,) = runner.plan(state_prompts, PARAMS)
    ask(runner, batch)

    assert [prompt.text for prompt in batch[:3]] == [batch[0].text] * 3
    assert n_rows == [30]
    assert sum(len(requests) for requests in store.asked) == 30
    assert len(store.asked) <= 3


@pytest.mark.parametrize("n_lookups", [0, 1, 2])
def test_lookups_are_limited(random_models, shot_prompts, n_lookups):
    settings = LookupSettings(entity_bias=0.0, other_bias=9.0, max_lookups=n_lookups)
    runner = LookupRunner(random_models("llama"), store=Echo(), settings=settings, device="cpu")

    found = ask(runner, shot_prompts[:6])

    assert {len(answer.lookups) for answer in found.values()} == {n_lookups}
    assert {answer.text.count(TOKENS[2]) for answer in found.values()} == {n_lookups}


def test_inserted_tokens_do_not_count_towards_the_limit(runner, state_prompts):
    prompt = next(prompt for prompt in state_prompts if "Côte" in prompt.text)
    whole = next(runner.generate([prompt], PARAMS))

    for n_new in range(1, 14):
        params = GenerationParams(max_new_tokens=n_new, stop=())
        cut = next(runner.generate([prompt], params))

        assert whole.text.startswith(cut.text)
        assert cut.n_new_tokens == min(n_new, whole.n_new_tokens)
        assert cut.finish_reason == ("stop" if n_new >= whole.n_new_tokens else "length")
        # A lookup that ends with the last token still gets its value.
        assert ("<|db_end|>" in cut.text) == ("<|db_return|>" in cut.text) == bool(cut.lookups)


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ((".",), "<|db_entity|> Peru<|db_relationship|> Capital<|db_return|> Lima<|db_end|>"),
        # Neither the query nor an inserted value stops a text.
        ((" Peru", "Lima", "db_"), None),
    ],
    ids=["after", "inside"],
)
def test_stop_strings_apply_outside_of_lookups(runner, stop, text):
    prompt = Prompt(id="q", text="What is the capital of Peru?", condition="FULL")

    found = next(runner.generate([prompt], GenerationParams(max_new_tokens=30, stop=stop)))

    assert found.text == (text or next(runner.generate([prompt], PARAMS)).text)
    assert found.finish_reason == "stop"


def test_stop_strings_agree_with_one_by_one(random_models, shot_prompts):
    runner = LookupRunner(random_models("llama"), store=Echo(), settings=EAGER, device="cpu")
    plain = ask(runner, shot_prompts[:12])
    outside = "".join(one.text.partition("<|")[0] for one in plain.values())
    params = GenerationParams(max_new_tokens=30, stop=tuple(sorted({*outside} - {"\n"})[:12]))

    found = ask(runner, shot_prompts[:12], params)

    assert found == one_by_one(runner, shot_prompts[:12], params)
    assert all(plain[name].text.startswith(one.text) for name, one in found.items())
    assert any(one.text != plain[name].text for name, one in found.items())


@pytest.mark.parametrize(
    ("text", "inserted"), [("n/a", "<|db_return|> n/a<|db_end|>"), ("", "<|db_return|><|db_end|>")]
)
def test_null_result_is_inserted_without_a_query(
    toy_model, make_store, state_prompts, text, inserted
):
    store = make_store(off="null")
    settings = LookupSettings(null_text=text)
    runner = LookupRunner(toy_model, store=store, settings=settings, device="cpu")
    prompts = [prompt for prompt in state_prompts if prompt.condition == "DEL-OFF"]

    found = ask(runner, prompts)

    assert store.asked == []
    assert all(inserted in one.text for one in found.values())
    assert {one.value for answer in found.values() for one in answer.lookups} == {None}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("{e}{r}{v}", None),
        ("{e} A{v}", None),
        ("{r} R{v}", None),
        ("{v}", None),
        ("{e} A{r}{v}", None),
        # The query of a nested lookup is the innermost one.
        ("{e} A {e} B{r} R{v}", LookupQuery(entity="B", relation="R")),
    ],
)
def test_invalid_queries_are_not_sent(runner, text, query):
    tokenizer = runner._encoder.tokenizer
    options = {"tokens": runner._tokens, "ends": runner._ends, "stop": (), "max_new_tokens": 99}
    reader, row = module.Reader(tokenizer, **options), module.Row([0], "pause", 0, [])
    written = text.format(e=TOKENS[0], r=TOKENS[1], v=TOKENS[2])
    for token in tokenizer(written)["input_ids"]:
        reader.take(row, token)

    assert row.state == "paused"
    assert reader.query(row) == query


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        (
            "Lima " * 600,
            ("the value 'Lima Lima", "the context has 512. Shorten the value, or lower max_new_to"),
        ),
        ("Lima<|db_end|> Oslo", ("of the store contains a lookup token; correct the store",)),
    ],
    ids=["huge", "token"],
)
def test_invalid_values_are_errors_of_their_prompt(
    toy_model, facts, make_store, state_prompts, value, messages
):
    store = make_store()
    store.facts = facts | {("Peru", "Capital"): value}
    runner = LookupRunner(toy_model, store=store, device="cpu")
    prompts = [prompt for prompt in state_prompts if prompt.condition == "FULL"]

    found = ask(runner, prompts)

    (failed,) = [one for one in found.values() if one.finish_reason == "error"]
    assert len(found) == len(prompts)
    assert failed.prompt_id == "6/FULL"
    assert all(message in failed.error for message in messages)


def test_lookup_runner_rejects_a_tokenizer_without_lookup_tokens(tiny_models, make_store):
    with pytest.raises(RunnerError, match=r"<\|db_entity\|>, .*<\|db_end\|>.*RetrievalAugmented"):
        LookupRunner(tiny_models("llama"), store=make_store(), device="cpu")


def test_lookup_runner_rejects_tokens_outside_the_vocabulary_of_the_model(
    tiny_models, random_models, make_store, tmp_path
):
    for kind, folder in (
        (transformers.AutoModelForCausalLM, tiny_models("llama")),
        (transformers.AutoTokenizer, random_models("llama")),
    ):
        kind.from_pretrained(folder).save_pretrained(tmp_path)

    with pytest.raises(RunnerError, match="was not trained on them: resize_token_embeddings"):
        LookupRunner(tmp_path, store=make_store(), device="cpu")


def test_lookup_runner_rejects_sampling_long_prompts_and_conversations(runner, state_prompts):
    chat = Prompt(id="q", messages=[Message(role="user", content="Capital of Peru?")])

    with pytest.raises(ValueError, match=r"temperature must be 0, got 0\.5"):
        runner.generate(state_prompts, GenerationParams(temperature=0.5))
    with pytest.raises(RunnerError, match="'long'"):
        list(runner.plan([Prompt(id="long", text="capital " * 600)], PARAMS))
    with pytest.raises(RunnerError, match=r"no chat template.*prompt 'q'"):
        list(runner.generate([chat], PARAMS))


@pytest.mark.parametrize("answers", [[], ["Paris"]], ids=["none", "text"])
def test_lookup_runner_rejects_invalid_answers_of_a_store(runner, answers):
    class Broken(Echo):
        def look_up(self, requests):
            return answers

    prompt = Prompt(id="q", text="What is the capital of Peru?", condition="answer")
    message = f"Broken.look_up returned {len(answers)} answers, 0 of them a Lookup, for 1 requests"

    with pytest.raises(RunnerError, match=f"{message}.*prompt 'q'"):
        list(runner.with_store(Broken()).generate([prompt], PARAMS))
    other = prompt.model_copy(update={"condition": "FULL"})
    with pytest.raises(RunnerError, match=r"Broken\.mode returned 'FULL' for prompt 'q'; a mode"):
        list(runner.with_store(Broken()).generate([other], PARAMS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repetition_penalty": 0.0}, "above 0"),
        ({"max_lookups": -1}, "0 or more, got -1"),
        ({"end_token": "<|db_return|>"}, "must differ and not be empty"),
        ({"entity_token": ""}, "must differ and not be empty"),
    ],
    ids=["penalty", "lookups", "same", "empty"],
)
def test_settings_reject_invalid_values(options, message):
    with pytest.raises(ValueError, match=message):
        LookupSettings(**options)


@pytest.mark.parametrize(
    ("raised", "error", "message"),
    [
        (
            "DefaultCPUAllocator: can't allocate memory: 9 bytes",
            RunnerOutOfMemoryError,
            r"2 prompts of up to .* smaller batch_size",
        ),
        ("shapes differ", RuntimeError, "shapes differ"),
    ],
    ids=["memory", "other"],
)
def test_out_of_memory_errors_are_distinguished(
    runner, state_prompts, monkeypatch, raised, error, message
):
    def fail(*args, **options):
        raise RuntimeError(raised)

    monkeypatch.setattr(module, "decode", fail)

    with pytest.raises(error, match=message):
        list(runner.generate(state_prompts[:2], PARAMS))


def test_fingerprint_contains_decoding_and_store(toy_model, make_store):
    echo = Echo()
    echo.fingerprint = lambda: {"database": "d41d8cd9"}
    plain = LookupRunner(toy_model, store=make_store(), device="cpu").fingerprint()
    other = LookupRunner(toy_model, store=echo, settings=EAGER, device="cpu").fingerprint()

    assert (plain["runner"], plain["source"]) == ("lookup", "Store")
    names = ("repetition_penalty", "entity_bias", "other_bias", "max_lookups")
    assert [plain["lookup"][name] for name in names] == [1.2, 4.0, 2.0, 4]
    assert other["source"] == {"database": "d41d8cd9"}
    assert other["lookup"] != plain["lookup"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_agrees_with_cpu(toy_model, make_store, state_prompts):
    on_gpu, on_cpu = (
        ask(LookupRunner(toy_model, store=make_store(), device=device), state_prompts)
        for device in ("cuda", "cpu")
    )

    assert on_gpu == on_cpu
