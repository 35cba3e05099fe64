# Reads two passwords from standard input, sees that a document does not open with
# the first, opens it with the second and stores it as PDF:
#   python3 -c … DIR IN OUT
# DIR is for the profile of a LibreOffice of its own.
import os, subprocess, sys, time
import uno
from com.sun.star.beans import PropertyValue

home, source, target = sys.argv[1:]
wrong, right = (sys.stdin.readline().rstrip("\n") for _ in range(2))
pipe = "open%d" % os.getpid()
office = subprocess.Popen(["soffice", "-env:UserInstallation=file://" + home + "/profile", "--headless", "--norestore", "--accept=pipe,name=" + pipe + ";urp;"])


def prop(key, value):
    p = PropertyValue()
    p.Name, p.Value = key, value
    return p


local = uno.getComponentContext()
resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
for attempt in range(300):
    try:
        context = resolver.resolve("uno:pipe,name=" + pipe + ";urp;StarOffice.ComponentContext")
        break
    except Exception:
        time.sleep(0.1)
else:
    office.kill()
    sys.exit("LibreOffice did not start")
desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)


def load(password):
    return desktop.loadComponentFromURL("file://" + source, "_blank", 0, (prop("Hidden", True), prop("Password", password)))


def refuses(password):
    try:
        document = load(password)
    except Exception:
        return True
    if document is not None:
        document.close(True)
    return document is None


message = None
try:
    if not refuses(wrong):
        message = "opens with a wrong password"
    document = load(right)
    if document is None:
        message = "not opened"
    else:
        kind = "writer"
        for service, name in (("com.sun.star.sheet.SpreadsheetDocument", "calc"), ("com.sun.star.presentation.PresentationDocument", "impress")):
            if document.supportsService(service):
                kind = name
        document.storeToURL("file://" + target, (prop("FilterName", kind + "_pdf_Export"),))
        document.close(True)
except Exception as e:
    message = "not opened: %s" % e
try:
    desktop.terminate()
except Exception:
    pass
office.wait()
sys.exit(message)
