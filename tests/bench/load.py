"""load.py: HTTP load by wrk, one driver for every system.

    figure = load.http(port, 64, 3, seed=1, parts=[("/v1/grant", '{…"NAME"…}')])
    figure = load.http(port, 64, 3, seed=1, bodies=("/v1/renew", ["{…}", …]))

parts: the POST requests of one operation; when there are several they go out
together, on one connection, and count as one. NAME becomes a name that no
operation had before, in no order, as names come; NUMBER a number. bodies: one
after the other, again and again. A figure is operations per second, the
median and 99th percentile of their time in ms, and how many answers had a
status of 400 or more.
"""

import dataclasses
import os
import re
import subprocess
import tempfile
from pathlib import Path

# A request is made before the clock runs, but for name and number, which have
# always the same length: the driver costs as little as it can.
LUA = """
local parts, bodies, n, seed = { PARTS }, {}, 0, SEED
local headers = { ["Content-Type"] = "application/json", ["Host"] = "localhost" }
local name, number = string.rep("n", 16), string.rep("9", 16)
local pieces, text = {}, ""
for line in io.lines("BODIES") do
  bodies[#bodies + 1] = line
end
function init()
  for i, line in ipairs(bodies) do
    bodies[i] = wrk.format("POST", "PATH", headers, line)
  end
  for _, part in ipairs(parts) do
    local body = part[2]:gsub("NAME", name):gsub("NUMBER", number)
    text = text .. wrk.format("POST", part[1], headers, body)
  end
  while #text > 0 do
    local a, b = text:find(name, 1, true)
    local c, d = text:find(number, 1, true)
    local first, last, what = a or #text + 1, b or #text, a and "name" or ""
    if c and c < first then first, last, what = c, d, "number" end
    pieces[#pieces + 1] = { text:sub(1, first - 1), what }
    text = text:sub(last + 1)
  end
end
function request()
  n = n + 1
  if #bodies > 0 then return bodies[n % #bodies + 1] end
  local is = { [""] = "",
    name = string.format("%08x%08x", seed, n * 2654435761 % 4294967296),
    number = string.format("1%015.0f", seed * 1e8 + n) }
  local made = ""
  for _, piece in ipairs(pieces) do
    made = made .. piece[1] .. is[piece[2]]
  end
  return made
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("FIGURE %d %.6f %.4f %.4f %d %d\\n",
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000,
    latency:percentile(99) / 1000, e.status,
    e.connect + e.read + e.write + e.timeout))
end
"""


@dataclasses.dataclass
class Figure:
    rate: float
    p50: float = 0
    p99: float = 0
    refused: int = 0
    done: float = 0     # in all: the driver takes a little longer than asked
    more: dict = dataclasses.field(default_factory=dict)


def http(port, clients, seconds, seed, parts=(), bodies=("", ())):
    with tempfile.TemporaryDirectory() as name:
        lines, script = Path(name, "bodies"), Path(name, "load.lua")
        lines.write_text("".join(body + "\n" for body in bodies[1]))
        script.write_text(
            LUA.replace("PARTS", ", ".join(f'{{ "{path}", [[{body}]] }}'
                                           for path, body in parts))
            .replace("BODIES", str(lines)).replace("PATH", bodies[0])
            .replace("SEED", str(seed)))
        said = subprocess.run(
            ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "20s",
             "-s", str(script), f"http://127.0.0.1:{port}"],
            text=True, check=True, stdout=subprocess.PIPE).stdout
    requests, took, p50, p99, refused, broken = re.search(
        r"FIGURE (\d+) (\S+) (\S+) (\S+) (\d+) (\d+)", said).groups()
    assert int(broken) <= clients, said
    done = int(requests) / max(1, len(parts))
    return Figure(done / float(took), float(p50), float(p99), int(refused),
                  done)


def cpu_us(pid):
    """What the processors have done for all threads of a process."""
    threads = Path(f"/proc/{pid}/task")
    return sum(int(Path(threads, t, "schedstat").read_text().split()[0])
               for t in os.listdir(threads)) / 1000


def end(process):
    """End a program that was started here."""
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
