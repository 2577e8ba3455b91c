"""proxy.py: a way to the service that goes wrong as told.

    with Proxy(service.port) as way:
        way.mode = "drop"       # nothing passes any more, nothing is closed

pass    as if it were not there
drop    what comes is swallowed, in both directions, also new connections
slow    answers come way.delay seconds late
cut     requests arrive, the connection is closed before the answer
once    so with the next one, then pass
"""

import contextlib
import select
import socket
import threading
import time


class Proxy:
    def __init__(self, port):
        self.target = port
        self.mode = "pass"
        self.delay = 0.0
        self.cuts = 0       # answers that were cut off
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = False
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def accept(self):
        while not self.ended:
            if select.select([self.listener], [], [], 0.1)[0]:
                con, _ = self.listener.accept()
                thread = threading.Thread(target=self.carry, args=[con])
                self.threads.append(thread)
                thread.start()

    def carry(self, client):
        with client, contextlib.suppress(OSError), \
                socket.create_connection(("127.0.0.1", self.target)) as server:
            ends = {client: server, server: client}
            while not self.ended:
                for end in select.select(list(ends), [], [], 0.1)[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    if not self.pass_on(end is server, data, ends[end]):
                        return

    def pass_on(self, answer, data, to):
        """False to close the connection."""
        mode = self.mode
        if mode in ("cut", "once") and answer:
            self.cuts += 1
            if mode == "once":
                self.mode = "pass"
            return False
        if mode == "slow" and answer:
            time.sleep(self.delay)
        if mode != "drop":
            to.sendall(data)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        for thread in self.threads:
            thread.join()
        self.listener.close()
