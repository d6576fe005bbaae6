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
import re
from collections.abc import Callable
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
from .exploration import Condition, Exploration, Matches, Number, find_files, find_matching, find_nearest
from .page import ICON, PAIR_SCRIPT, PAIR_STYLE, SCRIPTS, STYLE, page_html, pair_html

Result = TypeVar("Result")
Body = TypeVar("Body")

NUM_MATCHES = 48  # returned by a search without a limit
MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
MAX_JSON_BYTES = 2**20
MAX_PICTURES = 128  # decoded or shown per request
MAX_CONDITIONS = 64  # of a search
ROWS = re.compile(rf"[0-9]{{1,9}}(,[0-9]{{1,9}}){{0,{MAX_PICTURES - 1}}}")
MAX_TEXT = 200  # characters of a file name to search for
OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]+)?", re.IGNORECASE)
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
class SearchRequest:
    """Search by exactly one of a code, conditions, part of a file name, and an index in the data set."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PICTURES)] = NUM_MATCHES
    code: list[Number] | None = None
    where: Annotated[list[Condition], msgspec.Meta(min_length=1, max_length=MAX_CONDITIONS)] | None = None
    file: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] | None = None
    index: int | None = None


def build_app(exploration: Exploration, beside: Exploration | None = None) -> Starlette:
    """Return the web application that serves the page and the API of one run, or of two side by side."""
    if beside is None:
        routes = Api(exploration).routes()
    else:  # a page with two frames, in which the pages of the runs follow each other
        names = [each.run.path.resolve().name for each in (exploration, beside)]
        routes = [
            *_page_routes(pair_html(*names), STYLE, ICON, PAIR_STYLE, PAIR_SCRIPT),
            Mount("/a", routes=Api(exploration).routes()),
            Mount("/b", routes=Api(beside).routes()),
        ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, has_frames=beside is not None)],
        exception_handlers=dict.fromkeys((ValueError, OSError, HTTPException, ClientDisconnect), _answer_error),
    )


def _page_routes(html: str, *assets: str) -> list[BaseRoute]:
    """Return the routes of a page and of the files that it loads."""
    contents = {name: (files(__package__) / "page" / name).read_bytes() for name in assets}
    media_types = {name: MEDIA_TYPES[name.rpartition(".")[2]] for name in assets}

    async def serve(request: Request, name: str) -> Response:
        return Response(contents[name], media_type=media_types[name])

    async def serve_page(request: Request) -> Response:
        return Response(html, media_type="text/html")

    routes = [Route(f"/{name}", partial(serve, name=name), methods=["GET"]) for name in assets]
    return [Route("/", serve_page, methods=["GET"]), *routes]


async def _answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"{error.filename}: {error.strerror}"}, 500)
    return JSONResponse({"error": str(error)}, 400)  # a client that has disconnected does not read it


class Api:
    """The page of a run and its request handlers.

    Single pictures are decoded in a separate thread, so that moving a latent never waits for strips, and so are
    files, which may be large.
    """

    def __init__(self, exploration: Exploration):
        self.exploration = exploration
        self._single_limiter = CapacityLimiter(1)
        self._batch_limiter = CapacityLimiter(1)
        self._file_limiter = CapacityLimiter(1)

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the page and of the API."""
        return [
            *_page_routes(page_html(), STYLE, ICON, *SCRIPTS),
            Route("/api/run", self.describe, methods=["GET"]),
            Route("/api/samples", self.samples, methods=["GET"]),
            Route("/api/images", self.images, methods=["GET"]),
            Route("/api/original/{row:int}", self.original, methods=["GET"]),
            Route("/api/decode", self.decode, methods=["POST"]),
            Route("/api/encode", self.encode, methods=["POST"]),
            Route("/api/search", self.search, methods=["POST"]),
            Route("/api/names", self.rename, methods=["POST"]),
        ]

    async def describe(self, request: Request) -> Response:
        return JSONResponse(self.exploration.describe())

    async def samples(self, request: Request) -> Response:
        return JSONResponse({"samples": [self.exploration.sample(row) for row in read_rows(request)]})

    async def original(self, request: Request) -> Response:
        row = request.path_params["row"]
        content, media_type = await self._run_in_thread(lambda: self.exploration.original(row), self._file_limiter)
        return Response(content, media_type=media_type)

    async def images(self, request: Request) -> Response:
        rows = read_rows(request)
        pictures = await self._run_in_thread(lambda: self.exploration.pictures(rows))
        return Response(pictures.tobytes(), media_type="application/octet-stream")

    async def decode(self, request: Request) -> Response:
        body = await read_request(request, DecodeRequest)
        codes = np.stack([self.exploration.to_code(code) for code in body.codes])
        limiter = self._single_limiter if len(codes) == 1 else self._batch_limiter
        pictures = await self._run_in_thread(lambda: self.exploration.decode(codes), limiter)
        return Response(pictures.tobytes(), media_type="application/octet-stream")

    async def encode(self, request: Request) -> Response:
        content = await read_body(request, self.exploration.view.max_upload_bytes)
        picture, code, note = await self._run_in_thread(lambda: self.exploration.encode(content))
        return JSONResponse({"code": code, "picture": base64.b64encode(picture.tobytes()).decode(), "note": note})

    async def search(self, request: Request) -> Response:
        body = await read_request(request, SearchRequest)
        matches = await self._run_in_thread(lambda: self._find(body))
        return JSONResponse(matches._asdict())

    def _find(self, body: SearchRequest) -> Matches:
        exploration, limit = self.exploration, body.limit
        if body.code is not None:
            return find_nearest(exploration.codes, exploration.to_code(body.code), exploration.controls, limit)
        if body.where is not None:
            for condition in body.where:
                self._require_valid(condition)
            return find_matching(exploration.codes, body.where, limit)
        if body.file is not None:
            if exploration.file_names is None:
                raise ValueError(f"the {exploration.model.observations.traits.many} of this run have no file names")
            names = [exploration.file_names[index] for index in exploration.indices.tolist()]
            return find_files(names, body.file, limit)
        if body.index is None:
            raise ValueError("a search must have code, where, file or index")
        rows = [row for row, index in enumerate(exploration.indices.tolist()) if index == body.index][:1]
        return Matches(rows, [0.0] * len(rows), len(rows))

    def _require_valid(self, condition: Condition) -> None:
        """Raise a ``ValueError`` unless the model can decode the values of a condition."""
        has_codes = self.exploration.has_codes
        ends = [end for end in (condition.low, condition.high) if end is not None]
        values = condition.values or [] if has_codes else ends
        if len(values) < (1 if has_codes else 2):
            what = "values" if has_codes else "low and high"
            raise ValueError(f"a condition on z{condition.latent} must have {what}")
        for value in values:
            self.exploration.require_value(condition.latent, value)

    async def rename(self, request: Request) -> Response:
        body = await read_request(request, RenameRequest)
        names = self.exploration.names
        return JSONResponse(await self._run_in_thread(lambda: names.rename(body.latent, body.value, body.name)))

    async def _run_in_thread(self, function: Callable[[], Result], limiter: CapacityLimiter | None = None) -> Result:
        return await to_thread.run_sync(function, limiter=limiter or self._batch_limiter)


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request, or raise HTTP 413 as soon as it exceeds ``limit`` bytes."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limit:
        raise HTTPException(413, f"at most {limit:,} bytes, got {int(announced):,}")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise HTTPException(413, f"at most {limit:,} bytes, got more")
    return bytes(body)


async def read_request(request: Request, kind: type[Body]) -> Body:
    """Return the JSON object in the body of a request."""
    return parse(decode_json(await read_body(request, MAX_JSON_BYTES)), kind, "body")


def read_rows(request: Request) -> list[int]:
    """Return the row numbers in the query of a request, such as ``?rows=3,17,204``."""
    query = request.query_params.get("rows", "")
    if not ROWS.fullmatch(query):
        raise ValueError(f"rows must be 1 to {MAX_PICTURES} integers separated by commas, got {shortened(query)}")
    return [int(part) for part in query.split(",")]


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
    if not OWN_HOST.fullmatch(host):
        return f"this server accepts requests to 127.0.0.1 and localhost only, got the host {host[:60]!r}"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return f"this server accepts requests from its own page only, got the origin {origin[:60]!r}"
    # Any website may link to the page; only the page itself may request anything else.
    allowed_sites = ("same-origin", "none", "same-site", "cross-site") if path == "/" else ("same-origin", "none")
    if headers.get("sec-fetch-site", "none") not in allowed_sites:
        return "this server accepts requests from its own page only"
    return None
