"""TLS, passwords and groups: who may do what, and who did it."""

import base64
import contextlib
import http.client
import os
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import time
import urllib.parse
from pathlib import Path

import pytest

import browser
import openapi
import service as service_module
import support

PASSWORDS = {"alice": "for-alice", "w1": "for-w1: ä", "bob": "for-bob"}
GROUPS = "# who may do what\nadmins: alice\n\nworkers: w1 w2  # so far\n"
JSON = {"Content-Type": "application/json"}
ACTIONS = ["grant", "renew", "release", "check", "fence", "revoke"]


def hashed(password):
    return subprocess.run(["openssl", "passwd", "-6", "-stdin"],
                          input=password, text=True, check=True,
                          stdout=subprocess.PIPE).stdout.strip()


def credentials(user, password=None):
    text = f"{user}:{PASSWORDS[user] if password is None else password}"
    return {"Authorization":
            "Basic " + base64.b64encode(text.encode()).decode()}


class Secured(service_module.Service):
    """The service with TLS and users."""

    def __init__(self, folder, secrets, **environment):
        super().__init__(folder, **{
            "LEASE_TLS": f"{secrets}/self.pem",
            "LEASE_USERS": f"{secrets}/users",
            "LEASE_GROUPS": f"{secrets}/groups",
            "LEASE_HOSTS": "w1.localhost"} | environment)
        self.trust = ssl.create_default_context(cafile=f"{secrets}/self.pem")

    def connect(self, timeout=30):
        return http.client.HTTPSConnection(
            "localhost", self.port, timeout=timeout, context=self.trust)

    def ask(self, user, route, **fields):
        return self.post(route, credentials(user), **fields)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """A certificate as make run makes it, passwords and groups."""
    folder = tmp_path_factory.mktemp("secrets")
    subprocess.run(["make", "-f", support.ROOT / "Makefile", "-s",
                    "var/self.pem"], cwd=folder, check=True)
    (folder / "var/self.pem").rename(folder / "self.pem")
    (folder / "users").write_text("".join(
        f"{user}:{hashed(word)}\n" for user, word in PASSWORDS.items()))
    (folder / "groups").write_text(GROUPS)
    return folder


@pytest.fixture(scope="module")
def service(build, secrets, tmp_path_factory):
    with Secured(tmp_path_factory.mktemp("users"), secrets) as running:
        pid = running.pid
        yield running
        assert running.pid == pid
        assert "level=error" not in running.log()


def events(service):
    with contextlib.closing(sqlite3.connect(service.db)) as con:
        return con.execute("SELECT event, actor FROM lease_event WHERE event "
                           "<> 'expired' ORDER BY token").fetchall()


# --- passwords --------------------------------------------------------------------

PATHS = ["/", "/index.htm", "/docs", "/js/main.js", "/openapi.json",
         "/nothing", "/healthz/", "/v1/nothing", *openapi.Api().doc["paths"]]


def refused(answer):
    assert (answer.status, answer.code) == (401, "unauthorized")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", sorted(set(PATHS) - {"/healthz"}))
def test_nothing_but_healthz_is_told_without_a_password(service, path):
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        refused(service.request(method, path, "{}" if method == "POST"
                                else None, JSON))
    assert service.request("HEAD", path).status == 401
    assert service.get("/healthz").status == 200


def test_a_wrong_password_is_as_good_as_none(service):
    for headers in (credentials("alice", "wrong"), credentials("alice", ""),
                    credentials("nobody", "for-alice"),
                    {"Authorization": "Bearer x"}):
        refused(service.post_raw("grant", "{}", headers))
    for headers in (credentials("", ""), {"Authorization": "Basic *"}):
        assert service.post_raw("grant", "{}", headers).status in (400, 401)


def test_no_spelling_of_a_path_comes_past_the_password(service):
    for path in ("/healthz/../v1/leases", "/v1/leases/../../healthz",
                 "/healthz%2f..%2fv1%2fleases", "//v1/leases",
                 "/v1//leases", "/%76%31/leases", "/V1/leases",
                 "/healthz?/../v1/leases", "/v1/leases?/healthz",
                 "/v1/leases;/healthz", "/healthz;/v1/leases",
                 "https://localhost/v1/leases"):
        answer = service.get(path)
        assert b'"leases"' not in answer.body, path
        assert answer.status in (400, 401, 404, 422), path


