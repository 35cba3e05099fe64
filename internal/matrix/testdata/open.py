# Opens a document with the password on standard input and stores it as PDF:
#   python3 -c … DIR IN OUT
# DIR is for the profile of a LibreOffice of its own.
import os, subprocess, sys, time
import uno
from com.sun.star.beans import PropertyValue

home, source, target = sys.argv[1:]
password = sys.stdin.readline().rstrip("\n")
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
message = None
try:
    document = desktop.loadComponentFromURL("file://" + source, "_blank", 0, (prop("Hidden", True), prop("Password", password)))
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
