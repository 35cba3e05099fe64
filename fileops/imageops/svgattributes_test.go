package imageops

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// The work for a start tag grows linearly with its length, not with its square.
// Allocations show it.
func TestSVGAttributesAreRead(t *testing.T) {
	for name, attribute := range map[string]string{
		"plain":      `a%d="1" `,
		"namespaces": `xmlns:a%d="http://www.inkscape.org/namespaces/inkscape" a%[1]d:b="1" `,
	} {
		var b bytes.Buffer
		b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg"><rect `)
		for i := range 10_000 {
			fmt.Fprintf(&b, attribute, i)
		}
		b.WriteString(`/></svg>`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := minifySVG(b.Bytes(), 2)
		runtime.ReadMemStats(&after)
		if err != nil || len(out) == 0 || len(out) > b.Len() {
			t.Fatalf("%s: %d bytes become %d, error %v", name, b.Len(), len(out), err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 200*uint64(b.Len()) {
			t.Errorf("%s: %d bytes allocated for %d", name, got, b.Len())
		}
	}
}
