"""Counting n-grams and pairs of names, compared with plain loops, in one process.

Run `python benchmarks/bench_ngrams.py`; prints Markdown tables. N-grams of words are compared with
a dictionary of tuples, n-grams of a tokenizer (trained on the corpus) with only `encode_batch`; all
counts are compared. Pairs are not compared, because no plain loop can count them at this size:
100,000 pairs of 100,000 names by Zipf's law, and one document of 8,000 mentions. Times are CPU time
of the process, medians over interleaved rounds. The exit status is 1 if a budget is missed: 1.5
times the loop over words, 1/1.2 of `encode_batch`, 0.1 s for the document.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from surface_consistency_build.counting import SurfaceTable
from surface_consistency_build.counting.ngrams import NgramCounter
from surface_consistency_build.counting.pairs import PairCounter
from surface_consistency_build.counting.tasks import ModelTokenizer
from surface_consistency_build.counting.texts import PackedTexts
from synthetic_corpus import SyntheticCorpus
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

MEGABYTE = 1_000_000
N = 7


def cpu(call):
    """Return the CPU seconds of a call, and its value."""
    start = time.process_time()
    value = call()
    return time.process_time() - start, value


def corpus_of(n_bytes):
    """Return documents, as text and in batches, and instances with the beginnings of some."""
    documents = list(SyntheticCorpus(20_000).documents(n_bytes))
    documents = [text.decode() if isinstance(text, bytes) else text for text in documents]
    step = max(1, len(documents) // 8)
    batches = [PackedTexts.pack(documents[k : k + step]) for k in range(0, len(documents), step)]
    return documents, batches, [" ".join(text.split()[:40]) for text in documents[:4_000]]


def by_dictionary(documents, instances):
    """Count the n-grams of instances in a loop."""
    counts = dict.fromkeys((gram for text in instances for gram in grams_of(text)), 0)
    for text in documents:
        for gram in grams_of(text):
            if gram in counts:
                counts[gram] += 1
    return sum(counts.values())


def grams_of(text):
    """Return the n-grams of words of a text."""
    words = text.split()
    return zip(*(words[k:] for k in range(N)), strict=False)


def fed(counter, batches):
    """Count batches; return the number of their n-grams."""
    before = int(counter.counts.sum())
    for batch in batches:
        counter.feed(batch)
    return int(counter.counts.sum()) - before


def medians(n_bytes, rounds, **calls):
    """Print the speed of alternating calls in megabytes per second; return values by call."""
    times, values = {name: [] for name in calls}, {}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds, values[name] = cpu(call)
            times[name].append(seconds)
    speeds = {name: n_bytes / MEGABYTE / statistics.median(all_) for name, all_ in times.items()}
    for name, speed in speeds.items():
        print(f"| {name.replace('_', ' ')} | {speed:.1f} |")
    return speeds, values


def trained(documents, path):
    """Train a tokenizer and write its file."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(
        documents[:500], trainers.BpeTrainer(vocab_size=8_000, show_progress=False)
    )
    tokenizer.save(str(path))
    return tokenizer


def zipf_pairs(rng):
    """Return a counter of pairs, and documents of 30 names each."""
    n = 100_000
    table = SurfaceTable.from_records((f"Q{k}", f"Name{k}x") for k in range(n))
    ends = rng.zipf(1.3, (300_000, 2)) % n
    pairs = list({(f"Q{a}", f"Q{b}") for a, b in ends.tolist() if a != b})[:n]
    drawn = rng.zipf(1.3, (20_000, 30)) % n
    documents = [" word ".join(f"Name{k}x" for k in row) for row in drawn.tolist()]
    return PairCounter(table, pairs), documents


def main():

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20)
    options = parser.parse_args()
    missed = []
    documents, batches, instances = corpus_of(options.megabytes * MEGABYTE)
    by_words = NgramCounter(instances, n=N)
    fed(by_words, batches[:1])
    print("| n-grams, 4,000 instances | MB/s |\n|---|---|")
    speeds, values = medians(
        sum(batch.buffer.size for batch in batches),
        options.rounds,
        words=lambda: fed(by_words, batches),
        plain_loop=lambda: by_dictionary(documents, instances),
    )
    assert values["words"] == values["plain_loop"] > 0
    if speeds["words"] < 1.5 * speeds["plain_loop"]:
        missed.append("n-grams of words; the budget is 1.5 times a loop")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer.json"
        loaded, part = trained(documents, file), batches[:1]
        by_tokens, texts = (
            NgramCounter(instances[:500], tokenize=ModelTokenizer(str(file))),
            [*part[0]],
        )
        speeds, _ = medians(
            part[0].buffer.size,
            options.rounds,
            tokens=lambda: fed(by_tokens, part),
            encode_batch=lambda: len(loaded.encode_batch(texts, add_special_tokens=False)),
        )
    if speeds["tokens"] < speeds["encode_batch"] / 1.2:
        missed.append("n-grams of tokens; the budget is 1/1.2 of encode_batch")
    rng = np.random.default_rng(0)
    counter, texts = zipf_pairs(rng)
    counter.feed(["x"])
    seconds, _ = cpu(lambda: counter.feed(texts))
    print(f"\n100,000 pairs: {sum(map(len, texts)) / MEGABYTE / seconds:.1f} MB/s")
    table = SurfaceTable.from_records((f"Q{k}", f"Name{k}x") for k in range(200))
    pairs = [(f"Q{a}", f"Q{b}") for a in range(100) for b in range(200) if a != b]
    counter = PairCounter(table, pairs)
    counter.feed(["x"])
    text = " ".join(f"Name{k}x" for k in rng.integers(0, 200, 8_000))
    seconds, _ = cpu(lambda: counter.feed([text]))
    print(f"A document of 8,000 mentions of {len(pairs):,} pairs: {seconds:.3f} s.")
    if seconds > 0.1:
        missed.append(f"the document of 8,000 mentions took {seconds:.2f} s; the budget is 0.1")
    if missed:
        raise SystemExit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
