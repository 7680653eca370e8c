"""Names of the random call graphs that a general base learns from: invented words, which share none
with `unseen_topology`.
"""

from __future__ import annotations

from random import Random

from ..world.random_topology import UNSEEN_NAMES, Vocabulary

# What a syllable of an invented word begins with, sounds of, and ends with, if with anything.
_SYLLABLES = (
    "b,bl,c,ch,cl,d,dr,f,g,gr,h,j,k,l,m,n,p,pl,qu,r,s,sh,st,t,th,tr,v,w,z",
    "a,e,i,o,u,a,e,i,o,u,ai,ea,oo,y",
    ",,,d,l,ll,m,n,nd,ng,p,r,rt,s,st,t,x,ck",
)


def _invented(count: int, longest: int) -> tuple[str, ...]:
    """Different words of one to `longest` syllables that mean nothing, none of which is part of a
    word of `UNSEEN_NAMES`, or has one as a part.
    """
    random, words = Random(f"invented/{longest}"), dict[str, None]()
    unseen = {
        part for names in vars(UNSEEN_NAMES).values() for name in names for part in name.split("-")
    }
    while len(words) < count:
        word = "".join(
            random.choice(part.split(","))
            for _ in range(random.randint(1, longest))
            for part in _SYLLABLES
        )
        if not any(word in part or part in word for part in unseen):
            words[word] = None
    return tuple(words)


# A suffix tells little of the kind of a service, which then must be read from the call graph, from
# its usual latency, or from the style of its lines: the suffixes of an unknown graph tell no more.
_SUFFIXES = _invented(60, 1)
_EDGES = _invented(800, 2)
TRAINING_NAMES = Vocabulary(
    edges=tuple(map("-".join, zip(_EDGES[::2], _EDGES[1::2], strict=True))),
    stems=_invented(1500, 3),
    apps=("service", "api", "app", "server", "backend", "worker", *_SUFFIXES),
    databases=("db", "sql", "postgres", "database", *_SUFFIXES),
    queues=("queue", "broker", "mq", "topic", *_SUFFIXES),
)
