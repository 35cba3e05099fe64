# Answers questions about files, one JSON object a line, with nothing but
# Python's standard library: {"op": …, "path": …}.
import csv, hashlib, html.parser, io, json, sys, zipfile
import xml.etree.ElementTree as ET


class Words(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.words, self.images, self.tables = [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.images += tag == "img"
        self.tables += tag == "table"

    def handle_data(self, data):
        self.words.append(data)


def text_of(root):
    # A space between paragraphs, cells and boxes, none between runs.
    out = []

    def walk(e):
        out.append(e.text or "")
        for child in e:
            walk(child)
            out.append(child.tail or "")
        if e.tag.rsplit("}", 1)[-1] in ("p", "h", "t", "tc", "c", "si", "table-cell", "v"):
            out.append(" ")

    walk(root)
    return "".join(out)


def office(path):
    text, images = [], 0
    with zipfile.ZipFile(path) as z:
        bad = z.testzip()
        if bad:
            raise ValueError("damaged entry " + bad)
        for name in z.namelist():
            low = name.lower()
            if low.endswith((".png", ".jpg", ".jpeg", ".gif", ".svg")):
                images += "thumbnail" not in low
            if low.endswith((".xml", ".rels", ".xhtml", ".html", ".opf", ".ncx")):
                root = ET.fromstring(z.read(name))
                if not low.endswith(".rels") and "theme" not in low:
                    text.append(text_of(root))
    return {"text": " ".join(text), "images": images}


def flat(path):
    root = ET.parse(path).getroot()
    return {"text": text_of(root), "images": sum(e.tag.endswith("}binary-data") for e in root.iter())}


def page(path):
    w = Words()
    with open(path, encoding="utf-8") as f:
        w.feed(f.read())
    return {"text": " ".join(w.words), "images": w.images, "tables": w.tables}


def table(path, delimiter):
    with open(path, encoding="utf-8-sig", newline="") as f:
        rows = list(csv.reader(f, delimiter=delimiter, strict=True))
    return {"rows": rows}


def records(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    try:
        data = json.loads(text)
    except json.JSONDecodeError:  # JSON Lines
        data = [json.loads(line) for line in text.splitlines()]
    if data and isinstance(data[0], list):
        return {"rows": [[v if isinstance(v, str) else json.dumps(v) for v in r] for r in data]}
    if not isinstance(data, list):
        data = [data]
    head = list(data[0])
    return {"rows": [head] + [[r[k] if isinstance(r[k], str) else json.dumps(r[k]) for k in head] for r in data]}


def archive(path):
    with zipfile.ZipFile(path) as z:
        bad = z.testzip()
        if bad:
            raise ValueError("damaged entry " + bad)
        return {"entries": {n: hashlib.sha256(z.read(n)).hexdigest() for n in z.namelist() if not n.endswith("/")}}


ops = {
    "office": office,
    "flat": flat,
    "html": page,
    "csv": lambda p: table(p, ","),
    "tsv": lambda p: table(p, "\t"),
    "json": records,
    "zip": archive,
}
for line in sys.stdin:
    q = json.loads(line)
    try:
        a = ops[q["op"]](q["path"])
    except Exception as e:
        a = {"error": "%s: %s" % (type(e).__name__, e)}
    print(json.dumps(a), flush=True)
