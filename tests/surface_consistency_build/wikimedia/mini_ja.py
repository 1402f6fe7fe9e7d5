"""A Japanese wiki of a few dozen pages, for tests of a new language from dumps to report.

The facts are true. The types of redirects (categories and templates) are invented, because the
Japanese Wikipedia does not categorise its redirects. This command writes the dumps:

    python -m tests.surface_consistency_build.wikimedia.mini_ja FOLDER
"""

import bz2
import gzip
import json
import sys
from pathlib import Path

DATE = "20260101"


def cells(text):
    """Split a text into rows at white space, and rows into cells at bars."""
    return [row.split("|") for row in text.split()]


ENTITIES = {
    title: int(number)
    for title, number in cells("""
    日本|17 東京都|1490 京都市|34600 京都府|120730 大阪市|35765
    大阪府|122723 フランス|142 パリ|90 イタリア|38 ローマ|220
    夏目漱石|41346 芥川龍之介|212867 黒澤明|8006 小説家|6625963 映画監督|2526255
    吾輩は猫である|1064384 羅生門_(小説)|700736 七人の侍|189540 東京タワー|183536 清水寺|221716
    """)
}
CLAIMS = {
    "P36": "日本|東京都 京都府|京都市 大阪府|大阪市 フランス|パリ イタリア|ローマ",
    "P1376": "東京都|日本 パリ|フランス ローマ|イタリア",
    "P50": "吾輩は猫である|夏目漱石 羅生門_(小説)|芥川龍之介",
    "P57": "七人の侍|黒澤明",
    "P106": "夏目漱石|小説家 芥川龍之介|小説家 黒澤明|映画監督",
    "P19": "夏目漱石|東京都 黒澤明|東京都",
    "P17": "東京タワー|日本 清水寺|日本",
}
CLAIMS = {name: dict(cells(pairs)) for name, pairs in CLAIMS.items()}
# Redirect, target and type; a type is a category, which the template of the same name adds.
REDIRECTS = [
    (title, target, kind or None)
    for title, target, kind in cells("""
    日本国|日本|正式名称 にほん|日本|別表記 東京|東京都|略称
    京都|京都市|略称 みやこ|京都市| 大阪|大阪市|略称
    フランス共和国|フランス|正式名称 仏国|フランス|別名 巴里|パリ|別名
    イタリヤ|イタリア|別表記 羅馬|ローマ|別名 夏目金之助|夏目漱石|本名
    漱石|夏目漱石|略称 芥川竜之介|芥川龍之介|別表記 黒沢明|黒澤明|誤記
    我輩は猫である|吾輩は猫である|誤記 7人の侍|七人の侍|別表記 日本電波塔|東京タワー|別名
    音羽山清水寺|清水寺|正式名称 きょうとふ|京都府|別表記 おおさかふ|大阪府|別表記
    日本の歴史|日本#歴史|節 Edo|:en:Edo|
    """)
]
ENGLISH = {
    "別名からの転送": "Category:Redirects from alternative names",
    "誤記からの転送": "Category:Redirects from misspellings",
}
COLUMNS = {
    "page": "`page_id` int(8) unsigned,`page_namespace` int(11),`page_title` varbinary(255),"
    "`page_is_redirect` tinyint(1)",
    "redirect": "`rd_from` int(8) unsigned,`rd_namespace` int(11),`rd_title` varbinary(255),"
    "`rd_interwiki` varbinary(32),`rd_fragment` varbinary(255)",
    "page_props": "`pp_page` int(8),`pp_propname` varbinary(60),`pp_value` blob",
    "linktarget": "`lt_id` bigint(20) unsigned,`lt_namespace` int(11),`lt_title` varbinary(255)",
    "categorylinks": "`cl_from` int(8) unsigned,`cl_type` enum('page','subcat','file'),"
    "`cl_target_id` bigint(20) unsigned",
    "langlinks": "`ll_from` int(8) unsigned,`ll_lang` varbinary(35),`ll_title` varbinary(255)",
}


def literal(value):
    """Write a value in the format of mysqldump."""
    if value is None or isinstance(value, int):
        return b"NULL" if value is None else b"%d" % value
    raw = value if isinstance(value, bytes) else value.encode("utf-8")
    return b"'" + raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"


