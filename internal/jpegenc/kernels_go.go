//go:build !cgo

package jpegenc

func convertLine(ys, bs, rs []float32, line []byte) { convertLineGo(ys, bs, rs, line) }

func halve(out, p []float32, w, h int) { halveGo(out, p, w, h) }

func (q *scale) transform(values []float32, large []uint64, p []float32, stride int) {
	q.transformGo(values, large, p, stride)
}
