# host.tcl EXTENSION FILE: a lease from Tcl.
package require sqlite3
lassign $argv extension file

sqlite3 db $file
db enable_load_extension 1
db eval {SELECT load_extension($extension)}
db nullvalue NULL
db eval {CREATE TABLE work(token INTEGER)}

set token [db onecolumn {SELECT lease_grant('r', 'w1', 30)}]
puts "granted $token"
puts "refused [db onecolumn {SELECT lease_grant('r', 'w2', 30)}]"
set token [db onecolumn {SELECT lease_renew('r', $token)}]
puts "renewed $token"
db transaction immediate {
    db eval {INSERT INTO work SELECT $token WHERE lease_check('r', $token)}
    puts "checked [db changes]"
}
db eval {SELECT resource, holder, token FROM lease_active} row {
    puts "active $row(resource) $row(holder) $row(token)"
}
db close
puts "closed"
