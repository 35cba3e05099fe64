package documentops_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

const password = "pässwörd 日本 😀"

// filters maps formats to LibreOffice's filter names.
var filters = map[format.Format]string{
	format.DOCX: "MS Word 2007 XML", format.XLSX: "Calc MS Excel 2007 XML", format.PPTX: "Impress MS PowerPoint 2007 XML",
}

var toPDF = map[format.Format]string{
	format.DOCX: "writer_pdf_Export", format.XLSX: "calc_pdf_Export", format.PPTX: "impress_pdf_Export",
}

// LibreOffice opens the output of Lock with the password, but not without it.
func TestLockedFilesOpenInLibreOffice(t *testing.T) {
	t.Parallel()
	for f, filter := range toPDF {
		for _, size := range []string{"small", "large"} {
			t.Run(fmt.Sprint(f, " ", size), func(t *testing.T) {
				t.Parallel()
				in := fileopstest.Sample(t, f)
				if size == "large" { // more than 109 sectors of allocation table
					in = padded(t, in, 8<<20)
				}
				locked := save(t, "a."+string(f), must(t, documentops.Lock(nil), fileops.Args{"password": password}, in))
				out := filepath.Join(t.TempDir(), "a.pdf")
				if err := libreOffice.convert(locked, "not it", out, filter, ""); err == nil {
					t.Error("opens with a wrong password")
				}
				systest.NoError(t, libreOffice.convert(locked, password, out, filter, ""))
				if text := tool(t, "pdftotext", out, "-"); !strings.Contains(strings.Join(strings.Fields(text), " "), "The quick b") { // the cell truncates it
					t.Errorf("text %q", text)
				}
			})
		}
	}
}

// padded returns a document with an additional unreferenced part of random
// bytes.
func padded(t testing.TB, in *fileops.File, n int) *fileops.File {
	noise := make([]byte, n)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	return fileops.Bytes(in.Name(), rezip(t, content(t, in), map[string][]byte{"docProps/noise.bin": noise}))
}

// Documents protected by LibreOffice open here, but only with their password.
// Version 7.4 writes the standard encryption.
func TestUnlockFilesOfLibreOffice(t *testing.T) {
	t.Parallel()
	for f, filter := range filters {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			plain := save(t, "a."+string(f), content(t, fileopstest.Sample(t, f)))
			locked := filepath.Join(t.TempDir(), "locked."+string(f))
			systest.NoError(t, libreOffice.convert(plain, "", locked, filter, password))
			if _, _, err := run(t.Context(), documentops.Unlock(nil), fileops.Args{"password": "no"}, fileops.Path(locked)); !errors.Is(err, fileops.ErrWrongPassword) {
				t.Errorf("wrong password: %v", err)
			}
			b := must(t, documentops.Unlock(nil), fileops.Args{"password": password}, fileops.Path(locked))
			tool(t, "unzip", "-t", save(t, "a.zip", b))
			out := filepath.Join(t.TempDir(), "a.pdf")
			systest.Check(t, libreOffice.convert(save(t, "b."+string(f), b), "", out, toPDF[f], ""))
			reset := must(t, documentops.ResetPassword(nil), fileops.Args{"old_password": password, "new_password": "other"}, fileops.Path(locked))
			if err := libreOffice.convert(save(t, "c."+string(f), reset), "other", out, toPDF[f], ""); err != nil {
				t.Errorf("after reset: %v", err)
			}
		})
	}
}

// Every length survives a round trip byte for byte: lengths around a block, a
// segment, a sector, and the smallest stream with its own sectors.
func TestLockRoundTrip(t *testing.T) {
	t.Parallel()
	base := content(t, fileopstest.Sample(t, format.DOCX))
	for _, n := range []int{0, 1, 15, 16, 17, 4096 - len(base), 4088 - len(base), 4087 - len(base), 4096, 9000, 70000} {
		in := append(bytes.Clone(base), make([]byte, max(0, n))...)
		comment := len(in) - len(base)
		if comment > 0xffff {
			comment = 0xffff
			in = in[:len(base)+comment]
		}
		in[len(base)-2], in[len(base)-1] = byte(comment), byte(comment>>8) // length of the archive comment
		locked := must(t, documentops.Lock(nil), fileops.Args{"password": password}, fileops.Bytes("a.docx", in))
		if out := must(t, documentops.Unlock(nil), fileops.Args{"password": password}, fileops.Bytes("a.docx", locked)); !bytes.Equal(out, in) {
			t.Errorf("%d bytes more: %d bytes in, %d out", n, len(in), len(out))
		}
	}
}

