"""Hook of MkDocs that shows the executed notebooks of docs/notebooks as pages.

A notebook becomes Markdown, so its page has the theme, the search and the `llms.txt` of every other
page. Only json is needed: no kernel, no pandoc.
"""

import base64
import json
import re
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page


class Notebook(File):
    """A notebook that is a page, not a file to copy."""

    def is_documentation_page(self) -> bool:
        """Return True, so that the page has its own folder and a place in the navigation."""
        return True


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Replace the file of each notebook by a page, and add the figures of its outputs."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        files.append(
            Notebook(file.src_uri, config.docs_dir, config.site_dir, config.use_directory_urls)
        )
        for name, image in figures(json.loads(file.content_string)):
            uri = f"{file.src_uri.rpartition('/')[0]}/{name}"
            files.append(File.generated(config, uri, content=image))


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    """Return the Markdown of a notebook."""
    if isinstance(page.file, Notebook):
        return markdown(json.loads(page.file.content_string))
    return None


def figures(notebook: dict) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each PNG; a cell has at most one."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if image := output.get("data", {}).get("image/png"):
                yield f"{cell['id']}.png", base64.b64decode(image)


def markdown(notebook: dict) -> str:
    """Return the cells, and each output as a figure, as HTML or as text."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![Figure of the cell above]({cell['id']}.png)")
            elif "text/html" in data:
                # Without the style of pandas, tables have the theme and scroll on narrow screens.
                html = re.sub(r"(?s)<style.*?</style>|</?div>", "", "".join(data["text/html"]))
                parts.append(re.sub(r"<table[^>]*>", "<table>", html).strip())
            else:
                text = "".join(output.get("text") or data["text/plain"])
                parts.append(f"```text\n{text.strip()}\n```")
    return "\n\n".join(parts) + "\n"
