package webops

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
	nethtml "golang.org/x/net/html"
)

func FuzzPrepare(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><title/><p/>text<svg><g/></svg></html>`))
	f.Add([]byte(`<meta http-equiv=refresh content=0><html xmlns="x"><textarea/><script/>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := prepare(in)
		heavy(out)
		// All tags that are closed here have an end tag, so nothing is left to close.
		if head := out[:min(len(out), 1024)]; len(in) < 1000 && (xmlFile.MatchString(head) || xhtml.MatchString(head)) {
			if again := string(closeTags([]byte(out))); len(again) != len(out) {
				t.Errorf("%q becomes %q, then %q", in, out, again)
			}
		}
	})
}

func FuzzDrawing(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0" encoding="iso-8859-1"?><!DOCTYPE svg><svg width="10cm" height="50%" viewBox="0,0 3 4"/>`))
	f.Add([]byte(`<svg width="1e400" height="-1" viewBox="0 0 NaN Inf"/>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := svgSize(in)
		if err == nil && !(s.width >= 1 && s.width <= maxSide && s.height >= 1 && s.height <= maxSide) {
			t.Errorf("size %v", s)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("a;b\n\"1\n2\";3,5"), 500.0)
	f.Add([]byte("漢字,\x00\xff\n"), 1.0)
	f.Fuzz(func(t *testing.T, in []byte, available float64) {
		if !(available > 0 && available < 1e5) {
			return
		}
		tab, err := newTable(context.Background(), bytes.ToValidUTF8(in, nil), 0)
		if err != nil {
			if !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrLimit) {
				t.Fatal(err)
			}
			return
		}
		font, widths := tab.fit(available)
		sum := 0.0
		for _, w := range widths {
			sum += w
		}
		if !(font >= minTableSize && font <= tableSize) || math.IsNaN(sum) || sum > available*1.001 {
			t.Errorf("font %v, width %v of %v", font, sum, available)
		}
		body, _, err := tab.write(context.Background(), available)
		systest.NoError(t, err)
		if _, err := nethtml.Parse(strings.NewReader(body)); err != nil {
			t.Error(err)
		}
	})
}
