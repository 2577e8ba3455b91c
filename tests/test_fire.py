"""Many clients under fire, the short form of tests/fire.py: everything that can
strike strikes once, then what everybody saw is checked."""

import random
from datetime import datetime

import pytest

import fire
import nemesis
import support
from service import wait_for


@pytest.mark.limit(120)
def test_under_fire_every_promise_of_a_lease_holds(build, tmp_path):
    strikes = random.Random(1).sample(nemesis.Nemesis.KINDS,
                                      len(nemesis.Nemesis.KINDS))
    with fire.Fire(tmp_path) as under:
        under.episode(1, strikes, gap=0.2)
        report = under.report
    print(*report.lines(), *report.problems, sep="\n")
    assert report.problems == []
    assert report.counts["ok"] > 50 and report.holders > 1
    assert report.undecided == 0
    if report.handed_on and not support.SAN:
        assert fire.percentile(report.handed_on, 50) < 500


@pytest.mark.plain      # a sanitizer does not bear libfaketime before it
def test_the_nemesis_steps_the_wall_clock_and_lease_time_stays(build, tmp_path):
    def clock():
        told = under.service.get("/v1/status").json["clock"]
        now = datetime.fromisoformat(told["now"]).timestamp()
        return now, told["lead"]

    with fire.Fire(tmp_path) as under:
        now, lead = clock()
        under.clock.step(-3600)
        wait_for(lambda: clock()[1] > lead + 3500, 30, "the step is seen")
        assert 0 <= clock()[0] - now < 60
