"""test_dashboard_live.py: what the dashboard makes of the event stream: nothing
falls between the list and the stream, other ways when the stream does not get
through, the story of a resource, who waits, how much happened.
"""

import contextlib
import re
import threading
import time

import pytest
from selenium.webdriver.common.keys import Keys

import browser
import proxy
import service
import support
from test_dashboard import (  # noqa: F401: fixtures
    driver, end_all, grant, off, page, renew, seconds, sql, world)

pytestmark = pytest.mark.browser


@contextlib.contextmanager
def busy(world, names=40):
    """Somebody grants, renews and releases all the time."""
    ended = threading.Event()

    def work():
        with sql(world) as con:
            n = 0
            while not ended.is_set():
                name = f"busy/{n % names}"
                token = support.one(
                    con, "SELECT lease_grant(?, ?, 300)", name, f"w{n}")
                if token and n % 3 == 0:
                    con.execute("SELECT lease_renew(?, ?)",
                                (name, token)).fetchall()
                elif token and n % 3 == 1:
                    con.execute("SELECT lease_release(?, ?)",
                                (name, token)).fetchall()
                if not token:
                    con.execute("SELECT lease_revoke(?)", (name,)).fetchall()
                n += 1
                time.sleep(0.002)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def listed(world, prefix):
    told = world.get(f"/v1/leases?prefix={prefix}&limit=1000").json
    return {(e["resource"], e["holder"], str(e["token"]))
            for e in told["leases"]}


def shown(page):
    return {(e["resource"], e["holder"], e["token"]) for e in page.rows()}


def test_totals_rates_and_the_health_of_the_service_are_shown(page, world):
    end_all(world)
    page.open().live()
    total = "#rates [data-event=granted] .rate-total"
    page.wait(lambda: re.match(r"[\d,]+$", page.text(total)))
    before = int(page.text(total).replace(",", ""))
    for i in range(7):
        grant(world, f"rated/{i}")
    page.wait(lambda: int(page.text(total).replace(",", "")) >= before + 7, 3)
    assert page.js("return document.querySelector("
                   "'#rates [data-event=granted] .bars').getAttribute('d')")
    assert page.js("return document.querySelector('#spark .spark-line')"
                   ".getAttribute('d')")
    assert re.search(r"/(s|min)$",
                     page.text("#rates [data-event=granted] .rate-now"))
    page.find("#pill").click()
    facts = page.text("#s-facts")
    for word in ("Durability\nfull", "Queue\n", "WAL\n", "Lease clock\n"):
        assert word in facts, facts
    page.shot("service")
    page.keys(Keys.ESCAPE)
    assert not page.find("#d-service").is_displayed()
    assert page.errors() == []


def test_nothing_falls_between_the_list_and_the_stream(page, world):
    page.look(height=2400)
    with busy(world):
        for _ in range(3):
            page.open("/?prefix=busy/").live()
            time.sleep(0.5)
    page.wait(lambda: shown(page) == listed(world, "busy/"), 3)
    assert len(page.rows()) > 10
    page.look()
    assert page.errors() == []
    end_all(world)


class Filter(proxy.Proxy):
    """Lets no event stream through: `how` it is kept back."""

    how = "close"
    streams = 0

    def pass_on(self, answer, data, to):
        if not answer and b"Accept: text/event-stream" in data:
            self.streams += 1
            return self.how == "keep"
        return super().pass_on(answer, data, to)


@pytest.mark.parametrize("how", ["close", "keep"])
def test_without_streams_the_page_polls(page, world, how):
    with Filter(world.port) as way:
        way.how = how
        page.url = way.url
        page.open("/?prefix=polled/")
        page.wait(lambda: page.state == "live", 5)
        page.wait(lambda: way.streams >= 2, 12)
        grant(world, f"polled/{how}", "w", 60)
        page.wait(lambda: page.row(f"polled/{how}"), 4)
        page.wait(lambda: page.state == "live", 4)
        lease = grant(world, f"polled/{how}/2", "w", 60)
        page.wait(lambda: page.row(f"polled/{how}/2"), 1.5)
        world.post("release", resource=lease["resource"],
                   token=lease["token"])
        page.wait(lambda: not page.row(f"polled/{how}/2"), 1.5)
        page.driver.get("about:blank")


def test_a_cable_that_is_pulled_is_noticed_and_forgotten(page, world):
    """C169"""
    with proxy.Proxy(world.port) as way:
        page.url = way.url
        page.open("/?prefix=cable/").live()
        lease = grant(world, "cable/0", "w", 60)
        page.wait(lambda: page.row("cable/0"))
        way.mode = "drop"
        _, took = page.wait(lambda: page.state == "stale", 4)
        assert took < 3
        renew(world, lease, 90)
        grant(world, "cable/1", "w", 60)
        time.sleep(0.5)
        way.mode = "pass"
        page.wait(lambda: page.state == "live", 8)
        page.wait(lambda: page.row("cable/1"), 1)
        assert seconds(page.row("cable/0")["left"]) > 70
        page.driver.get("about:blank")


def test_after_a_sleep_the_time_left_is_right(page, build, tmp_path,
                                              monkeypatch):
    """C047, C162"""
    clock = support.Clock(tmp_path / "clock")
    monkeypatch.setenv("LEASE_TEST_CLOCK", str(clock.path))
    ended = threading.Event()
    slept = [0]

    def run():
        last = time.monotonic()
        while not ended.wait(0.02):
            now = time.monotonic()
            clock.advance(now - last + slept[0])
            slept[0], last = 0, now

    thread = threading.Thread(target=run)
    thread.start()
    try:
        with service.Service(tmp_path, clocked=True) as asleep:
            grant(asleep, "sleep/long", "w", 8000)
            grant(asleep, "sleep/short", "w", 1000)
            page.url = f"http://127.0.0.1:{asleep.port}"
            page.open().live()
            page.wait(lambda: page.row("sleep/long"))
            # To the browser, whose clock stood still, it is the same.
            slept[0] = 3600
            page.wait(lambda: not page.row("sleep/short"), 4)
            page.wait(lambda: page.row("sleep/long")["bar"] < 0.6, 4)
            left = page.row("sleep/long")["bar"] * 8000
            assert left == pytest.approx(4400, abs=20)
            assert page.state == "live"
            page.driver.get("about:blank")
    finally:
        ended.set()
        thread.join()


