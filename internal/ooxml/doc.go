// Package ooxml writes Office Open XML (ECMA-376): parts of a package, and a
// [Workbook] of values with their number formats.
package ooxml
