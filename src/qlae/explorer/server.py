"""The explorer's server: its page, and an API over one run. Nothing that is uploaded is kept.

Pictures travel as raw bytes, red, green and blue, one after another: on one machine that is faster than to pack and
unpack them.
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
from starlette.routing import Route

from . import bodies
from .exploration import Exploration
from .guard import Guard
from .page import ICON, SCRIPTS, STYLE, page_html

Handler = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")

NUM_FOUND = 48
TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def build_app(exploration: Exploration) -> Starlette:
    """The application over one run."""
    api = Api(exploration)
    routes = [
        Route("/", _page, methods=["GET"]),
        *(Route(f"/{name}", partial(_asset, name=name), methods=["GET"]) for name in (STYLE, ICON, *SCRIPTS)),
        Route("/api/run", api.describe, methods=["GET"]),
        Route("/api/sample/{row:int}", api.sample, methods=["GET"]),
        Route("/api/images", api.images, methods=["GET"]),
        Route("/api/decode", api.decode, methods=["POST"]),
        Route("/api/encode", api.encode, methods=["POST"]),
        Route("/api/search", api.search, methods=["POST"]),
        Route("/api/names", api.rename, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard)],
        exception_handlers={
            ValueError: _bad_request,
            OSError: _file_error,
            HTTPException: _http_error,
            ClientDisconnect: _gone,
        },
    )


class Api:
    """The handlers. A single picture comes from a thread of its own: moving a latent never waits for strips."""

    def __init__(self, exploration: Exploration):
        self.exploration = exploration
        self._live = CapacityLimiter(1)
        self._rest = CapacityLimiter(1)

    async def describe(self, request: Request) -> Response:
        return JSONResponse(self.exploration.describe())

    async def sample(self, request: Request) -> Response:
        return JSONResponse(self.exploration.sample(request.path_params["row"]))

    async def images(self, request: Request) -> Response:
        rows = bodies.row_numbers(request.query_params.get("rows", ""))
        pictures = await self._work(lambda: self.exploration.pictures(rows))
        return _raw(pictures.tobytes())

    async def decode(self, request: Request) -> Response:
        codes = bodies.codes(await bodies.read_object(request), self.exploration)
        limiter = self._live if len(codes) == 1 else self._rest
        pictures = await self._work(lambda: self.exploration.decode(codes), limiter)
        return _raw(pictures.tobytes())

    async def encode(self, request: Request) -> Response:
        content = await bodies.read_body(request, bodies.MAX_UPLOAD_BYTES)
        picture, code = await self._work(lambda: self._encoded(content))
        return JSONResponse({"code": code, "picture": base64.b64encode(picture.tobytes()).decode()})

    def _encoded(self, content: bytes) -> tuple[Any, list[float]]:
        try:
            return self.exploration.encode(content)
        except ValueError as error:
            raise ValueError(
                f"this is no picture that can be read (PNG, JPEG, WebP, BMP, GIF or TIFF): {error}"
            ) from None

    async def search(self, request: Request) -> Response:
        body = await bodies.read_object(request)
        limit = bodies.count(body, "limit", NUM_FOUND)
        if "code" in body:
            code = bodies.code(body, self.exploration)
            found = await self._work(lambda: self.exploration.find_nearest(code, limit))
        else:
            latent, value = bodies.whole(body, "latent"), bodies.number(body, "value")
            found = await self._work(lambda: self.exploration.find_sharing(latent, value, limit))
        return JSONResponse(found._asdict())

    async def rename(self, request: Request) -> Response:
        body = await bodies.read_object(request)
        latent, name = bodies.whole(body, "latent"), bodies.text(body, "name")
        value = None if body.get("value") is None else bodies.whole(body, "value")
        return JSONResponse(await self._work(lambda: self.exploration.names.rename(latent, value, name)))

    async def _work(self, function: Callable[[], Result], limiter: CapacityLimiter | None = None) -> Result:
        return await to_thread.run_sync(function, limiter=limiter or self._rest)


async def _page(request: Request) -> Response:
    return Response(page_html(), media_type="text/html")


async def _asset(request: Request, *, name: str) -> Response:
    return Response((files(__package__) / "page" / name).read_bytes(), media_type=TYPES[name.rpartition(".")[2]])


def _raw(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


async def _bad_request(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _file_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    return JSONResponse({"error": f"{error.filename}: {error.strerror}"}, 500)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # nobody is there to read it


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
