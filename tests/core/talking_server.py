"""An OpenAI-compatible server on loopback that answers as a test tells it to."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

HANG = "hang"  # an answer that never comes


def call(name, arguments, identifier="call_0"):
    """A tool call as the protocol has it; `arguments` as they are."""
    function = {"name": name, "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}


def said(*calls, content=None, usage=(100, 10)):
    """A completion whose message makes these calls."""
    message = {"role": "assistant", "content": content, "tool_calls": list(calls) or None}
    answer = {"id": "x", "object": "chat.completion", "created": 0, "model": "toy"}
    answer["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    if usage:
        answer["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
        answer["usage"]["total_tokens"] = sum(usage)
    return 200, {}, answer


def refused(status, message="no", headers=None, **more):
    """An error as the protocol has it."""
    return status, headers or {}, {"error": {"message": message, **more}}


RESOLVES = said(call("resolve", "{}"))


class Talk:
    """What was asked of a server so far, and what ends its hanging."""

    def __init__(self):
        self.requests, self.released = [], threading.Event()

    def openings(self):
        """The user's first message of every request, in order."""
        return [body["messages"][1]["content"] for body in self.requests]


def without_pauses(monkeypatch):
    """Have the `openai` client wait for nothing; returns the seconds of every pause."""
    pauses = []
    clock = SimpleNamespace(sleep=pauses.append, time=time.time)
    monkeypatch.setattr("openai._base_client.time", clock)
    return pauses


@contextmanager
def talking(answer):
    """A server: yields its address and a `Talk`. `answer` takes a request's body and how many came
    before it, and returns (status, headers, what is sent), or HANG; what is sent may be a
    function that yields bytes without end.
    """
    talk, lock = Talk(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                talk.requests.append(body)
                number = len(talk.requests) - 1
            reaction = answer(body, number)
            if reaction == HANG:
                talk.released.wait(30)
                return
            status, headers, sent = reaction
            if not callable(sent):
                data = (sent if isinstance(sent, str) else json.dumps(sent)).encode()
                length = {"Content-Length": str(len(data))}
                headers = {"Content-Type": "application/json", **headers, **length}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # the other side has enough
                for part in sent() if callable(sent) else [data]:
                    if talk.released.is_set():
                        return
                    self.wfile.write(part)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", talk
    finally:
        talk.released.set()
        server.shutdown()
        server.server_close()
