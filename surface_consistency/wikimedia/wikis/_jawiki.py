"""Japanese Wikipedia: questions in Japanese, redirects without kinds."""

from surface_consistency.wikimedia.wikis.config import WikiConfig, in_both_wordings

__all__ = ["JAWIKI"]

_QUESTIONS = {
    "occupation": ("{}の職業は何ですか?", "{}は何を仕事としていますか?"),
    "place_of_birth": ("{}が生まれた都市はどこですか?", "{}の出生地はどの都市ですか?"),
    "genre": ("{}のジャンルは何ですか?", "{}はどのジャンルに属しますか?"),
    "father": ("{}の父親は誰ですか?", "{}の父の名前は何ですか?"),
    "country": ("{}はどこの国にありますか?", "{}がある国はどこですか?"),
    "producer": ("{}のプロデューサーは誰ですか?", "{}をプロデュースしたのは誰ですか?"),
    "director": ("{}の監督は誰ですか?", "{}を監督したのは誰ですか?"),
    "capital_of": ("{}はどこの首都ですか?", "{}を首都とするのはどこですか?"),
    "screenwriter": ("{}の脚本家は誰ですか?", "{}の脚本を書いたのは誰ですか?"),
    "composer": ("{}の作曲者は誰ですか?", "{}の音楽を作曲したのは誰ですか?"),
    "color": ("{}は何色ですか?", "{}の色は何ですか?"),
    "religion": ("{}の宗教は何ですか?", "{}はどの宗教を信仰していますか?"),
    "sport": ("{}は何のスポーツをしていますか?", "{}に関わるスポーツは何ですか?"),
    "author": ("{}の著者は誰ですか?", "{}を書いたのは誰ですか?"),
    "mother": ("{}の母親は誰ですか?", "{}の母の名前は何ですか?"),
    "capital": ("{}の首都はどこですか?", "どの都市が{}の首都ですか?"),
}

JAWIKI = WikiConfig(
    name="jawiki",
    wiki="jawiki",
    language="ja",
    project="ja.wikipedia",
    uncategorised=True,
    questions=in_both_wordings(_QUESTIONS),
    notes=(
        "Redirects of Japanese Wikipedia carry the subject categories of what they name, often "
        "through a template of the target article, and none for the kind of name; so all are "
        "kept, under one label. Redirects between kanji, kana and Latin script are frequent. The "
        "questions are this package's own wordings."
    ),
)
"""Japanese Wikipedia, redirects uncategorised."""
