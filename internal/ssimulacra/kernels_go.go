//go:build !cgo

package ssimulacra

// lanes is the number of samples that the C code takes at once.
const lanes = 1

func convert(out, rgb [3][]float32, offset float32) { convertGo(out, rgb, offset, 0) }

func (f *filter) blur(rows *[2*reach + 1][]float32) { f.blurGo(rows) }

func (e *lineErrors) add(l *line) { e.addGo(l, 0) }

func average(out, a, b []float32) { averageGo(out, a, b) }

func multiply(out, a, b []float32) { multiplyGo(out, a, b) }
