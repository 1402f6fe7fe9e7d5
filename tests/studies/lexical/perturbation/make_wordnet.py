"""Write the folder `wordnet` next to this file: twenty synsets in WordNet's database format.

Run `python -m tests.studies.lexical.perturbation.make_wordnet` after changing them. The synsets and
definitions were written for this package; only the format is that of wndb(5WN).
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "wordnet"

LICENCE = "  1 A hand-made lexicon in the format of WordNet's database files, for tests.  \n"

# part of speech: (type of the synset, its lemmas, gloss)
SYNSETS = {
    "noun": [
        ("n", "hound dog Canis_familiaris", 'a tame animal that barks; "the dog barked all night"'),
        ("n", "fellow dog", "a man, said in jest"),
        ("n", "history story", "what happened, as it is told"),
        ("n", "enrolment registration", "the act of putting a name on a list"),
        ("n", "use purpose", "what something is for"),
        ("n", "child kid", "a young person"),
        ("n", "hour hr 60_minutes", "a twenty-fourth of a day"),
        ("n", "Ann", "a name that women have"),
        ("n", "apple", "a fruit"),
        ("n", "offense crime", "an act that the law punishes"),
    ],
    "verb": [
        ("v", "choose select pick_out", 'take out of several; "choose a card"'),
        ("v", "use utilise employ", "put to a purpose"),
        ("v", "commit perpetrate", "do, of something bad"),
        ("v", "hang_up suspend", "let hang"),
        ("v", "kid", "say in jest"),
        ("v", "story", "tell of"),
    ],
    "adj": [
        ("a", "large big", "of great size"),
        ("s", "huge(a) immense", "very large"),
        ("a", "asleep(p)", "in a state of sleep"),
    ],
    "adv": [("r", "quickly fast", "with speed")],
}

# sense key: number of occurrences
SEEN = """
dog%1:05:00:: 42, dog%1:18:01:: 2, use%2:34:01:: 114, use%1:04:00:: 40, story%1:10:00:: 20,
story%2:32:00:: 0, kid%1:18:00:: 9, kid%2:32:00:: 1, choose%2:31:00:: 80, large%3:00:00:: 90,
huge%5:00:01:large:00 7"""
COUNTS = {key: int(count) for key, count in map(str.split, SEEN.split(","))}

EXCEPTIONS = {
    "noun": ["children child"],
    "verb": ["chose choose", "chosen choose", "hung hang", "hung_up hang_up"],
    "adj": ["bigger big", "biggest big"],
    "adv": [],
}


def files() -> dict[str, str]:
    """Return the content of each file by name."""
    made = {}
    for stem, synsets in SYNSETS.items():
        data = LICENCE
        places: dict[str, list[int]] = {}
        for kind, lemmas, gloss in synsets:
            words = lemmas.split()
            offset = len(data)
            listed = " ".join(f"{word} 0" for word in words)
            frames = " 01 + 08 00" if kind == "v" else ""
            data += f"{offset:08d} 05 {kind} {len(words):02x} {listed} 000{frames} | {gloss}  \n"
            for word in words:
                places.setdefault(word.partition("(")[0].lower(), []).append(offset)
        letter = stem[0] if stem != "adj" else "a"
        letter = "r" if stem == "adv" else letter
        made[f"data.{stem}"] = data
        made[f"index.{stem}"] = LICENCE + "".join(
            f"{word} {letter} {len(found)} 1 @ {len(found)} 1 "
            + " ".join(f"{offset:08d}" for offset in found)
            + "  \n"
            for word, found in sorted(places.items())
        )
        made[f"{stem}.exc"] = "".join(f"{line}\n" for line in EXCEPTIONS[stem])
    made["cntlist.rev"] = "".join(f"{key} 1 {count}\n" for key, count in sorted(COUNTS.items()))
    return made


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
