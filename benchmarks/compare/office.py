"""Keeps a bare LibreOffice: reads a line of JSON for each document and answers with one.

This is the least that a conversion through a warm LibreOffice takes: one process,
nothing checked, nothing limited. The filter has the settings of Filewright, so that
both do the same work.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import uno
from com.sun.star.beans import PropertyValue

FILTERS = {"docx": "writer_pdf_Export", "pptx": "impress_pdf_Export", "xlsx": "calc_pdf_Export"}


def properties(**values):
    return tuple(PropertyValue(Name=k, Value=v) for k, v in values.items())


def connect(pipe):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    for _ in range(1000):
        try:
            remote = resolver.resolve("uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe)
            return remote.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", remote)
        except Exception:
            time.sleep(0.05)
    raise RuntimeError("LibreOffice does not answer")


def run(desktop, request):
    source = request["input"]
    data = properties(UseTaggedPDF=True, ExportBookmarks=True, EmbedStandardFonts=True, ExportNotes=False)
    for n in range(request.get("copies", 1)):
        document = desktop.loadComponentFromURL(
            uno.systemPathToFileUrl(source), "_blank", 0, properties(Hidden=True, ReadOnly=True))
        document.storeToURL(
            uno.systemPathToFileUrl(os.path.join(request["dir"], "out-%d.pdf" % n)),
            properties(FilterName=FILTERS[source.rsplit(".", 1)[1]],
                       FilterData=uno.Any("[]com.sun.star.beans.PropertyValue", data)))
        document.close(True)


def main():
    with tempfile.TemporaryDirectory() as home:
        pipe = "bench-%d" % os.getpid()
        office = subprocess.Popen(
            ["soffice", "-env:UserInstallation=file://" + home, "--headless", "--norestore",
             "--accept=pipe,name=%s;urp;StarOffice.ComponentContext" % pipe],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        desktop = connect(pipe)
        try:
            for line in sys.stdin:
                request = json.loads(line)
                answer = {}
                try:
                    if request["op"] == "run":
                        run(desktop, request)
                except Exception as e:
                    answer["error"] = repr(e)
                print(json.dumps(answer), flush=True)
        finally:
            try:
                desktop.terminate()
            except Exception:
                pass  # the pipe is closed before the answer comes
            office.wait(20)


main()
