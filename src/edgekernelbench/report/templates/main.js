/* Runs as tabs; the address says what is shown: #task-RUN-ROW is a task, anything else a section. */

async function main() {
  const data = await unpacked("data");
  const table = new TaskTable(data.entries);
  const page = new TaskPage(data.entries);
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const title = document.title;

  function choose(number, focus) {
    data.entries.forEach((_, other) => { document.getElementById(`run-${other}`).hidden = other !== number; });
    tabs.forEach((tab, other) => {
      tab.setAttribute("aria-selected", String(other === number));
      tab.tabIndex = other === number ? 0 : -1;
    });
    if (focus) tabs[number].focus();
    table.show(number);
  }

  tabs.forEach((tab, number) => {
    tab.addEventListener("click", () => choose(number, false));
    tab.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (move) choose((number + move + tabs.length) % tabs.length, true);
    });
  });

  let left = 0;
  async function follow() {
    const [overview, task] = ["overview", "task"].map((id) => document.getElementById(id));
    const found = /^#task-(\d+)-(\d+)$/.exec(location.hash);
    if (found && (await page.show(Number(found[1]), Number(found[2])))) {
      if (!overview.hidden) left = scrollY;
      [overview.hidden, task.hidden] = [true, false];
      document.body.classList.add("task-open");
      scrollTo({ top: 0, behavior: "instant" });
      task.focus({ preventScroll: true });
      return;
    }
    const wasTask = overview.hidden;
    [overview.hidden, task.hidden] = [false, true];
    document.body.classList.remove("task-open");
    document.title = title;
    const run = /^#(?:r|run-)(\d+)/.exec(location.hash);
    if (run && Number(run[1]) < data.entries.length) choose(Number(run[1]), false);
    if (wasTask && location.hash === "#tasks" && left) scrollTo({ top: left, behavior: "instant" });
    else if (location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  choose(0, false);
  addEventListener("hashchange", follow);
  await follow();
  document.documentElement.dataset.ready = "yes";
}

main();
