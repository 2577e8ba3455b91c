"""Programs in other languages load the extension: each is granted, is
refused, renews, checks inside a transaction, reads lease_active, and closes.
The programs, in tests/hosts, are the examples of how it is done."""

import shutil
import subprocess

import pytest

import support
from support import ROOT

HOSTS = ROOT / "tests" / "hosts"
NODE = ROOT / "build/node/node_modules"
BINDING = NODE / "better-sqlite3/build/Debug/better_sqlite3.node"
JNI = "/usr/lib/jni:/usr/lib/x86_64-linux-gnu/jni:/usr/lib/aarch64-linux-gnu/jni"

SAID = """granted 1
refused NULL
renewed 2
checked 1
active r w1 2
closed
"""

plain = pytest.mark.plain  # other languages do not bear a sanitizer inside


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, timeout=110,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    return done.stdout


@plain
@pytest.mark.parametrize("command", [
    ["/usr/bin/python3", "host.py"], ["perl", "host.pl"],
    ["tclsh", "host.tcl"], ["ruby", "host.rb"], ["Rscript", "host.R"],
    ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
     f"-Djava.library.path={JNI}", "-cp", "/usr/share/java/sqlite-jdbc.jar",
     "Host.java"]], ids=lambda command: command[0].split("/")[-1])
def test_a_host_in_another_language_uses_leases(build, tmp_path, command):
    """C085"""
    assert shutil.which(command[0]), f"{command[0]} is missing: make test"
    command = command[:-1] + [HOSTS / command[-1]]
    assert run(*command, build / "lease", tmp_path / "lease.db") == SAID


@plain
def test_the_shell_uses_leases(build, tmp_path):
    """C189"""
    said = support.shell((HOSTS / "host.sql").read_text(),
                         tmp_path / "lease.db")
    assert said == SAID


@plain
def test_node_uses_leases(build, tmp_path):
    assert BINDING.exists(), f"{BINDING} is missing: make test"
    said = run("node", HOSTS / "host.js", build / "lease",
               tmp_path / "lease.db", BINDING, env=support.host_env(
                   NODE_PATH=str(NODE)))
    assert said == SAID


@plain
def test_php_uses_leases(build, tmp_path):
    said = run("php", "-d", f"sqlite3.extension_dir={build}",
               HOSTS / "host.php", "lease.so", tmp_path / "lease.db")
    assert said == SAID


@plain
def test_go_uses_leases(build, tmp_path):
    env = support.host_env(
        GO111MODULE="off", GOPATH="/usr/share/gocode",
        GOFLAGS="-tags=libsqlite3", GOCACHE=str(ROOT / "build/go"))
    said = run("go", "run", HOSTS / "host.go", build / "lease",
               tmp_path / "lease.db", env=env)
    assert said == SAID


# --- C: what only C can see ---------------------------------------------------------

WARN = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g"]


@pytest.fixture(scope="session")
def host(tmp_path_factory, build):
    """A program in C that loads the extension."""
    program = tmp_path_factory.mktemp("host") / "host"
    said = run("gcc", *WARN, "-o", program, HOSTS / "host.c", "-lsqlite3",
               "-ldl")
    assert said == ""
    return program


@pytest.fixture(scope="session")
def linked(tmp_path_factory, build):
    """The same with the engine in it, all under a sanitizer."""
    program = tmp_path_factory.mktemp("host") / "linked"
    said = run("gcc", *WARN, "-O1", "-fsanitize=address,undefined",
               "-fno-sanitize-recover=all", "-Wno-overlength-strings",
               "-DHOST_LINKED", "-DSQLITE_CORE", f"-I{ROOT}/build", "-o",
               program, HOSTS / "host.c", *(ROOT / "ext").glob("*.c"),
               ROOT / "build/sql.c", "-lsqlite3", "-ldl")
    assert said == ""
    return program


@plain
def test_a_program_in_c_uses_leases(host, build, tmp_path):
    assert run(host, "load", build / "lease", tmp_path / "lease.db") == SAID


@plain
def test_a_program_that_has_the_engine_in_it_uses_leases(linked, tmp_path):
    """C084"""
    assert run(linked, "load", "", tmp_path / "lease.db") == SAID


@plain
def test_plain_close_is_ok_after_every_function_in_every_state(host, build):
    assert run(host, "close", build / "lease") == "closed, 0 bytes in use\n"


@plain
@pytest.mark.parametrize("loaded", [False, True])
def test_nothing_leaks_and_two_engines_get_along(linked, build, loaded):
    """C084: linked into the program, and loaded into it as well."""
    extension = build / "lease" if loaded else ""
    assert run(linked, "close", extension) == "closed, 0 bytes in use\n"


@plain
def test_without_memory_a_call_fails_and_leaves_nothing_half_done(linked):
    said = run(linked, "oom", "", 211)
    assert said.count("failed up to allocation") == 2, said


@plain
def test_an_sqlite_that_is_too_old_is_told_so(host, build):
    """C086: its API table holds nothing that the refusal does not need."""
    assert run(host, "old", build / "lease.so") == \
        "1 lease: needs SQLite 3.37.0 or newer, this is 3.36.0\n"


@plain
def test_the_extension_brings_no_sqlite_and_needs_little_of_the_system(build):
    """C085, C086"""
    said = run("readelf", "-d", build / "lease.so")
    assert [line.split("[")[1].rstrip("]") for line in said.splitlines()
            if "NEEDED" in line] in (["libc.so.6"], [])
    said = run("nm", "-D", build / "lease.so")
    names = [line.split()[-1] for line in said.splitlines()]
    assert not [n for n in names if n.startswith("sqlite3_")
                and n != "sqlite3_lease_init"]
    versions = {tuple(map(int, n.split("@GLIBC_")[1].split(".")))
                for n in names if "@GLIBC_" in n}
    assert max(versions) <= (2, 34)
