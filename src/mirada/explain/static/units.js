// From the tokens of a model to what is shown: as they are, or joined into words with their punctuation apart.

export const UNKNOWN = 0;  // the id of <unk>
export const shown = token => token === "▁" ? "␣" : token.replace(/^▁/, "").replace(/▁/g, " ");
const mark = token => /^[\p{P}\p{S}]+$/u.test(token.replace(/▁/g, ""));

// [{label, pieces: token numbers, unseen}] of one side {tokens, words, ids}.
export function units(side, joined) {
  const found = [];
  side.tokens.forEach((token, i) => {
    const word = side.words ? side.words[i] : null, last = found[found.length - 1];
    const same = joined && word !== null && word !== undefined && last && last.word === word;
    if (same && !last.special && mark(token) === last.mark) { last.label += shown(token); last.pieces.push(i); }
    else found.push({label: shown(token), pieces: [i], word, mark: mark(token), special: token === "</s>", unseen: false});
    if (side.ids && side.ids[i] === UNKNOWN) found[found.length - 1].unseen = true;
  });
  return found;
}

// Weights [tokens out][tokens in] of units: summed over the pieces read, averaged over the pieces written.
export function joinedWeights(rows, columns, lines) {
  return lines.map(line => columns.map(column => {
    const sum = line.pieces.reduce((total, i) => total + column.pieces.reduce((part, j) => part + (rows[i] ? rows[i][j] : 0), 0), 0);
    return Math.min(1, sum / line.pieces.length);
  }));
}

export const given = step => step.given ?? step.forced ?? false;
export const edits = trace => (trace.asked ? trace.asked.edits : trace.edits) || null;

// The attention of a trace: the mean the system itself shows, or one layer's head ("2.1"); null without attention.
export function attention(trace, head) {
  if (!trace.attention) return null;
  if (!head || head === "mean") return trace.attention;
  const [layer, place] = head.split(".").map(Number);
  return trace.steps.map(step => step.tensors[`alpha.${layer}`][place - 1]);
}

export function heads(trace) {
  const first = trace.steps[0];
  if (!first) return [];
  return Object.keys(first.tensors).filter(name => /^alpha\.\d+$/.test(name))
    .flatMap(name => first.tensors[name].map((_, h) => `${name.slice(6)}.${h + 1}`));
}
