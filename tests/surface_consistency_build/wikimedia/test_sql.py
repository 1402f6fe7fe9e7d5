import gzip
import warnings

import pyarrow as pa
import pytest
from surface_consistency_build.wikimedia import _sql_rows, _sql_statements
from surface_consistency_build.wikimedia.sql import read_sql

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    DataWarning,
    SourceNotFoundError,
)

HEAD = (
    b"CREATE TABLE `t` (`id` int(8) unsigned, `big` bigint(20) unsigned, `title` varbinary(255), "
    b"`share` double, `price` decimal(10,3), PRIMARY KEY (`id`));\n"
)
NAMES = ["id", "big", "title", "share", "price"]


def write(tmp_path, *statements, head=HEAD):
    path = tmp_path / "t.sql.gz"
    path.write_bytes(gzip.compress(head + b"".join(statements), 1))
    return path


def insert(values):
    return b"INSERT INTO `t` VALUES %b;\n" % values


def rows(path, columns, **options):
    return [
        tuple(row.values())
        for batch in read_sql(path, columns, **options)
        for row in batch.to_pylist()
    ]


# Literals of MariaDB, https://mariadb.com/kb/en/string-literals/ and .../hexadecimal-literals/
@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (rb"'\0\b\n\r\t\Z'", b"\0\b\n\r\t\x1a"), (rb"'\\\'\"'", b"\\'\""),
        (rb"'\a\Q\%\_'", rb"aQ\%\_"), (rb"'it''s'''", b"it's'"), (b"''", b""), (b"''''", b"'"),
        (rb"'\\'", b"\\"), (rb"'\\\\\\'", b"\\\\\\"), (rb"'\\\''", b"\\'"),
        (b"'" + b"\\" * 4000 + b"'", b"\\" * 2000),
        (b"'" + b"\\" * 4001 + b"'),('", b"\\" * 2000 + b"'),("), (b"NULL", None),
        (b"'NULL'", b"NULL"), (b"_binary 'a\\0'", b"a\0"), (b"_utf8mb4'\xc3\xbc'", b"\xc3\xbc"),
        (b"0x4A4b", b"JK"), (b"x'4A4b'", b"JK"), (b"'0x4A'", b"0x4A"), (b"-12.50", b"-12.50"),
        (b"'),(1,2,'", b"),(1,2,"), (b"'a),(b'", b"a),(b"),
        (b"';\nINSERT INTO `t` VALUES (1'", b";\nINSERT INTO `t` VALUES (1"),
        (b"'-- no comment\n/*'", b"-- no comment\n/*"),
        (b"'\x80\xfe\xff\xc3('", b"\x80\xfe\xff\xc3("),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_rows", [1, 400])
def test_read_sql_decodes_literals(tmp_path, literal, value, n_rows):
    row = b"(7,8,%b,0.5,1.5)" % literal
    path = write(tmp_path, insert(b",".join([row] * n_rows)))

    assert rows(path, ["title", "id"]) == [(value, 7)] * n_rows


@pytest.mark.parametrize("padding", [b"", b" ", b"\n  "])
@pytest.mark.parametrize("n_rows", [1, 400])
def test_read_sql_reads_numbers(tmp_path, padding, n_rows):
    values = [b"0", b"18446744073709551615", b"NULL", b"-1.5e-300", b"-00.500"]
    row = b"(" + (padding + b"," + padding).join(values) + padding + b")"
    path = write(tmp_path, insert((padding + b"," + padding).join([row] * n_rows) + padding))

    assert rows(path, NAMES) == [(0, 2**64 - 1, None, -1.5e-300, b"-00.500")] * n_rows


def test_types_of_read_sql_are_those_of_the_definition(tmp_path):
    assert list(read_sql(write(tmp_path), NAMES)) == []
    (batch,) = read_sql(write(tmp_path, insert(b"(1,2,'a',3,4)")), NAMES)
    types = [pa.int64(), pa.uint64(), pa.binary(), pa.float64(), pa.binary()]
    assert batch.schema == pa.schema(list(zip(NAMES, types, strict=True)))


