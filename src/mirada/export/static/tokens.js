// tokenizer.json as mirada writes it, read in plain JavaScript: the same tokens as in Python (data/tokenizer.py, data/parts.py).

const SPACE = "▁", BLOCK = "\ufdd0", PART = "\t", ITEM = "\x1e", SEP_TOKEN = "<sep>";
export const UNK = 0, BOS = 2, EOS = 3, SEP = 4;
const WHITE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const ENDS = new RegExp(`^[${WHITE}]+|[${WHITE}]+$`, "gu");
const STRIPPED = `[${WHITE}\\x1c-\\x1f]`, BLANK = new RegExp(`^${STRIPPED}*$`, "u"), MARGINS = new RegExp(`^${STRIPPED}+|${STRIPPED}+$`, "gu");  // what Python's strip takes away
const RESERVED = /^\\(?=\\*(?:<unk>|<pad>|<s>|<\/s>)$)/u;

// The library's patterns (Oniguruma) as JavaScript's, for which two other characters are blanks and ^ and $ mean the whole text.
const LINES = {"^": "(?<![^\\n])", "$": "(?![^\\n])"};
const pattern = source => new RegExp(source.replaceAll("[\\s\\S]", "[^]").replaceAll("\\S", `[^${WHITE}]`).replaceAll("\\s", `[${WHITE}]`).replace(/(?<!\[)[$^]/g, mark => LINES[mark]), "gu");
const refuse = what => { throw new Error(`tokeniser: ${what} is not known here`); };

// Normalisers: each a function from text to text.
function normaliser(made) {
  if (made.type === "Sequence") { const steps = made.normalizers.map(normaliser); return text => steps.reduce((now, step) => step(now), text); }
  if (made.type === "NFC" || made.type === "NFKC") return text => text.normalize(made.type);
  if (made.type === "Precompiled") return precompiled(Uint8Array.from(atob(made.precompiled_charsmap), letter => letter.charCodeAt(0)));
  if (made.type === "Strip" && made.strip_left && made.strip_right) return text => text.replace(ENDS, "");
  if (made.type !== "Replace") return refuse(`the normaliser ${made.type}`);
  const {String: plain, Regex: regex} = made.pattern, found = regex === undefined ? plain : pattern(regex);
  return text => text.replaceAll(found, () => made.content);
}

// SentencePiece's table: the size of a trie, the trie (Darts, a double array of 32-bit units), and replacements, each ended by a zero.
function precompiled(table) {
  const view = new DataView(table.buffer), size = view.getUint32(0, true), bytes = new TextEncoder(), text = new TextDecoder();
  const unit = place => view.getUint32(4 + 4 * place, true), below = (place, own) => place ^ (own >>> 10 << ((own & 512) >>> 6));
  // The replacement of the shortest beginning that has one, as in the library; null where none has.
  const replacement = letters => {
    let place = below(0, unit(0));
    for (const letter of bytes.encode(letters)) {
      const own = letter && unit(place ^= letter);
      if (!letter || (own & 0x800000ff) !== letter) return null;
      place = below(place, own);
      if (own & 256) { const start = 4 + size + (unit(place) & 0x7fffffff); return text.decode(table.subarray(start, table.indexOf(0, start))); }
    }
    return null;
  };
  const known = new Map(), graphemes = new Intl.Segmenter("en", {granularity: "grapheme"});
  const whole = letters => (bytes.encode(letters).length < 6 ? replacement(letters) : null) ?? Array.from(letters, letter => replacement(letter) ?? letter).join("");
  return line => Array.from(graphemes.segment(line), ({segment}) => {
    if (!known.has(segment)) known.set(segment, whole(segment));
    return known.get(segment);
  }).join("");
}

// Splitters: each a function from one piece of text to several.
function splitter(made) {
  if (made.type === "Sequence") { const steps = made.pretokenizers.map(splitter); return text => steps.reduce((now, step) => now.flatMap(step), [text]); }
  if (made.type === "WhitespaceSplit") return text => text.split(new RegExp(`[${WHITE}]+`, "u")).filter(Boolean);
  if (made.type === "Metaspace" && made.prepend_scheme === "always") {
    const divide = made.split === false ? text => text ? [text] : [] : text => cut(text, /▁/gu, true);
    return text => { const spaced = text.replaceAll(" ", SPACE); return divide(spaced && !spaced.startsWith(SPACE) ? SPACE + spaced : spaced); };
  }
  if (made.type !== "Split" || made.invert || made.pattern.Regex === undefined) return refuse(`the splitter ${made.type}`);
  const regex = pattern(made.pattern.Regex);
  return text => cut(text, regex, made.behavior === "MergedWithNext");
}

// A text cut around what matches; `merged` puts each match before what follows, unless that is a match itself.
function cut(text, regex, merged) {
  const parts = [];
  let start = 0;
  for (const match of text.matchAll(regex)) {
    if (match.index > start) parts.push([text.slice(start, match.index), false]);
    parts.push([match[0], true]);
    start = match.index + match[0].length;
  }
  if (start < text.length) parts.push([text.slice(start), false]);
  const found = [];
  parts.forEach(([part, matches], i) => {
    if (merged && !matches && i && parts[i - 1][1]) found[found.length - 1] += part;
    else found.push(part);
  });
  return found;
}

// Models: each a function from a piece of text to [id, surface] pairs.
function bpe(model) {
  const ids = model.vocab, ranks = new Map(model.merges.map((pair, rank) => [(Array.isArray(pair) ? pair : pair.split(" ")).join("\n"), rank]));
  return text => {
    const symbols = [...text], known = symbols.map(letter => Object.hasOwn(ids, letter));
    for (;;) {
      let best = Infinity, place = -1;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const rank = known[i] && known[i + 1] ? ranks.get(symbols[i] + "\n" + symbols[i + 1]) : undefined;
        if (rank < best) { best = rank; place = i; }
      }
      if (place < 0) break;
      symbols.splice(place, 2, symbols[place] + symbols[place + 1]);
      known.splice(place, 1);
    }
    return symbols.map((symbol, i) => [known[i] ? ids[symbol] : UNK, symbol]);
  };
}

