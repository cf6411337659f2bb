"""A server on loopback that speaks as OpenAI's chat completions do, by a script."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Question = list[dict[str, Any]]
Message = dict[str, Any]
Fault = str
"""``429``, ``500``, ``drop``, ``garbage``, ``slow``; empty for an answer."""


class Server:
    """What the server does and saw. ``fault`` is asked before ``answer``, with the number of
    requests about the same task before it. ``converse``, in place of both, answers whole requests
    with whole messages. ``refusal``: status and message of every answer. ``names``: of its models.
    ``spans``: when each request came and was answered."""

    def __init__(self, answer: Callable[[str], str], fault: Callable[[str, int], Fault]) -> None:
        self.answer = answer
        self.converse: Callable[[dict[str, Any]], Message] | None = None
        self.fault = fault
        self.asked: dict[str, int] = {}
        self.refusal: tuple[int, str] | None = None
        self.names: list[str] = []
        self.spans: list[tuple[float, float]] = []
        self.url = ""
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def turn(self, question: Question) -> tuple[Fault, str]:
        task = task_of(question)
        with self._lock:
            number = self.asked.get(task, 0)
            self.asked[task] = number + 1
        fault = self.fault(task, number)
        return fault, "" if fault else self.answer(task)


def task_of(question: Question) -> str:
    """The workload that a conversation is about; empty if it is about none."""
    content = next(message["content"] for message in question if message["role"] == "user")
    text = content if isinstance(content, str) else content[0]["text"]
    return "".join(text.partition("# Task ")[2].split()[:1])


@contextmanager
def serving(
    answer: Callable[[str], str], fault: Callable[[str, int], Fault] = lambda _task, _n: ""
) -> Iterator[Server]:
    """A server on a free port, until the block ends."""
    server = Server(answer, fault)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self._send(200, json.dumps({"data": [{"id": name} for name in server.names]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not body["messages"] or server.refusal:
                status, text = server.refusal or (400, "messages: too few")
                self._send(status, json.dumps({"error": {"message": text}}))
                return
            if server.converse is not None:
                self._send(200, json.dumps(completion(server.converse(body))))
                return
            began = time.monotonic()
            fault, text = server.turn(body["messages"])
            server.spans.append((began, time.monotonic()))
            if fault == "drop":
                self.close_connection = True
            elif fault in ("429", "500"):
                self._send(int(fault), json.dumps({"error": {"message": "not now"}}))
            elif fault == "garbage":
                self._send(200, "<html>this is no JSON")
            else:
                server.closing.wait(30 if fault == "slow" else 0)
                self._send(200, json.dumps(completion(says(text))))

        def _send(self, status: int, text: str) -> None:
            data = text.encode()
            with contextlib.suppress(ConnectionError):  # who asked may have given up
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

    class Http(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that is gone is no news; its traceback would land in another test."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    http = Http(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        http.server_close()


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


def calls(name: str, **arguments: Any) -> Message:
    """A message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{secrets.token_hex(4)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def completion(message: Message) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "one",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
