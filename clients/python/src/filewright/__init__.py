"""A client for a Filewright server. It needs only the standard library of Python 3.11 or later.

    files = Filewright("https://files.example.com", key=os.environ["API_KEY"])
    file_key = files.upload("report.docx")
    operation = files.run({"action": "convert", "file_keys": [file_key], "parameters": {"convert_to": "pdf"}})
    files.download(operation["files_data"][0], "report.pdf")

A client may be used by several threads.
"""

from .client import FileError, Filewright, FilewrightError, Upload
from .webhooks import InvalidSignature, verify_webhook

__all__ = ["FileError", "Filewright", "FilewrightError", "InvalidSignature", "Upload", "verify_webhook"]
