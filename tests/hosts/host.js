// host.js EXTENSION FILE: a lease from Node, with better-sqlite3.
const Database = require('better-sqlite3');
const [, , extension, file, nativeBinding] = process.argv;

const db = new Database(file, { nativeBinding });
db.loadExtension(extension);
const one = (sql, ...args) => db.prepare(sql).pluck().get(...args);

db.exec('CREATE TABLE work(token INTEGER)');
let token = one('SELECT lease_grant(?, ?, ?)', 'r', 'w1', 30);
console.log('granted', token);
console.log('refused', one('SELECT lease_grant(?, ?, ?)', 'r', 'w2', 30) ?? 'NULL');
// Node's numbers are REAL to SQLite: a token is bound as a BigInt.
token = one('SELECT lease_renew(?, ?)', 'r', BigInt(token));
console.log('renewed', token);
const write = db.transaction(() => db.prepare(
  'INSERT INTO work SELECT @token WHERE lease_check(@resource, @token)')
  .run({ resource: 'r', token: BigInt(token) }).changes);
console.log('checked', write.immediate());
for (const row of db.prepare('SELECT resource, holder, token FROM lease_active').raw().iterate())
  console.log('active', ...row);
db.close();
console.log('closed');
