"""From a kernel to a device: bundles that are built, tested and used without Python."""

from edgekernelbench.deploy.bundle import Deployed, Refused, Request, compile_server, deploy

__all__ = ["Deployed", "Refused", "Request", "compile_server", "deploy"]
