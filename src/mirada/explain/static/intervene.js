// What can be changed in a system: its weights at a step, its heads, what it may write; before and after stand side by side.

import {make} from "./dom.js";
import {attention, heads, shown} from "./units.js";
import {say} from "./words.js";

// `act` is told a change for the service, and null to undo it; without a model all is greyed, and says why.
export function intervene(box, trace, view, act) {
  const off = !act, kind = trace.model.decoder, row = (attention(trace) || [])[view.step - 1];
  const button = (key, change, extra = "") => make("button", {type: "button", disabled: off, text: say(key) + extra, on: {click: () => act(change)}});
  const parts = [make("h2", {text: say("intervene")})];
  if (off) parts.push(make("p", {class: "soft", text: say("needsmodel")}));
  else if (view.edited) parts.push(make("p", {class: "row"}, make("span", {text: say("edited") + view.edited}), make("button", {type: "button", class: "main", text: say("reset"), on: {click: () => act(null)}})));
  if (row) {
    const from = {from_step: view.step};
    parts.push(make("p", {class: "row"}, make("span", {class: "soft", text: `${say("fromhere")} (${view.step}):`}), ...["uniform", "diagonal", "shuffled"].map(name => button(name, {attention: name, ...from}))));
    parts.push(make("details", {open: view.weightsOpen, on: {toggle: event => view.remember(event.target.open)}}, make("summary", {text: say("weights")}), sliders(trace, row, view.step, off ? null : act)));
  } else parts.push(make("p", {class: "soft", text: say("noattention")}));
  const all = heads(trace);
  if (all.length) {
    const select = make("select", {disabled: off, "aria-label": say("drop")}, ...all.map(value => make("option", {value, text: `${say("layer")} ${value.split(".")[0]} · ${say("headname")} ${value.split(".")[1]}`})));
    parts.push(make("p", {class: "row"}, select, make("button", {type: "button", disabled: off, text: say("drop"), on: {click: () => act({drop_head: select.value})}})));
  }
  if (kind === "luong" && trace.model.input_feeding) parts.push(make("p", {class: "row"}, button("feeding", {no_input_feeding: true})));
  box.replaceChildren(...parts);
}

// One slider a source token; what they say is scaled to a sum of one.
function sliders(trace, row, step, act) {
  const inputs = [], shares = [];
  const update = () => { const total = inputs.reduce((sum, input) => sum + Number(input.value), 0) || 1; shares.forEach((cell, j) => { cell.textContent = (Number(inputs[j].value) / total).toFixed(2); }); };
  const cells = trace.source.tokens.flatMap((token, j) => {
    const input = make("input", {type: "range", min: 0, max: 100, step: 1, value: Math.round(100 * row[j]), disabled: !act, id: `weight-${j}`, on: {input: update}});
    const share = make("output", {for: `weight-${j}`});
    inputs.push(input); shares.push(share);
    return [make("label", {for: `weight-${j}`, text: shown(token), dir: "auto"}), input, share];
  });
  update();
  const use = make("button", {type: "button", disabled: !act, text: say("apply"), on: {click: () => { const total = inputs.reduce((sum, input) => sum + Number(input.value), 0) || 1; act({weights: inputs.map(input => Number(input.value) / total), from_step: step}); }}});
  return make("div", {}, make("div", {class: "weights"}, ...cells), make("p", {class: "row"}, use));
}
