"""The counting kernel: look up the tokens of a text in a hash table with a trie of names.

Compiled by numba, without the interpreter lock. A name is the chain of its tokens' hashes, and each
prefix of a name has a slot in the table. A name counts as found only after its bytes are compared,
so colliding hashes cost time but do not change a count. All texts are UTF-8 and NFC, and
case-folded if case is folded.
"""

from typing import Final

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_SEED: Final = np.uint64(0x9E3779B97F4A7C15)
_STEP: Final = np.uint64(0x100000001B3)
_MIX: Final = np.uint64(0xFF51AFD7ED558CCD)
_GAP: Final = np.uint64(0xA0761D6478BD642F)
_LOW: Final = np.uint64(0xFFFFFFFF)
_U0: Final = np.uint64(0)
_U1: Final = np.uint64(1)
_U13: Final = np.uint64(13)
_U29: Final = np.uint64(29)
_U32: Final = np.uint64(32)
_U51: Final = np.uint64(51)

_BEGINS: Final = 1
_ENDS: Final = 2
_APART: Final = 4
_SPACED: Final = 8
_CLASS: Final = 0x0F
_WORD: Final = 2

_LOW_BITS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_CASE_BITS: Final = np.uint64(0x2020202020202020)
_FROM_A: Final = np.uint64(0x1F1F1F1F1F1F1F1F)
_BEYOND_Z: Final = np.uint64(0x0505050505050505)
_FROM_0: Final = np.uint64(0x5050505050505050)
_BEYOND_9: Final = np.uint64(0x4646464646464646)
_UNDERSCORES: Final = np.uint64(0x5F5F5F5F5F5F5F5F)

_jit = numba.njit(cache=True, nogil=True, boundscheck=False)
_inlined = numba.njit(cache=True, nogil=True, boundscheck=False, inline="always")


