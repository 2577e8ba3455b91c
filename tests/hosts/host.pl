# host.pl EXTENSION FILE: a lease from Perl, with DBD::SQLite.
use strict;
use warnings;
use DBI;

my ($extension, $file) = @ARGV;
my $db = DBI->connect("dbi:SQLite:dbname=$file", '', '', { RaiseError => 1 });
$db->sqlite_enable_load_extension(1);
$db->sqlite_load_extension($extension);
sub one { return ($db->selectrow_array(shift, undef, @_))[0] }

$db->do('CREATE TABLE work(token INTEGER)');
my $token = one('SELECT lease_grant(?, ?, ?)', 'r', 'w1', 30);
print "granted $token\n";
print 'refused ', one('SELECT lease_grant(?, ?, ?)', 'r', 'w2', 30) // 'NULL', "\n";
$token = one('SELECT lease_renew(?, ?)', 'r', $token);
print "renewed $token\n";
$db->begin_work;
my $rows = $db->do('INSERT INTO work SELECT ? WHERE lease_check(?, ?)', undef,
    $token, 'r', $token);
$db->commit;
print "checked $rows\n";
print "active @$_\n"
    for @{ $db->selectall_arrayref('SELECT resource, holder, token FROM lease_active') };
$db->disconnect;
print "closed\n";
