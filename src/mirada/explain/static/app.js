// The page: what is asked, what is shown at which step, and what stands in the address.

import {$, make} from "./dom.js";
import {currentLanguage, phrase, say, setLanguage} from "./words.js";
import {attention, edits, heads, shown} from "./units.js";
import {explain, groups, models, offline, systemName, watch} from "./asking.js";
import {writing} from "./sentence.js";
import {drawing, explanation, flowWords} from "./drawing.js";
import {candidates, headChoice, map, outputs, tree} from "./map.js";
import {intervene} from "./intervene.js";
import {share} from "./share.js";

const EXAMPLES = ["How are you?", "Where is the small bird?", "The old doctor buys a red book.", "The old doctor buys a red book because this small girl sings in the garden and a black cat sleeps."];
const address = new URLSearchParams(location.hash.slice(1));
const stored = key => { try { return localStorage.getItem(key); } catch { return null; } };
const store = (key, value) => { try { localStorage.setItem(key, value); } catch { /* a private window */ } };
const state = {
  text: address.get("text") || "", model: address.get("model"), beside: address.get("beside"), beam: address.get("beam") || "3",
  step: Number(address.get("step")) || 1, joined: true, head: "mean", picked: null, change: null, timer: null, weightsOpen: false, asked: 0,
};
let columns = [];  // {title, traces, pick, body, boxes}
const known = groups();

const trace = column => column.traces[Math.min(column.pick, column.traces.length - 1)];
const steps = () => Math.max(1, ...columns.map(column => trace(column).steps.length));

function remember() {
  const values = {text: state.text, model: state.model, beside: state.beside, beam: state.beam, step: state.step, lang: currentLanguage()};
  const kept = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  history.replaceState(null, "", "#" + kept);
}

function speak() {
  document.documentElement.lang = currentLanguage();
  document.querySelectorAll("[data-say]").forEach(element => { element.textContent = say(element.dataset.say); });
  document.querySelectorAll("[data-label]").forEach(element => element.setAttribute("aria-label", say(element.dataset.label)));
  $("language").textContent = say("other");
  $("language").lang = currentLanguage() === "en" ? "es" : "en";
  const none = $("beside").querySelector('option[value=""]');
  if (none) none.textContent = say("none");
}

// Columns: built once for what is asked, filled at every step.
function build(made) {
  columns = made.map((column, i) => ({pick: 0, ...column, id: i}));
  $("columns").className = columns.length > 1 ? "two" : "";
  $("columns").replaceChildren(...columns.map(column => {
    column.boxes = Object.fromEntries(["title", "about", "writing", "says", "drawing", "explanation", "map", "candidates", "tree", "outputs", "flow"].map(name => [name, make(name === "title" ? "h2" : name === "says" || name === "about" || name === "flow" ? "p" : "div", {class: {writing: "writing", drawing: "drawing", says: "soft", about: "soft", flow: "soft"}[name]})]));
    const b = column.boxes;
    b.outputs.dataset.name = `outputs-${column.id}`;
    const head = key => make("h3", {"data-say": key, text: say(key)});
    b.more = make("section", {}, head("tree"), b.tree);
    return make("article", {class: "column"}, make("div", {class: "wide"}, b.title, b.flow, b.about), make("section", {class: "wide"}, b.writing, b.says), make("section", {}, head("drawing"), b.drawing), make("section", {}, b.explanation, head("candidates"), b.candidates, head("best"), b.outputs, b.more), make("section", {class: "wide"}, head("attention"), b.map));
  }));
}

function show() {
  speak();
  if (!columns.length) return;
  const most = steps();
  state.step = Math.max(1, Math.min(state.step, most));
  $("step").max = most; $("step").value = state.step;
  $("steplabel").textContent = `${say("step")} ${state.step} ${say("of")} ${most}`;
  $("step").setAttribute("aria-valuetext", $("steplabel").textContent);
  $("play").textContent = say(state.timer ? "pause" : "play");
  columns.forEach(fill);
  const first = trace(columns[0]);
  document.title = `${first.source.text} → ${first.output.text} · mirada`;
  const view = {step: state.step, joined: state.joined, head: state.head, edited: state.change ? columns[columns.length - 1].title : "", weightsOpen: state.weightsOpen, remember: open => { state.weightsOpen = open; }};
  intervene($("intervene"), first, {...view, step: Math.min(state.step, first.steps.length)}, offline ? null : change);
  share($("share"), first, columns.flatMap(column => column.traces), view, offline ? null : columns[columns.length - 1].body, fail);
  remember();
}

