"""peer_sketch.py: a lease manager as one writes it in an afternoon, with
FastAPI and SQLite, for comparison (sketch_app.py). One uvicorn, as shipped."""

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import load
from peer_leasehold import Api
from service import free_port, wait_for


class Sketch(Api):
    name, note = "FastAPI sketch", "durable"

    def start(self, folder):
        self.port = free_port()
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "--port", str(self.port),
                 "--no-access-log", "--log-level", "warning",
                 "sketch_app:app"], cwd=Path(__file__).parent,
                env=os.environ | {"SKETCH_DB": str(folder / "sketch.db"),
                                  "PYTHONDONTWRITEBYTECODE": "1"},
                stdout=log, stderr=log)

        def ready():
            try:
                return self.post("grant", resource="x", holder="x", ttl=1)
            except OSError:
                return None
        wait_for(ready, 30, "the sketch answers")
        self.prepare()

    def stop(self):
        load.end(self.process)

    def post(self, route, **fields):
        con = http.client.HTTPConnection("127.0.0.1", self.port)
        con.request("POST", f"/v1/{route}", json.dumps(fields),
                    {"Content-Type": "application/json"})
        answer = json.loads(con.getresponse().read())
        con.close()
        return answer
