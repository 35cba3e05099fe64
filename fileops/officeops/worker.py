"""Drives one LibreOffice process over a UNO pipe.

Reads one JSON request per line on standard input and writes JSON lines to
standard output: {"phase": ...} while it works, then {"ok": true} or
{"error": kind, "detail": ...}. The only argument is the name of the pipe.
"""

import json
import os
import sys
import time

import uno
from com.sun.star.beans import PropertyValue

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # left out by python -I
import merge

SERVICES = {
    "text": "com.sun.star.text.TextDocument",
    "sheet": "com.sun.star.sheet.SpreadsheetDocument",
    "slides": "com.sun.star.presentation.PresentationDocument",
}


class Failure(Exception):
    def __init__(self, kind, detail):
        super().__init__(detail)
        self.kind = kind


def say(**message):
    print(json.dumps(message), flush=True)


def properties(values):
    return tuple(PropertyValue(Name=k, Value=v) for k, v in values.items())


def connect(pipe):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext(
        "com.sun.star.bridge.UnoUrlResolver", local)
    url = "uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe
    while True:  # the caller ends us if it takes too long
        try:
            remote = resolver.resolve(url)
            break
        except Exception:
            time.sleep(0.02)
    return (remote.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", remote),
            remote.ServiceManager.createInstanceWithContext("com.sun.star.ucb.SimpleFileAccess", remote))


def load(desktop, files, request):
    path = uno.systemPathToFileUrl(request["in"])
    values = {
        "Hidden": True,
        "UpdateDocMode": 0,  # com.sun.star.document.UpdateDocMode.NO_UPDATE
        "MacroExecutionMode": 0,  # com.sun.star.document.MacroExecMode.NEVER_EXECUTE
    }
    if request.get("inFilter"):
        values["FilterName"] = request["inFilter"]
    if request.get("inOptions"):
        values["FilterOptions"] = request["inOptions"]
    try:
        # Fields and formulas can show the address of the document, so it does not get the one
        # that it has here. A document that comes from a stream cannot be changed, but for the
        # text of a text document: a sheet of our own making, which has neither, is loaded
        # from its file.
        if not request.get("widest"):
            values["InputStream"] = files.openFileRead(path)
            path = request["url"]
        document = desktop.loadComponentFromURL(path, "_blank", 0, properties(values))
    except Exception as e:
        raise Failure("load", repr(e))
    if document is None:
        raise Failure("load", "no document")
    return document


def used(sheet):
    """Returns the last column and row with content, -1, -1 if there is none."""
    cursor = sheet.createCursor()
    cursor.gotoEndOfUsedArea(False)
    a = cursor.RangeAddress
    if a.EndColumn == 0 and a.EndRow == 0 and sheet.getCellByPosition(0, 0).Formula == "":
        return -1, -1
    return a.EndColumn, a.EndRow


def check_size(document, columns, rows):
    for sheet in document.Sheets:
        column, row = used(sheet)
        if column >= columns or row >= rows:
            raise Failure("limit", "%d,%d" % (column + 1, row + 1))


def dress(document, name, widest):
    """Makes a sheet of an imported text file: it has only values.

    Columns become as wide as their content, and at most so wide that it is
    wrapped. The header that shows the name of the sheet is of no use.
    """
    sheet = document.Sheets.getByIndex(0)
    if name:
        sheet.Name = name
    document.StyleFamilies.getByName("PageStyles").getByName(sheet.PageStyle).HeaderIsOn = False
    last, _ = used(sheet)
    columns = sheet.Columns
    for i in range(min(last + 1, 1024)):
        column = columns.getByIndex(i)
        column.OptimalWidth = True
        if column.Width > widest:
            column.Width = widest
            column.IsTextWrapped = True


def chosen(document, sheet):
    """Returns a sheet by its name or its number from 1, the first by default."""
    if not sheet:
        return document.Sheets.getByIndex(0)
    if document.Sheets.hasByName(sheet):
        return document.Sheets.getByName(sheet)
    if sheet.isdecimal() and 1 <= int(sheet) <= document.Sheets.Count:
        return document.Sheets.getByIndex(int(sheet) - 1)
    raise Failure("sheet", "no such sheet")


