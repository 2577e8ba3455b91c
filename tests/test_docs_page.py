"""test_docs_page.py: the API page in a real browser, on the real service.

What it looked like is kept in build/screenshots/.
"""

import json
import os
import signal
import subprocess

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import browser
import openapi
import service

pytestmark = pytest.mark.browser

API = openapi.Api()

# What a reader cannot use: fields and buttons without a name, levels of
# headings left out, ids that two elements have.
FAULTS = """
const faults = [];
const named = (e) => e.labels?.length || e.getAttribute('aria-label') ||
  e.textContent.trim();
for (const e of document.querySelectorAll('input, textarea, select, button, a')) {
  if (!named(e)) faults.push(`no name: ${e.outerHTML.slice(0, 80)}`);
}
let level = 0;
for (const h of document.querySelectorAll('main :is(h1, h2, h3, h4, h5)')) {
  const next = Number(h.tagName[1]);
  if (next > level + 1) faults.push(`h${level} to h${next}: ${h.textContent}`);
  level = next;
}
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
faults.push(...ids.filter((id, i) => ids.indexOf(id) !== i));
for (const a of document.querySelectorAll('a[href^="#"]')) {
  if (!document.getElementById(a.hash.slice(1))) faults.push(a.hash);
}
return faults;
"""


class Bench:
    """The form of one operation, as one works with it."""

    def __init__(self, page, op):
        self.page = page
        self.form = page.find(f"#{op} form")

    def part(self, css):
        return self.form.find_element(By.CSS_SELECTOR, css)

    def field(self, name):
        """The box whose label begins with the name of the field."""
        for field in self.form.find_elements(By.CSS_SELECTOR, ".try-field"):
            if field.find_element(By.TAG_NAME, "code").get_attribute(
                    "textContent") == name:
                return field
        raise AssertionError(name)

    def box(self, name):
        return self.field(name).find_element(By.CSS_SELECTOR,
                                             "input, textarea")

    def fill(self, **fields):
        for name, text in fields.items():
            box = self.box(name.replace("_", "-") if name[0].isupper()
                           else name)
            box.clear()
            if text.isprintable() and all(ord(c) < 0x10000 for c in text):
                box.send_keys(text)
            else:       # Enter would send, and no key has an emoji
                self.page.js("""arguments[0].value = arguments[1];
                    arguments[0].dispatchEvent(new Event('input',
                        {bubbles: true}));""", box, text)
        return self

    def choose(self, example):
        Select(self.part("select")).select_by_value(example)
        return self

    @property
    def curl(self):
        return self.part(".code-text code").get_attribute("textContent")

    @property
    def kind(self):
        return self.part(".answer").get_attribute("data-kind")

    @property
    def status(self):
        return int(self.part(".answer .status").text.split()[0])

    @property
    def text(self):
        return self.part(".answer .code-text").get_attribute("textContent")

    @property
    def json(self):
        return json.loads(self.text)

    def answered(self, kind="real"):
        self.page.wait(lambda: self.kind == kind, 10, "no answer")
        return self

    def send(self):
        self.page.js("arguments[0].dataset.kind = 'asked'",
                     self.part(".answer"))
        self.part("[type=submit]").click()
        return self.answered()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with service.Service(tmp_path_factory.mktemp("docs")) as running:
        yield running


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser.start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, world):
    page = browser.Page(driver, f"http://127.0.0.1:{world.port}")
    page.before(browser.WATCH)
    page.look(still=True)
    driver.get_log("browser")
    page.open("/docs")
    page.wait(lambda: page.state == "ready", why="the page is not drawn")
    yield page
    page.close()


# A refusal is an answer; the console of the browser calls it a failure.
REFUSED = ("Failed to load resource: the server responded",)


def test_every_operation_of_the_document_is_on_the_page(page):
    shown = page.js("""return [...document.querySelectorAll('.op')].map((op) =>
        [op.id, op.querySelector('.method').textContent,
         op.querySelector('.op-call code').textContent,
         op.querySelector('h3').textContent])""")
    assert sorted(shown) == sorted(
        [op.id, op.method, op.path, op.it["summary"]] for op in API.operations)
    links = page.js("""return [...document.querySelectorAll('#nav a')]
        .map((a) => a.hash.slice(1))""")
    assert {op.id for op in API.operations} <= set(links)
    assert page.errors() == []