def test_a_password_is_checked_once_a_minute_not_each_time(service):
    """A hash is slow on purpose, and lighttpd has one thread."""
    con = service.connect()
    start = time.process_time(), time.monotonic()
    for _ in range(300):
        assert service.get("/v1/leases", credentials("bob"),
                           con=con).status == 200
    con.close()
    assert time.monotonic() - start[1] < 20


def test_passwords_reach_no_log_and_names_forge_no_line(service):
    for user, password in (("alice", "gu3ss"), ("a\nlevel=info x\r", "gu3ss"),
                           ("\x1b[2J", "gu3ss"), ("bob", "x" * 500)):
        answer = service.get("/v1/leases", credentials(user, password))
        assert answer.status in (400, 401)
    service.ask("bob", "grant", resource="r", holder="h")
    log = service.log()
    for password in (*PASSWORDS.values(), "gu3ss", "xxxx", "Basic"):
        assert password not in log
    assert not [line for line in log.splitlines() if line.startswith("level")]
    assert "\x1b" not in log and "\r" not in log


# --- groups -----------------------------------------------------------------------

def test_viewers_look_workers_hold_leases_admins_revoke(service):
    needed = {"resource": "r", "token": 1}
    for user, may in (("bob", []), ("w1", ACTIONS[:-1]), ("alice", ACTIONS)):
        for path in ("/", "/docs", "/v1/leases", "/v1/events", "/v1/status"):
            assert service.get(path, credentials(user)).status == 200
        status = service.get("/v1/status", credentials(user)).json
        assert status["user"] == user
        assert [act for act in status["may"] if act in ACTIONS] == may
        for act in ACTIONS:
            fields = {"holder": "h", "ttl": 1, "resource": "r"} \
                if act == "grant" else needed if act != "revoke" else \
                {"resource": "nothing"}
            answer = service.ask(user, act, **fields)
            assert (answer.status == 403) == (act not in may), (user, act)
            if answer.status == 403:
                assert answer.code == "forbidden"
                assert answer.headers["X-Request-Id"]


def test_every_action_is_asked_for_a_group(service):
    """Also those of later: a viewer may nothing that is a POST."""
    for path, (method, *_) in openapi.routes().items():
        if method == "POST":
            answer = service.post_raw(path.removeprefix("/v1/"), b"{}",
                                      credentials("bob"))
            assert (answer.status, answer.code) == (403, "forbidden"), path


def test_a_batch_may_no_more_than_its_parts(service):
    """Who may send operations one by one may send them together, no more."""
    assert service.ask("w1", "grant", resource="b", holder="h").status == 200
    for atomic in (False, True):
        answer = service.ask("w1", "batch", atomic=atomic, ops=[
            {"op": "grant", "resource": "b2", "holder": "h", "ttl": 1},
            {"op": "revoke", "resource": "b"}])
        assert (answer.status, answer.code) == (403, "forbidden")
        assert service.get("/v1/leases?resource=b2",
                           credentials("bob")).json["leases"] == []
        listed = service.get("/v1/leases?resource=b", credentials("bob")).json
        assert len(listed["leases"]) == 1
    before = len(events(service))
    answer = service.ask("alice", "batch", ops=[
        {"op": "revoke", "resource": "b"},
        {"op": "grant", "resource": "b", "holder": "h"},
        {"op": "revoke", "resource": "b", "reason": "enough"}])
    assert [r["status"] for r in answer.json["results"]] == [200, 200, 200]
    assert events(service)[before:] == [
        ("revoked", "alice"), ("granted", "alice"), ("revoked", "alice")]


def test_the_events_say_who_it_was(service):
    before = len(events(service))
    for user in ("w1", "alice"):
        lease = service.ask(user, "grant", resource="e", holder="h").json
        lease = service.ask(user, "renew", resource="e",
                            token=lease["token"]).json
        service.ask(user, "release", resource="e", token=lease["token"])
    service.ask("w1", "grant", resource="e", holder="h")
    service.ask("alice", "revoke", resource="e")
    assert events(service)[before:] == [
        ("granted", "w1"), ("renewed", "w1"), ("released", "w1"),
        ("granted", "alice"), ("renewed", "alice"), ("released", "alice"),
        ("granted", "w1"), ("revoked", "alice")]


