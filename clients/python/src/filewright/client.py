"""The client; see the package."""

from __future__ import annotations

import http.client
import io
import json
import math
import mimetypes
import os
import random
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

from .types import CompleteUpload, Do, FileStatus, InitiateUpload, OperationCreated, OperationStatus, SupportedOperation, UploadSession

_LARGEST_PART = 5 << 30
_MOST_PARTS = 10_000


class FilewrightError(Exception):
    """An error response of the server (RFC 9457)."""

    def __init__(self, status: int, problem: dict[str, Any], retry_after: float = 0) -> None:
        super().__init__(problem.get("message") or f"the server answered {status}")
        self.status = status
        """HTTP status."""
        self.slug: str = problem.get("error", "")
        """Stable name, such as unsupported_operation."""
        self.param: str | None = problem.get("param")
        """The member of the request that caused the error."""
        self.allowed: list[str] | None = problem.get("allowed")
        """Valid values of that member, if they are finite."""
        self.request_id: str | None = problem.get("request_id")
        """For the operator of the server."""
        self.retry_after = retry_after
        """Seconds after which to try again; 0 if the server did not say."""

    @property
    def temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (502, 503, 504) or (self.status == 429 and self.slug != "quota_exceeded")


class FileError(Exception):
    """A file of a finished operation failed."""

    def __init__(self, operation: OperationStatus) -> None:
        file = next((f for f in operation["files_data"] if f["status"] == "failed"), None)
        message = file.get("error_message", "") if file else ""
        name = file.get("file_name") if file else None
        super().__init__(f"{name}: {message}" if name else message or "the operation failed")
        self.code: str = file.get("error_code", "") if file else ""
        """Stable name, such as corrupt_input."""
        self.operation = operation


