"""Reading a Wikidata dump: the typed decoder compared with json, orjson and only unpacking.

Run `python benchmarks/bench_wikidata.py`; prints Markdown tables. There are two types of lines:
synthetic ones of 12 KB with the structure of Wikidata's items (labels in 34 languages, 9 statements
with references and qualifiers, 3 of which are read, and 20 sitelinks), and the twenty real items in
`tests/data/files/wikidata/twenty_entities.json.bz2`, repeated. Speeds are in plain bytes.

Unpacking is timed with this package (bzip2 on all processors, gzip with isal) and with the standard
library (one processor). Exits with an error if the decoder is less than 6 times as fast as
`json.loads` on either kind, if reading bzip2 takes more than 1.3 times as long as unpacking with
this package, or if reading gzip takes more than 1.3 times as long as unpacking with the standard
library (isal unpacks faster than any decoder reads).
"""

import argparse
import bz2
import gzip
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from surface_consistency_build.wikimedia._wikidata_items import EntityDecoder
from surface_consistency_build.wikimedia.streams import open_dump
from surface_consistency_build.wikimedia.wikidata import read_entity_batches
from timing import interleaved

from surface_consistency.taxonomy import RELATIONS

PROPERTIES = tuple(relation.property_id for relation in RELATIONS.values())
LANGUAGES, WIKI = ("en", "mul"), "enwiki"
OTHERS = ("P31", "P21", "P569", "P570", "P214", "P213", "P227", "P18", "P735", "P27", "P646")
N_LANGUAGES, N_WANTED, N_OTHERS, N_SITELINKS = 34, 3, 6, 20
BLOCK_BYTES = 1 << 20
JSON_TARGET, UNPACK_TARGET = 6, 1.3


def synthetic_item(rng, number):
    """Return one item of about 12 KB."""
    languages = ["en", "mul", *(f"x{i}" for i in range(N_LANGUAGES - 2))]
    words = [f"{a:x} {b:x} é–中" for a, b in rng.integers(2**40, size=(len(languages), 2))]
    wanted = rng.choice(PROPERTIES, N_WANTED, replace=False)
    others = rng.choice(OTHERS, N_OTHERS, replace=False)
    claims = {
        key: [synthetic_statement(rng, key, f"Q{number}${i}")]
        for i, key in enumerate(map(str, (*others, *wanted)))
    }
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {k: {"language": k, "value": words[i]} for i, k in enumerate(languages)},
        "descriptions": {k: {"language": k, "value": "a thing"} for k in languages[::3]},
        "aliases": {k: [{"language": k, "value": w} for w in words[:2]] for k in languages[::8]},
        "claims": claims,
        "sitelinks": {
            f"{k}wiki": {"site": f"{k}wiki", "title": words[0], "badges": []}
            for k in languages[:N_SITELINKS]
        },
        "lastrevid": int(rng.integers(10**9)),
        "modified": "2026-01-01T00:00:00Z",
    }


def synthetic_statement(rng, key, identifier):
    """Return a statement about an item, with a qualifier and a reference."""
    snak = synthetic_snak(rng, key)
    reference = {
        "hash": f"{rng.integers(2**63):040x}",
        "snaks": {"P248": [synthetic_snak(rng, "P248")]},
        "snaks-order": ["P248"],
    }
    return {
        "mainsnak": snak,
        "type": "statement",
        "qualifiers": {"P580": [synthetic_snak(rng, "P580")]},
        "qualifiers-order": ["P580"],
        "id": identifier,
        "rank": "normal",
        "references": [reference],
    }


def synthetic_snak(rng, key):
    """Return a snak with an item as its value."""
    number = int(rng.integers(1, 10**8))
    value = {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}
    return {
        "snaktype": "value",
        "property": key,
        "hash": f"{rng.integers(2**63):040x}",
        "datavalue": {"value": value, "type": "wikibase-entityid"},
        "datatype": "wikibase-item",
    }


def synthetic_lines(n_bytes):
    """Return lines with at least this number of bytes in total."""
    rng = np.random.default_rng(0)
    lines, size = [], 0
    while size < n_bytes:
        lines.append(
            json.dumps(synthetic_item(rng, len(lines) + 1), separators=(",", ":")).encode()
        )
        size += len(lines[-1])
    return lines


