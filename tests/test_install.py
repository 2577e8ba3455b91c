"""make install: what it puts where, and that it runs from there as
leasehold.service says."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess

import pytest

import support
from service import Service, wait_for

pytestmark = pytest.mark.plain


def make(target, *settings):
    return subprocess.run(["make", target, *settings], cwd=support.ROOT,
                          capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("install") / "usr"
    done = make("install", f"PREFIX={path}")
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def unit(prefix):
    """The lines of leasehold.service, each name with its values."""
    lines = {}
    path = prefix / "lib/systemd/system/leasehold.service"
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            lines.setdefault(name, []).append(value)
    return lines


def shell(command):
    """The words of a command, as systemd reads them."""
    return shlex.split(command.replace("$$", "$"))


class Installed(Service):
    """The service as the unit starts it, with a port, folder and database of
    the test's."""

    def __init__(self, folder, prefix, **environment):
        super().__init__(folder, **environment)
        self.unit = unit(prefix)

    def environ(self):
        said = dict(e.split("=", 1) for e in self.unit["Environment"])
        return said | {
            "PATH": os.environ["PATH"], "LEASE_PORT": str(self.port),
            "LEASE_RUN": self.run, "LEASE_DB": str(self.db)
        } | self.environment

    def begin(self, command):
        """Run it as systemd does, for what is the main process."""
        return subprocess.Popen(shell(command), env={
            "PATH": os.environ["PATH"], "MAINPID": str(self.lighttpd)})

    def spawn(self):
        env = self.environ()
        for command in self.unit["ExecStartPre"]:
            subprocess.run(command.split(), env=env, check=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.unit["ExecStart"][0].split(), env=env, cwd="/",
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        self.lighttpd = self.process.pid
        return self


def test_the_installed_service_runs_and_shares_its_leases(prefix, tmp_path):
    with Installed(tmp_path, prefix) as service:
        lease = service.post("grant", resource="r", holder="a").json
        for path in ("/", "/docs", "/openapi.json", "/js/main.js"):
            assert service.get(path).status == 200
        assert service.get("/nothing").code == "not_found"
        said = subprocess.run(
            ["sqlite3", service.db, f".load {prefix}/lib/leasehold/lease",
             "SELECT holder, token FROM lease_active"],
            capture_output=True, text=True, check=True).stdout
        assert said == f"a|{lease['token']}\n"
        said = subprocess.run(
            [prefix / "bin/lease", "check", "--resource", "r", "--token",
             str(lease["token"]), "--url", f"http://127.0.0.1:{service.port}"],
            capture_output=True, text=True)
        assert said.returncode == 0, said


@pytest.fixture(params=["", "POST /v1/grant HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Length: 9\r\n\r\n{"])
def installed(request, prefix, tmp_path):
    """The service, with a client that holds a connection, or none."""
    with Installed(tmp_path, prefix) as service, socket.socket() as client:
        service.held = bool(request.param)
        if service.held:
            client.connect(("127.0.0.1", service.port))
            client.sendall(request.param.encode())
            # Of what came before it lighttpd knows when this is answered.
            assert service.get("/healthz").status == 200
        yield service


def test_it_is_stopped_whoever_holds_a_connection(installed):
    with installed.begin(installed.unit["ExecStop"][0]) as stopping:
        if not installed.held:
            assert installed.process.wait(20) == 0
        assert stopping.wait(20) == 0
    # What systemd does with what is left.
    assert not {"KillMode", "KillSignal"} & installed.unit.keys()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(installed.lighttpd, signal.SIGTERM)
    assert installed.process.wait(20) == int(installed.held)
    assert installed.unit["SuccessExitStatus"] == ["1"]
    wait_for(lambda: installed.log().count("event=started")
             == installed.log().count("event=stopped"), what="it stops")


def test_it_is_reloaded_whoever_holds_a_connection(installed):
    before = installed.pid
    for command in installed.unit["ExecReload"][1:]:
        assert installed.begin(command).wait(20) == 0
    wait_for(lambda: installed.pid not in (None, before), what="a new service")
    installed.wait_ready()
    assert installed.process.poll() is None


@pytest.mark.parametrize("setting", ["LEASE_TLS", "LEASE_USERS", "LEASE_GROUPS"])
def test_what_is_missing_is_told_before_a_start_and_before_a_reload(
        prefix, tmp_path, setting):
    service = Installed(tmp_path, prefix, **{setting: "/missing"})
    service.run = str(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        service.spawn()
    look = service.unit["ExecReload"][0].split()
    assert subprocess.run(look, env=service.environ()).returncode != 0


def test_a_database_in_tmp_outlives_the_service(prefix):
    assert not {"PrivateTmp", "DynamicUser"} & unit(prefix).keys()


def test_systemd_has_no_objection(prefix):
    """To names and values that it does not know, programs that are not there."""
    done = subprocess.run(
        ["systemd-analyze", "verify",
         prefix / "lib/systemd/system/leasehold.service"],
        capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines()
            if "leasehold" in line] == []


def test_nothing_installed_knows_where_it_was_built(prefix):
    files = [f for f in prefix.rglob("*") if f.is_file()]
    assert len(files) > 50
    for file in files:
        data = file.read_bytes()
        # Those of the compiler are for debuggers.
        assert data.startswith(b"\x7fELF") \
            or str(support.ROOT).encode() not in data, file
        program = file.name in ("lease-fcgi", "lease") and "share" not in file.parts
        assert file.stat().st_mode & 0o777 == (0o755 if program else 0o644), file
    assert "/usr/local" not in str(unit(prefix))


def test_what_is_built_is_not_built_again(prefix):
    """By another user, whose it would be."""
    done = make("install", f"PREFIX={prefix}")
    assert "Nothing to be done" in done.stdout, done.stdout


def test_of_the_pages_there_is_what_belongs_to_them(prefix):
    def files(top):
        return {f.relative_to(top) for f in top.rglob("*") if f.is_file()}
    there, ours = files(prefix / "lib/leasehold/www"), files(support.ROOT / "www")
    assert {str(f) for f in ours - there if not re.search(
        "~$|^[.#]", f.name)} == set()
    assert {f.suffix for f in there} == {".htm", ".css", ".js", ".json", ".svg"}
    assert (prefix / "share/doc/leasehold/LICENSE").exists()


def test_it_is_staged_and_removed_again(tmp_path):
    stage = tmp_path / "a stage & more"
    where = (f"DESTDIR={stage}", "PREFIX=/opt/lease-hold_2.0+x")
    assert make("install", *where).returncode == 0
    top = stage / "opt/lease-hold_2.0+x"
    assert unit(top)["ExecStartPre"][0] == \
        "/opt/lease-hold_2.0+x/lib/leasehold/lease-fcgi check"
    (top / "bin/other").touch()
    (top / "lib/leasehold/lease.db").touch()    # as with PREFIX=/var
    assert make("uninstall", *where).returncode == 0
    assert {f for f in top.rglob("*") if f.is_file()} == {
        top / "bin/other", top / "lib/leasehold/lease.db"}
    (top / "lib/leasehold/lease.db").unlink()
    for _ in range(2):
        done = make("uninstall", *where)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert not (top / "lib/leasehold").exists()
    assert not (top / "share/doc/leasehold").exists()


def test_a_staged_one_asks_for_nothing_that_runs_it(tmp_path):
    def asks(*where):
        return "dpkg-query" in make("-n", "install", *where).stdout
    assert asks("PREFIX=/opt")
    assert not asks("PREFIX=/opt", f"DESTDIR={tmp_path}")


@pytest.mark.parametrize("target", ["install", "uninstall"])
@pytest.mark.parametrize("prefix", [
    "", "here", "/a b", "/a&b", "/a\\b", "/a|b", "/a%b", "/a'b", '/a"b', "/a;b",
    "/a\nb"])
def test_a_prefix_that_something_would_misread_is_refused(
        tmp_path, target, prefix):
    done = make(target, f"PREFIX={prefix}", f"DESTDIR={tmp_path}/")
    assert done.returncode == 2 and "PREFIX must be absolute" in done.stderr
    assert list(tmp_path.iterdir()) == []

