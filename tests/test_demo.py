"""The demo does what it promises: it is the example that people copy."""

import os
import subprocess

import pytest

import support
from service import free_port

# The demo is for people; a shell does not bear a sanitizer preloaded.
pytestmark = pytest.mark.plain


def play(command, **environment):
    """Run the demo; exit code and story."""
    done = subprocess.run(
        command, cwd=support.ROOT, env=dict(os.environ, **environment),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=100)
    print(done.stdout)
    return done.returncode, done.stdout


@pytest.mark.limit(100)
def test_with_the_fence_the_sleeper_is_refused_and_no_line_is_lost(service):
    code, story = play(["tests/example/demo"], PORT=str(service.port),
                       DB=str(service.db), LEASE=support.extension())
    assert code == 0
    assert "WRITE REFUSED" in story
    assert "lease_guard: token is stale" in story
    assert "the fence held" in story


@pytest.mark.limit(100)
def test_without_the_fence_a_write_is_lost_also_with_a_service_of_its_own():
    code, story = play(["make", "-s", "demo", "FENCE=off",
                        f"PORT={free_port()}"])
    assert code == 0
    assert "no service runs" in story
    assert "LOST UPDATE" in story


def test_a_service_on_another_file_is_told_apart(service, tmp_path):
    code, story = play(["tests/example/demo"], PORT=str(service.port),
                       DB=str(tmp_path / "other.db"),
                       LEASE=support.extension())
    assert code == 1
    assert "works on another file" in story
