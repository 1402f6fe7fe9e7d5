"""Rows in every supported kind of file."""

import gzip
import json

import datasets
import pandas as pd


def written(path, rows):
    """Write rows in the format of the path's suffix."""
    frame, name = pd.DataFrame(rows), path.name.removesuffix(".gz")
    if name.endswith(".folder"):
        datasets.Dataset.from_list(rows).save_to_disk(str(path))
    elif name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        text = {
            "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in rows),
            "json": lambda: json.dumps(rows, indent=1),
            "csv": lambda: frame.to_csv(index=False),
            "tsv": lambda: frame.to_csv(index=False, sep="\t"),
        }[name.rpartition(".")[2]]()
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path
