// The system at one step, drawn: parts as buttons, arrows with the current numbers, the equation of the chosen part.

import {draw, make, number, tint} from "./dom.js";
import {attention, given, shown} from "./units.js";
import {equation, plainSymbol} from "./equation.js";
import {meaning, phrase, say} from "./words.js";

const top = (tensors, base) => Object.keys(tensors).filter(name => name === base || name.startsWith(base + ".")).sort((a, b) => (Number(a.split(".")[1]) || 99) - (Number(b.split(".")[1]) || 99)).pop();
const norm = vector => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));

// Parts in ranks from the input to the output, and arrows [from, to, label, kind] for the system's own flow.
export function flow(trace, step) {
  const s = trace.steps[step - 1], t = s.tensors, kind = trace.model.decoder, has = name => name && name in t;
  const names = {y: "y", before: "s_prev", fed: "s_tilde_prev", alpha: "alpha", c: kind === "transformer" ? top(t, "c") : "c", self: top(t, "self_c"), ff: top(t, "ff"), s: top(t, "s"), read: has("maxout") ? "maxout" : has("s_tilde") ? "s_tilde" : null};
  const part = (id, value, name) => ({id, value, name});
  const y = part("y", t.y, "y"), before = has("s_prev") ? part("before", t.s_prev, "s_prev") : null, state = part("s", t[names.s], names.s);
  const alpha = has("alpha") ? part("alpha", t.alpha, "alpha") : null, c = has(names.c) ? part("c", t[names.c], names.c) : null;
  const read = names.read ? part("read", t[names.read], names.read) : null, out = part("out", null, null);
  const last = read || state, arrows = [], ranks = [["states"]];
  const whole = trace.start.c ? "c" : top(trace.encoder, "final");
  if (kind === "classic") {
    const neck = {...part("neck", trace.start.c || trace.encoder[whole], whole), neck: true, before: true};
    ranks.push([neck], [y, before], [state]);
    arrows.push(["states", "neck"], ["neck", "before", step > 1 ? "" : say("neck")], ["y", "s"], ["before", "s"]);
    if (trace.start.c && "c" in trace.start) arrows.push(["neck", "s"]);
  } else if (kind === "bahdanau") {
    ranks.push([before], [alpha], [c, y], [state]);
    before.looks = true;
    arrows.push(["before", "alpha"], ["states", "c", "", "alpha"], ["alpha", "c"], ["c", "s"], ["y", "s"], ["before", "s"]);
  } else if (kind === "luong") {
    ranks.push([y, before, has("s_tilde_prev") ? part("fed", t.s_tilde_prev, "s_tilde_prev") : null], [state], [alpha], [c], [read]);
    state.looks = true;
    arrows.push(["y", "s"], ["before", "s"], ["fed", "s"], ["s", "alpha"], ["states", "c", "", "alpha"], ["alpha", "c"], ["c", "read"], ["s", "read"]);
  } else {
    ranks.push([y], [part("self", t[names.self], names.self)], [alpha], [c], [part("ff", t[names.ff], names.ff)], [state]);
    arrows.push(["y", "self"], ["self", "alpha"], ["states", "c", "", "alpha"], ["alpha", "c"], ["c", "ff"], ["ff", "s"]);
  }
  if (read && kind !== "luong") { ranks.push([read]); arrows.push(["s", "read"], ["y", "read"]); if (c) arrows.push(["c", "read"]); }
  if (has("p_gen")) {
    ranks.push([part("copied", t.copy, "copy"), part("gate", [t.p_gen], "p_gen")]);
    arrows.push(["alpha", "copied"], [state.id, "gate"], ["copied", "out", (1 - t.p_gen).toFixed(2)], ["gate", "out", t.p_gen.toFixed(2)]);
  }
  ranks.push([out]);
  arrows.push([last.id, "out"]);
  return {ranks: ranks.map(rank => rank.filter(Boolean)), arrows};
}

