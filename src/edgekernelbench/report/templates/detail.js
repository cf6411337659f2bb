/* A task's page: its attempts, and of each the verdict, figures, texts and steps. */

class TaskPage {
  constructor(entries) {
    this.entries = entries;
    this.place = document.getElementById("task");
  }

  async show(entry, row, attempt) {
    const task = this.entries[entry]?.tasks[row];
    if (!task) return false;
    const details = await attemptDetails();
    const chosen = attempt ?? task.shown;
    const records = task.places.map((place) => details.entries[entry][place]);
    const record = records[chosen];
    this.details = details;
    const shown = [
      el("a", { class: "back", href: "#tasks" }, "← All tasks"),
      el("p", { class: "kicker" }, this.entries[entry].name),
      el("h1", {}, task.workload),
      el("p", { class: "small" }, `${task.pattern} · level ${task.level} · ${task.family} · ${task.domain} · ${task.dtype} · ${task.target}`),
      records.length > 1 ? this.attempts(records, chosen, (next) => this.show(entry, row, next)) : null,
      ...this.attempt(record),
    ];
    this.place.replaceChildren(...shown.filter(Boolean));
    document.title = `${task.workload} · EdgeKernelBench`;
    return true;
  }

  attempts(records, chosen, choose) {
    const buttons = records.map((record, number) =>
      el("li", {}, el("button", { type: "button", class: "button", "aria-pressed": String(number === chosen), onclick: () => choose(number) }, `${record.epoch}: ${plain(record.status)}`)));
    return el("div", {}, el("h2", {}, `${records.length} attempts`), el("ul", { class: "attempts" }, buttons));
  }

  attempt(record) {
    const evaluation = record.evaluation || {};
    return [
      this.verdict(record, evaluation),
      this.times(evaluation),
      this.findings(evaluation),
      el("section", {}, el("h2", {}, "Kernel"), record.kernel ? this.text(record.kernel) : el("p", {}, "None was handed in.")),
      this.generated(evaluation),
      trajectory(record, (value) => textOf(this.details, value)),
      this.bill(evaluation),
      this.conditions(record, evaluation),
    ].filter(Boolean);
  }

  text(value) {
    return el("pre", { tabindex: "0" }, textOf(this.details, value));
  }

  verdict(record, evaluation) {
    const message = textOf(this.details, evaluation.message || record.message);
    const outcome = record.status !== "correct" ? "failed" : speedOutcome(evaluation);
    const words = record.status === "correct" ? OUTCOMES[outcome] : plain(record.status);
    const judged = evaluation.correctness;
    return el("section", {}, el("h2", {}, el("span", { class: `outcome ${outcome}` }), words),
      message ? el("p", {}, message) : null,
      record.isolated === false ? el("p", { class: "notice" }, "The agent was not isolated.") : null,
      judged ? facts([
        ["tolerance", `${judged.tolerance}, version ${judged.tolerance_version}`],
        ["checked", `${judged.checked_samples} samples of ${judged.checked_sets} input sets`],
        ["matched", judged.matched_ratio === undefined ? null : `${(100 * judged.matched_ratio).toFixed(3)} % of elements`],
        ["worst error", judged.worst_error === undefined ? null : `${significant(judged.worst_error)} of the tolerance`],
      ]) : null);
  }

