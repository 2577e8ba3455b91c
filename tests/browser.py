"""browser.py: a real browser on the dashboard, for tests.

    page = browser.Page(driver, url)
    page.open("/?sort=left")
    page.wait(lambda: page.row("shard/0"))
    page.errors()        what the console and the security policy complain of

Debian's Chromium without a screen, driven by Selenium. What a test wants to
know of the page it asks in JavaScript; what it does, it does with real keys
and clicks.
"""

import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

import support

SHOTS = support.ROOT / "build" / "screenshots"

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--lang=en-GB")

# Before any script of the page: what the security policy refuses is kept.
WATCH = """
window.refused = [];
document.addEventListener('securitypolicyviolation', (event) =>
  window.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
window.alert = () => window.refused.push('alert');
"""

# The browser's date is wrong by so many milliseconds; nothing else is.
WRONG_DATE = """
window.wrongBy = %d;
const Right = Date;
window.Date = class extends Right {
  constructor(...args) {
    if (args.length) super(...args);
    else super(Right.now() + window.wrongBy);
  }
  static now() { return Right.now() + window.wrongBy; }
};
"""

ROWS = """
return [...document.querySelectorAll('.row')].map((row) => ({
  resource: row.querySelector('.c-resource bdi').textContent,
  holder: row.querySelector('.c-holder bdi').textContent,
  token: row.querySelector('.c-token').textContent,
  left: row.querySelector('.c-left').textContent,
  phase: row.dataset.phase,
  bar: new DOMMatrix(getComputedStyle(row.querySelector('.fill')).transform).a,
  color: getComputedStyle(row.querySelector('.fill')).backgroundColor,
}));
"""

# The bar of one resource, four times a second, with the time of each look.
SAMPLE = """
const [resource, looks, done] = arguments;
const seen = [];
const timer = setInterval(() => {
  const row = [...document.querySelectorAll('.row')].find((row) =>
    row.querySelector('.c-resource bdi').textContent === resource);
  seen.push([performance.now(), row ? new DOMMatrix(getComputedStyle(
      row.querySelector('.fill')).transform).a : null]);
  if (seen.length === looks) { clearInterval(timer); done(seen); }
}, 250);
"""

# Time between frames, ms, while the table stands still or is scrolled by so
# many pixels a frame.
FRAMES = """
const [pixels, ms, done] = arguments;
const scroller = document.getElementById('scroller');
const gaps = [];
let begun = 0, last = 0, step = pixels;
requestAnimationFrame(function frame(now) {
  if (last) gaps.push(now - last);
  begun ||= now;
  last = now;
  const {scrollTop, scrollHeight, clientHeight} = scroller;
  if (scrollTop + step > scrollHeight - clientHeight) step = -pixels;
  if (scrollTop + step < 0) step = pixels;
  if (pixels) scroller.scrollTop += step;
  if (now - begun < ms) requestAnimationFrame(frame);
  else done(gaps);
});
"""

# Every text that can be seen and is not large, with the contrast it has.
CONTRAST = """
const channel = (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const canvas = new OffscreenCanvas(1, 1).getContext('2d',
    {willReadFrequently: true});
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].map((c) => c / 255);
}
const light = ([r, g, b]) =>
  0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
function behind(element) {
  for (let e = element; e; e = e.parentElement) {
    const color = rgba(getComputedStyle(e).backgroundColor);
    if (color[3] > 0.99) return color;
  }
  return [1, 1, 1, 1];
}
const poor = [];
let looked = 0;
for (const element of document.querySelectorAll('body *')) {
  const text = [...element.childNodes].filter((node) => node.nodeType === 3)
      .map((node) => node.data.trim()).join('');
  if (!text || !element.checkVisibility({visibilityProperty: true})) continue;
  if (element.closest(
      '.unseen, .skip, svg, dialog:not([open]), option')) continue;
  const [a, b] = [light(rgba(getComputedStyle(element).color)),
    light(behind(element))].sort((x, y) => y - x);
  looked += 1;
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${text.slice(0, 40)}`);
}
return [looked, poor];
"""


