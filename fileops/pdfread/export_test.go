package pdfread

// ParsePages makes parsePages testable.
func ParsePages(s string, total int) ([]int, error) { return parsePages(s, total) }

// PagesPattern is the pattern of the parameter pages.
const PagesPattern = pagesPattern
