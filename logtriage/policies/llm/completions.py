"""Requests to an OpenAI-compatible endpoint, each tried until it passes or cannot.

What passes is tried again, as long as the server asks for (`Retry-After`, of above 0), up to
`PATIENCE`;
everything else is an `EndpointError`. A call that the server itself could not read (400
`tool_use_failed`) is the model's mistake, and comes back as a message whose call cannot be read. A
server that knows tools and does not parse calls is recognised, and told how to be asked instead.

All that a server answers is data: its shape is checked, and nothing of it is evaluated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, Field, ValidationError, field_validator

from ...play.actions import shown
from ...play.conversation import CALL_TAG, Message, from_wire, to_wire
from ...play.text_protocol import written_calls
from ...play.tools import SIGNATURES

if TYPE_CHECKING:  # a slow import, and the library is asked for only where an endpoint is
    from openai import APIStatusError
    from tenacity import RetryCallState

TIMEOUT = 180.0  # seconds till an answer begins, and again till it is whole
PATIENCE = 600.0  # seconds that a request is waited for, with all its attempts and pauses
ATTEMPTS = 5  # at a request that fails without being asked to wait
PASSING = (408, 409, 429)  # of the statuses below 500, those that may be gone the next time
MOST_ANSWER = 4_000_000  # bytes of an answer that are read, of an error as well
MOST_TOLD = 300  # characters of an error that are kept
NOT_PARSED = (
    "the server does not parse tool calls: the model wrote one, and it came back as text; "
    "start the server with a tool-call parser, or choose --tools text"
)


class EndpointError(Exception):
    """Why a conversation could not go on; its text is what a row keeps."""


class _TricklesError(EndpointError):
    """An answer did not come to its end; the next one may."""


class _Function(BaseModel):
    name: str | None = None
    arguments: Any = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _parts(cls, content: Any) -> Any:
        """A content in parts as the text of those that are text."""
        if not isinstance(content, list):
            return content
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


class _Choice(BaseModel):
    message: _Message


class Usage(BaseModel):
    """What a request cost, as the server counts."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class _Completion(BaseModel):
    """As much of an answer as is read."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Usage | None = None


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, given as a number or an HTTP date; None for neither.

    Args:
        value: of the header.
        now: with a time zone.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds) if isfinite(seconds) else None


class Completions:
    """Chat completions of one model.

    Args:
        base_url: e.g. `http://localhost:8000/v1`.
        model: its name there.
        api_key: of the endpoint.
        temperature: 0 for greedy, else of sampling, each request with a seed of its own.
        tools: schemas that go with each request; None for a server that is not to know of tools.
        timeout: seconds that the server may be silent before an answer, and that the answer itself
            may take, however it trickles.
        patience: seconds that a request is waited for, with all attempts and pauses.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str,
        temperature: float,
        tools: list[dict[str, Any]] | None,
        timeout: float,
        patience: float,
    ) -> None:
        from openai import DefaultHttpxClient, OpenAI

        client = DefaultHttpxClient(event_hooks={"response": [partial(_bound, timeout)]})
        self._client = OpenAI(
            base_url=base_url, api_key=api_key, max_retries=0, timeout=timeout, http_client=client
        )
        self._model, self._key, self._patience = model, api_key, patience
        self._options: dict[str, Any] = {"temperature": temperature}
        if tools is not None:
            self._options["tools"] = tools
        self._knows_tools, self._samples = tools is not None, temperature > 0.0
        self._parses = False  # whether the server has ever answered with a call that it had parsed

    def ask(
        self, messages: list[Message], seed: int, stop: threading.Event
    ) -> tuple[Message, Usage | None]:
        """The next assistant message, and what it cost.

        Args:
            messages: the conversation so far.
            seed: of sampling, where it is sampled.
            stop: once set, nobody waits any more.

        Raises:
            EndpointError: when there is none; its text is one line that may be kept.
        """
        from openai import APIConnectionError, APIStatusError, OpenAIError
        from tenacity import Retrying, retry_if_exception, wait_random_exponential

        backing_off = wait_random_exponential(0.5, 30)

        def passes(error: BaseException) -> bool:
            status = error.status_code if isinstance(error, APIStatusError) else 0
            gone = isinstance(error, APIConnectionError) or status in PASSING or status >= 500
            if isinstance(error.__cause__, EndpointError):
                gone = isinstance(error.__cause__, _TricklesError)
            return gone and not stop.is_set()

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = _asked_to_wait(error) if isinstance(error, APIStatusError) else None
            return asked or backing_off(state)  # who asks for nothing is not hammered

        def gives_up(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            asked = isinstance(error, APIStatusError) and _asked_to_wait(error)
            if not asked and state.attempt_number >= ATTEMPTS:
                return True
            waited = max(state.seconds_since_start or 0.0, state.idle_for)
            return waited + state.upcoming_sleep > self._patience

        again = Retrying(
            retry=retry_if_exception(passes),
            wait=wait,
            stop=gives_up,
            sleep=lambda seconds: self._pause(stop, seconds),
            reraise=True,
        )
        try:
            return again(self._ask_once, messages, seed)
        except APIStatusError as error:
            failed = _failed_call(error)
            if failed is None:
                raise EndpointError(self._told(error)) from error
            return failed, None
        except OpenAIError as error:
            if isinstance(error.__cause__, EndpointError):
                raise error.__cause__ from None
            raise EndpointError(self._told(error)) from error

    def _pause(self, stop: threading.Event, seconds: float) -> None:
        """Wait before the next attempt, unless nobody wants it any more."""
        stop.wait(seconds)

    def _ask_once(self, messages: list[Message], seed: int) -> tuple[Message, Usage | None]:
        """One request; errors as the `openai` package has them, and `EndpointError` for an answer
        that is none.
        """
        options = {**self._options, "seed": seed} if self._samples else self._options
        raw = self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=cast(Any, [to_wire(message) for message in messages]),
            **options,
        )
        try:
            answer = _Completion.model_validate_json(raw.content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            raise EndpointError(f"no chat completion: {where}: {first['msg']}") from error
        said = answer.choices[0].message
        if not self._knows_tools:
            return {"role": "assistant", "content": said.content or ""}, answer.usage
        self._parses = self._parses or bool(said.tool_calls)
        message = from_wire(said)
        # Of a server that has parsed calls before, this is the model's own slip.
        if not self._parses and _holds_a_call(message["content"]):
            raise EndpointError(NOT_PARSED)
        return message, answer.usage

    def _told(self, error: Exception) -> str:
        """An error as a row keeps it: one line that can be printed, not too long, and without the
        key.
        """
        text = " ".join(f"{type(error).__name__}: {error}".split())
        if len(self._key) >= 8:
            text = text.replace(self._key, "***")
        hint = "; --tools text does without tools" if self._is_about_tools(error) else ""
        return shown(text, MOST_TOLD) + hint

    def _is_about_tools(self, error: Exception) -> bool:
        from openai import BadRequestError

        told = isinstance(error, BadRequestError) and "tool" in str(error).lower()
        return told and self._knows_tools and not self._parses


def _bound(timeout: float, response: Any) -> None:
    """Have an answer that has begun come to its end within `timeout` seconds and `MOST_ANSWER`
    bytes, unpacked.

    Args:
        timeout: in seconds.
        response: of the client that `openai` has chosen; none of its body is read yet.
    """
    parts, until = response.iter_bytes, time.monotonic() + timeout

    def bounded(chunk_size: int | None = None) -> Iterator[bytes]:
        read = 0
        for part in parts(chunk_size):
            read += len(part)
            if read > MOST_ANSWER:
                raise EndpointError(f"an answer of more than {MOST_ANSWER} bytes; no more are read")
            if time.monotonic() > until:
                raise _TricklesError(f"an answer that is not whole after {timeout:g} seconds")
            yield part

    response.iter_bytes = bounded  # what the client reads the body by


def _asked_to_wait(error: APIStatusError) -> float | None:
    return retry_after(error.response.headers.get("retry-after"), datetime.now(UTC))


def _failed_call(error: APIStatusError) -> Message | None:
    """The message in which a model called a tool so that the server could not read it; None for
    any other error.
    """
    if error.status_code != 400 or error.code != "tool_use_failed":
        return None
    written = error.body.get("failed_generation") if isinstance(error.body, dict) else ""
    text = written[:MOST_TOLD] if isinstance(written, str) else ""
    # With the tag, and with no call beside it, the message is one that was meant as a call.
    return {"role": "assistant", "content": text if CALL_TAG in text else f"{CALL_TAG}{text}"}


def _holds_a_call(content: str) -> bool:
    """Whether a text holds a call of one of the tools that could be run."""
    return any(call is not None and call.name in SIGNATURES for call in written_calls(content))
