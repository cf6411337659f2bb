"""The parent's side of compiling: candidates into throw-away folders, baselines into the cache."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

import edgekernelbench
from edgekernelbench.baselines.base import Materials, ReadsFiles, Recipe, Unavailable
from edgekernelbench.baselines.registry import load_baseline
from edgekernelbench.compilers.base import Manifest
from edgekernelbench.compilers.launch import count_launches
from edgekernelbench.evaluator.buildchild import (
    BaselineJob,
    BaselineReply,
    KernelJob,
    KernelReply,
)
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.evaluator.machinery import Machinery
from edgekernelbench.evaluator.regions import Sealed
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.targets.model import Target

_MANIFEST_CAP = 64 << 20
_MAX_TEXT = 4 << 20
"""Characters of a text that are handed on: far more than the parser accepts, so that it refuses
what was cut."""
_REPLY_CAP = 4 << 20
_RECIPE, _UNAVAILABLE = "recipe.json", "unavailable.txt"

_Form = TypeVar("_Form", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """What came of a text. ``manifest`` is there exactly when ``reply.outcome`` is ``built``;
    ``launches`` are of device kernels, by one call."""

    reply: KernelReply
    manifest: Manifest | None
    misfit: str = ""
    launches: int = 0


@dataclass(frozen=True, slots=True)
class BuiltBaseline:
    """A folder of the cache and how to run it."""

    folder: Path
    recipe: Recipe


class Builder:
    """Compiles in limited children of one fork server."""

    def __init__(
        self,
        server: ForkServer,
        machinery: Machinery,
        target: Target,
        settings: EvalSettings,
        cache: Path,
    ) -> None:
        self._server = server
        self._machinery = machinery
        self._target = target
        self._reference = target.reference
        self._settings = settings
        self._cache = cache

    def kernel(
        self, text: str, interface: Interface | None, folder: Path, compiler: str | None = None
    ) -> BuiltKernel:
        """Builds a candidate into an existing empty folder.

        Args:
            compiler: another one than the machinery's.

        Raises:
            ChildLost: when the compile child gives no usable answer.
        """
        job = KernelJob(
            text=text[:_MAX_TEXT],
            interface=interface,
            target=self._target,
            compiler=compiler or self._machinery.compiler,
        )
        entry, payload = self._machinery.build_kernel, job.model_dump(mode="json")
        reply = self._ask(entry, payload, folder, self._settings.compile_s, KernelReply)
        if reply.outcome == "unsupported" and not self._lacks(interface):
            raise ChildLost(
                "bad_reply", "it calls a target unfit that has all of the task's dtypes"
            )
        if reply.outcome != "built":
            return BuiltKernel(reply, None)
        try:
            manifest = read_manifest(folder)
            launches = {name: count_launches(p) for name, p in manifest.plans.items()}
        except (OSError, ValueError) as error:
            raise ChildLost("bad_reply", f"unusable artifact: {error}") from error
        misfit = "" if interface is None else fits(manifest, interface)
        return BuiltKernel(reply, manifest, misfit, launches.get("main", 0))

    def stream(
        self,
        entry: str,
        payload: dict[str, Any],
        form: type[_Form],
        count: int,
        seconds: float,
        total: float | None = None,
    ) -> Iterator[_Form]:
        """The replies of a job that is limited as a compilation is, but leaves nothing.

        Args:
            count: of replies.
            seconds: of waiting for one.
            total: for all of them.

        Raises:
            ChildLost: there is no usable reply within the time; those before it were yielded.
        """
        limits = Limits(
            memory_bytes=self._settings.compile_memory_bytes,
            cpu_seconds=int(2 * (seconds * count if total is None else total)) + 10,
        )
        folder = scratch_folder("job")
        try:
            worker = self._server.start(entry, payload, limits, folder)
            try:
                end = None if total is None else time.monotonic() + total
                for _ in range(count):
                    left = seconds if end is None else min(seconds, end - time.monotonic())
                    yield form.model_validate(worker.reply(max(0.0, left), _REPLY_CAP))
            except ValidationError as error:
                raise ChildLost("bad_reply", "an answer out of form") from error
            finally:
                worker.close()
        finally:
            remove_folder(folder)

    def _lacks(self, interface: Interface | None) -> bool:
        """Whether the target lacks a dtype of the task: only then is no verdict due."""
        missing = self._target.dtypes_missing
        return interface is None or any(port.dtype.value in missing for port in interface.ports)

    def _ask(
        self,
        entry: str,
        payload: dict[str, Any],
        folder: Path,
        timeout: float,
        form: type[_Form],
        fds: tuple[int, ...] = (),
    ) -> _Form:
        # Its driver compiles in this child, too: see `evaluator._device_limits`.
        opened = self._target.opencl is not None and not self._target.opencl.is_host_cpu
        limits = Limits(
            memory_bytes=None if opened else self._settings.compile_memory_bytes,
            cpu_seconds=int(timeout * 2) + 10,
            processes=True,
            lenient=opened,
            writes=True,
        )
        try:
            return self._once(entry, payload, folder, timeout, form, fds, limits)
        except ChildLost as lost:
            # A server that was killed takes the build with it, which says nothing of the build.
            if not lost.with_server:
                raise
            _empty(folder)
            return self._once(entry, payload, folder, timeout, form, fds, limits)

    def _once(
        self,
        entry: str,
        payload: dict[str, Any],
        folder: Path,
        timeout: float,
        form: type[_Form],
        fds: tuple[int, ...],
        limits: Limits,
    ) -> _Form:
        worker = self._server.start(entry, payload, limits, folder, fds)
        try:
            reply = worker.reply(timeout, _REPLY_CAP)
            return form.model_validate(reply)
        except ValidationError as error:
            raise ChildLost("bad_reply", "an answer out of form") from error
        finally:
            worker.close()

    # ------------------------------------------------------------ baselines
    def baseline(self, name: str, materials: Materials) -> BuiltBaseline | Unavailable:
        """A baseline from the cache, or built into it.

        Raises:
            ChildLost: when the compile child gives no usable answer.
        """
        module = self._machinery.baselines[name]
        baseline = load_baseline(module)
        files = baseline.files() if isinstance(baseline, ReadsFiles) else ()
        key = cache_key(name, baseline.version, materials, self._reference, files)
        folder = self._cache / "baselines" / key
        found = _read_cached(folder)
        if found is not None:
            return found
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{key[:16]}-", dir=folder.parent))
        try:
            outcome = self._build_baseline(name, module, materials, scratch)
            _store(scratch, folder, outcome)
        finally:
            remove_folder(scratch)
        found = _read_cached(folder)
        if found is None:
            raise ChildLost("bad_reply", f"baseline {name}: unusable result")
        return found

    def _build_baseline(
        self, name: str, module: str, materials: Materials, folder: Path
    ) -> BaselineReply:
        job = BaselineJob(baseline=name, module=module, target=self._reference)
        described = materials.model_dump_json(exclude={"twin"}).encode()
        regions = [Sealed(described)]
        if materials.twin is not None:
            regions.append(Sealed(materials.twin))
        try:
            return self._ask(
                self._machinery.build_baseline,
                job.model_dump(mode="json"),
                folder,
                self._settings.baseline_compile_s,
                BaselineReply,
                tuple(region.fd for region in regions),
            )
        finally:
            for region in regions:
                region.close()


def _empty(folder: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            remove_folder(item)
        else:
            item.unlink()


# ---------------------------------------------------------------- manifests
def read_manifest(folder: Path) -> Manifest:
    """The manifest of an artifact that a child wrote.

    Raises:
        OSError, ValueError: it is missing, too large, out of form, or names a library that is
            not a plain file beside it.
    """
    manifest = Manifest.model_validate_json(plain_file(folder / "manifest.json"))
    library = folder / manifest.library
    plain = Path(manifest.library).name == manifest.library
    if not plain or not stat.S_ISREG(library.lstat().st_mode):
        raise ValueError("the library is no plain file beside the manifest")
    return manifest


def open_plain(file: Path) -> BinaryIO:
    """Opens a file for reading. The child that wrote it may have put something else in its place:
    a link to a file of ours, or a pipe that would hold the reader up for ever.

    Raises:
        OSError, ValueError: it is no plain file.
    """
    opened = os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise ValueError(f"{file.name} is no plain file")
    return opened


def plain_file(file: Path) -> bytes:
    """What a file holds, see `open_plain`.

    Raises:
        OSError, ValueError: it is no plain file, or larger than a manifest can be.
    """
    with open_plain(file) as opened:
        data = opened.read(_MANIFEST_CAP + 1)
    if len(data) > _MANIFEST_CAP:
        raise ValueError("the manifest is larger than any can be")
    return data


def fits(manifest: Manifest, interface: Interface) -> str:
    """What in an artifact differs from the task, in one line; empty when it fits."""
    roles = {"input": "input", "const": "const", "output": "output"}
    wanted = {p.name: p for p in interface.ports}
    arguments = [a for a in manifest.arguments if a.role in roles]
    for argument in arguments:
        port = wanted.get(argument.name)
        if port is None:
            return f"the artifact has an {argument.role} '{argument.name}' that the task has not"
        if (argument.dtype, argument.shape, argument.role) != (port.dtype, port.shape, port.role):
            return f"the artifact's '{argument.name}' is {argument.dtype.value}{argument.shape}"
    missing = {p.name for p in interface.ports if p.role == "output"} - {a.name for a in arguments}
    return f"the artifact lacks {', '.join(sorted(missing))}" if missing else ""


# ---------------------------------------------------------------- cache
def cache_key(
    name: str, version: int, materials: Materials, target: Target, files: tuple[Path, ...] = ()
) -> str:
    """SHA-256 (hex) over all that decides how a baseline comes out."""
    described = {
        "baseline": name,
        "version": version,
        "source": _source_digest(),
        "packages": {p: _version(p) for p in ("apache-tvm", "onnx", "onnxruntime")},
        "target": target.model_dump(mode="json"),
        "materials": materials.model_dump(mode="json", exclude={"twin"}),
        "twin": None if materials.twin is None else hashlib.sha256(materials.twin).hexdigest(),
    }
    if files:
        described["files"] = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


@functools.cache
def _source_digest() -> str:
    """Of this package's own code that builds things: a change makes older builds stale."""
    digest = hashlib.sha256()
    root = Path(edgekernelbench.__file__).parent
    for part in ("ir", "lowering", "compilers", "baselines", "targets"):
        for file in sorted((root / part).rglob("*")):
            if file.suffix in (".py", ".lark"):
                digest.update(str(file.relative_to(root)).encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _store(scratch: Path, folder: Path, outcome: BaselineReply) -> None:
    """Completes a build and moves it into place; whoever was first wins."""
    for name in (_RECIPE, _UNAVAILABLE):
        if os.path.lexists(scratch / name):  # a link, say, to a file of ours that we would write
            raise ChildLost("bad_reply", f"the build left a {name} of its own")
    if outcome.recipe is not None:
        (scratch / _RECIPE).write_text(outcome.recipe)
    elif outcome.unavailable is not None:
        (scratch / _UNAVAILABLE).write_text(outcome.unavailable)
    else:
        raise ChildLost("bad_reply", "neither a recipe nor a reason")
    with contextlib.suppress(OSError):
        scratch.rename(folder)


def _read_cached(folder: Path) -> BuiltBaseline | Unavailable | None:
    with contextlib.suppress(OSError):
        return Unavailable((folder / _UNAVAILABLE).read_text())
    try:
        recipe = Recipe.model_validate_json((folder / _RECIPE).read_bytes())
    except OSError:
        return None
    except ValueError:
        remove_folder(folder)
        return None
    return BuiltBaseline(folder, recipe)
