// The trace's equations as MathML, with the step's number for t.

const WORDS = new Set(["tanh", "exp", "softmax", "maxout", "max", "LN", "GRU", "LSTM", "RNN", "PE", "cell"]);
const TOKEN = /\s+|√|Σ|[∘·+−\-=/,;:()[\]]|[→←]?(?:\p{L}\p{M}*)+[′']*|\d+(?:\.\d+)?|[⁰¹²³⁴⁵⁶⁷⁸⁹⁽⁾]+|ᵀ|_(?:\{[^}]*\}|[\p{L}\p{N},]+)|./gu;
const PLAIN = {"⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9", "⁽": "(", "⁾": ")"};
const SPACE = "http://www.w3.org/1998/Math/MathML";

function node(tag, ...children) { const element = document.createElementNS(SPACE, tag); element.append(...children); return element; }

// What stands at a symbol: t becomes the step's number, {t−1} the one before.
export function index(text, step) {
  const inner = text.replace(/^_/, "").replace(/^\{|\}$/g, "");
  if (inner === "t−1") return String(step - 1);
  if (inner === "t") return String(step);
  const pair = /^t([jkm])$/.exec(inner);
  return pair ? `${step},${pair[1]}` : inner;
}

function letter(token) {
  if (token.startsWith("→") || token.startsWith("←")) return node("mover", letter(token.slice(1)), node("mo", token[0]));
  if (token.normalize("NFD").includes("\u0303")) return node("mover", node("mi", token.normalize("NFD").replace(/\u0303/g, "")), node("mo", "~"));
  const element = node("mi", token);
  if (token.length > 1) element.setAttribute("mathvariant", "normal");
  return element;
}

function row(text, step) {
  const out = [];
  for (const token of text.match(TOKEN) || []) {
    const last = out[out.length - 1];
    if (/^\s+$/.test(token)) continue;
    if (token.startsWith("_") && last) {
      const below = node("mtext", index(token, step));
      out[out.length - 1] = last.localName === "msup" ? node("msubsup", last.children[0], below, last.children[1]) : node("msub", last, below);
    } else if ((token === "ᵀ" || /^[⁰¹²³⁴⁵⁶⁷⁸⁹⁽⁾]+$/.test(token)) && last) {
      const above = node("mtext", [...token].map(c => c === "ᵀ" ? "T" : PLAIN[c]).join(""));
      out[out.length - 1] = last.localName === "msub" ? node("msubsup", last.children[0], last.children[1], above) : node("msup", last, above);
    } else if (/^\d/.test(token)) out.push(node("mn", token));
    else if (/^[→←]?\p{L}/u.test(token)) {
      if (!WORDS.has(token) && /^(?:\p{Ll}{2,}|\p{L}{3,})['′]*$/u.test(token.normalize("NFC"))) out.push(node("mtext", `\u00a0${token}\u00a0`));
      else out.push(letter(token));
    } else out.push(node("mo", token));
  }
  for (let i = 0; i < out.length - 1; i++) if (out[i].textContent === "√") out.splice(i, 2, node("msqrt", out[i + 1]));
  return out;
}

// One fraction where the whole is one; else in a row.
function side(text, step) {
  const parts = text.split(" / ");
  const simple = parts.length === 2 && !/[,;]|mean|\(\S* \//.test(parts[0]);
  return simple ? [node("mfrac", node("mrow", ...row(parts[0], step)), node("mrow", ...row(parts[1], step)))] : row(text, step);
}

export function equation(symbol, right, step) {
  const line = row(symbol, step);
  if (right && right !== symbol) line.push(node("mo", "="), ...side(right, step));
  return node("math", node("mrow", ...line));
}

export const plainSymbol = (symbol, step) => symbol.replace(/_(\{[^}]*\}|[\p{L}\p{N},]+)/gu, part => subscript(index(part, step)));
const SUB = {0: "₀", 1: "₁", 2: "₂", 3: "₃", 4: "₄", 5: "₅", 6: "₆", 7: "₇", 8: "₈", 9: "₉", j: "ⱼ", k: "ₖ", t: "ₜ", a: "ₐ", s: "ₛ", o: "ₒ", m: "ₘ", S: "S", ",": ",", "−": "₋"};
const subscript = text => [...text].map(c => SUB[c] ?? c).join("");