function strip(vector) {
  const most = Math.max(1e-9, ...vector.map(Math.abs)), some = vector.slice(0, 24);
  return make("span", {class: "strip", "aria-hidden": "true"}, ...some.map(x => make("i", {style: {background: x < 0 ? `rgba(200, 70, 20, ${(-x / most).toFixed(2)})` : `rgba(var(--heat), ${(x / most).toFixed(2)})`}})));
}

// Draw into `box`; `picked` is the name of the chosen part, `choose` is told another.
export function drawing(box, trace, step, picked, choose) {
  const s = trace.steps[step - 1], {ranks, arrows} = flow(trace, step), weights = (attention(trace) || [])[step - 1] || null;
  const symbol = one => plainSymbol(trace.legend[one.name].symbol, step);
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.part : null;
  const button = (id, names, label, mark, ...inner) => make("button", {type: "button", class: `part ${names}`.trim(), "data-part": id, "data-symbol": mark, "aria-pressed": String(picked === id), on: {click: () => choose(id)}}, make("span", {text: label}), ...inner);
  const rows = ranks.map(rank => make("div", {class: "rank", dir: "auto"}, ...rank.flatMap(one => {
    if (one === "states") return trace.source.tokens.map((token, j) => {
      const element = button(`states:${j}`, "state", shown(token), null, make("small", {text: weights ? weights[j].toFixed(2) : plainSymbol("h_" + (j + 1), step)}));
      if (weights) { tint(element, weights[j]); element.querySelector("small").style.color = "inherit"; }
      return element;
    });
    if (one.id === "out") return [button("out", "", shown(s.chosen.token), null, make("small", {text: given(s) ? say("given") : `p = ${s.chosen.probability.toFixed(2)}`}))];
    const vector = Array.isArray(one.value[0]) ? one.value[0] : one.value;
    const looks = one.looks ? make("small", {text: say("looksat") + " …"}) : null, neck = one.neck ? make("small", {text: say("neck")}) : null;
    const words = one.id === "y" ? shown(s.previous.token) + " · " : "";
    return [button(one.id, (one.looks ? "looks" : "") + (one.neck ? " neck" : ""), words + symbol(one), symbol(one), make("small", {text: meaning(trace.legend[one.name].meaning)}), one.id === "alpha" ? null : strip(vector), looks, neck)];
  })));
  const overlay = draw("svg", {"aria-hidden": "true"});
  box.replaceChildren(overlay, ...rows);
  connect(box, overlay, arrows, ranks, weights);
  const again = focused && box.querySelector(`[data-part="${focused}"]`);
  if (again) again.focus({preventScroll: true});
}

