{% raw %}
"use strict";
(() => {
const all = (css, root = document) => [...root.querySelectorAll(css)];
const make = (tag, props) => Object.assign(document.createElement(tag), props);
document.documentElement.classList.add("js");

/* Copying. */
const clean = node => {
  const copy = node.cloneNode(true);
  all(".unit", copy).forEach(unit => unit.before(" "));
  return copy.textContent.replace(/\s+/g, " ").trim();
};
const tex = text => text
  .replace(/[\\{}&%$#_~^]/g, c => ({"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"})[c] || "\\" + c)
  .replace(/[−]/g, "$-$").replace(/–/g, "--").replace(/[<>]/g, "$$$&$$").replace(/ ([%\\])/g, "\\,$1")
  .replace(/[“”]/g, c => c === "“" ? "``" : "''").replace(/✓/g, "\\checkmark").replace(/✗/g, "$\\times$");
const cells = (table, wanted) => all(wanted, table).filter(row => !row.hidden).map(row => [...row.cells].map(clean));
const heads = table => cells(table, "thead tr:last-child")[0];
const right = table => [...table.tHead.rows[table.tHead.rows.length - 1].cells].map(cell => cell.classList.contains("n"));
const writers = {
  Markdown(table) {
    const line = row => "| " + row.map(text => text.replace(/\|/g, "\\|")).join(" | ") + " |";
    return [line(heads(table)), "|" + right(table).map(n => n ? "---:|" : "---|").join(""), ...cells(table, "tbody tr").map(line)].join("\n");
  },
  LaTeX(table) {
    const line = row => row.map(tex).join(" & ") + " \\\\";
    return ["\\begin{tabular}{" + right(table).map(n => n ? "r" : "l").join("") + "}", "\\toprule", line(heads(table)), "\\midrule",
      ...cells(table, "tbody tr").map(line), "\\bottomrule", "\\end{tabular}"].join("\n");
  },
};
const copy = async (text, button) => {
  try { await navigator.clipboard.writeText(text); }
  catch {
    const area = make("textarea", {value: text});
    document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); button.focus();
  }
  const label = button.textContent;
  button.dataset.copied = text;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1200);
};
const offer = (box, label, text) => {
  const button = make("button", {type: "button", textContent: label});
  button.addEventListener("click", () => copy(text(), button));
  box.append(button);
};
for (const box of all("[data-copies]")) {
  const kind = box.dataset.copies;
  box.hidden = false;
  if (kind === "table" || kind === "finding" || kind === "method") box.append("Copy as ");
  if (kind === "table") {
    const table = () => document.getElementById(box.dataset.of).querySelector("table");
    for (const name in writers) offer(box, name, () => name === "LaTeX" && box.dataset.latex || writers[name](table()));
  } else if (kind === "finding") {
    const bold = node => { const twin = node.cloneNode(true); all(".num b", twin).forEach(b => b.replaceWith("**" + b.textContent + "**")); return clean(twin); };
    const texts = read => all("h1,.standfirst,.warning", document.getElementById("finding")).map(read).join("\n\n");
    offer(box, "text", () => texts(clean));
    offer(box, "Markdown", () => texts(bold));
    offer(box, "LaTeX", () => texts(node => tex(clean(node))));
  } else if (kind === "method") {
    const texts = read => all("[data-method] p").map(read).join("\n\n");
    offer(box, "text", () => texts(clean));
    offer(box, "LaTeX", () => texts(node => tex(clean(node))));
  } else {
    offer(box, kind === "code" ? "Copy" : "Copy " + kind, () => box.parentNode.querySelector("pre").textContent);
  }
}

/* Tables: sort, with missing values last, and filter. */
for (const table of all("table.data")) {
  const body = table.tBodies[0], top = table.tHead.rows[table.tHead.rows.length - 1];
  [...body.rows].forEach((row, place) => { row.place = place; });
  const numeric = right(table);
  const value = (row, column) => {
    const cell = row.cells[column], text = cell.dataset.v ?? clean(cell);
    if (text === "" || text === "–") return null;
    if (cell.dataset.v === undefined && !numeric[column]) return text.toLowerCase();
    return text.startsWith("<") ? 0 : parseFloat(text.replace("−", "-").replace("∞", "Infinity").replaceAll(",", ""));
  };
  [...top.cells].forEach((head, column) => {
    const label = head.querySelector(".t"), button = make("button", {type: "button", textContent: label.textContent});
    label.replaceChildren(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort"), other = {ascending: "descending", descending: "ascending"};
      const now = was ? other[was] : head.dataset.first, sign = now === "ascending" ? 1 : -1;
      [...top.cells].forEach(cell => cell.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", now);
      const rows = [...body.rows].map(row => [value(row, column), row]);
      rows.sort(([a, one], [b, other]) => a === null || b === null ? (a === null) - (b === null) || one.place - other.place
        : sign * (typeof a === "string" ? a.localeCompare(b) : a - b) || one.place - other.place);
      body.append(...rows.map(pair => pair[1]));
    });
  });
}
for (const input of all("[data-filter]")) {
  input.hidden = false;
  const rows = all("tbody tr", document.getElementById(input.dataset.filter));
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach(row => { const text = clean(row).toLowerCase(); row.hidden = !words.every(word => text.includes(word)); });
  });
}

