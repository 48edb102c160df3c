// Elements of the page in few words. No text ever becomes HTML.

export const $ = id => document.getElementById(id);

export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [kind, act] of Object.entries(value)) element.addEventListener(kind, act);
    else if (name === "style") for (const [key, part] of Object.entries(value)) element.style.setProperty(key, part);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const number = x => x === null || x === undefined ? "–" : Math.abs(x) >= 1e-3 || x === 0 ? x.toFixed(3) : x.toExponential(1);
export const dark = () => document.documentElement.dataset.theme === "dark";

// A cell's colour by a weight from 0 to 1, and a text colour with a contrast of at least 4.5 on it.
export function tint(element, weight) {
  element.style.background = `rgba(var(--heat), ${Math.max(0, Math.min(1, weight)).toFixed(3)})`;
  element.style.color = dark() ? (weight > 0.72 ? "#000" : "#fff") : (weight > 0.93 ? "#fff" : "#000");
}

export function untint(element) { element.style.background = ""; element.style.color = ""; }

export function download(name, blob) {
  const link = make("a", {href: URL.createObjectURL(blob), download: name});
  document.body.append(link); link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
