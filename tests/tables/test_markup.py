"""Texts of files are escaped in Markdown, in LaTeX and on the terminal."""

import html
import re
import shutil
import subprocess

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from surface_consistency.analysis.measures import accuracy, consistency, paired
from surface_consistency.analysis.models import compare
from surface_consistency.cli.main import main
from surface_consistency.tables.latex import latex_table, latex_text
from surface_consistency.tables.markdown import markdown_code, markdown_rows, markdown_text
from surface_consistency.tables.table import Column, Table
from surface_consistency.text import one_line, printable

# fmt: off
LABELS = (
    "@octocat", "a@example.org", "@org/team", "#1", "GH-1", "octo/repo#1", "https://evil.test/x",
    "www.evil.test", "ftp://evil.test", "![x](http://evil.test/p.png)", "[c](javascript:x)",
    "[c][ref]", "[ref]: http://evil.test", "<img src=x onerror=alert(1)>", "<!-- x", "</details>",
    "<https://evil.test>", "&lt;b&gt; &amp;", "**bold**", "_it_ *it* __b__", "~~s~~", "$x^2$",
    "`code`", "a``b`c", "`", "`` ` ``", "\\`", "a|b", "a\\|b", "|", "\\", "a\\", "- item",
    "1. item", "1.", "# head", "> quote", "---", "===", "- [x] task", ":smile:", "[^1]", "[x]",
    "\x1b[31mred\x00", "a\nb\r\nc\td", "\u202eevil", "a\u2028b", "\x85", "0123456789abcdef", " ",
    " x ", "x" * 150, "é 漢字 🙂", "50% & 3_4 {x} ~^\\", "}{", "\\input{/etc/passwd}", "[2em]",
    " [2em]", "* x", "--- -- ''``,,", "\\end{tabular}", "%", "?`!`", '"a', "^^41", "a\x0bb\x0cc",
)
# fmt: on
TAGS = {"p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


def rendered(text):
    """Render like GitHub, and check that only tags of this package appear."""
    shown = MarkdownIt("gfm-like").render(text)
    tags = {tag.lower() for tag in re.findall(r"</?([A-Za-z][\w-]*)", shown)}
    assert tags <= TAGS, tags - TAGS
    outside = re.sub(r"<code>.*?</code>", "", shown, flags=re.DOTALL)
    assert not re.search(r"[@#~*_`\\]|://|www\.|\]\(|:\w+:|\b[0-9a-f]{7,}\b", outside), outside
    return shown


def text_of(shown):
    return html.unescape(re.sub(r"<[^>]*>", "", shown)).strip()


@pytest.mark.parametrize("label", LABELS)
def test_label_is_escaped_and_readable_in_markdown(label):
    wanted = printable(one_line(label))

    cells = rendered(markdown_rows(["label", "n"], [[markdown_code(label), "1"]] * 2))
    assert html.unescape(re.findall("<code>(.*?)</code>", cells)[1]) == wanted
    assert cells.count("<td>") == 4
    assert text_of(rendered(markdown_code(label))) == wanted.strip()
    for sentence in (f"The accuracy of {label} is 3, not 4.", label, f"{label} is worse than b"):
        for text in (markdown_text(sentence), f"**{markdown_text(f'The {sentence}.')}**"):
            wanted = f"The {sentence}." if text.startswith("**") else sentence
            shown = "".join(text_of(rendered(text)).split())
            assert shown == "".join(printable(one_line(wanted)).split())


def test_words_and_numbers_of_sentences_are_not_escaped_in_markdown():
    sentence = (
        "The accuracy (score) of beta is −8.2 points lower [−12.1, 3.0] (95 % CI 1,080 to 42.6, "
        "p < 0.001; 6 items, t-test): 3/20, “non-inferior”, item's 75%."
    )

    assert markdown_text(sentence) == sentence
    assert markdown_text("") == markdown_code("") == ""


def frame_of(labels):
    """Answers of models whose names are the labels."""
    rows = [
        {"model": label, "item": n, "form": form, "correct": (n + k) % 3 > 0, "kind": label}
        for k, label in enumerate(labels) for n in range(6) for form in "ab"
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"correct": int})


