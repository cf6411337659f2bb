"""Coding agents' command lines, through inspect-swe, in the sandbox of an Inspect sample.

The command line's model requests come back to Inspect over a bridge, and so do its calls of the two
tools; the sandbox needs neither keys nor network.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from inspect_ai.agent import AgentState, BridgedToolsSpec
from inspect_ai.model import ChatMessageUser, GenerateFilter
from inspect_ai.tool import Tool, ToolError, tool
from inspect_ai.util import (
    LimitExceededError,
    OutputLimitExceededError,
    SandboxUnavailableError,
    sandbox,
    store,
)

from edgekernelbench.agents.base import Budget
from edgekernelbench.agents.coding import (
    KERNEL_FILE,
    MAX_KERNEL,
    SERVER,
    Brief,
    Ending,
    Workbench,
)
from edgekernelbench.agents.model import ProviderError
from edgekernelbench.agents.registry import CODING_AGENTS
from edgekernelbench.errors import UsageError
from edgekernelbench.llm.local import LOCAL, LocalSandbox, search_path
from edgekernelbench.llm.meter import Meter
from edgekernelbench.llm.provider import one_line
from edgekernelbench.records.schema import Step
from edgekernelbench.runs.order import Order, Sandbox

TOOL_TIMEOUT_S = 24 * 3600
"""A call may wait for a device that others are measured on; the budget knows when it is enough."""

TURNS = 200
"""Questions to the model in one attempt, those of helpers that a command line starts included."""


@dataclass(frozen=True, slots=True)
class Product:
    """A command line that inspect-swe can run.

    Attributes:
        binary: its program.
        package: of npm.
        start: makes the agent from the two tools and the filter of model requests.
        port: where inspect-swe keeps the number of the last bridge's port in a sample's store.
    """

    binary: str
    package: str
    start: Callable[[list[BridgedToolsSpec], GenerateFilter, str], Any]
    port: str


def _claude_code(tools: list[BridgedToolsSpec], ask: GenerateFilter, version: str) -> Any:
    from inspect_swe import claude_code

    return claude_code(
        bridged_tools=tools,
        filter=ask,
        version=version,
        disallowed_tools=["WebSearch", "WebFetch"],
        retry_refusals=None,
        env={
            "MCP_TOOL_TIMEOUT": str(TOOL_TIMEOUT_S * 1000),
            "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "0",
        },
    )


def _codex_cli(tools: list[BridgedToolsSpec], ask: GenerateFilter, version: str) -> Any:
    from inspect_swe import codex_cli

    return codex_cli(
        bridged_tools=tools,
        filter=ask,
        version=version,
        web_search="disabled",
        goals=False,
        config_overrides={f"mcp_servers.{SERVER}.tool_timeout_sec": str(TOOL_TIMEOUT_S)},
    )


PRODUCTS = {
    "claude_code": Product(
        "claude", "@anthropic-ai/claude-code", _claude_code, "claude_code_model_port"
    ),
    "codex_cli": Product("codex", "@openai/codex", _codex_cli, "codex_cli_model_port"),
}


@dataclass(frozen=True, slots=True)
class InspectLine:
    """A command line in the sandbox of the sample that is going on. See `CommandLine`.

    Args:
        name: key of `PRODUCTS`.
        sandbox: ``docker`` or ``local``.
        turns: questions to the model at most.
    """

    name: str
    sandbox: str
    turns: int = TURNS

    def work(self, brief: Brief, bench: Workbench) -> Ending:
        """See `CommandLine.work`; called in a worker thread of the evaluation."""
        return anyio.from_thread.run(self._work, brief, bench)

    async def _work(self, brief: Brief, bench: Workbench) -> Ending:
        product, local = PRODUCTS[self.name], self.sandbox == "local"
        for file, text in brief.files.items():
            await sandbox().write_file(file, text)
        if local:  # the samples of a host share its ports, those of containers do not
            store().set(product.port, _free_port() - 1)
            told = await sandbox().exec([product.binary, "--version"])
            version = one_line(told.stdout or told.stderr)
            bench.device.note(Step(action="start", seconds=0.0, reason=version))
        meter = Meter(bench.device, self.turns)
        spec = BridgedToolsSpec(
            name=SERVER, tools=[check(bench), evaluate(bench)], require_proposal=False
        )
        agent = product.start([spec], meter.ask, "sandbox" if local else "auto")
        state = AgentState(messages=[ChatMessageUser(content=brief.prompt)])
        failure = ""
        try:
            await _until_spent(agent(state), meter, bench)
        except LimitExceededError as limit:
            meter.why = meter.why or f"the evaluation's {limit.type} limit is reached"
        except Exception as error:  # whatever a foreign program does
            failure = f"{self.name} failed: {one_line(error)}"
        if meter.provider_error:
            raise ProviderError(meter.provider_error)
        kernel = await _left_kernel()
        await _end_processes()
        return Ending(kernel, meter.said, meter.why, failure)


async def _until_spent(work: Awaitable[Any], meter: Meter, bench: Workbench) -> None:
    """Awaits the work, as long as there is time and the model answers."""
    raised: list[Exception] = []
    async with anyio.create_task_group() as group:

        async def until(end: Awaitable[Any]) -> None:
            try:
                await end
            except Exception as error:  # bare, not in the group that it would leave this one in
                raised.append(error)
            group.cancel_scope.cancel()

        async def out_of_time() -> None:
            await _time_is_up(bench)
            meter.why = bench.device.budget.all_spent() or ""

        for end in (work, meter.broken.wait(), out_of_time()):
            group.start_soon(until, end)
    if raised:
        raise raised[0]


async def _time_is_up(bench: Workbench) -> None:
    """Returns when the budget's time is over; the wait for the device does not count."""
    budget: Budget = bench.device.budget
    limit = budget.limits.seconds
    while limit is None or bench.busy or budget.seconds < limit:
        left = 1.0 if limit is None or bench.busy else limit - budget.seconds
        await anyio.sleep(max(left, 0.05))