@pytest.mark.parametrize("name", [
    "Remote-User", "Remote_User", "REMOTE_USER", "X-Remote-User",
    "X-Forwarded-User", "Auth-Type", "Lease-Groups", "Https", "Script-Name",
    "Content_Length", "Remote-Addr"])
def test_no_header_makes_somebody_else_of_a_client(service, name):
    forged = {name: "alice"}
    assert service.get("/v1/leases", forged).status == 401
    answer = service.post("revoke", credentials("w1") | forged, resource="x")
    assert answer.status == 403
    before = len(events(service))
    lease = service.post("grant", credentials("w1") | forged, resource="f",
                         holder="h").json
    service.ask("w1", "release", resource="f", token=lease["token"])
    assert events(service)[before:] == [("granted", "w1"), ("released", "w1")]


def test_groups_are_read_anew_by_a_reload(build, secrets, tmp_path):
    groups = tmp_path / "groups"
    groups.write_text("viewers: w1")
    with Secured(tmp_path, secrets, LEASE_GROUPS=str(groups)) as service:
        assert service.ask("w1", "revoke", resource="r").status == 403
        groups.write_text("admins: w1")
        service.reload()
        service_module.wait_for(
            lambda: service.ask("w1", "revoke", resource="r").status == 404,
            what="the new group counts")
        assert service.ask("alice", "grant", resource="r",
                           holder="h").status == 403


def test_passwords_without_groups_are_for_everything(build, secrets, tmp_path):
    with Secured(tmp_path, secrets, LEASE_GROUPS="") as service:
        assert service.get("/v1/leases").status == 401
        assert service.ask("bob", "revoke", resource="r").status == 404
        assert service.get("/v1/status",
                           credentials("bob")).json["user"] == "bob"


def test_groups_without_passwords_are_for_nobody(build, secrets, tmp_path):
    """What a web server that asks for no password passes on has no name."""
    for name in ("www", "lighttpd.lua"):
        (tmp_path / name).symlink_to(support.ROOT / name)
    (tmp_path / "lighttpd-users.conf").touch()
    with service_module.Service(
            tmp_path, LEASE_ROOT=str(tmp_path),
            LEASE_GROUPS=f"{secrets}/groups") as service:
        for path in ("/v1/leases", "/v1/status"):
            assert service.get(path, credentials("alice")).code == "forbidden"
        assert service.post("grant", resource="r",
                            holder="h").code == "forbidden"


@pytest.mark.parametrize("text, wrong", [
    ("admins: a\nusers: b", "line 2 must begin with viewers:, workers: or"),
    ("admins a", "line 1 must begin with"), ("Admins: a", "line 1 must"),
    ("# x\n\n: a", "line 3 must begin with"),
    ("admins: a b\nworkers: c b", "b stands in it twice"),
    ("admins: a a", "a stands in it twice"), (None, "No such file")])
def test_a_groups_file_that_is_wrong_is_named_at_the_start(
        build, tmp_path, text, wrong):
    path = tmp_path / "groups"
    if text is not None:
        path.write_text(text)
    done = subprocess.run(
        [support.BUILD / "lease-fcgi", "check"], text=True,
        stderr=subprocess.PIPE,
        env=dict(os.environ, LEASE_DB=str(tmp_path / "lease.db"),
                 LEASE_GROUPS=str(path)))
    assert done.returncode == 1
    assert f'why="{path}: ' in done.stderr and wrong in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("text", [
    "", "# nobody\n", "admins:\n", "\r\nadmins: a\r\n \t\nworkers:\tb  c",
    "viewers: " + " ".join(map(str, range(20_000)))])
def test_a_groups_file_may_be_empty_or_long(build, tmp_path, text):
    path = tmp_path / "groups"
    path.write_text(text)
    subprocess.run([support.BUILD / "lease-fcgi", "check"], check=True,
                   env=dict(os.environ, LEASE_DB=str(tmp_path / "lease.db"),
                            LEASE_GROUPS=str(path)))


# --- TLS --------------------------------------------------------------------------

