// Package tables finds the tables of a document and writes them as a workbook or
// as CSV (RFC 4180). The column, the table, the document or its language decides
// how to read ambiguous numbers. Undecided ones stay text.
package tables