def test_read_sql_reads_files_with_many_statements(tmp_path):
    path = write(
        tmp_path,
        b"LOCK TABLES `t` WRITE;\n/*!40000 ALTER TABLE `t` DISABLE KEYS */;\n",
        b"INSERT INTO `t` VALUES\n(1,1,'a',1,1),\n(2,2,'b',2,2);\n-- it's a comment;\n# don't\n",
        b"insert ignore into t values (3,3,'c',3,3) ; INSERT INTO `wiki`.`t` VALUES(4,4,'d',4,4);",
        b"SET NAMES 'utf8;mb4';ALTER TABLE `t` COMMENT 'it''s; INSERT INTO';\r\n",
        b"REPLACE INTO `t` (`title`, `big`,`id`) VALUES ('e',5,5),('f',6,6);\r\n",
        b"UNLOCK TABLES;\n-- Dump completed on 2026-01-01",
        head=b"/*M!999999\\- enable the sandbox mode */ \n--\n" + HEAD,
    )

    found = rows(path, ["id", "title"])
    assert found == [(number, letter.encode()) for number, letter in enumerate("abcdef", 1)]


def test_batches_are_bounded(tmp_path):
    literals = (b"(%d,1,'%b',0,0)" % (i, b"x" * (i % 50)) for i in range(300_000))
    path = write(tmp_path, insert(b",".join(literals)))

    sizes = []
    for batch in read_sql(path, ["id", "title"]):
        assert batch.column(1).nbytes < 1 << 25
        sizes.append(batch.num_rows)

    assert sum(sizes) == 300_000
    assert max(sizes) < 150_000


def test_read_sql_reads_rows_longer_than_its_reads(tmp_path):
    titles = [b"x" * 1_200_000, b"', \\" * 300_000, b"y"]
    literals = [title.replace(b"\\", b"\\\\").replace(b"'", b"\\'") for title in titles]
    values = b",".join(b"(%d,1,'%b',0,0)" % row for row in enumerate(literals))
    path = write(tmp_path, insert(values))

    assert rows(path, ["title", "id"]) == [(title, i) for i, title in enumerate(titles)]


def test_missing_title_column_of_categorylinks_is_reported(data_files):
    path = data_files / "wikimedia" / "aawiki-20260101-categorylinks.sql.gz"

    # zcat FILE | grep -o "([0-9]*,'" | wc -l, and its first rows
    found = rows(path, ["cl_from", "cl_target_id", "cl_sortkey"])
    assert len(found) == 156
    assert found[:2] == [(1341, 208, b"DIAGRAPH01"), (1343, 212, b"SJ\nSJ")]
    lacking = "categorylinks has no column cl_to; it has cl_from, cl_sortkey"
    with pytest.raises(ColumnNotFoundError, match=lacking):
        read_sql(path, ["cl_from", "cl_to"])


# Read manually from the files (zcat FILE | tail).
@pytest.mark.parametrize(
    ("file", "columns", "expected"),
    [
        (
            "multiple-inserts.sql",
            ["pp_value", "pp_page", "pp_sortkey"],
            [(b"Q%d" % number, number, None) for number in range(1, 5)],
        ),
        (
            "rmwiki-20240301-redirect.sql.gz",
            ["rd_from", "rd_title", "rd_interwiki", "rd_fragment"],
            [
                (811, b"Pagina_principala", b"", b""),
                (4108, b"Turitg", b"", b""),
                (6857, b"it:user:Username", b"b", b""),
            ],
        ),
        (
            "itwikibooks-20240301-linktarget.sql.gz",
            ["lt_title", "lt_id"],
            [(b"Allegra,_allegra", 374), (b"In_chaschiel_ed_ina_nursa", 375)],
        ),
    ],
)
def test_read_sql_reads_real_dumps(data_files, file, columns, expected):
    assert rows(data_files / "wikimedia" / file, columns) == expected


def test_read_sql_reads_a_real_page_table(data_files):
    path = data_files / "wikimedia" / "rmwiki-20240301-page.sql.gz"

    found = rows(path, ["page_id", "page_title", "page_is_redirect", "page_random", "page_lang"])

    assert len(found) == 7
    assert found[4] == (4108, "Zürich".encode(), 1, 0.262244319829, None)


GOOD = b",".join(b"(%d,1,'title %d',0.5,1)" % (number, number) for number in range(1000))


