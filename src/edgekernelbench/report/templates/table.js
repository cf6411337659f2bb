/* The table of tasks: filters, sorting, a row a task. */

const OUTCOMES = {
  fast: "correct and fast",
  unsure: "correct, undecided",
  slow: "correct, surely slower",
  no_baseline: "correct, no baseline",
  failed: "no correct kernel",
  outside: "no verdict",
};
const SHOWN_AT_FIRST = 100;

class TaskTable {
  constructor(entries) {
    this.entries = entries;
    this.entry = 0;
    this.order = { key: null, down: false };
    this.all = false;
    this.controls = Object.fromEntries(
      ["text", "level", "family", "outcome", "target"].map((name) => [name, document.getElementById(`filter-${name}`)]),
    );
    for (const control of Object.values(this.controls)) control.addEventListener("input", () => this.changed());
    document.getElementById("filter-clear").addEventListener("click", () => this.clear());
    document.getElementById("more").addEventListener("click", () => { this.all = true; this.draw(); });
    document.getElementById("filters").hidden = false;
  }

  show(entry) {
    this.entry = entry;
    const tasks = this.entries[entry].tasks;
    const values = (key) => [...new Set(tasks.map((task) => task[key]))].sort((a, b) => (a > b ? 1 : -1));
    this.offer("level", values("level"));
    this.offer("family", values("family"));
    this.offer("target", values("target"));
    const outcomes = Object.keys(OUTCOMES).filter((name) => tasks.some((task) => task.outcome === name));
    const statuses = values("status").filter((name) => name !== "correct");
    this.offer("outcome", [...outcomes, ...statuses], (name) => OUTCOMES[name] || plain(name));
    this.several = values("target").length > 1;
    document.getElementById("filter-target-label").hidden = !this.several;
    this.draw();
  }

  offer(name, values, words = String) {
    const control = this.controls[name];
    const before = control.value;
    control.replaceChildren(el("option", { value: "" }, "all"), ...values.map((v) => el("option", { value: v }, words(v))));
    control.value = values.map(String).includes(before) ? before : "";
  }

  clear() {
    for (const control of Object.values(this.controls)) control.value = "";
    this.changed();
  }

  changed() {
    this.all = false;
    this.draw();
  }

  admits(task) {
    const { text, level, family, outcome, target } = this.controls;
    const told = `${task.workload} ${task.pattern} ${task.family} ${task.domain} ${task.dtype} ${task.status}`.toLowerCase();
    return text.value.toLowerCase().split(/\s+/).every((word) => told.includes(word))
      && (!level.value || String(task.level) === level.value)
      && (!family.value || task.family === family.value)
      && (!target.value || task.target === target.value)
      && (!outcome.value || task.outcome === outcome.value || (task.outcome !== "fast" && task.status === outcome.value));
  }

  chosen() {
    const rows = this.entries[this.entry].tasks.map((task, place) => ({ task, place })).filter(({ task }) => this.admits(task));
    const { key, down } = this.order;
    if (key === null) return rows;
    const missing = (value) => value === null || value === undefined;
    return rows.sort((a, b) => {
      const [x, y] = [a.task[key], b.task[key]];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return (x > y ? 1 : x < y ? -1 : 0) * (down ? -1 : 1);
    });
  }

  draw() {
    const rows = this.chosen();
    const total = this.entries[this.entry].tasks.length;
    const shown = this.all ? rows : rows.slice(0, SHOWN_AT_FIRST);
    document.getElementById("tasks-count").textContent = `${rows.length} of ${total} tasks`
      + (shown.length < rows.length ? `, the first ${shown.length} shown` : "");
    document.getElementById("more").hidden = shown.length === rows.length;
    document.getElementById("task-table").replaceChildren(this.header(), el("tbody", {}, shown.map((row) => this.row(row))));
  }

  header() {
    const columns = [
      ["workload", "workload"], ["family", "family", "wide"], ["level", "level", "n wide"], ["dtype", "dtype", "wide"],
      ...(this.several ? [["target", "target"]] : []),
      ["outcome", "outcome"], ["us", "time", "n"], ["speedup", "over best", "n"], ["rival", "best", "wide"],
    ];
    const cells = columns.map(([key, words, css]) => {
      const sorted = this.order.key === key ? (this.order.down ? "descending" : "ascending") : null;
      return el("th", { scope: "col", class: css, "aria-sort": sorted }, el("button", { type: "button", "data-key": key, onclick: () => this.sort(key) }, words));
    });
    return el("thead", {}, el("tr", {}, cells));
  }

  sort(key) {
    this.order = { key, down: this.order.key === key && !this.order.down };
    this.draw();
    document.querySelector(`#task-table [data-key="${key}"]`).focus();
  }

  row({ task, place }) {
    const told = task.outcome === "failed" || task.outcome === "outside" ? plain(task.status) : OUTCOMES[task.outcome];
    const several = task.attempts > 1 ? el("span", { class: "iv" }, `${task.correct}/${task.attempts} attempts correct`) : null;
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `#task-${this.entry}-${place}` }, task.workload)),
      el("td", { class: "wide" }, task.family), el("td", { class: "n wide" }, String(task.level)), el("td", { class: "wide" }, task.dtype),
      this.several ? el("td", {}, task.target) : null,
      el("td", {}, el("span", { class: `outcome ${task.outcome}` }), told, several),
      el("td", { class: "n" }, shortTime(task.us)), el("td", { class: "n" }, times(task.speedup)), el("td", { class: "wide" }, task.rival || "–"));
  }
}
