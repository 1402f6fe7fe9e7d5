import bz2
import gzip
import lzma
import warnings
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import zstandard
from surface_consistency_build.wikimedia.streams import ReadProgress, open_dump

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError

LINES = [b"line %d %d" % (number, number * 7919 % 1_000_003) for number in range(150_000)]
TEXT = b"\n".join(LINES) + b"\n"
HALF = len(TEXT) // 2
PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT, 1),
    "gzip members": gzip.compress(TEXT[:HALF], 1) + gzip.compress(TEXT[HALF:], 9),
    "gzip padded": gzip.compress(TEXT, 1) + bytes(700_000),
    "bzip2": bz2.compress(TEXT),
    "bzip2 streams": bz2.compress(TEXT[:HALF]) + bz2.compress(b"") + bz2.compress(TEXT[HALF:]),
    "bzip2 padded": bz2.compress(TEXT) + bytes(100),
    "xz": lzma.compress(TEXT, preset=1),
    "xz streams": lzma.compress(TEXT[:HALF]) + bytes(8) + lzma.compress(TEXT[HALF:]),
    "zstd": zstandard.compress(TEXT),
    "zstd frames": zstandard.compress(TEXT[:HALF]) + zstandard.compress(TEXT[HALF:]),
}


def write(tmp_path: Path, content: bytes, name: str = "dump") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("packing", PACKED)
def test_chunks_agree_with_the_plain_bytes(tmp_path, packing, threads):
    path = write(tmp_path, PACKED[packing])

    with open_dump(path, threads=threads) as stream:
        chunks = list(stream.chunks(100_000))

    assert b"".join(chunks) == TEXT
    assert all(0 < len(chunk) <= 100_000 for chunk in chunks)
    assert stream.plain_bytes == len(TEXT)
    assert not stream.is_truncated


def test_lines_carry_their_number_and_offset(tmp_path):
    path = write(tmp_path, gzip.compress(TEXT, 1))

    with open_dump(path) as stream:
        for number, (line, expected) in enumerate(zip(stream.lines(), LINES, strict=True), 1):
            assert line == expected
            assert stream.line_number == number
            assert TEXT.startswith(line, stream.line_offset)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"one\n\ntwo", [b"one", b"", b"two"]),
        (b"\n", [b""]),
        (b"one\r\n", [b"one\r"]),
        (b"x" * 3_000_000 + b"\ny", [b"x" * 3_000_000, b"y"]),
    ],
    ids=["no last end", "empty", "carriage return", "longer than a chunk"],
)
def test_lines_split_at_line_feeds_only(tmp_path, text, expected):
    with open_dump(write(tmp_path, text)) as stream:
        assert list(stream.lines()) == expected


@pytest.mark.parametrize(
    "packing", ["gzip", "gzip members", "bzip2", "bzip2 streams", "xz", "zstd", "zstd frames"]
)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_open_dump_rejects_a_cut_off_file(tmp_path, packing, share):
    whole = PACKED[packing]
    cut = whole[: min(int(len(whole) * share), len(whole) - 3)]
    path = write(tmp_path, cut)

    with (
        open_dump(path) as stream,
        pytest.raises(
            DataError,
            match=rf"dump: the \w+ data end early at byte {len(cut):,} of {len(cut):,}, after "
            rf"[\d,]+ plain bytes",
        ),
    ):
        list(stream.chunks())


@pytest.mark.parametrize(
    "packing", ["gzip", "gzip members", "bzip2", "bzip2 streams", "xz", "zstd", "zstd frames"]
)
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_a_truncated_dump_keeps_what_came_before(tmp_path, packing, share):
    whole = PACKED[packing]
    path = write(tmp_path, whole[: int(len(whole) * share)])

    with open_dump(path, allow_truncated=True) as stream:
        with pytest.warns(DataWarning, match="end early at byte .* is kept") as caught:
            kept = b"".join(stream.chunks())
        assert list(stream.chunks()) == []

    assert len(caught) == 1
    assert stream.is_truncated
    assert TEXT.startswith(kept)
    assert len(kept) == stream.plain_bytes > 0.2 * share * len(TEXT)


