<?php
// php -d sqlite3.extension_dir=FOLDER host.php lease.so FILE: a lease from PHP.
[, $extension, $file] = $argv;

$db = new SQLite3($file);
$db->enableExceptions(true);
$db->loadExtension($extension);
$db->exec('CREATE TABLE work(token INTEGER)');

// PHP runs a prepared SELECT twice, once in execute() and once more when the
// first row is fetched: call functions that write through querySingle().
$r = SQLite3::escapeString('r');
$token = $db->querySingle("SELECT lease_grant('$r', 'w1', 30)");
echo "granted $token\n";
echo 'refused ', $db->querySingle("SELECT lease_grant('$r', 'w2', 30)") ?? 'NULL', "\n";
$token = $db->querySingle("SELECT lease_renew('$r', '$token')");
echo "renewed $token\n";
$db->exec('BEGIN IMMEDIATE');
$write = $db->prepare('INSERT INTO work SELECT ? WHERE lease_check(?, ?)');
foreach ([$token, 'r', $token] as $i => $value) {
    $write->bindValue($i + 1, $value);
}
$write->execute();
echo 'checked ', $db->changes(), "\n";
$write->close();
$db->exec('COMMIT');
$rows = $db->query('SELECT resource, holder, token FROM lease_active');
while ($row = $rows->fetchArray(SQLITE3_NUM)) {
    echo 'active ', implode(' ', $row), "\n";
}
$rows->finalize();
echo $db->close() ? "closed\n" : "not closed\n";
