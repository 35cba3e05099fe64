"""Merges text documents, for worker.py.

Every document after the first is saved as OpenDocument text and inserted into the
first. Styles that differ from a style of the same name in the first document are
renamed before. So each document keeps its page size, headers, footers, numbering
and fonts.
"""

import re
import xml.etree.ElementTree as tree
import zipfile

import uno

STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
REFERENCES = (
    "style:name", "style:parent-style-name", "style:next-style-name", "style:list-style-name", "style:master-page-name",
    "style:apply-style-name", "style:leader-text-style", "text:style-name", "text:cond-style-name", "text:visited-style-name",
    "text:citation-style-name", "text:citation-body-style-name", "text:default-style-name", "text:master-page-name",
    "table:style-name", "draw:text-style-name", "style:style-name")
DEFAULTS = (
    "CharFontName", "CharFontNameAsian", "CharFontNameComplex", "CharHeight", "CharHeightAsian", "CharHeightComplex",
    "ParaTopMargin", "ParaBottomMargin", "ParaLineSpacing")


def default_values(document):
    values = document.createInstance("com.sun.star.text.Defaults")
    out = {}
    for name in DEFAULTS:
        try:
            out[name] = values.getPropertyValue(name)
        except Exception:
            pass  # this version lacks the property
    return out


def definitions(path):
    """Returns the named styles of a document, its list styles and its master pages.

    The styles map a name to (text, parent, family).
    """
    with zipfile.ZipFile(path) as z:
        root = tree.fromstring(z.read("styles.xml"))
    out = {}
    for style in root.iterfind(OFFICE + "styles/" + STYLE + "style"):
        name = style.get(STYLE + "name")
        out[name] = out.get(name, "") + tree.tostring(style, "unicode"), style.get(STYLE + "parent-style-name"), style.get(STYLE + "family")
    lists = [s.get(STYLE + "name") for s in root.iterfind(OFFICE + "styles/" + TEXT + "list-style")]
    pages = [s.get(STYLE + "name") for s in root.iterfind(OFFICE + "master-styles/" + STYLE + "master-page")]
    return out, lists, pages


def conflicts(first, styles, defaults_differ):
    """Returns the names of styles that look different in the first document."""
    renamed = set()
    for name, (text, parent, family) in styles.items():
        if family not in ("paragraph", "text"):
            continue
        if name in first and (first[name][0] != text or defaults_differ and family == "paragraph" and not parent):
            renamed.add(name)
    while True:  # styles that inherit from a renamed style also differ
        more = {n for n, (_, parent, family) in styles.items() if parent in renamed and n in first} - renamed
        if not more:
            return renamed
        renamed |= more


def rename(path, out, names, number):
    """Writes a copy of a document that has a suffix in the given style names."""
    suffix = "_20__28_%d_29_" % number  # the encoded form of " (2)"

    def attribute(m):
        name, value = m.group(1), m.group(2)
        if name == "style:display-name":
            return m.group(0)
        return '%s="%s"' % (name, value + suffix if value in names else value)

    def element(m):
        tag = m.group(0)
        name = re.search(r' style:name="([^"]*)"', tag)
        if not name or name.group(1) not in names:
            return tag
        if " style:display-name=" not in tag:
            return tag.replace(name.group(0), '%s style:display-name="%s (%d)"' % (name.group(0), display(name.group(1)), number), 1)
        return re.sub(r' style:display-name="([^"]*)"', r' style:display-name="\1 (%d)"' % number, tag)

    attributes = re.compile(r"\b(%s)=\"([^\"]*)\"" % "|".join(REFERENCES))
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as w:
        for name in z.namelist():
            data = z.read(name)
            if name in ("styles.xml", "content.xml"):
                text = re.sub(r"<(?:style:style|style:master-page|text:list-style)\b[^>]*>", element, data.decode())
                data = attributes.sub(attribute, text).encode()
            w.writestr(name, data)


def prepare(document, number, first, first_defaults, paths, store):
    """Writes a copy of an open document that can be inserted into the first.

    Returns the name of its first page style, the names of its renamed root styles,
    and the defaults that those styles need to keep their look.
    """
    defaults = default_values(document)
    cursor = document.Text.createTextCursor()
    page = cursor.PageStyleName
    store(document, paths[0])
    styles, lists, pages = definitions(paths[0])
    differ = defaults != first_defaults
    paragraph = conflicts(first[0], styles, differ)
    rename(paths[0], paths[1], paragraph | set(lists) | set(pages), number)
    roots = [n for n in paragraph if differ and not styles[n][1] and styles[n][2] == "paragraph"]
    return page, roots, defaults


def display(name):
    return re.sub(r"_([0-9a-f]{2})_", lambda m: chr(int(m.group(1), 16)), name)


def insert(document, path, number, page, roots, defaults):
    """Appends a prepared document, starting on a new page."""
    text = document.Text
    cursor = text.createTextCursor()
    cursor.gotoEnd(False)
    if cursor.TextTable is not None:  # no paragraph follows the last table
        text.insertTextContentAfter(document.createInstance("com.sun.star.text.Paragraph"), cursor.TextTable)
        cursor = text.createTextCursor()
    for _ in range(2):
        cursor.gotoEnd(False)
        text.insertControlCharacter(cursor, 0, False)  # com.sun.star.text.ControlCharacter.PARAGRAPH_BREAK
    cursor.gotoEnd(False)
    cursor.gotoPreviousParagraph(False)
    # A bookmark in the first of the two empty paragraphs marks the place. The
    # inserted document replaces the second.
    mark = document.createInstance("com.sun.star.text.Bookmark")
    mark.Name = "place of insertion"
    text.insertTextContent(cursor, mark, False)
    cursor.gotoEnd(False)
    cursor.setPropertyToDefault("ParaStyleName")
    cursor.insertDocumentFromURL(uno.systemPathToFileUrl(path), ())
    styles = document.StyleFamilies.getByName("ParagraphStyles")
    for name in roots:
        name = "%s (%d)" % (display(name), number)
        if not styles.hasByName(name):
            continue
        style = styles.getByName(name)
        for key, value in defaults.items():
            if style.getPropertyState(key).value != "DIRECT_VALUE":
                style.setPropertyValue(key, value)
    rest = text.createTextCursorByRange(document.Bookmarks.getByName(mark.Name).Anchor)
    rest.gotoEnd(True)
    parts = rest.createEnumeration()
    place = parts.nextElement()
    start = parts.nextElement() if parts.hasMoreElements() else None
    pages = document.StyleFamilies.getByName("PageStyles")
    page = "%s (%d)" % (page, number)
    if start is not None:
        if pages.hasByName(page):
            start.PageDescName = page
        else:
            start.BreakType = uno.Enum("com.sun.star.style.BreakType", "PAGE_BEFORE")
    text.removeTextContent(mark)
    place.dispose()
