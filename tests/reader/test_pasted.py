"""What people paste: some lines from inside the trouble, in the layouts that tools print. Names,
software, order and layout are drawn anew for each log.
"""

import json
from random import Random

import pytest
from corpus import table
from shop_log import read_in_parts

from logreader.answer import answer_of
from logreader.causes import CAUSES
from logreader.log import read_named, read_text
from logreader.sureness import LIKELY, POSSIBLE, UNSURE
from logreader.tally import speakers_of

EXAMPLES, PASTES = table("causes.yaml"), table("pastes.yaml")
OWN = [cause.name for _, cause in CAUSES if cause.own]
NAMES = ["billing", "ledger", "stock", "search-api", "basket", "mailer", "auth_db", "tickets"]
CLOCK = "2026-11-22T03:{:02}:{:02}Z "


def stamped(rows):
    return [(name, f"{CLOCK.format(i // 60, i % 60)}{text}") for i, (name, text) in enumerate(rows)]


def compose(rows, random):
    wide = max(len(name) for name, _ in rows) + 2
    return "".join(f"{name + '-1':<{wide}} | {text}\n" for name, text in stamped(rows))


def compose_without_times(rows, random):
    return "".join(f"{name}_1  | {text}\n" for name, text in rows)


def swarm(rows, random):
    ids = {name: f"{random.getrandbits(48):012x}" for name, _ in rows}
    return "".join(f"{name}.1.{ids[name]}@node-2    | {text}\n" for name, text in stamped(rows))


def headings(rows, random):
    path = random.choice(["{}", "/var/log/shop/{}/current", "/srv/{}.log"])
    blocks = [f"==> {path.format(name)} <==\n{text}\n" for name, text in stamped(rows)]
    return "\n".join(blocks)


def syslog(rows, random):
    lines = [
        f"Nov 22 03:{i // 60:02}:{i % 60:02} box-1 {name}[{random.randrange(100, 9999)}]: {text}\n"
        for i, (name, text) in enumerate(rows)
    ]
    return "".join(lines)


def journal(rows, random):
    """As `journalctl -o json` prints messages with colours: in bytes."""
    lines = []
    for i, (name, text) in enumerate(rows):
        level, _, rest = text.partition(" ")
        record = {"__REALTIME_TIMESTAMP": str((1_795_316_645 + i) * 1_000_000), "PRIORITY": "6"}
        message = [*f"\x1b[31m{level}\x1b[0m {rest}".encode()]
        lines.append(json.dumps({**record, "SYSLOG_IDENTIFIER": name, "MESSAGE": message}))
    return "\n".join(lines)


LAYOUTS = [compose, compose_without_times, swarm, headings, syslog, journal]


def never_came_up(random, cause):
    """A root that says what is wrong with it, and who complains of it: rows, and the root."""
    root, caller, edge = random.sample(NAMES, 3)
    line = random.choice(EXAMPLES[cause]["bad"])
    refused = f"ERROR cannot connect to {root}:{random.randrange(1000, 9999)}: connection refused"
    rows = [(root, f"FATAL {line}"), (caller, refused), (edge, f"ERROR GET / 502 from {caller}")]
    rows = rows * random.randrange(1, 8)
    random.shuffle(rows)
    return rows, root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stack_that_never_came_up_has_a_suspect_with_its_cause(layout):
    right = causes = 0
    for cause in OWN:
        random = Random(f"pasted/{layout.__name__}/{cause}")
        rows, root = never_came_up(random, cause)
        answer = answer_of(read_text(layout(rows, random)))
        named = answer.root in (root, f"{root}-1", f"{root}_1")
        right += named
        causes += named and answer.suspects[0].cause == cause
        assert answer.sure in (POSSIBLE, UNSURE) and answer.next
        assert "shows what is usual" in answer.why or answer.began or answer.sure == UNSURE
    assert right >= 0.9 * len(OWN) and causes >= 0.9 * right, (right, causes, len(OWN))