def real_lines(n_bytes):
    """Return the real items, repeated."""
    files = Path(__file__).resolve().parents[1] / "tests" / "data" / "files"
    path = files / "wikidata" / "twenty_entities.json.bz2"
    lines = [line.strip(b"[], ") for line in bz2.decompress(path.read_bytes()).splitlines()]
    lines = [line for line in lines if line]
    return lines * max(1, n_bytes // sum(map(len, lines)))


def decoders(lines):
    """Return functions that decode all lines, by name; "ours" is the decoder of the reader."""
    ours = EntityDecoder(PROPERTIES, LANGUAGES, (WIKI,)).decode_array
    step = max(1, BLOCK_BYTES * len(lines) // sum(map(len, lines)))
    blocks = [b"[%b]" % b",".join(lines[i : i + step]) for i in range(0, len(lines), step)]

    def all_of(decode, parts):
        def run():
            for part in parts:
                decode(part)

        return run

    found: dict[str, Callable[[], object]] = {
        "json.loads": all_of(json.loads, lines),
        "msgspec, untyped": all_of(msgspec.json.Decoder().decode, lines),
        "this package's decoder": all_of(ours, blocks),
    }
    try:
        import orjson
    except ImportError:
        return found
    return {"orjson": all_of(orjson.loads, lines), **found}


def check(lines):
    """Exit if the decoder returns other claims than json."""
    ours = EntityDecoder(PROPERTIES, LANGUAGES, (WIKI,))
    for line in dict.fromkeys(lines):
        plain, (entity,) = json.loads(line), ours.decode_array(b"[%b]" % line)
        claims = plain["claims"] or {}
        for key, statements in zip(PROPERTIES, ours.claims(entity.claims), strict=True):
            if [s["rank"] for s in claims.get(key, [])] != [s.rank for s in statements or []]:
                raise SystemExit(f"the claims {key} of {plain['id']} disagree")


def decode_speed(name, lines, rounds):
    """Print the speed of each decoder on lines in memory, and return missed targets."""
    check(lines)
    n_bytes = sum(map(len, lines))

    times = interleaved(decoders(lines), rounds)
    medians = {key: statistics.median(values) for key, values in times.items()}
    print(f"\n{name}: {len(lines):,} lines, {n_bytes / len(lines) / 1000:.1f} KB each\n")
    print("| decoder | MB/s | to json.loads |\n|---|---|---|")
    for key, seconds in medians.items():
        ratio = medians["json.loads"] / seconds
        print(f"| {key} | {n_bytes / seconds / 1e6:,.0f} | {ratio:.1f}x |")
    ratio = medians["json.loads"] / medians["this package's decoder"]
    if ratio < JSON_TARGET:
        return [f"{name}: {ratio:.1f} times json.loads, not {JSON_TARGET}"]
    return []


def read_whole(path):
    """Read a dump in the same way as a build."""
    for _ in read_entity_batches(path, properties=PROPERTIES, language="en", wiki=WIKI):
        pass


def unpack(path):
    """Only unpack a dump."""
    with open_dump(path) as stream:
        for _ in stream.chunks():
            pass


def unpack_plainly(path):
    """Only unpack a dump with the standard library."""
    module = bz2 if path.suffix == ".bz2" else gzip
    with module.open(path) as file:
        while file.read(1 << 20):
            pass


def end_to_end(name, lines, rounds, folder):
    """Print the time of reading a packed dump, and return missed targets."""
    plain = b"[\n" + b",\n".join(lines) + b"\n]\n"
    missed = []
    print(f"\n{name}, from the file: {len(plain) / 1e6:,.0f} MB plain\n")
    print(
        "| packed as | unpack s | unpack, standard library s | read s | read MB/s | to unpack | "
        "to the standard library |"
    )
    print("|---|---|---|---|---|---|---|")
    for packing, pack in (("bz2", bz2.compress), ("gz", gzip.compress)):
        path = folder / f"entities.json.{packing}"
        path.write_bytes(pack(plain))
        contenders = {
            "unpack": lambda p=path: unpack(p),
            "standard": lambda p=path: unpack_plainly(p),
            "read": lambda p=path: read_whole(p),
        }
        times = interleaved(contenders, rounds)
        alone, standard, read = (statistics.median(values) for values in times.values())
        print(
            f"| {packing} | {alone:.2f} | {standard:.2f} | {read:.2f} "
            f"| {len(plain) / read / 1e6:,.0f} | {read / alone:.2f} | {read / standard:.2f} |"
        )
        limit = alone if packing == "bz2" else standard
        if read / limit > UNPACK_TARGET:
            missed.append(f"{name}, {packing}: {read / limit:.2f} times only unpacking")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds (default: 5)")
    parser.add_argument("--megabytes", type=int, default=200, help="plain size (default: 200)")
    arguments = parser.parse_args()
    n_bytes = arguments.megabytes * 1_000_000
    print(
        f"{os.cpu_count()} processors, {arguments.rounds} interleaved rounds, "
        f"Python {platform.python_version()}, msgspec {msgspec.__version__}"
    )
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (
            ("Synthetic items", synthetic_lines(n_bytes)),
            ("Real items", real_lines(n_bytes)),
        ):
            if not lines:
                print(f"\n{name}: not found, skipped")
                continue
            missed += decode_speed(name, lines, arguments.rounds)
            missed += end_to_end(name, lines, arguments.rounds, Path(folder))
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