def values(row):
    """Write a row in the format of mysqldump."""
    return b"(" + b",".join(map(literal, row)) + b")"


def sql_dump(table, rows):
    """Write a dump of a table with all rows in one INSERT."""
    name = table.encode()
    create = b"CREATE TABLE `%s` (%s);\n" % (name, COLUMNS[table].encode())
    insert = b"INSERT INTO `%s` VALUES %s;\n" % (name, b",".join(map(values, rows)))
    return b"-- MySQL dump 10.19\n" + create + insert + b"-- Dump completed on 2026-01-01\n"


def tables():
    """Return the rows of the tables of the wiki."""
    numbers = {title: 100 + place for place, title in enumerate(ENTITIES)}
    redirects = {title: 200 + place for place, (title, _, _) in enumerate(REDIRECTS)}
    kinds = sorted({kind for _, _, kind in REDIRECTS if kind})
    categories = [f"{kind}{'への' if kind == '節' else 'からの'}転送" for kind in kinds]
    categories.append("保護された転送")
    category_ids = {name: 300 + place for place, name in enumerate(categories)}
    target_ids = {name: 1000 + place for place, name in enumerate(categories)}
    page = [(number, 0, title, 0) for title, number in numbers.items()]
    page += [(number, 0, title, 1) for title, number in redirects.items()]
    page += [(number, 14, name, 0) for name, number in category_ids.items()]
    redirect, categorised = [], [("日本国", "保護された転送")]
    for title, target, kind in REDIRECTS:
        wiki, _, rest = target.removeprefix(":").rpartition(":")
        name, _, section = rest.partition("#")
        redirect.append((redirects[title], 0, name, wiki, section))
        if kind:
            categorised.append((title, categories[kinds.index(kind)]))
    props = [(number, "wikibase_item", f"Q{ENTITIES[title]}") for title, number in numbers.items()]
    links = [(redirects[title], "page", target_ids[name]) for title, name in categorised]
    return {
        "page": page,
        "redirect": redirect,
        "page_props": props,
        "linktarget": [(number, 14, name) for name, number in target_ids.items()],
        "langlinks": [
            *((category_ids[name], "en", english) for name, english in ENGLISH.items()),
            (category_ids["本名からの転送"], "de", "Kategorie:Irgendwas"),
            (numbers["日本"], "en", "Japan"),
        ],
        "categorylinks": [
            *links,
            (category_ids[categories[0]], "subcat", target_ids[categories[1]]),
        ],
    }


def write(folder):
    """Write the dumps of the wiki."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for table, rows in tables().items():
        name = f"jawiki-{DATE}-{table}.sql.gz"
        (folder / name).write_bytes(gzip.compress(sql_dump(table, rows), mtime=0))
    titles = [*ENTITIES, *(title for title, _, _ in REDIRECTS)]
    views = "".join(
        f"ja.wikipedia {title} {100 + place} desktop {50 + place} A1\n"
        for place, title in enumerate(titles)
    )
    (folder / "pageviews-202512-user.bz2").write_bytes(bz2.compress(views.encode("utf-8")))
    facts = {
        title: {name: [ENTITIES[pairs[title]]] for name, pairs in CLAIMS.items() if title in pairs}
        for title in ENTITIES
    }
    items = [
        item(number, "ja", title.partition("_(")[0], title.replace("_", " "), facts[title])
        for title, number in ENTITIES.items()
    ]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in items)
    path = folder / f"wikidata-{DATE}-all.json.gz"
    path.write_bytes(gzip.compress(f"[\n{lines}\n]\n".encode(), mtime=0))


def item(number, language, label, title, facts):
    """Write an item of Wikidata; `facts` are the objects by property."""
    snak = {"snaktype": "value"}
    claims = {
        name: [
            {"mainsnak": snak | {"datavalue": {"value": {"id": f"Q{one}"}}}, "rank": "normal"}
            for one in objects
        ]
        for name, objects in facts.items()
    }
    site = f"{language}wiki"
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {language: {"language": language, "value": label}} if label else {},
        "claims": claims or [],
        "sitelinks": {site: {"site": site, "title": title}} if title else {},
    }


if __name__ == "__main__":
    write(sys.argv[1])
