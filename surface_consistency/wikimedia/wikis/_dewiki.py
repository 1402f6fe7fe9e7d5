"""German Wikipedia: questions in German, redirects without kinds."""

from surface_consistency.wikimedia.wikis.config import WikiConfig, in_both_wordings

__all__ = ["DEWIKI"]

_QUESTIONS = {
    "occupation": ("Was ist der Beruf von {}?", "Womit verdient {} den Lebensunterhalt?"),
    "place_of_birth": (
        "In welcher Stadt wurde {} geboren?",
        "Welche Stadt ist der Geburtsort von {}?",
    ),
    "genre": ("Welches Genre hat {}?", "Zu welchem Genre gehört {}?"),
    "father": ("Wer ist der Vater von {}?", "Wie heißt der Vater von {}?"),
    "country": ("In welchem Land liegt {}?", "Welches ist das Land, in dem {} liegt?"),
    "producer": ("Wer war der Produzent von {}?", "Wer hat {} produziert?"),
    "director": ("Wer führte Regie bei {}?", "Von wem stammt die Regie von {}?"),
    "capital_of": ("Wovon ist {} die Hauptstadt?", "Welcher Ort oder Staat hat {} als Hauptstadt?"),
    "screenwriter": ("Wer war der Drehbuchautor von {}?", "Wer schrieb das Drehbuch zu {}?"),
    "composer": ("Wer war der Komponist von {}?", "Wer komponierte die Musik zu {}?"),
    "color": ("Welche Farbe hat {}?", "Von welcher Farbe ist {}?"),
    "religion": ("Was ist die Religion von {}?", "Welcher Religion gehört {} an?"),
    "sport": ("Welchen Sport betreibt {}?", "Mit welchem Sport ist {} verbunden?"),
    "author": ("Wer ist der Autor von {}?", "Wer hat {} geschrieben?"),
    "mother": ("Wer ist die Mutter von {}?", "Wie heißt die Mutter von {}?"),
    "capital": ("Was ist die Hauptstadt von {}?", "Welche Stadt ist die Hauptstadt von {}?"),
}

DEWIKI = WikiConfig(
    name="dewiki",
    wiki="dewiki",
    language="de",
    project="de.wikipedia",
    uncategorised=True,
    questions=in_both_wordings(_QUESTIONS),
    notes=(
        "German Wikipedia does not sort its redirects by kind of name; misspellings are not "
        "redirects there but short pages of their own. So all redirects are kept, under one "
        "label. The questions are this package's own wordings."
    ),
)
"""German Wikipedia, redirects uncategorised."""
