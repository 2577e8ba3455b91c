"""What the build makes."""

import re
import subprocess

import support


def test_only_the_entry_point_is_exported(build):
    said = subprocess.run(["nm", "-D", "--defined-only", build / "lease.so"],
                          capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in said.splitlines()]
    ours = [n for n in names if not re.match(r"__(a|t|ub)san_|_init$|_fini$"
                                             r"|__odr_asan", n)]
    assert ours == ["sqlite3_lease_init"]


def test_a_second_make_does_nothing(build):
    folder = build.relative_to(support.ROOT)
    said = subprocess.run(
        ["make", "-q", f"SAN={support.SAN}", f"{folder}/lease.so",
         f"{folder}/lease-fcgi"], cwd=support.ROOT, capture_output=True,
        text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_test_clock_is_not_in_the_product(build):
    for name in ("lease.so", "lease-fcgi"):
        assert b"LEASE_TEST_CLOCK" not in (build / name).read_bytes()
        assert b"LEASE_TEST_CLOCK" in (build / "test" / name).read_bytes()
