"""Composition of batches, and digests of chat templates."""

import itertools
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from surface_consistency.models._batching import PromptEncoder, common_prefix_length, cut_batches

PROMPTS = st.lists(
    st.tuples(st.integers(1, 50), st.sampled_from([None, "a", "b", "c"])), min_size=1
)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1), min_size=1))
def test_common_prefix_length_agrees_with_a_loop(rows):
    expected = 0
    while all(len(row) > expected + 1 for row in rows):
        if len({row[expected] for row in rows}) > 1:
            break
        expected += 1

    assert common_prefix_length(rows) == expected


@pytest.mark.parametrize(
    ("rows", "expected"), [([[1, 2, 3]], 2), ([[1]], 0), ([[1, 2], [1, 2]], 1), ([[1, 2], [3]], 0)]
)
def test_common_prefix_is_shorter_than_each_row(rows, expected):
    assert common_prefix_length(rows) == expected


@given(PROMPTS, st.integers(1, 12), st.sampled_from([None, 0, 1]))
def test_batches_contain_every_prompt_once_and_are_bounded(prompts, batch_size, seed):
    lengths, groups = zip(*prompts, strict=True)

    batches = cut_batches(lengths, groups, batch_size=batch_size, shuffle_seed=seed)

    assert sorted(itertools.chain(*batches)) == [*range(len(prompts))]
    assert all(0 < len(batch) <= batch_size for batch in batches)
    assert batches == cut_batches(lengths, groups, batch_size=batch_size, shuffle_seed=seed)


@given(PROMPTS, st.integers(1, 12))
def test_a_large_group_never_shares_a_batch(prompts, batch_size):
    lengths, groups = zip(*prompts, strict=True)
    sizes = Counter(groups)

    for batch in cut_batches(lengths, groups, batch_size=batch_size):
        in_batch = {groups[position] for position in batch}
        if any(2 * sizes[group] >= batch_size for group in in_batch):
            (group,) = in_batch
            n_batches = -(-sizes[group] // batch_size)
            assert sizes[group] // n_batches <= len(batch) <= sizes[group] // n_batches + 1


def test_batches_are_sorted_by_decreasing_length():
    batches = cut_batches([3, 9, 5, 7], ["a"] * 4, batch_size=2)

    assert batches == [[1, 3], [2, 0]]


def test_small_groups_are_not_split_between_batches():
    groups = [name for name in "abcdefg" for _ in range(3)]
    batches = cut_batches([5] * 21, groups, batch_size=8)

    packed = [sorted(groups[position] for position in batch) for batch in batches]
    assert packed == [sorted(pair * 3) for pair in ("ab", "cd", "ef", "g")]


def test_shuffle_seeds_change_the_composition_of_batches():
    first, second, third = (
        {*map(frozenset, cut_batches([5] * 40, ["a"] * 40, batch_size=8, shuffle_seed=seed))}
        for seed in (None, 1, 2)
    )

    assert not first & second
    assert second != third


@pytest.mark.parametrize(
    ("template", "options", "digest"),
    [
        ("{{ messages }}", {}, "669282171c091183"),
        ("{{ messages }}", {"enable_thinking": False}, "0555d967a4ca5e3a"),
        ("", {}, None),
        (None, {}, None),
    ],
)
def test_digest_of_a_chat_template_equals_that_of_existing_manifests(template, options, digest):
    """A changed digest would prevent resuming a run; these are computed with sha256sum."""
    tokenizer = SimpleNamespace(chat_template=template)
    encoder = PromptEncoder(tokenizer=tokenizer, label="m", vocabulary=9, chat_options=options)

    assert encoder.template_digest() == digest
