"""What a database needs fails: each call that SQLite makes to the disk, each
allocation. Who was told that it is done has it, who was told an error has
nothing, half done is nothing, and afterwards everything works, on the same
connection. Faults of the service are in test_faults_http.py."""

import re
import subprocess
import tempfile

import pytest

import support


@pytest.mark.plain  # thousands of files, each opened anew
@pytest.mark.limit(300)
def test_whatever_call_fails_nothing_is_half_done_and_all_works_again(build):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        done = subprocess.run(
            [build / "faults", "29"], env={"TMPDIR": folder}, text=True,
            timeout=support.patience(280), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    faults, errors = re.match(r"(\d+) faults, (\d+) of them", done.stdout) \
        .groups()
    assert int(faults) > 300 and int(errors) > 250


def test_a_journal_that_cannot_be_made_is_told_as_that(tmp_path, db):
    """And not as a clock that cannot be read, before the clock was read."""
    (tmp_path / "lease.db-journal").mkdir()
    con = db()
    for sql in ("SELECT lease_fence('r', 1)",
                "SELECT lease_grant('r', 'h', 1)"):
        with pytest.raises(support.sqlite3.OperationalError) as error:
            con.execute(sql)
        assert error.value.sqlite_errorname.startswith("SQLITE_CANTOPEN")
        assert "boot id" not in str(error.value)
