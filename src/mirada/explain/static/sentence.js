// A sentence being written: lines run from the word being written to the words it looks at, thicker for more weight.

import {$, draw, make, tint, untint} from "./dom.js";
import {say} from "./words.js";
import {given, joinedWeights, units} from "./units.js";

// `view` is {source, output, rows, steps, step, joined}; `choose` is told the step of an output word that is clicked.
export function writing(box, view, choose) {
  const columns = units(view.source, view.joined), lines = units(view.output, view.joined);
  const here = lines.findIndex(line => line.pieces.includes(view.step - 1));
  const cells = view.rows ? joinedWeights(view.rows, columns, lines) : null;
  const read = make("div", {class: "tokens", dir: "auto", role: "list", "aria-label": say("source")});
  const written = make("div", {class: "tokens out", dir: "auto", role: "group", "aria-label": say("output")});
  read.append(...columns.map(column => make("span", {class: "token" + (column.unseen ? " unseen" : ""), text: column.label, role: "listitem", title: column.unseen ? say("unseen") : null})));
  const focused = box.contains(document.activeElement) ? Number(document.activeElement.dataset.line) : NaN;
  written.append(...lines.map((line, i) => {
    const step = line.pieces[0] + 1, begun = view.steps ? view.steps[line.pieces[0]] : null;
    const names = ["token", i === here ? "here" : "", i > here ? "later" : "", begun && given(begun) ? "given" : ""];
    return make("button", {type: "button", class: names.join(" ").trim(), text: line.label, "data-line": i, "aria-current": i === here ? "step" : null,
      on: {click: () => choose(step), mouseenter: () => show(i), mouseleave: () => show(here), focus: () => show(i), blur: () => show(here)}});
  }));
  const overlay = draw("svg", {"aria-hidden": "true"});
  box.replaceChildren(overlay, read, written);
  function show(row) {
    if (!cells || row < 0) { [...read.children].forEach(untint); overlay.replaceChildren(); return; }
    [...read.children].forEach((element, j) => { tint(element, cells[row][j]); if (!columns[j].unseen) element.title = cells[row][j].toFixed(4); });
    overlay.replaceChildren(...ties(box, read.children, written.children[row], cells[row]));
  }
  show(here);
  const again = written.children[focused];
  if (again) again.focus({preventScroll: true});
  const summary = cells && here >= 0 ? `${lines[here].label}: ` + columns.map((column, j) => [cells[here][j], column.label]).sort((a, b) => b[0] - a[0]).slice(0, 3).map(([w, label]) => `${label} ${(100 * w).toFixed(0)} %`).join(", ") : "";
  return summary;
}

function ties(box, from, to, weights) {
  const frame = box.getBoundingClientRect(), end = to.getBoundingClientRect();
  return [...from].map((element, j) => {
    const start = element.getBoundingClientRect(), w = weights[j];
    const x1 = start.x + start.width / 2 - frame.x, y1 = start.bottom - frame.y, x2 = end.x + end.width / 2 - frame.x, y2 = end.y - frame.y;
    const middle = (y1 + y2) / 2;
    return draw("path", {d: `M${x2},${y2} C${x2},${middle} ${x1},${middle} ${x1},${y1}`, "stroke-width": (12 * w).toFixed(2), opacity: w < 0.004 ? 0 : (0.25 + 0.75 * w).toFixed(2)});
  });
}
