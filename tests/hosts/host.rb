# host.rb EXTENSION FILE: a lease from Ruby, with the gem sqlite3.
require 'sqlite3'
extension, file = ARGV

db = SQLite3::Database.new(file)
db.enable_load_extension(true)
db.load_extension(extension)
db.execute('CREATE TABLE work(token INTEGER)')

token = db.get_first_value('SELECT lease_grant(?, ?, ?)', ['r', 'w1', 30])
puts "granted #{token}"
refused = db.get_first_value('SELECT lease_grant(?, ?, ?)', ['r', 'w2', 30])
puts "refused #{refused.nil? ? 'NULL' : refused}"
token = db.get_first_value('SELECT lease_renew(?, ?)', ['r', token])
puts "renewed #{token}"
db.transaction(:immediate) do
  db.execute('INSERT INTO work SELECT ? WHERE lease_check(?, ?)', [token, 'r', token])
  puts "checked #{db.changes}"
end
db.execute('SELECT resource, holder, token FROM lease_active') do |row|
  puts "active #{row.join(' ')}"
end
db.close
puts 'closed'
