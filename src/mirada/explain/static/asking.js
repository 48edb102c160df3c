// Where traces come from: the service, or this very page where it was saved with the traces in it.

import {$} from "./dom.js";
import {edits} from "./units.js";

const saved = $("traces") ? JSON.parse($("traces").textContent) : null;
export const offline = saved !== null;

// Traces of one system and sentence, before or after an intervention, belong together.
export function groups() {
  const found = [];
  for (const trace of saved || []) {
    const key = JSON.stringify([trace.model, trace.source.text, edits(trace), trace.rank === 1 ? found.length : -1]);
    const last = found[found.length - 1];
    if (last && trace.rank > 1) last.traces.push(trace);
    else found.push({key, name: `${systemName(trace.model)}${edits(trace) ? " ✎" : ""}`, text: trace.source.text, traces: [trace]});
  }
  const texts = new Set(found.map(group => group.text));
  found.forEach((group, i) => { group.title = texts.size > 1 ? `${i + 1}. ${group.name}: ${group.text}` : `${i + 1}. ${group.name}`; });
  return found;
}

export const systemName = model => [model.decoder, model.decoder === "transformer" ? "" : model.score, model.decoder === "transformer" ? "" : (model.rnn_type || "").toUpperCase()].filter(Boolean).join(" · ");

function headers() {
  const token = $("token").value || sessionStorage.getItem("token") || "";
  if (token) sessionStorage.setItem("token", token);
  return {"Content-Type": "application/json", ...(token ? {Authorization: `Bearer ${token}`} : {})};
}

async function post(path, body, method = "POST") {
  const answer = await fetch(path, {method, headers: headers(), body: body ? JSON.stringify(body) : undefined});
  if (answer.status === 401) $("tokenbox").hidden = false;
  if (!answer.ok) throw new Error(((await answer.json().catch(() => null)) || {}).error || `${answer.status}`);
  return answer;
}

export const models = async () => (await (await post("/v1/models", null, "GET")).json()).models;
export const explain = async body => (await (await post("/v1/explain", body)).json()).traces;
export const page = async body => (await post("/v1/explain/page", body)).blob();

// The steps of a sentence as they are made: `tell` hears {source, tokens, rows} after each.
export async function watch(body, tell) {
  const answer = await post("/v1/translate/stream", {...body, steps: true});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const made = {source: null, tokens: [], rows: []};
  for (let text = "", more = true; more;) {
    const {value, done} = await reader.read();
    text += value || ""; more = !done;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [kind, data] = text.slice(0, end).split("\n").map(line => line.slice(line.indexOf(":") + 2)), values = JSON.parse(data);
      text = text.slice(end + 2);
      if (kind === "source") made.source = values;
      if (kind === "error") throw new Error(values.error);
      if (kind === "step") { made.tokens.push(values.token); if (values.attention) made.rows.push(values.attention); tell(made); }
    }
  }
}