func TestLockErrors(t *testing.T) {
	t.Parallel()
	plain := fileopstest.Sample(t, format.DOCX)
	locked := fileops.Bytes("a.docx", must(t, documentops.Lock(nil), fileops.Args{"password": password}, plain))
	flipped := content(t, locked)
	flipped[512+100] ^= 1 // in the package
	named := locked.Named("a.xlsx")
	for _, tt := range []struct {
		name   string
		action fileops.Action
		args   fileops.Args
		in     *fileops.File
		want   error
	}{
		{"lock again", documentops.Lock(nil), fileops.Args{"password": "x"}, locked, fileops.ErrPasswordRequired},
		{"unlock plain", documentops.Unlock(nil), fileops.Args{"password": "x"}, plain, fileops.ErrNotEncrypted},
		{"reset plain", documentops.ResetPassword(nil), fileops.Args{"old_password": "x", "new_password": "y"}, plain, fileops.ErrNotEncrypted},
		{"unlock wrong", documentops.Unlock(nil), fileops.Args{"password": "x"}, locked, fileops.ErrWrongPassword},
		{"unlock empty", documentops.Unlock(nil), fileops.Args{"password": ""}, locked, fileops.ErrWrongPassword},
		{"reset wrong", documentops.ResetPassword(nil), fileops.Args{"old_password": "x", "new_password": "y"}, locked, fileops.ErrWrongPassword},
		{"cut off", documentops.Unlock(nil), fileops.Args{"password": password}, fileops.Bytes("a.docx", content(t, locked)[:3000]), fileops.ErrCorruptInput},
		{"changed", documentops.Unlock(nil), fileops.Args{"password": password}, fileops.Bytes("a.docx", flipped), fileops.ErrCorruptInput},
		{"another format inside", documentops.Unlock(nil), fileops.Args{"password": password}, named, fileops.ErrFormatMismatch},
		{"old document with a new name", documentops.Unlock(nil), fileops.Args{"password": "x"}, fileopstest.Sample(t, format.DOC).Named("a.docx"), fileops.ErrFormatMismatch},
		{"compress locked", documentops.Compress(nil, nil), nil, locked, fileops.ErrPasswordRequired},
		{"compress wrong", documentops.Compress(nil, nil), fileops.Args{"password": "x"}, locked, fileops.ErrWrongPassword},
		{"compress changed", documentops.Compress(nil, nil), fileops.Args{"password": password}, fileops.Bytes("a.docx", flipped), fileops.ErrCorruptInput},
		{"compress another format", documentops.Compress(nil, nil), fileops.Args{"password": password}, named, fileops.ErrFormatMismatch},
	} {
		_, _, err := run(t.Context(), tt.action, tt.args, tt.in)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestLockSuite(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{Action: documentops.Lock(nil), Args: fileops.Args{"password": "open sesame"}, Concurrency: 3})
}

func lockedSample(t testing.TB, f format.Format) *fileops.File {
	return fileops.Bytes("sample."+string(f), must(t, documentops.Lock(nil), fileops.Args{"password": "open sesame"}, fileopstest.Sample(t, f)))
}

func TestUnlockSuite(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{Action: documentops.Unlock(nil), Formats: []format.Format{format.DOCX, format.XLSX}, Fixture: lockedSample, Args: fileops.Args{"password": "open sesame"}, Concurrency: 3,
		Check: func(t *testing.T, _ []*fileops.File, _ fileops.Args, out []*fileops.File) {
			systest.Check(t, format.Check(out[0].Format(), out[0].Reader(), out[0].Size()))
		}})
}

func TestResetPasswordSuite(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{Action: documentops.ResetPassword(nil), Formats: []format.Format{format.PPTX}, Fixture: lockedSample, Concurrency: 3,
		Args: fileops.Args{"old_password": "open sesame", "new_password": "another one"}})
}
