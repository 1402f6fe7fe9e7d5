"""The reader of SQL dumps on a large categorylinks table, compared with mwsql and unpacking.

The table is synthetic, in MediaWiki's definition before 2025: binary sort keys, "),(" in one of
fifty titles, INSERTs of about a megabyte, gzip. Its rows are known, so correctness is also checked.
"""

import argparse
import gzip
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from surface_consistency_build.wikimedia.sql import read_sql
from surface_consistency_build.wikimedia.streams import open_dump
from timing import interleaved

CATEGORYLINKS = b"""-- MySQL dump 10.19  Distrib 10.5.23-MariaDB, for debian-linux-gnu (x86_64)
--
-- Server version\t10.6.17-MariaDB-log
DROP TABLE IF EXISTS `categorylinks`;
CREATE TABLE `categorylinks` (
  `cl_from` int(8) unsigned NOT NULL DEFAULT 0,
  `cl_to` varbinary(255) NOT NULL DEFAULT '',
  `cl_sortkey` varbinary(230) NOT NULL DEFAULT '',
  `cl_timestamp` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  `cl_sortkey_prefix` varbinary(255) NOT NULL DEFAULT '',
  `cl_collation` varbinary(32) NOT NULL DEFAULT '',
  `cl_type` enum('page','subcat','file') NOT NULL DEFAULT 'page',
  PRIMARY KEY (`cl_from`,`cl_to`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=COMPRESSED;
"""
PAGE = b"""CREATE TABLE `page` (
  `page_id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `page_namespace` int(11) NOT NULL,
  `page_title` varbinary(255) NOT NULL,
  `page_is_redirect` tinyint(3) unsigned NOT NULL DEFAULT 0,
  `page_is_new` tinyint(3) unsigned NOT NULL DEFAULT 0,
  `page_random` double unsigned NOT NULL,
  `page_touched` binary(14) NOT NULL,
  `page_links_updated` varbinary(14) DEFAULT NULL,
  `page_latest` int(10) unsigned NOT NULL,
  `page_len` int(10) unsigned NOT NULL,
  `page_content_model` varbinary(32) DEFAULT NULL,
  `page_lang` varbinary(35) DEFAULT NULL,
  PRIMARY KEY (`page_id`)
) ENGINE=InnoDB DEFAULT CHARSET=binary;
"""
INSERT_BYTES = 1_000_000
ESCAPED = re.compile(rb"[\x00\n\r\x1a'\"\\]")
ESCAPES = {b"\0": rb"\0", b"\n": rb"\n", b"\r": rb"\r", b"\x1a": rb"\Z"}
WORDS = (
    b"Redirects from_short names Articles with_unsourced statements Living people births deaths "
    b"Villages in_the District of_New York O'Brien 1998 Z\xc3\xbcrich \xe6\x9d\xb1\xe4\xba\xac"
).split()
WANTED = ["cl_from", "cl_to", "cl_type"]
# A simple implementation: the complete row, with the required values in groups.
STRING = rb"'((?:[^'\\]|\\.)*)'"
USER_ROW = re.compile(
    rb"\((\d+),%b,'(?:[^'\\]|\\.)*','(?:[^'\\]|\\.)*','(?:[^'\\]|\\.)*','(?:[^'\\]|\\.)*',"
    rb"'(\w+)'\)[,;]" % STRING,
    re.DOTALL,
)
UNESCAPE = re.compile(rb"\\(.)", re.DOTALL)
MEANT = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"Z": b"\x1a"}


def quoted(value: bytes) -> bytes:
    return b"'" + ESCAPED.sub(lambda m: ESCAPES.get(m[0], b"\\" + m[0]), value) + b"'"


def title(rng: np.random.Generator, number: int) -> bytes:
    words = b"_".join(WORDS[i] for i in rng.integers(0, len(WORDS), 3))
    return words + (b"_(a),(b)" if number % 50 == 0 else b"_%d" % number)


