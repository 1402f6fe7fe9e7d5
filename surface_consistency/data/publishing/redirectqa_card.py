"""What the cards of RedirectQA and its relatives say besides their counts."""

from collections.abc import Sequence
from typing import Final

from surface_consistency.data.publishing.card import CardText

__all__ = ["popqa_redirect_card", "redirectqa_card"]

_PAPER: Final = """
@inproceedings{nishida2026revisiting,
  title         = {Revisiting Non-Verbatim Memorization in Large Language Models:
                   The Role of Entity Surface Forms},
  author        = {Nishida, Yuto and Shikoda, Naoki and Kishinami, Yosuke and Fujii, Ryo and
                   Morishita, Makoto and Kamigaito, Hidetaka and Watanabe, Taro},
  booktitle     = {Proceedings of the Annual Meeting of the Association for Computational
                   Linguistics},
  year          = {2026},
  eprint        = {2604.21882},
  archivePrefix = {arXiv}
}
"""
_POPQA_PAPER: Final = """
@inproceedings{mallen2023trust,
  title     = {When Not to Trust Language Models: Investigating Effectiveness of Parametric and
               Non-Parametric Memories},
  author    = {Mallen, Alex and Asai, Akari and Zhong, Victor and Das, Rajarshi and
               Khashabi, Daniel and Hajishirzi, Hannaneh},
  booktitle = {Proceedings of the 61st Annual Meeting of the Association for Computational
               Linguistics},
  year      = {2023}
}
"""
_SUMMARY: Final = """
Facts of Wikidata, asked under the title of the subject's Wikipedia article and under titles of
pages that redirect to it, each redirect with the kind of name it is. Built with
`surface-consistency` from Wikimedia's dumps, after the construction of RedirectQA (arXiv
2604.21882, section 2.3). Rows of one `triplet_id` are one fact; canonical rows carry `__MAIN__` as
their category. A configuration that was built with `vary: object` keeps the subject's name; each of
its rows accepts one name of the answer alone, so that `load_redirectqa` and `run redirectqa`, which
compare names of the subject, do not take it; `load_dataset` does.
"""
_POPQA_SUMMARY: Final = """
The questions of PopQA, asked under the subject's name in PopQA and under titles of pages that
redirect to its Wikipedia article, as in the preliminary experiment of RedirectQA (arXiv 2604.21882,
appendix B.1). Built with `surface-consistency` from PopQA's rows and Wikimedia's dumps. Rows of one
`triplet_id` are one question of PopQA; canonical rows carry `__MAIN__` as their category.
"""
_LICENSES: Final = """
- The rows as a whole, and titles and redirects from Wikipedia: CC BY-SA 4.0.
- Facts, labels and aliases from Wikidata: CC0 1.0.
- Pageviews from Wikimedia's analytics dumps: CC0 1.0.
"""
_WORDINGS_LICENSE: Final = "- Question templates in English, adapted from PopQA's: MIT.\n"
_POPQA_LICENSE: Final = "- Questions and accepted answers from PopQA: MIT.\n"


def redirectqa_card(
    languages: Sequence[str] = ("en",), *, pretty_name: str = "RedirectQA"
) -> CardText:
    """Write the card's text for a build of RedirectQA.

    Args:
        languages: Codes of the languages that are asked in.
        pretty_name: Name for people.

    Returns:
        The text.
    """
    return CardText(
        pretty_name=pretty_name,
        summary=_SUMMARY,
        languages=tuple(languages),
        license="cc-by-sa-4.0",
        license_notes=_LICENSES.rstrip() + "\n" + (_WORDINGS_LICENSE if "en" in languages else ""),
        citation=_PAPER + (_POPQA_PAPER if "en" in languages else ""),
        tags=("factual-consistency", "entity", "wikipedia-redirects", "wikidata"),
    )


def popqa_redirect_card(*, pretty_name: str = "PopQA with redirects") -> CardText:
    """Write the card's text for PopQA with redirects.

    Args:
        pretty_name: Name for people.

    Returns:
        The text.
    """
    return CardText(
        pretty_name=pretty_name,
        summary=_POPQA_SUMMARY,
        languages=("en",),
        license="cc-by-sa-4.0",
        license_notes=_LICENSES.rstrip() + "\n" + _POPQA_LICENSE,
        citation=_PAPER + _POPQA_PAPER,
        tags=("factual-consistency", "entity", "wikipedia-redirects", "popqa"),
    )