@pytest.mark.parametrize("reason", ["Java heap space", "GC overhead limit exceeded", "Metaspace"])
@pytest.mark.parametrize("head", ['Exception in thread "main" ', "", "Caused by: "])
def test_a_cause_on_a_line_without_level_or_time_is_that_of_who_says_it(head, reason):
    died = f"{head}java.lang.OutOfMemoryError: {reason}"
    for seed in range(3):
        root, caller = Random(f"memory/{seed}").sample(NAMES, 2)
        calm = [(root, f"INFO {root} is up"), (caller, "INFO page shown"), (root, "INFO indexing")]
        refused = [(caller, f"ERROR cannot connect to {root}:9200: connection refused")] * 3
        rows = stamped([*calm, *refused])
        compose = [f"{name}_1  | {text}" for name, text in rows]
        plain = [text.replace("Z ", f"Z {name} ", 1) for name, text in rows]
        files = [[text for name, text in rows if name == wanted] for wanted in (root, caller)]
        under = f"{died}\n\tat java.util.Arrays.copyOf(Arrays.java:3332)"
        for answer in (
            answer_of(read_text("\n".join([*compose[:3], f"{root}_1  | {died}", *compose[3:]]))),
            answer_of(read_text("\n".join([*plain[:3], under, *plain[3:]]))),
            answer_of(read_named({
                f"{root}.log": "\n".join([*files[0], under]).encode(),
                f"{caller}.log": "\n".join(files[1]).encode(),
            })),
        ):  # fmt: skip
            first = answer.suspects[0]
            assert (answer.root.removesuffix("_1"), first.cause) == (root, "out of memory")
            assert died in first.line


@pytest.mark.parametrize("layout", LAYOUTS)
def test_who_speaks_is_told_by_the_head_of_a_line(layout):
    for seed in range(5):
        random = Random(f"heads/{layout.__name__}/{seed}")
        rows, _ = never_came_up(random, random.choice(OWN))
        names = speakers_of(read_text(layout(rows, random)).tally)
        assert {name.removesuffix("-1").removesuffix("_1") for name in names} == {
            name for name, _ in rows
        }


def test_a_line_without_a_time_belongs_to_the_container_that_printed_it():
    text = "docs | 2026-11-22 03:04:05 FATAL no space left\nweb  | waiting\ndocs |   [fail]\n"
    tally = read_text(text).tally
    said = {(tally.services[shape.service], shape.example.split()[-1]) for shape in tally.shapes}
    assert ("web", "waiting") in said and ("docs", "[fail]") in said


def test_a_name_with_blanks_reaches_to_the_bracket():
    row = "Nov 22 03:04:{:02} laptop {}[{}]: state {} failed\n"
    names = ["Desk Writer", "Sound Mixer", "kernel"]
    text = "".join(row.format(i, names[i % 3], i, i) for i in range(30))
    assert {"Desk_Writer", "Sound_Mixer"} <= speakers_of(read_text(text).tally)


@pytest.mark.parametrize("request_id", ["REQ-{}", "order_{}", "TX{}"])
def test_numbers_of_requests_are_nobody_and_the_cause_is_shown(request_id):
    for seed in range(4):
        random = Random(f"ids/{request_id}/{seed}")
        ids = [request_id.format(random.randrange(10_000, 99_999)) for _ in range(2)]
        rows = [f"WARNING - {ids[i % 2]} - No space left on device {i}" for i in range(8)]
        text = "".join(
            f"Aug 13 11:44:0{i} host journal: store - {row}\n" for i, row in enumerate(rows)
        )
        answer = answer_of(read_text(text))
        assert answer.suspects[0].cause == "disk full" and "disk full" in answer.text()
        assert not any(suspect.service in ids for suspect in answer.suspects)


def test_the_file_is_nobody():
    text = "2026-11-22 03:04:05 ERROR no space left on device\n" * 3
    for name in ("two.log", "-"):
        answer = answer_of(read_named({name: text.encode()}))
        assert answer.root == "" and answer.why == "the log does not say who speaks"
        assert answer.suspects[0].cause == "disk full"
        assert "100% of the lines do not say who speaks" in answer.read[-1]


def test_of_a_killed_task_the_cgroup_is_nobody():
    row = "May 19 12:19:38 box kernel: [2.5] oom-kill:constraint=NONE,task_memcg={},task={},pid=3\n"
    for group, task in (("/system.slice/bitnami.service", "mysqld"), ("/docker/1f", "java")):
        answer = answer_of(read_text(row.format(group, task)))
        assert (answer.root, answer.suspects[0].cause) == (task, "killed for memory")


