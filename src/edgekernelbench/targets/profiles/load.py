"""A profile from its text, or everything that is wrong with it, each with its line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.diagnostics import Diagnostic, Rule, Span, locate
from edgekernelbench.targets.profiles import schema
from edgekernelbench.targets.profiles.schema import Profile
from edgekernelbench.targets.profiles.text import KEY, MOST_BYTES, Document, Malformed, read_yaml

KEYS = Rule("E702", "a profile has the keys of the form, and those that are not optional")
VALUES = Rule("E703", "each value of a profile has its type and range")
BACKEND = Rule("E704", "a profile says what its backend needs, and nothing that only others have")
SOURCES = Rule("E705", "every number of a profile has a source")
TRANSPORT = Rule("E706", "a profile reaches its device by a transport that there is: none, local")
NAMES = Rule("E707", "a profile has a name of its own, none of a target that is always there")

BUILT_IN = ("llvm", "opencl", "cuda")
HOW = "docs/adding-a-device.md has the form"


class ProfileError(UsageError):
    """A profile that cannot be used; ``diagnostics`` holds all that is wrong with it."""

    def __init__(self, where: str, text: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        first = diagnostics[0]
        line, column, _ = locate(text, first.span.start) if first.span else (1, 1, "")
        more = f" (and {len(diagnostics) - 1} more)" if len(diagnostics) > 1 else ""
        message = f"{where}:{line}:{column}: {first.rule.code}: {first.message}{more}"
        super().__init__(message, f"{'; '.join((*first.help, first.rule.text))} ({HOW})")


def load_profile(file: Path) -> Profile:
    """The profile in a file.

    Raises:
        UsageError: it cannot be read.
        ProfileError: it is not right.
    """
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise ValueError("no plain file")
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        decoding = isinstance(error, UnicodeDecodeError)
        reason = "not UTF-8 text" if decoding else getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{file}: cannot be read ({reason})", f"give a profile: {HOW}") from error
    return parse_profile(text, str(file))


def parse_profile(text: str, where: str) -> Profile:
    """The profile in a text.

    Args:
        where: what the text is called in messages.

    Raises:
        ProfileError: it is not right.
    """
    try:
        document = read_yaml(text)
    except Malformed as error:
        raise ProfileError(where, text, (error.diagnostic,)) from error
    try:
        profile = Profile.model_validate(document.value)
    except ValidationError as error:
        found = tuple(_diagnostic(part, document) for part in error.errors())
        raise ProfileError(where, text, found) from error
    if found := tuple(_problems(profile, document)):
        raise ProfileError(where, text, found)
    return profile


# ---------------------------------------------------------------- the form
def _diagnostic(error: Any, document: Document) -> Diagnostic:
    """One finding of the schema, with its place in the text."""
    path = _path_in(document, error["loc"])
    name = ".".join(map(str, path)) or "the profile"
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(path[-1]), _siblings(path[:-1]), 1)
        help = f"did you mean `{near[0]}`?" if near else f"there are {_listed(path[:-1])}"
        return Diagnostic(KEYS, f"`{name}` is no key", document.spans.get((*path, KEY)), (help,))
    if error["type"] == "missing":
        missing = ".".join(map(str, error["loc"]))
        return Diagnostic(KEYS, f"`{missing}` is missing", document.spans.get(path), ("add it",))
    rule = TRANSPORT if path == ("transport", "kind") else NAMES if path == ("name",) else VALUES
    said = re.sub(r"^Value error, ", "", error["msg"])
    message = f"{name}: {said[0].lower()}{said[1:]}, given {_short(error['input'])}"
    help = "leave the key out where there is no such number" if rule is VALUES else "change it"
    if rule is TRANSPORT:
        help = "say `none`: code is generated and billed without the device"
    return Diagnostic(rule, message, document.spans.get(path), (help,))


def _path_in(document: Document, location: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The longest beginning of a location that stands in the text: unions add words of theirs."""
    path: tuple[str | int, ...] = ()
    for part in location:
        if (*path, part) in document.spans:
            path = (*path, part)
    return path


