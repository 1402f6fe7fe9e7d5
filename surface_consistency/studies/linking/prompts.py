"""Yes/no questions whether two names are of one entity, worded for each kind of redirect."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from surface_consistency.schemas.prompts import Message, Prompt

__all__ = [
    "LINKING_WORDINGS",
    "NO_WORDS",
    "SAME_ENTITY",
    "YES_WORDS",
    "LinkingOrder",
    "linking_prompt",
    "linking_question",
]

LinkingOrder = Literal["redirect_first", "canonical_first"]
"""Which name a question mentions first."""

YES_WORDS: Final = ("yes", "Yes")
"""Words whose probabilities together are that of an affirmation."""

NO_WORDS: Final = ("no", "No")
"""Words whose probabilities together are that of a denial."""

SAME_ENTITY: Final = (
    "Is {redirect} another name for {canonical}?",
    "Does {canonical} have the other name {redirect}?",
)
"""Wording in both orders for redirects of no known category."""

_PAPER: Final = "Redirects_from_initialisms"

LINKING_WORDINGS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "Redirects_from_birth_names": (
            "Is {redirect} the birth name of {canonical}?",
            "Does {canonical} have the birth name {redirect}?",
        ),
        "Redirects_from_short_names": (
            "Is {redirect} a short name for {canonical}?",
            "Does {canonical} have the short name {redirect}?",
        ),
        "Redirects_from_alternative_names": (
            "Is {redirect} an alternative name for {canonical}?",
            "Does {canonical} have the alternative name {redirect}?",
        ),
        "Redirects_from_former_names": (
            "Is {redirect} a former name of {canonical}?",
            "Does {canonical} have the former name {redirect}?",
        ),
        "Redirects_from_surnames": (
            "Is {redirect} the surname of {canonical}?",
            "Does {canonical} have the surname {redirect}?",
        ),
        "Redirects_from_abbreviations": (
            "Is {redirect} an abbreviation for {canonical}?",
            "Does {canonical} have the abbreviation {redirect}?",
        ),
        _PAPER: (
            "Is {redirect} an initialism for {canonical}?",
            "Does {canonical} have the initialism {redirect}?",
        ),
        "Redirects_from_long_names": (
            "Is {redirect} a long name for {canonical}?",
            "Does {canonical} have the long name {redirect}?",
        ),
        "Redirects_from_given_names": (
            "Is {redirect} the given name of {canonical}?",
            "Does {canonical} have the given name {redirect}?",
        ),
        "Redirects_from_pseudonyms": (
            "Is {redirect} a pseudonym of {canonical}?",
            "Does {canonical} have the pseudonym {redirect}?",
        ),
        "Redirects_from_personal_names": (
            "Is {redirect} the personal name of {canonical}?",
            "Does {canonical} have the personal name {redirect}?",
        ),
        "Redirects_from_plurals": (
            "Is {redirect} the plural of {canonical}?",
            "Does {canonical} have the plural {redirect}?",
        ),
        "Redirects_from_married_names": (
            "Is {redirect} the married name of {canonical}?",
            "Does {canonical} have the married name {redirect}?",
        ),
        "Redirects_from_acronyms": (
            "Is {redirect} an acronym for {canonical}?",
            "Does {canonical} have the acronym {redirect}?",
        ),
        "Redirects_from_letter–word_combinations": (
            "Is {redirect} a letter-word combination that stands for {canonical}?",
            "Does {canonical} have the letter-word combination {redirect}?",
        ),
        "Redirects_from_technical_names": (
            "Is {redirect} the technical name for {canonical}?",
            "Does {canonical} have the technical name {redirect}?",
        ),
        "Redirects_to_plurals": (
            "Is {redirect} the singular of {canonical}?",
            "Is {canonical} the plural of {redirect}?",
        ),
        "Redirects_to_initialisms": (
            "Is {redirect} what the initialism {canonical} stands for?",
            "Is {canonical} an initialism for {redirect}?",
        ),
        "Redirects_from_synonyms": (
            "Is {redirect} a synonym of {canonical}?",
            "Does {canonical} have the synonym {redirect}?",
        ),
        "Redirects_to_acronyms": (
            "Is {redirect} what the acronym {canonical} stands for?",
            "Is {canonical} an acronym for {redirect}?",
        ),
        "Redirects_from_titles_without_diacritics": (
            "Is {redirect} the name {canonical} written without diacritics?",
            "Is {canonical} written {redirect} without diacritics?",
        ),
        "Redirects_from_alternative_spellings": (
            "Is {redirect} an alternative spelling of {canonical}?",
            "Does {canonical} have the alternative spelling {redirect}?",
        ),
        "Redirects_from_titles_with_diacritics": (
            "Is {redirect} the name {canonical} written with diacritics?",
            "Is {canonical} written {redirect} with diacritics?",
        ),
        "Redirects_from_other_capitalisations": (
            "Is {redirect} another capitalisation of {canonical}?",
            "Does {canonical} have the other capitalisation {redirect}?",
        ),
        "Redirects_from_modifications": (
            "Is {redirect} a modified form of the name {canonical}?",
            "Does the name {canonical} have the modified form {redirect}?",
        ),
        "Redirects_from_ASCII-only_titles": (
            "Is {redirect} the name {canonical} written in ASCII letters only?",
            "Is {canonical} written {redirect} in ASCII letters only?",
        ),
        "Redirects_from_stylizations": (
            "Is {redirect} a stylized form of the name {canonical}?",
            "Does the name {canonical} have the stylized form {redirect}?",
        ),
        "Redirects_from_titles_without_ligatures": (
            "Is {redirect} the name {canonical} written without ligatures?",
            "Is {canonical} written {redirect} without ligatures?",
        ),
        "Redirects_to_ASCII-only_titles": (
            "Is {redirect} the name that {canonical} gives in ASCII letters only?",
            "Is {canonical} the name {redirect} written in ASCII letters only?",
        ),
        "Redirects_from_numerals": (
            "Is {redirect} the name {canonical} written with numerals?",
            "Is {canonical} written {redirect} with numerals?",
        ),
        "Redirects_from_miscapitalisations": (
            "Is {redirect} a wrong capitalisation of {canonical}?",
            "Does {canonical} have the wrong capitalisation {redirect}?",
        ),
        "Redirects_from_misspellings": (
            "Is {redirect} a misspelling of {canonical}?",
            "Does {canonical} have the misspelling {redirect}?",
        ),
        "Redirects_from_incorrect_names": (
            "Is {redirect} an incorrect name for {canonical}?",
            "Does {canonical} have the incorrect name {redirect}?",
        ),
    }
)
"""Category to its wording with the redirect first and with the canonical name first.

