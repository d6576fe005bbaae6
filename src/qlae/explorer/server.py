"""The explorer's server: its page and an API for one run, or for two. Uploads are never stored.

Observations are sent as raw bytes, one after another (see ``View.to_page``): on one machine that is faster than
compressing and decompressing them.
"""

import base64
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from . import bodies
from .exploration import Exploration
from .guard import Guard
from .page import ICON, PAIR_SCRIPT, PAIR_STYLE, SCRIPTS, STYLE, page_html, pair_html
from .search import Matches

Handler = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")

NUM_MATCHES = 48  # returned by a search without a limit
MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


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


class Api:
    """The request handlers.

    Single pictures are decoded in a thread of their own, so that moving a latent never waits for strips, and so are
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
        rows = bodies.parse_rows(request.query_params.get("rows", ""))
        return JSONResponse({"samples": [self.exploration.sample(row) for row in rows]})

    async def original(self, request: Request) -> Response:
        row = request.path_params["row"]
        content, media_type = await self._run_in_thread(lambda: self.exploration.original(row), self._file_limiter)
        return Response(content, media_type=media_type)

    async def images(self, request: Request) -> Response:
        rows = bodies.parse_rows(request.query_params.get("rows", ""))
        pictures = await self._run_in_thread(lambda: self.exploration.pictures(rows))
        return _raw_response(pictures.tobytes())

    async def decode(self, request: Request) -> Response:
        codes = bodies.read_codes(await bodies.read_object(request), self.exploration)
        limiter = self._single_limiter if len(codes) == 1 else self._batch_limiter
        pictures = await self._run_in_thread(lambda: self.exploration.decode(codes), limiter)
        return _raw_response(pictures.tobytes())

    async def encode(self, request: Request) -> Response:
        content = await bodies.read_body(request, self.exploration.view.max_upload_bytes)
        picture, code, note = await self._run_in_thread(lambda: self.exploration.encode(content))
        return JSONResponse({"code": code, "picture": base64.b64encode(picture.tobytes()).decode(), "note": note})

    async def search(self, request: Request) -> Response:
        body = await bodies.read_object(request)
        limit = bodies.read_count(body, "limit", NUM_MATCHES)
        find = self._read_search(body, limit)
        return JSONResponse((await self._run_in_thread(find))._asdict())

    def _read_search(self, body: dict[str, Any], limit: int) -> Callable[[], Matches]:
        """Return the search that a body asks for."""
        exploration = self.exploration
        if "code" in body:
            return partial(exploration.find_nearest, bodies.read_code(body, exploration), limit)
        if "where" in body:
            return partial(exploration.find_matching, bodies.read_conditions(body, exploration), limit)
        if "file" in body:
            return partial(exploration.find_files, bodies.read_text(body, "file", bodies.MAX_TEXT), limit)
        if "index" in body:
            return partial(exploration.find_index, bodies.read_integer(body, "index"))
        latent, value = bodies.read_integer(body, "latent"), bodies.read_number(body, "value")
        return partial(exploration.find_sharing, latent, value, limit)

    async def rename(self, request: Request) -> Response:
        body = await bodies.read_object(request)
        latent, name = bodies.read_integer(body, "latent"), bodies.read_text(body, "name")
        value = None if body.get("value") is None else bodies.read_integer(body, "value")
        return JSONResponse(await self._run_in_thread(lambda: self.exploration.names.rename(latent, value, name)))

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
