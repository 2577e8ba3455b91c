"""How many instructions the functions take, counted by callgrind: that does not
depend on what else the machine does. Each is compared with one event INSERT
and one lease UPSERT, counted in the same run.

tests/speed.txt has what is expected; --rewrite writes it anew. Whoever made a
call cheaper by more than the slack does so, too.
"""

import re
import subprocess

import pytest

import support

EXPECTED = support.ROOT / "tests" / "speed.txt"
SLACK = 0.10


def counted(folder):
    """Instructions of each kind of call, as many times those of the pair."""
    out = folder / "callgrind.out"
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
         support.BUILD / "bench" / "count", support.BUILD / "lease.so",
         folder / "count.db"], check=True, capture_output=True)
    told = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", out],
        check=True, text=True, stdout=subprocess.PIPE).stdout
    found = {name: int(number.replace(",", "")) for number, name in re.findall(
        r"^ *([\d,]+) .*count\.c:count_(\w+)", told, re.M)}
    pair = found.pop("pair")
    return {name: number / pair for name, number in found.items()}


@pytest.mark.plain
def test_no_call_takes_more_instructions_than_it_did(build, tmp_path,
                                                     pytestconfig):
    now = counted(tmp_path)
    if pytestconfig.getoption("--rewrite"):
        EXPECTED.write_text("".join(f"{name} {times:.2f}\n"
                                    for name, times in sorted(now.items())))
    expected = dict(line.split() for line in
                    EXPECTED.read_text().splitlines())
    assert now.keys() == expected.keys()
    off = {name: f"{times:.2f}, not {expected[name]}"
           for name, times in now.items()
           if abs(times / float(expected[name]) - 1) > SLACK}
    assert not off
