// What is shown, as files: the page itself with its numbers, the map as a drawing, the numbers alone.

import {download, make} from "./dom.js";
import {page} from "./asking.js";
import {picture} from "./map.js";
import {say} from "./words.js";

// `body` is what the service was asked; null where this page is already that file.
export function share(box, trace, traces, view, body, fail) {
  const name = trace.source.text.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40) || "mirada", has = trace.attention !== null;
  const button = (key, act, disabled, title) => make("button", {type: "button", text: say(key), disabled, title, on: {click: () => Promise.resolve(act()).catch(fail)}});
  const drawn = () => new XMLSerializer().serializeToString(picture(trace, view.joined, view.head));
  box.replaceChildren(make("h2", {text: say("share")}), make("p", {class: "row"},
    button("html", async () => download(`${name}.html`, await page(body)), body === null, body === null ? say("here") : null),
    button("svg", () => download(`${name}.svg`, new Blob([drawn()], {type: "image/svg+xml"})), !has, has ? null : say("noattention")),
    button("png", async () => download(`${name}.png`, await asPng(drawn())), !has, has ? null : say("noattention")),
    button("json", () => download(`${name}.json`, new Blob([JSON.stringify({format: "mirada-trace", traces})], {type: "application/json"})))));
}

function asPng(svg) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", {width: 2 * image.width, height: 2 * image.height}), context = canvas.getContext("2d");
      context.scale(2, 2); context.drawImage(image, 0, 0);
      canvas.toBlob(blob => blob ? resolve(blob) : reject(new Error("png")), "image/png");
    };
    image.onerror = () => reject(new Error("png"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  });
}
