"""The next command to run: a way to read more of a suspect, as its log was got. It is printed, and
never run.
"""

import re
import shlex
from datetime import UTC, datetime

from .formats import Format

# A name that stands in a command as it is: nothing that a shell reads, and no option.
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
LEAD = 60  # seconds before the trouble began, from which to read
AROUND = 10  # lines around the first line of trouble


def next_command(
    service: str, format: Format, file: str, start: int, line: int | None, died: bool
) -> str:
    """A command that shows more of a service; empty where none can be named safely.

    Args:
        service: the suspect.
        format: of the log that tells of it.
        file: that it was read from; `-` for standard input.
        start: when it began, seconds since 1970.
        line: number of a line of evidence in that file, from 1; None where it has none of its own.
        died: whether it may have been started anew, so that what it said before is another log.
    """
    if not PLAIN.fullmatch(service):
        return ""
    at, dated = datetime.fromtimestamp(max(0, start - LEAD), UTC), format.dated == "date"
    if format.name == "kubernetes":
        if died:
            return f"kubectl logs deploy/{service} --previous --tail=200"
        since = f" --since-time={at:%Y-%m-%dT%H:%M:%SZ}" if dated else " --since=15m"
        return f"kubectl logs deploy/{service}{since}"
    if format.name in ("docker", "compose"):
        since = f"--since {at:%Y-%m-%dT%H:%M:%SZ}" if dated else "--since 15m"
        return f"docker {'compose logs' if format.name == 'compose' else 'logs'} {since} {service}"
    if format.name == "journald" and dated:
        return f"journalctl -u {service} --since '{at:%Y-%m-%d %H:%M:%S} UTC'"
    file = "" if file == "-" else quoted_file(file)
    if not file:
        return ""
    if line is not None and not format.document:
        first = max(1, line - AROUND)
        return f"sed -n '{first},{line + AROUND}p' {file}"
    return f"grep -n -F -- {service} {file}"


def quoted_file(name: str) -> str:
    """A file's name as a shell takes it for no more than one; empty for one that a terminal could
    not show as it is.
    """
    if not name.isprintable():
        return ""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
