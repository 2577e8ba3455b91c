"""clients.py: the same small client over SQL and over HTTP, for tests that
put load on a file from many processes.

    client = clients.Http(port)          # or clients.Sql(path)
    token, remaining = client.grant("r", "w1", 2)      # or None when refused

Each call answers what it got, None for a refusal, or raises Unknown when
nobody can tell whether it happened.
"""

import http.client
import json
import multiprocessing
import os
import sqlite3

import support

# Forked children inherit the sanitizer's runtime as well as the build.
FORK = multiprocessing.get_context("fork")


class Unknown(Exception):
    """No answer, or one that says that it may not have worked."""


class Http:
    def __init__(self, port, timeout=10):
        self.con = http.client.HTTPConnection("127.0.0.1", port,
                                              timeout=timeout)

    def post(self, route, **body):
        """Status and answer of a route. Never sent twice."""
        try:
            self.con.request("POST", f"/v1/{route}", json.dumps(body),
                             {"Content-Type": "application/json"})
            answer = self.con.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.con.close()
            raise Unknown(repr(error)) from error

    def call(self, route, refusals, **body):
        status, answer = self.post(route, **body)
        if status == 200:
            return answer
        if status in refusals:
            return None
        raise Unknown(f"{status} {answer}")

    def grant(self, resource, holder, ttl):
        got = self.call("grant", (409,), resource=resource, holder=holder,
                        ttl=ttl)
        return got and (got["token"], got["remaining"])

    def renew(self, resource, token, ttl):
        got = self.call("renew", (410, 404), resource=resource, token=token,
                        ttl=ttl)
        return got and (got["token"], got["remaining"])

    def release(self, resource, token):
        got = self.call("release", (404,), resource=resource, token=token)
        return bool(got and got["released"])

    def close(self):
        self.con.close()


class Sql:
    def __init__(self, path, timeout=10, clocked=False):
        self.con = support.connect(str(path), timeout=timeout,
                                   clocked=clocked)

    def value(self, sql, *args):
        try:
            return support.one(self.con, sql, *args)
        except sqlite3.OperationalError as error:
            raise Unknown(f"{error.sqlite_errorname}: {error}") from error

    def grant(self, resource, holder, ttl):
        token = self.value("SELECT lease_grant(?, ?, ?)", resource, holder,
                           ttl)
        return token and (token, ttl)

    def renew(self, resource, token, ttl):
        token = self.value("SELECT lease_renew(?, ?, ?)", resource, token,
                           ttl)
        return token and (token, ttl)

    def release(self, resource, token):
        return bool(self.value("SELECT lease_release(?, ?)", resource, token))

    def close(self):
        self.con.close()


class Start:
    """The starting shot of many processes, once a round. Each has a pipe of
    its own, so that none takes another's shot."""

    def __init__(self, processes):
        self.pipes = [os.pipe() for _ in range(processes)]

    def signal(self):
        for _, write in self.pipes:
            os.write(write, b".")

    def wait(self, number):
        return os.read(self.pipes[number][0], 1) == b"."

    def close(self):
        for read, write in self.pipes:
            os.close(read)
            os.close(write)


def together(works, *args):
    """Run each of works in a process of its own, wait for all. Fails when one
    of them did."""
    processes = [FORK.Process(target=work, args=args, daemon=True)
                 for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    failed = [p.exitcode for p in processes if p.exitcode]
    assert not failed, f"processes ended with {failed}"