  times(evaluation) {
    const own = evaluation.performance || evaluation.quarantined;
    if (!own) return null;
    const rows = Object.entries(evaluation.baselines || {}).map(([name, one]) => el("tr", {},
      el("th", { scope: "row" }, name, name === evaluation.best ? el("span", { class: "small" }, " best") : null),
      el("td", { class: "n" }, shortTime(one.median_us), range(one, "")),
      el("td", { class: "n" }, times(one.speedup), one.speedup === undefined ? null : el("span", { class: "iv" }, `${times(one.speedup_low)}–${times(one.speedup_high)}`)),
      el("td", { class: "words" }, one.status === "measured" ? this.how(one) : `${plain(one.status)}: ${textOf(this.details, one.message)}`)));
    return el("section", {}, el("h2", {}, evaluation.quarantined ? "Times, in quarantine" : "Times"),
      el("div", { class: "scroll" }, el("table", { class: "stack" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, ""), el("th", { scope: "col", class: "n" }, "median"), el("th", { scope: "col", class: "n" }, "speed-up over it"), el("th", { scope: "col" }, "how"))),
        el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, "this kernel"), el("td", { class: "n" }, shortTime(own.median_us), range(own, "")), el("td", {}), el("td", {}, `${own.threads} threads, ${own.cache_state} caches`)), rows))),
      strips(own, evaluation.baselines || {}),
      facts([
        ["timer", own.timer],
        ["rounds", `${own.rounds}, ${own.calls_per_sample} calls a sample`],
        ["a call alone", `${shortTime(own.launch_overhead_us)}${own.overhead_dominated ? ", more than a quarter of the time" : ""}`],
        ["interval", own.interval_reached ? "as narrow as asked" : "wider than asked"],
        ["noise", noiseText(own.noise)],
        ["roofline", textOf(this.details, own.roofline)],
      ]));
  }

  /* By which route a baseline was made, and what is noted of it: often the reason why it is ahead. */
  how(baseline) {
    return [baseline.route, ...(baseline.notes || [])].map((value) => textOf(this.details, value)).filter(Boolean).join("; ");
  }

  findings(evaluation) {
    const found = evaluation.diagnostics || [];
    if (!found.length) return null;
    return el("section", {}, el("h2", {}, "Diagnostics"), found.map((one) => el("div", { class: `finding ${one.severity || ""}` },
      el("p", {}, el("code", {}, textOf(this.details, one.code)), " ", textOf(this.details, one.message), one.line ? el("span", { class: "small" }, ` line ${one.line}`) : null),
      el("p", { class: "small" }, textOf(this.details, one.rule)),
      one.rendered ? this.text(one.rendered) : null,
      (one.help || []).length && !one.rendered ? el("ul", {}, one.help.map((help) => el("li", {}, textOf(this.details, help)))) : null)));
  }

  generated(evaluation) {
    const built = evaluation.resources?.facts;
    if (!built?.nest && !built?.kernels?.length) return null;
    const kernels = built.kernels || [];
    return el("section", {}, el("h2", {}, "What it became"),
      built.nest ? el("details", { open: true }, el("summary", {}, "Loop nest"), this.text(built.nest)) : null,
      kernels.length ? el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, ["kernel", "registers", "shared", "spilled"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, kernels.map((one) => el("tr", {}, el("th", { scope: "row" }, textOf(this.details, one.name)), el("td", {}, String(one.registers ?? "–")), el("td", {}, bytesText(one.shared_bytes)), el("td", {}, one.spilled_bytes === undefined ? "–" : bytesText(one.spilled_bytes))))))) : null);
  }

  bill(evaluation) {
    const bill = evaluation.resources;
    if (!bill) return null;
    const known = Object.entries({ ...bill, ...(bill.facts || {}) }).filter(([, value]) => typeof value === "number");
    const budget = (bill.budget || []).map((line) => `${textOf(this.details, line.what)}: ${line.needed.toLocaleString("en-US")} of ${line.allowed.toLocaleString("en-US")} ${line.unit}`);
    return el("section", {}, el("h2", {}, "The bill"), facts(known.map(([name, value]) => [plain(name.replace(/_(bytes|us|seconds)$/, "")), amount(name, value)])),
      budget.length ? el("p", { class: "small" }, budget.join("; ")) : null);
  }

  conditions(record, evaluation) {
    const place = evaluation.environment || {};
    const pairs = [
      ["attempt", record.id], ["run", record.run], ["agent", [record.agent, record.model].filter(Boolean).join(" · ")],
      ["options", Object.keys(record.agent_options || {}).length ? JSON.stringify(record.agent_options) : ""],
      ["began", record.started], ["took", amount("seconds", record.seconds)],
      ["spent", spentText(record.spent)], ["budget", spentText(record.limits)],
      ["processor", place.cpu], ["system", place.system], ["network", place.network], ["load", place.load_average],
      ["seeds of the inputs", evaluation.seed?.input_seeds?.join(", ")],
      ["kernel", record.kernel_hash],
      ["versions", Object.entries(record.versions || {}).map(([name, version]) => `${name} ${version}`).join(", ")],
    ];
    return el("details", {}, el("summary", {}, "Conditions, seeds and versions"), facts(pairs.map(([name, value]) => [name, value === undefined ? "" : textOf(this.details, value)])));
  }
}

function speedOutcome(evaluation) {
  const best = (evaluation.baselines || {})[evaluation.best];
  if (!best) return "no_baseline";
  return best.speedup_low >= 1 ? "fast" : best.speedup_high < 1 ? "slow" : "unsure";
}

function noiseText(noise) {
  if (!noise?.causes?.length) return null;
  return `${noise.causes.join("; ")}; intervals ${noise.widening.toFixed(2)} times wider`;
}

function range(figures) {
  return figures.low_us === undefined ? null : el("span", { class: "iv" }, `${shortTime(figures.low_us)}–${shortTime(figures.high_us)}`);
}

function spentText(spent) {
  return Object.entries(spent || {}).map(([name, value]) => (name === "seconds" ? amount(name, value) : `${value.toLocaleString("en-US")} ${name}`)).join(", ");
}

/* Every raw sample in the order measured, a strip for the kernel and for each baseline. */
function strips(own, baselines) {
  const rows = [["this kernel", own], ...Object.entries(baselines)].filter(([, one]) => one.samples_us?.length);
  if (!rows.length) return null;
  const all = rows.flatMap(([, one]) => one.samples_us);
  const [low, high] = [Math.log(Math.min(...all) * 0.97), Math.log(Math.max(...all) * 1.03)];
  const [left, width, step] = [110, 590, 40];
  const x = (us) => left + ((Math.log(us) - low) / (high - low)) * width;
  const height = rows.length * step + 26;
  const picture = svg("svg", { class: "strip", viewBox: `0 0 720 ${height}`, role: "img", "aria-label": "Raw samples: " + rows.map(([name, one]) => `${name} ${one.samples_us.length}, median ${shortTime(one.median_us)}`).join("; ") });
  rows.forEach(([name, one], row) => {
    const y = row * step + step / 2;
    picture.append(svg("text", { class: "name", x: left - 10, y: y + 4, "text-anchor": "end" }, name), svg("line", { class: "grid", x1: left, x2: left + width, y1: y, y2: y }));
    one.samples_us.forEach((us, number) => picture.append(svg("circle", { class: row ? "" : "own", cx: x(us).toFixed(1), cy: (y - 12 + (24 * (number + 0.5)) / one.samples_us.length).toFixed(1), r: 3 })));
    picture.append(svg("line", { class: "median", x1: x(one.median_us), x2: x(one.median_us), y1: y - 15, y2: y + 15 }));
  });
  picture.append(svg("text", { x: left, y: height - 6 }, shortTime(Math.exp(low))), svg("text", { x: left + width, y: height - 6, "text-anchor": "end" }, shortTime(Math.exp(high))));
  return el("figure", {}, picture, el("figcaption", {}, "Raw samples on a logarithmic scale, first ones on top of each strip; the bar is the median."));
}
