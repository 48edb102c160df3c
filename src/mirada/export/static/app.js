// The page: a sentence is typed, and written word by word by the model, here.

import {$, make} from "./dom.js";
import {map} from "./map.js";
import {say} from "./say.js";
import {writing} from "./sentence.js";
import {currentLanguage, setLanguage} from "./words.js";

const PAUSE = 90;  // milliseconds a written word is shown, at least
const address = new URLSearchParams(location.hash.slice(1));
const stored = key => { try { return localStorage.getItem(key); } catch { return null; } };
const store = (key, value) => { try { localStorage.setItem(key, value); } catch { /* a private window */ } };
const pause = time => new Promise(done => setTimeout(done, time));
const state = {model: null, about: null, found: null, step: 1, turn: 0, notice: "loading", told: ""};

const notice = (key, told = "") => { Object.assign(state, {notice: key, told}); $("notice").textContent = key ? say(key) + told : ""; };
const fields = () => [...$("fields").querySelectorAll("input")];
const texts = () => fields().map(field => field.value.replace(/\t/g, " "));

function speak() {
  document.documentElement.lang = currentLanguage();
  document.querySelectorAll("[data-say]").forEach(element => { element.textContent = say(element.dataset.say); });
  $("fields").querySelectorAll("label").forEach((label, i, all) => { label.textContent = all.length > 1 ? `${say("part")} ${i + 1}` : say("sentence"); });
  $("language").textContent = say("other");
  $("language").lang = currentLanguage() === "en" ? "es" : "en";
  notice(state.notice, state.told);
  show();
}

function remember() {
  const kept = new URLSearchParams({lang: currentLanguage(), beam: $("beam").value});
  texts().forEach(text => kept.append("text", text));
  history.replaceState(null, "", "#" + kept);
}

// What has been found, at the step that is looked at.
function show() {
  if (!state.found) return;
  const {source, output, done} = state.found, rows = output.attention, step = Math.max(1, Math.min(state.step, output.tokens.length));
  const go = chosen => { state.step = chosen; show(); };
  $("says").textContent = writing($("writing"), {source, output, rows, steps: null, step, joined: true}, go);
  $("text").textContent = output.text;
  $("score").textContent = done ? `${say("score")} ${output.score.toFixed(3)}${output.finished ? "" : " · " + say("unfinished")}` : "";
  $("maphead").hidden = !done || !rows;
  if (!done) $("map").replaceChildren();
  else if (rows) map($("map"), {source, output, attention: rows}, {step, joined: true, head: "mean"}, go);
  else $("map").replaceChildren(...(state.about.attention ? [] : [make("p", {class: "soft", text: say("noattention")})]));
}

async function write() {
  const turn = ++state.turn, text = texts().join("\t");
  if (!text.trim()) { notice("empty"); return; }
  remember();
  notice("wait");
  try {
    const {source, outputs: [output]} = await state.model.translate(text, {beam_size: Number($("beam").value)}, async made => {
      if (turn !== state.turn) throw new Stopped();
      Object.assign(state, {found: {...made, done: false}, step: made.output.tokens.length});
      show();
      await pause(PAUSE);
    });
    if (turn !== state.turn) return;
    Object.assign(state, {found: {source, output, done: true}, step: output.tokens.length});
    notice("");
    show();
  } catch (error) { if (!(error instanceof Stopped)) notice("broken", error.message); }
}

class Stopped extends Error {}

async function file(name) {
  const answer = await fetch(name).catch(error => { throw new Error(`${name} (${error.message})`); });
  if (!answer.ok) throw new Error(`${name} (${answer.status})`);
  return new Uint8Array(await answer.arrayBuffer());
}

function build(about) {
  state.about = about;
  $("about").textContent = about.system;
  const given = address.getAll("text");
  $("fields").replaceChildren(...Array.from({length: about.parts}, (_, i) => make("div", {class: "field"}, make("label", {for: `text${i}`}), make("input", {id: `text${i}`, autocomplete: "off", spellcheck: "false", maxlength: 2000, dir: "auto", value: given[i] || ""}))));
  const chosen = Number(address.get("beam")) || about.search.beam_size, sizes = [...new Set([1, 3, 5, 8, about.search.beam_size, chosen])].filter(size => size >= 1 && size <= 64).sort((a, b) => a - b);
  $("beam").replaceChildren(...sizes.map(size => make("option", {value: size, text: String(size), selected: size === chosen})));
}

async function start() {
  const wanted = address.get("lang") || stored("language") || (navigator.language || "en").slice(0, 2);
  setLanguage(wanted === "es" ? "es" : "en");
  document.documentElement.dataset.theme = stored("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  speak();
  if (location.protocol === "file:") { notice("file"); return; }
  try {
    build(JSON.parse(new TextDecoder().decode(await file("about.json"))));
    speak();
  } catch (error) { notice("missing", error.message); return; }
  try {
    const ort = await import("./runtime/ort.wasm.min.mjs"), {open} = await import("./engine.js");
    ort.env.logLevel = "error";
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = new URL("./runtime/", location.href).href;
    state.model = await open(ort, state.about, name => file(`model/${name}`));
  } catch (error) { notice("broken", error.message); return; }
  $("go").disabled = false;
  notice("ready");
  if (texts().some(text => text.trim())) write();
}

$("ask").addEventListener("submit", event => { event.preventDefault(); if (state.model) write(); });
$("language").addEventListener("click", () => { setLanguage(currentLanguage() === "en" ? "es" : "en"); store("language", currentLanguage()); speak(); });
$("theme").addEventListener("click", () => { const now = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; document.documentElement.dataset.theme = now; store("theme", now); show(); });
addEventListener("resize", show);
start();
