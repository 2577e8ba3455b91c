"""sketch_app.py: see peer_sketch.py. Grants and renewals, an event for each,
durable, and no more."""

import os
import sqlite3
import threading
import time

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()
lock = threading.Lock()
db = sqlite3.connect(os.environ.get("SKETCH_DB", "sketch.db"),
                     isolation_level=None, check_same_thread=False)
db.executescript("""
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS event(token INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL, event TEXT, resource TEXT, holder TEXT);
    CREATE TABLE IF NOT EXISTS lease(resource TEXT PRIMARY KEY, holder TEXT,
        token INTEGER, expires_at REAL);
""")


class Grant(BaseModel):
    resource: str
    holder: str
    ttl: float = 30


class Renew(BaseModel):
    resource: str
    token: int
    ttl: float = 30


def note(event, resource, holder):
    return db.execute(
        "INSERT INTO event(at, event, resource, holder) VALUES(?, ?, ?, ?)",
        (time.time(), event, resource, holder)).lastrowid


@app.post("/v1/grant")
def grant(ask: Grant):
    with lock, db:
        db.execute("BEGIN IMMEDIATE")
        now = time.time()
        held = db.execute(
            "SELECT holder, expires_at FROM lease WHERE resource = ? "
            "AND expires_at > ?", (ask.resource, now)).fetchone()
        if held:
            raise HTTPException(409, {"holder": held[0]})
        token = note("granted", ask.resource, ask.holder)
        db.execute("INSERT OR REPLACE INTO lease VALUES(?, ?, ?, ?)",
                   (ask.resource, ask.holder, token, now + ask.ttl))
    return {"resource": ask.resource, "token": token, "ttl": ask.ttl}


@app.post("/v1/renew")
def renew(ask: Renew):
    with lock, db:
        db.execute("BEGIN IMMEDIATE")
        now = time.time()
        lease = db.execute(
            "SELECT holder FROM lease WHERE resource = ? AND token = ? "
            "AND expires_at > ?", (ask.resource, ask.token, now)).fetchone()
        if not lease:
            raise HTTPException(410, "over")
        note("renewed", ask.resource, lease[0])
        db.execute("UPDATE lease SET expires_at = ? WHERE resource = ?",
                   (now + ask.ttl, ask.resource))
    return {"resource": ask.resource, "token": ask.token, "ttl": ask.ttl}
