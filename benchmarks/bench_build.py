"""The complete build of RedirectQA from the dumps of a synthetic wiki: time, memory, disk.

`synthetic_wiki.py` writes the wiki; scale 1 is a tenth of the English Wikipedia. The build runs in
a separate process, so that its peak memory can be measured. The last table projects the time and
the disk space of a build from the real dumps: rows and plain bytes at the rate measured for each
dump, and the steps in proportion to the pages. Joins that do not fit in memory take additional
time. Exits with an error if a budget is missed: 15 minutes and 4 GB at scale 1.

    python benchmarks/bench_build.py --scale 1 --folder FOLDER
"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from surface_consistency_build.wikimedia.construction import (
    attrition_frame,
    build_redirectqa,
    find_dumps,
)
from surface_consistency_build.wikimedia.construction.progress import StepCount
from surface_consistency_build.wikimedia.streams import open_dump
from surface_consistency_build.wikimedia.wikis import load_wiki
from synthetic_wiki import write_wiki

BUDGET_SECONDS = 15 * 60
BUDGET_BYTES = 4 * 10**9
# Approximate size of the real dumps (English Wikipedia and Wikidata, 2025): rows of the SQL tables,
# plain bytes of the line-based files, and compressed bytes on the disk.
REAL_ROWS = {
    "page": 62e6,
    "page_props": 40e6,
    "redirect": 15e6,
    "linktarget": 110e6,
    "categorylinks": 220e6,
}
REAL_PLAIN_BYTES = {"pageviews": 12 * 22e9, "wikidata": 1.7e12}
REAL_PACKED_BYTES = 160e9
REAL_ENTITIES = 115e6
# Plain bytes per second of bzip2 on two threads, the maximum speed of a reader of Wikidata's .bz2.
BZ2_PLAIN_RATE = 110e6


@dataclass(frozen=True)
class Measured:
    """Measurements of the process of the build."""

    seconds: float
    stages: dict[str, float]
    peak_bytes: int
    attrition: tuple[StepCount, ...]
    n_instances: int
    n_rows: int


def build(folder: Path, work: Path, triples: int, memory_limit: str, threads: int) -> Measured:
    """Build in this process, and measure its memory."""
    start = time.perf_counter()
    plan = find_dumps(folder, "enwiki")
    result = build_redirectqa(
        plan.files,
        work,
        config=load_wiki("enwiki"),
        triples=triples,
        memory_limit=memory_limit,
        threads=threads,
    )
    n_read = sum(1 for _ in result.rows())
    if n_read != result.n_rows:
        raise SystemExit(f"{result.n_rows} rows were written, {n_read} read")
    return Measured(
        seconds=time.perf_counter() - start,
        stages=dict(result.seconds),
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        attrition=result.attrition,
        n_instances=result.n_instances,
        n_rows=result.n_rows,
    )


def kind_of(stage: str) -> str:
    """Return the dump that a stage reads; steps are a separate kind."""
    name = stage.removeprefix("read ")
    return "pageviews" if name.startswith("pageviews") else name


def print_stages(measured: Measured, sizes: dict[str, int]) -> dict[str, float]:
    """Print the times stage by stage; return seconds by kind of stage."""
    kinds: dict[str, float] = {}
    for stage, seconds in measured.stages.items():
        kinds[kind_of(stage)] = kinds.get(kind_of(stage), 0.0) + seconds
    print("\n| stage | s | packed MB/s |\n|---|---|---|")
    for kind, seconds in kinds.items():
        rate = f"{sizes[kind] / 1e6 / seconds:,.1f}" if kind in sizes else ""
        print(f"| {kind} | {seconds:,.1f} | {rate} |")
    return kinds


def print_projection(
    measured: Measured, kinds: dict[str, float], plain: dict[str, int], staged: dict[str, int]
) -> None:
    """Print the projection for the real dumps, with the calculation."""
    rows = {kind_of(count.step): count.rows_in for count in measured.attrition}
    print("\n| what | arithmetic | hours | staged GB |\n|---|---|---|---|")
    hours = disk = 0.0
    for kind, amount in {**REAL_ROWS, **REAL_PLAIN_BYTES}.items():
        ours = plain.get(kind, rows[kind])
        rate, unit = ours / kinds[kind], "rows" if kind in REAL_ROWS else "plain bytes"
        if kind == "wikidata":
            rate = min(rate, BZ2_PLAIN_RATE)
        times = REAL_ENTITIES / rows["wikidata"] if kind == "wikidata" else amount / ours
        hours += amount / rate / 3600
        disk += staged[kind] * times / 1e9
        print(
            f"| {kind} | {amount:.3g} {unit} at {rate:,.0f} a second "
            f"| {amount / rate / 3600:.2f} | {staged[kind] * times / 1e9:.1f} |"
        )
    times = REAL_ROWS["page"] * 18 / 62 / rows["articles"]
    steps = sum(seconds for kind, seconds in kinds.items() if kind not in staged)
    hours += steps * times / 3600
    print(
        f"| steps | {steps:,.1f} s, {times:,.0f} times as many pages "
        f"| {steps * times / 3600:.2f} | |"
    )
    print(f"| total | with {REAL_PACKED_BYTES / 1e9:.0f} GB of dumps | {hours:.1f} | {disk:.0f} |")


def plain_sizes(folder: Path) -> dict[str, int]:
    """Count the plain bytes of the line-based files; all months have the same number."""
    files = find_dumps(folder, "enwiki").files
    found = {"pageviews": files.pageviews[0], "wikidata": files.wikidata}
    sizes = {}
    for kind, path in found.items():
        with open_dump(path) as stream:
            sizes[kind] = sum(len(chunk) for chunk in stream.chunks())
    return sizes | {"pageviews": sizes["pageviews"] * len(files.pageviews)}


def staged_sizes(work: Path) -> dict[str, int]:
    """Sum the staged bytes by kind of dump."""
    sizes: dict[str, int] = {}
    for path in (work / "staged").glob("*.parquet"):
        kind = kind_of(path.name.partition(".")[0])
        sizes[kind] = sizes.get(kind, 0) + path.stat().st_size
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, default=None, help="folder of the dumps, to keep")
    parser.add_argument("--triples", type=int, default=500_000)
    parser.add_argument("--memory-limit", default="2GB", help="for DuckDB")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder and arguments.folder.parent) as temporary:
        folder = arguments.folder or Path(temporary) / "dumps"
        work = Path(temporary) / "work"
        if not folder.is_dir() or not any(folder.iterdir()):
            start = time.perf_counter()
            write_wiki(folder, arguments.scale)
            print(f"dumps written in {time.perf_counter() - start:,.0f} s")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            measured = pool.submit(
                build, folder, work, arguments.triples, arguments.memory_limit, arguments.threads
            ).result()
        sizes: dict[str, int] = {}
        for dump in find_dumps(folder, "enwiki").dumps:
            sizes[dump.role] = sizes.get(dump.role, 0) + (dump.n_bytes or 0)
        staged = staged_sizes(work)
        disk = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
        plain = plain_sizes(folder)
        shutil.rmtree(work)
    print(attrition_frame(measured.attrition).to_string(index=False))
    kinds = print_stages(measured, sizes)
    print_projection(measured, kinds, plain, staged)
    print(
        f"\nscale {arguments.scale:g}: {sum(sizes.values()) / 1e9:.2f} GB of dumps, "
        f"{measured.n_instances:,} surface instances, {measured.n_rows:,} rows\n"
        f"{measured.seconds:,.0f} s, peak memory {measured.peak_bytes / 1e9:.2f} GB, "
        f"work folder {disk / 1e9:.2f} GB"
    )
    if measured.seconds > BUDGET_SECONDS or measured.peak_bytes > BUDGET_BYTES:
        sys.exit(f"budget: {BUDGET_SECONDS} s and {BUDGET_BYTES / 1e9:.0f} GB")


if __name__ == "__main__":
    main()
