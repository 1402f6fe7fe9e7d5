from hypothesis import given, strategies as st

from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups
from surface_consistency.text import folded, token_key

NAMES = st.text("aA. -€Ａ", min_size=1, max_size=3)


def naive_groups(families):
    """Merge sets of names until nothing changes."""

    def marks(name):
        """Return the key and the aliases of a name."""
        return {("p", token_key(name) or f"={name}"), ("s", folded(name) or f"={name}")}

    named = [[name for name in family if name.strip()] for family in families]
    groups = [set().union(*map(marks, family)) for family in named if family]
    merged = True
    while merged:
        merged = False
        for one in range(len(groups)):
            for other in range(one + 1, len(groups)):
                if groups[one] & groups[other]:
                    groups[one] |= groups.pop(other)
                    merged = True
                    break
            if merged:
                break
    return lambda name: next(i for i, group in enumerate(groups) if group & marks(name))


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=6))
def test_groups_agree_with_naive_merging(families):
    groups = AliasGroups()
    for family in families:
        groups.join("subject", family)
    naive = naive_groups(families)
    names = sorted({name for family in families for name in family if name.strip()})

    for one in names:
        for other in names:
            joined = groups.group_of("subject", one) == groups.group_of("subject", other)
            assert joined == (naive(one) == naive(other))


def test_aliases_reach_through_others(fact):
    """A name of one fact joins the names of two others."""
    groups = AliasGroups.from_prompts(
        [
            fact("a", "Country Represented", "x", relations=("Country",)),
            fact("b", "Nation Led", "x", relations=("Country Served", "Country Represented")),
        ]
    )

    assert groups.group_of("relation", "Country") == groups.group_of("relation", "country served")
    assert list(groups.members("relation").values()) == [
        ["Country Represented", "Country", "Nation Led", "Country Served"]
    ]
    assert groups.group_of("relation", "Party") == groups.group_of("relation", "party.")
    # Subjects, relations and objects have separate groups.
    assert groups.group_of("object", "Country") != groups.group_of("object", "country served")


def test_shared_aliases_are_those_of_names_without_another_connection(fact):
    """Names that are aliases of each other, directly or through a third name, are connected."""
    groups = AliasGroups.from_prompts(
        [
            fact("Michael Jordan", "Sport", "x", subjects=("MJ", "Air Jordan")),
            fact("Magic Johnson", "Sport", "x", subjects=("M.J.", "mj")),
            fact("USA", "Sport", "x", subjects=("United States", "America")),
            fact("United States", "Sport", "x", subjects=("States", "America")),
            fact("States", "Sport", "x", subjects=("America",)),
        ]
    )

    assert groups.shared_aliases("subject") == {
        "MJ": ("Michael Jordan", "Magic Johnson"),
        "mj": ("Michael Jordan", "Magic Johnson"),
    }
    assert groups.shared_aliases("relation") == {}


def test_groups_without_shared_aliases_do_not_join_names_that_share_an_alias():
    groups = AliasGroups()
    groups.join("subject", ["Michael Jordan", "MJ", "Air Jordan"])
    groups.join("subject", ["Magic Johnson", "MJ"])

    apart = groups.without_shared_aliases()

    assert len(groups.members("subject")) == 1
    left = sorted(apart.members("subject").values())
    assert left == [["MJ"], ["Magic Johnson"], ["Michael Jordan", "Air Jordan"]]


def test_the_published_maps_share_one_alias(published):
    """Only "football" is an alias of two sports in the thirteen databases."""
    shared = {}
    for database, facts in published.values():
        groups = AliasGroups.from_prompts(facts, database=database)
        for role in ("subject", "relation", "object"):
            shared |= groups.shared_aliases(role)

    assert shared == {"football": ("Association football", "American football")}
