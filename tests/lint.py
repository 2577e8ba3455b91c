"""lint.py: rules of this project that no general linter knows.

    lint.py            prints file:line: what is wrong, exit 1 if anything is

* SQL text lives in sql/, one statement a file, and only sql/schema*.sql
  makes tables, indexes and triggers (and lease_guard, those of a guard);
* www/ has no inline script or style, no innerHTML and its like, no foreign
  address;
* ext/ knows nothing of fcgi/; fcgi/ and cli/ know of it only ext/lease.h;
* text is UTF-8, ends with a newline, has no trailing blanks (but inputs of
  the fuzz targets).
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SQL = re.compile(
    r"\b(INSERT\s+(OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE\s+\w+\s+SET|"
    r"DELETE\s+FROM|SELECT\s+[^;]*\bFROM|SELECT\s+\w+\(|"
    r"(CREATE|DROP|ALTER)\s+(TEMP\s+)?(TABLE|TRIGGER|INDEX|VIEW)|PRAGMA\s+\w)",
    re.I)
SCRIPTING = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\s*\(|"
    r"new\s+Function)\b|createContextualFragment")
INLINE = re.compile(
    r"<script(?![^>]*\bsrc=)|<style\b|\son[a-z]+\s*=\s*[\"']|\sstyle\s*=|"
    r"javascript:", re.I)
FOREIGN = re.compile(r"(src|href|url|import|from)\s*[=(]?\s*[\"']?https?://",
                     re.I)


def strings(text):
    """The string literals of a C file, comments left out, neighbours joined:
    (line, text) each."""
    token = re.compile(
        r'/\*.*?\*/|//[^\n]*|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'|'
        r"(\S)", re.S)
    start, parts = 0, []
    for found in token.finditer(text):
        if found.group(1) is not None:
            if not parts:
                start = text.count("\n", 0, found.start()) + 1
            parts.append(found.group(1))
        elif found.group(2) and parts:
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def check_c(name, text):
    for line, literal in strings(text):
        if SQL.search(literal):
            yield line, f"SQL text outside sql/: {literal[:50]}"
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not found:
            continue
        path = found.group(1)
        if name.startswith("ext/") and "fcgi" in path:
            yield number, "ext/ includes nothing of fcgi/"
        if not name.startswith("ext/") and "ext/" in path \
                and not path.endswith("ext/lease.h"):
            yield number, "only ext/ includes more of it than ext/lease.h"


def check_www(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if SCRIPTING.search(line):
            yield number, "builds markup or code from text"
        if name.endswith((".htm", ".html")) and INLINE.search(line):
            yield number, "inline script or style"
        if FOREIGN.search(line):
            yield number, "loads from a foreign address"


def check_sql(name, text):
    base = Path(name).stem
    if not text.startswith(f"-- {base}: "):
        yield 1, f"does not begin with '-- {base}: what it does'"
    bare = re.sub(r"--[^\n]*", "", text)
    if not re.match(r"(test_)?(schema|upgrade)|lease_guard", base) and re.search(
            r"\bCREATE\s+(TABLE|INDEX|TRIGGER)", bare, re.I):
        yield 1, "only sql/schema*.sql creates tables, indexes, triggers"


def check_text(_name, text):
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end"
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield number, "blanks at the end of the line"


def files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in sorted(set(listed.stdout.decode().split("\0")) - {""}):
        if (ROOT / name).is_file():
            yield name


def problems():
    for name in files():
        raw = (ROOT / name).read_bytes()
        if b"\0" in raw:
            continue
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            yield name, 1, "is not UTF-8"
            continue
        checks = []
        if not name.endswith((".out", ".md")) \
                and not name.startswith("tests/fuzz/seeds/"):
            checks.append(check_text)
        if name.startswith(("ext/", "fcgi/", "cli/")) and name.endswith((".c", ".h")):
            checks.append(check_c)
        if name.startswith("www/"):
            checks.append(check_www)
        if name.startswith("sql/"):
            checks.append(check_sql)
        for check in checks:
            for line, what in check(name, text):
                yield name, line, what


def main():
    found = list(problems())
    for name, line, what in found:
        print(f"{name}:{line}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
