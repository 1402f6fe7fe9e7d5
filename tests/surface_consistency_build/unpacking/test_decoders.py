"""bzip2 decompressed by several threads equals the standard library, also for damaged files."""

import bz2

import numpy as np
import pytest
from surface_consistency_build.unpacking.decoders import (
    DamagedInputError,
    _ParallelBzip2,
    open_decoder,
)

KINDS = ("flip", "cut", "remove", "double", "zero")


@pytest.fixture(scope="module")
def plain():
    """Text that fills several blocks of 100,000 bytes, in two streams."""
    return np.random.default_rng(5).integers(97, 105, 650_000, dtype=np.uint8).tobytes()


@pytest.fixture(scope="module")
def packed(plain):
    return bz2.compress(plain[:400_000], 1) + bz2.compress(plain[400_000:], 1)


def damaged(packed, kind, rng):
    """Flip bits, cut the end off, remove, repeat or overwrite bytes."""
    first, last = sorted(rng.integers(len(packed), size=2).tolist())
    if kind == "cut":
        return packed[:first]
    if kind == "remove":
        return packed[:first] + packed[min(last, first + 5_000) :]
    if kind == "double":
        return packed[:last] + packed[max(first, last - 3_000) :]
    broken = bytearray(packed)
    if kind == "zero":
        last = min(last, first + 64)
        broken[first:last] = bytes(last - first)
        return bytes(broken)
    for _ in range(rng.integers(1, 4)):
        broken[rng.integers(len(broken))] ^= 1 << rng.integers(8)
    return bytes(broken)


def read(path, threads, size=1 << 20):
    """Read complete blocks with their checksums, to the end or to an error."""
    parts, decoder = [], open_decoder(path, threads)
    try:
        while part := decoder.read(size):
            parts.append(part)
    except DamagedInputError as error:
        return b"".join(parts), str(error)
    finally:
        decoder.close()
    return b"".join(parts), None


@pytest.mark.parametrize("padding", [0, 100])
def test_undamaged_file_is_decompressed(tmp_path, plain, packed, padding):
    path = tmp_path / "a.bz2"
    path.write_bytes(packed + bytes(padding))
    decoder = open_decoder(path, 2)
    assert isinstance(decoder, _ParallelBzip2) is (padding == 0)
    decoder.close()

    assert read(path, 2) == (plain, None)


def test_zeros_between_streams_are_read(tmp_path, plain, packed):
    """rapidgzip does not accept them; the serial reader continues."""
    path = tmp_path / "a.bz2"
    path.write_bytes(packed + bytes(50) + packed)

    assert read(path, 2) == (plain * 2, None)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_only_correct_bytes_and_an_error(tmp_path, plain, packed, kind):
    """80 files of each kind: only correct bytes, and an error if bytes are missing."""
    rng = np.random.default_rng(KINDS.index(kind))
    path = tmp_path / "a.bz2"
    n_errors = 0
    for _ in range(80):
        path.write_bytes(damaged(packed, kind, rng) or b"B")
        try:
            found, error = read(path, 2)
        except DamagedInputError:
            continue
        assert found == plain or error is not None
        assert plain.startswith(found)
        n_errors += error is not None
    assert n_errors > 60