def test_a_tab_in_the_background_is_right_when_it_comes_back(page, world):
    """C162"""
    gone = grant(world, "back/gone", "w", 100)
    kept = grant(world, "back/kept", "w", 20)
    page.open("/?prefix=back/").live()
    page.wait(lambda: page.row("back/kept"))
    page.window("minimized")
    try:
        page.wait(lambda: page.js("return document.visibilityState")
                  == "hidden", why="not in the background")
        world.post("release", resource="back/gone", token=gone["token"])
        time.sleep(1)
        earliest = time.monotonic()
        renew(world, kept, 40)
        latest = time.monotonic()
        grant(world, "back/new", "w", 100)
        time.sleep(1.5)
    finally:
        page.window("normal")
    page.wait(lambda: page.row("back/new"), 1)
    page.wait(lambda: not page.row("back/gone"), 1)
    assert off(page, "back/kept", 40, earliest, latest) < 0.25
    page.wait(lambda: page.state == "live", 1)
    assert page.errors() == []


def test_the_story_of_a_resource_is_told(page, world):
    grant(world, "story", "anna", 0.4)
    time.sleep(0.6)
    lease = grant(world, "story", "bert", 30)
    for _ in range(6):
        lease = renew(world, lease, 30)
    world.post("release", resource="story", token=lease["token"])
    time.sleep(0.4)
    grant(world, "story", "cleo", 60)
    world.post("revoke", resource="story", reason="she is on holiday")
    last = grant(world, "story", "dora", 60)
    world.post("fence", resource="story", token=last["token"])
    page.open("/?lease=story&lease=dora").live()
    page.wait(lambda: len(page.lines("#p-log")) == 8)
    lines = page.lines("#p-log")
    kinds = page.js("return [...document.querySelectorAll('#p-log > li')]"
                    ".map((li) => li.dataset.event)")
    assert kinds == ["granted", "revoked", "granted", "released", "renewed",
                     "granted", "expired", "granted"]
    told = "\n".join(lines)
    assert f"#{last['token']}" in told
    assert "she is on holiday" in told
    assert "renewed 6 times" in told
    assert all(re.search(r"\d\d:\d\d:\d\d", line) for line in lines)
    page.find("#p-every").click()
    page.wait(lambda: sum("renewed" in line for line in
                          page.lines("#p-log")) == 6)
    ends = page.js("return [...document.querySelectorAll('.tenure')]"
                   ".map((t) => t.dataset.end)")
    assert ends == ["expired", "released", "revoked", "active"]
    names = page.js("return [...document.querySelectorAll('.lane')]"
                    ".map((l) => l.textContent)")
    assert names == ["anna", "bert", "cleo", "dora"]
    assert page.js("return document.querySelectorAll('.gap').length") >= 2
    assert page.js("return document.querySelectorAll('.take-over').length") == 3
    assert "4 times by 4 holders" in page.js(
        "return document.querySelector('.timeline').ariaLabel")
    assert f"#{last['token']}" in page.text("#p-register")
    page.shot("story")
    page.look(dark=True).shot("story-dark")
    page.look(390, 844)
    page.js("document.getElementById('panel').scrollTop = 120")
    page.shot("story-phone")
    page.look()

    renew(world, last, 60)
    page.wait(lambda: any("renewed" in line and "dora" in line for line in
                          page.lines("#p-log")), 2)
    world.post("revoke", resource="story", reason="the test ends")
    page.wait(lambda: "the test ends" in page.text("#p-log"), 2)
    assert page.errors() == []


def test_a_story_far_back_in_the_log_is_found(page, world):
    grant(world, "far", "early", 600)
    with sql(world) as con:
        con.execute("BEGIN IMMEDIATE")
        for i in range(4000):
            con.execute("SELECT lease_grant(?1, 'n', 60), lease_revoke(?1)",
                        (f"noise/{i}",)).fetchall()
        con.execute("COMMIT")
    page.open("/?lease=far&lease=early").live()
    page.wait(lambda: "granted early" in page.text("#p-log"), 5)
    assert page.errors() == []


def test_who_waits_is_told(page, world):
    lease = grant(world, "queue", "first", 60)
    page.open("/?lease=queue&lease=first").live()

    def wait(holder):
        world.post("grant", resource="queue", holder=holder, ttl=60, wait=30)

    waiters = [threading.Thread(target=wait, args=[name])
               for name in ("second", "third")]
    waiters[0].start()
    page.wait(lambda: page.lines("#p-waiters"), 5)
    waiters[1].start()
    page.wait(lambda: len(page.lines("#p-waiters")) == 2, 5)
    assert page.lines("#p-waiters")[0].startswith("second")
    page.wait(lambda: page.text("#count-waiting") == "2", 6)
    page.shot("waiters")
    world.post("release", resource="queue", token=lease["token"])
    page.wait(lambda: page.row("queue", "second"), 1)
    page.wait(lambda: len(page.lines("#p-waiters")) == 1, 5)
    world.post("revoke", resource="queue")
    for waiter in waiters:
        waiter.join()
    assert page.errors() == []