// The likeliest way to cut a text (Kudo 2018); unknown characters side by side are one token.
function unigram(model) {
  const ids = new Map(), unknown = model.vocab.reduce((least, [, score]) => Math.min(least, score), Infinity) - 10;
  for (const [piece] of model.vocab) for (let size = 1; size < piece.length; size++) ids.set(piece.slice(0, size), null);  // that which may become one
  model.vocab.forEach(([piece], id) => ids.set(piece, id));
  return text => {
    const ends = Array(text.length + 1).fill(null);
    ends[0] = {score: 0};
    const reach = (end, score, id, start) => { if (!ends[end] || score > ends[end].score) ends[end] = {score, id, start}; };
    for (let start = 0; start < text.length;) {
      const letter = String.fromCodePoint(text.codePointAt(start)).length, here = ends[start].score;
      let alone = false;
      for (let size = 1; start + size <= text.length; size++) {
        const id = ids.get(text.slice(start, start + size));
        if (id === undefined) break;
        if (id === null) continue;
        reach(start + size, model.vocab[id][1] + here, id, start);
        alone ||= size === letter;
      }
      if (!alone) reach(start + letter, unknown + here, UNK, start);
      start += letter;
    }
    const found = [];
    for (let end = text.length; end > 0; end = ends[end].start) {
      const {id, start} = ends[end], piece = text.slice(start, end);
      if (id === UNK && found.length && found[0][0] === UNK) found[0][1] = piece + found[0][1];
      else found.unshift([id, piece]);
    }
    return found;
  };
}

const wordLevel = model => text => [[Object.hasOwn(model.vocab, text) ? model.vocab[text] : UNK, text]];
const MODELS = {BPE: bpe, Unigram: unigram, WordLevel: wordLevel};

// An unknown token as it stands in the text: without the blank and the backslash that reading put before it.
const bare = surface => surface.replace(/^▁+(?=.)/u, "").replace(MARGINS, "").replace(RESERVED, "") || surface;

