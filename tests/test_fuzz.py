"""What the fuzz targets were given before (make fuzz searches for more): the
requests, bodies, calls and database files that are kept."""

import re
import subprocess

import pytest

import support

FUZZ = support.ROOT / "tests" / "fuzz"


@pytest.mark.parametrize("target", ["request", "json", "sql", "file"])
def test_what_was_found_before_breaks_nothing(build, target):
    """C144"""
    kept = [FUZZ / "corpus" / target, *sorted((FUZZ / "seeds" / target).glob("*"))]
    done = subprocess.run([build / "fuzz" / target, *kept], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.search(r"^(\d+) inputs$", done.stdout, re.M)[1]) > 50