def _siblings(path: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys of the part of the form that a path leads to."""
    parts = {
        "architecture": schema.Architecture, "limits": schema.Limits, "peaks": schema.Peak,
        "sources": schema.Source, "transport": schema.Transport,
    }  # fmt: skip
    model = parts.get(str(path[0]), Profile) if path else Profile
    return tuple(model.model_fields)


def _listed(path: tuple[str | int, ...]) -> str:
    return ", ".join(_siblings(path))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ---------------------------------------------------------------- what the form cannot say
def _problems(profile: Profile, document: Document) -> Iterator[Diagnostic]:
    yield from _name_problems(profile, document)
    yield from _backend_problems(profile, document)
    yield from _limit_problems(profile, document)
    yield from _source_problems(profile, document)


def _at(document: Document, key: str) -> Span | None:
    path = tuple(key.split("."))
    return document.spans.get((*path, KEY)) or document.spans.get(path[:1]) or Span(0, 1)


def _name_problems(profile: Profile, document: Document) -> Iterator[Diagnostic]:
    if profile.name in BUILT_IN or profile.name.startswith("cuda-"):
        help = "choose another name, such as the device's"
        message = f"`{profile.name}` is a target that is always there"
        yield Diagnostic(NAMES, message, document.spans.get(("name",)), (help,))


_CPU_ONLY = ("architecture.triple", "architecture.mcpu", "architecture.mattr",
             "architecture.features", "vector_bits")  # fmt: skip
_GPU_ONLY = ("warp", "limits.buffer", "limits.threads", "limits.shared")
_CUDA_ONLY = ("architecture.sm", "limits.shared_optin", "limits.registers",
              "limits.registers_block")  # fmt: skip
_OPENCL_ONLY = ("architecture.opencl", "architecture.extensions")
_FOREIGN = {
    "llvm": (*_GPU_ONLY, *_CUDA_ONLY, *_OPENCL_ONLY),
    "opencl": (*_CPU_ONLY, *_CUDA_ONLY),
    "cuda": (*_CPU_ONLY, *_OPENCL_ONLY),
}
_NEEDED = {
    "llvm": ("architecture.triple", "cores", "vector_bits", "limits.memory"),
    "opencl": ("cores", "limits.memory", "limits.threads", "limits.shared"),
    "cuda": ("architecture.sm", "cores", "limits.memory", "limits.threads", "limits.shared"),
}
"""What must be there where no driver can be asked."""


def _backend_problems(profile: Profile, document: Document) -> Iterator[Diagnostic]:
    said = set(profile.numbers())
    for key in _FOREIGN[profile.backend]:
        if key in said:
            message = f"`{key}` says nothing of a target with the backend {profile.backend}"
            yield Diagnostic(BACKEND, message, _at(document, key), ("leave it out",))
    if profile.transport.kind == "local":
        if profile.transport.device is None:
            span = _at(document, "transport")
            help = "add `device:`, words of its name as `ekb devices list` shows it"
            yield Diagnostic(TRANSPORT, "which device is it?", span, (help,))
        return
    for key in _NEEDED[profile.backend]:
        if key not in said:
            message = f"`{key}` is missing, and there is no device to ask"
            yield Diagnostic(BACKEND, message, _at(document, "backend"), (f"add `{key}`",))


def _limit_problems(profile: Profile, document: Document) -> Iterator[Diagnostic]:
    limits = profile.limits
    pairs = (
        ("buffer", limits.buffer, "memory", limits.memory),
        ("workspace", limits.workspace, "memory", limits.memory),
        ("shared", limits.shared, "shared_optin", limits.shared_optin),
        ("registers", limits.registers, "registers_block", limits.registers_block),
    )
    for small, less, large, more in pairs:
        if less is not None and more is not None and less > more:
            message = f"limits.{small} ({less}) is above limits.{large} ({more})"
            help = (f"it is part of limits.{large}",)
            yield Diagnostic(VALUES, message, _at(document, f"limits.{small}"), help)
    caches = profile.caches or ()
    if list(caches) != sorted(caches):
        span = document.spans.get(("caches",))
        yield Diagnostic(VALUES, "caches: from the first level to the last", span, ("sort them",))


def _source_problems(profile: Profile, document: Document) -> Iterator[Diagnostic]:
    said, cited = set(profile.numbers()), set[str]()
    for number, source in enumerate(profile.sources):
        span = document.spans.get(("sources", number))
        cited |= set(source.of)
        unknown = [key for key in source.of if key not in said and key != "*"]
        if unknown:
            near = difflib.get_close_matches(unknown[0], said, 1)
            help = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(said))}"
            message = f"a source of `{unknown[0]}`, of which the profile says nothing"
            yield Diagnostic(SOURCES, message, span, (help,))
        if source.kind == "vendor" and (source.title is None or source.url is None):
            help = "add `title:` and `url:`, or say `kind: own`"
            yield Diagnostic(SOURCES, "a vendor's document without title or address", span, (help,))
        if source.kind == "vendor" and "*" in source.of:
            yield Diagnostic(SOURCES, "a document for everything", span, ("name the keys",))
    documented = any(s.kind == "vendor" and "peaks" in s.of for s in profile.sources)
    if any(peak.source == "vendor" for peak in profile.peaks or ()) and not documented:
        help = (
            "add `- {of: [peaks], kind: vendor, title: ..., url: ..., says: ...}` to `sources`, or "
            "say `source: own` of the peak where you vouch for it"
        )
        span = _at(document, "peaks")
        yield Diagnostic(SOURCES, "a peak of the vendor without a document", span, (help,))
    for key in () if "*" in cited else sorted(said - cited):
        help = (
            f"add `- {{of: [{key}], kind: vendor, title: ..., url: ..., says: ...}}` to `sources`, "
            "or `kind: own` where you vouch for it"
        )
        yield Diagnostic(SOURCES, f"`{key}` has no source", _at(document, key), (help,))