def test_the_severity_of_mongodb_is_read_and_its_component_is_nobody():
    rows = [("I", "NETWORK", "accepted", {}), ("F", "STORAGE", "Terminating", {"reason": "EPERM"})]
    text = "".join(
        json.dumps({"t": {"$date": f"2026-11-22T03:04:0{i}.000+00:00"}, "s": s, "c": c, "msg": m,
                    "attr": attr}) + "\n"
        for i, (s, c, m, attr) in enumerate(rows)
    )  # fmt: skip
    answer = answer_of(read_text(text))
    assert answer.suspects[0].cause == "permission refused"
    behind = "".join(f"mongo_1  | {line}\n" for line in text.splitlines())
    assert answer_of(read_text(behind)).root in ("mongo_1", "mongo")


def test_a_client_alone_that_lost_its_network_blames_nobody():
    calm = "2026-11-22 03:{:02}:{:02} INFO [main] org.acme.Job: progress {}\n"
    lost = "2026-11-22 03:{:02}:{:02} WARN [io:{}] org.acme.Client: no route to host: {}:9000\n"
    for host in ("nn-1", "orders-db"):
        text = "".join(calm.format(i // 60, i % 60, i) for i in range(400))
        text += "".join(lost.format(i // 60, i % 60, i, host) for i in range(400, 500))
        answer = answer_of(read_text(text))
        assert answer.root == "" and answer.why.startswith("the network between")
        assert f" and {host}, or either end" in answer.why


def test_a_lone_burst_of_harmless_lines_is_never_likely():
    for seed in range(5):
        random = Random(f"burst/{seed}")
        lines = [(i * 37, random.choice(["cupsd", "ntpd", "cron"]), "state") for i in range(290)]
        lines += [(5000 + i, "Desk Writer", "script error: codes must be long") for i in range(20)]
        text = "".join(
            f"Nov 22 {3 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02} box {name}[1]: {said}\n"
            for at, name, said in sorted(lines)
        )
        assert answer_of(read_text(text)).sure != LIKELY


def test_since_is_the_first_line_of_a_trouble_that_came_before_now_and_then():
    rows = []
    for slot in range(8640):  # of five minutes each
        at = slot * 300
        stamp = f"2026-05-{1 + at // 86400:02}T{at // 3600 % 24:02}:{at // 60 % 60:02}:00Z"
        rows.append(f"{stamp} INFO page shown\n")
        bad = 3 if 5600 <= slot < 5620 else slot % 140 == 0
        rows += [f"{stamp} WARN slow answer from store\n"] * bad
    answer = answer_of(read_text("".join(rows)))
    assert answer.suspects[0].service == "store" and answer.began == "2026-05-20 10:40:00Z"
    assert "2026-05-20T10:40:00Z WARN" in rows[answer.suspects[0].number - 1]


@pytest.mark.parametrize(("complaint", "cause"), [
    ("Unable to revive connection: http://{}:9200/", "connection refused"),
    ("getaddrinfo ENOTFOUND {}", "name not resolved"),
    ("request to {}:9200 timed out", "no answer in time"),
])  # fmt: skip
def test_a_record_of_the_type_log_tells_its_level_by_its_tags(complaint, cause):
    for other in ("elasticsearch", "search-db"):
        record = {"type": "log", "@timestamp": "2026-11-22T03:04:05Z", "pid": 1}
        record |= {"tags": ["error", "data"], "message": complaint.format(other)}
        text = f"kibana_1 | {json.dumps(record)}\n" * 2
        text += f"kibana_1 | {json.dumps({**record, 'message': 'No living connections'})}\n"
        answer = answer_of(read_text(text))
        assert (answer.suspects[0].service, answer.suspects[0].cause) == (other, cause)


def test_a_file_of_each_host_reads_as_one_file_of_both():
    for seed in range(4):
        random = Random(f"hosts/{seed}")
        root, caller, edge = random.sample(NAMES, 3)
        calm = [(name, f"INFO {name} took {i} ms") for i in range(300) for name in (root, caller)]
        bad = [(root, "FATAL No space left on device"), (caller, f"ERROR {root}:99 refused")]
        bad.append((edge, f"ERROR 502 upstream {caller} refused"))
        rows = [*calm, *bad * 20]
        lines = syslog(rows, random).splitlines(keepends=True)
        files = {"node-a.log": "", "node-b.log": ""}
        for (name, _), line in zip(rows, lines, strict=True):
            files["node-b.log" if name == root else "node-a.log"] += line
        answer = answer_of(read_named({name: text.encode() for name, text in files.items()}))
        assert answer.root == answer_of(read_text("".join(lines))).root == root


@pytest.mark.parametrize("word", ["data", "resolve", "source", "host"])
def test_ordinary_words_after_words_of_failure_are_nobody(word):
    for program in ("gmetad", "collectd", "chronyd"):
        text = f"Nov 22 03:04:05 box {program}[7]: Warning: we failed to {word} data source an142\n"
        answer = answer_of(read_text(text))
        assert {suspect.service for suspect in answer.suspects} <= {program}


def test_the_middle_of_an_indented_document_is_read_by_records():
    for root in ("stock", "mail_db"):
        rows = [(root, "FATAL", "no space left on device"), ("web", "ERROR", f"{root}:9 refused")]
        records = [
            {"time": f"2026-11-22T03:04:{i:02}Z", "service": service, "level": level, "msg": text}
            for i, (service, level, text) in enumerate(rows * 6)
        ]
        lines = json.dumps(records, indent=2).splitlines(keepends=True)
        answer = answer_of(read_text("".join(lines[4:-5])))
        assert (answer.root, answer.suspects[0].cause) == (root, "disk full")


COMMANDS = [
    "$ kubectl logs web-0",
    "kubectl --context=prod -n shop logs -f pod/web-0",
    "sudo docker logs web-0",
    " k logs web-0 --tail=5",
    "[me@host ~]# oc logs web-0 | tail",
    "> podman logs --since 10m web-0 2>&1",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_whose_log_follows(command):
    answer = answer_of(read_text(f"{command}\nERROR no space left on device\n"))
    assert answer.root == "web-0"


NO_NAMES = [
    "$ docker logs web\nstarted\n--- Logging error ---\nERROR no space left on device",
    "$ docker logs web\n======== Running on http://0.0.0.0 ====\nERROR no space left on device",
    "web | connection died\nweb | ERROR no space left on device",
    "web | attempt 1/3 Error: no space left on device\nweb | attempt 2/3 Error: no space left",
    "web | ERROR cannot bind to /run/web/gunicorn.sock: Address already in use",
    "web-1 | bye\nweb-1 exited with code 255",
    "web-1 | bye\nweb-1 exited with code 1 (restarting)",
]


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_programs_print_names_no_other_than_the_container(text):
    assert answer_of(read_text(text)).root.removesuffix("-1") == "web"


def test_a_network_that_several_cannot_cross_hides_nobody_who_died():
    rows = [("store", "ERROR dial tcp 10.0.0.7:1: connect: no route to host")]
    rows += [("page", "ERROR dial tcp 10.0.0.9:1: connect: no route to host")]
    assert answer_of(read_text(compose_without_times(rows, None))).root == ""
    rows += [("ledger", "FATAL: no space left on device")]
    assert answer_of(read_text(compose_without_times(rows, None))).root == "ledger_1"


def test_a_line_under_a_heading_keeps_its_number_however_it_is_read(monkeypatch):
    text = "==> web <==\n2026-11-22 03:00:01 INFO up\n\n"
    text += "==> db <==\n2026-11-22 03:00:02 FATAL disk full\n"
    for size in (64, 100, 1 << 16):
        read_in_parts(monkeypatch, size)
        answer = answer_of(read_text(text))
        assert (answer.root, answer.suspects[0].number) == ("db", 5)


@pytest.mark.parametrize("calm", [1, 8, 20, 60, 600])
def test_calm_lines_before_take_no_answer_away(calm):
    rows = [(("basket", "web", "stock")[i % 3], f"INFO served {i}") for i in range(calm)]
    for i in range(5):
        rows.append(("ledger-db", "ERROR could not extend file: No space left on device"))
        rows.append(("basket", f"ERROR order {i} failed: ledger-db answered 500"))
    answer = answer_of(read_text(compose(rows, None)))
    assert (answer.root, answer.suspects[0].cause) == ("ledger-db", "disk full")
    assert "few calm lines" in answer.why or answer.began


@pytest.mark.parametrize("name", PASTES)
def test_a_kind_of_line_that_was_misread_once_is_read(name):
    paste = PASTES[name]
    answer = answer_of(read_text(paste["text"]))
    assert answer.root == paste["root"].replace("nobody", "")
    assert "cause" not in paste or answer.suspects[0].cause == paste["cause"]
