-- The register of the highest token, and the guard on a table.
SELECT lease_fence('r', 5);
SELECT lease_fence('r', 5);
SELECT lease_fence('r', 4);
SELECT lease_fence('other', 1);
CREATE TABLE "seg""ment"(id INTEGER PRIMARY KEY, "the resource" TEXT,
  "to'ken" INTEGER, body TEXT);
SELECT lease_guard('seg"ment', 'the resource', 'to''ken');
SELECT lease_guard('seg"ment', 'the resource', 'to''ken');
INSERT INTO "seg""ment" VALUES(1, 'r', 6, 'newer');
INSERT INTO "seg""ment" VALUES(2, 'r', 5, 'stale');
INSERT OR IGNORE INTO "seg""ment" VALUES(2, 'r', 5, 'stale');
INSERT OR REPLACE INTO "seg""ment" VALUES(1, 'r', 5, 'stale');
UPDATE "seg""ment" SET "to'ken" = 5;
UPDATE "seg""ment" SET body = 'same token';
UPDATE "seg""ment" SET "to'ken" = 7;
SELECT * FROM "seg""ment";
SELECT lease_fence('r', 6);
SELECT * FROM lease_fence ORDER BY resource;
SELECT lease_guard('no table', 'a', 'b');
SELECT lease_guard('seg"ment', 'no column', 'to''ken');
