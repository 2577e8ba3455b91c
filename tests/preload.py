"""preload.py: a service with tests/power/preload.c between it and the system.

    with preload.service(tmp_path, preload_so) as service:      # running
        service.faults.set(preload.OUR_MEMORY, countdown=3)
        ...
        service.faults.clear()

    for kind, name, at, data in preload.trace(path): ...        # what it did
"""

import errno
import mmap
import struct

from service import Service

OUR_MEMORY, SQLITE_MEMORY, WRITE, SYNC, OPEN, INTERRUPTED = range(1, 7)
RECORD = struct.Struct("=IIqq")


class Faults:
    """The struct control: what fails next."""

    def __init__(self, path):
        path.write_bytes(bytes(24))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 24)

    def set(self, kind, countdown=1, every=0, error=errno.EIO):
        """The countdown-th call from now fails, then each every-th."""
        self.clear()
        self.map[0:16] = struct.pack("=iiii", kind, countdown, every, error)

    def clear(self):
        self.map[0:24] = bytes(24)

    @property
    def hits(self):
        return struct.unpack("=q", self.map[16:24])[0]


def service(folder, library, trace=None, before="", **options):
    """A service that loads the library, not yet started. before: shell that
    runs before it, "ulimit -n 64"."""
    running = Service(folder, **options)
    control = folder / "faults"
    running.faults = Faults(control)
    script = folder / "preloaded"
    variables = f"POWER_FAULTS={control}" if trace is None \
        else f"POWER_TRACE={trace}"
    script.write_text(f"#!/bin/sh\n{before}\nexec env {variables} "
                      f"LD_PRELOAD={library} {running.binary}\n")
    script.chmod(0o755)
    running.binary = script
    return running


def trace(path):
    """(kind, name, at, data) of each call: w a write, t a truncation, b and s
    the begin and end of a sync by thread `at`, a an answer."""
    with open(path, "rb") as file:
        while head := file.read(RECORD.size):
            kind, name_bytes, at, size = RECORD.unpack(head)
            name = file.read(name_bytes).decode()
            yield chr(kind), name, at, file.read(size)
