"""`lease` for scripts: one line of output, or JSON, and an exit status that
tells refusal from error. The same over HTTP and on a file.
"""

import json
import subprocess
import time

import pytest

import cli
import support
from service import wait_for


@pytest.fixture(params=["--db", "--url"])
def place(request, build, tmp_path):
    if request.param == "--db":
        return cli.Place("--db", tmp_path / "lease.db")
    service = request.getfixturevalue("service")
    return cli.Place("--url", f"http://127.0.0.1:{service.port}")


def test_each_verb_prints_one_line_and_tells_refusal_from_error(place):
    """C189"""
    def says(*words):
        done = place.lease(*words)
        return done.returncode, done.stdout

    assert says("grant", "-r", "a", "-t", 30) == (0, "1\n")
    assert says("grant", "-r", "a") == (75, "")
    assert says("renew", "-r", "a", "-k", 1) == (0, "2\n")
    status, left = says("check", "-r", "a", "-k", 2)
    assert status == 0 and 0 < float(left) <= 30
    assert says("check", "-r", "a", "-k", 2, "-m", 31) == (76, "")
    assert says("check", "-r", "a", "-k", 99) == (76, "")
    assert says("release", "-r", "a", "-k", 2) == (0, "released\n")
    assert says("release", "-r", "a", "-k", 2) == (76, "released\n")
    assert says("renew", "-r", "a", "-k", 2) == (76, "")
    assert says("release", "-r", "a", "-k", 99) == (76, "")
    assert says("grant", "-r", "a", "-o", "me") == (0, "4\n")
    assert says("revoke", "-r", "a", "--reason", "so") == (0, "1\n")
    assert says("revoke", "-r", "a") == (76, "")
    status, line = says("status")
    assert status == 0 and " active=0 " in line and " token=5" in line


def test_what_a_refusal_is_about_stands_on_stderr(place):
    place.lease("grant", "-r", "a", "-o", "w1")
    assert "held by w1, for " in place.lease("grant", "-r", "a").stderr
    place.lease("revoke", "-r", "a")
    assert "revoked" in place.lease("renew", "-r", "a", "-k", 1).stderr


@pytest.mark.parametrize("words, about", [
    (["grant", "-r", "a", "-t", "0.01"], "0.1 to 86400"),
    (["grant", "-r", "a", "-t", "30abc"], "--ttl"),
    (["grant", "-r", "a", "-t", "nan"], "--ttl"),
    (["grant", "-r", "a", "-t", "0x20"], "--ttl"),
    (["grant", "-r", "a", "-t", " 30"], "--ttl"),
    (["grant", "-r", "a", "-c", "1.5"], "--capacity"),
    (["grant", "-r", ""], "resource"),
    (["grant", "-r", "x" * 513], "512 bytes"),
    (["grant"], "needs --resource"),
    (["renew", "-r", "a"], "needs --token"),
    (["renew", "-r", "a", "-k", "1", "--data", "x"], "takes no --data"),
    (["grant", "-r", "a", "--bogus"], "--bogus"),
    (["grant", "-r", "a", "more"], "more"),
    (["grant", "-r", "a", "--db", "x", "--url", "y"], "exclude"),
    (["run", "-r", "a"], "COMMAND"),
    (["run", "-r", "a", "-t", "10", "-g", "6", "true"], "half"),
    (["list", "-l", "0"], "--limit must be 1 or more"),
    (["fly"], "fly"),
])
def test_wrong_input_is_64_and_says_what_is_wrong(place, words, about):
    done = place.lease(*words)
    assert done.returncode == 64
    assert about in done.stderr and done.stdout == ""


def test_what_does_not_work_is_69(place, tmp_path):
    for away in (cli.Place("--url", "http://127.0.0.1:1"),
                 cli.Place("--db", tmp_path / "none" / "lease.db")):
        for verb in ("grant", "revoke"):
            done = away.lease(verb, "-r", "a")
            assert done.returncode == 69 and done.stderr and not done.stdout


