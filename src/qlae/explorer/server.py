"""The explorer's server: its page and an API for one run, or for two. Uploads are never stored.

Observations are sent as raw bytes, one after another (see ``View.to_page``): on one machine that is faster than
compressing and decompressing them.

Any website that a user visits can make the browser send requests to a server on the same machine. ``Guard`` rejects
them by two checks. The ``Host`` header must name this machine, which defeats DNS rebinding (a foreign name that
resolves to 127.0.0.1). And the headers in which the browser states where a request comes from, ``Origin`` and
``Sec-Fetch-Site``, must name this page.

Request bodies are read with a size limit. A wrong field raises a ``ValueError`` that names the field, its value and
what is allowed; the server answers with 400.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .._checks import shortened
from .._parsing import decode_json, parse
from .exploration import Exploration
from .page import ICON, PAIR_SCRIPT, PAIR_STYLE, SCRIPTS, STYLE, page_html, pair_html
from .search import Condition, Matches

Handler = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")
Body = TypeVar("Body")

NUM_MATCHES = 48  # returned by a search without a limit
MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
MAX_JSON_BYTES = 2**20
MAX_PICTURES = 128  # decoded or shown per request
MAX_CONDITIONS = 64  # of a search
MAX_VALUES = 1024  # of a condition
MAX_TEXT = 200  # characters of a file name to search for
MAX_ROW_DIGITS = 9
HOSTS = ("127.0.0.1", "localhost")
FRAMES = "frame-src 'self'; frame-ancestors 'self'"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
FRAME_HEADERS = {
    "content-security-policy": HEADERS["content-security-policy"].replace("frame-ancestors 'none'", FRAMES),
    "x-frame-options": "SAMEORIGIN",
}


def build_app(exploration: Exploration, beside: Exploration | None = None) -> Starlette:
    """Return the web application that serves the page and the API of one run, or of two side by side."""
    routes = _run_routes(exploration) if beside is None else _pair_routes(exploration, beside)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, has_frames=beside is not None)],
        exception_handlers={
            ValueError: _answer_bad_request,
            OSError: _answer_file_error,
            HTTPException: _answer_http_error,
            ClientDisconnect: _answer_disconnect,
        },
    )


def _pair_routes(first: Exploration, second: Exploration) -> list[BaseRoute]:
    """Return a page with two frames, in which the pages of two runs follow each other."""
    names = [exploration.run.path.resolve().name for exploration in (first, second)]
    return [
        Route("/", partial(_serve_html, html=pair_html(*names)), methods=["GET"]),
        *_asset_routes(STYLE, ICON, PAIR_STYLE, PAIR_SCRIPT),
        Mount("/a", routes=_run_routes(first)),
        Mount("/b", routes=_run_routes(second)),
    ]


def _run_routes(exploration: Exploration) -> list[BaseRoute]:
    """Return the page and the API of one run."""
    api = Api(exploration)
    return [
        Route("/", partial(_serve_html, html=page_html()), methods=["GET"]),
        *_asset_routes(STYLE, ICON, *SCRIPTS),
        Route("/api/run", api.describe, methods=["GET"]),
        Route("/api/sample/{row:int}", api.sample, methods=["GET"]),
        Route("/api/samples", api.samples, methods=["GET"]),
        Route("/api/images", api.images, methods=["GET"]),
        Route("/api/original/{row:int}", api.original, methods=["GET"]),
        Route("/api/decode", api.decode, methods=["POST"]),
        Route("/api/encode", api.encode, methods=["POST"]),
        Route("/api/search", api.search, methods=["POST"]),
        Route("/api/names", api.rename, methods=["POST"]),
    ]


def _asset_routes(*names: str) -> list[BaseRoute]:
    return [Route(f"/{name}", partial(_serve_asset, name=name), methods=["GET"]) for name in names]


Number = int | float  # an integer stays one, since codes are integers


@dataclass(frozen=True)
class DecodeRequest:
    """Decode codes to pictures."""

    codes: Annotated[list[list[Number]], msgspec.Meta(min_length=1, max_length=MAX_PICTURES)]


@dataclass(frozen=True)
class RenameRequest:
    """Name a latent, or one of its values."""

    latent: int
    name: str
    value: int | None = None


@dataclass(frozen=True)
class ConditionRequest:
    """A latent and its allowed ``values``, or the lowest and the highest number of a continuous latent."""

    latent: int
    values: Annotated[list[Number], msgspec.Meta(min_length=1, max_length=MAX_VALUES)] | None = None
    low: Number | None = None
    high: Number | None = None

    def allowed(self, has_codes: bool) -> list[float]:
        """Return the allowed codes, or the two ends of a range."""
        if has_codes and self.values is not None:
            return self.values
        if not has_codes and self.low is not None and self.high is not None:
            return [self.low, self.high]
        raise ValueError(f"a condition on z{self.latent} must have {'values' if has_codes else 'low and high'}")


@dataclass(frozen=True)
class SearchRequest:
    """Search by exactly one of a code, conditions, part of a file name, an index, or a value of a latent."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PICTURES)] = NUM_MATCHES
    code: list[Number] | None = None
    where: Annotated[list[ConditionRequest], msgspec.Meta(min_length=1, max_length=MAX_CONDITIONS)] | None = None
    file: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] | None = None
    index: int | None = None
    latent: int | None = None
    value: Number | None = None


