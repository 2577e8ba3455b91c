"""coverage.py: which lines of the product the tests run.

    coverage.py build/coverage [--lines]     make coverage calls it

A table of files and the whole, from what gcov says of all variants that were
built there together; --lines lists the lines that nothing ran. Exit 1 when
ext/ or fcgi/ has less than 90 %. What a process that was killed with -9 has run
is not counted: it wrote nothing down.
"""

import collections
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST = 90
PARTS = {"ext": LEAST, "fcgi": LEAST, "cli": 0}


def counts(folder):
    """{file: {line: how often}} of the lines that have code."""
    found = collections.defaultdict(collections.Counter)
    notes = [n for n in Path(folder).resolve().rglob("*.gcno")
             if n.parent.name in PARTS]
    for note in notes:
        said = subprocess.run(
            ["gcov", "--json-format", "--stdout", note.name],
            cwd=note.parent, capture_output=True, text=True, check=True)
        for file in json.loads(said.stdout)["files"]:
            if file["file"].split("/")[0] in PARTS:
                for line in file["lines"]:
                    found[file["file"]][line["line_number"]] += line["count"]
    return found


def share(lines):
    return 100 * sum(map(bool, lines)) / len(lines)


def ranges(numbers):
    """1, 2, 3, 7 as "1-3, 7"."""
    spans = []
    for n in numbers:
        if spans and n == spans[-1][1] + 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in spans)


def main(folder, *options):
    found = counts(folder)
    bad = False
    for part, least in PARTS.items():
        files = {f: c for f, c in sorted(found.items())
                 if f.startswith(part + "/") and f.endswith(".c")}
        for name, lines in files.items():
            print(f"{name:24} {len(lines):5} lines {share(lines.values()):6.1f} %")
            missed = [n for n in sorted(lines) if not lines[n]]
            if missed and "--lines" in options:
                print(f"    {ranges(missed)}")
        every = [n for lines in files.values() for n in lines.values()]
        whole = share(every) if every else 0
        bad |= whole < least
        print(f"{part + '/':24} {len(every):5} lines {whole:6.1f} %\n")
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
