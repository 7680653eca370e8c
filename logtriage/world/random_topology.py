"""Random call graphs of 5 to 30 services, under names that the default never uses.

The graphs of the split `unseen_topology` are named from `UNSEEN_NAMES`. Training on random graphs
names them from `TRAINING_NAMES`, which shares no word with those.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .topology import MOST_SERVICES, SMALLEST_RANDOM, Service, Topology


@dataclass(frozen=True)
class Vocabulary:
    """What the services of a random call graph are named from.

    `edges` are whole names; the others are a stem and, by kind of service, a suffix: `cart-svc`.
    """

    edges: tuple[str, ...]
    stems: tuple[str, ...]
    apps: tuple[str, ...]
    databases: tuple[str, ...]
    queues: tuple[str, ...]


_UNSEEN_STEMS = """
cart catalog search billing profile shipping inventory pricing review login coupon ledger quote
refund media geo tax audit
"""
UNSEEN_NAMES = Vocabulary(
    edges=("edge-proxy", "web-gateway", "mobile-gateway"),
    stems=tuple(_UNSEEN_STEMS.split()),
    apps=("svc",),
    databases=("store",),
    queues=("events",),
)

_TRAINING_STEMS = """
acorn alder amber anchor anvil apple apricot arrow artist aspen autumn axle badger baker balance
bamboo banjo banker barber barley basil basket beacon beaver birch bishop blossom bonsai bottle
boulder breeze bridge bronze bucket butcher button cactus camel candle canyon captain carpenter
carpet castle cedar chemist cherry chimney chisel cinder citrus clover cobalt cobbler comet compass
cook copper coral cotton courage cricket crystal curtain cypress daisy dancer dawn delta dentist
dingo diver doctor dolphin donkey dragon dream drummer dune eagle echo editor ember engine envelope
evening fable falcon farmer feather fennel fern fiddle finch fisher fjord flamingo florist flute
forest fortune fossil foxglove funnel galaxy garden ginger glacier goblin granite gravel gravity
guard guitar hammer harbor harmony hazel helmet heron hickory hinge honey hornet hunter husky
iceberg indigo iris island ivory jackal jaguar jasmine jigsaw journey judge jungle juniper kayak
kettle kiwi knife knight koala ladder lagoon lantern lava lawyer legend lemon lever lilac linden
lizard lobster lotus lynx magnet mango maple marble mason mayor meadow meteor midnight miller mimosa
miner mint mirror monsoon moose mortar mosaic mustang mystery nebula needle nickel nurse nutmeg oak
oasis ocean olive onion opal orbit orchid otter oven oxygen oyster paddle painter panda papaya
parrot pebble pencil pepper phoenix piano pillow pilot pine planet plum plumber poet polar poppy
porter potter prairie promise puffin pulley pumpkin puzzle quarry quartz rabbit radish ranger raven
razor reef ribbon riddle ripple river robin rocket ruby ruler saddle saffron sailor salmon sapphire
scholar scissors scout sculptor secret senator shadow shark shelter shepherd sierra silver singer
smith soldier sparrow spoon spruce squirrel stork summit sunset swan sword tailor tango teacher
teapot thistle thought thunder tiger timber toolbox tornado trader triumph trumpet tulip tundra
turtle tutor umbrella unicorn valley vanilla velvet venture violet violin volcano vulture waffle
wagon walnut walrus weaver welder wheel whistle willow window winter wisdom wizard wolf wombat
wonder wrench writer yak yarrow zebra zenith zigzag zipper zodiac
"""
# These tell nothing of the kind of a service, which then must be read from the call graph, from its
# usual latency, or from the style of its lines: the suffixes of an unknown graph tell no more.
_PLAIN = ("core", "main", "node", "one", "unit")
TRAINING_NAMES = Vocabulary(
    edges=(
        "front-door",
        "public-ingress",
        "main-entry",
        "site-router",
        "traffic-director",
        "north-balancer",
        "outer-portal",
        "http-frontend",
    ),
    stems=tuple(_TRAINING_STEMS.split()),
    apps=("service", "api", "app", "server", "backend", "worker", *_PLAIN),
    databases=("db", "sql", "postgres", "database", *_PLAIN),
    queues=("queue", "broker", "mq", "topic", *_PLAIN),
)


def random_topology(
    random: Random,
    smallest: int = SMALLEST_RANDOM,
    largest: int = MOST_SERVICES,
    names: Vocabulary = UNSEEN_NAMES,
) -> Topology:
    """Draw a connected layered call graph of `smallest` to `largest` services under names the
    default never uses.

    One edge; apps call one or two later services; stateful services (databases, queues) are leaves.
    """
    if not SMALLEST_RANDOM <= smallest <= largest <= MOST_SERVICES:
        raise ValueError(
            f"a random topology has {SMALLEST_RANDOM} to {MOST_SERVICES} services, "
            f"got {smallest} to {largest}; choose a range within"
        )
    size = smallest + int(random.random() * (largest - smallest + 1))
    apps = max(2, (size - 1) // 2)
    stems = list(names.stems)
    random.shuffle(stems)
    app_names: list[str] = []
    for stem in stems[:apps]:
        app_names.append(_name(stem, names.apps, app_names, random))
    leaf_stems = list(names.stems)
    random.shuffle(leaf_stems)
    leaves: dict[str, str] = {}
    for stem in leaf_stems[: size - 1 - apps]:
        kind = "database" if random.random() < 0.75 else "queue"
        suffixes = names.databases if kind == "database" else names.queues
        leaves[_name(stem, suffixes, app_names, random)] = kind
    calls: dict[str, list[str]] = {name: [] for name in app_names}
    front = max(2, apps // 3)  # the apps that the edge itself routes to
    for i in range(front, apps):
        calls[app_names[int(random.random() * i)]].append(app_names[i])
    publishes: dict[str, list[str]] = {name: [] for name in app_names}
    for name, kind in leaves.items():
        owner = app_names[int(random.random() * apps)]
        (calls if kind == "database" else publishes)[owner].append(name)
    logins, cached = app_names[int(random.random() * front)], app_names[int(random.random() * apps)]
    edge = Service(
        names.edges[int(random.random() * len(names.edges))], "edge", calls=tuple(app_names[:front])
    )
    middle = tuple(
        Service(
            name,
            "app",
            tuple(calls[name]),
            tuple(publishes[name]),
            name == logins,
            name in (logins, cached),
        )
        for name in app_names
    )
    return Topology((edge, *middle, *(Service(name, kind) for name, kind in leaves.items())))


def _name(stem: str, suffixes: tuple[str, ...], taken: list[str], random: Random) -> str:
    """A name of that stem that is not taken; a suffix is drawn only where there is a choice."""
    free = [suffix for suffix in suffixes if f"{stem}-{suffix}" not in taken]
    return f"{stem}-{free[0] if len(free) == 1 else random.choice(free)}"