class Api:
    """The request handlers.

    Single pictures are decoded in a separate thread, so that moving a latent never waits for strips, and so are
    files, which may be large.
    """

    def __init__(self, exploration: Exploration):
        self.exploration = exploration
        self._single_limiter = CapacityLimiter(1)
        self._batch_limiter = CapacityLimiter(1)
        self._file_limiter = CapacityLimiter(1)

    async def describe(self, request: Request) -> Response:
        return JSONResponse(self.exploration.describe())

    async def sample(self, request: Request) -> Response:
        return JSONResponse(self.exploration.sample(request.path_params["row"]))

    async def samples(self, request: Request) -> Response:
        rows = parse_rows(request.query_params.get("rows", ""))
        return JSONResponse({"samples": [self.exploration.sample(row) for row in rows]})

    async def original(self, request: Request) -> Response:
        row = request.path_params["row"]
        content, media_type = await self._run_in_thread(lambda: self.exploration.original(row), self._file_limiter)
        return Response(content, media_type=media_type)

    async def images(self, request: Request) -> Response:
        rows = parse_rows(request.query_params.get("rows", ""))
        pictures = await self._run_in_thread(lambda: self.exploration.pictures(rows))
        return _raw_response(pictures.tobytes())

    async def decode(self, request: Request) -> Response:
        body = await read_request(request, DecodeRequest)
        codes = np.stack([self.exploration.to_code(code) for code in body.codes])
        limiter = self._single_limiter if len(codes) == 1 else self._batch_limiter
        pictures = await self._run_in_thread(lambda: self.exploration.decode(codes), limiter)
        return _raw_response(pictures.tobytes())

    async def encode(self, request: Request) -> Response:
        content = await read_body(request, self.exploration.view.max_upload_bytes)
        picture, code, note = await self._run_in_thread(lambda: self.exploration.encode(content))
        return JSONResponse({"code": code, "picture": base64.b64encode(picture.tobytes()).decode(), "note": note})

    async def search(self, request: Request) -> Response:
        find = self._search_for(await read_request(request, SearchRequest))
        return JSONResponse((await self._run_in_thread(find))._asdict())

    def _search_for(self, body: SearchRequest) -> Callable[[], Matches]:
        """Return the search that a request asks for."""
        exploration, limit = self.exploration, body.limit
        if body.code is not None:
            return partial(exploration.find_nearest, exploration.to_code(body.code), limit)
        if body.where is not None:
            conditions = [Condition(each.latent, each.allowed(exploration.has_codes)) for each in body.where]
            return partial(exploration.find_matching, conditions, limit)
        if body.file is not None:
            return partial(exploration.find_files, body.file, limit)
        if body.index is not None:
            return partial(exploration.find_index, body.index)
        if body.latent is None or body.value is None:
            raise ValueError("a search must have code, where, file, index, or latent and value")
        return partial(exploration.find_sharing, body.latent, body.value, limit)

    async def rename(self, request: Request) -> Response:
        body = await read_request(request, RenameRequest)
        names = self.exploration.names
        return JSONResponse(await self._run_in_thread(lambda: names.rename(body.latent, body.value, body.name)))

    async def _run_in_thread(self, function: Callable[[], Result], limiter: CapacityLimiter | None = None) -> Result:
        return await to_thread.run_sync(function, limiter=limiter or self._batch_limiter)


