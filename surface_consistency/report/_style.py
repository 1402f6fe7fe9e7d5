"""The look of the report page."""

from typing import Final

__all__ = ["STYLE"]

STYLE: Final = """
:root { --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --tint: #f6f8fa; --link: #0550ae; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
main, header, nav { max-width: 84rem; margin: 0 auto; padding: 0 1.5rem; }
main { padding-bottom: 4rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p, li { max-width: 48rem; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
ul.headlines { padding-left: 1.2rem; }
ul.headlines li { margin-bottom: .75rem; overflow-wrap: anywhere; }
.note { border-left: 3px solid #9a6700; background: #fff8e5; padding: .5rem .9rem; }
.scroll { overflow-x: auto; }
.scroll:focus-visible, summary:focus-visible, a:focus-visible {
  outline: 2px solid var(--link); outline-offset: 2px; }
.grid { margin: 1rem 0 1.75rem; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem 0 .5rem; }
th, td { padding: .3rem .5rem; vertical-align: top; text-align: right; font-weight: 400;
  border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; vertical-align: bottom; background: var(--tint); }
thead th.group { text-align: center; border-left: 1px solid var(--line); }
th.label { text-align: left; }
tbody th.label { min-width: 5rem; max-width: 18rem; overflow-wrap: anywhere; }
tbody tr:first-child th:first-child { font-weight: 600; min-width: 7rem; }
td.text, th.text { text-align: left; min-width: 7rem; max-width: 20rem; overflow-wrap: anywhere;
  white-space: pre-wrap; }
td.rate, td.difference, td.p_value, td.count { white-space: nowrap; }
.bounds { display: block; color: var(--soft); font-size: .92em; }
.none { color: var(--soft); font-style: italic; }
.source, code { font: .75rem/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  color: var(--soft); overflow-wrap: anywhere; }
.source { margin: .35rem 0 0; max-width: none; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--link); }
details.sources { margin: .35rem 0 0; font-size: .8rem; }
figure { margin: 1rem 0 2rem; }
@media (min-width: 60rem) { figure img { max-width: 100%; height: auto; } }
figcaption { max-width: 48rem; color: var(--soft); font-size: .9rem; }
@media print { nav { display: none; } .scroll { overflow: visible; } body { font-size: 11px; } }
"""
"""Style sheet of the page; it loads nothing."""
