"""The manual page and the completion of `lease` say what the program takes.
"""

import re
import subprocess

import pytest

import cli
import support

VERBS = ["run", "grant", "renew", "release", "check", "revoke", "list",
         "events", "watch", "status"]
PAGE = support.ROOT / "cli" / "lease.1"


def helped(*words):
    return subprocess.run([cli.LEASE, *words], capture_output=True, text=True,
                          check=True).stdout


def test_the_manual_page_has_no_fault():
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", PAGE],
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_manual_page_has_every_verb_and_option(build):
    text = subprocess.run(["mandoc", "-Tascii", PAGE], capture_output=True,
                          text=True, check=True).stdout
    text = re.sub(r".\x08", "", text)
    for verb in VERBS:
        assert f"lease {verb}" in text
        for option in re.findall(r"--[a-z-]+", helped(verb, "--help")):
            assert option in text or option == "--help", option
    for name in re.findall(r"LEASE_[A-Z]+", helped("run", "--help")):
        assert name in text


def completed(*words):
    script = (f"source {support.ROOT}/cli/lease.bash; PATH={support.BUILD}:"
              "$PATH; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _lease; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    return subprocess.run(["bash", "-c", script, "bash", *words],
                          capture_output=True, text=True,
                          check=True).stdout.split()


@pytest.mark.parametrize("words, offered", [
    (["lease", ""], {*VERBS, "--help", "--version"}),
    (["lease", "re"], {"renew", "release", "revoke"}),
    (["lease", "run", "--gr"], {"--grace"}),
    (["lease", "check", "--m"], {"--min-remaining"}),
    (["lease", "check", "--data"], set()),
    (["lease", "check", "--w"], set()),
    (["lease", "run", "--w"], {"--wait"}),
])
def test_completion_offers_what_the_program_takes(build, words, offered):
    assert set(completed(*words)) == offered


def test_completion_behind_two_dashes_is_the_commands(build):
    assert "true" in completed("lease", "run", "-r", "x", "--", "tru")