async def _serve_html(request: Request, *, html: str) -> Response:
    return Response(html, media_type="text/html")


async def _serve_asset(request: Request, *, name: str) -> Response:
    return Response((files(__package__) / "page" / name).read_bytes(), media_type=MEDIA_TYPES[name.rpartition(".")[2]])


def _raw_response(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


async def _answer_bad_request(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _answer_file_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    return JSONResponse({"error": f"{error.filename}: {error.strerror}"}, 500)


async def _answer_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # the client is gone, nobody reads it


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request, or raise HTTP 413 as soon as it exceeds ``limit`` bytes."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limit:
        raise HTTPException(413, f"at most {limit:,} bytes, got {int(announced):,}")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise HTTPException(413, f"at most {limit:,} bytes, got more")
        parts.append(part)
    return b"".join(parts)


async def read_request(request: Request, kind: type[Body]) -> Body:
    """Return the JSON object in the body of a request; NaN and infinity are not allowed."""
    content = await read_body(request, MAX_JSON_BYTES)
    try:
        body = decode_json(content)
    except ValueError:
        raise ValueError("the body must be JSON, without NaN or infinity") from None
    return parse(body, kind, "body")


def parse_rows(query: str) -> list[int]:
    """Return row numbers from a query such as ``"3,17,204"``."""
    parts = query.split(",")
    if not 1 <= len(parts) <= MAX_PICTURES or not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"rows must be 1 to {MAX_PICTURES} integers separated by commas, got {shortened(query)}")
    if any(len(part) > MAX_ROW_DIGITS for part in parts):
        raise ValueError(f"rows must have at most {MAX_ROW_DIGITS} digits each")
    return [int(part) for part in parts]


class Guard:
    """ASGI middleware that refuses foreign requests and adds strict security headers to every response.

    Args:
        app: The application.
        has_frames: Whether its page shows others of its pages in frames. No other website may frame any of them.
    """

    def __init__(self, app: ASGIApp, has_frames: bool = False):
        self.app = app
        self.headers = HEADERS | FRAME_HEADERS if has_frames else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan events pass; there are no websockets
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        reason = refusal_reason(Headers(scope=scope), scope["path"])
        if reason is None:
            await self.app(scope, receive, send_guarded)
        else:
            await JSONResponse({"error": reason}, 403)(scope, receive, send_guarded)


def refusal_reason(headers: Headers, path: str) -> str | None:
    """Return why a request is refused, or ``None`` if it is admitted."""
    host = headers.get("host", "")
    if host_name(host) not in HOSTS:
        return f"this server accepts requests to {' and '.join(HOSTS)} only, got the host {host[:60]!r}"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return f"this server accepts requests from its own page only, got the origin {origin[:60]!r}"
    # Any website may link to the page; only the page itself may request anything else.
    allowed_sites = ("same-origin", "none", "same-site", "cross-site") if path == "/" else ("same-origin", "none")
    if headers.get("sec-fetch-site", "none") not in allowed_sites:
        return "this server accepts requests from its own page only"
    return None


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without the port."""
    name, _, port = host.rpartition(":")
    return name.lower() if name and port.isdecimal() else host.lower()
