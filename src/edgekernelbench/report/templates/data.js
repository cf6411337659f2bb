"use strict";

/* Data that came with the page, and elements made of it. Records may be a stranger's: whatever they
   say becomes text, never markup. */

async function unpacked(id) {
  const packed = document.getElementById(id).textContent.trim();
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).json();
}

let detailsPromise = null;
function attemptDetails() {
  detailsPromise ??= unpacked("details");
  return detailsPromise;
}

/* A text, or one that is kept as numbers of its paragraphs. */
function textOf(details, value) {
  if (value && Array.isArray(value.$)) return value.$.map((n) => details.texts[n] ?? "").join("\n\n");
  return value === undefined || value === null ? "" : String(value);
}

/* el("p", {class: "small", onclick: f}, "text", otherElement) */
function el(name, attributes, ...children) {
  const made = document.createElement(name);
  fill(made, attributes, children);
  return made;
}

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(made, attributes, children);
  return made;
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
}

const plain = (name) => String(name).replaceAll("_", " ").replace(/ ir$/, " IR");

function significant(value, digits = 3) {
  const rounded = Number(value).toPrecision(digits);
  return Math.abs(value) >= 10 ** digits ? Math.round(value).toLocaleString("en-US") : String(Number(rounded));
}

function shortTime(us) {
  if (us === null || us === undefined) return "–";
  for (const [unit, scale] of [["ns", 1e-3], ["µs", 1], ["ms", 1e3]]) {
    if (us < 999.5 * scale) return `${significant(us / scale)} ${unit}`;
  }
  return `${significant(us / 1e6)} s`;
}

function times(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 99.5) return `${value.toFixed(0)}x`;
  return value >= 0.1 ? `${value.toFixed(2)}x` : `${significant(value, 2)}x`;
}

function bytesText(value) {
  for (const [prefix, scale] of [["", 1], ["k", 1e3], ["M", 1e6]]) {
    if (value < 999.5 * scale) return `${significant(value / scale)} ${prefix}B`;
  }
  return `${significant(value / 1e9)} GB`;
}

/* By the unit that ends a stored name. */
function amount(name, value) {
  if (typeof value !== "number") return plain(value);
  if (name.endsWith("_bytes")) return bytesText(value);
  if (name.endsWith("_us")) return shortTime(value);
  if (name.endsWith("_seconds") || name === "seconds") return shortTime(value * 1e6);
  return significant(value, 4);
}

/* Name and value in two columns; what is not known is left out. */
function facts(pairs) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("dt", {}, name), el("dd", {}, value));
  }
  return list;
}
