"""Small files that unpack to gigabytes, for every command that reads rows.

`python -m tests.faults.bombs` writes each file (at most 1 MB), runs each command on it in a
separate process, and prints a Markdown table. It fails if a command takes more than `PEAK_MB` or
`CPU_SECONDS`, or if it ends with neither a result nor an error message.
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PEAK_MB = 700
CPU_SECONDS = 20
LARGEST = 1_000_000
"""Maximum number of bytes of a file."""

ROW = {"id": 1, "item": 1, "model": "a", "form": "f", "correct": 1, "question": "q"}
ROW |= {"answers": ["x"], "prediction": "x", "a": 1, "b": 0}
ECHO = ("--runner", "tests.faults.plugins:Echo", "--limit", "2", "--repeat", "0")
LOG = str(Path(__file__).parents[1] / "data/files/unlearning/TOFU_EVAL.json")
PLAIN = {"use_dictionary": False, "write_statistics": False}
"""Options of a column that stores each text; the statistics of long texts take half a minute."""
COMMANDS = {
    "compare": ("compare", "{}"),
    "consistency": ("consistency", "{}"),
    "accuracy": ("accuracy", "{}"),
    "paired": ("paired", "{}", "--first", "a", "--second", "b"),
    "score --predictions": ("score", "--predictions", "{}", "--source", "sample", "--out", "out"),
    "run forms": ("run", "forms", "--source", "{}", *ECHO, "--out", "out"),
    "run redirectqa": ("run", "redirectqa", "--source", "{}", *ECHO, "--out", "out"),
    "run unlearning": ("run", "unlearning", "--source", "{}", *ECHO, "--out", "out"),
    "analyse unlearning": ("analyse", "unlearning", LOG, "{}", "--out", "out"),
}


def packed(path, head, unit, n, tail=b""):
    """Write gzip members of one repeated unit, at most as many as the maximum size allows."""
    block = unit * 20_000
    member = gzip.compress(block, 9, mtime=0)
    members = min(-(-n // 20_000), (LARGEST - 1_000) // len(member))
    path.write_bytes(gzip.compress(head) + member * members + gzip.compress(tail or unit))


def line(*columns):
    return json.dumps({name: ROW[name] for name in columns}, separators=(",", ":")).encode() + b"\n"


def distinct(path, n, columns):
    """Write rows of distinct items; their number is below the limits of the readers."""
    with gzip.open(path, "wt", 9) as file:
        for number in range(n):
            row = ROW | {"item": number // 2, "id": number, "model": "ab"[number % 2]}
            row |= {"form": "fg"[number % 2]}
            file.write(json.dumps({name: row[name] for name in columns}) + "\n")


def table(n, **further):
    """Return the columns of a table of n rows that every command can read."""
    return {name: pa.array([value] * n) for name, value in ROW.items()} | further


def text_table(path, n_rows, n_bytes, *, nested=False, **options):
    """Write one long text to which all rows refer."""
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * n_rows, pa.int32()), pa.array(["x" * n_bytes])
    )
    if options.get("use_dictionary") is False:
        texts = texts.cast(pa.string())
    if nested:
        texts = pa.ListArray.from_arrays(pa.array(range(n_rows + 1), pa.int32()), texts)
    rows = pa.table(table(n_rows, question=texts))
    pq.write_table(rows, path, compression="zstd", store_schema=False, **options)


def constant_table(path, n_rows):
    """Write one row in run-length pages."""
    rows = pa.table(table(1_000_000, answers=pa.array(["x"] * 1_000_000)))
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for _ in range(n_rows // 1_000_000):
            writer.write_table(rows, row_group_size=1_000_000)


def forge(path, field):
    """Replace a number of each column chunk in the footer by 1, encoded in the same bytes."""
    metadata = pq.read_metadata(path).row_group(0)
    # The number of values follows the codec, which is zstd; the footer stores row counts elsewhere.
    before = b"\x15\x0c\x16" if field == "num_values" else b"\x16"
    content = path.read_bytes()
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[at:]
    for column in range(metadata.num_columns):
        value, old = 2 * getattr(metadata.column(column), field), b""
        while value:
            value, old = value >> 7, old + bytes([value & 127 | 128 * (value > 127)])
        new = bytes([2 | 128, *[128] * (len(old) - 2), 0]) if len(old) > 1 else b"\x02"
        footer = footer.replace(before + old, before + new)
    path.write_bytes(content[:at] + footer)


def archive(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression, compresslevel=9) as opened:
        for name, parts in members:
            with opened.open(name, "w") as file:
                for part in parts:
                    file.write(part)


def eval_log(path, n, n_bytes, compression=zipfile.ZIP_DEFLATED):
    """Write an inspect_ai log with long samples."""
    header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    sample = {"id": "q", "epoch": 1, "input": "x", "target": "x", "output": {"choices": []}}
    text = json.dumps(sample | {"scores": {"a": {"value": "C"}}})[:-1].encode()
    parts = [text, b', "pad": "', b"y" * n_bytes, b'"}']
    samples = [(f"samples/{number}.json", parts) for number in range(n)]
    archive(path, [("header.json", [json.dumps(header).encode()]), *samples], compression)


def lying_member(path, *, n_bytes):
    """Write a sample with a directory entry that states a hundredth of its size."""
    eval_log(path, 1, n_bytes)
    with zipfile.ZipFile(path) as opened:
        size = opened.getinfo("samples/0.json").file_size
    stated = struct.pack("<I", size // 100)
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", size), stated))


SHEET = "xl/worksheets/sheet1.xml"
HEAD = b"<w><sheetData><row><c t='str'><v>item</v></c><c t='str'><v>correct</v></c></row>"


def sheet(path, *parts, shared=()):
    texts = [("xl/sharedStrings.xml", shared)] if shared else []
    archive(path, [(SHEET, [HEAD, *parts, b"</sheetData></w>"]), *texts])


def wide_sheet(path):
    cells = b"".join(b"<c t='str'><v>c%d</v></c>" % number for number in range(9_000))
    rows = [b"<row/>" * 10_000] * 40
    archive(path, [(SHEET, [b"<w><sheetData><row>", cells, b"</row>", *rows, b"</sheetData></w>"])])


def saved_dataset(folder, batch, n, compression=None):
    """Write a folder of equal batches in the format of `Dataset.save_to_disk`."""
    import datasets

    datasets.Dataset(pa.Table.from_batches([batch.slice(0, 1)])).save_to_disk(str(folder))
    (file,) = folder.glob("*.arrow")
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(str(file), batch.schema, options=options) as writer:
        for _ in range(n):
            writer.write_batch(batch)


QUOTED = b'id,item,model,form,correct,question,answers,prediction,a,b\n1,1,a,f,1,"'
BOMBS = {
    "rows.jsonl.gz": lambda path: packed(path, b"", line(*ROW), 5_000_000),
    "short.jsonl.gz": lambda path: packed(path, b"", line("item", "model", "correct"), 9_000_000),
    "distinct.jsonl.gz": lambda path: distinct(path, 180_000, ROW),
    "pairs.jsonl.gz": lambda path: distinct(path, 370_000, ("item", "model", "correct")),
    "blank.jsonl.gz": lambda path: packed(path, line(*ROW), b"\n", 500_000_000),
    "keys.jsonl": lambda path: path.write_text(
        "".join(json.dumps({"item": 1, f"c{number}": 1}) + "\n" for number in range(40_000))
    ),
    "list.json.gz": lambda path: packed(
        path, b'[{"item":1,"model":"a","correct":1,"x":[', b"{},", 100_000_000, b"{}]}]"
    ),
    "items.json.gz": lambda path: packed(path, b"[", b"{},", 100_000_000, b"{}]"),
    "object.json.gz": lambda path: packed(path, b'{\n"x":[', b"[],", 100_000_000, b"[]]}"),
    "nested.json": lambda path: path.write_text("[" + "[[]," * 240_000 + "[]]"),
    "rows.csv.gz": lambda path: packed(
        path, b",".join(map(str.encode, ROW)) + b"\n", b"1,1,a,f,1,q,x,x,1,0\n", 9_000_000
    ),
    "quoted.csv.gz": lambda path: packed(path, QUOTED, b"x\n", 200_000_000, b'"\n'),
    "columns.csv": lambda path: path.write_text(
        ",".join(f"c{n}" for n in range(105_000)) + "\n" + ",".join(["1"] * 105_000) + "\n"
    ),
    "outputs.csv": lambda path: path.write_text("[a] b," * 130_000 + "c\n" + "," * 130_000 + "\n"),
    "dict.parquet": lambda path: text_table(path, 1_000, 8 << 20),
    "nested.parquet": lambda path: text_table(path, 1_000, 8 << 20, nested=True),
    "delta.parquet": lambda path: text_table(
        path, 200, 8 << 20, use_dictionary=False, column_encoding={"question": "DELTA_BYTE_ARRAY"}
    ),
    "plain.parquet": lambda path: text_table(path, 120, 8 << 20, **PLAIN),
    "forged_sizes.parquet": lambda path: (
        text_table(path, 120, 8 << 20, **PLAIN),
        forge(path, "total_uncompressed_size"),
    ),
    "forged_counts.parquet": lambda path: (
        constant_table(path, 24_000_000),
        forge(path, "num_values"),
    ),
    "runs.parquet": lambda path: constant_table(path, 24_000_000),
    "zipped_arrow": lambda path: saved_dataset(
        path, pa.RecordBatch.from_pydict(table(20, answers=["x" * (8 << 20)] * 20)), 6, "zstd"
    ),
    "nulls_arrow": lambda path: saved_dataset(
        path,
        pa.RecordBatch.from_arrays([pa.nulls(30_000_000)] * 3, ["item", "model", "correct"]),
        3,
    ),
    "many.eval": lambda path: eval_log(path, 60, 15 << 20),
    "bzip2.eval": lambda path: eval_log(path, 1, 1 << 30, zipfile.ZIP_BZIP2),
    "lzma.eval": lambda path: eval_log(path, 1, 1 << 30, zipfile.ZIP_LZMA),
    "lying.eval": lambda path: lying_member(path, n_bytes=900 << 20),
    "cells.xlsx": lambda path: sheet(path, b"<row>", *[b"<c/>" * 100_000] * 600, b"</row>"),
    "empty_rows.xlsx": lambda path: sheet(path, *[b"<row/>" * 100_000] * 400),
    "column.xlsx": lambda path: sheet(
        path, b"<row><c r='", b"Z" * 2_000_000, b"1'><v>1</v></c></row>"
    ),
    "wide.xlsx": wide_sheet,
    "deep.xlsx": lambda path: sheet(path, *[b"<x>" * 100_000] * 300),
    "shared.xlsx": lambda path: sheet(
        path, b"<row><c t='s'><v>0</v></c></row>", shared=[b"<s>", *[b"<si/>" * 100_000] * 600]
    ),
}
"""Functions that write a file of each format, by its name; every command reads every file."""

SHORT = {
    "rows.jsonl.gz": ("compare", "score --predictions"),
    "keys.jsonl": ("compare",),
    "items.json.gz": ("compare",),
    "rows.csv.gz": ("run forms",),
    "dict.parquet": ("compare", "run forms"),
    "forged_sizes.parquet": ("compare", "run forms"),
    "zipped_arrow": ("compare",),
    "cells.xlsx": ("compare",),
    "wide.xlsx": ("compare",),
}
"""Files of the option `--short`, and the commands that read each of them."""


def measured(words, home, *, most_mb):
    """Run a command; return its exit code, peak memory in MB, CPU seconds and last line."""

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (most_mb << 20, most_mb << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    shutil.rmtree(home / "out", ignore_errors=True)
    with (home / "output").open("w+b") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "surface_consistency", *words],
            cwd=home,
            stdout=output,
            stderr=output,
            preexec_fn=bound,
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        message = output.read().decode(errors="replace").strip().split("\n")[-1]
    cpu = used.ru_utime + used.ru_stime
    return child.returncode, used.ru_maxrss / 1024, cpu, message


def main():
    """Print the table; return the number of commands that exceed a limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="*", help="names of files")
    parser.add_argument("--commands", nargs="*", default=COMMANDS)
    parser.add_argument("--short", action="store_true", help="use only some files and commands")
    parser.add_argument("--folder", type=Path, help="folder of the files; missing ones are written")
    args = parser.parse_args()
    names = args.only or (SHORT if args.short else BOMBS)
    commands = SHORT if args.short else defaultdict(lambda: args.commands)
    exceeded = 0
    print(
        "| file | bytes | command | peak MB | CPU s | exit | message |", "|---" * 7 + "|", sep="\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        home, folder = Path(scratch), (args.folder or Path(scratch)).resolve()
        for name in names:
            path = folder / name
            if not path.exists():
                # A command inherits the peak memory of its parent, so a child writes the file.
                child = os.fork()
                if not child:
                    try:
                        BOMBS[name](path)
                    finally:
                        os._exit(0)
                os.waitpid(child, 0)
            files = [path] if path.is_file() else [*path.iterdir()]
            size = sum(file.stat().st_size for file in files)
            assert size <= LARGEST, f"{name}: {size:,} bytes"
            for command in commands[name]:
                words = [word.replace("{}", str(path)) for word in COMMANDS[command]]
                code, peak, cpu, message = measured(words, home, most_mb=9_000)
                is_over = peak > PEAK_MB or cpu > CPU_SECONDS or code not in (0, 2, 3)
                exceeded += is_over
                shown = message.replace(str(path), name).replace("|", "\\|")[:150]
                mark = " **over**" if is_over else ""
                print(
                    f"| {name} | {size:,} | {command} | {peak:,.0f}{mark} | {cpu:.1f} | {code} | "
                    f"{shown} |",
                    flush=True,
                )
    print(f"\n{exceeded} over the bounds")
    return exceeded


if __name__ == "__main__":
    sys.exit(bool(main()))
