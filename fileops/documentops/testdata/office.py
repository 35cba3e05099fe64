"""Lets LibreOffice open and save documents with passwords, to judge tests.

Reads JSON lines from standard input: {"in": path, "password": text or null,
"out": path, "filter": name, "newPassword": text or null}, and answers each with
{"ok": bool, "detail": text}. The arguments are soffice and a directory for its
profile.
"""

import json
import os
import subprocess
import sys
import time

import uno
from com.sun.star.beans import NamedValue, PropertyValue

program, directory = sys.argv[1:]
pipe = "judge-%d" % os.getpid()
office = subprocess.Popen([
    program, "-env:UserInstallation=file://" + directory, "--headless", "--norestore", "--nologo", "--nodefault",
    "--accept=pipe,name=%s;urp;" % pipe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
local = uno.getComponentContext()
resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
desktop = None
for _ in range(600):
    try:
        remote = resolver.resolve("uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe)
        desktop = remote.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", remote)
        break
    except Exception:
        time.sleep(0.1)


def properties(**values):
    return tuple(PropertyValue(Name=k, Value=v) for k, v in values.items() if v is not None)


def convert(r):
    document = desktop.loadComponentFromURL(
        uno.systemPathToFileUrl(r["in"]), "_blank", 0, properties(Hidden=True, Password=r.get("password")))
    if document is None:
        raise RuntimeError("not loaded")
    try:
        values = properties(FilterName=r["filter"], Password=r.get("newPassword"))
        if r.get("newPassword") and "2007" in r["filter"]:  # these filters take it from here
            data = (NamedValue("CryptoType", "StrongEncryptionDataSpace"), NamedValue("OOXPassword", r["newPassword"]))
            values += (PropertyValue(Name="EncryptionData", Value=uno.Any("[]com.sun.star.beans.NamedValue", data)),)
        document.storeToURL(uno.systemPathToFileUrl(r["out"]), values)
    finally:
        document.close(True)


for line in sys.stdin:
    try:
        convert(json.loads(line))
        print(json.dumps({"ok": True}), flush=True)
    except Exception as e:
        print(json.dumps({"ok": False, "detail": repr(e)}), flush=True)
try:
    desktop.terminate()
except Exception:
    pass
office.wait()
