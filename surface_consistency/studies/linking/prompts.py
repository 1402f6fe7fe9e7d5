"""Yes/no questions whether two names denote one entity, with a wording per kind of redirect."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from surface_consistency.schemas.prompts import Message, Prompt

LinkingOrder = Literal["redirect_first", "canonical_first"]
"""Name that a question mentions first."""

YES_WORDS: Final = ("yes", "Yes")
"""Words whose summed probability is that of an affirmation."""

NO_WORDS: Final = ("no", "No")
"""Words whose summed probability is that of a denial."""

SAME_ENTITY: Final = (
    "Is {redirect} another name for {canonical}?",
    "Does {canonical} have the other name {redirect}?",
)
"""Wording in both orders for redirects without a known category."""

_PAPER: Final = "Redirects_from_initialisms"

_HAVING: Final[Mapping[str, tuple[str, str]]] = {
    "Redirects_from_birth_names": ("the birth name of", "birth name"),
    "Redirects_from_short_names": ("a short name for", "short name"),
    "Redirects_from_alternative_names": ("an alternative name for", "alternative name"),
    "Redirects_from_former_names": ("a former name of", "former name"),
    "Redirects_from_surnames": ("the surname of", "surname"),
    "Redirects_from_abbreviations": ("an abbreviation for", "abbreviation"),
    _PAPER: ("an initialism for", "initialism"),
    "Redirects_from_long_names": ("a long name for", "long name"),
    "Redirects_from_given_names": ("the given name of", "given name"),
    "Redirects_from_pseudonyms": ("a pseudonym of", "pseudonym"),
    "Redirects_from_personal_names": ("the personal name of", "personal name"),
    "Redirects_from_plurals": ("the plural of", "plural"),
    "Redirects_from_married_names": ("the married name of", "married name"),
    "Redirects_from_acronyms": ("an acronym for", "acronym"),
    "Redirects_from_letter–word_combinations": (
        "a letter-word combination that stands for",
        "letter-word combination",
    ),
    "Redirects_from_technical_names": ("the technical name for", "technical name"),
    "Redirects_from_synonyms": ("a synonym of", "synonym"),
    "Redirects_from_alternative_spellings": ("an alternative spelling of", "alternative spelling"),
    "Redirects_from_other_capitalisations": ("another capitalisation of", "other capitalisation"),
    "Redirects_from_miscapitalisations": ("a wrong capitalisation of", "wrong capitalisation"),
    "Redirects_from_misspellings": ("a misspelling of", "misspelling"),
    "Redirects_from_incorrect_names": ("an incorrect name for", "incorrect name"),
}
"""Category to the words in "Is A ... B?" and in "Does B have the ... A?"."""

LINKING_WORDINGS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        **{
            category: (
                f"Is {{redirect}} {first} {{canonical}}?",
                f"Does {{canonical}} have the {second} {{redirect}}?",
            )
            for category, (first, second) in _HAVING.items()
        },
        "Redirects_to_plurals": (
            "Is {redirect} the singular of {canonical}?",
            "Is {canonical} the plural of {redirect}?",
        ),
        "Redirects_to_initialisms": (
            "Is {redirect} what the initialism {canonical} stands for?",
            "Is {canonical} an initialism for {redirect}?",
        ),
        "Redirects_to_acronyms": (
            "Is {redirect} what the acronym {canonical} stands for?",
            "Is {canonical} an acronym for {redirect}?",
        ),
        "Redirects_from_titles_without_diacritics": (
            "Is {redirect} the name {canonical} written without diacritics?",
            "Is {canonical} written {redirect} without diacritics?",
        ),
        "Redirects_from_titles_with_diacritics": (
            "Is {redirect} the name {canonical} written with diacritics?",
            "Is {canonical} written {redirect} with diacritics?",
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
    }
)
"""Category to its wording with the redirect first and with the canonical name first.

The paper prints one of its 33 wordings, that of initialisms with the redirect first; it is included
as printed. The others were written for this package.
"""


def linking_question(
    redirect: str, canonical: str, *, category: str | None, order: LinkingOrder = "redirect_first"
) -> str:
    """Make the question whether two names denote one entity.

    Args:
        redirect: The redirect name, or its replacement in a negative.
        canonical: The canonical name, or its replacement.
        category: Redirect category; None, or a category that is not in `LINKING_WORDINGS`, has the
            wording of `SAME_ENTITY`.
        order: Name that comes first.

    Returns:
        The question.

    References:
        Appendix B.5 of arXiv 2604.21882.

    Examples:
        >>> linking_question("NYT", "The New York Times", category="Redirects_from_initialisms")
        'Is NYT an initialism for The New York Times?'
    """
    wording = LINKING_WORDINGS.get(category or "", SAME_ENTITY)[order == "canonical_first"]
    # Both names are inserted at once, because a name may contain the other's placeholder.
    return wording.format(redirect=redirect, canonical=canonical)


def linking_prompt(
    prompt_id: str,
    question: str,
    *,
    demonstrations: Sequence[tuple[str, bool]] = (),
    chat: bool = False,
    with_options: bool = True,
) -> Prompt:
    """Make the prompt of a linking question.

    Args:
        prompt_id: Identifier of the prompt.
        question: The question, as from `linking_question`.
        demonstrations: Solved questions before it, with their answers.
        chat: Whether the prompt is a turn for the model's chat template rather than plain text.
        with_options: Whether the words of affirmation and denial are its options, so that their
            probabilities are returned; otherwise the model generates text.

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
        turns.append(Message(role="user", content=f"{question} Answer yes or no."))
        options = words if with_options else None
        return Prompt(id=prompt_id, messages=tuple(turns), options=options)
    text = "".join(f"{solved}{answer}\n\n" for solved, answer in shown) + f"Q: {question} A:"
    options = tuple(f" {word}" for word in words) if with_options else None
    return Prompt(id=prompt_id, text=text, options=options)
