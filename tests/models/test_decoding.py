"""Sampling and the end of continuations."""

import pytest
from hypothesis import given, strategies as st

from surface_consistency.models._decoding import SeededSampling, StopTracker, cut_at_stop
from surface_consistency.models.reasoning import reasoning_tags
from surface_consistency.schemas import GenerationParams
from surface_consistency.text import first_line

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        (" London\nQ: Who", ["\n"], " London"),
        ("\n\nLondon\nQ:", ["\n"], "\n\nLondon"),
        ("\nLondon\n", ["\n"], "\nLondon"),
        (" London", ["\n"], None),
        ("\n\n", ["\n"], None),
        ("", ["\n"], None),
        (" \nLondon", ["\n"], " "),
        ("J. K. Rowling Q: A:\n", ["\n", "Q:"], "J. K. Rowling "),
        ("\nQ: next", ["Q:"], "\n"),
        ("a\nb", [], None),
    ],
)
def test_cut_at_stop_ignores_stop_strings_before_the_first_text(text, stop, expected):
    assert cut_at_stop(text, stop) == expected


@given(st.text("ab \n"))
def test_stopping_at_the_newline_keeps_the_first_line(text):
    cut = cut_at_stop(text, ["\n"])

    assert first_line(text if cut is None else cut) == first_line(text)


class Letters:
    """A tokenizer with one letter per token; 9 is special, 10 to 12 form reasoning tags."""

    pieces = (*"\nabcdefgh", "<|end|>", "<think>", "</thi", "nk>\n")

    def __init__(self, special):
        self.added_tokens_decoder = {number: Added(self.pieces[number]) for number in special}

    def decode(self, ids, *, skip_special_tokens, clean_up_tokenization_spaces):
        assert not clean_up_tokenization_spaces
        skipped = self.added_tokens_decoder if skip_special_tokens else ()
        return "".join(self.pieces[token] for token in ids if token not in skipped)


class Added(str):
    """A special token that was added to a tokenizer."""

    special = True


def track(*rows, stop=("\n",), eos=(9,), opened=False, special=(9,), **params):
    """Feed rows of new tokens one column at a time; return results and flags by step."""
    tracker = StopTracker(
        tokenizer=Letters(special),
        params=GenerationParams(stop=stop, **params),
        tags=reasoning_tags(),
        eos=frozenset(eos),
        opened=[opened] * len(rows),
        n_prompt=2,
    )
    table = torch.tensor([[7, 7, *row] for row in rows])
    flags = [tracker(table[:, :end], None).tolist() for end in range(3, table.shape[1] + 1)]
    return tracker.results(), flags


THINKS, NEVER = [10, 1, 2, 11, 12, 3, 4, 5, 6], [10, 1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        (
            ([1, 2, 0, 5], [1, 9, 5, 5], [1, 2, 3, 4], [0, 0, 1, 0]),
            {},
            [("ab", True, 3), ("a", True, 2), ("abcd", False, 4), ("\n\na", True, 4)],
        ),
        # Stop strings end the answer and not the reasoning.
        (
            ([10, 0, 1, 0, 11, 12, 0, 2, 0, 3], [1, 10, 0, 2, 2, 2, 2, 2, 2, 2]),
            {},
            [("<think>\na\n</think>\n\nb", True, 9), ("a<think>", True, 3)],
        ),
        # A prompt that opens the reasoning is followed from the first token.
        (([1, 0, 2, 11, 12, 3, 0, 4],), {"opened": True}, [("a\nb</think>\nc", True, 7)]),
        # Reasoning and answer have separate limits.
        (
            (THINKS, NEVER, [1, 2, 3, 4, 5, 6, 7, 8, 1]),
            {"max_new_tokens": 2, "max_reasoning_tokens": 6},
            [("<think>ab</think>\ncd", False, 7), ("<think>abcde", False, 6), ("ab", False, 2)],
        ),
        # Tags that are special tokens stay in the text.
        (([10, 1, 11, 12, 2, 9],), {"special": (9, 10)}, [("<think>a</think>\nb", True, 6)]),
        # Without stop strings only end tokens stop.
        (([1, 0, 2, 9], [1, 0, 2, 3]), {"stop": ()}, [("a\nb", True, 4), ("a\nbc", False, 4)]),
    ],
)
def test_rows_end_at_stop_strings_end_tokens_and_limits(rows, options, expected):
    results, flags = track(*rows, **options)

    assert results == expected
    for place, (_, has_ended, n_tokens) in enumerate(expected):
        if has_ended:
            ended = [step[place] for step in flags]
            assert ended == [n >= n_tokens for n in range(1, len(flags) + 1)]


def draw(n, *, scores, **params):
    """Draw one token for each of `n` keys."""
    sampling = SeededSampling(
        GenerationParams(**({"temperature": 1.0, "seed": 7} | params)),
        [str(number) for number in range(n)],
    )
    return sampling(None, scores.expand(n, -1)).argmax(dim=-1)


def test_sampling_agrees_with_the_softmax():
    """The bound for 20,000 draws is 5 standard errors."""
    scores = torch.tensor([[2.0, 1.0, 0.0, -1.0]])

    drawn = draw(20_000, scores=scores, temperature=0.8).bincount(minlength=4) / 20_000

    expected = torch.softmax(scores[0] / 0.8, dim=-1)
    assert ((drawn - expected).abs() < 5 * (expected * (1 - expected) / 20_000).sqrt()).all()


def test_nucleus_sampling_excludes_tokens_beyond_top_p():
    transformers = pytest.importorskip("transformers")
    scores = torch.tensor([[2.0, -1.0, 1.0, 0.0, 0.5]])

    for top_p in (0.05, 0.5, 0.7, 0.9, 1.0):
        kept = transformers.TopPLogitsWarper(top_p)(None, scores).isfinite()[0]
        drawn = draw(3_000, scores=scores, top_p=top_p).bincount(minlength=5) > 0
        assert drawn.tolist() == kept.tolist()


def test_draws_depend_only_on_seed_and_content():
    scores = torch.randn(1, 500, generator=torch.Generator().manual_seed(0))
    params = GenerationParams(temperature=1.0, seed=3)

    alone = SeededSampling(params, ["k"])
    in_batch = SeededSampling(params, ["j", "k"])
    other = SeededSampling(params.model_copy(update={"seed": 4}), ["k"])
    draws = [
        [sampling(None, scores.expand(n, -1))[-1].argmax().item() for _ in range(8)]
        for sampling, n in ((alone, 1), (in_batch, 2), (other, 1))
    ]

    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert len(set(draws[0])) > 1


def test_draws_without_a_seed_differ():
    scores = torch.zeros(1, 10_000)

    assert (draw(50, scores=scores, seed=None) != draw(50, scores=scores, seed=None)).any()
