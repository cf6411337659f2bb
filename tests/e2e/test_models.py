"""`ekb run` with a model from the outside: a provider that fails, a run that is killed, batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from edgekernelbench.suite import load_suite
from tests.llm.server import Server, serving

EKB = [sys.executable, "-m", "edgekernelbench.cli"]
RIGHT, REPAIRED, WRONG, SILENT, DEAD = TASKS = (
    "embedding_bag_sum__01",
    "gelu_erf__02",
    "relu__01",
    "cholesky_batched__02",
    "rope_half_split__01",
)
FAULTS = {REPAIRED: ["429", "500"], RIGHT: ["drop"]}
EPOCHS = 3


def answer(task: str) -> str:
    if task == SILENT:
        return "I would rather not."
    kernel = load_suite().workloads[task].canonical()
    if task == WRONG:
        kernel = kernel.replace("max(x[i], 0)", "x[i]")
    return f"Here it is.\n```ekir\n{kernel}\n```"


def fault(task: str, number: int) -> str:
    """Faults that pass for two tasks, and one task that the provider never answers."""
    return "500" if task == DEAD else (FAULTS.get(task, [])[number:] or [""])[0]


def command(out: Path, server: Server, *more: str) -> list[str]:
    named = [part for task in TASKS for part in ("--workload", task)]
    model = ["--model", "openai-api/loopback/scripted", "--model-base-url", server.url]
    patience = ["--model-retries", "2", "--model-timeout", "60"]
    run = ["run", "--agent", "direct", "--epochs", str(EPOCHS), "--out", str(out)]
    return [*EKB, *run, *model, *patience, *named, *more]


def environment() -> dict[str, str]:
    return {**os.environ, "LOOPBACK_API_KEY": "none"}


def records(out: Path) -> list[dict[str, Any]]:
    path = out / "records.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def ekb(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EKB, *arguments], capture_output=True, text=True, timeout=600, env=environment()
    )


def killed_after(out: Path, server: Server, number: int) -> list[dict[str, Any]]:
    """A run that is killed without warning once it has some records; those records."""
    run = subprocess.Popen(
        command(out, server),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while len(records(out)) < number and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    children = psutil.Process(run.pid).children(recursive=True)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive, "children outlive a killed run"
    return records(out)


def test_scores_are_those_of_the_answers_whatever_the_provider_and_the_machine_do(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    with serving(answer, fault) as server:
        before = killed_after(out, server, 3)
        assert 3 <= len(before) < len(TASKS) * EPOCHS
        server.asked.clear()
        resumed = subprocess.run(
            [*command(out, server, "--resume"), "--json"],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment(),
        )
        assert resumed.returncode == 0, resumed.stderr
        asked = dict(server.asked)
    after = records(out)
    assert after[: len(before)] == before, "what was finished is neither lost nor done again"
    wanted = [f"{task}|llvm|direct|{epoch}" for task in TASKS for epoch in range(EPOCHS)]
    assert sorted(record["id"] for record in after) == sorted(wanted)
    kept = Counter(record["task"]["workload"] for record in before)
    assert asked.get(WRONG, 0) == EPOCHS - kept[WRONG]

    scored = json.loads(resumed.stdout)
    assert scored == json.loads(ekb("score", str(out), "--json").stdout)
    assert scored["statuses"] == {
        "correct": 2 * EPOCHS,
        "wrong_result": EPOCHS,
        "unparseable": EPOCHS,
        "provider_error": EPOCHS,
    }
    assert (scored["n"], scored["outside_denominator"]) == (4, EPOCHS)
    at = scored["correct_at"]["1"]
    assert (at["value"], at["count"], at["n"]) == (pytest.approx(0.5), 2, 4)
    fast = dict.fromkeys((RIGHT, REPAIRED, WRONG, SILENT), 0)
    for record in after:
        if record["status"] == "correct":
            rivals = record["evaluation"]["baselines"]
            best = rivals[record["evaluation"]["best"]]
            fast[record["task"]["workload"]] += best["speedup_low"] >= 1
    by_hand = sum(count / EPOCHS for count in fast.values()) / 4
    assert scored["fast_at"]["best"]["1.0"]["value"] == pytest.approx(by_hand)
    for key in ("by_level", "by_family", "by_domain", "by_backend"):
        assert sum(group["n"] for group in scored[key].values()) == 4, key


def test_a_batch_goes_out_and_comes_back(tmp_path: Path) -> None:
    named = [part for task in (RIGHT, SILENT) for part in ("--workload", task)]
    prompts, answers, out = (tmp_path / name for name in ("prompts.jsonl", "answers.jsonl", "run"))
    run = ["run", "--agent", "direct", *named]
    written = ekb(*run, "--model", "openai/m", "--export-prompts", str(prompts))
    assert written.returncode == 0 and written.stdout.startswith("2 prompts"), written.stderr
    lines = []
    for line in map(json.loads, prompts.read_text().splitlines()):
        task = line["body"]["messages"][1]["content"].partition("# Task ")[2].split()[0]
        body = {"choices": [{"message": {"content": answer(task)}}]}
        lines.append({"custom_id": line["custom_id"], "response": {"body": body}})
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = ekb(*run, "--model", "openai/m", "--answers", str(answers), "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["statuses"] == {"correct": 1, "unparseable": 1}
    assert {record["model"] for record in records(out)} == {"openai/m"}