def category_rows() -> Iterator[tuple[bytes, bytes]]:
    """Yield rows without end, with the title of each."""
    rng = np.random.default_rng(20250101)
    titles = [title(rng, number) for number in range(20_000)]
    number = 0
    while True:
        lengths = rng.integers(6, 60, 10_000)
        keys = rng.bytes(int(lengths.sum()))
        chosen = rng.integers(0, len(titles), 10_000)
        place = 0
        for length, choice in zip(lengths.tolist(), chosen.tolist(), strict=True):
            number += 1
            key = quoted(keys[place : place + length])
            place += length
            name = titles[choice]
            yield (
                b"(%d,%b,%b,'2024-03-01 10:%02d:%02d','','uca-default-u-kn','page')"
                % (number // 4, quoted(name), key, number // 60 % 60, number % 60),
                name,
            )


def page_rows() -> Iterator[tuple[bytes, bytes]]:
    rng = np.random.default_rng(20250102)
    number = 0
    while True:
        number += 1
        name = title(rng, number)
        yield (
            b"(%d,0,%b,1,0,0.%012d,'20240126184925',NULL,%d,%d,'wikitext',NULL)"
            % (number, quoted(name), number * 7919, number * 3, number % 5000),
            name,
        )


def write_dump(
    path: Path, definition: bytes, table: bytes, rows: Iterator[tuple[bytes, bytes]], size: int
) -> tuple[int, int]:
    """Write about `size` plain bytes; return the numbers of bytes and rows."""
    n_bytes = n_rows = 0
    head = b"INSERT INTO `%b` VALUES " % table
    with gzip.open(path, "wb", compresslevel=6) as file:
        n_bytes += file.write(definition)
        while n_bytes < size:
            statement: list[bytes] = []
            length = 0
            while length < INSERT_BYTES:
                row, _ = next(rows)
                statement.append(row)
                length += len(row) + 1
            n_rows += len(statement)
            n_bytes += file.write(head + b",".join(statement) + b";\n")
    return n_bytes, n_rows


def ours(path: Path) -> int:
    return sum(batch.num_rows for batch in read_sql(path, WANTED))


def unpack_isal(path: Path) -> int:
    with open_dump(path) as stream:
        return sum(map(len, stream.chunks()))


def unpack_gzip(path: Path) -> int:
    total = 0
    with gzip.open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            total += len(chunk)
    return total


def user_regex(path: Path) -> int:
    """Count rows by a loop over lines and rows with the standard library."""
    n_rows = 0
    with gzip.open(path, "rb") as file:
        for line in file:
            if not line.startswith(b"INSERT"):
                continue
            for found in USER_ROW.finditer(line):
                row = (
                    int(found[1]),
                    UNESCAPE.sub(lambda m: MEANT.get(m[1], m[1]), found[2]),
                    found[3],
                )
                n_rows += len(row) > 0
    return n_rows


def altered_by_mwsql(path: Path, rows: Iterator[tuple[bytes, bytes]]) -> str:
    """Count titles that mwsql reads incorrectly."""
    from mwsql import Dump

    dump = Dump.from_file(str(path))
    column = dump.col_names.index("page_title")
    n_altered = n_rows = 0
    for row, (_, name) in zip(dump.rows(), rows, strict=False):
        n_rows += 1
        n_altered += row[column].encode() != name
    return f"{n_altered:,} of {n_rows:,} titles altered"


def altered_by_us(path: Path, column: str, rows: Iterator[tuple[bytes, bytes]]) -> str:
    n_altered = n_rows = 0
    for batch in read_sql(path, [column]):
        for name in batch.column(0).to_pylist():
            n_rows += 1
            n_altered += name != next(rows)[1]
    return f"{n_altered:,} of {n_rows:,} titles altered"


def mwsql_rows(path: Path) -> int:
    from mwsql import Dump

    return sum(1 for _ in Dump.from_file(str(path)).rows())


def failure(call: Callable[[], object]) -> str:
    try:
        call()
    except UnicodeDecodeError as error:
        return f"fails: {type(error).__name__}: {str(error)[:60]}"
    return "read it"


def peak_growth(path: Path) -> str:
    """Return the peak memory of a process that only reads, minus its memory before.

    VmHWM is used because ru_maxrss includes the memory of the parent at the start.
    """
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from surface_consistency_build.wikimedia.sql import read_sql\n"
        "import numpy, pyarrow, pyarrow.compute\n"
        "def peak():\n"
        "    return int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])\n"
        "before = peak()\n"
        "for batch in read_sql(sys.argv[1], sys.argv[2].split(',')): pass\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(path), ",".join(WANTED)],
        capture_output=True,
        check=True,
        text=True,
    )
    return f"{int(done.stdout) / 1024:.0f} MB"


def cpu_seconds(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


def report(times: dict[str, list[float]], plain: int) -> None:
    base = statistics.median(times["this package"])
    print("| reader | median s | MB/s of plain text | times this package |\n|---|---|---|---|")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"| {name} | {median:.2f} | {plain / 1e6 / median:.0f} | {median / base:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300, help="plain size of categorylinks")
    parser.add_argument("--page-megabytes", type=int, default=30, help="plain size of page")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        links, pages = Path(name, "categorylinks.sql.gz"), Path(name, "page.sql.gz")
        small = Path(name, "small.sql.gz")
        size = options.megabytes * 1_000_000
        plain, n_rows = write_dump(links, CATEGORYLINKS, b"categorylinks", category_rows(), size)
        write_dump(small, CATEGORYLINKS, b"categorylinks", category_rows(), max(size // 10, 1))
        page_plain, _ = write_dump(
            pages, PAGE, b"page", page_rows(), options.page_megabytes * 1_000_000
        )
        print(
            f"categorylinks: {plain / 1e6:.0f} MB plain, {links.stat().st_size / 1e6:.0f} MB "
            f"packed, {n_rows:,} rows; columns {', '.join(WANTED)}\n"
        )
        times = interleaved(
            {
                "this package": lambda: ours(links),
                "only unpacking, isal": lambda: unpack_isal(links),
                "only unpacking, gzip": lambda: unpack_gzip(links),
                "one regular expression per row, gzip": lambda: user_regex(links),
            },
            options.rounds,
        )
        report(times, plain)
        seconds = cpu_seconds(lambda: ours(links))
        print(f"\nprocessor time: {plain / 1e6 / seconds:.0f} MB/s per core")
        print(f"rows: {ours(links):,} (this package), {user_regex(links):,} (expression)")
        print(f"titles: {altered_by_us(links, 'cl_to', category_rows())}")
        print(f"mwsql on categorylinks {failure(lambda: mwsql_rows(small))}")
        print(
            f"peak memory: +{peak_growth(small)} for a tenth, +{peak_growth(links)} for all of it"
        )
        print(f"\npage: {page_plain / 1e6:.0f} MB plain")
        page_times = interleaved(
            {
                "this package": lambda: sum(
                    batch.num_rows
                    for batch in read_sql(
                        pages, ["page_id", "page_namespace", "page_title", "page_is_redirect"]
                    )
                ),
                "mwsql": lambda: mwsql_rows(pages),
            },
            options.rounds,
        )
        report(page_times, page_plain)
        print(f"\nthis package: {altered_by_us(pages, 'page_title', page_rows())}")
        print(f"mwsql: {altered_by_mwsql(pages, page_rows())}")


if __name__ == "__main__":
    main()
