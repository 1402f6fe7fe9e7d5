"""A synthetic English Wikipedia at a tenth of its size, as the dump files that a build reads.

At scale 1 there are 1.8 million pages, 1 million of them redirects, 20 million category links, 1
million Wikidata entities with lines as long as real ones, and a year of pageviews. The files have
the formats of 2025 and later (`cl_target_id`, no `cl_to`) and the cases that a build must resolve:
chains, loops, interwiki and section redirects, shared labels, quotes and `),(` in titles, binary
sort keys.

    python benchmarks/synthetic_wiki.py FOLDER --scale 1
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from synthetic_lines import write_pageviews, write_wikidata
from synthetic_names import Wiki
from synthetic_tables import (
    write_categorylinks,
    write_linktarget,
    write_page,
    write_page_props,
    write_redirect,
)

WRITERS: tuple[Callable[[Path, Wiki], None], ...] = (
    write_categorylinks,
    write_wikidata,
    write_pageviews,
    write_page,
    write_redirect,
    write_page_props,
    write_linktarget,
)


def write_wiki(folder: Path, scale: float, *, processes: int = 2) -> None:
    """Write all dumps of a synthetic wiki.

    Args:
        folder: Folder of the dumps; created if it does not exist.
        scale: 1 for a tenth of the English Wikipedia.
        processes: Number of files that are written at the same time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool:
        for done in [pool.submit(_write, writer, folder, scale) for writer in WRITERS]:
            done.result()


def _write(writer: Callable[[Path, Wiki], None], folder: Path, scale: float) -> None:
    """Write one dump."""
    writer(folder, Wiki(scale))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    start = time.perf_counter()
    write_wiki(arguments.folder, arguments.scale, processes=arguments.processes)
    for path in sorted(arguments.folder.iterdir()):
        print(f"{path.stat().st_size / 1e6:10,.1f} MB  {path.name}")
    print(f"{time.perf_counter() - start:,.0f} s")


if __name__ == "__main__":
    main()