async def _left_kernel() -> str | None:
    """What the kernel's file holds, if it can be a kernel."""
    try:
        text = await sandbox().read_file(KERNEL_FILE)
    except (OSError, UnicodeDecodeError, OutputLimitExceededError):
        return None
    return text if 0 < len(text) <= MAX_KERNEL else None


async def _end_processes() -> None:
    """Nothing of the agent runs beside the verdict's measurement."""
    box = sandbox()
    try:
        local = box.as_type(LocalSandbox)
    except TypeError:
        # The container's main process goes too, perhaps before the command is told to have ended.
        with contextlib.suppress(SandboxUnavailableError, TimeoutError):
            kill = ["sh", "-c", "kill -9 -1"]
            await box.exec(kill, user="root", timeout=60, timeout_retry=False)
    else:
        await anyio.to_thread.run_sync(local.close)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---------------------------------------------------------------- tools
@tool
def check(bench: Workbench) -> Tool:
    """See `Workbench.check`."""

    async def execute(file: str = KERNEL_FILE) -> str:
        """Checks a kernel without running it: is it well formed, in bounds, can it be built? Free.

        Args:
            file: Name of the kernel's file in the working folder.
        """
        return await _on_file(bench.check, file)

    return execute


@tool
def evaluate(bench: Workbench) -> Tool:
    """See `Workbench.evaluate`."""

    async def execute(file: str = KERNEL_FILE) -> str:
        """Checks a kernel's results on the device and times it beside the baselines. Every call
        counts against the budget.

        Args:
            file: Name of the kernel's file in the working folder.
        """
        return await _on_file(bench.evaluate, file)

    return execute


async def _on_file(act: Callable[[str], str], file: str) -> str:
    try:
        text = await sandbox().read_file(file)
    except (OSError, ValueError, OutputLimitExceededError) as error:  # names, too, are an agent's
        shown = one_line(file.encode("utf-8", "replace").decode())
        message = f"{shown}: cannot be read ({one_line(error)}); write the kernel there first"
        raise ToolError(message) from error
    if len(text) > MAX_KERNEL:
        raise ToolError(f"{file}: longer than {MAX_KERNEL} characters; this is no kernel")
    return await anyio.to_thread.run_sync(act, text)


# ---------------------------------------------------------------- beforehand
def sandbox_spec(kind: Sandbox) -> tuple[str, str] | str:
    """The sandbox of a sample, in Inspect's terms."""
    return LOCAL if kind == "local" else ("docker", str(Path(__file__).with_name("sandbox.yaml")))


def ready_line(order: Order) -> InspectLine | None:
    """The command line that a coding agent needs, None for other agents.

    Raises:
        UsageError: a package, the command line or its sandbox is missing.
    """
    name = CODING_AGENTS.get(order.agent)
    if name is None:
        return None
    for package in ("inspect_swe", "anthropic", "openai"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(
                f"the agent {order.agent!r} needs the package {package}",
                "pip install 'edgekernelbench[coding]'",
            )
    if order.sandbox == "local":
        _refuse_without_binary(PRODUCTS[name])
    else:
        _refuse_without_docker()
    return InspectLine(name, order.sandbox)


def _refuse_without_binary(product: Product) -> None:
    if shutil.which(product.binary, path=search_path()) is None:
        raise UsageError(
            f"{product.binary} is not on the PATH",
            f"npm install -g {product.package}; with --sandbox docker it is installed there",
        )


def _refuse_without_docker() -> None:
    docker = shutil.which("docker")
    reason = "there is no docker on the PATH"
    if docker is not None:
        asked = subprocess.run([docker, "version"], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return
        reason = (asked.stderr.strip().splitlines() or ["docker does not answer"])[-1]
    raise UsageError(
        f"the sandbox docker cannot be had: {reason}",
        "start it; or, to try things out, --sandbox local, which does not isolate the agent",
    )
