package pdfops

// Large returns t with another size from which on streams stay in the file.
func (t Tools) Large(bytes int64) Tools {
	t.large = bytes
	return t
}

// Mentions is mentions.
var Mentions = mentions
