"""`regretbook live`: the built book on this machine, with a form on every page that runs it.

Only the loopback address is served. The address carries a token that nobody else knows; a request
with another Host or from another Origin is refused, so that no other site can speak through the
reader's browser. No path of a request reaches the file system: files are looked up among those of
the built book, and pages by their name.
"""

import asyncio
import contextlib
import functools
import json
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route

from ci import contents, forms, quick, runs
from ci.contents import Page
from ci.jobs import Job, Queue
from ci.parameters import PROFILES
from ci.project import shown
from ci.site import site_of
from lib import toc
from lib.errors import BookError
from lib.paths import Project

EVERY = 0.3  # seconds between two looks at the jobs
OWN = {name: Path(__file__).with_name(name) for name in ("live.js", "live.css")}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Referrer-Policy": "same-origin",  # the address, which has the token, is told to nobody
    "X-Content-Type-Options": "nosniff",
}


def serve(project: Project, profile: str, port: int = 0, browser: bool = False) -> int:
    """Serve the built book of a profile until Ctrl-C, and leave no process behind."""
    site = site_of(project, profile)
    if not (site.html / "index.html").is_file():
        other = "" if profile == "book" else f" PROFILE={profile}"
        raise BookError(f"there is no built book to serve yet; run `make book{other}` first")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise BookError(f"port {port} cannot be used: {error.strerror}") from None
        listening.listen()  # whoever reads the address may come at once
        token, port = secrets.token_urlsafe(16), listening.getsockname()[1]
        address = f"http://127.0.0.1:{port}/{token}/"
        print(f"{address} shows {shown(site.html)} (Ctrl-C ends)", flush=True)
        if browser:
            threading.Timer(1, webbrowser.open, [address]).start()
        app = application(project, profile, token, lambda: server.should_exit)
        config = uvicorn.Config(
            Guard(app, token, port),
            access_log=False,
            log_level="warning",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,  # event streams never end by themselves
            ws="none",
        )
        server = uvicorn.Server(config)
        with contextlib.suppress(KeyboardInterrupt):  # which is how it ends
            server.run(sockets=[listening])
    return 0


