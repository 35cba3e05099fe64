package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/internal/systest"
)

// A lookCounter is a context that counts calls of its Err method, one for each
// dictionary. It is cancelled after a given number.
type lookCounter struct {
	context.Context
	looks, most int
}

func (c *lookCounter) Err() error {
	if c.looks++; c.looks > c.most {
		return context.Canceled
	}
	return nil
}

// The number of parsed dictionaries does not grow with the file.
func TestFindSecurityBounded(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"unclosed":   "trailer<<",
		"table":      "trailer<</Root 1 0 R/Encrypt 2 0 R>>\n",
		"direct":     "trailer<</Root 1 0 R/Encrypt<</Filter/Standard/V 2/R 3>>>>\n",
		"stream":     "1 0 obj<</Type/XRef/Root 1 0 R/Encrypt 2 0 R>>\n",
		"marks":      "/XRef",
		"objects":    "2 0 obj<</Filter 1>>\ntrailer<</Root 1 0 R/Encrypt 3 0 R>>\n2 0 obj<<",
		"named":      "2 0 obj<<\n",
		"sections":   "xref 0 0 trailer<</Root 1 0 R/Encrypt 2 0 R/Prev 9>>startxref 8\n",
		"startxrefs": "startxref 8 ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tail := "trailer<</Root 1 0 R/Encrypt 2 0 R>>"
			looks := func(n int) int {
				c := &lookCounter{Context: t.Context(), most: 1 << 40}
				start := time.Now()
				FindSecurity(c, []byte("%PDF-1.4 /Encrypt "+strings.Repeat(unit, n)+tail))
				if d := time.Since(start); d > time.Minute {
					t.Errorf("%d of them took %v", n, d)
				}
				return c.looks
			}
			// pdfcpu checks the context too, between the objects in a dictionary.
			large := 160_000
			if testing.Short() {
				large = 40_000
			}
			few := looks(10_000)
			if many := looks(large); many > few+few/10 {
				t.Errorf("%d looks at the context for %d of them, %d for 10,000", many, large, few)
			}
		})
	}
}

// A search stops when its context is cancelled.
func TestFindSecurityCancelled(t *testing.T) {
	t.Parallel()
	data := []byte("/Encrypt " + strings.Repeat("trailer<</Root 1 0 R/Encrypt 2 0 R>>\n2 0 obj<<", 1000))
	c := &lookCounter{Context: t.Context(), most: 5}
	if _, err := FindSecurity(c, data); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if c.looks > 20 {
		t.Errorf("looked at the context %d times after it was cancelled", c.looks-5)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Parse(ctx, data); !errors.Is(err, context.Canceled) {
		t.Errorf("parse: %v", err)
	}
}

// In a file with updates, the newest trailer counts. Data elsewhere that looks
// like a trailer does not, as long as the table can be found.
func TestFindSecurity(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	d := New()
	d.Root = d.Add(types.Dict{"Type": types.Name("Catalog")}).ObjectNumber.Value()
	systest.NoError(t, d.Write(&b, false, NewEncryption([]byte("user"), []byte("owner"), PermitAll)))
	locked := b.String()
	plain := "%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n"
	end := func(s string, extra string) string {
		return fmt.Sprintf("%sxref\n0 1\n0000000000 65535 f \ntrailer<</Size 2/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", s, extra, len(s))
	}
	for name, tt := range map[string]struct {
		data string
		want bool
	}{
		"locked":         {locked, true},
		"junk before it": {"junk\n" + locked, true},
		"comment":        {end(plain+"9 0 obj % a comment\n<</Filter/Standard/R 3/V 2/O("+strings.Repeat("o", 32)+")/U("+strings.Repeat("u", 32)+")>>endobj\n", "/Encrypt 9 0 R"), true},
		"no table":       {strings.ReplaceAll(locked, "startxref", "startxxxx"), true},
		"wrong table":    {"%PDF-1.4\n" + strings.Repeat(" ", 5000) + locked[9:], true},
		"plain":          {end(plain, ""), false},
		"attached":       {end(plain+"2 0 obj<</Type/EmbeddedFile>>stream\n"+locked+"\nendstream endobj\n", ""), false},
		"name":           {end(plain, "/X/Encrypt"), false},
	} {
		sec, err := FindSecurity(t.Context(), []byte(tt.data))
		if err != nil || (sec != nil) != tt.want {
			t.Errorf("%s: %v, %v; want encryption: %v", name, sec, err, tt.want)
		}
	}
}

func TestHasHugeNumber(t *testing.T) {
	t.Parallel()
	const huge = "99999999"
	params := "/Params<</CheckSum<00ff>/CreationDate(D:20240101\\)x)/ModDate(D:2024)/Size " + huge + ">>"
	for data, want := range map[string]bool{
		"1 0 obj<</Type/EmbeddedFile" + params + ">>":                               false,
		"1 0 obj<</Params 2 0 R>>endobj 2 0 obj\n<</Size " + huge + "/ModDate(x)>>": false,
		"1 0 obj<</Type/EmbeddedFile\n/Params <<\n/Size " + huge:                    false,
		"trailer<</Size 10>>":                                        false,
		"trailer<</Size " + huge + ">>":                              true,
		"trailer\n<<\n/Root 1 0 R\n/Size " + huge:                    true,
		"trailer<</A(/Params<<)/Size " + huge:                        true,
		"trailer<</A(1 0 obj<<)/Size " + huge:                        true,
		"trailer<<%/Params<<\n/Size " + huge:                         true,
		"trailer<<% 1 0 obj<<\r/Size " + huge:                        true,
		"trailer<</A<</Params<<>>>>/Size " + huge:                    true,
		"1 0 obj<<>>endobj trailer<</Size " + huge:                   true,
		"1 0 obj<<trailer<</Size " + huge:                            true,
		"/Size " + huge:                                              true,
		"1 0 obj<</A/B>>" + "/Size " + huge:                          true,
		strings.Repeat(" ", 6<<10) + "/Size " + huge:                 true,
		"1 0 obj<</X" + strings.Repeat(" ", 6<<10) + "/Size " + huge: true,
		huge + " 0 obj<<>>":                                          true,
		"xref\n" + huge + " 1":                                       true,
		"startxref\n" + huge:                                         false,
		strings.Repeat(params, 200):                                  false,
		strings.Repeat(params, maxAttachments+1):                     true,
	} {
		if got := (source{data: []byte(data)}).hasHugeNumber(); got != want {
			t.Errorf("%.80q: %v, want %v", data, got, want)
		}
	}
}