def test_labels_of_results_are_escaped_in_markdown():
    frame = frame_of([label for label in LABELS if label.strip()][:30])
    wide = frame[frame["form"] == "a"].assign(other=lambda f: 1 - f["correct"])
    results = [
        accuracy(frame), consistency(frame, by="model"), compare(frame, baseline="@octocat"),
        paired(wide, first="correct", second="other", by="kind"),
    ]  # fmt: skip

    for result in results:
        shown = rendered(result.to_markdown())
        assert "<code>![x](http://evil.test/p.png)</code>" in shown
        for sentence in result.sentences:
            rendered(markdown_text(sentence))


def test_a_label_in_markdown_has_at_most_200_characters():
    assert f"| `{'x' * 199}…` |" in accuracy(frame_of(["x" * 5000, "b"])).to_markdown()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("``a''", r"\textasciigrave{}\textasciigrave{}a'{}'"),
        ("a\n\nb\x1b\u2028", r"a\textbackslash{}n\textbackslash{}nb\textbackslash{}u001b"
         r"\textbackslash{}u2028"),
        ("}{%$#_&", r"\}\{\%\$\#\_\&"),
    ],
)  # fmt: skip
def test_latex_text_has_no_ligature_line_break_or_control_character(text, written):
    assert latex_text(text) == written


def labelled(labels, *heads):
    columns = [Column(key="label", title="[t_")]
    columns += [Column(key="n", title=head, kind="count") for head in heads or ["n"]]
    frame = pd.DataFrame({"label": labels, "n": range(len(labels))})
    return Table(frame=frame, caption=" ".join(labels), columns=columns, model=None)


def test_latex_row_does_not_begin_with_an_argument_of_the_line_break():
    lines = latex_table(labelled(["[2em]", " [2em]", "*", "a"]), caption="", label="t").splitlines()

    starts = [line[:2] for line in lines if line.endswith("\\\\")]
    assert starts == ["{}", "{}", "{}", "{}", "a "]


WIDE = ("Rate [0, 1] of x", "Rate [0,1,2]", "Score *", "p, Holm (F_L − F_S)", *["score"] * 3)


@pytest.mark.parametrize(
    ("label", "size"), [("a", ""), ("a" * 26, r"\footnotesize"), ("a" * 60, r"\scriptsize")]
)
def test_headings_of_wide_latex_tables_have_several_lines_and_then_smaller_type(label, size):
    lines = latex_table(labelled([label], *WIDE), caption="", label="t").splitlines()

    assert lines[4].partition("\\set")[0] == (size or r"\begin{tabular}{lrrrrrrr}")
    [heads] = [line.split(" & ") for line in lines if "shortstack" in line]
    assert heads[1:3] == [r"\shortstack{Rate [0,\\1] of x}", r"\shortstack{Rate\\{}[0,1,2]}"]
    assert heads[4] == r"\shortstack{p, Holm\\(F\_L $-$\\F\_S)}"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_tables_of_hostile_labels_compile(tmp_path):
    labels = [label for label in LABELS if max(map(ord, label)) < 256 or not label.isprintable()]
    table = labelled(labels)
    document = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs}\\begin{document}\n"
        f"{latex_table(table, caption=table.caption, label='tab:x')}\n"
        f"{latex_table(labelled(['a'], *WIDE), caption='', label='tab:y')}\n\\end{{document}}\n"
    )
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]

    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)

    if "booktabs.sty' not found" in done.stdout:
        pytest.skip("needs booktabs")
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("form", ["", "--markdown", "--latex", "--json", "--wide", "--out"])
@pytest.mark.parametrize(
    "command",
    [
        ("accuracy", "{}"), ("accuracy", "{}", "--by", "kind"), ("consistency", "{}"),
        ("consistency", "{}", "--by", "kind"), ("compare", "{}", "--form", "form"),
        ("paired", "{}", "--first", "correct", "--second", "other", "--by", "kind"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_control_characters_of_labels_are_not_printed(command, form, tmp_path, capsys):
    hostile = "\x1b[31mred\x07\x9b1m\u202e\u2066x"
    frame = frame_of([hostile, "plain"]).assign(other=1)
    if command[0] == "paired":
        frame = frame[frame["form"] == "a"]
    frame.to_json(tmp_path / "f.jsonl", orient="records", lines=True)
    words = [word.format(tmp_path / "f.jsonl") for word in command]
    words += {"": [], "--out": ["--out", str(tmp_path / "page")]}.get(form, [form])

    assert main(words) == 0

    printed = "".join(capsys.readouterr())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", printed)
    assert "red" in printed