class Guard:
    """Refuse whatever does not come from a page of this very server, before anything reads it."""

    def __init__(self, app, token: str, port: int):
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope, receive, send) -> None:
        refusal = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (refusal or self.app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        origin = request.headers.get("origin")
        if request.headers.get("host") not in self.hosts:
            return PlainTextResponse("This book is served to this machine alone.", 421)
        # A browser sends the Origin of every POST; without one it is no page that asks.
        if origin not in self.origins and (origin is not None or request.method != "GET"):
            return PlainTextResponse("Requests from other sites are refused.", 403)
        token = request.url.path.split("/")[1]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse("The address lacks its token; see the terminal.", 404)
        return None


def application(
    project: Project, profile: str, token: str, ending: Callable[[], bool]
) -> Starlette:
    """Return the routes of a book, all below its token; streams close when it is `ending`."""
    html = site_of(project, profile).html
    entries = {entry.file: entry for entry in toc.entries(project)}
    queue, worker = Queue(project), quick.Worker(project)

    def page_of(file: str) -> Page | None:
        """Return an executable page as it reads now, by the file that the contents list."""
        return contents.read_page(project, entries[file]) if file in entries else None

    def named(name: str) -> Page:
        for file, entry in entries.items():
            if entry.name == name and (page := page_of(file)):
                return page
        raise BookError(f"there is no page {name!r} with parameters")

    def job_of(id: str) -> Job:
        if id not in queue.jobs:
            raise BookError(f"there is no job {id!r}")
        return queue.jobs[id]

    async def file(request: Request) -> Response:
        name = request.path_params["name"] or "index.html"
        path = files(html, html.stat().st_mtime_ns).get(name)
        if path is None:
            return PlainTextResponse("There is no such page.", 404, headers=HEADERS)
        if path.suffix != ".html" or name.startswith("claims/"):
            return FileResponse(path, headers=HEADERS)
        data = {"base": f"/{token}/"}
        if page := page_of(name.removesuffix(".html")):
            data["form"] = forms.form(project, page, profile, measured(project, page))
            if page.page == toc.INDEX:
                data["quick"] = quick.declared(project, page)
        text = path.read_text(encoding="utf-8")
        return HTMLResponse(text.replace("</head>", head(data) + "</head>", 1), headers=HEADERS)

    async def own(request: Request) -> Response:
        path = OWN.get(request.path_params["name"])
        return FileResponse(path, headers=HEADERS) if path else Response(status_code=404)

    async def check(request: Request) -> Response:
        asked = await request.json()
        _, errors = forms.checked(named(asked["page"]), asked["values"])
        return JSONResponse({"errors": errors})

    async def start(request: Request) -> Response:
        asked = await request.json()
        page = named(asked["page"])
        values, errors = forms.checked(page, asked["values"])
        kind, chosen = asked["kind"], asked["profile"]
        if kind not in ("run", "plan") or chosen not in PROFILES:
            raise BookError(f"there is no {kind!r} in profile {chosen!r}")
        if errors:
            return JSONResponse({"errors": errors}, 422)
        return JSONResponse({"id": queue.add(page, kind, chosen, values).id})

    async def cancel(request: Request) -> Response:
        queue.cancel(job_of((await request.json())["id"]))
        return JSONResponse({})

    async def draw(request: Request) -> Response:
        asked = await request.json()
        return JSONResponse(await worker.draw(named(asked["page"]), asked["values"]))

    async def events(request: Request) -> Response:
        async def changes() -> AsyncIterator[str]:
            last = None
            while not ending():
                now = json.dumps(queue.shown())
                if now != last:
                    yield f"data: {now}\n\n"
                last = now
                await asyncio.sleep(EVERY)

        return StreamingResponse(changes(), media_type="text/event-stream", headers=HEADERS)

    async def result(request: Request) -> Response:
        find = queue.figure if request.path_params["kind"] == "figure" else queue.file
        path = find(job_of(request.path_params["id"]), request.path_params["name"])
        if path is None or not path.is_file():
            return PlainTextResponse("There is no such file.", 404, headers=HEADERS)
        return FileResponse(path, headers=HEADERS)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        working = asyncio.create_task(queue.work())
        yield
        working.cancel()
        await asyncio.gather(working, worker.end(), return_exceptions=True)

    def refused(request: Request, error: Exception) -> Response:
        sentence = str(error) if isinstance(error, BookError) else "the request was not understood"
        return JSONResponse({"error": sentence}, 400, headers=HEADERS)

    routes = [
        Route("/live/own/{name}", own),
        Route("/live/check", check, methods=["POST"]),
        Route("/live/start", start, methods=["POST"]),
        Route("/live/cancel", cancel, methods=["POST"]),
        Route("/live/quick", draw, methods=["POST"]),
        Route("/live/events", events),
        Route("/live/{kind}/{id}/{name:path}", result),
        Route("/{name:path}", file),
    ]
    handlers = {error: refused for error in (BookError, KeyError, TypeError, ValueError)}
    front = Route(f"/{token}", lambda request: RedirectResponse(f"/{token}/"))
    return Starlette(
        routes=[front, Mount(f"/{token}", routes=routes)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )


@functools.lru_cache(maxsize=1)
def files(html: Path, modified: int) -> dict[str, Path]:
    """Return the files of the built book by address; a new book is a new folder."""
    found = (path for path in html.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(html).as_posix(): path for path in found}


def measured(project: Project, page: Page) -> dict[str, float]:
    """Return the seconds that the last run of a page took here, by profile."""
    found = {profile: runs.last(project, page, profile) for profile in PROFILES}
    return {profile: run.info.seconds for profile, run in found.items() if run}


def head(data: dict) -> str:
    """Return what a page needs more than the published one: its data, a style and a script."""
    base = f"{data['base']}live/own"
    return (
        f'<link rel="stylesheet" href="{base}/live.css">{forms.script(data, id="rb-live")}'
        f'<script src="{base}/live.js" defer></script>'
    )
