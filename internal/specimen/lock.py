# Stores documents under a password read from standard input:
#   python3 -c … DIR IN OUT FILTER [IN OUT FILTER]…
# DIR is for the profile of a LibreOffice of its own.
import os, subprocess, sys, time
import uno
from com.sun.star.beans import NamedValue, PropertyValue

home, jobs = sys.argv[1], sys.argv[2:]
password = sys.stdin.readline().rstrip("\n")
pipe = "lock%d" % os.getpid()
office = subprocess.Popen(["soffice", "-env:UserInstallation=file://" + home + "/profile", "--headless", "--norestore", "--accept=pipe,name=" + pipe + ";urp;"])


def prop(key, value):
    p = PropertyValue()
    p.Name, p.Value = key, value
    return p


def named(key, value):
    n = NamedValue()
    n.Name, n.Value = key, value
    return n


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
try:
    for source, target, name in zip(jobs[::3], jobs[1::3], jobs[2::3]):
        if "2007" in name:
            # The filters of Office Open XML do not look at Password.
            how = prop("EncryptionData", uno.Any("[]com.sun.star.beans.NamedValue", (named("CryptoType", "Standard"), named("OOXPassword", password))))
        else:
            how = prop("Password", password)
        document = desktop.loadComponentFromURL("file://" + source, "_blank", 0, (prop("Hidden", True),))
        document.storeToURL("file://" + target, (prop("FilterName", name), how))
        document.close(True)
finally:
    try:
        desktop.terminate()
    except Exception:
        pass
    office.wait()
