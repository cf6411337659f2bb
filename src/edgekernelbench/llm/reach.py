"""Whether a model's address answers and knows key and model, asked before anything is spent."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from edgekernelbench.errors import UsageError

_WITHIN_S = 5.0
_NAMES = 8
"""Names of models that a message holds at most."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Of an API in OpenAI's form. ``service``: what Inspect calls the provider, whose upper case
    begins the names of its environment variables."""

    url: str
    key: str
    model: str
    service: str

    def ask(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status and JSON object of an answer; ``(0, {})`` when there is no answer of that form."""
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.key}", "content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_WITHIN_S) as answer:
                return answer.status, _object(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _object(error.read())
        except (OSError, ValueError):
            return 0, {}


def refuse_unreachable(name: str, api: Any) -> None:
    """Says what is wrong with a model that cannot answer, as far as that shows without a question.

    Args:
        name: as the user gave it.
        api: of an Inspect model.

    Raises:
        UsageError: nothing listens there; or an API in OpenAI's form refuses key, model or path.
    """
    url = getattr(api, "base_url", None)
    if not url or not isinstance(url, str):
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"model {name!r}: {url!r} is no address of a server",
            "give it whole, as in http://127.0.0.1:8000/v1",
        )
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), _WITHIN_S).close()
    except OSError as error:
        raise UsageError(
            f"model {name!r}: nothing answers at {parts.hostname}:{port} ({error})",
            "start the server, or give another address with --model-base-url",
        ) from error
    endpoint = _endpoint(api, parts.geturl())
    if endpoint is not None:
        _refuse_unknown(name, endpoint)


def _endpoint(api: Any, url: str) -> Endpoint | None:
    """Inspect has one base class for all APIs of that form."""
    if "OpenAICompatibleAPI" not in {base.__name__ for base in type(api).__mro__}:
        return None
    return Endpoint(url, str(api.api_key), api.service_model_name(), api.service)


def _refuse_unknown(name: str, endpoint: Endpoint) -> None:
    """A conversation without a message has no answer, but path, key and model are looked at."""
    nothing = {"model": endpoint.model, "messages": [], "max_tokens": 1}
    status, answer = endpoint.ask("chat/completions", nothing)
    said = _said(answer)
    if status in (401, 403):
        raise UsageError(
            f"model {name!r}: {endpoint.url} does not take the key{said}",
            f"set {endpoint.service.upper().replace('-', '_')}_API_KEY to one that it takes",
        )
    if status == 404:
        names = _names(endpoint)
        raise UsageError(
            f"model {name!r}: {endpoint.url} knows no {endpoint.model!r}{said}",
            f"it has: {', '.join(names)}" if names else "most addresses end in /v1; does this one?",
        )


def _names(endpoint: Endpoint) -> list[str]:
    _, answer = endpoint.ask("models")
    listed = answer.get("data")
    models = listed if isinstance(listed, list) else []
    names = [str(model["id"]) for model in models if isinstance(model, dict) and "id" in model]
    return [*names[:_NAMES], "..."] if len(names) > _NAMES else names


def _said(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    text = " ".join(str(message).split())[:200] if message else ""
    return f" ({text})" if text else ""


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