def fit_width(document):
    """Keeps the columns of a sheet together on one page.

    Only page styles whose scale nobody has changed are touched. A sheet that
    would have to shrink much is turned to landscape.
    """
    styles = document.StyleFamilies.getByName("PageStyles")
    widths = {}
    for sheet in document.Sheets:
        if sheet.IsVisible:
            last, _ = used(sheet)
            areas = sheet.PrintAreas
            width = 0
            if areas:
                for a in areas:
                    width = max(width, sheet.getCellRangeByPosition(
                        a.StartColumn, a.StartRow, a.EndColumn, a.StartRow).Size.Width)
            elif last >= 0:
                width = sheet.getCellRangeByPosition(0, 0, last, 0).Size.Width
            widths[sheet.PageStyle] = max(width, widths.get(sheet.PageStyle, 0))
    for name, width in widths.items():
        style = styles.getByName(name)
        if style.PageScale != 100 or style.ScaleToPages or style.ScaleToPagesX or style.ScaleToPagesY:
            continue
        room = style.Width - style.LeftMargin - style.RightMargin
        if width > room * 1.25 and not style.IsLandscape and style.Height > style.Width:
            style.IsLandscape = True
            style.Width, style.Height = style.Height, style.Width
        style.ScaleToPagesX = 1
        style.ScaleToPagesY = 0


def fit_pictures(document):
    """Shrinks pictures that are wider than the text."""
    styles = document.StyleFamilies.getByName("PageStyles")
    for picture in document.GraphicObjects:
        name = picture.Anchor.PageStyleName or "Standard"
        style = styles.getByName(name)
        room = style.Width - style.LeftMargin - style.RightMargin
        size = picture.Size
        if size.Width > room > 0:
            size.Height = max(1, size.Height * room // size.Width)
            size.Width = room
            picture.Size = size


def add(desktop, files, document, request):
    """Inserts the other documents of a request."""
    def store(d, path):
        d.storeToURL(uno.systemPathToFileUrl(path), properties({"FilterName": "writer8", "Overwrite": True}))

    base = request["scratch"]
    store(document, base + "-1.odt")
    first, defaults = merge.definitions(base + "-1.odt"), merge.default_values(document)
    for number, other in enumerate(request["more"], 2):
        paths = ["%s-%d%s.odt" % (base, number, kind) for kind in ("", "-renamed")]
        opened = load(desktop, files, other)
        try:
            if not opened.supportsService(SERVICES["text"]):
                raise Failure("load", "another kind of document")
            page, roots, values = merge.prepare(opened, number, first, defaults, paths, store)
        finally:
            opened.close(True)
        merge.insert(document, paths[1], number, page, roots, values)


def alive(desktop):
    try:
        desktop.getComponents()
        return True
    except Exception:
        return False


def convert(desktop, files, request):
    document = load(desktop, files, request)
    clean = True
    try:
        if not document.supportsService(SERVICES[request["kind"]]):
            raise Failure("load", "another kind of document")
        if request.get("maxRows"):
            check_size(document, request["maxColumns"], request["maxRows"])
        if request.get("widest"):
            dress(document, request.get("sheetName"), request["widest"])
        if request.get("more"):
            add(desktop, files, document, request)
        if request.get("fitWidth"):
            fit_width(document)
        if request.get("fitPictures"):
            fit_pictures(document)
        if request["kind"] == "sheet":  # a text file gets the sheet that is shown
            sheet = chosen(document, request.get("sheet"))
            if request.get("sheet"):  # the filters take the first
                document.Sheets.moveByName(sheet.Name, 0)
            document.CurrentController.setActiveSheet(document.Sheets.getByIndex(0))
        say(phase="loaded")
        # Relative addresses in the result must not begin at the file either.
        output = files.openFileWrite(uno.systemPathToFileUrl(request["out"]))
        values = {"FilterName": request["filter"], "OutputStream": output, "DocumentBaseURL": request["url"]}
        if request.get("options"):
            values["FilterOptions"] = request["options"]
        arguments = properties(values)
        if request.get("data"):
            data = uno.Any("[]com.sun.star.beans.PropertyValue", properties(request["data"]))
            arguments += (PropertyValue(Name="FilterData", Value=data),)
        try:
            document.storeToURL("private:stream", arguments)
            output.closeOutput()
        except Exception as e:
            raise Failure("store", repr(e))
        say(phase="stored")
    finally:
        try:
            document.close(True)
        except Exception:
            clean = False
    return clean


def main():
    desktop, files = connect(sys.argv[1])
    say(phase="ready")
    for line in sys.stdin:
        try:
            clean = convert(desktop, files, json.loads(line))
            say(ok=True, clean=clean)
        except Exception as e:
            kind = getattr(e, "kind", "internal") if alive(desktop) else "gone"
            say(error=kind, detail=repr(e)[:500])


main()