@dataclass
class Upload:
    """A started upload. Stored as JSON, it can be continued by another process with Filewright.send. It
    contains signed URLs, so treat it as a secret.
    """

    file_key: str
    object_name: str
    upload_id: str
    presigned_urls: list[str]
    size: int
    mime_type: str
    etags: list[str]
    """ETags of the sent parts, "" for the others."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Upload:
        return cls(**json.loads(text))

    def part(self, i: int) -> tuple[int, int]:
        """Returns the offset and the length of a part, counted from 0."""
        step = math.ceil(self.size / len(self.presigned_urls))
        offset = min(i * step, self.size)
        return offset, min(step, self.size - offset)

    def sent(self) -> int:
        """Returns the number of bytes in finished parts."""
        return sum(self.part(i)[1] for i, tag in enumerate(self.etags) if tag)


Content = str | os.PathLike[str] | bytes | IO[bytes]
"""The content of an upload: a path, bytes, or a binary file that can seek."""


class _Range(io.RawIOBase):
    """A part of a file that several threads read."""

    def __init__(self, file: IO[bytes], lock: threading.Lock, offset: int, length: int) -> None:
        self._file, self._lock, self._at, self._left = file, lock, offset, length

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        size = self._left if size < 0 else min(size, self._left)
        with self._lock:
            self._file.seek(self._at)
            data = self._file.read(size) if size else b""
        self._at += len(data)
        self._left -= len(data)
        return data


class Filewright:
    """Calls one server with one API key.

    timeout is the time in seconds in which the server must respond to each request, or accept or
    deliver the next bytes. part_size is the size of the parts of an upload in bytes. parallel is the
    number of parts that are sent at the same time. attempts is how often a request is sent if the
    connection breaks or the server is unavailable.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout: float = 90,
        part_size: int = 16 << 20,
        parallel: int = 4,
        attempts: int = 5,
        opener: urllib.request.OpenerDirector | None = None,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._key = key
        self._timeout = timeout
        self._part_size = min(part_size, _LARGEST_PART)
        self._parallel = parallel
        self._attempts = attempts
        self._opener = opener or urllib.request.build_opener()

    def upload(
        self,
        content: Content,
        *,
        name: str | None = None,
        mime_type: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Uploads a file and returns its file key.

        name is its name with the extension, by default that of the path. progress is called with the
        sent and all bytes after each finished part.
        """
        if isinstance(content, str | os.PathLike):
            with open(content, "rb") as file:
                return self.upload(file, name=name or Path(content).name, mime_type=mime_type, progress=progress)
        file = io.BytesIO(content) if isinstance(content, bytes) else content
        if not name:
            raise ValueError("an upload needs the name of the file, with its extension")
        upload = self.begin(name, file.seek(0, os.SEEK_END), mime_type)
        self.send(upload, file, progress=progress)
        return upload.file_key

    def begin(self, name: str, size: int, mime_type: str | None = None) -> Upload:
        """Starts an upload of size bytes."""
        mime_type = mime_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
        part_size = self._part_size
        while math.ceil(size / part_size) > _MOST_PARTS:
            part_size *= 2
        body: InitiateUpload = {"file_name": name, "size": size, "mime_type": mime_type, "parts": max(1, math.ceil(size / part_size))}
        session = cast(UploadSession, self._json("POST", "/api/v1/initiate-upload", body, repeat=True))
        urls = session["presigned_urls"]
        return Upload(session["file_key"], session["object_name"], session["upload_id"], urls, size, mime_type, [""] * len(urls))

    def send(self, upload: Upload, content: Content, *, progress: Callable[[int, int], None] | None = None) -> None:
        """Sends the missing parts of an upload, several at the same time, and completes it.

        It updates upload.etags, so the upload can be continued after an error.
        """
        if isinstance(content, str | os.PathLike):
            with open(content, "rb") as file:
                return self.send(upload, file, progress=progress)
        file = io.BytesIO(content) if isinstance(content, bytes) else content
        if file.seek(0, os.SEEK_END) != upload.size:
            raise ValueError(f"the upload has {upload.size} bytes, the content has another size")
        reading, reporting, failed = threading.Lock(), threading.Lock(), threading.Event()

        def put(i: int) -> None:
            if failed.is_set():
                return
            offset, length = upload.part(i)
            try:
                headers = {"Content-Type": upload.mime_type, "Content-Length": str(length)}
                with self._send("PUT", upload.presigned_urls[i], lambda: _Range(file, reading, offset, length), headers, anonymous=True) as response:
                    response.read()
                    etag = (response.headers.get("ETag") or "").strip('"')
            except BaseException:
                failed.set()
                raise
            with reporting:
                upload.etags[i] = etag
                if progress:
                    progress(upload.sent(), upload.size)

        missing = [i for i, tag in enumerate(upload.etags) if not tag]
        with ThreadPoolExecutor(max(1, min(self._parallel, len(missing)))) as pool:
            for result in [pool.submit(put, i) for i in missing]:
                result.result()
        body: CompleteUpload = {
            "file_key": upload.file_key,
            "object_name": upload.object_name,
            "upload_id": upload.upload_id,
            "parts": [{"part_number": i + 1, "etag": tag} for i, tag in enumerate(upload.etags)],
        }
        self._json("POST", "/api/v1/complete-upload", body, repeat=True)

    def start(self, request: Do, *, idempotency_key: str | None = None) -> str:
        """Starts an operation and returns its id. A repetition with the same key returns the same operation."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        created = cast(OperationCreated, self._json("POST", "/api/v1/do", request, headers=headers, repeat=True))
        return created["main_task_id"]

    def status(self, operation_id: str) -> OperationStatus:
        """Returns the state of an operation."""
        return cast(OperationStatus, self._json("GET", "/api/v1/status/" + urllib.parse.quote(operation_id, safe="")))

    def wait(
        self, operation_id: str, *, timeout: float | None = None, progress: Callable[[OperationStatus], None] | None = None
    ) -> OperationStatus:
        """Waits until an operation is completed or failed, and returns its last state.

        progress is called with each state. After timeout seconds, wait raises TimeoutError; the
        operation continues.
        """
        path = "/api/v1/status/" + urllib.parse.quote(operation_id, safe="")
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 30.0 if end is None else min(30.0, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"the operation {operation_id} is not finished after {timeout} seconds")
            operation = cast(OperationStatus, self._json("GET", f"{path}?wait={math.ceil(left)}s"))
            if progress:
                progress(operation)
            if operation["operation_status"] in ("completed", "failed"):
                return operation

    def run(
        self, request: Do, *, timeout: float | None = None, progress: Callable[[OperationStatus], None] | None = None
    ) -> OperationStatus:
        """Starts an operation and waits for it. It raises FileError if a file failed."""
        operation = self.wait(self.start(request), timeout=timeout, progress=progress)
        if operation["operation_status"] == "failed" or any(f["status"] == "failed" for f in operation["files_data"]):
            raise FileError(operation)
        return operation

    def download(self, file: FileStatus | str, to: str | os.PathLike[str] | IO[bytes] | None = None, *, overwrite: bool = False) -> bytes:
        """Downloads a result: to a path, into a binary file, or returns its bytes if to is None.

        A download continues after a broken connection. A file at a path appears only when it is
        complete; an existing file is replaced only with overwrite.
        """
        link = file if isinstance(file, str) else file.get("download_link", "")
        if not link:
            raise ValueError("the file has no result to download")
        if not link.startswith(("http:", "https:")):
            link = self._base + (link if link.startswith("/") else "/v1/download/" + link)
        if to is None:
            memory = io.BytesIO()
            self._copy(link, memory)
            return memory.getvalue()
        if not isinstance(to, str | os.PathLike):
            self._copy(link, to)
            return b""
        path = Path(to)
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists")
        handle, temporary = tempfile.mkstemp(prefix=".download-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as target:
                self._copy(link, target)
            os.chmod(temporary, 0o644)
            if overwrite:
                os.replace(temporary, path)
            else:
                os.link(temporary, path)  # fails if somebody made the file in the meantime
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
        return b""

    def _copy(self, url: str, target: IO[bytes]) -> None:
        base, at = urllib.parse.urlsplit(self._base), urllib.parse.urlsplit(url)
        foreign = (base.scheme, base.netloc) != (at.scheme, at.netloc)  # other hosts do not get the key
        done, etag = 0, ""
        for attempt in range(self._attempts):
            headers = {"Range": f"bytes={done}-", "If-Range": etag} if done else {}
            with self._send("GET", url, None, headers, anonymous=foreign) as response:
                if done and response.status != 206:
                    raise OSError("the file changed while it was downloaded")
                etag = response.headers.get("ETag") or ""
                try:
                    while data := response.read(1 << 20):
                        target.write(data)
                        done += len(data)
                    if response.length in (0, None):
                        return
                except http.client.IncompleteRead as broken:
                    target.write(broken.partial)
                    done += len(broken.partial)
                except (http.client.HTTPException, TimeoutError, ConnectionError):
                    pass
            if attempt + 1 == self._attempts:
                raise ConnectionError("the connection breaks again and again")

    def cancel(self, operation_id: str) -> OperationStatus:
        """Cancels an operation. Finished results remain."""
        return cast(OperationStatus, self._json("DELETE", "/api/v1/status/" + urllib.parse.quote(operation_id, safe="")))

    def delete(self, file_key: str) -> None:
        """Deletes an upload or a result."""
        self._json("DELETE", "/api/v1/files/" + urllib.parse.quote(file_key, safe=""))

    def supported(self, ext: str, action: str | None = None, parameters: dict[str, Any] | None = None) -> SupportedOperation:
        """Asks whether the server supports an action for files with an extension; without an action, which it supports."""
        body = {"ext": ext, "action": action, "parameters": parameters}
        return cast(SupportedOperation, self._json("POST", "/api/v1/supported-operation", body, repeat=True))

    def _json(self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None, repeat: bool = False) -> object:
        headers = dict(headers or {})
        encoded = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            encoded = json.dumps(body).encode()
        with self._send(method, self._base + path, (lambda: encoded) if encoded else None, headers, repeat=repeat) as response:
            return json.load(response)

    def _send(
        self,
        method: str,
        url: str,
        content: Callable[[], io.RawIOBase | bytes] | None,
        headers: dict[str, str],
        *,
        repeat: bool = False,
        anonymous: bool = False,
    ) -> http.client.HTTPResponse:
        if self._key and not anonymous:
            headers = headers | {"Authorization": "Bearer " + self._key}
        delay = 0.2
        attempt = 1
        while True:
            wait = delay * random.uniform(0.5, 1.5)
            request = urllib.request.Request(url, method=method, headers=headers, data=content() if content else None)
            try:
                return self._opener.open(request, timeout=self._timeout)
            except urllib.error.HTTPError as response:
                with response:
                    error = _error(response)
                if attempt >= self._attempts or not error.temporary:
                    raise error from None
                wait = error.retry_after or wait
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError):
                if attempt >= self._attempts or not (repeat or method != "POST"):
                    raise
            time.sleep(wait)
            delay = min(2 * delay, 10)
            attempt += 1


def _error(response: urllib.error.HTTPError) -> FilewrightError:
    try:
        problem = json.loads(response.read(1 << 20))
    except (ValueError, OSError):
        problem = None  # a proxy may answer with another body
    after = response.headers.get("Retry-After") or ""
    fields = cast(dict[str, Any], problem) if isinstance(problem, dict) else {}
    return FilewrightError(response.code, fields, float(after) if after.isdigit() else 0)
