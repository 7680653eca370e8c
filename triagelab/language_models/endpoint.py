"""A language model behind an OpenAI-compatible endpoint, as a policy.

Each conversation has its own thread, so a slow one delays no other. The `openai` client retries a
request if that may help, after the pause that `Retry-After` asks for. A request that fails for good
ends its episode, which then has an error and no score; a refused key or model ends all play.
Whatever a server answers is data: its shape is checked, and nothing in it is evaluated.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from queue import Queue
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from logtriage.play.actions import ACTION_TYPES
from logtriage.play.conversation import (
    CALL_TAG,
    NATIVE,
    TEXT,
    Message,
    Protocol,
    from_wire,
    to_wire,
    written_calls,
)
from logtriage.play.episode import BaseEpisode
from logtriage.play.tools import tool_schemas
from logtriage.policies.policy import (
    BATCH,
    ConversationPolicy,
    EndpointError,
    Played,
    Tokens,
    UnusableEndpointError,
)

CONCURRENCY = 8  # conversations at once, unless asked otherwise
TIMEOUT = 180.0  # seconds until an answer begins, and again until it is complete
CONNECT = 4.0  # seconds until a connection stands
RETRIES = 20  # per request; their pauses add up to two minutes, enough to restart a server
PATIENCE = 600.0  # seconds after which a request is not sent again
ANSWER_TOKENS = 8192  # most new tokens of an answer; what a model thinks before it counts, too
# Options that some models refuse, and what is sent instead of each, if anything.
REFUSABLE = {
    "temperature": "",
    "max_completion_tokens": "max_tokens",  # as older servers call it
    "max_tokens": "",
    "seed": "",
}
MOST_ANSWER = 4_000_000  # bytes of an answer that are read
MOST_SHOWN = 300  # characters of an error that are kept
UNUSABLE = {401: "check OPENAI_API_KEY", 404: "check the URL and the model's name"}
# Calls in a model's own syntax, which the server should have parsed: <function=escalate>,
# <|python_tag|>escalate.call(...), [escalate(team="sre")].
UNPARSED = re.compile(
    rf"<function=|<\|python_tag\|>|\[TOOL_CALLS\]|\A[\s\[]*({'|'.join(ACTION_TYPES)})\("
)
NOT_PARSED = (
    "the server does not parse tool calls: the model wrote one, and it came back as text; "
    "start the server with a tool-call parser, or evaluate with --tools text"
)


class _Function(BaseModel):
    name: str | None = None
    arguments: Any = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class _Completion(BaseModel):
    """The fields of an answer that are read."""

    error: Any = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


class EndpointPolicy(ConversationPolicy):
    """A model behind an OpenAI-compatible endpoint.

    The key is in the environment variable `OPENAI_API_KEY`; local servers need none. With a
    temperature above 0, each request has a seed of its own, made from `seed`. `TEXT` is the
    protocol for a server that does not parse tools. `ValueError` if `base_url` is not a URL.

    An answer has at most `ANSWER_TOKENS`. Reasoning models may refuse a temperature: an option that
    is refused by name is left out from then on, which is said once.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        workers: int | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        protocol: Protocol = NATIVE,
        timeout: float = TIMEOUT,
    ) -> None:
        import httpx
        from openai import OpenAI

        super().__init__(model, seed, protocol)
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(
                f"{base_url!r:.80} is not the URL of an endpoint; "
                "give one such as http://localhost:8000/v1"
            )
        self._key = os.environ.get("OPENAI_API_KEY", "none")
        self._workers, self._timeout = workers or CONCURRENCY, timeout
        self._options: dict[str, Any] = {
            "temperature": temperature,
            "max_completion_tokens": ANSWER_TOKENS,
        }
        if protocol is not TEXT:
            self._options["tools"] = tool_schemas()
        self._samples = temperature > 0.0
        self._refused: set[str] = set()  # options that the server has refused by name
        self._parses = False  # whether the server has ever answered with a parsed call
        self._address = base_url
        self._announced = threading.Lock()  # taken by the first retry of all, which is said
        # `until`, `stop` and `failed` (what became of the last attempt) of this thread's request
        self._request = threading.local()
        client = httpx.Client(
            follow_redirects=True,
            limits=httpx.Limits(max_connections=None),
            event_hooks={"request": [self._check], "response": [self._bound]},
        )
        self._client = OpenAI(
            base_url=base_url,
            api_key=self._key,
            max_retries=RETRIES,
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT)),
            http_client=cast(Any, client),  # its type depends on the version of `openai`
        )

    def play_each(
        self, episodes: Iterable[BaseEpisode], batch: int = BATCH, attempt: int = 0
    ) -> Iterator[Played]:
        """See `Policy.play_each`; all episodes are opened in the calling thread."""
        opened, running = iter(episodes), 0
        stop = threading.Event()  # the caller wants no more
        ended: Queue[Played | BaseException] = Queue()

        def work(episode: BaseEpisode) -> None:
            self._request.stop = stop
            try:
                ended.put(self.converse(episode, attempt))
            except BaseException as error:
                ended.put(error)

        try:
            while True:
                while running < min(self._workers, batch):
                    episode = next(opened, None)
                    if episode is None:
                        break
                    # A daemon, so that a request that hangs does not keep the process from ending.
                    threading.Thread(target=work, args=(episode,), daemon=True).start()
                    running += 1
                if not running:
                    return
                played = ended.get()
                running -= 1
                if isinstance(played, BaseException):
                    raise played
                yield played
        finally:
            stop.set()

    def reply(self, messages: list[Message], seed: int) -> tuple[Message, Tokens | None]:
        """See `ConversationPolicy.reply`; what a server refuses is left out from then on."""
        from openai import APIStatusError, OpenAIError

        self._request.until = time.monotonic() + PATIENCE
        self._request.failed = ""
        options = dict(self._options, messages=[to_wire(message) for message in messages])
        if self._samples and "seed" not in self._refused:
            options["seed"] = seed
        try:
            raw = self._client.chat.completions.with_raw_response.create(model=self.name, **options)
        except OpenAIError as error:
            if isinstance(error, APIStatusError) and error.code == "tool_use_failed":
                # The server could not read the model's call: it costs a step, like any such call.
                return {"role": "assistant", "content": CALL_TAG}, None
            if self._leave_out_refused(error, options):
                return self.reply(messages, seed)
            if isinstance(error, APIStatusError) and error.status_code in UNUSABLE:
                hint = UNUSABLE[error.status_code]
                raise UnusableEndpointError(f"{self._reason(error)}; {hint}") from error
            raise EndpointError(self._reason(error)) from error
        return self._read(raw.content)

    def _leave_out_refused(self, error: Exception, options: dict[str, Any]) -> bool:
        """Leave out an option that a refusal of these options names; whether there is one."""
        if getattr(error, "status_code", None) not in (400, 422):
            return False
        named = [name for name in REFUSABLE if re.search(rf"\b{name}\b", str(error))]
        refused = next((name for name in named if name in options), "")
        if refused and refused not in self._refused:  # else another conversation was first
            self._refused.add(refused)
            kept = {name: value for name, value in self._options.items() if name != refused}
            instead = REFUSABLE[refused]
            if instead:
                kept[instead] = options[refused]
            self._options = kept
            message = f"it refuses {refused}, so {instead or 'nothing'} is sent instead"
            print(f"{self.name}: {message}", file=sys.stderr)
        return bool(refused)

    def _read(self, content: bytes) -> tuple[Message, Tokens | None]:
        """The message and the tokens of an answer; `EndpointError` if it holds none."""
        try:
            answer = _Completion.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            raise EndpointError(f"no chat completion: {where}: {first['msg']}") from error
        if answer.error:
            raise EndpointError(
                f"the server answered with an error: {self._printable(answer.error)}"
            )
        if not answer.choices:
            raise EndpointError("no chat completion: the answer has no choices")

        usage, written = answer.usage, answer.choices[0].message
        tokens = Tokens(usage.prompt_tokens, usage.completion_tokens) if usage else None
        if self.protocol is TEXT:
            return {"role": "assistant", "content": written.content or ""}, tokens
        self._parses = self._parses or bool(written.tool_calls)
        message = from_wire(written)
        # If the server has parsed calls before, this is the model's own mistake.
        if not self._parses and _holds_a_call(message["content"]):
            raise EndpointError(NOT_PARSED)
        return message, tokens

    def _check(self, request: Any) -> None:
        """Before each attempt at a request: give up if nobody waits for it, or after `PATIENCE`; at
        the first retry, say so.
        """
        if self._request.stop.is_set():
            raise EndpointError("nobody waits for this episode any more")
        if time.monotonic() > self._request.until:
            raise EndpointError(f"no answer within {PATIENCE:g} seconds, in several attempts")
        failed, self._request.failed = self._request.failed, "does not answer"
        if failed and self._announced.acquire(blocking=False):
            again = f"trying again, {RETRIES} times at most (Ctrl-C ends it)"
            print(f"{self.name}: {self._address} {failed}; {again}", file=sys.stderr, flush=True)

    def _bound(self, response: Any) -> None:
        """Limit an answer that has begun to `timeout` seconds and `MOST_ANSWER` unpacked bytes."""
        from httpx import ReadTimeout

        if response.is_error:
            self._request.failed = f"answers with status {response.status_code}"
        elif response.has_redirect_location:
            self._request.failed = ""
        parts, until = response.iter_bytes, time.monotonic() + self._timeout

        def bounded(chunk_size: int | None = None) -> Iterator[bytes]:
            size = 0
            for part in parts(chunk_size):
                size += len(part)
                if size > MOST_ANSWER:
                    raise EndpointError(f"the answer has more than {MOST_ANSWER} bytes")
                if time.monotonic() > until:  # the client takes it for its own timeout, and retries
                    raise ReadTimeout(f"the answer took more than {self._timeout:g} seconds")
                yield part

        response.iter_bytes = bounded  # the client reads the body through this

    def _reason(self, error: Exception) -> str:
        """An error as a result keeps it: one printable line, not too long, and without the key."""
        cause = f" ({error.__cause__})" if error.__cause__ else ""
        text = self._printable(f"{type(error).__name__}: {error}{cause}")
        about_tools = text.startswith("BadRequestError") and "tool" in str(error).lower()
        if about_tools and self.protocol is not TEXT and not self._parses:
            text += "; in evaluate, --tools text does without tools"
        return text

    def _printable(self, written: object) -> str:
        text = " ".join(str(written).split())
        if len(self._key) >= 8:
            text = text.replace(self._key, "***")
        return repr(text)[1:-1][:MOST_SHOWN]


def _holds_a_call(content: str) -> bool:
    """Whether a text holds a call of one of the tools, in JSON or in a model's own syntax."""
    written = (call[0] for call in written_calls(content) if call is not None)
    return bool(UNPARSED.search(content)) or not set(ACTION_TYPES).isdisjoint(written)