function fill(column) {
  const b = column.boxes, one = trace(column), step = Math.min(state.step, one.steps.length), rows = attention(one, heads(one).includes(state.head) ? state.head : "mean");
  const picked = state.picked || (one.attention ? "alpha" : "neck");
  b.title.textContent = column.title || systemName(one.model);
  b.flow.textContent = flowWords(one);
  b.about.textContent = `${phrase(one.method)} · ${say("score")} ${one.output.score.toFixed(3)}${one.output.finished ? "" : " · " + say("unfinished")}`;
  b.says.textContent = writing(b.writing, {source: one.source, output: one.output, rows, steps: one.steps, step, joined: state.joined}, go);
  drawing(b.drawing, one, step, picked, id => { state.picked = id; show(); });
  explanation(b.explanation, one, step, picked);
  candidates(b.candidates, one.steps[step - 1], offline || column.after ? null : choice => steer(one, step, choice));
  map(b.map, one, {step, joined: state.joined, head: heads(one).includes(state.head) ? state.head : "mean"}, go);
  const choice = headChoice(one, state.head, value => { state.head = value; show(); });
  if (choice) b.map.prepend(choice);
  outputs(b.outputs, column.traces, column.pick, i => { column.pick = i; show(); });
  b.more.hidden = column.traces.length < 2;
  tree(b.tree, column.traces);
}

function go(step) { state.step = step; show(); }

function play() {
  if (state.timer) { clearInterval(state.timer); state.timer = null; show(); return; }
  if (state.step >= steps()) state.step = 0;
  const on = () => { if (state.step >= steps()) { clearInterval(state.timer); state.timer = null; show(); } else go(state.step + 1); };
  state.timer = setInterval(on, Number($("speed").value));
  on();
}

// Asking

const fail = error => { $("notice").textContent = say("busy") + error.message; };
const body = model => ({text: state.text, model, beam_size: Number(state.beam), n_best: Number(state.beam)});

async function ask(fresh) {
  const turn = ++state.asked;
  clearInterval(state.timer); state.timer = null;
  if (!state.text.trim()) { $("notice").textContent = say("empty"); return; }
  $("notice").textContent = say("wait");
  try {
    const names = state.change ? [state.model] : [state.model, state.beside].filter(Boolean);
    if (fresh && !state.change) await Promise.all(names.map((name, i) => live(name, i, names.length, turn)));
    const asked = names.map(name => ({...body(name), ...(state.change || {})}));
    const found = await Promise.all(asked.map(explain));
    if (turn !== state.asked) return;
    build(state.change ? sides(asked[0], found[0], await before(asked[0])) : names.map((name, i) => ({title: title(name), traces: found[i], body: asked[i]})));
    if (fresh) state.step = 1;
    $("notice").textContent = state.change ? say(trace(columns[0]).output.text === trace(columns[1]).output.text ? "same" : "differs") : "";
    show();
    if (fresh && !state.change) play();
  } catch (error) { if (turn === state.asked) fail(error); }
}

// While the service writes: the sentence alone, each step as it comes.
async function live(name, place, count, turn) {
  if (place === 0) { columns = []; $("columns").className = count > 1 ? "two" : ""; $("columns").replaceChildren(...Array.from({length: count}, () => make("article", {class: "column"}, make("h2"), make("div", {class: "writing"})))); }
  await Promise.resolve();
  const column = $("columns").children[place], box = column.querySelector(".writing");
  column.querySelector("h2").textContent = title(name);
  await watch({text: state.text, model: name, beam_size: Number(state.beam)}, made => {
    if (turn === state.asked) writing(box, {source: made.source, output: {tokens: made.tokens}, rows: made.rows.length ? made.rows : null, step: made.tokens.length, joined: false}, () => {});
  });
}

const title = name => { const found = state.models.find(model => model.name === name); return found ? titled(found) : name; };
const titled = model => systemName(model.system).startsWith(model.name) ? systemName(model.system) : `${model.name} (${systemName(model.system)})`;

// With an edit the service gives both; what was forced is laid beside what is written freely.
async function before(asked) {
  if (!asked.force_ids) return null;
  const {force_ids: _, ...rest} = asked;
  return explain(rest);
}

