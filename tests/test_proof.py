"""tests/PROOF.md tells what there is: each test that it names, each case of its
table with the tests that carry the case's id in their docstring.

The last column of the table is written by `tests/run tests/test_proof.py
--rewrite` from the docstrings.
"""

import ast
import collections
import re

import support

PAGE = support.ROOT / "tests" / "PROOF.md"
ROW = re.compile(r"^\| (C\d{3}) \| (.*?) \| (.*?) \|$", re.M)


def written():
    """(file, name, docstring) of every test."""
    for path in sorted(PAGE.parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and \
                    node.name.startswith("test_"):
                yield path.stem, node.name, ast.get_docstring(node) or ""


def shown():
    """What the last column says of each case: its tests as sentences."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for file, name, text in written():
        for case in re.findall(r"\bC\d{3}\b", text):
            sentence = name.removeprefix("test_").replace("_", " ")
            found[case][file.removeprefix("test_")].append(sentence)
    return {case: "; ".join(f"{file}: {', '.join(names)}"
                            for file, names in sorted(files.items()))
            for case, files in found.items()}


def test_every_case_is_told_once_with_the_tests_that_show_it(request):
    wanted = shown()
    if request.config.getoption("--rewrite"):
        PAGE.write_text(ROW.sub(lambda row: f"| {row[1]} | {row[2]} | "
                                f"{wanted[row[1]]} |", PAGE.read_text()))
    rows = ROW.findall(PAGE.read_text())
    cases = [case for case, *_ in rows]
    assert cases == sorted(set(cases)) and len(cases) == 93
    assert {case: told for case, _, told in rows} == wanted


def test_the_page_names_tests_that_exist():
    names = {name for _, name, _ in written()}
    named = re.findall(r"\btest_\w+\b(?!\.py)", PAGE.read_text())
    files = re.findall(r"\btest_\w+\.py", PAGE.read_text())
    assert named and [n for n in named if n not in names] == []
    assert [f for f in files if not (PAGE.parent / f).exists()] == []
