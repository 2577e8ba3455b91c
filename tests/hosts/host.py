"""host.py EXTENSION FILE: a lease from Python."""
import sqlite3
import sys

con = sqlite3.connect(sys.argv[2], isolation_level=None)
con.enable_load_extension(True)
con.load_extension(sys.argv[1])


def one(sql, *args):
    return con.execute(sql, args).fetchone()[0]


con.execute("CREATE TABLE work(token INTEGER)")
token = one("SELECT lease_grant(?, ?, ?)", "r", "w1", 30)
print("granted", token)
if one("SELECT lease_grant(?, ?, ?)", "r", "w2", 30) is None:
    print("refused NULL")
token = one("SELECT lease_renew(?, ?)", "r", token)
print("renewed", token)
with con:
    con.execute("BEGIN IMMEDIATE")
    done = con.execute("INSERT INTO work SELECT ? WHERE lease_check(?, ?)",
                       (token, "r", token))
print("checked", done.rowcount)
for row in con.execute("SELECT resource, holder, token FROM lease_active"):
    print("active", *row)
con.close()
print("closed")
