"""What `test_leftovers` starts; a child imports it, too."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import Any

from edgekernelbench.evaluator import wire

COMETS = 40
BEAT = "beat"
"""A file that each process marks."""

SOURCE = f"""
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {{
  int file = open(words[1], O_RDWR);
  volatile long *beat = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const time_t end = time(0) + 30;
  for (int k = 1; k < {COMETS} && fork() > 0; ++k);
  while (time(0) < end) {{
    ++*beat;
    setsid();
    if (fork() > 0) _exit(0);
  }}
  return 0;
}}
"""


def launch(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """The life of a worker that leaves them behind."""
    subprocess.run(["./comets", BEAT], check=True)
    time.sleep(0.2)
    wire.send(connection, {"launched": True})
    time.sleep(600)
