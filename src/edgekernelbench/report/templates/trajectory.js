/* An attempt step by step, coloured by the layer that each step works on. */

const LAYERS = ["compute", "schedule", "memory"];

function trajectory(record, text) {
  const steps = record.trajectory || [];
  if (!steps.length) return null;
  let best = Infinity;
  const items = steps.map((step) => {
    const gained = step.action === "evaluate" && step.median_us !== undefined && step.median_us < best;
    if (gained) best = step.median_us;
    return stepItem(step, gained, text);
  });
  const layers = LAYERS.filter((layer) => steps.some((step) => step.layer === layer));
  return el("section", { id: "trajectory" }, el("h2", {}, "Trajectory"),
    el("p", { class: "small" }, `${steps.length} steps in ${amount("seconds", record.spent?.seconds ?? steps.at(-1).seconds)}`),
    layers.length ? el("ul", { class: "keys layer-keys" }, layers.map((layer) => el("li", { class: layer }, layer))) : null,
    progress(steps),
    el("ol", { class: "timeline" }, items));
}

function stepItem(step, gained, text) {
  const told = [];
  if (step.status && step.status !== "correct") told.push(plain(step.status));
  if (step.tokens) told.push(`${step.tokens.toLocaleString("en-US")} tokens`);
  const effect = step.median_us !== undefined && step.before_us ? step.before_us / step.median_us : null;
  const figures = step.median_us === undefined ? null : el("span", { class: gained ? "gain best" : "gain" }, shortTime(step.median_us));
  return el("li", { class: step.layer || "" },
    el("span", { class: "at" }, `${significant(step.seconds)} s`),
    el("span", { class: "what" }, plain(step.action), step.layer ? el("span", { class: "layer" }, step.layer) : null),
    el("div", { class: "told" },
      el("p", {}, figures, effect === null ? null : ` ${times(effect)} of the best before`, figures && (told.length || step.reason) ? ". " : null, told.join(", "), told.length && step.reason ? ": " : null, text(step.reason)),
      folded("Change", text(step.patch), true), folded("Candidate", text(step.kernel)), folded("Prompt", text(step.prompt)), folded("Answer", text(step.answer))));
}

function folded(words, content, changes) {
  if (!content) return null;
  const lines = content.split("\n");
  const shown = changes ? lines.map((line) => el("span", { class: /^\+/.test(line) ? "add" : /^-/.test(line) ? "cut" : null }, `${line}\n`)) : content;
  return el("details", { class: "wrap" }, el("summary", {}, words, el("span", { class: "small" }, `${lines.length} lines`)), el("pre", { tabindex: "0" }, shown));
}

/* Measured times over the steps that measured any, with the best so far as a line. */
function progress(steps) {
  const measured = steps.filter((step) => step.action === "evaluate" && step.median_us !== undefined);
  if (measured.length < 2) return null;
  const logs = measured.map((step) => Math.log(step.median_us));
  const [low, high] = [Math.min(...logs) - 0.05, Math.max(...logs) + 0.05];
  const [left, right, top, bottom] = [80, 700, 14, 150];
  const x = (number) => left + ((right - left) * (number + 0.5)) / measured.length;
  const y = (log) => bottom - ((log - low) / (high - low)) * (bottom - top);
  const picture = svg("svg", { class: "strip", viewBox: "0 0 720 186", role: "img", "aria-label": `Times of ${measured.length} evaluations, from ${shortTime(measured[0].median_us)} to the best, ${shortTime(Math.exp(Math.min(...logs)))}` });
  for (const log of [Math.min(...logs), Math.max(...logs)]) {
    picture.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(log), y2: y(log) }), svg("text", { x: left - 8, y: y(log) + 4, "text-anchor": "end" }, shortTime(Math.exp(log))));
  }
  let best = Infinity;
  let path = "";
  measured.forEach((_, number) => {
    const before = best;
    best = Math.min(best, logs[number]);
    path += number ? `L${x(number)} ${y(before)}L${x(number)} ${y(best)}` : `M${x(0)} ${y(best)}`;
  });
  picture.append(svg("path", { d: `${path}L${right} ${y(best)}`, class: "median", fill: "none" }));
  measured.forEach((step, number) => picture.append(svg("circle", { class: step.layer || "", cx: x(number), cy: y(logs[number]), r: 5, style: "opacity:1" })));
  picture.append(svg("text", { x: (left + right) / 2, y: 180, "text-anchor": "middle" }, "evaluations with a correct kernel, in order; the line is the best so far"));
  return el("figure", {}, picture);
}
