// Package tables finds the tables of a document and writes them as a workbook or as
// CSV (RFC 4180). Numbers are read as the column, the table, the document or its
// language demands, and stay text where nothing decides.
package tables
