package s3blob

var (
	Escape   = escape
	Unescape = unescape
)

// Plan returns the pieces that Compose makes of sources with the given sizes: the
// length of each, and whether the server copies it.
func Plan(sizes []int64) (pieces []int64, copied []bool, segments [][3]int64) {
	var all []source
	var total int64
	for _, n := range sizes {
		all = append(all, source{size: n, key: string(rune(len(all)))})
		total += n
	}
	for _, p := range plan(all, total, maxCopy) {
		pieces, copied = append(pieces, p.size), append(copied, p.copied)
		for _, s := range p.segments {
			segments = append(segments, [3]int64{int64([]rune(s.key)[0]), s.off, s.n})
		}
	}
	return pieces, copied, segments
}

// SetMaxCopy sets how many bytes the server copies in one request.
func (s *Store) SetMaxCopy(n int64) { s.maxCopy = n }

// MemoryLeft returns how much of Config.Memory is not in use.
func (s *Store) MemoryLeft() int64 {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.memory.left
}
