"""Files of the guide on custom tasks, with questions of the bundled sample."""

import json
import re
from pathlib import Path

from surface_consistency.data.redirectqa import load_redirectqa

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "integrations.md"
FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
N_ITEMS = 16


def write_files(folder: Path) -> None:
    """Write the files of the guide with more questions and references that some answers match.

    Some references are short, since a model with random weights does not generate words.
    """
    for name, text in FILE.findall(GUIDE.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    rows = [
        {"item": f"i{number}", "form": form, "question": text, "references": ["Kyiv", "at"]}
        for number, question in enumerate(load_redirectqa("sample").questions[:N_ITEMS])
        for form, text in (("title", question.question), ("alias", question.question.lower()))
    ]
    shown = (folder / "capitals.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line).keys() == rows[0].keys() for line in shown)
    (folder / "capitals.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
