"""Controls one LibreOffice process over a UNO pipe.

It reads one JSON request per line from standard input. It writes JSON lines to
standard output: {"phase": ...} for progress, then {"ok": true} or
{"error": kind, "detail": ...}. The only argument is the name of the pipe.
"""

import json
import os
import re
import sys
import time

import uno
from com.sun.star.beans import PropertyValue

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # python -I omits this directory
import merge

SERVICES = {
    "text": "com.sun.star.text.TextDocument",
    "sheet": "com.sun.star.sheet.SpreadsheetDocument",
    "slides": "com.sun.star.presentation.PresentationDocument",
    "drawing": "com.sun.star.drawing.DrawingDocument",
}

# com.sun.star.document.RedlineDisplayType
REDLINES = {"shown": 2, "accepted": 0, "rejected": 3}


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
    while True:  # the caller stops this process after a timeout
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
    if request.get("password"):
        values["Password"] = request["password"]
    if request.get("inOptions"):
        values["FilterOptions"] = request["inOptions"]
    try:
        # Fields and formulas can show the URL of the document, so LibreOffice reads it from a
        # stream with a neutral URL. Such a document is read-only, except for the text of a text
        # document. An imported text file has no fields or formulas, and dress changes its sheet,
        # so it is loaded from its file.
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
    """Returns the indices of the last column and row with content, or -1, -1 for an empty sheet."""
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
    """Formats the sheet of an imported text file, which contains only values.

    Columns become as wide as their content, but at most widest; longer text is
    wrapped. The page header, which shows the name of the sheet, is removed.
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
    """Returns a sheet by its name or by its number from 1. The default is the first sheet."""
    if not sheet:
        return document.Sheets.getByIndex(0)
    if document.Sheets.hasByName(sheet):
        return document.Sheets.getByName(sheet)
    if sheet.isdecimal() and 1 <= int(sheet) <= document.Sheets.Count:
        return document.Sheets.getByIndex(int(sheet) - 1)
    raise Failure("sheet", "no such sheet")


def iso_dates(document, sheet):
    """Shows dates in ISO 8601 format, because the results are read by programs."""
    formats, locale = document.NumberFormats, uno.createUnoStruct("com.sun.star.lang.Locale")
    locale.Language, locale.Country = "en", "US"
    ranges = sheet.UniqueCellFormatRanges
    for i in range(ranges.Count):
        cells = ranges.getByIndex(i)
        kind = formats.getByKey(cells.NumberFormat).Type
        if not kind & 2:  # com.sun.star.util.NumberFormat.DATE
            continue
        code = 'YYYY-MM-DD"T"HH:MM:SS' if kind & 4 else "YYYY-MM-DD"  # NumberFormat.TIME
        key = formats.queryKey(code, locale, False)
        cells.NumberFormat = formats.addNew(code, locale) if key == -1 else key


def sheet_numbers(document, value):
    """Returns the indices of the sheets that a name, or a list such as "1-3,5,-1", selects."""
    if document.Sheets.hasByName(value):
        return {document.Sheets.getByName(value).RangeAddress.Sheet}
    count, out = document.Sheets.Count, set()
    for part in value.split(","):
        m = re.fullmatch(r"\s*(-?\d{1,5})(?:(-)(-?\d{1,5})?)?\s*", part)
        if not m:
            raise Failure("sheet", "no such sheet")
        first = int(m.group(1))
        last = int(m.group(3) or -1) if m.group(2) else first
        first, last = (n + count + 1 if n < 0 else n for n in (first, last))
        if not 1 <= first <= last <= count:
            raise Failure("sheet", "no such sheet")
        out.update(range(first - 1, last))
    return out


def print_only(document, chosen):
    """Limits printing to the sheets with the indices chosen.

    A sheet without a print area is not printed if another sheet has one. Hiding the
    others is not possible, because the document is read-only.
    """
    printed = {}  # the range of each sheet, with its drawings
    for i in range(document.getRendererCount(document, ())):
        for p in document.getRenderer(i, document, ()):
            if p.Name == "SourceRange":
                a, b = p.Value, printed.setdefault(p.Value.Sheet, p.Value)
                b.StartColumn, b.StartRow = min(a.StartColumn, b.StartColumn), min(a.StartRow, b.StartRow)
                b.EndColumn, b.EndRow = max(a.EndColumn, b.EndColumn), max(a.EndRow, b.EndRow)
    if not chosen & printed.keys():
        raise Failure("empty", "the chosen sheets have no content")
    for i, sheet in enumerate(document.Sheets):
        if i not in chosen:
            sheet.PrintAreas = ()
        elif not sheet.PrintAreas and i in printed:
            sheet.PrintAreas = (printed[i],)


def fit_sheets(document, fit, orientation, chosen):
    """Scales sheets to pages, and sets the orientation of the pages.

    With fit "width", all columns fit on one page. It changes only page styles with the
    default scale. A sheet that would shrink by more than a fifth becomes landscape.
    With "page", a whole sheet fits on one page. LibreOffice shrinks to a tenth at most.
    """
    styles = document.StyleFamilies.getByName("PageStyles")
    widths = {}
    for i, sheet in enumerate(document.Sheets):
        if sheet.IsVisible and (chosen is None or i in chosen):
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
        scaled = style.PageScale != 100 or style.ScaleToPages or style.ScaleToPagesX or style.ScaleToPagesY
        room = style.Width - style.LeftMargin - style.RightMargin
        if orientation:
            turn(style, orientation)
        elif (fit == "page" or fit == "width" and not scaled) and width > room * 1.25 and not style.IsLandscape and style.Height > style.Width:
            turn(style, "landscape")
        if fit == "page":
            style.ScaleToPagesX = style.ScaleToPagesY = 1
        elif fit == "width" and not scaled:
            style.ScaleToPagesX = 1
            style.ScaleToPagesY = 0


def turn(style, orientation):
    """Sets the orientation of a page style."""
    landscape = orientation == "landscape"
    width, height = style.Width, style.Height
    style.IsLandscape = landscape
    if (width > height) != landscape:
        style.Width, style.Height = height, width


def turn_pages(document, orientation):
    """Sets the orientation of all pages of a text document."""
    styles = document.StyleFamilies.getByName("PageStyles")
    for i in range(styles.Count):
        turn(styles.getByIndex(i), orientation)


def choose_pages(document, request):
    """Requests the pages of the result. Returns them in the filter's form."""
    if request["kind"] == "slides":  # the filter counts hidden slides too, but refuses them
        slides = document.DrawPages
        shown = [i for i in range(slides.Count) if request.get("hiddenToo") or slides.getByIndex(i).Visible]
    else:
        shown = range(document.getRendererCount(document, ()))
    say(phase="pages", pages=len(shown))
    pages = json.loads(sys.stdin.readline())
    if not pages:
        raise Failure("pages", "no pages")
    return ",".join(str(shown[i] + 1) for i in pages)


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


