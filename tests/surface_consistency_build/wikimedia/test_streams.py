import bz2
import gzip
import lzma
import warnings
import zlib
from itertools import pairwise

import numpy as np
import pytest
import zstandard
from surface_consistency_build.wikimedia.streams import ReadProgress, open_dump

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError

TEXT = b"".join(b"line %d %d\n" % (n, n * 7919 % 1_000_003) for n in range(150_000))
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
CUTTABLE = ("gzip", "gzip members", "bzip2", "bzip2 streams", "xz", "zstd", "zstd frames")


def write(tmp_path, content, name="dump"):
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


@pytest.mark.parametrize("packing", CUTTABLE)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_open_dump_rejects_a_truncated_file(tmp_path, packing, share):
    whole = PACKED[packing]
    cut = whole[: min(int(len(whole) * share), len(whole) - 3)]
    place = rf"at byte {len(cut):,} of {len(cut):,}, after [\d,]+ plain bytes"

    with (
        open_dump(write(tmp_path, cut)) as stream,
        pytest.raises(DataError, match=rf"dump: the \w+ data end early {place}"),
    ):
        list(stream.chunks())


@pytest.mark.parametrize("packing", CUTTABLE)
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_a_truncated_dump_keeps_the_data_before_the_cut(tmp_path, packing, share):
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


def test_truncated_gzip_file_keeps_all_data_before_the_cut(tmp_path):
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
@pytest.mark.parametrize("rest", [b"", bz2.compress(b"more")])
def test_an_incorrect_checksum_of_a_bzip2_stream_is_rejected(tmp_path, place, rest):
    """The checksum of a stream covers those of its blocks; rapidgzip checks only the blocks."""
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
def test_damaged_files_give_no_incorrect_byte(tmp_path, packing, threads):
    """Cut at random or with flipped bits: the start is correct, and the damage is reported."""
    text = TEXT[:300_000]
    packed = packing(text)
    rng = np.random.default_rng(11)
    for number in range(70):
        damaged = bytearray(packed)
        if number % 2:
            del damaged[int(rng.integers(3, len(packed) - 1)) :]
        else:
            damaged[int(rng.integers(20, len(packed)))] ^= 1 << int(rng.integers(8))
        path = write(tmp_path, bytes(damaged))
        with (
            open_dump(path, allow_truncated=True, threads=threads) as stream,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            plain = b"".join(stream.chunks())
        assert stream.is_truncated == bool(caught)
        assert plain == text or stream.is_truncated
        if packing is not gzip.compress:
            assert text.startswith(plain)


def flipped(packing, place, n_bytes=1):
    damaged = bytearray(PACKED[packing])
    for byte in range(place, place + n_bytes):
        damaged[byte] ^= 0x55
    return bytes(damaged)


def with_mark(mark, gap):
    """Compressed data with the marker of a block or of the end too close to the end."""
    packed = bz2.compress(TEXT[:HALF])
    return packed[:10] + bytes(gap) + mark + packed[10:]


DAMAGED = {
    **{
        f"inside {packing}": flipped(packing, len(PACKED[packing]) // 2, 50)
        for packing in ("gzip", "bzip2", "bzip2 streams", "xz", "zstd frames")
    },
    "checksum": flipped("gzip", len(PACKED["gzip"]) - 7),
    **{f"after {name}": PACKED[name] + b"<html>" + bytes(50) for name in ("gzip", "bzip2")},
    **{f"block {gap}": with_mark(b"1AY&SY", gap) for gap in (0, 2, 3)},
    **{f"end {gap}": with_mark(bytes.fromhex("177245385090"), gap) for gap in (0, 2, 3)},
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("damage", DAMAGED)
def test_error_for_damage_contains_the_byte(tmp_path, damage, threads):
    with (
        open_dump(write(tmp_path, DAMAGED[damage]), threads=threads) as stream,
        pytest.raises(DataError, match=r"dump: the \w+ data are damaged.* at byte [\d,]+ of"),
    ):
        list(stream.chunks())


@pytest.mark.parametrize(
    ("name", "content", "threads", "error", "message"),
    [
        ("page.sql.gz", b"<!DOCTYPE html><html>", 1, DataError, "starts with '<!DOCTYPE html>"),
        ("page.sql.bz2", b"<!DOCTYPE html><html>", 1, DataError, "starts with '<!DOCTYPE html>"),
        ("a", b"7z\xbc\xaf\x27\x1c" + bytes(20), 1, DataError, "7z files are not supported"),
        ("a", b"PK\x03\x04" + bytes(20), 1, DataError, "zip files are not supported; decompress"),
        ("page.sql.gz", b"", 1, DataError, "the file is empty"),
        ("page.sql.gz", None, 1, SourceNotFoundError, "dump .* not found"),
        ("", None, 1, SourceNotFoundError, "is a folder"),
        ("a", b"text", 0, ValueError, "threads must be at least 1, got 0"),
    ],
)
def test_files_that_are_not_dumps_are_rejected(tmp_path, name, content, threads, error, message):
    if content is not None:
        write(tmp_path, content, name)
    with pytest.raises(error, match=message):
        open_dump(tmp_path / name, allow_truncated=True, threads=threads)


def test_format_is_detected_by_content_and_empty_chunks_are_rejected(tmp_path):
    with open_dump(write(tmp_path, bz2.compress(b"text"), "page.sql.gz")) as stream:
        with pytest.raises(ValueError, match="size must be at least 1 byte, got 0"):
            next(stream.chunks(0))
        assert b"".join(stream.chunks()) == b"text"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("packing", ["plain", "gzip", "bzip2"])
def test_progress_increases_to_the_size_of_the_file(tmp_path, packing, threads):
    path = write(tmp_path, PACKED[packing])
    seen: list[ReadProgress] = []

    with open_dump(path, progress=seen.append, threads=threads) as stream:
        list(stream.chunks(1 << 18))

    assert all(before.read_bytes <= after.read_bytes for before, after in pairwise(seen))
    assert len(seen) > 4
    size = path.stat().st_size
    assert seen[-1] == ReadProgress(
        path=path, read_bytes=size, total_bytes=size, plain_bytes=len(TEXT)
    )


def test_real_dumps_are_read_like_by_the_standard_library(data_files):
    folder = data_files / "wikimedia"
    for path in sorted([*folder.glob("*.gz"), *folder.glob("*.bz2")]):
        module = gzip if path.suffix == ".gz" else bz2
        with module.open(path) as file, open_dump(path) as stream:
            assert b"".join(stream.chunks()) == file.read()