@intrinsic
def _load(typing, buffer, place):
    """Read eight bytes from any position, the first as the lowest."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        word = ir.IntType(64)
        return builder.load(builder.bitcast(address, word.as_pointer()), typ=word, align=1)

    return types.uint64(buffer, types.int64), generate


@intrinsic
def _fetch(typing, array, place):
    """Prefetch the memory of an item."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [address.type, number, number, number]),
            "llvm.prefetch.p0",
        )
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def _trailing_zeros(typing, value):
    """Count the zero bits below the lowest set bit; 64 if no bit is set."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@_inlined
def _beyond_words(chunk):
    """Set the high bit of each of eight bytes that is not an ASCII letter, digit or underscore."""
    low = chunk & _LOW_BITS
    letters = low | _CASE_BITS
    is_word = (letters + _FROM_A) & ~(letters + _BEYOND_Z)
    is_word |= (low + _FROM_0) & ~(low + _BEYOND_9)
    is_word |= ~((low ^ _UNDERSCORES) + _LOW_BITS)
    return (~is_word | chunk) & _HIGH_BITS


@_inlined
def _mixed(h, mask):
    """Spread a hash over all bits."""
    h = (h ^ (h >> _U29)) * _MIX
    return (h ^ (h >> _U32)) & mask


@_inlined
def _chained(h, token, is_spaced):
    """Add a token to a chain."""
    h = ((h << _U13) | (h >> _U51)) + token
    if is_spaced:
        h += _GAP
    return h * _MIX


@_jit
def _decode(buffer, i):
    """Return code point and width of a non-ASCII character at a position."""
    lead = np.int64(buffer[i])
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (np.int64(buffer[i + 1]) & 0x3F), 2
    if lead < 0xF0:
        return (
            ((lead & 0x0F) << 12)
            | ((np.int64(buffer[i + 1]) & 0x3F) << 6)
            | (np.int64(buffer[i + 2]) & 0x3F)
        ), 3
    return (
        ((lead & 0x07) << 18)
        | ((np.int64(buffer[i + 1]) & 0x3F) << 12)
        | ((np.int64(buffer[i + 2]) & 0x3F) << 6)
        | (np.int64(buffer[i + 3]) & 0x3F)
    ), 4


@_jit
def _tokenize(buffer, i, stop, before, gap, classes, rule, edges, scratch, n):
    """Split a text into tokens from a position on, until it ends or the block is full.

    Returns the number of tokens, the new position, the class of the character before it, and the
    kind of gap before it: 0 a token, 1 one space, 2 other characters.
    """
    joins, begins, ends = rule
    hashes, starts, stops, flags = scratch
    room, size = hashes.shape[0], buffer.shape[0]
    has_edges = edges.shape[0] > 0
    runs = joins[_WORD, _WORD] == 1
    while i < stop and n < room:
        c = buffer[i]
        if c < 0x80:
            kind, width = np.int64(classes[c]) & _CLASS, 1
        else:
            code, width = _decode(buffer, i)
            kind = np.int64(classes[code]) & _CLASS
        if kind == 0:
            gap = 1 if c == 0x20 and gap == 0 else 2
            i += width
            before = 0
            continue
        first = i
        flag = 0
        if has_edges:
            flag |= edges[i] & 1
        elif begins[before, kind]:
            flag |= _BEGINS
        if gap == 2:
            flag |= _APART
        elif gap == 1:
            flag |= _SPACED
        h = _SEED
        after = 0
        while True:
            if runs and kind == _WORD and width == 1:
                # Eight bytes at a time: a word of any length is read in one step.
                while True:
                    if i + 8 <= size:
                        chunk = _load(buffer, i)
                    else:
                        chunk = _U0
                        for k in range(size - i):
                            chunk |= np.uint64(buffer[i + k]) << np.uint64(8 * k)
                    length = _trailing_zeros(_beyond_words(chunk)) >> 3
                    length = min(length, stop - i)
                    if length == 8:
                        h = (h ^ chunk) * _MIX
                        h ^= h >> _U29
                        i += 8
                    else:
                        if length > 0:
                            h = (h ^ (chunk & ((_U1 << np.uint64(8 * length)) - _U1))) * _MIX
                            h ^= h >> _U29
                            i += length
                        break
            else:
                for k in range(i, i + width):
                    h = (h ^ np.uint64(buffer[k])) * _STEP
                i += width
            before = kind
            if i >= stop:
                after = 0
                break
            c = buffer[i]
            if c < 0x80:
                kind, width = np.int64(classes[c]) & _CLASS, 1
            else:
                code, width = _decode(buffer, i)
                kind = np.int64(classes[code]) & _CLASS
            if not joins[before, kind]:
                after = kind
                break
        if has_edges:
            flag |= edges[i] & 2
        elif ends[before, after]:
            flag |= _ENDS
        hashes[n] = h
        starts[n] = first
        stops[n] = i
        flags[n] = flag
        n += 1
        gap = 0
    return n, i, before, gap


@_jit
def _same(buffer, start, stop, blob, offsets, key):
    """Compare the bytes of a text with those of a name."""
    first = np.int64(offsets[key])
    if np.int64(offsets[key + 1]) - first != stop - start:
        return False
    for k in range(stop - start):  # noqa: SIM110 - compiled
        if buffer[start + k] != blob[first + k]:
            return False
    return True


@_inlined
def _place(h, size):
    """Find the first slot of a hash."""
    return np.int64(((h >> _U32) * np.uint64(size)) >> _U32)


@_jit
def count_tokens(blob, offsets, classes, rule, scratch):
    """Count the tokens of names: the total, and the maximum per name."""
    no_edges = np.zeros(0, np.uint8)
    total, most = 0, 0
    for key in range(offsets.shape[0] - 1):
        first, last = np.int64(offsets[key]), np.int64(offsets[key + 1])
        n, _, _, _ = _tokenize(blob, first, last, 0, 2, classes, rule, no_edges, scratch, 0)
        total += n
        most = max(most, n)
    return total, most


@_jit
def build(blob, offsets, classes, rule, table, heads, mask, scratch):
    """Add names to the table.

    Args:
        blob: Bytes of all names.
        offsets: Start of each name, and end of the last one.
        classes: Class of each code point.
        rule: Tables of the boundary rule: characters of the same token, and places at which names
            may begin and end.
        table: The slots, initially 0; filled by this function.
        heads: One bit per first token, by its hash; filled by this function.
        mask: The used bits of a hash.
        scratch: Buffers for the tokens of the longest name: hashes, starts, stops, flags.

    Returns:
        Number of a name that is equal to another name; -1 if all are distinct.
    """
    hashes, _, _, flags = scratch
    no_edges = np.zeros(0, np.uint8)
    size = table.shape[0]
    for key in range(offsets.shape[0] - 1):
        first, last = np.int64(offsets[key]), np.int64(offsets[key + 1])
        n, _, _, _ = _tokenize(blob, first, last, 0, 2, classes, rule, no_edges, scratch, 0)
        chain = _U0
        for t in range(n):
            chain = _chained(chain, hashes[t], flags[t] & _SPACED != 0)
            h = _mixed(chain, mask)
            if t == 0:
                bit = np.int64(h & np.uint64(heads.shape[0] * 8 - 1))
                heads[bit >> 3] |= np.uint8(1 << (bit & 7))
            tag = h & _LOW
            slot = _place(h, size)
            while True:
                stored = table[slot]
                if stored == _U0:
                    if t == n - 1:
                        table[slot] = (tag << _U32) | (np.uint64(key + 1) << _U1)
                    else:
                        table[slot] = (tag << _U32) | _U1
                    break
                if stored >> _U32 == tag:
                    if t < n - 1:
                        table[slot] = stored | _U1
                        break
                    other = np.int64((stored & _LOW) >> _U1) - 1
                    if other < 0:
                        table[slot] = stored | (np.uint64(key + 1) << _U1)
                        break
                    if _same(blob, first, last, blob, offsets, other):
                        return key
                slot += 1
                if slot == size:
                    slot = 0
    return -1


@_jit
def _look_up(first, until, n, hashes, flags, table, heads, mask, most_tokens, walks, found):
    """Follow names from each token on, comparing only hashes.

    Stores first token, last token and slot of possible names; returns their number and the token at
    which to continue. The memory is prefetched in a first pass and read in a second.
    """
    size = table.shape[0]
    room = found.shape[0]
    head_mask = np.uint64(heads.shape[0] * 8 - 1)
    n_walks = 0
    for t in range(first, until):
        if flags[t] & _BEGINS == 0:
            continue
        chain = _chained(_U0, hashes[t], False)
        h = _mixed(chain, mask)
        bit = np.int64(h & head_mask)
        if heads[bit >> 3] >> np.uint8(bit & 7) & 1 == 0:
            continue
        walks[n_walks] = t
        n_walks += 1
        _fetch(table, _place(h, size))
        if t + 1 < n and flags[t + 1] & _APART == 0:
            h = _mixed(_chained(chain, hashes[t + 1], flags[t + 1] & _SPACED != 0), mask)
            _fetch(table, _place(h, size))
    n_found = 0
    for walk in range(n_walks):
        t = walks[walk]
        before = n_found
        chain = _U0
        j = t
        while True:
            chain = _chained(chain, hashes[j], j > t and flags[j] & _SPACED != 0)
            h = _mixed(chain, mask)
            slot = _place(h, size)
            stored = table[slot]
            while stored != _U0 and stored >> _U32 != h & _LOW:
                slot += 1
                if slot == size:
                    slot = 0
                stored = table[slot]
            if stored == _U0:
                break
            if flags[j] & _ENDS and stored & _LOW > _U1:
                if n_found == room:
                    return before, t
                found[n_found, 0] = t
                found[n_found, 1] = j
                found[n_found, 2] = slot
                n_found += 1
            j += 1
            if stored & _U1 == _U0 or j >= min(n, t + most_tokens) or flags[j] & _APART:
                break
    return n_found, until


@_jit
def _verify(found, n_found, scratch, buffer, blob, offsets, table, out, n_hits):
    """Compare the bytes of possible names, store the hits, and return their number."""
    _, starts, stops, _ = scratch
    _, out_starts, out_stops, out_keys = out
    size = table.shape[0]
    for k in range(n_found):
        _fetch(offsets, np.int64((table[found[k, 2]] & _LOW) >> _U1) - 1)
    for k in range(n_found):
        _fetch(blob, np.int64(offsets[np.int64((table[found[k, 2]] & _LOW) >> _U1) - 1]))
    for k in range(n_found):
        start, stop, slot = starts[found[k, 0]], stops[found[k, 1]], found[k, 2]
        stored = table[slot]
        tag = stored >> _U32
        while stored != _U0:
            key = np.int64((stored & _LOW) >> _U1) - 1
            is_other = stored >> _U32 != tag or key < 0
            if not is_other and _same(buffer, start, stop, blob, offsets, key):
                out_starts[n_hits] = start
                out_stops[n_hits] = stop
                out_keys[n_hits] = key
                n_hits += 1
                break
            slot += 1
            if slot == size:
                slot = 0
            stored = table[slot]
    return n_hits


@_jit
def find(
    buffer,
    offsets,
    first_text,
    blob,
    key_offsets,
    classes,
    rule,
    edges,
    table,
    heads,
    mask,
    most_tokens,
    scratch,
    walks,
    found,
    out,
):
    """Find the names in texts, from a given text on.

    Fills the outputs, texts, starts, stops and keys, in the order of text, start and end, until a
    text might not fit. Returns the number of hits, and the text at which to continue.
    """
    hashes, starts, stops, flags = scratch
    out_texts, out_starts, _, _ = out
    room = out_texts.shape[0]
    last = offsets.shape[0] - 1
    n, n_hits = 0, 0
    text = first_text
    # First text whose hits are incomplete, and the number of hits before it.
    pending, hits_before = first_text, 0
    i = stop = np.int64(offsets[first_text])
    before, gap = 0, 2
    while True:
        while n < hashes.shape[0]:
            if i >= stop:
                if text == last:
                    break
                i, stop = np.int64(offsets[text]), np.int64(offsets[text + 1])
                text += 1
                before, gap = 0, 2
            n, i, before, gap = _tokenize(
                buffer, i, stop, before, gap, classes, rule, edges, scratch, n
            )
        is_last = n < hashes.shape[0]
        until = n if is_last else n - most_tokens + 1
        t = 0
        while t < until:
            n_found, t = _look_up(
                t, until, n, hashes, flags, table, heads, mask, most_tokens, walks, found
            )
            if n_hits + n_found > room:
                return hits_before, pending
            n_before = n_hits
            n_hits = _verify(found, n_found, scratch, buffer, blob, key_offsets, table, out, n_hits)
            for hit in range(n_before, n_hits):
                while np.int64(offsets[pending + 1]) <= out_starts[hit]:
                    pending += 1
                    hits_before = hit
                out_texts[hit] = pending
        if is_last:
            return n_hits, last
        n -= until
        for t in range(n):
            hashes[t], starts[t] = hashes[t + until], starts[t + until]
            stops[t], flags[t] = stops[t + until], flags[t + until]


@_jit
def accumulate(
    texts, starts, stops, keys, first_document, counters, entity_offsets, entities, entity_counters
):
    """Add hits, in the order of text, start and end, to the counts.

    Counters have one row per name: bounded, longest and document counts, and the last document that
    contains it. Counters of entities have document counts and the last document.
    """
    n = keys.shape[0]
    taken_until, previous = np.int64(0), np.int64(-1)
    for hit in range(n):
        if hit + 16 < n:
            _fetch(counters, keys[hit + 16] * 4)
        key, text = keys[hit], texts[hit]
        document = first_document + text
        counters[4 * key] += 1
        if counters[4 * key + 3] != document:
            counters[4 * key + 3] = document
            counters[4 * key + 2] += 1
            for k in range(entity_offsets[key], entity_offsets[key + 1]):
                entity = entities[k]
                if entity_counters[2 * entity + 1] != document:
                    entity_counters[2 * entity + 1] = document
                    entity_counters[2 * entity] += 1
        if text != previous:
            previous = text
            taken_until = starts[hit]
        if hit + 1 < n and starts[hit + 1] == starts[hit] and texts[hit + 1] == text:
            continue
        if starts[hit] >= taken_until:
            counters[4 * key + 1] += 1
            taken_until = stops[hit]
