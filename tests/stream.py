"""stream.py: a client of Server-Sent Events, for tests.

    with Stream(service, after=5) as stream:
        event = stream.next()       # Event(id, name, data), None at the end
        stream.comments             # how many so far

Reads only when asked to: a test that does not ask is a slow reader.
"""

import collections
import json
import socket

Event = collections.namedtuple("Event", "id name data")


class Stream:
    def __init__(self, service, timeout=20, receive_buffer=None,
                 last_event_id=None, **query):
        path = "/v1/events?" + "&".join(f"{k}={v}" for k, v in query.items())
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                   receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", service.port))
        last = "" if last_event_id is None \
            else f"Last-Event-ID: {last_event_id}\r\n"
        # HTTP/1.0: the body comes as it is, not in chunks.
        self.socket.sendall(
            f"GET {path} HTTP/1.0\r\nHost: localhost\r\n{last}"
            "Accept: text/event-stream\r\n\r\n".encode())
        self.buffer = b""
        self.id = None
        self.retry = None
        self.comments = 0
        head = self._block(b"\r\n\r\n")
        assert head is not None, "no answer"
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def _block(self, end):
        """What comes before end, or None when the stream is over."""
        while end not in self.buffer:
            try:
                got = self.socket.recv(65536)
            except ConnectionError:
                got = b""
            if not got:
                return None
            self.buffer += got
        block, _, self.buffer = self.buffer.partition(end)
        return block

    def next(self):
        """The next event; None when the stream is over."""
        while True:
            block = self._block(b"\n\n")
            if block is None:
                return None
            name, data = "message", []
            for line in block.decode().split("\n"):
                field, _, value = line.partition(": ")
                if line.startswith(":"):
                    self.comments += 1
                elif field == "id":
                    self.id = int(value)
                elif field == "retry":
                    self.retry = int(value)
                elif field == "event":
                    name = value
                elif field == "data":
                    data.append(value)
            if data:
                return Event(self.id, name, json.loads("\n".join(data)))

    def take(self, count):
        return [self.next() for _ in range(count)]
