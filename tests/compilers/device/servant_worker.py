"""A servant that does what it is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from edgekernelbench.compilers.tvm.tuning.forked import Say
from edgekernelbench.compilers.tvm.tuning.servant import Declined, serve


def answer(question: Any, say: Say) -> Any:
    match question:
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fail":
            raise ValueError("broken")
        case "hang":
            time.sleep(60)
        case "slow":
            for _ in range(4):
                time.sleep(0.6)
                say(None)
        case "print":
            os.write(1, b"a driver's greeting\n")
        case "decline":
            raise Declined("no such thing")
    return [question, os.getpid()]


if __name__ == "__main__":
    serve(answer, int(sys.argv[1]))
