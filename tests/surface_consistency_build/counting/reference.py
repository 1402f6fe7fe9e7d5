"""The reference of the counting engines: every span of every text, looked up in a dictionary."""

import numpy as np
from surface_consistency_build.counting.engines import Finder, Hits


class PythonFinder(Finder):
    """An engine so plain that it is seen to be right."""

    name, library = "python", "numpy"

    def __init__(self, names, case, boundary, segmenter):
        super().__init__(names, case, boundary, segmenter)
        self._keys = {names.bytes_of(index): index for index in range(len(names))}
        if len(self._keys) < len(names):
            raise ValueError("names must be distinct; give each once")
        self._lengths = sorted({len(name) for name in self._keys})

    def find(self, texts):
        """Find every occurrence that the rule allows, overlapping ones too."""
        rows = []
        for index in range(len(texts)):
            text, first = texts.bytes_of(index), int(texts.offsets[index])
            for start in range(len(text)):
                for length in self._lengths:
                    key = self._keys.get(text[start : start + length])
                    if key is not None and start + length <= len(text):
                        rows.append((index, first + start, first + start + length, key))
        if not rows:
            return Hits(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        return self._allowed_hits(texts, *np.array(rows, dtype=np.int64).T)
