"""The power fails at every moment of a database's life: what may be left of
its files is whole, holds all that was acknowledged and nothing half done, and
the next token is above every one answered. The program is in tests/power; its
long form is part of make soak."""

import re
import subprocess
import tempfile

import pytest

import support

pytestmark = [pytest.mark.plain, pytest.mark.limit(300)]

SOUND = ["service", "wal", "delete", "truncate", "persist", "fence",
         "fence-delete"]


def power(build, *arguments):
    """Run it on a disk in memory; what is kept of a failure goes, too."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        done = subprocess.run(
            [build / "power", *map(str, arguments)], text=True,
            timeout=support.patience(280),
            env={"TMPDIR": folder}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
    print(done.stdout)
    return done.returncode, done.stdout


def test_nothing_is_lost_whenever_the_power_fails(build):
    code, said = power(build, 0, 1)
    assert code == 0
    assert [line.split(":")[0] for line in said.splitlines()] == SOUND
    images = [int(n) for n in re.findall(r"(\d+) of them distinct", said)]
    assert len(images) == len(SOUND) and images[-1] > 1000
    assert re.search(r"[1-9]\d* of a second failure: 0 bad$", said)


@pytest.mark.parametrize("way, what", [
    ("normal", "issuing a token again"), ("off", "damaged"),
    ("delete-full", "issuing a token again"), ("delete-off", "half done"),
    ("lies", "damaged")])
def test_what_is_not_safe_is_found_out(build, way, what):
    """Less than the README asks for, and a disk that lies."""
    code, said = power(build, 0, 1, way)
    assert code == 1
    assert re.search(rf"[1-9]\d* bad.*, [1-9]\d* {what}", said)
