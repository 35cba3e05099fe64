package charset

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("日本語 text, ", 5000)
	for _, tt := range []struct {
		label, in, want string
		bom             any
		lost            int
	}{
		{"", "ä€", "ä€", nil, 0},
		{"", "ä€", "\ufeffä€", true, 0},
		{"latin1", "ä€😀x", "\xe4\x80?x", nil, 1},
		{"utf-16le", "ä", "\xff\xfe\xe4\x00", nil, 0},
		{"utf-16be", "ä", "\x00\xe4", false, 0},
		{"iso-2022-jp", "a語b", "a\x1b$B8l\x1b(Bb", nil, 0},
		{"shift_jis", long, "", nil, 0},
		{"ascii", "\xff", "?", nil, 1},
	} {
		args := fileops.Args{}
		if tt.label != "" {
			args["output_encoding"] = tt.label
		}
		if tt.bom != nil {
			args["bom"] = tt.bom
		}
		p, err := OutputParams().Parse(args)
		if err != nil {
			t.Fatal(err)
		}
		o, err := OutputOf(p)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = o.Copy(&out, func(w io.Writer) error {
			for i := range len(tt.in) { // characters arrive in pieces
				if _, err := w.Write([]byte{tt.in[i]}); err != nil {
					return err
				}
			}
			return nil
		})
		want := tt.want
		if want == "" {
			b, err := o.enc.NewEncoder().String(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			want = b
		}
		if err != nil || out.String() != want || o.lost != tt.lost {
			t.Errorf("%s: %.40q, %d lost, %v; want %.40q", tt.label, out.String(), o.lost, err, want)
		}
	}
	for _, args := range []fileops.Args{{"output_encoding": "nonsense"}, {"output_encoding": "replacement"}, {"output_encoding": "latin1", "bom": true}} {
		p, err := OutputParams().Parse(args)
		if err == nil {
			_, err = OutputOf(p)
		}
		if err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
