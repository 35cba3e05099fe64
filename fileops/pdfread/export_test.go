package pdfread

// ParsePages exports parsePages for tests.
func ParsePages(s string, total int) ([]int, error) { return parsePages(s, total) }

// PagesPattern exports the pattern of the parameter pages.
const PagesPattern = pagesPattern
