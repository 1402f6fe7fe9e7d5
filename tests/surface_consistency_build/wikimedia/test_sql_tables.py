import pytest
from surface_consistency_build.wikimedia.sql import read_create_table
from surface_consistency_build.wikimedia.sql_tables import SqlColumn, name_of, parse_create_table
from surface_consistency_build.wikimedia.streams import open_dump

from surface_consistency.errors import DataError


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("int(8) unsigned", "integer"), ("tinyint(3) unsigned", "integer"),
        ("bigint(20)", "integer"), ("bigint(20) unsigned", "unsigned"),
        ("bigint(20) unsigned zerofill", "unsigned"), ("BIGINT UNSIGNED", "unsigned"),
        ("year(4)", "integer"), ("double unsigned", "float"), ("float", "float"),
        ("decimal(10,3)", "decimal"), ("varbinary(255)", "bytes"),
        ("enum('page','subcat','file')", "bytes"), ("timestamp", "bytes"), ("binary(14)", "bytes"),
        ("point", "bytes"),
    ],
)  # fmt: skip
def test_kind_of_a_column_is_that_of_its_type(written, expected):
    table = parse_create_table(b"CREATE TABLE `t` (`c` %b NOT NULL);" % written.encode())

    assert table.columns[0].kind == expected


def test_parse_create_table_reads_unusual_definitions():
    table = parse_create_table(
        b"CREATE TABLE IF NOT EXISTS `wiki`.`odd``name` (\n"
        b"  `a,b` enum('x','it''s),(','\\'') DEFAULT 'x, y', -- `not` int,\n"
        b"  `key` int(8) unsigned NOT NULL COMMENT 'a ) comment', /* `nor` int, */\n"
        b"  plain decimal(20 , 5) zerofill,\n"
        b"  `later` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),\n"
        b"  `provenance` int(11) GENERATED ALWAYS AS (length(`a,b`) + 1) VIRTUAL,\n"
        b"  PRIMARY KEY (`key`,`plain`(10)), UNIQUE KEY `u` (`later`), CHECK (`key` > 0),\n"
        b"  CONSTRAINT `c` FOREIGN KEY (`key`) REFERENCES `other` (`x`)\n"
        b") ENGINE=InnoDB;"
    )

    assert table.name == "odd`name"
    assert table.columns == (
        SqlColumn("a,b", "enum('x','it''s),(','\\'')"),
        SqlColumn("key", "int(8) unsigned"),
        SqlColumn("plain", "decimal(20,5) zerofill"),
        SqlColumn("later", "timestamp"),
        SqlColumn("provenance", "int(11)"),
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [(b"page", "page"), (b"`a.b`", "a.b"), (b"wiki . page", "page"), (b"`\xc3\xbc`", "ü")],
)
def test_name_of_drops_quotes_and_database(written, expected):
    assert name_of(written) == expected


# The definitions in the files: zcat FILE | sed -n '/CREATE TABLE/,/ENGINE/p'
@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("aawiki-20260101-pagelinks.sql.gz", "pl_from pl_from_namespace pl_target_id"),
        ("itwikibooks-20240301-linktarget.sql.gz", "lt_id lt_namespace lt_title"),
        ("multiple-inserts.sql", "pp_page pp_propname pp_value pp_sortkey"),
    ],
)
def test_read_create_table_reads_real_dumps(data_files, file, names):
    path = data_files / "wikimedia" / file

    table = read_create_table(path)

    assert table.names == tuple(names.split())
    with open_dump(path) as stream:
        assert read_create_table(stream) == table


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (b"CREATE TABLE `t` LIKE `u`;", "not a CREATE TABLE with columns"),
        (b"CREATE TABLE `t` (PRIMARY KEY (`a`));", "has no columns"),
        (b"CREATE TABLE `t` (`a` int(8;", "parentheses of a CREATE TABLE are not closed: b'CRE"),
        (b"CREATE TABLE `t` (`a` int(8), KEY (`a`;", "are not closed"),
        (b"CREATE TABLE `t` (`a` int(8)", "are not closed"),
    ],
)
def test_parse_create_table_rejects_invalid_statements(statement, message):
    with pytest.raises(DataError, match=message):
        parse_create_table(statement)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<html><body>It's gone", "a page of HTML or XML, not an SQL dump, at plain byte 0"),
        (b"-- a comment\n/* no more */", "no complete CREATE TABLE"),
        (b"CREATE TABLE `page` (`page_id` int", "the dump has no complete CREATE TABLE"),
        (b"INSERT INTO `page` VALUES (1);", "an INSERT INTO page precedes the CREATE TABLE"),
        (b"\x00\x01\x02\x03", "this is not SQL"),
    ],
)
def test_read_create_table_rejects_dumps_without_a_definition(tmp_path, text, message):
    path = tmp_path / "page.sql"
    path.write_bytes(text)

    with pytest.raises(DataError, match=message):
        read_create_table(path)
