// Scripts import in one direction: panels, then draw, then data; and what is markup is static.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../../vit/page/web/", import.meta.url));
const SCRIPTS = readdirSync(WEB, { recursive: true })
  .map((name) => name.replaceAll("\\", "/"))
  .filter((name) => name.endsWith(".js") && !name.includes("node_modules"));
const TEXTS = new Map(SCRIPTS.map((name) => [name, readFileSync(join(WEB, name), "utf8")]));

/** What a script imports when it is loaded; types do not count. */
const imports = new Map(
  [...TEXTS].map(([name, text]) => [
    name,
    [...text.matchAll(/^import [^;]*? from "(\.[^"]+)";/gms)].map(([, from]) =>
      normalize(join(dirname(name), from)).replaceAll("\\", "/"),
    ),
  ]),
);
const room = (name) => (name.includes("/") ? name.split("/")[0] : "");

// Beside their own room; "" are the scripts at the top.
const MAY = { data: [], draw: ["data"], panels: ["draw", "data", ""], modes: ["panels", "draw", "data", ""] };
const BELOW_PANELS = ["ask.js", "dom.js", "loading.js", "modes.js", "store.js", "view.js"];

test("every import is there", () => {
  for (const [name, all] of imports) for (const other of all) assert.ok(TEXTS.has(other), `${name} imports ${other}`);
});

test("imports point from panels to draw to data", () => {
  for (const [name, all] of imports)
    for (const other of all.filter(() => room(name))) {
      assert.ok([room(name), ...MAY[room(name)]].includes(room(other)), `${name} imports ${other}`);
      if (!room(other)) assert.ok(BELOW_PANELS.includes(other), `${name} imports ${other}`);
    }
});

test("a panel knows no other panel", () => {
  for (const [name, all] of imports)
    if (room(name) === "panels")
      for (const other of all) assert.notEqual(room(other), "panels", `${name} imports ${other}`);
});

test("there are no cycles", () => {
  const done = new Set();
  const visit = (name, path) => {
    assert.ok(!path.includes(name), `${[...path, name].join(" → ")}`);
    if (done.has(name)) return;
    for (const other of imports.get(name)) visit(other, [...path, name]);
    done.add(name);
  };
  for (const name of SCRIPTS) visit(name, []);
});

test("markup and style are static, and built in one way", () => {
  for (const [name, text] of TEXTS) {
    for (const [, , content] of text.matchAll(/(markup: |style: |MARKUP = |STYLE = )`([^`]*)`/g))
      assert.ok(!content.includes("${"), name);
    if (text.includes("createContextualFragment"))
      assert.match(text, /createContextualFragment\((markup|MARKUP)\)/, name);
  }
});

test("no script keeps what changes outside the store, but for its timers and last results", () => {
  for (const [name, text] of TEXTS) assert.ok(!/^let /m.test(text), name);
});