def test_only_a_grant_makes_a_database(tmp_path, build):
    place = cli.Place("--db", tmp_path / "typo.db")
    assert place.lease("list").returncode == 69
    assert not (tmp_path / "typo.db").exists()
    (tmp_path / "typo.db").touch()
    done = place.lease("list")
    assert done.returncode == 69 and "no leases" in done.stderr
    assert place.lease("grant", "-r", "a").returncode == 0
    assert place.lease("list").stdout.count("\n") == 1


def test_json_is_what_the_service_answers(place):
    lease = json.loads(place.lease("grant", "-r", "a", "-o", "w1", "--data",
                                   'say "hi"\n', "--json").stdout)
    assert lease["token"] == 1 and lease["data"] == 'say "hi"\n'
    held = place.lease("grant", "-r", "a", "--json")
    assert held.returncode == 75 and held.stderr == ""
    assert json.loads(held.stdout)["holders"][0]["holder"] == "w1"
    assert json.loads(place.lease("list", "--json").stdout)["epoch"] == 1
    assert json.loads(place.lease("status", "--json").stdout)["version"]


def test_a_list_has_all_pages_and_one_line_a_lease(place):
    for name in ("x/2", "x/1", "y é"):
        place.lease("grant", "-r", name, "-o", "w", "-d", "1\t2")

    def names(*words):
        lines = place.lease("list", *words).stdout.splitlines()
        assert all(line.split("\t")[6] == '"1\\t2"' for line in lines)
        return [line.split("\t")[0] for line in lines]

    assert names() == ["x/1", "x/2", "y é"]
    assert names("--prefix", "x/") == ["x/1", "x/2"]
    assert names("--limit", 1) == ["x/1"]
    assert names("-r", "y é", "-o", "w") == ["y é"]
    assert names("-o", "nobody") == []


def test_a_list_longer_than_a_page_is_complete(db, tmp_path):
    con = db()
    con.execute("BEGIN IMMEDIATE")
    con.execute("""
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2345)
        SELECT count(lease_grant(printf('r%05d', i), 'w', 60)) FROM n
        """).fetchall()
    con.execute("COMMIT")
    place = cli.Place("--db", tmp_path / "lease.db")
    lines = place.lease("list").stdout.splitlines()
    assert [line[:6] for line in lines] == [f"r{i:05}" for i in
                                            range(1, 2346)]
    events = place.lease("events").stdout.splitlines()
    assert [int(line.split("\t")[0]) for line in events] \
        == list(range(1, 2346))
    some = place.lease("events", "-r", "r02000", "--after", "1000").stdout
    assert some.startswith("2000\t") and some.count("\n") == 1
    assert place.lease("events", "-l", 1500).stdout.count("\n") == 1500


def test_events_and_watch_tell_what_happened(place):
    place.lease("grant", "-r", "a", "-o", "w1", "-t", 30)
    place.lease("renew", "-r", "a", "-k", 1)
    lines = place.lease("events").stdout.splitlines()
    assert [line.split("\t")[::2] for line in lines] == [
        ["1", "granted", "w1", ""], ["2", "renewed", "w1", ""]]
    assert json.loads(place.lease("events", "--after", 1,
                                  "--json").stdout)["event"] == "renewed"
    assert place.lease("events", "-a", 77).returncode == 76
    with subprocess.Popen([cli.LEASE, "watch", *place.where], text=True,
                          stdout=subprocess.PIPE, env=cli.environ()) as watch:
        # Until it watches, nothing may happen that it should tell.
        time.sleep(0.5)
        place.lease("revoke", "-r", "a", "--reason", "so it is")
        line = watch.stdout.readline()
        assert line.split("\t")[2:] == ["revoked", "a", "w1", "1",
                                        "so it is\n"]
        place.lease("grant", "-r", "b")
        assert "\tgranted\tb\t" in watch.stdout.readline()
        watch.kill()


