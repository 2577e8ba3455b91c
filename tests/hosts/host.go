// host.go EXTENSION FILE: a lease from Go, with mattn/go-sqlite3.
package main

import (
	"database/sql"
	"fmt"
	"os"

	"github.com/mattn/go-sqlite3"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func one(db *sql.DB, query string, args ...interface{}) sql.NullInt64 {
	var value sql.NullInt64
	must(db.QueryRow(query, args...).Scan(&value))
	return value
}

func main() {
	sql.Register("lease", &sqlite3.SQLiteDriver{Extensions: []string{os.Args[1]}})
	db, err := sql.Open("lease", os.Args[2]+"?_txlock=immediate")
	must(err)
	_, err = db.Exec("CREATE TABLE work(token INTEGER)")
	must(err)

	token := one(db, "SELECT lease_grant(?, ?, ?)", "r", "w1", 30).Int64
	fmt.Println("granted", token)
	if !one(db, "SELECT lease_grant(?, ?, ?)", "r", "w2", 30).Valid {
		fmt.Println("refused NULL")
	}
	token = one(db, "SELECT lease_renew(?, ?)", "r", token).Int64
	fmt.Println("renewed", token)
	tx, err := db.Begin()
	must(err)
	done, err := tx.Exec("INSERT INTO work SELECT ? WHERE lease_check(?, ?)", token, "r", token)
	must(err)
	must(tx.Commit())
	changed, err := done.RowsAffected()
	must(err)
	fmt.Println("checked", changed)
	rows, err := db.Query("SELECT resource, holder, token FROM lease_active")
	must(err)
	for rows.Next() {
		var resource, holder string
		must(rows.Scan(&resource, &holder, &token))
		fmt.Println("active", resource, holder, token)
	}
	must(rows.Close())
	must(db.Close())
	fmt.Println("closed")
}