@pytest.mark.parametrize("n_good", [0, 1000])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"(1,2,'a',3)", "it has 4 values, not 5"), (b"(1,2,'a',3,4,5)", "it has 6 values, not 5"),
        (b"(1,2,a'b',3,4)", "value 3 is followed by"),
        (b"(1,2,'a'b,3,4)", "value 3 is followed by"), (b"(1,2,,3,4)", "value 3 is not a literal"),
        (b"(1,2,now(),3,4)", r"value 3 is followed by b.\(\)"),
        (b"1,2,'a',3,4)", r"a row should start with '\('"),
        (b"(1,2,'a',3,4) (", "is followed by .* not ',' or ';'"),
        (b"(1,-2,'a',3,4)", "-2' is outside 0 to"), (b"(1,2,TRUE,3,4)", "b'TRUE' is not a literal"),
        (b"('x',2,'a',3,4)", "b'x' is not a number"), (b"(x,2,'a',3,4)", "b'x' is not a literal"),
    ],
)  # fmt: skip
def test_read_sql_rejects_broken_rows(tmp_path, bad, message, n_good):
    text = insert(b",".join([*([GOOD] if n_good else []), bad, b"(5,5,'b',5,5)"]))
    path = write(tmp_path, text)
    offset = len(HEAD) + text.index(bad, len(text) - 100)

    place = rf"at plain byte {offset:,}, after {n_good:,} rows of t\. Download the file again"
    with pytest.raises(DataError, match=rf"t\.sql\.gz: a row .*{message}.* {place}"):
        rows(path, NAMES)
    with pytest.warns(DataWarning, match=f"after {n_good:,} rows of t; the data before"):
        assert len(rows(path, NAMES, allow_truncated=True)) == n_good


def test_read_sql_counts_rows_before_damage(tmp_path):
    path = write(tmp_path, *[insert(GOOD) for _ in range(60)])
    path.write_bytes(path.read_bytes()[:-1500])

    early = r"the gzip data end early at byte .* plain bytes\..* [\d,]+ rows of t"
    with pytest.raises(DataError, match=early):
        rows(path, ["id"])
    with pytest.warns(DataWarning, match="gzip data end early") as caught:
        found = rows(path, ["id", "title"], allow_truncated=True)
    assert len(caught) == 1
    assert 10_000 < len(found) < 60_000
    assert found == [(place % 1000, b"title %d" % (place % 1000)) for place in range(len(found))]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (insert(b"(7,8,'" + b"x" * 3_000_000), "a row is longer than 1,000,000 bytes"),
        (b"SET NAMES '" + b"x" * 3_000_000, "a statement is longer than 1,000,000 bytes"),
        (b"/*" + b"x" * 3_000_000, "a comment is longer than 1,000,000 bytes"),
        (b"CREATE TABLE `t` LIKE `u`;", "not a CREATE TABLE with columns"),
    ],
    ids=["row", "statement", "comment", "no columns"],
)
def test_read_sql_rejects_statements_without_end(tmp_path, monkeypatch, rest, message):
    for module in (_sql_rows, _sql_statements):
        monkeypatch.setattr(module, "MAX_STATEMENT_BYTES", 1_000_000)

    with pytest.raises(DataError, match=rf"t\.sql\.gz: {message}.*, after 1 rows of t"):
        rows(write(tmp_path, insert(b"(7,8,'a',1,1)"), rest), ["id"])


@pytest.mark.parametrize(
    ("rest", "columns", "error", "message"),
    [
        (b"CREATE TABLE `u` (`a` int);", ["id"], DataError, "contains the tables t and u; dump"),
        (b"INSERT INTO `u` VALUES (1);", ["id"], DataError, "contains the tables t and u"),
        (b"INSERT INTO `t` (`id`) VALUES (1);", ["big"], DataError, "an INSERT of id lacks big"),
        (b"INSERT INTO `t` SELECT * FROM `u`;", ["id"], DataError, "not followed by VALUES"),
        (b"INSERT INTO `t`", ["id"], DataError, "ends within a statement at .*, after 1 rows"),
        (b"/* a comment", ["id"], DataError, "ends within a statement at .*, after 1 rows"),
        (b"SET NAMES 'a;", ["id"], DataError, "ends within a statement at .*, after 1 rows"),
        (b"", [], ValueError, "one or more distinct names"),
        (b"", ["id", "id"], ValueError, "one or more distinct names"),
    ],
)
def test_read_sql_rejects_other_statements_and_columns(tmp_path, rest, columns, error, message):
    with pytest.raises(error, match=message):
        rows(write(tmp_path, insert(b"(7,8,'a',1,1)"), rest), columns)


def test_read_sql_reports_progress_and_can_be_closed_early(tmp_path):
    path = write(tmp_path, *[insert(GOOD) for _ in range(300)])
    seen = []
    rows(path, ["id"], progress=seen.append)

    assert len(seen) > 3
    assert seen[-1].read_bytes == seen[-1].total_bytes == path.stat().st_size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader = read_sql(path, ["id"])
        assert next(reader).num_rows > 0
        reader.close()
    with pytest.raises(SourceNotFoundError, match=r"dump .* not found"):
        read_sql(tmp_path / "page.sql.gz", ["page_id"])