export class Tokenizer {
  // `content`: the JSON of one tokeniser; `kind`: bpe, unigram, word, char or features.
  constructor(content, kind) {
    this.kind = kind;
    this.normalise = normaliser(content.normalizer);
    this.split = splitter(content.pre_tokenizer);
    this.cut = (MODELS[content.model.type] || refuse(content.model.type))(content.model);
    const entries = content.model.type === "Unigram" ? content.model.vocab.map(([piece], id) => [piece, id]) : Object.entries(content.model.vocab);
    this.ids = new Map(entries);
    this.tokens = [];
    for (const [piece, id] of entries) this.tokens[id] = piece;
  }

  get length() { return this.tokens.length; }
  token(id) { return this.tokens[id]; }
  find(text) { const id = this.ids.get(text); return id > EOS ? id : null; }

  // [{id, text, word}] of a text: the tokens, and the word that each belongs to.
  pieces(text) {
    const found = this.split(this.normalise(text.replace(/\p{Cs}/gu, "\ufffd"))).flatMap(this.cut).map(([id, surface]) => [id > EOS ? id : UNK, surface]);
    const shown = found.map(([id, surface]) => id === UNK ? surface : this.tokens[id]), words = this.words(shown);
    return found.map(([id], i) => ({id, text: id === UNK ? bare(shown[i]) : shown[i], word: words[i]}));
  }

  words(tokens) {
    if (this.kind !== "bpe" && this.kind !== "unigram") return tokens.map((_, i) => i);
    let count = -1;
    return tokens.map((token, i) => count += i === 0 || token.startsWith(SPACE) ? 1 : 0);
  }

  join(tokens) {
    if (this.kind === "word" || this.kind === "features") return tokens.map(token => token.replace(RESERVED, "")).join(this.kind === "word" ? " " : "").replace(MARGINS, "");
    return tokens.join("").replaceAll(SPACE, " ").replaceAll(BLOCK, SPACE).replace(MARGINS, "");
  }
}

// Sources of several parts: texts joined by tabs, <sep> between them in ids, a vocabulary a kind, one behind the other.
export class Parts {
  constructor(content) {
    this.kinds = content.parts;
    this.inner = new Map(this.kinds.map(kind => [kind, new Tokenizer(content.tokenizers[kind], kind)]));
    this.offsets = new Map();
    let offset = 1;
    for (const [kind, own] of this.inner) { this.offsets.set(kind, offset); offset += own.length - SEP; }
  }

  pieces(text) {
    if (BLANK.test(text)) return [];
    const row = [];
    text.split(PART).forEach((part, number) => part.split(ITEM).forEach((content, item) => {
      const kind = this.kinds[Math.min(number, this.kinds.length - 1)], before = row.length ? row[row.length - 1].word + 1 : 0;
      const later = number + item > 0, word = before + (later ? 1 : 0);
      if (later) row.push({id: SEP, text: SEP_TOKEN, word: before});
      for (const piece of this.inner.get(kind).pieces(content)) row.push({id: piece.id > EOS ? piece.id + this.offsets.get(kind) : piece.id, text: piece.text, word: piece.word + word});
    }));
    return row;
  }
}

export const tokenizer = (content, kind) => kind.includes(",") ? new Parts(content) : new Tokenizer(content, kind);

// The ids that the tokens of a source, and its </s>, would write (data/copying.py).
export function copyIds(source, target) {
  const first = new Map();
  return [...source.map(({text}, place) => {
    const entry = target.find(text);
    if (entry !== null) return entry;
    if (!first.has(text)) first.set(text, target.length + place);
    return first.get(text);
  }), EOS];
}

// At most `most` of some tokens: the first, the last, or both ends (data/fitting.py).
export function truncate(tokens, most, how) {
  if (tokens.length <= most) return tokens;
  const head = {first: most, last: 0, both: most - Math.floor(most / 2)}[how];
  return [...tokens.slice(0, head), ...tokens.slice(tokens.length - (most - head))];
}
