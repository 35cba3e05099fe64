package mailops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/mailops"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// A result is what a run returned.
type result struct {
	names    []string
	data     []string
	warnings []string
}

func engine(t testing.TB, l mailops.Limits) *mailops.Engine {
	t.Helper()
	e, err := mailops.New(t.Context(), mailops.Options{Limits: l})
	systest.NoError(t, err)
	return e
}

func run(t testing.TB, a fileops.Action, to string, in *fileops.File) (out result, err error) {
	t.Helper()
	args := fileops.Args{}
	if to != "" {
		args["convert_to"] = to
	}
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { out.warnings = append(out.warnings, w.Code+": "+w.Message) }}
	err = r.Run(t.Context(), a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out.names, out.data = append(out.names, f.Name()), append(out.data, string(b))
		return err
	}), in)
	return out, err
}

// converted returns the only result of a conversion.
func converted(t testing.TB, in *fileops.File, to string) (string, []string) {
	t.Helper()
	out, err := run(t, engine(t, mailops.Limits{}).Convert(), to, in)
	systest.NoError(t, err)
	if len(out.data) != 1 {
		t.Fatalf("results %q", out.names)
	}
	return out.data[0], out.warnings
}

// Both kinds of files have the same message.
func TestConvert(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.EML, format.MSG} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			in := specimen.Of(t, f)
			page, warnings := converted(t, in, "html")
			for _, want := range []string{
				"<title>" + specimen.Heading + " ✓</title>", "Ada Lovelace &lt;ada@example.com&gt;", "Charles Babbage &lt;charles@example.com&gt;",
				"2026-03-04 05:06:07", specimen.Text, specimen.Scripts, "<td>Apple</td>", `src="data:image/png;base64,`, specimen.Attachment,
			} {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			if strings.Contains(page, "cid:") || strings.Contains(page, "ignored") {
				t.Error("the page refers to its pictures, or has a second title")
			}
			if want := []string{"content_dropped: 1 attachment is only listed in the result; extract returns it."}; !slices.Equal(warnings, want) {
				t.Errorf("warnings %q", warnings)
			}
			text, _ := converted(t, in, "txt")
			for _, want := range []string{"Subject: " + specimen.Heading, "From: Ada Lovelace <ada@example.com>", specimen.Text, specimen.Scripts, "- " + specimen.Attachment} {
				if !strings.Contains(text, want) {
					t.Errorf("the text %q lacks %q", text, want)
				}
			}
		})
	}
}

// Another reader finds everything in a message that became EML.
func TestOutlookToEML(t *testing.T) {
	t.Parallel()
	src, _ := converted(t, specimen.Of(t, format.MSG), "eml")
	m, err := mail.ReadMessage(strings.NewReader(src))
	systest.NoError(t, err)
	from, err := m.Header.AddressList("From")
	systest.NoError(t, err)
	if len(from) != 1 || from[0].Address != specimen.Sender || from[0].Name != "Ada Lovelace" {
		t.Errorf("from %v", from)
	}
	if date, err := m.Header.Date(); err != nil || !date.Equal(specimen.Sent()) {
		t.Errorf("date %v, %v", date, err)
	}
	again, err := run(t, engine(t, mailops.Limits{}).Extract(), "", fileops.Bytes("a.eml", []byte(src)))
	systest.NoError(t, err)
	before, err := run(t, engine(t, mailops.Limits{}).Extract(), "", specimen.Of(t, format.MSG))
	systest.NoError(t, err)
	if !slices.Equal(again.names, before.names) || !slices.Equal(again.data, before.data) {
		t.Errorf("attachments %q, want %q", again.names, before.names)
	}
	page, _ := converted(t, fileops.Bytes("a.eml", []byte(src)), "html")
	want, _ := converted(t, specimen.Of(t, format.MSG), "html")
	if page != strings.Replace(want, "<title>", "<title>", 1) {
		t.Errorf("page\n%s\nwant\n%s", page, want)
	}
}

func TestExtract(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.EML, format.MSG} {
		out, err := run(t, engine(t, mailops.Limits{}).Extract(), "", specimen.Of(t, f))
		systest.NoError(t, err)
		i := slices.Index(out.names, specimen.Attachment)
		if len(out.names) != 2 || i < 0 || out.data[i] != specimen.Text || !strings.HasPrefix(out.data[1-i], "\x89PNG") {
			t.Errorf("%s: %q", f, out.names)
		}
	}
	_, err := run(t, engine(t, mailops.Limits{}).Extract(), "", eml("Content-Type: text/plain\n\nHello"))
	if !errors.Is(err, fileops.ErrUnsupportedInput) {
		t.Errorf("without attachments: %v", err)
	}
}

