package fileopstest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

// Every sample and every specimen is of the format that it is one of.
func TestSample(t *testing.T) {
	t.Parallel()
	for f := range format.Known() {
		for name, make := range map[string]func(testing.TB, format.Format) *fileops.File{"sample": fileopstest.Sample, "specimen": fileopstest.Specimen} {
			t.Run(name+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				s := make(t, f)
				if err := format.Check(f, s.Reader(), s.Size()); err != nil {
					t.Error(err)
				}
				got := format.Sniff(s.Reader(), s.Size())
				switch f {
				case format.MD, format.CSV, format.TSV, format.JSON:
					if got != format.TXT {
						t.Errorf("sniffed as %q, want txt", got)
					}
				case format.M4V, format.ThGP, format.M4A: // by brand; encoders choose it
					if got != f && got != format.MP4 {
						t.Errorf("sniffed as %q", got)
					}
				case format.TarGZ, format.TarBZ2, format.TarXZ, format.TarZst: // nothing outside tells
					if string(f) != "tar."+string(got) {
						t.Errorf("sniffed as %q", got)
					}
				default:
					if got != f {
						t.Errorf("sniffed as %q", got)
					}
				}
			})
		}
	}
}

// Every format of pictures is there with letters, and not with patches.
func TestLettered(t *testing.T) {
	t.Parallel()
	for f := range format.Known() {
		if f.Family() != format.Image {
			continue
		}
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			s := fileopstest.Lettered(t, f)
			if got := format.Sniff(s.Reader(), s.Size()); got != f {
				t.Errorf("sniffed as %q", got)
			}
			letters, _ := s.Bytes()
			patches, _ := fileopstest.Specimen(t, f).Bytes()
			if bytes.Equal(letters, patches) {
				t.Error("it is the specimen")
			}
		})
	}
}

// What is locked does not open, and says so where the format can.
func TestLocked(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.PDF, format.DOCX, format.XLSX, format.PPTX, format.ODT, format.ODS, format.ODP, format.ZIP, format.SevenZip, format.RAR} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			s := fileopstest.Locked(t, f, "sesame")
			err := format.Check(f, s.Reader(), s.Size())
			switch f {
			case format.DOCX, format.XLSX, format.PPTX:
				if !errors.Is(err, format.ErrEncrypted) {
					t.Errorf("check: %v", err)
				}
			default:
				if err != nil {
					t.Error(err)
				}
			}
			b, _ := s.Bytes()
			if bytes.Contains(b, []byte(fileopstest.Text)) || bytes.Contains(b, []byte("sesame")) {
				t.Error("text or password are readable")
			}
		})
	}
}

// resize is a correct action to try the suite on.
func copyPNG() fileops.Action {
	spec := fileops.Spec{
		Name: "copy", Engine: "go", Family: "image", Summary: "Decodes a picture and encodes it again.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PNG}, Params: fileops.Schema{
			fileops.Enum("convert_to", "Target.", "png"), fileops.Secret("password", "Not used."),
		}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		m, err := png.Decode(job.Input().Reader())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "")
		}
		job.Log.Info("decoded", "params", job.Params)
		return job.Write("x.png", func(w io.Writer) error { return png.Encode(w, m) })
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	checked := 0
	fileopstest.Run(t, fileopstest.Suite{
		Action: copyPNG(),
		Args:   fileops.Args{"password": "s3cret"},
		Check:  func(*testing.T, []*fileops.File, fileops.Args, []*fileops.File) { checked++ },
	})
	if checked != 3 {
		t.Errorf("Check was called %d times, want 3: once for the combination and once for each backing", checked)
	}
}

func Example() {
	// In a test of your own:
	_ = func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: copyPNG()})
	}
	fmt.Println(len(fileopstest.Picture(4, 3).Pix))
	// Output: 48
}
