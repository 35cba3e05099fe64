package pdf

// A Matrix is a transformation [a b c d e f] (ISO 32000-2, 8.3.4).
type Matrix [6]float64

// IdentityMatrix returns the transformation that changes nothing.
func IdentityMatrix() Matrix { return Matrix{1, 0, 0, 1, 0, 0} }

// Times returns the transformation that applies m and then n.
func (m Matrix) Times(n Matrix) Matrix {
	return Matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}