// Names of attachments stay inside the folder of results, and differ.
func TestNamesOfAttachments(t *testing.T) {
	t.Parallel()
	src := "Content-Type: multipart/mixed; boundary=b\n\n"
	for _, name := range []string{"../../etc/passwd", `C:\\a\\b.txt`, "A.TXT", "a.txt", "..", "x\x01y.txt", strings.Repeat("é", 300) + ".pdf"} {
		src += "--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=\"" + name + "\"\n\nx\n"
	}
	out, err := run(t, engine(t, mailops.Limits{}).Extract(), "", eml(src+"--b--\n"))
	systest.NoError(t, err)
	want := []string{"passwd", "b.txt", "A.TXT", "a-2.txt", "attachment-5.pdf"}
	if len(out.names) < 7 || !slices.Equal(out.names[:5], want) || len(out.names[6]) > 255 || !strings.HasSuffix(out.names[6], ".pdf") {
		t.Errorf("names %q", out.names)
	}
}

func eml(rest string) *fileops.File {
	return fileops.Bytes("a.eml", []byte("From: a@example.com\nTo: b@example.com\nSubject: s\nMIME-Version: 1.0\n"+rest))
}

// A page has nothing that runs, loads or looks like another site.
func TestHostilePage(t *testing.T) {
	t.Parallel()
	body := `<base href="http://evil.example/"><script>alert(1)</script><p onclick="x()" style="background:url(http://evil.example/a)">Hello</p>` +
		`<img src="http://evil.example/b.png" width=100 alt="logo"><img src="http://evil.example/pixel" width="1" height="1"><iframe src="http://evil.example"></iframe>` +
		`<form action="http://evil.example"><input name=a></form><svg onload="x()"><script>y()</script></svg><a href="javascript:z()">bad</a> <a href="https://good.example/">good</a>` +
		`<link rel=stylesheet href="http://evil.example/c.css"><meta http-equiv=refresh content="0;url=http://evil.example"><img src="file:///etc/passwd"><div style="position:fixed;top:0">over</div></div></div><table background="http://evil.example/d"><tr><td>cell</table>` +
		`<img src="data:image/svg+xml;base64,PHN2Zy8+"><b>end`
	page, warnings := converted(t, eml("Content-Type: text/html\n\n"+body), "html")
	for _, bad := range []string{"evil", "script", "alert", "onclick", "javascript", "iframe", "<form", "<svg", "file:", "fixed", "background="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q: %s", bad, page)
		}
	}
	for _, good := range []string{"Hello", "logo", "https://good.example/", "bad", "cell", "over", "<b>end</b>"} {
		if !strings.Contains(page, good) {
			t.Errorf("the page lacks %q", good)
		}
	}
	want := []string{"script_not_run: The scripts of the message were not run.", "content_dropped: 3 pictures were left out, because they are not in the message."}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ src, want string }{
		"latin":           {"Content-Type: text/plain; charset=iso-8859-1\n\n\xc4pfel", "Äpfel"},
		"quoted":          {"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n=C3=84pf=\nel", "Äpfel"},
		"Russian":         {"Content-Type: text/plain; charset=koi8-r\n\n\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"},
		"undeclared":      {"\n\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0? \xd5\xee\xf0\xee\xf8\xee.", "Привет"},
		"broken type":     {"Content-Type: text/plain; charset=\n\nHello", "Hello"},
		"page only":       {"Content-Type: text/html\n\n<style>p{}</style><p>one<br>two</p><ul><li>three</li></ul>", "one\ntwo"},
		"cut off":         {"Content-Type: multipart/mixed; boundary=\"x\"\n\n--x\nContent-Type: text/plain\n\nHello", "Hello"},
		"controls":        {"Content-Type: text/plain; charset=utf-8\n\nHel\x01\x00lo", "Hello"},
		"broken boundary": {"Content-Type: multipart/mixed; charset=us ascii; boundary=\"x\"\n\n--x\nContent-Type: text/plain\n\nHello\n--x--", "Hello"},
		"alternatives":    {"Content-Type: multipart/alternative; boundary=x\n\n--x\n\nplain words\n--x\nContent-Type: text/html\n\n<p>page\n--x--", "plain words"},
	} {
		if got, _ := converted(t, eml(tt.src), "txt"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, _ := converted(t, eml("Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/html\n\n<p>page\n--x\nContent-Type: text/plain\n\nfooter\n--x--"), "html"); !strings.Contains(got, "footer") {
		t.Errorf("the text after the page is missing: %s", got)
	}
}

// A message attached to a message is extracted as a message.
func TestAttachedMessage(t *testing.T) {
	t.Parallel()
	src := "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: message/rfc822\n\nFrom: c@example.com\nTo: d@example.com\nSubject: Inner\n\ntext\n--x--\n"
	out, err := run(t, engine(t, mailops.Limits{}).Extract(), "", eml(src))
	systest.NoError(t, err)
	if len(out.names) != 1 || out.names[0] != "Inner.eml" {
		t.Fatalf("names %q", out.names)
	}
	if got, _ := converted(t, fileops.Bytes("a.eml", []byte(out.data[0])), "txt"); !strings.Contains(got, "Subject: Inner") {
		t.Errorf("text %q", got)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.EML, format.MSG} {
		out, err := run(t, engine(t, mailops.Limits{}).Inspect(), "", specimen.Of(t, f))
		systest.NoError(t, err)
		var r struct {
			Metadata map[string]string
			Message  struct {
				From        string
				To          []string
				HTML        bool
				Attachments []struct {
					Name  string
					Bytes int
				}
			}
		}
		systest.NoError(t, json.Unmarshal([]byte(out.data[0]), &r))
		if r.Metadata["title"] != specimen.Heading+" ✓" || r.Metadata["created"] != "2026-03-04T05:06:07Z" || len(r.Message.To) != 1 || !r.Message.HTML || len(r.Message.Attachments) != 2 {
			t.Errorf("%s: %s", f, out.data[0])
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	nested := ""
	for i := range 40 {
		nested += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	parts := "Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\nContent-Type: image/png\n\nx\n", 2000)
	for name, tt := range map[string]struct {
		limits mailops.Limits
		in     *fileops.File
	}{
		"size":  {mailops.Limits{Size: 100}, specimen.Of(t, format.EML)},
		"depth": {mailops.Limits{}, eml(nested)},
		"parts": {mailops.Limits{}, eml(parts)},
	} {
		if _, err := run(t, engine(t, tt.limits).Convert(), "txt", tt.in); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stored returns a stream of a compound file.
func stored(name string, data []byte) *compound.Node {
	return &compound.Node{Name: name, Size: int64(len(data)), Content: func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}
}

// outlook returns a message with a compressed body that is stored.
func outlook(t testing.TB, rtf string) *fileops.File {
	t.Helper()
	n := len(rtf)
	packed := append([]byte{byte(n + 12), byte((n + 12) >> 8), 0, 0, byte(n), byte(n >> 8), 0, 0}, "MELA\x00\x00\x00\x00"+rtf...)
	var b strings.Builder
	systest.NoError(t, compound.Write(&b, []*compound.Node{stored("__properties_version1.0", make([]byte, 32)), stored("__substg1.0_10090102", packed)}))
	return fileops.Bytes("a.msg", []byte(b.String()))
}

// The body may be in RTF, which may stand for a page.
func TestRTF(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rtf, want string }{
		"text":  {`{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}\f0 \'cf\'f0\'e8\'e2\'e5\'f2\par \u8364?{\*\generator x;} end\{\}}`, "Привет\n€ end{}"},
		"emoji": {`{\rtf1\ansi\uc1 a\u-10179?\u-8704? b}`, "a😀 b"},
		"page":  {`{\rtf1\ansi\fromhtml1 {\*\htmltag64 <p>}\htmlrtf {\b \htmlrtf0 Hello{\*\htmltag72 </p>}{\*\htmltag84 <br>}\htmlrtf hidden}\htmlrtf0 \'e4{\*\htmltag1 <i>x</i>}}`, "Hello"},
		"open":  {`{\rtf1 unclosed {\b text`, "unclosed text"},
		"empty": {`{\rtf1}`, ""},
	} {
		text, _ := converted(t, outlook(t, tt.rtf), "txt")
		if !strings.Contains(text, tt.want) || strings.Contains(text, "hidden") || strings.Contains(text, "Arial") {
			t.Errorf("%s: %q", name, text)
		}
	}
	page, _ := converted(t, outlook(t, `{\rtf1\ansi\fromhtml1 {\*\htmltag64 <p>}Hello{\*\htmltag72 </p>}}`), "html")
	if !strings.Contains(page, "<p>Hello</p>") {
		t.Errorf("page %s", page)
	}
}

// Texts of 8 bits are in the encoding of the sender's system.
func TestCodePages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		id          uint16
		value       byte
		high        byte
		text, wants string
	}{
		"code page":  {0x3ffd, 0xe3, 0x04, "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"}, // 1251
		"locale":     {0x3ff1, 0x19, 0x04, "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"}, // 1049
		"of a mail":  {0x3fde, 0xe3, 0x04, "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		"not stated": {0x0001, 0, 0, "\xc4pfel", "Äpfel"},
	} {
		list := append(make([]byte, 32), 3, 0, byte(tt.id), byte(tt.id>>8), 6, 0, 0, 0, tt.value, tt.high, 0, 0, 0, 0, 0, 0)
		var b strings.Builder
		systest.NoError(t, compound.Write(&b, []*compound.Node{stored("__properties_version1.0", list), stored("__substg1.0_1000001E", []byte(tt.text))}))
		if got, _ := converted(t, fileops.Bytes("a.msg", []byte(b.String())), "txt"); !strings.Contains(got, tt.wants) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Damaged messages fail as such, and never panic.
func TestDamaged(t *testing.T) {
	t.Parallel()
	b, _ := specimen.Of(t, format.MSG).Bytes()
	e := engine(t, mailops.Limits{})
	for cut := 512; cut < len(b); cut += 512 {
		_, err := run(t, e.Convert(), "html", fileops.Bytes("a.msg", b[:cut]))
		if err != nil && !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) {
			t.Errorf("cut off at %d: %v", cut, err)
		}
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	e := engine(t, mailops.Limits{})
	for _, a := range []fileops.Action{e.Convert(), e.Extract(), e.Inspect()} {
		t.Run(a.Spec().Name, func(t *testing.T) {
			t.Parallel()
			fileopstest.Run(t, fileopstest.Suite{Action: a, Concurrency: 4})
		})
	}
}
