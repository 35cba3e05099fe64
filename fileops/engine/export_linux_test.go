package engine

// Ungrouped returns a sandbox like s in tier 3.
func Ungrouped(s *Sandbox) *Sandbox {
	t := *s
	t.layers.groups = nil
	return &t
}