def test_the_same_request_id_is_the_same_lease(place):
    words = ["grant", "-r", "a", "-o", "w", "--request-id", "k1"]
    assert place.lease(*words).stdout == "1\n"
    assert place.lease(*words).stdout == "1\n"
    assert place.lease(*words, "-t", 5).returncode == 64
    place.lease("release", "-r", "a", "-k", 1)
    assert place.lease(*words).returncode == 76


def test_a_grant_waits_for_the_end_of_the_holder(place):
    place.lease("grant", "-r", "a", "-t", 0.4)
    done = place.lease("grant", "-r", "a", "--wait", 5)
    assert done.returncode == 0
    before = cli.boot_ms()
    assert place.lease("grant", "-r", "a", "-w", 0.3).returncode == 75
    assert cli.boot_ms() - before >= 290
    before = cli.boot_ms()
    assert place.lease("grant", "-r", "a", "-w", 9, "-n").returncode == 75
    assert cli.boot_ms() - before < support.patience(5000)


def test_who_waits_gets_what_is_given_back_before_its_time(place):
    place.lease("grant", "-r", "a", "-t", 60)
    with place.run("-r", "a", "-w", 60, command=["echo", "mine"]) as job:
        wait_for(lambda: len(job.family()) == 1)
        place.lease("release", "-r", "a", "-k", 1)
        given = cli.boot_ms()
        assert job.out()[0] == "mine\n"
        assert cli.boot_ms() - given < support.patience(5000)


def test_options_go_before_the_environment(tmp_path, build):
    env = cli.environ(LEASE_DB=str(tmp_path / "a.db"))
    run = [cli.LEASE, "grant", "-r", "a"]

    def status(*more, **also):
        return subprocess.run([*run, *more], env=env | also,
                              capture_output=True, text=True).returncode

    assert status() == 0 and (tmp_path / "a.db").exists()
    assert status("--db", str(tmp_path / "b.db")) == 0
    assert status(LEASE_URL="http://127.0.0.1:1") == 64
    assert status("--url", "http://127.0.0.1:1") == 69
    assert status(LEASE_URL="") == 75   # as good as not set: a is held
    assert status("--db", "") == 64
    env = cli.environ(LEASE_URL="http://127.0.0.1:1", LEASE_DB="")
    assert status() == 69
    assert status("--url", "127.0.0.1:1") == 69
    for url in ("ftp://127.0.0.1:1", "file:///etc/passwd", "://", ""):
        assert status("--url", url) == 64


def test_a_token_is_never_told_before_it_is_stored(db, tmp_path):
    con = db()
    con.execute("SELECT lease_init()").fetchall()
    con.execute("BEGIN IMMEDIATE")
    place = cli.Place("--db", tmp_path / "lease.db")
    done = place.lease("grant", "-r", "a", "--timeout", 0.3)
    assert done.returncode == 69 and done.stdout == ""
    assert "locked" in done.stderr
    con.execute("ROLLBACK")
    assert place.lease("grant", "-r", "a").stdout == "1\n"


def test_help_names_every_verb_and_every_option_of_a_verb(build):
    def helped(*words):
        return subprocess.run([cli.LEASE, *words], capture_output=True,
                              text=True, check=True).stdout

    verbs = ["run", "grant", "renew", "release", "check", "revoke", "list",
             "events", "watch", "status"]
    assert [line.split()[0] for line in helped("--help").splitlines()
            if line.startswith("  ")][:len(verbs)] == verbs
    for verb in verbs:
        assert f"lease {verb}" in helped(verb, "--help")
        assert "--url" in helped(verb, "--help")
    # revoke and list without --holder mean everybody.
    assert "run, grant: host and process" in helped("revoke", "--help")
    assert helped("--version").startswith("lease ")