The paper prints one of its 33 wordings, that of initialisms with the redirect first; it stands here
as printed. The others are this package's own.
"""


def linking_question(
    redirect: str, canonical: str, *, category: str | None, order: LinkingOrder = "redirect_first"
) -> str:
    """Ask whether one name is of the entity that the other names.

    Args:
        redirect: The redirect name, or what stands in its place in a negative.
        canonical: The canonical name, or what stands in its place.
        category: Redirect category; one that is not in `LINKING_WORDINGS`, or None, is asked by
            `SAME_ENTITY`.
        order: Which name comes first.

    Returns:
        The question.

    References:
        Appendix B.5 of arXiv 2604.21882.

    Examples:
        >>> linking_question("NYT", "The New York Times", category="Redirects_from_initialisms")
        'Is NYT an initialism for The New York Times?'
    """
    wording = LINKING_WORDINGS.get(category or "", SAME_ENTITY)[order == "canonical_first"]
    # Names are put in at once: one may hold what looks like a place for the other.
    return wording.format(redirect=redirect, canonical=canonical)


def linking_prompt(
    prompt_id: str,
    question: str,
    *,
    demonstrations: Sequence[tuple[str, bool]] = (),
    chat: bool = False,
    with_options: bool = True,
) -> Prompt:
    """Make a prompt of a linking question.

    Args:
        prompt_id: Identifier of the prompt.
        question: The question, as from `linking_question`.
        demonstrations: Further questions with their answers, before it.
        chat: Whether the prompt is a turn for the model's chat template rather than plain text.
        with_options: Whether the words of affirmation and denial are its options, so that their
            probabilities are told; else the model writes.

    Returns:
        The prompt.
    """
    shown = [(f"Q: {solved} A:", " yes" if answer else " no") for solved, answer in demonstrations]
    words: tuple[str, ...] = (*YES_WORDS, *NO_WORDS)
    if chat:
        turns = [
            turn
            for (solved, answer) in shown
            for turn in (
                Message(role="user", content=solved.removeprefix("Q: ").removesuffix(" A:")),
                Message(role="assistant", content=answer.strip()),
            )
        ]
        ask = Message(role="user", content=f"{question} Answer yes or no.")
        options = words if with_options else None
        return Prompt(id=prompt_id, messages=(*turns, ask), options=options)
    text = "".join(f"{solved}{answer}\n\n" for solved, answer in shown) + f"Q: {question} A:"
    options = tuple(f" {word}" for word in words) if with_options else None
    return Prompt(id=prompt_id, text=text, options=options)
