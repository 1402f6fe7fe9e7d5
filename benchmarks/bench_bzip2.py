"""Unpacking bzip2 with the reader of dumps, `bzip2 -dc` and the standard library.

The file contains real Wikidata entities and real XML pages of the test files, repeated with changed
numbers, in blocks of 900 kB. CPU time includes all threads and child processes; the unpacked bytes
are compared with the original.
"""

import argparse
import bz2
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from surface_consistency_build.wikimedia.streams import open_dump

FILES = Path(__file__).resolve().parents[1] / "tests" / "data" / "files"
SOURCES = ("wikidata/twenty_entities.json.bz2", "wikimedia/enwiki-sample-pages-articles.xml.bz2")
CHUNK = 1 << 20


def make(path, megabytes):
    """Write the file; return the number of plain bytes."""
    texts = [bz2.decompress((FILES / name).read_bytes()) for name in SOURCES]
    packer, size, turn = bz2.BZ2Compressor(9), 0, 0
    with path.open("wb") as file:
        while size < megabytes * 1_000_000:
            # The digits differ each time, so that repeated blocks are as difficult as new ones.
            plain = texts[turn % 2].replace(b"1", b"%d" % turn)
            file.write(packer.compress(plain))
            size, turn = size + len(plain), turn + 1
        file.write(packer.flush())
    return size


def ours(path, threads):
    """Unpack with the reader of dumps; return the number of bytes."""
    with open_dump(path, threads=threads) as stream:
        return sum(map(len, stream.chunks(CHUNK)))


def standard(path):
    """Unpack with the standard library."""
    with bz2.open(path) as file:
        return sum(map(len, iter(partial(file.read, CHUNK), b"")))


def program(path):
    """Unpack with the program bzip2."""
    with subprocess.Popen(["bzip2", "-dc", path], stdout=subprocess.PIPE) as run:
        return sum(map(len, iter(partial(run.stdout.read, CHUNK), b"")))


def cpu_seconds():
    """Return the CPU time of this process and its ended children."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main():
    """Print a Markdown table of medians; exit with an error if the budget is missed."""
    reader = argparse.ArgumentParser(description=main.__doc__)
    reader.add_argument("--megabytes", type=int, default=40)
    reader.add_argument("--rounds", type=int, default=3)
    given = reader.parse_args()
    contenders = {
        "`bzip2 -dc`": program,
        "`bz2.open`": standard,
        "`open_dump`, 1 thread": partial(ours, threads=1),
        "`open_dump`, 2 threads": partial(ours, threads=2),
    }
    times = {name: ([], []) for name in contenders}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.bz2"
        size = make(path, given.megabytes)
        packed = path.stat().st_size
        for _ in range(given.rounds):
            for name, unpack in contenders.items():
                cpu, wall = cpu_seconds(), time.perf_counter()
                if (found := unpack(path)) != size:
                    sys.exit(f"{name} gives {found:,} bytes of {size:,}")
                times[name][0].append(cpu_seconds() - cpu)
                times[name][1].append(time.perf_counter() - wall)
    print(f"{size / 1e6:.0f} MB, packed {packed / 1e6:.0f} MB; {os.cpu_count()} cores\n")
    print("| unpacked by | CPU s | plain MB per CPU s | CPU time, times `bzip2 -dc` | wall s |")
    print("|---|---|---|---|---|")
    medians = {name: statistics.median(cpu) for name, (cpu, _) in times.items()}
    for name, cpu in medians.items():
        ratio, wall = cpu / medians["`bzip2 -dc`"], statistics.median(times[name][1])
        print(f"| {name} | {cpu:.2f} | {size / 1e6 / cpu:.0f} | {ratio:.2f} | {wall:.2f} |")
    if medians["`open_dump`, 2 threads"] > 1.5 * medians["`bzip2 -dc`"]:
        sys.exit("over budget: 1.5 times the CPU time of bzip2 -dc")


if __name__ == "__main__":
    main()
