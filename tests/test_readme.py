"""The examples of README.md and ext/README.md, run as they stand.

```console blocks: each line after "$ " is run by bash in the folder of the
built product, in order, against a service that starts empty; the lines up to
the next "$ " are what it must print. ```sqlite blocks: each statement after
"sqlite> " goes to one sqlite3 shell for all blocks of a page, on an empty file.

Blanks and line ends do not count, and what no two runs have in common, times,
is compared by its form only. A block that begins with "# not run" is not run.
"""

import re
import subprocess

import pytest

import support

PAGES = ["README.md", "ext/README.md"]

FORMS = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<instant>"),
    (r'"(remaining|now)":[0-9.]+', r'"\1":<seconds>'),
    (r"Retry-After \d+", "Retry-After <seconds>"),
    (r"Runtime error near line \d+:", "Runtime error:"),
    (r"\s+", ""),
]


def form(text):
    for pattern, put in FORMS:
        text = re.sub(pattern, put, text)
    return text


def blocks(page, kind):
    text = (support.ROOT / page).read_text()
    return [b for b in re.findall(rf"```{kind}\n(.*?)```", text, re.S)
            if not b.startswith("# not run")]


def examples(page, kind, prompt):
    """(what is typed, what must be printed) of all blocks of a kind. Input
    goes on after a line that ends with a backslash, or with "   ...> "."""
    for block in blocks(page, kind):
        for part in re.split(rf"^{re.escape(prompt)}", block, flags=re.M)[1:]:
            lines = part.splitlines()
            typed = [lines.pop(0)]
            while lines and (typed[-1].endswith("\\")
                             or lines[0].startswith("   ...> ")):
                typed.append(lines.pop(0).removeprefix("   ...> "))
            yield "\n".join(typed), "\n".join(lines)


@pytest.mark.parametrize("page", PAGES)
def test_the_sql_examples_print_what_the_page_says(page, build, tmp_path):
    (tmp_path / "build").symlink_to(build)
    pairs = list(examples(page, "sqlite", "sqlite> "))
    assert pairs
    script = "".join(f"{typed}\n.print ----\n" for typed, _ in pairs)
    said = support.shell(script, tmp_path / "app.db", loaded=False,
                         cwd=tmp_path).split("----\n")
    for (typed, expected), printed in zip(pairs, said):
        assert form(printed) == form(expected), typed


@pytest.mark.plain      # a shell does not bear a sanitizer preloaded
@pytest.mark.limit(60)
def test_the_shell_examples_print_what_the_readme_says(service, build,
                                                       tmp_path):
    """C116"""
    (tmp_path / "build").symlink_to(build)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "lease.db").symlink_to(service.db)
    pairs = list(examples("README.md", "console", "$ "))
    assert pairs
    for typed, expected in pairs:
        typed = typed.replace("127.0.0.1:8184", f"127.0.0.1:{service.port}")
        done = subprocess.run(
            ["bash", "-c", typed], cwd=tmp_path, text=True, timeout=30,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert form(done.stdout) == form(expected), typed


@pytest.mark.parametrize("page", PAGES)
def test_the_page_names_files_that_exist(page):
    path = support.ROOT / page
    named = re.findall(r"\]\(((?!https?:|#)[^)#]+)", path.read_text())
    assert [n for n in named if not (path.parent / n).exists()] == []
