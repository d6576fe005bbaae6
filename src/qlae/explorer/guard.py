"""Admit only requests from the explorer's own page, on this machine.

Any website that a user visits can make the browser send requests to a server on the same machine. Two checks keep such
requests out. The ``Host`` header must name this machine, which defeats DNS rebinding (a foreign name that resolves to
127.0.0.1). And the headers in which the browser states where a request comes from, ``Origin`` and ``Sec-Fetch-Site``,
must name this page.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
