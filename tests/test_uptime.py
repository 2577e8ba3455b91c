"""Nothing grows with the hours: the short form of tests/uptime.py, and that the
long one would notice."""

import dataclasses

import pytest

import support
import uptime


@pytest.mark.limit(120)
def test_with_the_hours_nothing_grows_and_nothing_is_lost(build, tmp_path):
    """C181"""
    with uptime.Uptime(tmp_path, 8, 4, seed=1) as long:
        long.run()
    print(*long.parts, *long.problems, sep="\n")
    assert not long.problems
    assert sum(part.calls for part in long.parts) > support.scaled(1500)


@pytest.mark.plain
@pytest.mark.parametrize("what, more", [
    ("memory", 16 << 20), ("descriptors", 30), ("log", 16 << 20),
    ("file", 8 << 20), ("p50", 20)])
def test_what_grows_is_found(tmp_path, what, more):
    part = uptime.Part(1, 9 << 20, 44, 4 << 20, 8 << 20, 1.0, 5.0)
    grown = dataclasses.replace(part, **{what: getattr(part, what) + more})
    long = uptime.Uptime(tmp_path, 4, 4, seed=1)
    long.parts = [part] * 4
    assert not list(long.growth())
    long.parts = [part, part, part, grown] if what != "p50" \
        else [part, part, grown, grown]
    assert len(list(long.growth())) == 1
