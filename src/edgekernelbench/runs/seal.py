"""Verifications beside the records they are of, and whether one was made here.

The folder is the submitter's, who could write a verification himself. So each is sealed with a key
that only this user has: what another wrote, or changed, does not count.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.evaluator import default_cache
from edgekernelbench.runs.submission import digest_of
from edgekernelbench.runs.verify import Verification

FILE = "verification.json"
_KEY = "verifier.key"

Trust = Literal["none", "here", "elsewhere", "outdated"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """What lies beside a run's records.

    Attributes:
        trust: ``here``: made by this user, of these very records. ``elsewhere``: by nobody that
            this user can vouch for. ``outdated``: the records changed since. ``none``: none there.
    """

    trust: Trust
    verification: Verification | None = None

    @property
    def verified(self) -> bool:
        return (
            self.trust == "here"
            and self.verification is not None
            and self.verification.verdict == "verified"
        )


def keep(folder: Path, found: Verification) -> Path:
    """Stores a verification in the run's folder, in place of an older one.

    Raises:
        UsageError: it cannot be written there, or a key cannot be kept.
    """
    path = folder / FILE
    sealed = found.model_copy(update={"signature": _seal(found)})
    try:
        path.unlink(missing_ok=True)  # a link there would lead elsewhere
        path.write_text(sealed.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror})", "leave --keep out, or copy the folder"
        ) from error
    return path


def kept(folder: Path) -> Sealed:
    """The verification of a run's folder; one that cannot be read is from elsewhere."""
    path = folder / FILE
    if path.is_symlink() or not path.is_file():
        return Sealed("none")
    try:
        found = Verification.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, RecursionError):
        return Sealed("elsewhere")
    if not hmac.compare_digest(found.signature.encode(), _seal(found).encode()):
        return Sealed("elsewhere", found)
    if found.digest != digest_of(folder):
        return Sealed("outdated", found)
    return Sealed("here", found)


def _seal(found: Verification) -> str:
    told = found.model_copy(update={"signature": ""}).model_dump_json()
    return hmac.new(_key(), told.encode(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    """This user's, made when it is first needed."""
    path = default_cache() / _KEY
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            scratch = path.with_name(f".{_KEY}.{secrets.token_hex(8)}")
            scratch.touch(mode=0o600)
            scratch.write_text(secrets.token_hex(32), encoding="ascii")
            scratch.replace(path)
        return bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: the key that seals verifications cannot be kept there ({error})",
            "set EDGEKERNELBENCH_CACHE to a folder that can be written",
        ) from error