function connect(box, overlay, arrows, ranks, weights) {
  const frame = box.getBoundingClientRect(), place = id => { const found = box.querySelector(`[data-part="${id}"]`); return found && found.getBoundingClientRect(); };
  const values = Object.fromEntries(ranks.flat().filter(one => one.value).map(one => [one.id, Array.isArray(one.value[0]) ? one.value[0] : one.value]));
  const tip = `tip-${[...document.querySelectorAll(".drawing")].indexOf(box)}`;
  overlay.append(draw("defs", {}, draw("marker", {id: tip, viewBox: "0 0 6 6", refX: 6, refY: 3, markerWidth: 6, markerHeight: 6, orient: "auto"}, draw("path", {d: "M0,0 L6,3 L0,6 z", class: "tip"}))));
  const symbols = Object.fromEntries([...box.querySelectorAll("[data-symbol]")].map(element => [element.dataset.part, element.dataset.symbol]));
  const curve = (a, b, attributes, text) => {
    if (!a || !b) return;
    if (b.y - a.bottom > 60 && !attributes.class) { around(a, b, attributes, text); return; }
    const x1 = a.x + a.width / 2 - frame.x, y1 = a.bottom - frame.y, x2 = b.x + b.width / 2 - frame.x, y2 = b.y - frame.y, m = (y1 + y2) / 2;
    overlay.append(draw("path", {d: `M${x1},${y1} C${x1},${m} ${x2},${m} ${x2},${y2}`, ...attributes}));
    if (text) overlay.append(draw("text", {x: x1 + (x2 - x1) * 0.5, y: m + 4}, text));
  };
  let lane = 0;  // arrows that pass other parts go round them, each on its own lane
  const around = (a, b, attributes, text) => {
    const between = [...box.querySelectorAll(".part")].map(element => element.getBoundingClientRect()).filter(rect => rect.y < b.y && rect.bottom > a.y);
    const edge = Math.min(frame.width - 14, Math.max(...between.map(rect => rect.right)) - frame.x + 16 + 14 * lane++);
    const x1 = a.right - frame.x, y1 = a.y + a.height / 2 - frame.y, x2 = b.right - frame.x, y2 = b.y + b.height / 2 - frame.y;
    overlay.append(draw("path", {d: `M${x1},${y1} C${edge + 10},${y1} ${edge + 10},${y2} ${x2},${y2}`, ...attributes}));
    if (text) overlay.append(draw("text", {x: Math.min(frame.width - 30, edge + 6), y: (y1 + y2) / 2}, text));
  };
  const states = [...box.querySelectorAll('[data-part^="states:"]')].map(element => element.getBoundingClientRect());
  for (const [from, to, label, kind] of arrows) {
    const plain = {"stroke-width": 1.5, "marker-end": `url(#${tip})`};
    if (from === "states" && kind === "alpha") states.forEach((rect, j) => { if (weights && weights[j] >= 0.01) curve(rect, place(to), {class: "alpha", "stroke-width": (1 + 7 * weights[j]).toFixed(1), opacity: 0.35 + 0.6 * weights[j]}, weights[j] >= 0.1 ? weights[j].toFixed(2) : ""); });
    else if (from === "states") { states.slice(0, -1).forEach((rect, j) => overlay.append(draw("path", {d: `M${rect.right - frame.x},${rect.y + rect.height / 2 - frame.y} L${states[j + 1].x - frame.x},${states[j + 1].y + states[j + 1].height / 2 - frame.y}`, ...plain}))); curve(states[states.length - 1], place(to), plain); }
    else curve(place(from), place(to), plain, label || (values[from] && from !== "alpha" ? `|${symbols[from]}| ${norm(values[from]).toFixed(1)}` : ""));
  }
}

// What the chosen part is: words, equation with the step's number, and its numbers; raw vectors folded away.
export function explanation(box, trace, step, picked) {
  const s = trace.steps[step - 1], row = (attention(trace) || [])[step - 1];
  const {ranks} = flow(trace, step), state = picked.startsWith("states:") ? Number(picked.slice(7)) : null;
  const found = ranks.flat().find(one => one.id === picked);
  if (picked === "out") { box.replaceChildren(make("h3", {text: shown(s.chosen.token)}), ...written(trace, s, step)); return; }
  const name = state !== null ? "h" : found && found.name;
  if (!name || !trace.legend[name]) { box.replaceChildren(); return; }
  const legend = trace.legend[name], value = state !== null ? trace.encoder.h[state] : found.value;
  const parts = [make("h3", {text: meaning(legend.meaning)}), equationBox(equation(legend.symbol, phrase(legend.equation), step))];
  if (state !== null) parts.push(make("p", {class: "soft", text: `j = ${state + 1}: ${shown(trace.source.tokens[state])}`}));
  if (picked === "alpha" && s.tensors.e && !Array.isArray(s.tensors.e[0])) parts.push(table(["j", "", "e", "α"], s.tensors.e.map((e, j) => [String(j + 1), shown(trace.source.tokens[j]), number(e), number(row[j])])));
  else if (picked === "alpha") parts.push(numbersLine(row.map((w, j) => [shown(trace.source.tokens[j]), w])));
  if (picked === "alpha") parts.push(...besides(trace, s, step));
  if (picked === "copied") parts.push(numbersLine(value.map((w, j) => [shown(trace.source.tokens[j]), w])));
  if (picked === "c" && row) parts.push(equationBox(mixture(trace, step, row)));
  if (found && found.neck) parts.push(make("p", {text: say("neck")}));
  const flat = Array.isArray(value[0]) ? value.map((line, i) => `${i + 1}: ${line.map(number).join("  ")}`).join("\n") : value.map(number).join("  ");
  parts.push(make("p", {class: "soft", text: `${size(value)} · ${say("length")} ${number(norm(value.flat(3)))}`}), make("details", {}, make("summary", {text: say("raw")}), make("pre", {text: flat, tabindex: 0})));
  box.replaceChildren(...parts);
}

