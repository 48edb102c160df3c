// Greedy choice and beam search for one sentence: the rules of runtime/beam.py, sampling.py and rules.py.

import {EOS} from "./tokens.js";

const penalty = (length, alpha) => ((5 + length) / 6) ** alpha;
const float = Math.fround;  // sums as NumPy's float32 has them

// Most tokens of an output, </s> not counted.
export function outputLimit(sourceTokens, options) {
  const bySource = Math.trunc((options.max_length_ratio ?? 2) * sourceTokens) + (options.max_length_offset ?? 10);
  return Math.max(1, options.max_output_length || bySource, options.min_output_length);
}

// A hypothesis is its last step: {token, logP, attention, before}; the first has none.
function path(step) {
  const steps = [];
  for (let one = step; one.before; one = one.before) steps.unshift(one);
  return steps;
}

// What an output is as it is read back.
function output(last, alpha) {
  const steps = path(last), finished = steps.length > 0 && steps[steps.length - 1].token === EOS;
  const total = steps.reduce((sum, step) => sum + step.logP, 0);
  return {
    ids: steps.map(step => step.token).filter((_, t) => !finished || t < steps.length - 1), logP: steps.map(step => step.logP), finished,
    score: total / penalty(steps.length, alpha), attention: steps.length && steps[0].attention ? steps.map(step => step.attention) : null,
  };
}

const ranked = outputs => outputs.sort((one, other) => other.finished - one.finished || other.score - one.score);

// The log-probabilities of a row with −∞ on what may not come next.
function allowed(row, history, age, options) {
  const choice = row.slice(), size = options.no_repeat_ngram_size;
  if (age < options.min_output_length) choice[EOS] = -Infinity;
  for (let first = 0; size && first + size <= history.length; first++) {
    const start = history.length - size + 1;
    if (history.slice(first, first + size - 1).every((token, i) => token === history[start + i])) choice[history[first + size - 1]] = -Infinity;
  }
  if (!choice.some(value => value > -Infinity)) choice[EOS] = row[EOS];
  return choice;
}

const acts = (age, options) => options.no_repeat_ngram_size > 0 || age < options.min_output_length;

// The `count` best continuations of each row: [[token, log-probability], …].
async function continuations(batch, rows, age, count, options) {
  const ruled = acts(age, options), step = await batch.step(rows.map(row => row.last.token), rows.map(row => row.row), ruled ? 0 : count);
  const best = rows.map((row, i) => {
    if (!ruled) return Array.from({length: step.each}, (_, j) => [step.tokens[i * step.each + j], step.best[i * step.each + j]]);
    const choice = allowed(step.logP.slice(i * batch.words, (i + 1) * batch.words), path(row.last).map(one => one.token), age, options);
    return [...choice.keys()].sort((a, b) => choice[b] - choice[a] || a - b).slice(0, count).map(token => [token, choice[token]]);
  });
  return {best, attention: i => step.attention ? step.attention.slice(i * batch.width, (i + 1) * batch.width) : null};
}

// `tell` is awaited after every step with the tokens so far of what is then best.
export async function greedy(batch, limit, options, tell) {
  let last = {token: batch.first}, row = 0;
  for (let age = 0; ; age++) {
    const {best, attention} = await continuations(batch, [{last, row}], age, 1, options), [[token, logP]] = best[0];
    if (token !== EOS && limit <= age) return [output(last, options.alpha)];
    last = {token, logP, attention: attention(0), before: last};
    if (token === EOS) return [output(last, options.alpha)];
    await tell(output(last, options.alpha));
    row = 0;
  }
}

export async function beam(batch, limit, options, tell) {
  const {beam_size: size, n_best: places, alpha, exact_stop: exact} = options;
  let rows = [{last: {token: batch.first}, row: 0, score: 0}], ends = [];
  for (let age = 0; ; age++) {
    const {best, attention} = await continuations(batch, rows, age, 2 * size, options);
    const candidates = rows.flatMap((row, i) => best[i].map(([token, logP]) => ({score: float(row.score + float(logP)), row: i, step: {token, logP, attention: attention(i), before: row.last}})))
      .filter(one => one.score > -Infinity).sort((one, other) => other.score - one.score).slice(0, 2 * size);
    const ended = candidates.slice(0, size).filter(one => one.step.token === EOS);
    const done = ended.map(one => ({score: float(one.score / float(penalty(age + 1, alpha))), step: one.step}));
    ends = [...ends, ...done].sort((one, other) => other.score - one.score).slice(0, places);
    const live = candidates.filter(one => one.step.token !== EOS).slice(0, size);
    const reachable = live.length ? float(live[0].score / float(penalty(exact ? limit + 1 : age + 2, alpha))) : -Infinity;
    if (limit < age + 1 || reachable <= (ends.length < places ? -Infinity : ends[places - 1].score)) {
      const cut = limit <= age ? rows.filter((_, i) => !ended.some(one => one.row === i)).map(row => ({step: row.last})) : [];
      return ranked([...ends, ...cut].slice(0, places).map(one => output(one.step, alpha)));
    }
    rows = live.map(one => ({last: one.step, row: one.row, score: one.score}));
    await tell(output(rows[0].last, alpha));
  }
}
