"""Chinese Wikipedia: questions in Chinese, kinds of redirects by the wiki's own templates."""

from surface_consistency.wikimedia.wikis.config import WikiConfig, in_both_wordings

__all__ = ["ZHWIKI"]

_TEMPLATES = {
    "from alternative names": ("別名重定向", "别名重定向", "譯名重定向", "译名重定向"),
    "from abbreviations": ("縮寫重定向", "缩写重定向"),
    "from alternative spellings": ("拼寫重定向", "拼写重定向"),
    "from birth names": ("本名重定向",),
    "from former names": ("舊名重定向", "旧名重定向", "歷史名稱重定向", "历史名称重定向"),
    "from given names": ("名字重定向", "人名重定向"),
    "from long names": ("全名重定向",),
    "from misspellings": ("錯字重定向", "错字重定向"),
    "from short names": ("短名重定向",),
    "from surnames": ("姓氏重定向",),
}

_QUESTIONS = {
    "occupation": ("{}的职业是什么？", "{}从事什么职业？"),
    "place_of_birth": ("{}出生在哪个城市？", "{}的出生地是哪里？"),
    "genre": ("{}属于什么类型？", "{}的类型是什么？"),
    "father": ("{}的父亲是谁？", "谁是{}的父亲？"),
    "country": ("{}位于哪个国家？", "{}所在的国家是哪个？"),
    "producer": ("{}的制作人是谁？", "谁制作了{}？"),
    "director": ("{}的导演是谁？", "谁执导了{}？"),
    "capital_of": ("{}是哪里的首都？", "哪里以{}为首都？"),
    "screenwriter": ("{}的编剧是谁？", "谁编写了{}的剧本？"),
    "composer": ("{}的作曲者是谁？", "谁为{}作曲？"),
    "color": ("{}是什么颜色？", "{}的颜色是什么？"),
    "religion": ("{}信仰什么宗教？", "{}的宗教是什么？"),
    "sport": ("{}从事什么运动？", "{}与哪项运动有关？"),
    "author": ("{}的作者是谁？", "谁写了{}？"),
    "mother": ("{}的母亲是谁？", "谁是{}的母亲？"),
    "capital": ("{}的首都是哪里？", "哪座城市是{}的首都？"),
}

ZHWIKI = WikiConfig(
    name="zhwiki",
    wiki="zhwiki",
    language="zh",
    project="zh.wikipedia",
    templates={name: label for label, names in _TEMPLATES.items() for name in names},
    questions=in_both_wordings(_QUESTIONS),
    notes=(
        "The templates are those of the wiki's redirect tagging tool, in both scripts. Redirects "
        "between the scripts themselves are left out: the wiki converts them on the fly. The "
        "kinds are read off the pages' text. The questions are this package's own wordings, in "
        "simplified characters."
    ),
)
"""Chinese Wikipedia, by its templates."""
