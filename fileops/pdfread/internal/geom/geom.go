// Package geom provides rectangles and matrices in the coordinates of a
// displayed page: points from the top left corner, y grows downwards.
package geom

import "math"

// A Matrix maps x, y to a*x+c*y+e, b*x+d*y+f.
type Matrix struct{ A, B, C, D, E, F float64 }

// Apply maps a point.
func (m Matrix) Apply(x, y float64) (float64, float64) {
	return m.A*x + m.C*y + m.E, m.B*x + m.D*y + m.F
}

// Then returns the matrix that applies m and then n.
func (m Matrix) Then(n Matrix) Matrix {
	e, f := n.Apply(m.E, m.F)
	return Matrix{
		m.A*n.A + m.B*n.C, m.A*n.B + m.B*n.D,
		m.C*n.A + m.D*n.C, m.C*n.B + m.D*n.D, e, f,
	}
}

// Rect maps a rectangle. The result is the smallest rectangle that contains the
// image.
func (m Matrix) Rect(x0, y0, x1, y1 float64) Rect {
	ax, ay := m.Apply(x0, y0)
	bx, by := m.Apply(x1, y0)
	cx, cy := m.Apply(x0, y1)
	dx, dy := m.Apply(x1, y1)
	return Rect{min(ax, bx, cx, dx), min(ay, by, cy, dy), max(ax, bx, cx, dx), max(ay, by, cy, dy)}
}

// Turned returns the matrix that rotates a page of size w × h counterclockwise
// by quarter turns. Text that ran in direction turn then runs to the right.
func Turned(turn int, w, h float64) Matrix {
	switch turn {
	case 1: // ran downwards
		return Matrix{0, -1, 1, 0, 0, w}
	case 2:
		return Matrix{-1, 0, 0, -1, w, h}
	case 3: // ran upwards
		return Matrix{0, 1, -1, 0, h, 0}
	}
	return Matrix{1, 0, 0, 1, 0, 0}
}

// Abs returns the absolute value of x.
func Abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}

// A Rect is a rectangle in points on a displayed page. The origin is the top
// left corner and y grows downwards.
type Rect struct{ L, T, R, B float64 }

// W returns the width; it is negative for an empty intersection.
func (a Rect) W() float64 { return a.R - a.L }

// H returns the height; it is negative for an empty intersection.
func (a Rect) H() float64 { return a.B - a.T }

// CX returns the x coordinate of the centre.
func (a Rect) CX() float64 { return (a.L + a.R) / 2 }

// CY returns the y coordinate of the centre.
func (a Rect) CY() float64 { return (a.T + a.B) / 2 }

// Area returns the area, 0 for an empty intersection.
func (a Rect) Area() float64 { return max(0, a.W()) * max(0, a.H()) }

// Union returns the smallest rectangle that contains a and b.
func (a Rect) Union(b Rect) Rect {
	return Rect{min(a.L, b.L), min(a.T, b.T), max(a.R, b.R), max(a.B, b.B)}
}

// Intersect returns the intersection of a and b. Its width or height is negative
// if they do not meet.
func (a Rect) Intersect(b Rect) Rect {
	return Rect{max(a.L, b.L), max(a.T, b.T), min(a.R, b.R), min(a.B, b.B)}
}

// Overlaps reports whether a and b share an area.
func (a Rect) Overlaps(b Rect) bool { return a.L < b.R && b.L < a.R && a.T < b.B && b.T < a.B }

// Contains reports whether a point is inside the rectangle or on its edge.
func (a Rect) Contains(x, y float64) bool { return x >= a.L && x <= a.R && y >= a.T && y <= a.B }

// Grow moves all edges outwards by d.
func (a Rect) Grow(d float64) Rect { return Rect{a.L - d, a.T - d, a.R + d, a.B + d} }

// Nothing returns the neutral element of Union.
func Nothing() Rect { return Rect{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)} }
