"""Names of services as different teams give them, each list of one style and without a repeat."""

from random import Random

THINGS = """
account address agent alert archive asset audit auth avatar balance banner basket billing
booking bonus budget cache campaign card cart catalog category chat checkout claim comment
config consent contact contract coupon currency customer delivery deposit discount dispatch
document email event export favorite feature feed file fleet forecast form fraud gift group
guide history identity image import index inventory invoice item job journal label language
ledger library limit link listing loan locale location loyalty mail map market media member
menu message meter metric mobile notice offer order page partner payment payroll permission
photo plan player point policy poll portal post preference price product profile promotion
quota quote rating receipt recommend record refund region register rent report request
reservation return review reward risk role room route rule schedule score search seat
section security segment session setting share shipping signal site slot station statistic
stock store stream subscription supplier support survey tag task tax template tenant ticket
token tour track trade train transfer travel trend user vault vendor version video vote
voucher wallet warehouse weather webhook
""".split()  # noqa: SIM905
ROLES = ("service", "api", "worker", "db", "gateway", "store", "queue", "proxy")
CLOUD = ("Lambda::Function", "DynamoDB::Table", "ECS::Fargate", "SQS::Queue", "S3::Bucket", "RDS")


def _kebab(random: Random, thing: str, prefix: str) -> str:
    return f"{thing}-{random.choice(ROLES)}"


def _prefixed(random: Random, thing: str, prefix: str) -> str:
    return f"{prefix}-{thing}-service"


def _joined(random: Random, thing: str, prefix: str) -> str:
    return f"{thing}{random.choice(ROLES)}"


def _cloud(random: Random, thing: str, prefix: str) -> str:
    return f"{prefix}{thing.title()}_AWS::{random.choice(CLOUD)}"


def _host(random: Random, thing: str, prefix: str) -> str:
    return f"{thing}-{random.choice(ROLES)}.{prefix}.svc"


STYLES = (_kebab, _prefixed, _joined, _cloud, _host)


def service_names(random: Random, count: int) -> list[str]:
    """So many different names, at most as many as `THINGS`, of one style."""
    style = random.choice(STYLES)
    prefix = "".join(random.choice("abcdefghijklmnoprstuvw") for _ in range(random.randint(2, 4)))
    return [style(random, thing, prefix) for thing in random.sample(THINGS, count)]
