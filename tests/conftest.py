"""conftest.py: the fixtures of all tests.

    def test_a_lease_ends_on_time(db, clock):
        con = db()
        con.execute("SELECT lease_grant('r', 'a', 10)")
        clock.advance(10)
        assert con.execute("SELECT count(*) FROM lease_active")...

build    folder of the build under test (LEASE_BUILD)
clock    a test clock of this test's own; db() then loads the test build
db       db(name="lease.db") opens a connection in this test's folder
small_disk  a folder on a disk of 3 MB
service  the service behind a real lighttpd (tests/service.py)

Every test ends after 120 s, or what @pytest.mark.limit(seconds) says.
"""

import signal
import subprocess

import hypothesis
import pytest

import service as service_module
import support

hypothesis.settings.register_profile(
    "leasehold", deadline=None, print_blob=True, database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow,
                           hypothesis.HealthCheck.function_scoped_fixture])
hypothesis.settings.load_profile("leasehold")


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true",
                     help="write the .out files of tests/sql anew")


# What runs in one thread has no race to be found.
ONE_THREAD = ("test_checker", "test_cli_docs", "test_cli_run",
              "test_cli_terminal", "test_cli_verbs", "test_ext_active",
              "test_ext_hostile", "test_ext_model", "test_linear", "test_sql_")


def pytest_collection_modifyitems(config, items):
    if not support.SAN:
        return
    left_out = [i for i in items if i.get_closest_marker("browser")
                or i.get_closest_marker("plain")
                or support.SAN == "thread"
                and i.path.name.startswith(ONE_THREAD)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [i for i in items if i not in left_out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    mark = item.get_closest_marker("limit")
    seconds = support.patience(mark.args[0] if mark else 120)

    def too_long(_number, _frame):
        raise TimeoutError(f"the test ran longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def build():
    assert (support.BUILD / "lease.so").exists(), \
        f"{support.BUILD}/lease.so is missing: run make"
    return support.BUILD


@pytest.fixture
def clock(tmp_path, monkeypatch):
    clock = support.Clock(tmp_path / "clock")
    monkeypatch.setenv("LEASE_TEST_CLOCK", str(clock.path))
    return clock


@pytest.fixture
def db(request, build, tmp_path):
    clocked = "clock" in request.fixturenames
    if clocked:
        request.getfixturevalue("clock")
    opened = []

    def connect(name="lease.db", **options):
        path = name if name == ":memory:" else tmp_path / name
        con = support.connect(path, clocked=clocked, **options)
        opened.append(con)
        return con

    yield connect
    for con in opened:
        con.close()


@pytest.fixture
def service(request, build, tmp_path):
    clocked = "clock" in request.fixturenames
    if clocked:
        request.getfixturevalue("clock")
    with service_module.Service(tmp_path, clocked=clocked) as running:
        yield running


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs",
                           str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip("cannot mount a small disk here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