def test_a_cut_gzip_file_loses_only_what_the_cut_destroyed(tmp_path):
    for size in range(1_000, len(PACKED["gzip"]), len(PACKED["gzip"]) // 12):
        cut = PACKED["gzip"][:size]
        path = write(tmp_path, cut)
        with (
            open_dump(path, allow_truncated=True) as stream,
            pytest.warns(DataWarning, match="gzip data end early"),
        ):
            plain = b"".join(stream.chunks())

        assert plain == zlib.decompressobj(wbits=31).decompress(cut)


@pytest.mark.parametrize("place", [2, 3, 4])
@pytest.mark.parametrize("rest", [b"", bz2.compress(b"more")], ids=["one", "first of two"])
def test_a_wrong_checksum_of_a_bzip2_stream_is_refused(tmp_path, place, rest):
    """The checksum of a stream covers those of its blocks; rapidgzip checks the blocks alone."""
    damaged = bytearray(PACKED["bzip2"])
    damaged[-place] ^= 1
    path = write(tmp_path, bytes(damaged) + rest)

    with (
        open_dump(path, threads=1) as stream,
        pytest.raises(DataError, match="bzip2 data are damaged"),
    ):
        list(stream.chunks())
    with open_dump(path, threads=2) as stream:
        assert b"".join(stream.chunks()) == TEXT + bz2.decompress(rest or bz2.compress(b""))


@pytest.mark.parametrize("packing", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("threads", [1, 2])
def test_damaged_files_give_no_wrong_byte(tmp_path, packing, threads):
    """Cut at random or with flipped bits: a right beginning, and the damage is told."""
    text = TEXT[:300_000]
    packed = packing(text)
    rng = np.random.default_rng(11)
    for number in range(70):
        damaged = bytearray(packed)
        if number % 2:
            del damaged[int(rng.integers(3, len(packed) - 1)) :]
        else:
            damaged[int(rng.integers(20, len(packed)))] ^= 1 << int(rng.integers(8))
        with (
            open_dump(
                write(tmp_path, bytes(damaged)), allow_truncated=True, threads=threads
            ) as stream,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            plain = b"".join(stream.chunks())
        assert stream.is_truncated == bool(caught)
        assert plain == text or stream.is_truncated
        if packing is not gzip.compress:
            assert text.startswith(plain)


def test_a_truncated_dump_gives_whole_lines_only(tmp_path):
    path = write(tmp_path, PACKED["gzip"][: len(PACKED["gzip"]) // 2])

    with (
        open_dump(path, allow_truncated=True) as stream,
        pytest.warns(DataWarning, match="end early"),
    ):
        kept = list(stream.lines())

    assert len(kept) > 10_000
    assert kept == LINES[: len(kept)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("packing", ["gzip", "bzip2", "bzip2 streams", "xz", "zstd frames"])
def test_open_dump_rejects_damage(tmp_path, packing, threads):
    damaged = bytearray(PACKED[packing])
    for place in range(len(damaged) // 2, len(damaged) // 2 + 50):
        damaged[place] ^= 0x55
    path = write(tmp_path, bytes(damaged))

    with (
        open_dump(path, threads=threads) as stream,
        pytest.raises(DataError, match=r"are damaged \(.*\) at byte [\d,]+ of"),
    ):
        list(stream.chunks())


def test_open_dump_rejects_a_wrong_checksum(tmp_path):
    damaged = bytearray(PACKED["gzip"])
    damaged[-7] ^= 1

    with (
        open_dump(write(tmp_path, bytes(damaged))) as stream,
        pytest.raises(DataError, match="gzip data are damaged"),
    ):
        list(stream.chunks())


@pytest.mark.parametrize("packing", ["gzip", "bzip2"])
def test_open_dump_rejects_what_follows_the_packed_data(tmp_path, packing):
    path = write(tmp_path, PACKED[packing] + b"<html>" + bytes(50))

    with open_dump(path) as stream, pytest.raises(DataError, match="are damaged"):
        list(stream.chunks())


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_open_dump_rejects_an_error_page(tmp_path, suffix):
    path = write(tmp_path, b"<!DOCTYPE html><html><h1>404", f"page.sql{suffix}")

    with pytest.raises(DataError, match="starts with '<!DOCTYPE html>"):
        open_dump(path)


def test_open_dump_reads_by_content_where_the_name_is_wrong(tmp_path):
    path = write(tmp_path, bz2.compress(b"text"), "page.sql.gz")

    with open_dump(path) as stream:
        assert b"".join(stream.chunks()) == b"text"


@pytest.mark.parametrize("gap", [b"", bytes(2), bytes(3)])
@pytest.mark.parametrize("mark", [b"1AY&SY", bytes.fromhex("177245385090")], ids=["block", "end"])
def test_marks_that_leave_no_room_for_a_block_are_damage(tmp_path, gap, mark):
    packed = bz2.compress(TEXT[:HALF])
    path = write(tmp_path, packed[:10] + gap + mark + packed[10:], "page.bz2")

    with (
        open_dump(path, threads=2) as stream,
        pytest.raises(DataError, match=r"page\.bz2.*the bzip2 data are damaged"),
    ):
        list(stream.chunks())


@pytest.mark.parametrize("packing", ["7z", "zip"])
def test_open_dump_rejects_other_packings(tmp_path, packing):
    magic = {
        "7z": b"7z\xbc\xaf\x27\x1c",
        "zip": b"PK\x03\x04",
    }[packing]

    with pytest.raises(DataError, match=f"{packing} files are not read; unpack"):
        open_dump(write(tmp_path, magic + bytes(20)))


def test_open_dump_rejects_what_is_no_file(tmp_path):
    with pytest.raises(SourceNotFoundError, match="is a folder"):
        open_dump(tmp_path)
    with pytest.raises(SourceNotFoundError, match="there is no dump"):
        open_dump(tmp_path / "page.sql.gz")
    with pytest.raises(DataError, match="the file is empty"):
        open_dump(write(tmp_path, b"", "page.sql.gz"), allow_truncated=True)
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        open_dump(write(tmp_path, b"text"), threads=0)


def test_chunks_rejects_no_size(tmp_path):
    with (
        open_dump(write(tmp_path, b"text")) as stream,
        pytest.raises(ValueError, match="size must be at least 1 byte, got 0"),
    ):
        next(stream.chunks(0))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("packing", ["plain", "gzip", "bzip2"])
def test_progress_rises_to_the_whole_file(tmp_path, packing, threads):
    path = write(tmp_path, PACKED[packing])
    seen: list[ReadProgress] = []

    with open_dump(path, progress=seen.append, threads=threads) as stream:
        list(stream.chunks(1 << 18))

    assert all(before.read_bytes <= after.read_bytes for before, after in pairwise(seen))
    assert len(seen) > 4
    assert seen[-1] == ReadProgress(
        path=path,
        read_bytes=path.stat().st_size,
        total_bytes=path.stat().st_size,
        plain_bytes=len(TEXT),
    )


def test_a_packed_bomb_comes_in_small_chunks(tmp_path):
    path = write(tmp_path, gzip.compress(bytes(50_000_000), 9))

    with open_dump(path) as stream:
        sizes = [len(chunk) for chunk in stream.chunks(1 << 16)]

    assert max(sizes) <= 1 << 16
    assert sum(sizes) == 50_000_000


def test_real_dumps_agree_with_the_standard_library(data_files):
    folder = data_files / "wikimedia"
    for path in sorted([*folder.glob("*.gz"), *folder.glob("*.bz2")]):
        module = gzip if path.suffix == ".gz" else bz2
        with module.open(path) as file, open_dump(path) as stream:
            assert b"".join(stream.chunks()) == file.read()
