"""The tests' own tools: a frame that lies would make every test lie."""

import support


def test_the_test_clock_tells_what_it_was_set_to(db, clock):
    con = db()
    assert support.one(con, "SELECT lease_now()") == clock.wall
    clock.advance(2.5)
    assert support.one(con, "SELECT lease_now()") == clock.wall


def test_the_product_does_not_listen_to_the_test_clock(build, clock):
    con = support.connect(clocked=False)
    assert support.one(con, "SELECT lease_now()") > clock.wall + 86_400


def test_the_shell_tells_errors_where_they_came(build):
    said = support.shell("SELECT 1;\nSELECT nothing;\nSELECT 2;\n")
    assert said.index("1\n") < said.index("nothing") < said.rindex("2\n")