def start(folder, *arguments):
    """A browser with a fresh profile in this folder."""
    options = Options()
    for argument in (*ARGUMENTS, *arguments, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options,
                              service=Service("/usr/bin/chromedriver"))
    driver.set_script_timeout(30)
    return driver


class Page:
    def __init__(self, driver, url):
        self.driver = driver
        self.url = url
        self.scripts = []

    def before(self, script):
        """Run a script in each document to come, before its own."""
        added = self.driver.execute_cdp_cmd(
            "Page.addScriptToEvaluateOnNewDocument", {"source": script})
        self.scripts.append(added["identifier"])

    def open(self, path="/"):
        self.driver.get(self.url + path)
        return self

    def look(self, width=1280, height=800, dark=False, still=False):
        """The size of the window and what the reader prefers."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion",
             "value": "reduce" if still else "no-preference"}]})
        return self

    def js(self, script, *args):
        return self.driver.execute_script(script, *args)

    def watch(self, script, *args):
        """A script that takes its time and calls its last argument."""
        return self.driver.execute_async_script(script, *args)

    def find(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def text(self, css):
        return self.find(css).text

    def lines(self, css):
        """The items of a list, each as one line."""
        return self.js("""return [...document.querySelectorAll(
            `${arguments[0]} > li`)].map((li) => li.innerText
              .replace(/\\s+/g, ' ').trim())""", css)

    def keys(self, *keys):
        """Typed where the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def rows(self):
        return self.js(ROWS)

    def row(self, resource, holder=None):
        return next((row for row in self.rows() if row["resource"] == resource
                     and holder in (None, row["holder"])), None)

    @property
    def state(self):
        return self.js("return document.body.dataset.state")

    def wait(self, what, seconds=3.0, why="it did not happen"):
        """Until what() is true; what it was then, and how long it took."""
        begun = time.monotonic()
        while True:
            found = what()
            if found:
                return found, time.monotonic() - begun
            assert time.monotonic() - begun < seconds, \
                f"{why} within {seconds} s; {self.rows()[:5]}, {self.state}"
            time.sleep(0.02)

    def frames(self, pixels, ms=2000):
        """Frames a second and the page's own processor time a frame, ms,
        while the table is scrolled by so many pixels a frame."""
        self.driver.execute_cdp_cmd("Performance.enable",
                                    {"timeDomain": "threadTicks"})
        before = self.busy()
        gaps = self.watch(FRAMES, pixels, ms)
        work = self.busy() - before
        self.driver.execute_cdp_cmd("Performance.disable", {})
        return 1000 * len(gaps) / sum(gaps), 1000 * work / len(gaps)

    def busy(self):
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})
        return next(metric["value"] for metric in metrics["metrics"]
                    if metric["name"] == "TaskDuration")

    def live(self):
        self.wait(lambda: self.state == "live", why="no data")
        return self

    def window(self, state):
        """'minimized' puts the page into the background, 'normal' back."""
        window = self.driver.execute_cdp_cmd(
            "Browser.getWindowForTarget", {})["windowId"]
        self.driver.execute_cdp_cmd("Browser.setWindowBounds", {
            "windowId": window, "bounds": {"windowState": state}})

    def shot(self, name):
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))

    def errors(self, expected=()):
        """What went wrong in the page, but for what the test provoked."""
        lines = [entry["message"] for entry in self.driver.get_log("browser")
                 if entry["level"] in ("SEVERE", "WARNING")]
        lines += self.js("return window.refused ?? []")
        return [line for line in lines
                if not any(part in line for part in expected)]

    def close(self):
        for identifier in self.scripts:
            self.driver.execute_cdp_cmd(
                "Page.removeScriptToEvaluateOnNewDocument",
                {"identifier": identifier})
        self.driver.get("about:blank")
