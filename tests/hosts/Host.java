// java Host.java EXTENSION FILE: a lease from Java, with sqlite-jdbc.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;

public class Host {
    static Connection db;

    static PreparedStatement bind(String sql, Object... args) throws Exception {
        PreparedStatement query = db.prepareStatement(sql);
        for (int i = 0; i < args.length; i++) {
            query.setObject(i + 1, args[i]);
        }
        return query;
    }

    static Object one(String sql, Object... args) throws Exception {
        try (PreparedStatement query = bind(sql, args);
                ResultSet rows = query.executeQuery()) {
            rows.next();
            return rows.getObject(1);
        }
    }

    public static void main(String[] argv) throws Exception {
        db = DriverManager.getConnection(
            "jdbc:sqlite:" + argv[1] + "?enable_load_extension=true&transaction_mode=IMMEDIATE");
        one("SELECT load_extension(?)", argv[0]);
        Statement statement = db.createStatement();
        statement.execute("CREATE TABLE work(token INTEGER)");

        Object token = one("SELECT lease_grant(?, ?, ?)", "r", "w1", 30);
        System.out.println("granted " + token);
        Object refused = one("SELECT lease_grant(?, ?, ?)", "r", "w2", 30);
        System.out.println("refused " + (refused == null ? "NULL" : refused));
        token = one("SELECT lease_renew(?, ?)", "r", token);
        System.out.println("renewed " + token);
        db.setAutoCommit(false);
        try (PreparedStatement write = bind(
                "INSERT INTO work SELECT ? WHERE lease_check(?, ?)", token, "r", token)) {
            System.out.println("checked " + write.executeUpdate());
        }
        db.commit();
        db.setAutoCommit(true);
        try (ResultSet rows = statement.executeQuery(
                "SELECT resource, holder, token FROM lease_active")) {
            while (rows.next()) {
                System.out.println("active " + rows.getString(1) + " "
                    + rows.getString(2) + " " + rows.getLong(3));
            }
        }
        statement.close();
        db.close();
        System.out.println("closed");
    }
}