def handshake(service, version):
    trust = ssl.create_default_context(cafile=service.environment["LEASE_TLS"])
    trust.set_ciphers("ALL:@SECLEVEL=0")
    trust.minimum_version = trust.maximum_version = version
    with socket.create_connection(("localhost", service.port), 5) as plain, \
            trust.wrap_socket(plain, server_hostname="localhost") as secure:
        return secure.version()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_is_of_today(service):
    assert handshake(service, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    assert handshake(service, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(service, old)


def test_http_without_tls_is_cut_off_at_once_and_unanswered(service):
    start = time.monotonic()
    said = service.raw(b"GET /v1/leases HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"HTTP" not in said
    assert time.monotonic() - start < 5
    assert service.get("/healthz").status == 200


def test_under_tls_a_page_must_have_come_by_tls(service):
    for origin, status in ((f"https://localhost:{service.port}", 200),
                           (f"http://localhost:{service.port}", 403),
                           ("https://localhost", 403), ("null", 403)):
        answer = service.get("/v1/leases", credentials("bob") | {
            "Host": f"localhost:{service.port}", "Origin": origin})
        assert answer.status == status, origin


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_http_is_1_1_whatever_is_offered(service, version, tmp_path):
    """Refused before the body is read, too, which HTTP/2 loses at times."""
    large = tmp_path / "large"
    large.write_text("x" * 2_000_000)

    def ask(*more):
        return subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "-w",
             "%{http_version} %{http_code}", version, "--cacert",
             service.environment["LEASE_TLS"], *more,
             f"https://localhost:{service.port}/v1/leases"],
            text=True, stdout=subprocess.PIPE).stdout
    bob = ("-u", "bob:" + PASSWORDS["bob"])
    assert ask() == "1.1 401"
    assert ask("-d", f"@{large}") == "1.1 413"
    assert ask(*bob) == "1.1 200"
    assert ask(*bob, "-H", "Host: evil.example") == "1.1 421"
    assert ask(*bob, "-H", "Origin: https://evil.example") == "1.1 403"


@pytest.mark.parametrize("setting, value, said", [
    ("LEASE_TLS", "/missing/pem", "/missing/pem"),
    ("LEASE_USERS", "/missing/users", "/missing/users: No such file"),
    ("LEASE_USERS", "/etc", "/etc: Is a directory"),
    ("LEASE_USERS", "", "LEASE_GROUPS needs it"),
])
def test_without_what_secures_it_it_does_not_start(
        build, secrets, tmp_path, setting, value, said):
    service = Secured(tmp_path, secrets, **{setting: value, "LC_ALL": "C"})
    service.start()
    assert service.process.wait(10) != 0
    assert said in service.log()
    service.process = None


def test_without_its_passwords_it_lets_nobody_in(build, secrets, tmp_path):
    users = tmp_path / "users"
    users.write_text((secrets / "users").read_text())
    with Secured(tmp_path, secrets, LEASE_USERS=str(users)) as service:
        users.unlink()
        assert service.get("/v1/leases", credentials("alice")).status == 401


# --- the command line, make run, and the page -------------------------------------

def test_the_command_line_says_who_it_is(service, tmp_path):
    def lease(verb, user, *more):
        word = tmp_path / user
        word.write_text(PASSWORDS[user] + "\n")
        return subprocess.run(
            [support.BUILD / "lease", verb, "-r", "cli", *more, "--user", user,
             "--password-file", word, "--url",
             f"https://localhost:{service.port}",
             "--cacert", service.environment["LEASE_TLS"]],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    before = len(events(service))
    assert lease("grant", "w1").returncode == 0
    for verb, user in (("grant", "bob"), ("revoke", "w1")):
        done = lease(verb, user)
        assert done.returncode not in (0, 75, 76)
        assert "may not" in done.stderr
    assert lease("revoke", "alice").returncode == 0
    assert events(service)[before:] == [("granted", "w1"),
                                        ("revoked", "alice")]


def test_make_run_takes_tls_users_and_groups(build, secrets, tmp_path):
    service = Secured(tmp_path, secrets)    # not started: only asks
    process = subprocess.Popen(
        ["make", "-s", "run", f"PORT={service.port}", f"DB={service.db}",
         *(f"{name}={secrets}/{file}" for name, file in (
             ("TLS", "self.pem"), ("USERS", "users"), ("GROUPS", "groups"))),
         *([f"SAN={support.SAN}"] if support.SAN else [])],
        cwd=support.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={k: v for k, v in os.environ.items()
             if not k.startswith(("LEASE", "MAKE", "MFLAGS"))},
        start_new_session=True)
    try:
        service.lighttpd = process.pid
        service_module.wait_for(service.ready, 60, "make run answers")
        assert service.ask("bob", "grant", resource="r",
                           holder="h").status == 403
        assert service.ask("w1", "grant", resource="r",
                           holder="h").status == 200
        sockets = [line.split()[-1] for line
                   in Path("/proc/net/unix").read_text().splitlines()
                   if line.endswith("-0") and "/leasehold." in line]
        for path in filter(os.path.exists, sockets):
            folder = os.stat(os.path.dirname(path))
            assert stat.S_IMODE(folder.st_mode) == 0o700
    finally:
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=30)[0].decode()
    assert f"https://127.0.0.1:{service.port}/" in said


@pytest.mark.parametrize("options, said", [
    (["USERS=/missing/users"], "/missing/users: No such file"),
    (["GROUPS=/dev/null"], "LEASE_GROUPS needs it"),
])
def test_make_run_names_what_is_missing(build, tmp_path, options, said):
    done = subprocess.run(
        ["make", "-s", "run", f"PORT={service_module.free_port()}",
         f"DB={tmp_path}/lease.db", *options,
         *([f"SAN={support.SAN}"] if support.SAN else [])],
        cwd=support.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=60,
        env={k: v for k, v in os.environ.items()
             if not k.startswith(("LEASE", "MAKE", "MFLAGS"))})
    assert done.returncode and said in done.stdout


def test_a_certificate_for_trying_out_is_for_this_user_alone(secrets):
    pem = secrets / "self.pem"
    assert stat.S_IMODE(pem.stat().st_mode) == 0o600
    said = subprocess.run(["openssl", "x509", "-in", pem, "-noout", "-ext",
                           "subjectAltName"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    assert "DNS:localhost" in said and "127.0.0.1" in said


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser.start(tmp_path_factory.mktemp("chromium"),
                           "--ignore-certificate-errors")
    yield driver
    driver.quit()


@pytest.mark.browser
def test_the_page_works_behind_a_password_and_shows_what_one_may(
        service, driver):
    """Each user under a host name of its own: a browser keeps one password
    for a host."""
    for host, user, seen in (
            ("localhost", "bob", set()),
            ("w1.localhost", "w1", {"renew", "release"}),
            ("127.0.0.1", "alice", {"renew", "release", "revoke"})):
        service.ask("alice", "grant", resource=user, holder="h", ttl=600)
        at = f"{host}:{service.port}"
        driver.get(f"https://{at}/")
        assert "Leasehold" not in driver.page_source
        # As if typed into the browser's own question.
        word = urllib.parse.quote(PASSWORDS[user])
        driver.get(f"https://{user}:{word}@{at}/favicon.svg")
        page = browser.Page(driver, f"https://{at}").look().open("/")
        page.wait(lambda user=user, page=page: page.row(user))
        page.find(".row").click()
        page.wait(lambda page=page, seen=seen: seen == {
            act for act in ("renew", "release", "revoke")
            if page.find(f'[data-act="{act}"]').is_displayed()})
        assert page.find("#open-grant").is_displayed() == bool(seen)


@pytest.mark.browser
def test_buttons_come_and_go_with_what_one_may(driver, secrets, tmp_path):
    groups = tmp_path / "groups"
    groups.write_text("workers: w1\n")
    with Secured(tmp_path, secrets, LEASE_GROUPS=str(groups)) as service:
        at = f"localhost:{service.port}"
        word = urllib.parse.quote(PASSWORDS["bob"])
        driver.get(f"https://bob:{word}@{at}/favicon.svg")
        page = browser.Page(driver, f"https://{at}").look().open("/")
        button = page.find("#open-grant")
        page.wait(lambda: not button.is_displayed())
        groups.write_text("workers: bob\n")
        service.reload()
        page.wait(button.is_displayed, 60)
        groups.write_text("workers: w1\n")
        service.reload()
        page.wait(lambda: not button.is_displayed(), 60)