function sides(asked, found, free) {
  const [first, second] = free ? [free, found] : [found.filter(one => !edits(one)), found.filter(one => edits(one))];
  const free_body = Object.fromEntries(Object.entries(asked).filter(([key]) => !(key in state.change)));
  return [{title: `${title(state.model)}: ${say("before")}`, traces: first, body: free_body}, {title: `${say("after")}: ${describe(state.change)}`, traces: second, body: asked, after: true}];
}

function describe(change) {
  if (change.force_ids) return `${say("force")} “${shown(state.forced)}”`;
  if (change.weights) return `${say("weights")} (${say("step")} ${change.from_step})`;
  if (change.attention) return `${say(change.attention)} (${say("step")} ${change.from_step} …)`;
  return change.drop_head ? `${say("drop")} ${change.drop_head}` : say("feeding");
}

function change(made) { state.change = made; ask(false); }

// Force a candidate, or forbid what was chosen: then the next best is written here.
function steer(one, step, choice) {
  const before = one.steps.slice(0, step - 1).map(moment => moment.chosen.id);
  const next = choice.chosen ? one.steps[step - 1].top.find(other => !other.chosen && other.token !== "</s>") : choice;
  if (!next || next.token === "</s>") return;
  state.forced = next.token;
  change({force_ids: [...before, next.id]});
}

// Saved pages: the groups of traces that are in them

function choose() {
  const found = [state.model, state.beside].map(key => known.find(group => group.key === key)).filter(Boolean);
  build(found.map(group => ({title: group.title, traces: group.traces, body: null})));
  state.text = found.length ? found[0].text : "";
  $("text").value = state.text;
  show();
}

function fillSelect(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", {value, text, selected: value === chosen})));
  select.value = chosen ?? "";
}

async function start() {
  const wanted = address.get("lang") || stored("language") || (navigator.language || "en").slice(0, 2);
  setLanguage(wanted === "es" ? "es" : "en");
  document.documentElement.dataset.theme = stored("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  speak();
  if (offline) {
    const pairs = known.map(group => [group.key, group.title]);
    if (!known.some(group => group.key === state.model)) state.model = pairs.length ? pairs[0][0] : null;
    if (!known.some(group => group.key === state.beside)) state.beside = pairs.length > 1 ? pairs[1][0] : "";
    fillSelect($("model"), pairs, state.model);
    fillSelect($("beside"), [["", say("none")], ...pairs], state.beside);
    for (const id of ["text", "beam", "go"]) $(id).disabled = true;
    $("docs").hidden = true;
    choose();
    return;
  }
  $("text").value = state.text;
  $("beam").value = state.beam;
  try {
    state.models = await models();
    const pairs = state.models.map(model => [model.name, titled(model)]);
    if (!state.models.some(model => model.name === state.model)) state.model = pairs[0][0];
    fillSelect($("model"), pairs, state.model);
    fillSelect($("beside"), [["", say("none")], ...pairs], state.beside);
    const english = state.models.some(model => ["en", "und"].includes(model.source));
    $("examples").replaceChildren(...(english ? EXAMPLES : []).map(text => make("button", {type: "button", text, lang: "en", on: {click: () => { $("text").value = text; submit(); }}})));
  } catch (error) { fail(error); return; }
  if (state.text) await ask(false);
}

function submit() {
  Object.assign(state, {text: $("text").value, model: $("model").value, beside: $("beside").value, beam: $("beam").value, change: null});
  if (offline) choose(); else if (state.models) ask(true); else start();
}

$("ask").addEventListener("submit", event => { event.preventDefault(); submit(); });
for (const id of ["model", "beside"]) $(id).addEventListener("change", () => { if (offline || state.text) submit(); });
$("step").addEventListener("input", event => go(Number(event.target.value)));
$("play").addEventListener("click", play);
$("first").addEventListener("click", () => go(1));
$("back").addEventListener("click", () => go(state.step - 1));
$("next").addEventListener("click", () => go(state.step + 1));
$("speed").addEventListener("change", () => { if (state.timer) { play(); play(); } });
$("join").addEventListener("change", event => { state.joined = event.target.checked; show(); });
$("language").addEventListener("click", () => { setLanguage(currentLanguage() === "en" ? "es" : "en"); store("language", currentLanguage()); show(); });
$("theme").addEventListener("click", () => { const now = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; document.documentElement.dataset.theme = now; store("theme", now); show(); });
document.addEventListener("keydown", event => {
  if (["SELECT", "INPUT"].includes(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "ArrowRight") go(state.step + 1);
  if (event.key === "ArrowLeft") go(state.step - 1);
});
addEventListener("resize", () => { if (columns.length) show(); });
start();