def fit_page(document):
    """Gives the first page of a drawing the size of its content."""
    page = document.DrawPages.getByIndex(0)
    shapes = [page.getByIndex(i) for i in range(page.Count)]
    if not shapes:
        return
    left = min(s.Position.X for s in shapes)
    top = min(s.Position.Y for s in shapes)
    width = max(s.Position.X + s.Size.Width for s in shapes) - left
    height = max(s.Position.Y + s.Size.Height for s in shapes) - top
    page.BorderLeft = page.BorderRight = page.BorderTop = page.BorderBottom = 0
    page.Width, page.Height = max(width, 100), max(height, 100)
    for s in shapes:
        position = s.Position
        position.X -= left
        position.Y -= top
        s.Position = position


def add(desktop, files, document, request):
    """Appends the other documents of a merge request to the first document."""
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
                raise Failure("load", "unexpected kind of document")
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


def store(document, files, request, path):
    """Writes a document to a file."""
    output = files.openFileWrite(uno.systemPathToFileUrl(path))
    # Relative URLs in the result must not depend on the real path either.
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


def store_sheets(document, files, request):
    """Writes each sheet with content to its own file. Returns their names."""
    names = [s.Name for s in document.Sheets if used(s) != (-1, -1)]
    if not names:
        raise Failure("empty", "no sheet has content")
    base, ext = os.path.splitext(request["out"])
    for i, name in enumerate(names):
        document.Sheets.moveByName(name, 0)
        document.CurrentController.setActiveSheet(document.Sheets.getByIndex(0))
        iso_dates(document, document.Sheets.getByIndex(0))
        store(document, files, request, "%s-%d%s" % (base, i, ext))
    return names


def convert(desktop, files, request):
    document = load(desktop, files, request)
    clean = True
    names = []  # of the sheets that became files
    left = 0  # sheets with content that the result lacks
    try:
        if not document.supportsService(SERVICES[request["kind"]]):
            raise Failure("load", "unexpected kind of document")
        if request.get("maxRows"):
            check_size(document, request["maxColumns"], request["maxRows"])
        if request.get("widest"):
            dress(document, request.get("sheetName"), request["widest"])
        if request.get("more"):
            add(desktop, files, document, request)
        if request.get("fitTo"):
            sheets = sheet_numbers(document, request["sheets"]) if request.get("sheets") else None
            fit_sheets(document, request["fitTo"], request.get("orientation"), sheets)
            if sheets is not None:
                print_only(document, sheets)
        elif request.get("orientation"):
            turn_pages(document, request["orientation"])
        if request.get("changes"):
            document.RedlineDisplayType = REDLINES[request["changes"]]
        if request.get("indexes"):
            indexes = document.DocumentIndexes
            for i in range(indexes.Count):
                indexes.getByIndex(i).update()
        if request.get("fitPictures"):
            fit_pictures(document)
        if request.get("fitPage"):
            fit_page(document)
        # Text filters write the active sheet, and only PDF has pages to fit to.
        if request["kind"] == "sheet" and not request.get("allSheets") and not request.get("fitTo"):
            sheet = chosen(document, request.get("sheet"))
            if request.get("sheet"):  # the filters convert the first sheet
                document.Sheets.moveByName(sheet.Name, 0)
            document.CurrentController.setActiveSheet(document.Sheets.getByIndex(0))
            if request.get("isoDates"):  # the result has one sheet
                left = sum(used(s) != (-1, -1) for s in document.Sheets) - (used(sheet) != (-1, -1))
                iso_dates(document, document.Sheets.getByIndex(0))
        say(phase="loaded", sheets=left)
        if request.get("choose"):
            request["data"]["PageRange"] = choose_pages(document, request)
        if request.get("allSheets"):
            names = store_sheets(document, files, request)
        else:
            store(document, files, request, request["out"])
        say(phase="stored")
    finally:
        try:
            document.close(True)
        except Exception:
            clean = False
    return clean, names


def main():
    desktop, files = connect(sys.argv[1])
    say(phase="ready")
    for line in sys.stdin:
        try:
            clean, names = convert(desktop, files, json.loads(line))
            say(ok=True, clean=clean, names=names)
        except Exception as e:
            kind = getattr(e, "kind", "internal") if alive(desktop) else "gone"
            say(error=kind, detail=repr(e)[:500])


main()
