package layout

import (
	"testing"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Recognized text flows only on a page on which a line has room.
func TestLowPageDoesNotFlow(t *testing.T) {
	t.Parallel()
	for h, want := range map[float64]bool{19: false, 50: true, 300: true} {
		s := &model.Sheet{W: 300, H: h, Scan: &model.Scan{Words: 3}}
		if got := flows(s, new(model.Leaf), new(graphics)); got != want {
			t.Errorf("height %g: %v, want %v", h, got, want)
		}
	}
}
