"""Reading links off a dump, linking by prior and coherence, and look-ups in an entity map.

Run `python benchmarks/bench_linking.py`; prints a Markdown table. The dump is a synthetic one of
articles full of links, the corpus that of `bench_count.py` with 100,000 names, of which the linker
knows all and 3,000 entities are wanted; the entity map has 300,000 entities. CPU time of the
process, best of three rounds. The exit status is 1 where a budget is missed: links off 2 MB of
wikitext a second, linking by the prior at a fifth of the speed of counting, and an entity map
opened in 40 MB beside the file, with 3,000 pairs looked up in 3 s.
"""

import io
import multiprocessing
import resource
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from surface_consistency_build.counting import PackedTexts, SurfaceCounter, SurfaceTable
from surface_consistency_build.linking import EntityMap, MentionTable, PriorLinker
from surface_consistency_build.wikimedia import linked_text
from synthetic_corpus import SyntheticCorpus

MEGABYTE = 1_000_000
N_NAMES, N_WANTED, N_ENTITIES, N_PAIRS = 100_000, 3_000, 300_000, 3_000


def best(call, rounds=3):
    """Return the least CPU seconds of a call."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def wikitext(corpus, n_bytes):
    """Write articles in which every tenth word is a link, with templates, references and files."""
    rng = np.random.default_rng(3)
    pages = []
    for text in corpus.documents(n_bytes):
        words = text.replace("[", "").split(" ")
        for place in range(0, len(words), 10):
            words[place] = f"[[{words[place]} (topic)|{words[place]}]]"
        words.insert(1, "{{Infobox|name=[[x]]|a={{b|c}}}}<ref name=a>[[y]] text</ref>")
        if rng.random() < 0.3:
            words.insert(5, "[[File:A.jpg|thumb|A [[picture]] of it]]\n== Past ==\n* one\n")
        pages.append(" ".join(words))
    return pages


def mentions_of(names):
    """Make a mention table: names of one to three entities, most of them links often enough."""
    rng = np.random.default_rng(4)
    rows = []
    for number, name in enumerate(names):
        pages = int(rng.integers(1, 200))
        linked = int(rng.integers(0, pages + 1))
        for candidate in range(1 + int(rng.integers(0, 3))):
            rows.append(
                {
                    "surface": name,
                    "entity_id": f"Q{number + candidate * len(names)}",
                    "title": f"{name} {candidate}",
                    "n_links": int(rng.integers(1, 50)),
                    "is_title": candidate == 0,
                    "is_redirect": False,
                    "n_link_documents": linked,
                    "n_surface_documents": pages,
                }
            )
    return MentionTable.from_rows(rows)


def write_map(path):
    """Write an entity map as numpy does, each array the same."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(50, dtype=np.int32))
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        for number in range(N_ENTITIES):
            name = f"http://dbpedia.org/resource/Entity_number_{number}.npy"
            archive.writestr(name, buffer.getvalue())


def peak():
    """Return the peak of the process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def main():
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "map.npz")
        # In a process of its own, whose memory does not count.
        writer = multiprocessing.get_context("fork").Process(target=write_map, args=(path,))
        writer.start()
        writer.join()
        before = peak()
        start = time.process_time()
        linked = EntityMap.open(path)
        opened, held = time.process_time() - start, peak() - before
        pairs = np.random.default_rng(1).integers(0, N_ENTITIES, (N_PAIRS, 2)).tolist()
        start = time.process_time()
        with linked:
            for first, second in pairs:
                linked.pair_count(f"Entity number {first}", f"Entity number {second}")
        looked = time.process_time() - start
        size = path.stat().st_size / MEGABYTE
    corpus = SyntheticCorpus(N_NAMES)
    pages = wikitext(corpus, 2 * MEGABYTE)
    n_bytes = sum(len(page.encode()) for page in pages)
    reading = n_bytes / MEGABYTE / best(lambda: [linked_text(page) for page in pages])
    texts = PackedTexts.pack(corpus.documents(4 * MEGABYTE))
    table = SurfaceTable.from_records((f"Q{i}", name) for i, name in enumerate(corpus.names))
    counter = SurfaceCounter(table)
    counting = texts.buffer.size / MEGABYTE / best(lambda: counter.feed(texts))
    linker = PriorLinker(
        mentions_of(corpus.names), entities=[f"Q{number}" for number in range(N_WANTED)]
    )
    linking = texts.buffer.size / MEGABYTE / best(lambda: list(linker.link(texts)))
    print("| job | speed |")
    print("|---|---|")
    print(f"| plain text and links off wikitext | {reading:.1f} MB/s |")
    print(f"| counting {N_NAMES:,} names | {counting:.0f} MB/s |")
    print(f"| linking them by the prior, {N_WANTED:,} entities wanted | {linking:.0f} MB/s |")
    opening = f"{opened:.1f} s, {held:.0f} MB"
    print(f"| opening a map of {N_ENTITIES:,} entities ({size:.0f} MB) | {opening} |")
    print(f"| {N_PAIRS:,} pairs in it | {looked:.1f} s |")
    if reading < 2:
        missed.append(f"links off {reading:.1f} MB/s of wikitext; the budget is 2")
    if linking < counting / 5:
        missed.append(f"linking at {linking / counting:.2f} of counting; the budget is 0.2")
    if looked > 3:
        missed.append(f"{N_PAIRS:,} pairs in {looked:.1f} s; the budget is 3")
    if held > 40 + size:
        missed.append(f"a map opened in {held:.0f} MB; the budget is 40 beside its {size:.0f}")
    sys.stdout.flush()
    if missed:
        raise SystemExit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
