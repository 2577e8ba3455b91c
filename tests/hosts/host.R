# Rscript host.R EXTENSION FILE: a lease from R, with RSQLite.
argv <- commandArgs(trailingOnly = TRUE)

db <- DBI::dbConnect(RSQLite::SQLite(), argv[2], loadable.extensions = TRUE)
invisible(DBI::dbGetQuery(db, "SELECT load_extension(?)", list(argv[1])))
say <- function(...) cat(paste(...), "\n", sep = "")
one <- function(sql, ...) DBI::dbGetQuery(db, sql, list(...))[1, 1]
invisible(DBI::dbExecute(db, "CREATE TABLE work(token INTEGER)"))

token <- one("SELECT lease_grant(?, ?, ?)", "r", "w1", 30)
say("granted", token)
refused <- one("SELECT lease_grant(?, ?, ?)", "r", "w2", 30)
say("refused", if (is.na(refused)) "NULL" else refused)
# R's numbers are REAL to SQLite: a token is bound as an integer.
token <- one("SELECT lease_renew(?, ?)", "r", as.integer(token))
say("renewed", token)
DBI::dbExecute(db, "BEGIN IMMEDIATE") |> invisible()
rows <- DBI::dbExecute(db, "INSERT INTO work SELECT ? WHERE lease_check(?, ?)",
                       list(token, "r", token))
DBI::dbExecute(db, "COMMIT") |> invisible()
say("checked", rows)
active <- DBI::dbGetQuery(db, "SELECT resource, holder, token FROM lease_active")
say("active", active$resource, active$holder, active$token)
DBI::dbDisconnect(db)
cat("closed\n")
