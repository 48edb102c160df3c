// The three graphs at work (runtime/engine.py), and text in, text out (runtime/translator.py), over ONNX Runtime for the Web.

import {beam, greedy, outputLimit} from "./search.js";
import {BOS, EOS, UNK, copyIds, tokenizer, truncate} from "./tokens.js";

const GRAPHS = ["encode", "start", "step"], COPIES = "copies", WIDEST = 64;

// `ort`: the library; `about`: what about.json says; `read` gives a file of the model as bytes.
export async function open(ort, about, read) {
  const [contents, source, target] = await Promise.all([Promise.all(GRAPHS.map(name => read(`${name}.onnx`))), ...["source", "target"].map(async side => tokenizer(JSON.parse(new TextDecoder().decode(await read(`${side}.json`))), about.tokenizers[side]))]);
  const sessions = {};
  for (const [i, name] of GRAPHS.entries()) sessions[name] = await ort.InferenceSession.create(contents[i], {executionProviders: ["wasm"], logSeverityLevel: 3});
  return new Model(ort, about, sessions, source, target);
}

class Model {
  constructor(ort, about, sessions, source, target) { Object.assign(this, {ort, about, sessions, source, target}); }

  whole(values, ...shape) { return new this.ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape); }

  // Encode a source (ids with </s>) and start the decoder.
  async read(ids, copies) {
    const {memory, final, state} = this.about, wanted = [...new Set([...memory, ...final])].filter(name => name !== COPIES);
    const known = await this.sessions.encode.run({source: this.whole(ids, 1, ids.length), lengths: this.whole([ids.length], 1)}, wanted);
    const started = await this.sessions.start.run(Object.fromEntries(final.map(name => [name, known[name]])), state);
    if (memory.includes(COPIES)) known[COPIES] = this.whole(copies, 1, copies.length);
    return new Batch(this, Object.fromEntries(memory.map(name => [name, known[name]])), started, ids.length);
  }

  pieces(text) {
    const {most, how} = this.about.input;
    return truncate(this.source.pieces(truncate([...text], WIDEST * most, how).join("")), most, how);
  }

  // The outputs of a text, best first; `tell` is awaited after every step with what is then best.
  async translate(text, changes = {}, tell = () => {}) {
    const options = {...this.about.search, n_best: 1, ...changes}, source = this.pieces(text);
    const side = {tokens: [...source.map(piece => piece.text), "</s>"], words: source.map(piece => piece.word), ids: source.map(piece => piece.id)};
    if (!source.length) return {source: side, outputs: [{ids: [], logP: [0], finished: true, score: 0, attention: null, tokens: ["</s>"], words: [], text: ""}]};
    const batch = await this.read([...source.map(piece => piece.id), EOS], copyIds(source, this.target));
    const find = options.beam_size === 1 ? greedy : beam, shown = found => this.written(found, source, options);
    const outputs = await find(batch, outputLimit(source.length, options), options, found => tell({source: side, output: shown(found)}));
    return {source: side, outputs: outputs.map(shown)};
  }

  // An output as text: an id that no entry has is the word that stands there in the source.
  written(found, source, options) {
    const bare = found.ids.map((id, t) => {
      if (id >= this.target.length) return source[id - this.target.length].text;
      return id === UNK && options.replace_unk && found.attention ? source[largest(found.attention[t].slice(0, source.length))].text : this.target.token(id);
    });
    return {...found, tokens: found.finished ? [...bare, "</s>"] : bare, words: this.target.words(bare), text: this.target.join(bare)};
  }
}

const largest = values => values.reduce((best, value, i) => value > values[best] ? i : best, 0);

class Batch {
  constructor(model, memory, state, width) {
    Object.assign(this, {model, memory, state, width, first: BOS, words: model.target.length + (COPIES in memory ? width : 0)});
  }

  // One step of rows, each going on from one of the step before: `count` continuations of each, or (0) all log-probabilities.
  async step(tokens, rows, count) {
    const {model} = this, n = Math.max(1, Math.min(count, this.words)), names = model.about.state;
    const feeds = {token: model.whole(tokens, tokens.length), rows: model.whole(rows, rows.length), count: model.whole([n], 1), ...this.state, ...this.memory};
    const wanted = [...(count ? ["best", "best_tokens"] : ["log_probabilities"]), ...(model.about.attention ? ["attention"] : [])];
    const found = await model.sessions.step.run(feeds, [...wanted, ...names.map(name => `new.${name}`)]);
    this.state = Object.fromEntries(names.map(name => [name, found[`new.${name}`]]));
    return {best: found.best?.data, tokens: found.best_tokens ? Array.from(found.best_tokens.data, Number) : null, each: n, logP: found.log_probabilities?.data, attention: found.attention?.data};
  }
}
