"""count.py: passed and failed of a junit file, as two numbers.

    count.py report.xml      38 0

Skipped counts as failed, for a skipped test shows nothing. No file, or a file
without tests: "0 1".
"""

import sys
import xml.etree.ElementTree as xml


def count(path):
    try:
        cases = list(xml.parse(path).iter("testcase"))
    except (OSError, xml.ParseError):
        return 0, 1
    bad = sum(any(c.find(t) is not None for t in
                  ("failure", "error", "skipped")) for c in cases)
    return len(cases) - bad, bad if cases else 1


if __name__ == "__main__":
    print(*count(sys.argv[1]))
