"""tests/sql/*.sql: scripts for the sqlite3 shell, and what it must print.

A script runs in a folder of its own on lease.db, the test build loaded, the
test clock at 2023-11-14 22:13:20 UTC. `.shell advance 5` lets five seconds
pass. What it prints, errors included, is the .out file beside it.

    pytest tests/test_sql_scripts.py --rewrite      writes the .out files anew

Read the difference before you commit what --rewrite wrote.
"""

import os

import pytest

import support

SCRIPTS = sorted((support.ROOT / "tests" / "sql").glob("*.sql"))

@pytest.fixture
def advance(tmp_path, clock):
    """A folder for PATH with the command `advance`."""
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "advance"
    command.write_text(
        "#!/bin/sh\n"
        'read -r boot wall id <"$LEASE_TEST_CLOCK"\n'
        'awk -v b="$boot" -v w="$wall" -v i="$id" -v s="$1" '
        "'BEGIN { printf \"%.0f %.0f %s\\n\", b + s * 1000, w + s * 1000, i }'"
        ' >"$LEASE_TEST_CLOCK.new"\n'
        'mv "$LEASE_TEST_CLOCK.new" "$LEASE_TEST_CLOCK"\n')
    command.chmod(0o755)
    return tools


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_prints_what_stands_beside_it(script, advance, clock, build,
                                             tmp_path, request):
    said = support.shell(
        script.read_text(), tmp_path / "lease.db", clocked=True,
        cwd=tmp_path, env=support.host_env(
            PATH=f"{advance}:{os.environ['PATH']}"))
    expected = script.with_suffix(".out")
    if request.config.getoption("--rewrite"):
        expected.write_text(said)
    assert said == expected.read_text()
