"""Tests against a real server; TestPython in clients_test.go starts it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import io
import json
import os
import queue
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path
from typing import Any

from filewright import FileError, Filewright, FilewrightError, InvalidSignature, Upload, verify_webhook

BASE, KEY = os.environ["BASE_URL"], os.environ["API_KEY"]


class Breaking(urllib.request.BaseHandler):
    """Breaks connections: each request for which breaks returns true."""

    def __init__(self, breaks: Any) -> None:
        self.breaks = breaks

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        if self.breaks(request):
            raise ConnectionResetError("connection lost")
        return request


class TestClient(unittest.TestCase):
    def setUp(self) -> None:
        self.files = Filewright(BASE + "/", KEY)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def test_a_file_of_several_parts(self) -> None:
        content = b"a,b\n" + b"1,2\n" * 700_000
        source = self.dir / "table.csv"
        source.write_bytes(content)
        sent: list[int] = []
        small = Filewright(BASE, KEY, part_size=1 << 20)
        key = small.upload(source, progress=lambda n, total: sent.append(n))
        self.assertEqual((len(sent), sent[-1], sent == sorted(sent)), (3, len(content), True))
        states: list[str] = []
        operation = small.run(
            {"action": "convert", "file_keys": [key], "parameters": {"convert_to": "tsv"}, "notes": {"order": "7"}},
            progress=lambda o: states.append(o["operation_status"]),
        )
        self.assertEqual((states[-1], operation.get("notes")), ("completed", {"order": "7"}))
        file = operation["files_data"][0]
        self.assertEqual(file.get("file_name"), "table.tsv")
        want = content.replace(b",", b"\t")
        self.assertEqual(self.files.download(file), want)
        self.files.download(file, self.dir / "table.tsv")
        self.assertEqual((self.dir / "table.tsv").read_bytes(), want)
        with self.assertRaises(FileExistsError):
            self.files.download(file, self.dir / "table.tsv")
        self.files.download(file, self.dir / "table.tsv", overwrite=True)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["table.csv", "table.tsv"])
        memory = io.BytesIO()
        self.files.download(file["file_key"], memory)
        self.assertEqual(memory.getvalue(), want)
        self.files.delete(file["file_key"])
        with self.assertRaises(FilewrightError):
            self.files.download(file)

    def test_an_upload_continues_after_an_error(self) -> None:
        content = os.urandom(1 << 20).hex().encode()
        puts = 0

        def breaks(request: urllib.request.Request) -> bool:
            nonlocal puts
            puts += request.method == "PUT"
            return request.method == "PUT" and puts > 2

        failing = Filewright(BASE, KEY, part_size=1 << 19, parallel=1, attempts=1, opener=urllib.request.build_opener(Breaking(breaks)))
        upload = failing.begin("data.txt", len(content))
        with self.assertRaises(ConnectionResetError):
            failing.send(upload, content)
        again = Upload.from_json(upload.to_json())
        self.assertEqual(sum(1 for tag in again.etags if tag), 2)
        self.files.send(again, content)
        self.assertEqual(self.files.run({"action": "zip", "file_keys": [again.file_key]})["operation_status"], "completed")

    def test_a_request_is_repeated_after_a_broken_connection(self) -> None:
        calls = 0

        def breaks(request: urllib.request.Request) -> bool:
            nonlocal calls
            calls += 1
            return calls % 2 == 1

        flaky = Filewright(BASE, KEY, opener=urllib.request.build_opener(Breaking(breaks)))
        key = flaky.upload(b"hello", name="a.txt")
        self.assertEqual(flaky.run({"action": "zip", "file_keys": [key]})["operation_status"], "completed")

    def test_a_download_continues(self) -> None:
        key = self.files.upload(b"x" * (3 << 20), name="a.txt")
        ranges: list[str | None] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            """Passes requests on, but breaks the first response in the middle."""

            def do_GET(self) -> None:
                request = urllib.request.Request(BASE + self.path, headers={k: v for k, v in self.headers.items() if k != "Host"})
                ranges.append(self.headers.get("Range"))
                with urllib.request.urlopen(request) as response:
                    self.send_response(response.status)
                    for name in ("Content-Length", "ETag", "Content-Range"):
                        if value := response.headers.get(name):
                            self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(response.read(1_500_000 if len(ranges) == 1 else -1))
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        through = Filewright(f"http://127.0.0.1:{server.server_port}", KEY)
        self.assertEqual(through.download(key), b"x" * (3 << 20))
        self.assertEqual(ranges, [None, "bytes=1500000-"])

    def test_errors(self) -> None:
        key = self.files.upload(b"not a PDF", name="a.pdf")
        with self.assertRaises(FilewrightError) as caught:
            self.files.start({"action": "convert", "file_keys": [key], "parameters": {"convert_to": "nothing"}})  # type: ignore[typeddict-item]
        error = caught.exception
        self.assertEqual((error.status, error.slug, error.param), (400, "unsupported_operation", "parameters.convert_to"))
        self.assertIn("png", error.allowed or [])
        with self.assertRaises(FileError) as failed:
            self.files.run({"action": "compress", "file_keys": [key]})
        self.assertTrue(str(failed.exception).startswith("a.pdf: ") and failed.exception.code)
        with self.assertRaises(FilewrightError) as refused:
            Filewright(BASE, "wrong").status("x")
        self.assertEqual(refused.exception.slug, "unauthorized")
        self.assertIn("split", self.files.supported("pdf").get("available_actions", []))
        with self.assertRaises(ValueError):
            self.files.upload(b"x")

    def test_a_webhook_of_the_server(self) -> None:
        received: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.put((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        body = json.dumps({"url": f"http://127.0.0.1:{server.server_port}/", "events": ["operation.completed"]}).encode()
        hooks = BASE + "/api/v1/admin/accounts/self/webhooks"
        headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(hooks, data=body, headers=headers)) as response:
            hook = json.load(response)
        operation = self.files.run({"action": "zip", "file_keys": [self.files.upload(b"hello", name="a.txt")]})
        while True:  # other tests have operations of the same account
            sent, content = received.get(timeout=60)
            event = verify_webhook(hook["secret"], sent, content)
            if event["payload"]["main_task"]["id"] == operation["main_task_id"]:
                break
        urllib.request.urlopen(urllib.request.Request(f"{hooks}/{hook['id']}", method="DELETE", headers=headers)).close()
        other = "whsec_" + base64.b64encode(os.urandom(32)).decode()
        verify_webhook([other, hook["secret"]], sent, content)
        for secret, changed in ((other, content), (hook["secret"], content + b" ")):
            with self.assertRaises(InvalidSignature):
                verify_webhook(secret, sent, changed)

    def test_old_and_incomplete_webhooks(self) -> None:
        raw = os.urandom(32)
        secret = "whsec_" + base64.b64encode(raw).decode()

        def sign(at: int) -> dict[str, str]:
            mac = base64.b64encode(hmac.digest(raw, f"msg_1.{at}.{{}}".encode(), hashlib.sha256)).decode()
            return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(at), "Webhook-Signature": "v1,AAAA v1," + mac}

        now = int(time.time())
        self.assertEqual(verify_webhook(secret, sign(now), b"{}"), {})
        with self.assertRaisesRegex(InvalidSignature, "too old"):
            verify_webhook(secret, sign(now - 1000), b"{}")
        with self.assertRaisesRegex(InvalidSignature, "missing"):
            verify_webhook(secret, {}, b"{}")


if __name__ == "__main__":
    unittest.main()
