"""Who may ask the explorer: only its own page, on this machine.

A page of another site can send requests to a server on this machine from the browser of whoever visits it. Two checks
keep it out. The host that a request names must be this machine by name or number, so that a foreign name that was made
to point here (DNS rebinding) is refused; and what the browser says about where a request comes from, ``Origin`` and
``Sec-Fetch-Site``, must be this page.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost")
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


class Guard:
    """Refuse what does not come from the explorer's own page, and tell the browser to be as strict."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan; there are no websockets
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        reason = refusal(Headers(scope=scope), scope["path"])
        if reason is None:
            await self.app(scope, receive, guarded)
        else:
            await JSONResponse({"error": reason}, 403)(scope, receive, guarded)


def refusal(headers: Headers, path: str) -> str | None:
    """Why a request is refused, or ``None``."""
    host = headers.get("host", "")
    if host_name(host) not in HOSTS:
        return f"this server answers to {' and '.join(HOSTS)} only, got the host {host[:60]!r}"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return f"this server answers to its own page only, got the origin {origin[:60]!r}"
    # A link to the page may stand anywhere; whatever else it asks for, only the page itself may.
    allowed = ("same-origin", "none", "same-site", "cross-site") if path == "/" else ("same-origin", "none")
    if headers.get("sec-fetch-site", "none") not in allowed:
        return "this server answers to its own page only"
    return None


def host_name(host: str) -> str:
    """The name of a Host header, without its port."""
    name, _, port = host.rpartition(":")
    return name.lower() if name and port.isdecimal() else host.lower()