// How the next token's probability comes about, and the likeliest; of a model that copies also what each way gives them.
function written(trace, s, step) {
  const vocabulary = equation(s.tensors.p_gen === undefined ? "p(y_t)" : "P_vocab", `softmax(W_y ${top(s.tensors, "s_tilde") ? "s̃_t" : top(s.tensors, "maxout") ? "t_t" : "s_t"} + b_y)`, step);
  if (s.tensors.p_gen === undefined) return [equationBox(vocabulary), numbersLine(s.top.map(choice => [shown(choice.token), choice.probability]))];
  const rows = s.top.map(choice => [shown(choice.token), choice.probability.toFixed(3), choice.vocabulary.toFixed(3), choice.copied.toFixed(3)]);
  const {symbol, equation: right} = trace.legend.p;
  return [equationBox(vocabulary), equationBox(equation(symbol, phrase(right), step)), make("p", {text: `p_gen = ${number(s.tensors.p_gen)}`}), table(["", "P", "P_vocab", "copy"], rows)];
}

// Coverage and the window, where there are any: what the weights depend on besides the scores.
function besides(trace, s, step) {
  return ["coverage", "middle", "gaussian", "coverage_loss"].filter(name => name in s.tensors).flatMap(name => {
    const {symbol, meaning: words, equation: right} = trace.legend[name], value = s.tensors[name];
    const numbers = Array.isArray(value) ? numbersLine(value.map((w, j) => [shown(trace.source.tokens[j]), w])) : make("p", {text: number(value)});
    return [make("h4", {text: meaning(words)}), equationBox(equation(symbol, phrase(right), step)), numbers];
  });
}

const equationBox = math => make("div", {class: "equation", tabindex: 0}, math);
const size = value => { const out = []; for (let x = value; Array.isArray(x); x = x[0]) out.push(x.length); return out.join(" × "); };
const numbersLine = pairs => table(["", ""], pairs.map(([label, x]) => [label, x.toFixed(3)]));

// The context as the sum it is, with the largest weights in: c = 0.71 h_1 + 0.22 h_3 + …
function mixture(trace, step, row) {
  const largest = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 4).filter(([w]) => w >= 0.005);
  const right = largest.map(([w, j]) => `${w.toFixed(2)} h_${j + 1}`).join(" + ") + (row.length > largest.length ? " + …" : "");
  return equation(trace.legend[trace.model.decoder === "transformer" ? top(trace.steps[step - 1].tensors, "c") : "c"].symbol, right, step);
}

function table(head, rows) {
  return make("div", {class: "scroll", tabindex: 0}, make("table", {class: "values"}, make("thead", {}, make("tr", {}, ...head.map(text => make(text ? "th" : "td", {text, scope: text ? "col" : null})))), make("tbody", {}, ...rows.map(cells => make("tr", {}, ...cells.map(text => make("td", {text})))))));
}

export function flowWords(trace) {
  return say({classic: "noattention", bahdanau: "oldlooks", luong: "newlooks", transformer: "heads"}[trace.model.decoder]);
}