def test_every_field_status_and_code_is_told(page):
    for op in API.operations:
        told = page.js("return arguments[0].textContent",
                       page.find(f"#{op.id} .op-text"))
        names = API.look(op.body["schema"])["properties"] if op.body else [
            p["name"] for p in op.parameters if p["in"] == "query"]
        for name in [*names, *(s for s in op.responses if s != "default")]:
            assert name in told, (op.id, name)
    codes = page.js("""return [...document.querySelectorAll('.codes tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    assert [code for code, *_ in codes] == API.all_codes
    assert all(status and words for _, status, words in codes)


def test_a_grant_tried_there_succeeds_and_its_token_goes_on(page, world):
    bench = Bench(page, "grant").fill(resource="try/me", holder="reader",
                                      ttl="60").send()
    assert bench.status == 200
    lease = bench.json
    assert (lease["resource"], lease["holder"]) == ("try/me", "reader")
    assert f'"token": {lease["token"]}' in bench.text
    held = world.get("/v1/leases?resource=try/me").json["leases"]
    assert [one["token"] for one in held] == [lease["token"]]

    renew = Bench(page, "renew")
    assert renew.box("token").get_attribute("value") == str(lease["token"])
    renew.send()
    assert (renew.status, renew.json["epoch"]) == (200, lease["token"])
    release = Bench(page, "release")
    assert release.box("token").get_attribute("value") == str(
        renew.json["token"])
    release.send()
    assert release.json == {"released": True, "why": "released"}
    assert world.get("/v1/leases?resource=try/me").json["leases"] == []
    assert page.errors() == []


def test_an_answer_comes_with_status_headers_time_and_size(page):
    bench = Bench(page, "healthz").send()
    head = bench.part(".answer-head").text
    assert "200 OK" in head and " ms" in head and "15 bytes" in head
    bench.part(".answer-more summary").click()
    headers = bench.part(".answer-headers").text
    assert "x-request-id" in headers and "application/json" in headers


def test_refused_fields_are_told_beside_the_fields(page):
    bench = Bench(page, "grant").fill(resource="", ttl="0.01",
                                      capacity="many").send()
    assert bench.status == 422
    for name in ("resource", "ttl", "capacity"):
        note = bench.field(name).find_element(By.CLASS_NAME, "field-error")
        assert note.is_displayed() and note.text
        box = bench.box(name)
        assert box.get_attribute("aria-invalid") is not None
        assert box.get_attribute("aria-describedby") == note.get_attribute(
            "id")
        assert note.text in bench.part(".answer-errors").text
    assert bench.box("holder").get_attribute("aria-invalid") is None
    bench.fill(resource="try/again", ttl="0.2", capacity="1").send()
    assert bench.status == 200
    assert bench.box("ttl").get_attribute("aria-invalid") is None
    assert page.errors(REFUSED) == []


def test_every_example_can_be_chosen_and_shows_its_answer(page):
    for op in API.operations:
        if not op.body:
            continue
        for name, example in op.body["examples"].items():
            bench = Bench(page, op.id).choose(name)
            assert bench.kind == "sample"
            shown = [API.examples(response)[name]
                     for response in op.responses.values()
                     if name in API.examples(response)]
            assert bench.json == shown[0]["value"]
            sent = bench.curl.partition("-d '")[2].rpartition("'")[0]
            assert json.loads(sent) == example["value"], (op.id, name)
    assert page.errors() == []


def test_a_body_can_be_edited_as_json_even_into_none(page):
    bench = Bench(page, "check")
    bench.part(".try-mode").click()
    box = bench.part(".try-text")
    assert json.loads(box.get_attribute("value")) == {
        "resource": "example/backup", "token": 2}
    box.clear()
    box.send_keys('{"resource": "x", ')
    bench.send()
    assert (bench.status, bench.json["code"]) == (400, "malformed")
    box.clear()
    box.send_keys('{"resource": "kept", "token": 7}')
    bench.part(".try-mode").click()
    assert bench.box("resource").get_attribute("value") == "kept"
    assert bench.box("token").get_attribute("value") == "7"


NASTY = ("it's; echo $HOME `id` \"x\" \\ %20 & é 🦊",
         "<img src=x onerror=alert(1)>", "line\nline")


def test_the_curl_line_asks_the_same_from_a_shell(page, tmp_path):
    bench = Bench(page, "grant").fill(resource=NASTY[0], holder=NASTY[1],
                                      data=NASTY[2], ttl="60")
    bench.part(".try-more summary").click()
    bench.fill(Idempotency_Key="ключ-'1'")
    first = bench.send().json
    assert (first["resource"], first["holder"], first["data"]) == NASTY
    done = subprocess.run(["bash", "-c", bench.curl.replace("-i", "-s", 1)],
                          capture_output=True, cwd=tmp_path, timeout=30)
    # The key is the same, so it is the same lease and not "held".
    again = json.loads(done.stdout)
    assert again == first | {"remaining": again["remaining"]}
    listed = Bench(page, "leases").fill(prefix=NASTY[0][:8])
    assert NASTY[0] in [one["resource"] for one in
                        listed.send().json["leases"]]
    done = subprocess.run(["bash", "-c", listed.curl.replace("-i", "-s", 1)],
                          capture_output=True, cwd=tmp_path, timeout=30)
    assert json.loads(done.stdout)["leases"][0]["token"] == first["token"]
    assert os.listdir(tmp_path) == []
    assert page.errors() == []


def test_code_is_copied_or_at_least_selected(page):
    button = page.find("#grant form .copy")
    button.click()
    page.wait(lambda: button.text in ("Copied", "Selected"))
    if button.text == "Selected":
        assert page.js("return String(getSelection())").strip() \
            == Bench(page, "grant").curl.strip()
    assert page.errors() == []


def test_it_works_by_keyboard_alone(page):
    page.keys(Keys.TAB)
    assert page.js("return document.activeElement.className") == "skip"
    page.keys(Keys.ENTER)
    assert page.js("return document.activeElement.id") == "content"
    page.js("document.querySelector('#grant select').focus()")
    for _ in range(2):
        page.keys(Keys.TAB)
    for text in ("by/keys", "typist", "30"):
        page.keys(Keys.CONTROL + "a", text)
        last = page.js("return document.activeElement.value")
        assert last == text
        page.keys(Keys.TAB)
    page.keys(Keys.CONTROL + Keys.ENTER)
    bench = Bench(page, "grant").answered()
    assert bench.json["holder"] == "typist"
    page.wait(lambda: "200" in page.js(
        "return document.getElementById('announce').textContent"),
        why="nothing is told to those who cannot see it")


def test_a_request_under_way_can_be_cancelled(page, world):
    bench = Bench(page, "status")
    pid = world.pid
    service.stand_still(pid)
    try:
        bench.part("[type=submit]").click()
        bench.answered("wait")
        bench.part(".try-send .quiet").click()
        bench.answered("fail")
        assert "Cancelled" in bench.part(".answer-errors").text
    finally:
        os.kill(pid, signal.SIGCONT)
    bench.send()
    assert bench.status == 200


def test_a_stream_is_shown_as_it_comes_until_it_is_cancelled(page, world):
    lease = world.post("grant", resource="try/stream", holder="one",
                       ttl=60).json
    bench = Bench(page, "events").choose("stream")
    bench.fill(after=str(lease["token"] - 1))
    assert "-H 'Accept: text/event-stream'" in bench.curl
    bench.part("[type=submit]").click()
    page.wait(lambda: "try/stream" in bench.text, why="nothing is shown")
    assert bench.kind == "wait"
    world.post("revoke", resource="try/stream", reason="seen live")
    page.wait(lambda: "seen live" in bench.text, why="it does not go on")
    bench.part(".try-send .quiet").click()
    bench.answered()
    assert bench.status == 200 and "seen live" in bench.text
    assert page.errors() == []


def test_no_server_is_told_in_words_and_the_page_goes_on(page, world):
    bench = Bench(page, "status")
    world.stop()
    try:
        bench.part("[type=submit]").click()
        bench.answered("fail")
        assert "cannot be reached" in bench.part(".answer-errors").text
    finally:
        world.start().wait_ready()
    bench.send()
    assert bench.status == 200
    assert page.errors(("Failed to load resource",)) == []


def test_a_link_to_an_answer_opens_it(page):
    page.open("/docs#WriteUnavailable")
    page.wait(lambda: page.js("""const it =
        document.getElementById('WriteUnavailable'); return it && it.open"""),
              why="it stays folded")


def test_it_reads_nothing_but_its_own_server(page):
    assert page.js("""return performance.getEntriesByType('resource')
        .filter(({name}) => !name.startsWith(location.origin))""") == []


@pytest.mark.parametrize("width, height", [(1440, 1000), (1000, 800),
                                           (390, 844)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_in_every_size_and_light(page, width, height, dark):
    page.look(width, height, dark=dark, still=True)
    page.js("for (const d of document.querySelectorAll('details')) d.open = 1")
    page.js("document.querySelector('#grant form').requestSubmit()")
    Bench(page, "grant").answered()
    looked, poor = page.js(browser.CONTRAST)
    assert looked > 300 and poor == []
    assert page.js("""return document.documentElement.scrollWidth
        - innerWidth""") <= 0
    assert page.js(FAULTS) == []
    name = f"docs-{width}-{'dark' if dark else 'light'}"
    page.js("for (const d of document.querySelectorAll('details')) d.open = 0")
    for place in ("intro", "grant", "errors"):
        page.js("document.getElementById(arguments[0]).scrollIntoView()",
                place)
        page.shot(f"{name}-{place}")
