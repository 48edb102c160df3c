// The map of a whole output, what could come next, the beam as a tree, and the outputs, best first.

import {draw, make, number, tint} from "./dom.js";
import {attention, given, heads, joinedWeights, shown, units} from "./units.js";
import {say} from "./words.js";

export function map(box, trace, view, choose) {
  const rows = attention(trace, view.head);
  if (!rows) { box.replaceChildren(make("p", {class: "soft", text: say("noattention")})); return; }
  const columns = units(trace.source, view.joined), lines = units(trace.output, view.joined), cells = joinedWeights(rows, columns, lines);
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.line : undefined;
  const head = make("tr", {}, make("td"), ...columns.map(column => make("th", {text: column.label, scope: "col", dir: "auto"})));
  const body = lines.map((line, i) => {
    const go = () => choose(line.pieces[0] + 1), here = line.pieces.includes(view.step - 1);
    const cellsOf = cells[i].map(w => { const cell = make("td", {text: w >= 0.005 ? w.toFixed(2) : "", title: w.toFixed(6)}); tint(cell, w); return cell; });
    return make("tr", {class: here ? "here" : "", on: {click: go}}, make("th", {scope: "row", dir: "auto"}, make("button", {type: "button", text: line.label, "data-line": i, "aria-current": here ? "step" : null, on: {click: event => { event.stopPropagation(); go(); }}})), ...cellsOf);
  });
  const table = make("table", {class: "map"}, make("thead", {}, head), make("tbody", {}, ...body));
  box.replaceChildren(make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": say("attention")}, table));
  const again = focused !== undefined && box.querySelector(`[data-line="${focused}"]`);
  if (again) again.focus({preventScroll: true});
}

export function headChoice(trace, chosen, change) {
  const all = heads(trace);
  if (!all.length) return null;
  const select = make("select", {on: {change: event => change(event.target.value)}}, ...["mean", ...all].map(value => make("option", {value, text: value === "mean" ? say("mean") : `${say("layer")} ${value.split(".")[0]} · ${say("headname")} ${value.split(".")[1]}`, selected: value === chosen})));
  return make("label", {class: "row"}, make("span", {text: say("head")}), select);
}

// `act` is told {force} or {forbid} and a candidate; without it the buttons are not there.
export function candidates(box, step, act) {
  const rows = [...step.top, ...(step.top.some(choice => choice.chosen) ? [] : [step.chosen])];
  box.replaceChildren(make("table", {class: "bars"}, make("tbody", {}, ...rows.map(choice => {
    const fill = make("div", {class: "bar"}), name = shown(choice.token);
    fill.style.width = `${(100 * choice.probability).toFixed(1)}%`;
    const state = choice.chosen ? say(given(step) ? "given" : "chosen") : "";
    const button = act ? make("button", {type: "button", text: say(choice.chosen ? "forbid" : "force"), "aria-label": `${say(choice.chosen ? "forbid" : "force")} ${name}`, on: {click: () => act(choice)}}) : null;
    return make("tr", {class: choice.chosen ? "chosen" : ""}, make("td", {dir: "auto"}, make("span", {text: name}), state ? make("small", {class: "soft", text: ` ${state}`}) : null), make("td", {text: `${(100 * choice.probability).toFixed(1)} %`}), make("td", {}, fill), make("td", {}, button));
  }))));
}

// All outputs that were found, sharing what they have in common.
export function tree(box, traces) {
  const root = {children: new Map()};
  traces.forEach((trace, rank) => { let node = root; trace.output.tokens.forEach(token => { if (!node.children.has(token)) node.children.set(token, {children: new Map(), best: rank === 0}); node = node.children.get(token); }); node.score = trace.output.score; });
  const list = (node, top) => make("ul", {class: top ? "tree" : null}, ...[...node.children].map(([token, child]) => {
    let run = shown(token), end = child;
    while (end.children.size === 1 && end.score === undefined && [...end.children.values()][0].best === end.best) { const [[next, below]] = end.children; run += (next.startsWith("▁") ? " " : "") + shown(next); end = below; }
    return make("li", {class: end.best ? "best" : null, dir: "auto"}, make("span", {text: run + (end.score === undefined ? "" : `  (${number(end.score)})`)}), end.children.size ? list(end, false) : null);
  }));
  box.replaceChildren(list(root, true));
}

export function outputs(box, traces, picked, choose) {
  box.replaceChildren(...traces.map((trace, i) => make("label", {class: "row"}, make("input", {type: "radio", name: box.dataset.name, checked: i === picked, on: {change: () => choose(i)}}), make("span", {text: trace.output.text || "∅", dir: "auto"}), make("span", {class: "soft", text: `${number(trace.output.score)}${trace.output.finished ? "" : " · " + say("unfinished")}`}))));
}

// The map as a drawing of its own, for other documents.
export function picture(trace, joined, head) {
  const rows = attention(trace, head), columns = units(trace.source, joined), lines = units(trace.output, joined), cells = joinedWeights(rows, columns, lines);
  const left = 14 + 9 * Math.max(...lines.map(line => line.label.length)), above = 14 + 8 * Math.max(...columns.map(column => column.label.length)), cell = 36;
  const svg = draw("svg", {xmlns: "http://www.w3.org/2000/svg", width: left + cell * columns.length + 8, height: above + cell * lines.length + 8, "font-family": "sans-serif", "font-size": 14});
  svg.append(draw("rect", {width: "100%", height: "100%", fill: "#fff"}));
  columns.forEach((column, j) => svg.append(draw("text", {transform: `translate(${left + cell * (j + 0.6)},${above - 6}) rotate(-90)`}, column.label)));
  lines.forEach((line, i) => {
    svg.append(draw("text", {x: left - 6, y: above + cell * (i + 0.6), "text-anchor": "end"}, line.label));
    cells[i].forEach((w, j) => { svg.append(draw("rect", {x: left + cell * j, y: above + cell * i, width: cell - 1, height: cell - 1, fill: "rgb(38,99,235)", "fill-opacity": w.toFixed(4)})); if (w >= 0.005) svg.append(draw("text", {x: left + cell * (j + 0.5), y: above + cell * (i + 0.6), "text-anchor": "middle", "font-size": 11, fill: w > 0.9 ? "#fff" : "#000"}, w.toFixed(2))); });
  });
  return svg;
}
