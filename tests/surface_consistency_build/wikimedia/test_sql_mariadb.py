"""The reader compared with MariaDB: its dumps, its SELECT, its literals."""

import numpy as np
import pytest
from surface_consistency_build.wikimedia.sql import read_create_table, read_sql
from surface_consistency_build.wikimedia.sql_tables import decode_literal

DEFINITION = b"""
CREATE TABLE `any` (
  `id` int(8) unsigned NOT NULL AUTO_INCREMENT,
  `key` varbinary(255) DEFAULT NULL,
  `value` blob DEFAULT NULL,
  `fixed` binary(14) DEFAULT NULL,
  `small` tinyint(4) DEFAULT NULL,
  `big` bigint(20) DEFAULT NULL,
  `huge` bigint(20) unsigned DEFAULT NULL,
  `price` decimal(20,5) DEFAULT NULL,
  `share` double DEFAULT NULL,
  `kind` enum('page','sub''cat','a,b),(') DEFAULT NULL,
  `at` timestamp NULL DEFAULT NULL,
  `word` varchar(60) CHARACTER SET utf8mb4 DEFAULT NULL,
  `flags` bit(9) DEFAULT NULL,
  `last` int(11) NOT NULL DEFAULT 7,
  PRIMARY KEY (`id`)
) DEFAULT CHARSET=binary
"""
BYTES = ["key", "value", "fixed", "kind", "at", "word", "flags", "price"]
NUMBERS = ["id", "small", "big", "huge", "share", "last"]
PIECES = [b"'", b"\\", b"),(", b";\n", b"NULL", b"\x00", b"\x1a", b"\r\n", b'"', b"(1,'", b"\xff"]


def any_bytes(rng, maximum):
    if rng.random() < 0.5:
        return rng.bytes(int(rng.integers(0, maximum)))
    return b"".join(PIECES[i] for i in rng.integers(0, len(PIECES), 8))[:maximum]


def hexadecimal(value):
    return b"x'" + value.hex().encode() + b"'"


def any_row(rng):
    word = "".join(chr(c) for c in rng.choice([0x41, 0x27, 0x5C, 0xFC, 0x6771, 0x1F600], 9))
    values = [
        hexadecimal(any_bytes(rng, 255)),
        hexadecimal(any_bytes(rng, 2000 if rng.random() < 0.02 else 60)),
        hexadecimal(rng.bytes(14)),
        b"%d" % rng.integers(-128, 128),
        b"%d" % rng.integers(-(2**63), 2**63 - 1),
        b"%d" % rng.integers(0, 2**64 - 1, dtype=np.uint64),
        b"%d.%05d" % (rng.integers(-(10**9), 10**9), rng.integers(0, 10**5)),
        repr(float(rng.normal() * 10.0 ** rng.integers(-200, 200))).encode(),
        [b"'page'", b"'sub''cat'", b"'a,b),('"][rng.integers(0, 3)],
        b"from_unixtime(%d)" % rng.integers(1, 2**31 - 1),
        b"convert(%b using utf8mb4)" % hexadecimal(word.encode()),
        b"%d" % rng.integers(0, 512),
    ]
    kept = [b"NULL" if rng.random() < 0.1 else value for value in values]
    return b"(NULL," + b",".join(kept) + b",%d)" % rng.integers(-5, 5)


@pytest.fixture(scope="module")
def table(mariadb):
    """A table with rows of any kind, in a separate database."""
    rng = np.random.default_rng(11)
    rows = b",".join(any_row(rng) for _ in range(3000))
    mariadb.run(b"CREATE DATABASE `wiki`; USE `wiki`;" + DEFINITION)
    mariadb.run(b"INSERT INTO `any` VALUES " + rows, database="wiki")
    yield mariadb
    mariadb.run(b"DROP DATABASE `wiki`")


def selected(server):
    """The rows as MariaDB returns them, in the time zone of dumps."""
    fields = [f"HEX(`{name}`)" for name in BYTES[:-1]] + ["HEX(CAST(`price` AS CHAR))"]
    query = f"SELECT {', '.join([*fields, *(f'`{name}`' for name in NUMBERS)])} FROM `any`"
    query = query.replace("HEX(`flags`)", "LPAD(HEX(`flags` + 0), 4, '0')")
    out = server.run(f"SET time_zone='+00:00'; {query} ORDER BY `id`".encode(), database="wiki")
    rows = []
    for line in out.decode().splitlines():
        cells = [None if cell == "NULL" else cell for cell in line.split("\t")]
        row = dict(zip([*BYTES, *NUMBERS], cells, strict=True))
        for name in BYTES:
            row[name] = None if row[name] is None else bytes.fromhex(row[name])
        for name in NUMBERS:
            kind = float if name == "share" else int
            row[name] = None if row[name] is None else kind(row[name])
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--net-buffer-length=4096"],
        ["--skip-extended-insert"],
        ["--complete-insert", "--hex-blob"],
        ["--compact", "--replace"],
    ],
)
def test_read_sql_agrees_with_select(table, tmp_path, options):
    path = tmp_path / "any.sql"
    path.write_bytes(table.dump("wiki", "any", *options))

    found = [row for batch in read_sql(path, [*BYTES, *NUMBERS]) for row in batch.to_pylist()]

    expected = selected(table)
    assert len(found) == 3000
    assert found == expected


def test_read_create_table_agrees_with_the_information_schema(table, tmp_path):
    path = tmp_path / "any.sql"
    path.write_bytes(table.dump("wiki", "any", "--no-data"))
    query = (
        b"SELECT column_name, column_type FROM information_schema.columns "
        b"WHERE table_schema = 'wiki' ORDER BY ordinal_position"
    )

    columns = read_create_table(path).columns

    lines = table.run(query).decode().splitlines()
    assert [f"{column.name}\t{column.type}" for column in columns] == lines


def test_escapes_agree_with_mariadb(mariadb):
    """Every byte after a backslash is decoded in the same way."""
    literals = [b"'a\\%cb'" % byte for byte in range(256)]
    # Prepared from hexadecimal, so that the client does not parse it.
    queries = [
        b"SET @query = %b; PREPARE query FROM @query; EXECUTE query;\n"
        % hexadecimal(b"SELECT HEX(%b)" % literal)
        for literal in literals
    ]

    decoded = mariadb.run(b"SET NAMES binary;" + b"".join(queries)).decode().splitlines()

    assert [bytes.fromhex(line) for line in decoded] == [
        decode_literal(literal, "bytes") for literal in literals
    ]
