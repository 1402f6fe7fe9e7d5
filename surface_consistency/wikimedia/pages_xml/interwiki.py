"""Prefixes of links that leave a wiki."""

from typing import Final

__all__ = ["INTERWIKI_PREFIXES"]

_LANGUAGES: Final = """
    aa ab abr ace acm ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa
    ay az azb ba ban bar bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo
    bpy br bs btm bug bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy cz da
    dag de dga din diq dk dsb dtp dty dv dz ee egl el eml en eo epo es et eu ext fa fat ff fi
    fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur
    guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is
    isv it iu ja jam jbo jp jv ka kaa kab kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc
    ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad mai
    map-bms mdf mg mh mhr mi min minnan mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na
    nah nan nap nb nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup nv ny oc olo om or os
    pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rki rm rmy rn ro roa-rup
    roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn shy si simple sk skr sl
    sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl
    tly tn to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu
    xal xh xmf yi yo yue za zea zgh zh zh-cfr zh-classical zh-cn zh-min-nan zh-tw zh-yue zu
"""
_PROJECTS: Final = """
    acronym b betawiki bugzilla c chapter cite commons cookbook d doi dictionary f foundation
    google gerrit git imdb incubator iso639-3 isbn jstor livepedia m mail mailarchive
    mediawikiwiki mediazilla meta metawiki metawikimedia metawikipedia mw n nost openlibrary
    oldwikisource orcid otrswiki outreach outreachwiki phab phabricator pmid q quality s serious
    species strategy strategywiki sulutil svn tenwiki test testwiki testwikidata toollabs
    toolforge tools translatewiki usability v viaf voy w wg wikia wikibooks wikicities wikidata
    wikifunctions wikihow wikilivres wikimania wikimedia wikinews wikipedia wikipediawikipedia
    wikiquote wikisource wikispecies wikitech wikitravel wikiversity wikivoyage wikt wiktionary wm
    wmania wmf wmfwiki wmdeblog
"""

INTERWIKI_PREFIXES: Final[frozenset[str]] = frozenset((_LANGUAGES + _PROJECTS).split())
"""Lower-case prefixes: the languages of Wikipedia, its sister projects, and sites that its shared
interwiki table knows. No page of a wiki has a title that starts with one of them and a colon."""