/* Answers: filters, 20 a page, state in the address. */
const SIZE = 20;
for (const box of all(".browser")) {
  const rows = all(".ans", box), list = box.querySelector(".list"), pager = box.querySelector(".pager");
  const controls = box.querySelector(".controls"), fields = all("[name]", controls), count = box.querySelector(".count");
  const whole = count.textContent;
  let page = 1;
  rows.forEach(row => {
    row.cell = row.querySelector(".sw use").getAttribute("href").slice(3);
    row.querySelector(".meta a").href = "#" + row.id;
  });
  controls.hidden = pager.hidden = false;
  const matching = () => {
    const wanted = Object.fromEntries(fields.map(field => [field.name, field]));
    const words = wanted.q.value.toLowerCase().split(/\s+/);
    const picks = fields.filter(field => field.dataset.at && field.value).map(field => [field.dataset.at, field.selectedOptions[0].dataset.i]);
    return rows.filter(row => {
      if (wanted.cell.value && row.cell !== wanted.cell.value) return false;
      if (!picks.every(([at, i]) => at === "m" ? row.dataset.m === i : (" " + row.dataset.l + " ").includes(" " + i + " "))) return false;
      return words.every(word => (row.words ??= row.textContent.toLowerCase()).includes(word));
    });
  };
  const show = (found = matching()) => {
    const pages = Math.max(1, Math.ceil(found.length / SIZE));
    page = Math.min(Math.max(1, page), pages);
    const shown = new Set(found.slice((page - 1) * SIZE, page * SIZE));
    rows.forEach(row => { row.hidden = !shown.has(row); });
    count.textContent = found.length === rows.length ? whole : found.length.toLocaleString("en") + " of " + whole;
    pager.querySelector(".where").textContent = "page " + page + " of " + pages;
    const [back, next] = all("[data-step]", pager);
    back.disabled = page === 1; next.disabled = page === pages;
  };
  const put = () => {
    const state = new URLSearchParams(fields.filter(field => field.value).map(field => [field.name, field.value]));
    if (page > 1) state.set("page", page);
    const text = String(state);
    history.replaceState(null, "", "#" + box.dataset.key + (text ? "?" + text : ""));
  };
  const read = () => {
    const address = location.hash.slice(1), key = box.dataset.key;
    all(".here", box).forEach(row => row.classList.remove("here"));
    let target = null;
    try { target = rows.find(row => row.id === decodeURIComponent(address)); } catch { /* A broken address names no row. */ }
    if (target) {
      fields.forEach(field => { field.value = ""; });
      page = 1 + Math.floor(rows.indexOf(target) / SIZE);
      show();
      target.classList.add("here");
      target.scrollIntoView({block: "center"});
    } else if (address.startsWith(key + "?")) {
      const state = new URLSearchParams(address.slice(key.length + 1));
      fields.forEach(field => { field.value = state.get(field.name) || ""; if (field.selectedIndex === -1) field.value = ""; });
      page = Number(state.get("page")) || 1;
      show();
      controls.scrollIntoView({block: "start"});
    } else show();
  };
  const changed = () => { page = 1; show(); put(); };
  fields.forEach(field => field.addEventListener(field.tagName === "INPUT" ? "input" : "change", changed));
  controls.querySelector("[data-clear]").addEventListener("click", () => { fields.forEach(field => { field.value = ""; }); changed(); });
  all("[data-step]", pager).forEach(button => button.addEventListener("click", () => {
    page += Number(button.dataset.step); show(); put(); controls.scrollIntoView({block: "start"});
  }));
  addEventListener("hashchange", read);
  read();
  const order = rows.length && box === document.querySelector(".browser");
  if (order) all("[data-go]").forEach(link => link.setAttribute("href", "#" + box.dataset.key + "?" + link.dataset.go));
  list.removeAttribute("tabindex");
}

/* Mark the boxes that can be scrolled sideways, since the scroll bars of some systems are hidden. */
const sizes = new ResizeObserver(boxes => boxes.forEach(({target}) => target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1)));
all(".scroll").forEach(box => sizes.observe(box));

/* Open the section that the address points to, and mark the section on screen. */
const unfold = () => {
  let node = null;
  try { node = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* As above. */ }
  if (!node) return;
  all("details.folded", node).slice(0, 1).forEach(part => { part.open = true; });
  for (let up = node; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
};
addEventListener("hashchange", unfold);
unfold();
const links = all(".toc a"), parts = links.map(link => document.getElementById(link.hash.slice(1)));
const mark = () => {
  const seen = parts.filter(part => part && part.getBoundingClientRect().top < innerHeight / 3);
  links.forEach((link, place) => place === Math.max(0, seen.length - 1) ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"));
};
addEventListener("scroll", mark, {passive: true});
mark();
})();
{% endraw %}
