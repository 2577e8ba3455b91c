"""The protocol in Promela, walked through whole by spin: tests/promela/."""

import re
import subprocess

import pytest

import support

MODEL = support.ROOT / "tests" / "promela" / "lease.pml"


def walk(folder, variant=None, optimise="-O0"):
    """Answers the checker's last words and how many states it has seen."""
    define = [f"-D{variant}"] if variant else []
    for command in (["spin", *define, "-a", MODEL],
                    ["gcc", optimise, "-DSAFETY", "-o", "pan", "pan.c"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    said = subprocess.run(["./pan", "-m100000", "-w22", "-n"], cwd=folder,
                          capture_output=True, text=True, check=True).stdout
    assert "max search depth too small" not in said
    return said, int(re.search(r"(\d+) states, stored", said)[1])


@pytest.mark.plain
def test_the_protocol_excludes_and_its_tokens_grow(tmp_path):
    said, states = walk(tmp_path, optimise="-O2")
    assert "errors: 0" in said, said
    assert states > 1_000_000
    print(f"{states:,} states")


@pytest.mark.plain
@pytest.mark.parametrize("variant, broken", [
    ("NO_FENCE", "token_rank>=written"),
    ("EARLY_TIME", "over!=epoch"),
    ("MEMORY_COUNTER", "db.last>told"),
    ("NOT_DURABLE", "db.last>told"),
    ("NO_RESTORE", "db.last>told"),
    ("REACH", "written==3"),
])
def test_without_what_it_rests_on_the_protocol_fails(tmp_path, variant, broken):
    said, _ = walk(tmp_path, variant)
    assert "assertion violated" in said and broken in said, said
    assert "errors: 1" in said
    assert (tmp_path / "lease.pml.trail").exists()
