"""The reader of bzip2 by blocks, on its own: `open_dump` has the serial one to go on with."""

import bz2
from io import BytesIO

import numpy as np
import pytest
from surface_consistency_build.unpacking import bzip2_blocks
from surface_consistency_build.unpacking.bzip2_blocks import Bzip2Blocks, IrregularBzip2Error


@pytest.fixture(scope="module")
def plain():
    """What fills several blocks of 100,000 bytes, which begin at any bit."""
    return np.random.default_rng(5).integers(0, 2, 650_000, dtype=np.uint8).tobytes()


@pytest.mark.parametrize("size", [3, 7, 1_000, 1 << 18])
def test_blocks_are_found_however_the_file_is_read(plain, size, monkeypatch):
    """A mark may stand across what was read at once."""
    monkeypatch.setattr(bzip2_blocks, "_READ_BYTES", size)
    packed = bz2.compress(plain[:400_000], 1) + bz2.compress(plain[400_000:], 1)
    reader = Bzip2Blocks(BytesIO(packed), threads=2)

    blocks = list(reader.blocks())

    assert b"".join(blocks) == plain
    assert len(blocks) > 6
    assert reader.offset == len(packed) - 10


def test_a_wrong_sum_of_a_stream_is_noticed(plain):
    packed = bytearray(bz2.compress(plain, 1))
    packed[-3] ^= 1

    with pytest.raises(IrregularBzip2Error, match="a stream ends otherwise than it should"):
        list(Bzip2Blocks(BytesIO(packed), threads=2).blocks())
